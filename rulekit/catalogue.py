"""The table of ops in ``docs/ops.md``, made from the rules.

python -m shardlog.rulekit.catalogue > docs/ops.md
"""

from __future__ import annotations

from collections.abc import Iterable

from ..rulebook.book import RuleBook
from .case import EXAMPLES, Case, file_cases
from .origin import Origins
from .show import bare_case, edges, notation

_HEAD = """\
# Ops and their rules

Made from the rules by `python -m shardlog.rulekit.catalogue > docs/ops.md`. `@name` is a custom call by its
target. The factors are those of an example; `shardlog rules show NAME` prints it with the rules.

A factor is what dimensions have in common that are sharded together. `([i, k], [k])->([i]) {i=8, k=4}
reduction={k}` says that the rows of the first operand are those of the result, and that sharding along `k`
leaves a reduction. Factors pass through unless they are listed behind the sizes.
"""


def catalogue() -> str:
    """The text of ``docs/ops.md``: ops with rules, ops that need none, ops that lack one, and why."""
    book = RuleBook()
    origins = Origins(book)
    cases: dict[str, Case] = {}
    for case in sorted(file_cases(EXAMPLES, book), key=lambda c: not c.factors and not c.said["edge"]):
        cases.setdefault(case.name, case)
    ruled = {name: case for name, case in cases.items() if case.factors or case.said["edge"]}
    bare = {name: bare_case(name, book) for relation in _NAMING for name in _named(origins, relation)}
    needless = {n: c for n, c in bare.items() if n not in ruled and c is not None and c.said["known"]}
    lacking = {n: c for n, c in bare.items() if n not in ruled and c is not None and not c.said["known"]}
    rows = [(name, _file(case, origins), _says(case)) for name, case in sorted(ruled.items())]
    parts = [
        _HEAD,
        f"## Ops with a rule ({len(rows)})\n",
        _table(("op", "rule", "factors of an example, or data flow"), rows),
        f"\n## Ops that need no rule ({len(needless)})\n",
        _table(("op", "because"), [(n, c.said["no_rule"][0][0]) for n, c in sorted(needless.items())]),
        f"\n## Ops without a rule ({len(lacking)})\n\nShardings stop there.\n",
        _table(("op", "because"), [(n, c.said["no_rule"][0][0]) for n, c in sorted(lacking.items())]),
    ]
    return "\n".join(parts) + "\n"


_NAMING = {
    "constant_op": "",
    "generated_op": "",
    "needs_no_rule": "",
    "lacks_rule": "",
    "xla_op": "",
    "opaque_target": "@",
}  # relations about names of ops or targets


def _named(origins: Origins, relation: str) -> list[str]:
    return [_NAMING[relation] + name for name in origins.names(relation)]


def _file(case: Case, origins: Origins) -> str:
    origin = origins.first(case)
    file = origin.place.rpartition(":")[0] if origin else ""
    return f"[{file.removeprefix('rules/ops/')}](../{file})"


def _says(case: Case) -> str:
    if case.said["edge"]:
        return "; ".join(edges(case))
    return f"`{notation(case)}`"


def _table(names: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    heads = tuple(names)
    lines = [heads, tuple("---" for _ in heads), *((f"`{name}`", *rest) for name, *rest in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(catalogue(), end="")

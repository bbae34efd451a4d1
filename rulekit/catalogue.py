"""The table of ops in ``docs/ops.md``, made from the rules.

python -m shardlog.rulekit.catalogue > docs/ops.md
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

from ..program.shardy import LINES
from ..rulebook.book import RuleBook
from ..rulebook.shipped import KEYS, RULES, shipped
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


_LINES = f"""
The rules are those of Shardy {LINES[0]}. What newer lines of it say otherwise is listed in
[propagation.md](propagation.md#which-shardy-is-meant).
"""


def catalogue() -> str:
    """The text of ``docs/ops.md``: ops with rules, ops that need none, ops that lack one, and why."""
    book = RuleBook(shardy=LINES[0])
    origins = Origins(book)
    cases: dict[str, Case] = {}
    for case in sorted(file_cases(EXAMPLES, book), key=lambda c: not c.factors and not c.answers["edge"]):
        cases.setdefault(case.name, case)
    ruled = {name: case for name, case in cases.items() if case.factors or case.answers["edge"]}
    bare = {name: bare_case(name, book) for relation in _NAMING for name in _named(origins, relation)}
    needless = {n: c for n, c in bare.items() if n not in ruled and c is not None and c.answers["known"]}
    lacking = {n: c for n, c in bare.items() if n not in ruled and c is not None and not c.answers["known"]}
    rows = [(name, _file(case, origins), _says(case)) for name, case in sorted(ruled.items())]
    parts = [
        _HEAD,
        f"## Ops with a rule ({len(rows)})\n",
        _table(("op", "rule", "factors of an example, or data flow"), rows),
        f"\n## Ops that need no rule ({len(needless)})\n",
        _table(("op", "because"), [(n, c.answers["no_rule"][0][0]) for n, c in sorted(needless.items())]),
        f"\n## Ops without a rule ({len(lacking)})\n\nShardings stop there.\n",
        _table(("op", "because"), [(n, c.answers["no_rule"][0][0]) for n, c in sorted(lacking.items())]),
        _LINES,
    ]
    return "\n".join(parts)


def changes() -> str:
    """The table in ``docs/propagation.md``: what newer lines of Shardy say otherwise, and which rules."""
    return _table(("since", "rule", "because"), _newer(RuleBook(shardy=LINES[-1])))


_NAMING = {
    "constant_op": "",
    "generated_op": "",
    "needs_no_rule": "",
    "lacks_rule": "",
    "lacked_rule": "",
    "xla_op": "",
    "opaque_target": "@",
}  # relations about names of ops or targets


def _named(origins: Origins, relation: str) -> list[str]:
    return [_NAMING[relation] + name for name in origins.names(relation)]


def _newer(book: RuleBook) -> list[tuple[str, ...]]:
    """The lines of Shardy since which rules hold, the files of these, and their sentences."""
    rows = dict[tuple[str, ...], None]()
    programs = [book.ops, *(shipped(name) for name in KEYS if name.startswith("propagation/"))]
    for source in chain.from_iterable(program.plan.sources for program in programs):
        since = re.search(r'[^!]since\("(.*?)"\)', source.text)
        if since and source.sentence:
            file = f"{Path(source.file).relative_to(RULES.parent)}"
            rows[since[1], _link(file), re.sub(r"[{}]", "", source.sentence)] = None
    return sorted(rows, key=lambda row: LINES.index(row[0]))


def _file(case: Case, origins: Origins) -> str:
    origin = origins.first(case)
    return _link(origin.place.rpartition(":")[0] if origin else "")


def _link(file: str) -> str:
    """A link to a file of rules."""
    return f"[{file.removeprefix('rules/ops/')}](../{file})"


def _says(case: Case) -> str:
    if case.answers["edge"]:
        return "; ".join(edges(case))
    return f"`{notation(case)}`"


def _table(names: Iterable[str], rows: Iterable[tuple[str, ...]]) -> str:
    heads = tuple(names)
    lines = [heads, tuple("---" for _ in heads), *((f"`{name}`", *rest) for name, *rest in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


if __name__ == "__main__":
    print(catalogue(), end="")

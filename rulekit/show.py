"""Rules for readers: their place, their text, and their meaning for an op."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..errors import ShardlogError, closest
from ..program.factors import MARKED, factor_name, maps_text
from ..rulebook.book import RuleBook
from ..rulebook.notations.einsum import read_text
from .case import Case, file_cases, line_cases, shipped_cases
from .origin import Origins


def notation(case: Case) -> str:
    """The factors of a case as Shardy writes them: ``([i, k], [k])->([i]) {i=8, k=2} reduction={k}``."""
    maps = [
        [case.maps.get((t, d), []) for d in range(len(shape or ()))] for t, shape in enumerate(case.shapes)
    ]
    sizes = ", ".join(f"{factor_name(f)}={n}" for f, n in sorted(case.factors.items()))
    text = maps_text(maps, case.operands)
    text += f" {{{sizes}}}" if sizes else ""
    for kind in MARKED:
        factors = [factor_name(f) for f, k in sorted(case.kinds.items()) if k == kind]
        text += f" {kind}={{{', '.join(factors)}}}" if factors else ""
    blocked = [factor_name(f) for f in sorted(case.blocked)]
    return text + (f" blocked_propagation={{{', '.join(blocked)}}}" if blocked else "")


def iteration(case: Case) -> list[str]:
    """A case as loops, as MLIR describes structured ops: the kind of each, and where they are in each
    slot, as in ``(d0, d1, d2) -> (d0, d2)``. Nothing where the op has no rule."""
    kinds: dict[int, str] = dict(case.answers["iterates"])
    if not kinds:
        return []
    moves: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for t, d, loop, coefficient in sorted(case.answers["moves_along"]):
        moves.setdefault((t, d), []).append((loop, coefficient))
    first = {(t, d): element for t, d, element in case.answers["moves_from"]}
    loops = sorted(kinds)
    named = {loop: f"d{i}" for i, loop in enumerate(loops)}
    space = ", ".join(named[loop] for loop in loops)
    lines = [f"iterators [{', '.join(kinds[loop] for loop in loops)}]"]
    for t, shape in enumerate(case.shapes):
        if shape is not None:
            dims = (_sum(moves.get((t, d), []), first.get((t, d), 0), named) for d in range(len(shape)))
            lines.append(f"{case.slot(t):>10}  ({space}) -> ({', '.join(dims)})")
    return lines


def _sum(moves: Sequence[tuple[int, int]], first: int, named: Mapping[int, str]) -> str:
    """An affine expression as MLIR writes it."""
    terms = [named[loop] if times == 1 else f"{named[loop]} * {times}" for loop, times in moves]
    text = " + ".join(terms) or "0"
    return (
        f"{text} {'-' if first < 0 else '+'} {abs(first)}"
        if first and terms
        else text
        if terms
        else str(first)
    )


def edges(case: Case) -> list[str]:
    """The data-flow edges of a case: which values share a sharding."""
    lines = []
    for (e,) in sorted(case.answers["edge"]):
        sources = [_end(row) for row in case.answers["edge_source"] if row[0] == e]
        owner = [_end(row) for row in case.answers["edge_owner"] if row[0] == e]
        others = [_end(row) for row in case.answers["edge_target"] if row[0] == e and _end(row) not in owner]
        lines.append(f"{' and '.join(sources)} -> {' and '.join([*owner, *others])}")
    return lines


def _end(row: tuple[int, str, int, int]) -> str:
    _, end, r, i = row
    return f"{end} {i}" + (f" of region {r}" if end in ("argument", "return") else "")


def summary(case: Case) -> str:
    """The answer of the rules about a case, in one line."""
    if case.answers["edge"]:
        return f"data flow: {'; '.join(edges(case))}"
    if case.answers["no_rule"]:
        kind = "needs no rule" if case.answers["known"] else "no rule"
        return f"{kind}: {case.answers['no_rule'][0][0]}"
    return notation(case) if case.answers["known"] else "no rule"


def show(name: str, book: RuleBook, examples: Sequence[Path] = ()) -> str:
    """The rules for the op called ``name`` (``@target`` for a custom call), with a worked example.

    The example is the first in the modules ``examples``, or else one of shardlog's own. Raises ShardlogError
    where there is no rule.
    """
    cases = [c for path in examples for c in file_cases(path, book)]
    cases += [*line_cases(book), *shipped_cases(book)]
    named = sorted(
        (c for c in cases if c.name == name), key=lambda c: not c.answers["edge"] and not c.factors
    )
    case = named[0] if named else bare_case(name, book)
    if case is None:
        hint = _nearest(name, {c.name for c in cases} | set(_written(book)))
        raise ShardlogError(f"there is no rule for {name!r}", hint=hint)
    return "\n".join(_shown(case, Origins(book)))


def _written(book: RuleBook) -> Iterator[str]:
    """Strings in the files of a book that may be names of ops and targets."""
    for path in book.files:
        for word in re.findall(r'"([^"\s]+)"', read_text(path)):
            yield word if "." in word else f"@{word}"


def _nearest(name: str, names: set[str]) -> str:
    """A hint for a name without a rule; that of the dialect may be left out."""
    alike = sorted(n for n in names if n.rpartition(".")[2].strip("@") == name)
    if len(alike) > 1:
        return f"did you mean {', '.join(alike[:-1])} or {alike[-1]}?"
    hint = closest(alike[0] if alike else name, sorted(names))
    return hint if hint.startswith("did you mean") else "docs/ops.md lists the ops that have one"


def _shown(case: Case, origins: Origins) -> Iterator[str]:
    yield case.name
    for origin in origins.of(case):
        yield f"\n  {origin.place}"
        yield from (f"    {line.strip()}" for line in origin.text.splitlines())
        yield from (f"      {sentence}" for sentence in origin.sentences)
    if case.operation is not None:
        yield f"\n  for example, at {Path(case.place).name}:"
        with case.operation.context:
            text = str(case.operation.get_asm(use_local_scope=True))
        yield from (f"    {line}" for line in text.splitlines())
    if case.shapes or case.operation is not None or case.answers["no_rule"]:
        yield f"  {summary(case)}"
        yield from (f"  {line}" for line in iteration(case))
    else:
        yield "\n  for its factors give a module that has such an op: --examples MODULE"


def bare_case(name: str, book: RuleBook) -> Case | None:
    """The op alone, without operands, where the rules know its name."""
    facts: dict[str, list[tuple[str, ...]]] = {
        "op": [("stablehlo.custom_call" if name.startswith("@") else name,)]
    }
    if name.startswith("@"):
        facts["attribute_symbol"] = [("call_target_name", name[1:])]
    case = Case(name, "", facts, book.classify(facts))
    listed = case.answers["no_rule"] and not name.startswith("@")
    return case if case.answers["known"] or listed else None

"""Checking op rules: what they say must make sense, and must be true.

Statically: sizes match the dimensions, a factor is used once in a tensor, kinds are known. Numerically, as in
tests of partitioners: small random operands are cut along a factor, the op is computed on each part, and the
results are put together as the kind of the factor says; they must equal the results for whole operands. A
local op may have other attributes than the whole one (the sizes in a slice are local sizes); the rule holds
if one does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from ..rulebook import RuleBook
from .case import EXAMPLES, Array, Case, Reference, file_cases, line_cases, random_operands
from .execute import Answer, Call, NotExecutableError, execute
from .shards import Cut, equal, join, local_shape, masks, parts, reductions, split

KINDS = ("pass_through", "reduction", "need_replication", "permutation")
_MOST_GUESSES = 64  # of dimensions that could be sharded together


@dataclass(frozen=True)
class Finding:
    """Something that is wrong with the rule of an op, or (``wrong`` is False) could be better."""

    place: str
    name: str
    message: str
    wrong: bool

    def __str__(self) -> str:
        return f"{self.place}: {'error' if self.wrong else 'note'}: {self.name}: {self.message}"


@dataclass
class Report:
    """What a check found: ``computed`` counts factors that were verified by computing, ``skipped`` has the
    reasons why others were not, with how many."""

    cases: int = 0
    computed: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)

    @property
    def wrong(self) -> list[Finding]:
        """The findings that are errors."""
        return [f for f in self.findings if f.wrong]

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.findings]
        lines.append(f"{_count(self.cases, 'signature')} checked, {_count(self.computed, 'factor')} computed")
        lines += [f"  {_count(n, 'factor')} not computed: {why}" for why, n in sorted(self.skipped.items())]
        return "\n".join(lines)


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def check_rules(
    rules: Sequence[Path], examples: Sequence[Path] = (), references: Mapping[str, Reference] | None = None
) -> Report:
    """Checks the rules in files, on the ops that they are about.

    Lines of einsum notation are checked on small shapes that fit them, other rules on the ops in the modules
    ``examples``; without ``rules``, those of shardlog on an example of each op. ``references`` compute ops,
    by name (``@target`` for a custom call), from NumPy arrays. Raises ShardlogError and DatalogError for
    files that are no rules.
    """
    book = RuleBook(rules)
    cases = line_cases(book, references or {})
    for path in (*examples, *(() if rules else (EXAMPLES,))):
        cases += file_cases(path, book, references or {})
    return check(cases)


def check(cases: Sequence[Case]) -> Report:
    """Checks what the rules say about each case."""
    report = Report()
    for case in cases:
        if not case.said["factor"] and not case.said["maps"]:
            continue
        report.cases += 1
        errors = [Finding(case.place, case.name, message, True) for message in static_errors(case)]
        report.findings += errors
        if not errors and case.factors:
            _check_numbers(case, report)
    return report


def static_errors(case: Case) -> Iterator[str]:
    """What makes no sense in the factors of a case, whatever the op computes."""
    for f, kind in sorted(case.said["kind"]):
        if kind not in KINDS:
            yield f"factor {f} has the unknown kind {kind!r}; there are: {', '.join(KINDS)}"
        if f not in case.factors:
            yield f"factor {f} has a kind but no size"
    for f in sorted(case.factors):
        kinds = [kind for g, kind in case.said["kind"] if g == f]
        sizes = {size for g, size in case.said["factor"] if g == f}
        if len(kinds) > 1:
            yield f"factor {f} has several kinds: {', '.join(sorted(kinds))}"
        if len(sizes) > 1:
            yield f"factor {f} has several sizes: {', '.join(map(str, sorted(sizes)))}"
        dims = case.dims(f)
        slots = [t for t, _ in dims]
        if not dims:
            yield f"factor {f} shows in no dimension"
        for t in sorted({t for t in slots if slots.count(t) > 1}):
            yield f"{case.label(f)} stands twice in {case.slot(t)}: a factor shards one dimension of a tensor"
    for (t, d), factors in sorted(case.maps.items()):
        shape = case.shapes[t] if t < len(case.shapes) else None
        if shape is None or d >= len(shape):
            where = case.slot(t) if t < len(case.shapes) else f"slot {t}"
            yield f"dimension {d} of {where} has factors, but there is no such dimension"
            continue
        size = prod(case.factors.get(f, 0) for f in factors)
        # Windows, slices and joins may change the size of a dimension; what is passed through keeps it. A
        # factor of size one is never sharded.
        kept = all(case.kinds.get(f) == "pass_through" for f in factors)
        known = all(_shows_whole(case, f) for f in factors)
        if size not in (1, shape[d]) and (kept or not known):
            made = " x ".join(str(case.factors.get(f)) for f in factors)
            yield f"dimension {d} of {case.slot(t)} has size {shape[d]}, but its factors make {made}"


def _shows_whole(case: Case, f: int) -> bool:
    """Some dimension along factor ``f`` has the size that its factors make up, or elements move along it."""
    moves = any(case.kinds.get(g) == "permutation" for place in case.dims(f) for g in case.maps[place])
    return moves or any(_fits(case, t, d) for t, d in case.dims(f))


def _fits(case: Case, t: int, d: int) -> bool:
    shape = case.shapes[t] if t < len(case.shapes) else None
    size = prod(case.factors.get(g, 0) for g in case.maps[t, d])
    return shape is not None and d < len(shape) and shape[d] == size


@dataclass(frozen=True)
class _Claim:
    """Dimensions that are cut together; where ``reduces``, the results are parts of a reduction."""

    cuts: Mapping[int, Cut]  # by slot
    size: int
    reduces: bool
    factor: int | None = None  # None: a guess

    def describe(self, case: Case) -> str:
        places = ", ".join(f"dimension {cut[0]} of {case.slot(t)}" for t, cut in sorted(self.cuts.items()))
        return f"{places} (size {self.size})"


def _check_numbers(case: Case, report: Report) -> None:
    claims, skipped = _claims(case)
    guesses = _guesses(case)
    for reason in skipped:
        report.skipped[reason] = report.skipped.get(reason, 0) + 1
    try:
        holds = _verify(case, [*claims, *guesses])
    except (NotExecutableError, ValueError) as error:
        if claims:
            report.skipped[str(error)] = report.skipped.get(str(error), 0) + len(claims)
        return
    for claim, verdict in zip([*claims, *guesses], holds, strict=True):
        if claim.factor is None:
            if verdict:
                how = "with a reduction of the results" if claim.reduces else "together"
                message = f"could be sharded {how}: {claim.describe(case)}"
                report.findings.append(Finding(case.place, case.name, message, False))
        elif verdict is None:
            reason = "no local op verifies"
            report.skipped[reason] = report.skipped.get(reason, 0) + 1
        else:
            report.computed += 1
            if not verdict:
                kind = case.kinds[claim.factor]
                message = f"{case.label(claim.factor)} is {kind}, but sharded along it the results differ"
                report.findings.append(Finding(case.place, case.name, message, True))


def _claims(case: Case) -> tuple[list[_Claim], list[str]]:
    """What the rule claims, and the reasons why some of its factors claim nothing that can be computed."""
    claims, skipped = [], []
    for f, size in sorted(case.factors.items()):
        kind = case.kinds.get(f, "pass_through")
        if size < 2 or (len(case.dims(f)) < 2 and kind == "pass_through"):
            continue
        if kind in ("permutation", "need_replication"):
            skipped.append(f"{kind} promises nothing about shards")
            continue
        if not all(_fits(case, t, d) for t, d in case.dims(f)):
            skipped.append("dimensions along it differ in size")
            continue
        claims.append(_Claim(_cuts(case, f), size, kind == "reduction", f))
    return claims, skipped


def _cuts(case: Case, f: int) -> dict[int, Cut]:
    cuts = {}
    for t, d in case.dims(f):
        factors = case.maps[t, d]
        before = prod(case.factors[g] for g in factors[: factors.index(f)])
        cuts[t] = (d, before, case.factors[f])
    return cuts


def _guesses(case: Case) -> list[_Claim]:
    """What a rule may leave out: dimensions of one size that could be one factor, or go along with one."""
    free: dict[int, dict[int, list[int]]] = {}  # size -> slot -> dims
    for t, shape in enumerate(case.shapes):
        for d, size in enumerate(shape or ()):
            factors = case.maps.get((t, d), [])
            if size > 1 and all(len(case.dims(f)) == 1 and case.kinds[f] == "pass_through" for f in factors):
                free.setdefault(size, {}).setdefault(t, []).append(d)
    found = []
    for size, slots in sorted(free.items()):
        for count in range(len(slots), 0, -1):
            for chosen in combinations(sorted(slots), count):
                reduces = chosen[-1] < case.operands
                if count == 1 and not reduces:
                    continue  # a result alone can always be sharded: every device computes what it needs
                for dims in product(*(slots[t] for t in chosen)):
                    cuts = {t: (d, 1, size) for t, d in zip(chosen, dims, strict=True)}
                    found.append(_Claim(cuts, size, reduces))
    for f, size in sorted(case.factors.items()):
        places = case.dims(f)
        if case.kinds[f] in ("pass_through", "reduction") and all(_fits(case, *place) for place in places):
            cuts = _cuts(case, f)
            for t, alone in sorted(free.get(size, {}).items()):
                for d in alone if t not in cuts and len(cuts) > 1 else ():
                    joined = {**cuts, t: (d, 1, size)}
                    found.append(_Claim(joined, size, max(joined) < case.operands))
    return found[:_MOST_GUESSES]


def _verify(case: Case, claims: Sequence[_Claim]) -> list[bool | None]:
    """Whether each claim is true; None where no local op can be computed."""
    if not claims:
        return []
    operands = random_operands(case)
    shapes: list[Any] = [shape or () for shape in case.shapes]
    results = shapes[case.operands :]
    calls = [Call(operands, results)]
    tried: list[list[tuple[int, int]]] = []  # per claim: where each trial's calls begin, and how many
    for claim in claims:
        trials = []
        for trial in _trials(case, claim, operands, results):
            trials.append((len(calls), len(trial)))
            calls += trial
        tried.append(trials)
    answers = execute(case, calls)
    whole = answers[0]
    if whole is None:
        raise NotExecutableError("the op does not verify on its own")
    verdicts: list[bool | None] = []
    for claim, trials in zip(claims, tried, strict=True):
        done = [answers[start : start + n] for start, n in trials]
        complete = [shards for shards in done if all(a is not None for a in shards)]
        true = any(_matches(case, claim, whole, shards) for shards in complete)
        verdicts.append(true if complete else None)
    return verdicts


def _trials(
    case: Case, claim: _Claim, operands: Sequence[Array], results: Sequence[tuple[int, ...]]
) -> Iterator[list[Call]]:
    """The ways to call the op on the shards.

    Its attributes may be local sizes or not. Where results are reduced, operands that are not sharded may be
    whole everywhere, or in the first shard only and neutral in the others. Or every device has operands of
    the whole size, zero outside of its shard: this is how ops that look up indices are partitioned.
    """
    n = parts(claim.size)
    cut = {t: split(operands[t], c, n) for t, c in claim.cuts.items() if t < case.operands}
    local = [
        local_shape(shape, claim.cuts[t], n) if t in claim.cuts else shape
        for t, shape in enumerate(results, case.operands)
    ]
    ways = [(cut, local, attributes) for attributes in _local_attributes(case, claim, n)]
    if claim.factor is not None:
        ways.append(({t: masks(operands[t], claim.cuts[t], n) for t in cut}, list(results), {}))
    for sharded, shapes, attributes in ways:
        for neutral in (None, 0, 1) if claim.reduces else (None,):
            shards = []
            for i in range(n):
                rest = [a if neutral is None or i == 0 else np.full_like(a, neutral) for a in operands]
                shards.append([sharded[t][i] if t in sharded else a for t, a in enumerate(rest)])
            yield [Call(shard, shapes, attributes) for shard in shards]


def _local_attributes(case: Case, claim: _Claim, n: int) -> Iterator[dict[str, int | tuple[int, ...]]]:
    """The attributes that a local op may have: those of the op, or some that are sizes are local ones."""
    options: dict[str, int | tuple[int, ...]] = {}
    lists: dict[str, dict[int, int]] = {}
    for name, i, value in case.facts.get("attribute_item", ()):
        lists.setdefault(name, {})[i] = value
    for name, items in sorted(lists.items()):
        for t, (d, _, _) in claim.cuts.items():
            shape = case.shapes[t] or ()
            if "." not in name and len(items) == len(shape) and items[d] == shape[d]:
                options[name] = tuple(v // n if i == d else v for i, v in sorted(items.items()))
    for name, value in sorted(case.facts.get("attribute_number", ())):
        if value == claim.size and "." not in name:
            options[name] = value // n
    yield {}
    for count in range(1, len(options) + 1):
        for chosen in combinations(options, count):
            yield {name: options[name] for name in chosen}


def _matches(case: Case, claim: _Claim, whole: Sequence[Array], shards: Sequence[Answer]) -> bool:
    """The shards' results make up the whole ones."""
    for i, expected in enumerate(whole):
        arrays = [shard[i] for shard in shards if shard is not None]
        cut = claim.cuts.get(case.operands + i)
        if cut is not None:
            if arrays[0].shape == expected.shape:  # of whole size: each shard's own part counts
                arrays = [split(a, cut, len(arrays))[k] for k, a in enumerate(arrays)]
            if not equal(join(arrays, cut), expected):
                return False
        elif claim.reduces:
            if not any(equal(reduced, expected) for reduced in reductions(arrays)):
                return False
        elif not all(equal(array, expected) for array in arrays):
            return False
    return True

"""Claims about an op: which dimensions can be cut together, and whether the results are then concatenated or
reduced. A claim is true if the op, computed on each part, gives results that make up the whole ones.

What is computed on a part may have other attributes than the whole op (the sizes in a slice are local sizes);
a claim holds if it does for one choice of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np

from ..case import Array, Case, random_operands
from .execute import Answer, NotExecutableError, OpCall, execute
from .shards import Cut, equal, join, local_shape, masks, parts, reductions, split

_MOST_GUESSES = 64  # of dimensions that could be sharded together


@dataclass(frozen=True)
class Claim:
    """Dimensions that are cut together; where ``reduces``, the results are parts of a reduction.

    It is about a ``factor`` of the rule, or (None) about dimensions that no factor has in common. Where it is
    ``stated``, the rule says so; otherwise it is more than the rule says.
    """

    cuts: Mapping[int, Cut]  # by slot
    size: int
    reduces: bool
    factor: int | None = None
    stated: bool = False

    def __str__(self) -> str:
        return "with a reduction of the results" if self.reduces else "together"

    def describe(self, case: Case) -> str:
        """The dimensions, and their size."""
        places = ", ".join(f"dimension {cut[0]} of {case.slot(t)}" for t, cut in sorted(self.cuts.items()))
        return f"{places} (size {self.size})"

    def within(self, other: Claim) -> bool:
        """The other claim cuts the same dimensions and more."""
        return self.cuts.items() < other.cuts.items()


def fits(case: Case, t: int, d: int) -> bool:
    """Dimension ``d`` of slot ``t`` has the size that its factors make up."""
    shape = case.shapes[t] if t < len(case.shapes) else None
    size = prod(case.factors.get(g, 0) for g in case.maps.get((t, d), []))
    return shape is not None and d < len(shape) and shape[d] == size


def claims(case: Case) -> tuple[list[Claim], list[str]]:
    """The claims that the rule makes, and more that may be true of its factors; and why some of them claim
    nothing."""
    made_claims, skipped = [], []
    for f, size in sorted(case.factors.items()):
        kind, places = case.kinds.get(f, "pass_through"), case.dims(f)
        if size < 2 or (len(places) < 2 and kind == "pass_through"):
            continue
        states = kind in ("pass_through", "reduction")
        if not states:
            skipped.append(f"{kind} promises nothing about shards")
        if all(fits(case, *place) for place in places):
            cuts = _cuts(case, f)
            ways = (kind == "reduction",) if states else _ways(case, cuts)
            made_claims += [Claim(cuts, size, reduces, f, states) for reduces in ways]
        elif states:
            skipped.append("dimensions along it differ in size")
    return made_claims, skipped


def _ways(case: Case, cuts: Mapping[int, Cut]) -> list[bool]:
    """The further claims about a factor: whether results are reduced. Operands alone are cut for a
    reduction; a result alone can always be sharded, because every device computes what it needs."""
    taken, given = min(cuts) < case.operands, max(cuts) >= case.operands
    left = any(t not in cuts for t in range(case.operands, len(case.shapes)))
    return [False] * (taken and given) + [True] * (taken and left)


def _cuts(case: Case, f: int) -> dict[int, Cut]:
    cuts = {}
    for t, d in case.dims(f):
        factors = case.maps[t, d]
        before = prod(case.factors[g] for g in factors[: factors.index(f)])
        cuts[t] = (d, before, case.factors[f])
    return cuts


def guesses(case: Case) -> list[Claim]:
    """Claims that a rule may have missed: dimensions of one size that could share a factor, or join one.

    A dimension that is larger than another may have that as its major or its minor part.
    """
    free = _free(case)
    guessed = []
    for size, slots in sorted(free.items()):
        for count in range(len(slots), 0, -1):
            for chosen in combinations(sorted(slots), count):
                reduces = chosen[-1] < case.operands
                if count > 1 or reduces:
                    for taken in product(*(slots[t] for t in chosen)):
                        guessed.append(Claim(dict(zip(chosen, taken, strict=True)), size, reduces))
    for f, size in sorted(case.factors.items()):
        cuts, kind = _cuts(case, f), case.kinds[f]
        stands = len(cuts) > 1 or kind == "reduction"
        if stands and kind in ("pass_through", "reduction") and all(fits(case, *p) for p in case.dims(f)):
            guessed += [
                Claim({**cuts, t: cut}, size, max([*cuts, t]) < case.operands)
                for t, alone in sorted(free.get(size, {}).items())
                for cut in (alone if t not in cuts else ())
            ]
    return [*guessed, *_partial_guesses(case, free)][:_MOST_GUESSES]


Free = dict[int, dict[int, list[Cut]]]  # size -> slot -> cuts


def _free(case: Case) -> Free:
    """The dimensions that the rule leaves alone: factors that pass through in a single dimension, and
    dimensions without a factor."""
    free: Free = {}
    for t, shape in enumerate(case.shapes):
        for d, size in enumerate(shape or ()):
            factors = case.maps.get((t, d), [])
            alone = [len(case.dims(f)) == 1 and case.kinds[f] == "pass_through" for f in factors]
            cuts = {(d, 1, size)} if all(alone) else set()
            if fits(case, t, d):
                cuts |= {_cuts(case, f)[t] for f, is_alone in zip(factors, alone, strict=True) if is_alone}
            for cut in sorted(cuts):
                if cut[2] > 1:
                    free.setdefault(cut[2], {}).setdefault(t, []).append(cut)
    return free


def _partial_guesses(case: Case, free: Free) -> Iterator[Claim]:
    """An operand and a result that are free, the smaller one with a part of the larger one."""
    pieces = [(t, cut) for slots in free.values() for t, cuts in slots.items() for cut in cuts]
    for (t, cut), (u, (d, before, size)) in product(pieces, pieces):
        small = cut[2]
        if (t < case.operands) != (u < case.operands) and small < size and size % small == 0:
            for start in (before, before * (size // small)):
                yield Claim({t: cut, u: (d, start, small)}, small, False)


def verify(case: Case, claims: Sequence[Claim]) -> list[bool | None]:
    """Whether each claim is true; None where no local op can be computed.

    Raises NotExecutableError and ValueError where the op itself cannot be computed.
    """
    if not claims:
        return []
    operands = random_operands(case)
    shapes: list[Any] = [shape or () for shape in case.shapes]
    results = shapes[case.operands :]
    calls = [OpCall(operands, results)]
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
    if any(np.issubdtype(a.dtype, np.inexact) and a.size and np.isnan(a).all() for a in whole):
        raise NotExecutableError("random inputs give no numbers")
    verdicts: list[bool | None] = []
    for claim, trials in zip(claims, tried, strict=True):
        done = [answers[start : start + n] for start, n in trials]
        complete = [shards for shards in done if all(a is not None for a in shards)]
        true = any(_matches(case, claim, whole, shards) for shards in complete)
        verdicts.append(true if complete else None)
    return verdicts


def _trials(
    case: Case, claim: Claim, operands: Sequence[Array], results: Sequence[tuple[int, ...]]
) -> Iterator[list[OpCall]]:
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
    if claim.stated or not claim.reduces or _looks_up(case, claim):
        ways.append(({t: masks(operands[t], claim.cuts[t], n) for t in cut}, list(results), {}))
    for sharded, shapes, attributes in ways:
        for neutral in (None, 0, 1) if claim.reduces else (None,):
            shards = []
            for i in range(n):
                rest = [a if neutral is None or i == 0 else np.full_like(a, neutral) for a in operands]
                shards.append([sharded[t][i] if t in sharded else a for t, a in enumerate(rest)])
            yield [OpCall(shard, shapes, attributes) for shard in shards]


def _looks_up(case: Case, claim: Claim) -> bool:
    """Some operand that is not cut may hold indices."""
    elements = {t: name for t, name, _ in case.facts.get("element", ())}
    return any(elements[t].startswith(("i", "ui")) for t in range(case.operands) if t not in claim.cuts)


def _local_attributes(case: Case, claim: Claim, n: int) -> Iterator[dict[str, int | tuple[int, ...]]]:
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


def _matches(case: Case, claim: Claim, whole: Sequence[Array], shards: Sequence[Answer]) -> bool:
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

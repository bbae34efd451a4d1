"""The axes along which the operands and results of an op agree, factor by factor.

Shardy's explicit reshards use this algorithm. If the slots agree already, nothing changes. Of two tensors the
larger one decides. Otherwise candidates are taken greedily; a candidate is a factor with the axes that some
slot has along it. Those with the most elements come first, then by kind of factor, then those with the most
parts. Later candidates get only axes that do not overlap with earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import gcd, prod
from typing import Any

from ..program.meshes import SubAxis
from ..program.shardings import Dimension, Sharding

Axes = tuple[SubAxis, ...]
_PREFERENCE = {"need_replication": 0, "permutation": 1, "reduction": 2, "pass_through": 3}


@dataclass(frozen=True)
class FactorRule:
    """The factors of an op, with their sizes and kinds, and the factors of each dimension of each slot."""

    sizes: list[int]
    kinds: Mapping[int, str]
    maps: list[list[list[int]]]
    operands: int


@dataclass
class Projection:
    """The axes that a slot has along factors. ``spill``: axes that no factor of a dimension has room for."""

    axes: dict[int, Axes] = field(default_factory=dict)
    spill: dict[int, Axes] = field(default_factory=dict)
    changed: bool = False

    @staticmethod
    def of(rule: FactorRule, slot: int, sharding: Sharding | None) -> Projection:
        """The axes of each factor, from the sharding of a slot. Major to minor, each factor takes the axes
        that divide it."""
        projection = Projection()
        for d, factors in enumerate(rule.maps[slot]):
            held = sharding.dimensions if sharding is not None else ()
            left = [*held[d].axes] if d < len(held) else []
            spilt = False
            for position, f in enumerate(factors):
                projection.axes[f] = ()
                if spilt:
                    break
                if position == len(factors) - 1:
                    projection.axes[f] = tuple(left)
                    break
                room, taken = rule.sizes[f], list[SubAxis]()
                while left and (left[0].size == 1 or gcd(room, left[0].size) > 1):
                    axis, part = left[0], gcd(room, left[0].size)
                    taken.append(SubAxis(axis.name, axis.pre, part))
                    room //= part
                    if axis.size > part:
                        left[0] = SubAxis(axis.name, axis.pre * part, axis.size // part)
                    else:
                        del left[0]
                projection.axes[f] = tuple(taken)
                if room > 1 and left:
                    spilt, projection.spill[f] = True, tuple(left)
        return projection

    @property
    def parts(self) -> int:
        """Into how many parts the slot is cut."""
        return prod(_parts((*axes, *self.spill.get(f, ()))) for f, axes in self.axes.items())

    def fitted(self, rule: FactorRule, slot: int, axes: Sequence[SubAxis]) -> Projection:
        """The projection of the sharding that the slot has if ``axes`` go to the first factors with room for
        them."""
        factors = [f for dims in rule.maps[slot] for f in dims if f in self.axes]
        room = [rule.sizes[f] for f in factors]
        taken: list[list[SubAxis]] = [[] for _ in factors]
        left, spill = [*axes], tuple[SubAxis, ...]()
        while left:
            used = False
            for i in range(len(factors)):
                axis, part = left[0], gcd(room[i], left[0].size)
                if room[i] <= 1 or (part == 1 and axis.size != 1):
                    continue
                used = True
                _append(taken[i], (SubAxis(axis.name, axis.pre, part),))
                room[i] //= part
                if axis.size == part:
                    del left[0]
                    break
                left[0] = SubAxis(axis.name, axis.pre * part, axis.size // part)
            if not used:
                spill, left = tuple(left), []
        projection = Projection(dict(zip(factors, map(tuple, taken), strict=True)))
        if spill and factors:
            projection.spill[factors[-1]] = spill
        dimensions = tuple(Dimension(one) for one in projection.joined(rule, slot))
        return Projection.of(rule, slot, Sharding(-1, dimensions))

    def update(self, common: Sequence[Axes]) -> None:
        """Has the axes ``common`` along factors."""
        for f in self.axes:
            self.changed |= self.axes[f] != common[f] or bool(self.spill.get(f))
            self.axes[f] = common[f]
        self.spill.clear()

    def joined(self, rule: FactorRule, slot: int) -> list[Axes]:
        """The axes of each dimension of a slot."""
        joined = []
        for factors in rule.maps[slot]:
            axes: list[SubAxis] = []
            for f in factors:
                own = self.axes.get(f, ())
                _append(axes, own)
                if self.spill.get(f):
                    _append(axes, self.spill[f])
                    break
                if _parts(own) < rule.sizes[f]:
                    break
            joined.append(tuple(axes))
        return joined


@dataclass(frozen=True)
class _FactorChoice:
    """A factor with axes for it, the number of elements of the slots that have them, and into how many more
    parts they cut it."""

    factor: int
    axes: Axes
    weight: int
    parts: int

    def beside(self, taken: _FactorChoice, held: Axes) -> _FactorChoice | None:
        """The rest of it after another one is taken, and its factor has the axes ``held``."""
        if self.factor == taken.factor:
            more = is_strict_prefix(taken.axes, self.axes)
            return replace(self, parts=_parts(self.axes) // _parts(taken.axes)) if more else None
        cut = _truncated(self.axes, taken.axes)
        if cut == self.axes:
            return replace(self, parts=_parts(cut))
        return None if cut == held else replace(self, axes=cut, parts=_parts(cut) // _parts(held))


@dataclass(frozen=True)
class Agreement:
    """The shardings on which the slots of an op, with these many elements, agree."""

    rule: FactorRule
    elements: Sequence[int]

    def common_axes(self, projections: Sequence[Projection]) -> list[Axes]:
        """The axes of each factor."""
        compatible = self._compatible(projections)
        if compatible is not None:
            return compatible
        rule = self.rule
        needs = [f for f in range(len(rule.sizes)) if rule.kinds[f] == "need_replication"]
        tensors = [t for t, dims in enumerate(rule.maps) if dims]
        several = any(len(factors) > 1 for dims in rule.maps for factors in dims)
        if len(tensors) == 2 and not needs and not several:
            return self._of_two(tensors, projections)
        common = self._greedy(projections)
        for f in needs:
            left, common[f] = common[f], ()
            if left and self._everywhere(f):
                self._distribute(left, common)
        return common

    @staticmethod
    def alike(projections: Iterable[Projection], factor: int) -> Axes | None:
        """The axes that all slots have along a factor; None where they differ."""
        different = {projection.axes[factor] for projection in projections if factor in projection.axes}
        return None if len(different) > 1 else next(iter(different), ())

    def _compatible(self, projections: Sequence[Projection]) -> list[Axes] | None:
        common: list[Axes] = []
        seen: list[SubAxis] = []
        for f in range(len(self.rule.sizes)):
            axes = self.alike(projections, f)
            if axes is None:
                return None
            if self.rule.kinds[f] == "need_replication":
                if axes:
                    return None
            elif any(_overlap(axis, other) for axis in axes for other in seen):
                return None
            common.append(axes)
            seen += axes
        return common

    def _of_two(self, tensors: Sequence[int], projections: Sequence[Projection]) -> list[Axes]:
        """The axes of the preferred tensor, and of the other one along factors that only it has."""

        def preference(t: int) -> tuple[bool, int, int]:
            axes = projections[t].axes
            permuted = any(axes[f] and self.rule.kinds[f] == "permutation" for f in axes)
            parts = prod(_parts(own) for own in axes.values())
            return not permuted, self.elements[t], parts

        first, second = tensors
        if preference(first) < preference(second):
            first, second = second, first
        common: list[Axes] = [()] * len(self.rule.sizes)
        taken: list[SubAxis] = []
        for f, axes in projections[first].axes.items():
            common[f] = axes
            taken += axes
        for f, axes in projections[second].axes.items():
            if f not in projections[first].axes:
                common[f] = _truncated(axes, taken)
        return common

    def _greedy(self, projections: Sequence[Projection]) -> list[Axes]:
        rule = self.rule
        common: list[Axes] = [()] * len(rule.sizes)
        weights: dict[tuple[int, Axes], int] = {}
        for projection in projections:
            for f, axes in projection.axes.items():
                for end in range(len(axes), 0, -1):
                    weights[f, axes[:end]] = 0
        for t, projection in enumerate(projections):
            for f, axes in projection.axes.items():
                for other, part in weights:
                    if other == f and (part == axes or is_strict_prefix(part, axes)):
                        weights[other, part] += self.elements[t]
        waits: dict[int, set[int]] = {}  # a factor -> those before it that are not fully sharded
        for dims in rule.maps:
            for factors in dims:
                for before, f in pairwise(factors):
                    waits.setdefault(f, set()).add(before)
        left = [_FactorChoice(f, axes, weight, _parts(axes)) for (f, axes), weight in weights.items()]
        while ready := [one for one in left if not waits.get(one.factor)]:
            best = max(ready, key=self._preference)
            common[best.factor] = best.axes
            if _parts(best.axes) == rule.sizes[best.factor]:
                for others in waits.values():
                    others.discard(best.factor)
            left = [kept for one in left if (kept := one.beside(best, common[one.factor])) is not None]
        return common

    def _preference(self, one: _FactorChoice) -> tuple[Any, ...]:
        order = [(axis.name, axis.pre, axis.size) for axis in one.axes]
        kind = _PREFERENCE[self.rule.kinds[one.factor]]
        return one.weight, kind, one.parts, one.factor, len(order), order

    def redistributed(self, projections: Sequence[Projection]) -> list[Axes]:
        """The axes of each factor of a reshape with axes that fit no factor of a dimension. They are the axes
        of the side with more parts. Each goes to the first factors with room for it, separately for operand
        and result."""
        rule = self.rule
        one, other = projections[:2]
        most = one if one.parts >= other.parts else other
        axes = [a for f in range(len(rule.sizes)) for a in (*most.axes.get(f, ()), *most.spill.get(f, ()))]
        fitted = [projection.fitted(rule, t, axes) for t, projection in enumerate((one, other))]
        common: list[Axes] = [()] * len(rule.sizes)
        seen = set[int]()
        for projection in fitted:
            for f, own in projection.axes.items():
                common[f] = _common_prefix(common[f], own) if f in seen else own
                seen.add(f)
        for projection in (one, other):
            projection.update(common)
        return common

    def _everywhere(self, factor: int) -> bool:
        return all(any(factor in factors for factors in dims) for dims in self.rule.maps if dims)

    def _distribute(self, axes: Axes, common: list[Axes]) -> None:
        """Gives axes to factors that pass through all tensors and have room for them."""
        left = [*axes]
        for f, size in enumerate(self.rule.sizes):
            if self.rule.kinds[f] != "pass_through" or not self._everywhere(f) or not size:
                continue
            if size % (parts := _parts(common[f])):
                continue
            room, taken = size // parts, [*common[f]]
            while left and room % left[0].size == 0:
                room //= left[0].size
                _append(taken, (left.pop(0),))
            common[f] = tuple(taken)
            if not left:
                break

    def product(self, projections: Sequence[Projection]) -> tuple[int, Axes] | None:
        """For a product whose operands agree: the only factor along which the result differs from an operand,
        and its new axes there. None unless the result is no larger, and has the summed axes along that
        factor."""
        rule = self.rule
        one, other, result = (projection.axes for projection in projections[:3])
        best: tuple[int, Axes] | None = None
        summed: list[SubAxis] = []
        seen: list[SubAxis] = []
        for f in range(len(rule.sizes)):
            if f in one and f in other:
                axes, largest = one[f], max(self.elements[0], self.elements[1])
                if one[f] != other[f]:
                    return None
                if rule.kinds[f] == "reduction":
                    summed += axes
                    continue
            else:
                axes = one[f] if f in one else other.get(f, ())
                largest = self.elements[0] if f in one else self.elements[1]
                if any(_overlap(axis, past) for axis in axes for past in seen):
                    return None
                seen += axes
            if result.get(f, ()) != axes:
                if not axes or best is not None or self.elements[2] > largest:
                    return None
                best = f, axes
        if best is None or not result[best[0]] or result[best[0]] != tuple(summed):
            return None
        return best


def less(axes: Axes, others: Axes) -> Axes:
    """The remaining axes without others."""
    left_over: list[SubAxis] = []
    for axis in axes:
        left = [(axis.pre, axis.pre * axis.size)]
        for other in others:
            if other.name == axis.name:
                low, high = other.pre, other.pre * other.size
                left = [
                    (start, end)
                    for first, last in left
                    for start, end in ((first, min(last, low)), (max(first, high), last))
                    if start < end
                ]
        left_over += [SubAxis(axis.name, start, end // start) for start, end in left]
    return tuple(left_over)


def ordered(axes: Axes, sizes: Mapping[str, int]) -> Axes:
    """Axes in the order of their mesh, neighbours merged."""
    names = list(sizes)
    merged: list[SubAxis] = []
    for axis in sorted(axes, key=lambda axis: (names.index(axis.name), axis.pre)):
        _append(merged, (axis,))
    return tuple(merged)


def _parts(axes: Iterable[SubAxis]) -> int:
    return prod(axis.size for axis in axes)


def _append(axes: list[SubAxis], more: Axes) -> None:
    """Adds axes; the first may extend an existing sub-axis."""
    for axis in more:
        last = axes[-1] if axes else None
        if last is not None and last.name == axis.name and last.pre * last.size == axis.pre:
            axes[-1] = SubAxis(axis.name, last.pre, last.size * axis.size)
        else:
            axes.append(axis)


def _overlap(one: SubAxis, other: SubAxis) -> bool:
    return one.name == other.name and one.pre < other.pre * other.size and other.pre < one.pre * one.size


def _coexist(one: SubAxis, other: SubAxis) -> bool:
    """Whether one mesh can be cut into both axes: not ``x:(1)2`` and ``x:(3)2`` of 6."""
    low, high = sorted((one.pre, other.pre))
    first, last = sorted((one.pre * one.size, other.pre * other.size))
    if one.name != other.name:
        return True
    if first > high:
        return first % high == high % low == last % first == 0
    return high % first == 0


def _truncated(axes: Axes, others: Iterable[SubAxis]) -> Axes:
    """The longest prefix of axes that overlaps with no others, and can be cut beside them."""
    others, kept = [*others], list[SubAxis]()
    for axis in axes:
        left: SubAxis | None = axis
        for other in others:
            if left is not None and not _coexist(left, other):
                left = None
            elif left is not None and _overlap(left, other):
                left = SubAxis(left.name, left.pre, other.pre // left.pre) if left.pre < other.pre else None
        if left is not None:
            kept.append(left)
        if left != axis:
            break
    return tuple(kept)


def _common_prefix(one: Axes, other: Axes) -> Axes:
    """The axes, and at last the part of an axis, with which both begin."""
    prefix: list[SubAxis] = []
    for a, b in zip(one, other, strict=False):
        if a == b:
            prefix.append(a)
            continue
        if a.name == b.name and a.pre == b.pre and _coexist(a, b):
            prefix.append(min(a, b, key=lambda axis: axis.size))
        break
    return tuple(prefix)


def is_strict_prefix(axes: Axes, others: Axes) -> bool:
    """Whether axes are the first few of others, or of their parts, and not all."""
    if not axes:
        return bool(others)
    if len(axes) > len(others) or axes[:-1] != others[: len(axes) - 1]:
        return False
    last, there = axes[-1], others[len(axes) - 1]
    if last == there:
        return len(axes) < len(others)
    return (
        last.name == there.name
        and last.pre == there.pre
        and there.size > last.size
        and there.size % last.size == 0
    )

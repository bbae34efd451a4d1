"""Random turns of one op: meshes, factors, shardings that partly agree and partly conflict."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from .turns import Case, Held, Mesh, Slot, SubAxis

PRIME_POWERS = (1, 2, 3, 4, 8, 9)
COMPOSITES = (6, 10, 12, 30)
FACTOR_SIZES = (1, 2, 2, 3, 4, 4, 5, 6, 8, 9, 10, 12, 24, 30, 60)


def random_mesh(random: Random, composite: bool) -> Mesh:
    """A mesh of one to three axes; with `composite`, the first has several primes."""
    sizes = [random.choice(PRIME_POWERS + COMPOSITES) for _ in range(random.randint(1, 3))]
    if composite:
        sizes[0] = random.choice(COMPOSITES)
    else:
        sizes = [s if s in PRIME_POWERS else 4 for s in sizes]
    return Mesh(tuple((name, size) for name, size in zip("abc", sizes, strict=False)))


def random_case(random: Random, mesh: Mesh) -> Case:
    """An op: elementwise, or with a rule of its own whose dimensions may have several factors."""
    factors = tuple(random.choice(FACTOR_SIZES) for _ in range(random.randint(1, 4)))
    elementwise = random.random() < 0.3
    if elementwise:
        same: Slot = tuple((f,) for f in range(len(factors)))
        operands: tuple[Slot, ...] = (same,) * random.randint(1, 2)
        results: tuple[Slot, ...] = (same,)
        flows: tuple[tuple[str, ...], ...] = ()
    else:
        operands = tuple(_random_slot(random, factors) for _ in range(random.randint(1, 3)))
        results = tuple(_random_slot(random, factors) for _ in range(random.randint(1, 2)))
        operands = (*operands[:-1], _with_rest(operands, results, len(factors)))
        flows = tuple(() if random.random() < 0.05 else ("operand", "result") for _ in factors)
    wishes = [_random_axes(random, mesh) for _ in factors]
    held = tuple(_random_held(random, mesh, dims, wishes) for dims in operands + results)
    strategy = random.choice(("basic", "aggressive"))
    return Case(mesh, factors, operands, results, held, strategy, flows, elementwise)


def _random_slot(random: Random, factors: tuple[int, ...]) -> Slot:
    chosen = random.sample(range(len(factors)), random.randint(1, len(factors)))
    dims: list[list[int]] = []
    for f in chosen:
        # A factor of size 1 has its dimension for itself.
        if dims and 1 not in (factors[f], factors[dims[-1][-1]]) and random.random() < 0.4:
            dims[-1].append(f)
        else:
            dims.append([f])
    return tuple(map(tuple, dims))


def _with_rest(operands: Sequence[Slot], results: Sequence[Slot], count: int) -> Slot:
    """The last operand, with dimensions for the factors that no slot has: every factor must be in one."""
    used = {f for dims in (*operands, *results) for dim in dims for f in dim}
    return operands[-1] + tuple((f,) for f in range(count) if f not in used)


def random_sub_axis(random: Random, mesh: Mesh) -> SubAxis:
    """A whole axis, or a part of it."""
    name, size = random.choice(mesh.axes)
    cuts = [n for n in range(1, size + 1) if size % n == 0]
    if size == 1 or random.random() < 0.3:
        return name, 1, size
    parts = [(lo, hi) for lo in cuts for hi in cuts if hi > lo and hi % lo == 0]
    return (name, *random.choice(parts))


def _random_axes(random: Random, mesh: Mesh) -> list[SubAxis]:
    return [random_sub_axis(random, mesh) for _ in range(random.choice((0, 1, 1, 2, 3)))]


def _random_held(random: Random, mesh: Mesh, dims: Slot, wishes: Sequence[list[SubAxis]]) -> Held | None:
    if random.random() < 0.2:
        return None
    seen: list[SubAxis] = []

    def add(axes: list[SubAxis], axis: SubAxis) -> None:
        name, lo, hi = axis
        if any(n == name and (lo == hi or (lo < b and a < hi)) for n, a, b in seen):
            return
        if lo == hi and any(n == name for n, _, _ in seen):
            return
        seen.append(axis)
        axes.append(axis)

    rows = []
    for factors in dims:
        axes: list[SubAxis] = []
        for f in factors:
            for axis in wishes[f] if random.random() < 0.7 else ():
                if random.random() < 0.1:
                    break
                add(axes, _shortened(random, axis) if random.random() < 0.25 else axis)
            if random.random() < 0.15:
                add(axes, random_sub_axis(random, mesh))
        rows.append((_merged(axes), random.random() < 0.15))
    fixed: list[SubAxis] = []
    while random.random() < 0.2:
        add(fixed, random_sub_axis(random, mesh))
    order = {name: i for i, (name, _) in enumerate(mesh.axes)}
    fixed.sort(key=lambda axis: (order[axis[0]], axis[1]))
    split = [random.random() < 0.7 for _ in fixed]
    replicated = _merged([a for a, s in zip(fixed, split, strict=True) if s])
    unreduced = _merged([a for a, s in zip(fixed, split, strict=True) if not s])
    return Held(tuple(rows), replicated, unreduced)


def _shortened(random: Random, axis: SubAxis) -> SubAxis:
    name, lo, hi = axis
    cuts = [n for n in range(lo + 1, hi + 1) if n % lo == 0 and hi % n == 0]
    return (name, lo, random.choice(cuts)) if cuts else axis


def _merged(axes: list[SubAxis]) -> tuple[SubAxis, ...]:
    merged: list[SubAxis] = []
    for name, lo, hi in axes:
        if merged and merged[-1][0] == name and merged[-1][2] == lo and hi > lo:
            merged[-1] = (name, merged[-1][1], hi)
        else:
            merged.append((name, lo, hi))
    return tuple(merged)

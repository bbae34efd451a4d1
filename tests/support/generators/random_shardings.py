"""Hypothesis: random meshes and random shardings over them, as MLIR text."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import strategies as st

SIZES = (2, 2, 2, 3, 4, 6, 8, 12, 1)  # of mesh axes; hypothesis shrinks towards the front


@dataclass(frozen=True)
class SubAxis:
    """A mesh axis, or a part of one: `size` wide, what is major to it in the axis being `before` wide."""

    axis: int
    name: str
    before: int
    size: int
    whole: bool

    def __str__(self) -> str:
        return f'"{self.name}"' if self.whole else f'"{self.name}":({self.before}){self.size}'

    def follows(self, other: SubAxis) -> bool:
        """Whether it is the next part of the same axis, so that the two must be written as one."""
        return self.name == other.name and other.before * other.size == self.before


@dataclass(frozen=True)
class Mesh:
    """A mesh: its symbol, its axes and an order of devices."""

    name: str
    axes: tuple[tuple[str, int], ...]
    devices: tuple[int, ...] = ()

    def __str__(self) -> str:
        axes = ", ".join(f'"{name}"={size}' for name, size in self.axes)
        order = f", device_ids=[{', '.join(map(str, self.devices))}]" if self.devices else ""
        return f"<[{axes}]{order}>"

    @property
    def maximal(self) -> bool:
        """Whether it is a single device, on which values are whole."""
        return not self.axes


@dataclass(frozen=True)
class Boundary:
    """The manual part of a sharding at the boundary of a manual computation.

    `first`: the axes that come first in each dimension; `replicated`: the others; `bare`: no other axis is in
    the sharding and every dimension is open, as `jax.shard_map` writes it.
    """

    first: Sequence[Sequence[SubAxis]]
    replicated: Sequence[SubAxis]
    bare: bool


def chance(draw: st.DrawFn, n: int) -> bool:
    """True once in `n` times; shrinks to False."""
    return draw(st.integers(0, n - 1)) == n - 1


def some(draw: st.DrawFn, items: Sequence[SubAxis]) -> list[SubAxis]:
    """A random selection, in random order."""
    return draw(st.lists(st.sampled_from(items), unique=True, max_size=len(items))) if items else []


@st.composite
def meshes(draw: st.DrawFn, least: int = 1) -> list[Mesh]:
    """A mesh of `least` axes or more; sometimes a second one, with other axes or another device order, or a
    maximal one."""
    sizes = draw(st.lists(st.sampled_from(SIZES), min_size=least, max_size=4))
    first = Mesh("mesh", tuple(zip("abcd", sizes, strict=False)))
    if not chance(draw, 5):
        return [first]
    kind = draw(st.sampled_from(("axes", "devices", "maximal")))
    if kind == "maximal":
        return [first, Mesh("other", (), (0,))]
    if kind == "axes":
        sizes = draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=3))
        return [first, Mesh("other", tuple(zip("abc", sizes, strict=False)))]
    count = 1
    for _, size in first.axes:
        count *= size
    order = tuple(reversed(range(count)))
    return [first, Mesh("other", first.axes, order if 1 < count <= 64 else ())]


def sub_axes(draw: st.DrawFn, mesh: Mesh) -> list[SubAxis]:
    """Every axis of the mesh, whole or cut once or twice."""
    sub_axes = []
    for index, (name, size) in enumerate(mesh.axes):
        cuts = [1, size]
        while chance(draw, 4):
            divisors = [d for d in range(2, size // cuts[-2]) if size // cuts[-2] % d == 0]
            if not divisors:
                break
            cuts.insert(-1, cuts[-2] * draw(st.sampled_from(divisors)))
        for low, high in pairwise(cuts):
            sub_axes.append(SubAxis(index, name, low, high // low, len(cuts) == 2))
    return sub_axes


def listed(axes: Sequence[SubAxis]) -> str:
    """A list of axes, without those that would have to be merged with the one before."""
    kept: list[SubAxis] = []
    for axis in axes:
        if not kept or not axis.follows(kept[-1]):
            kept.append(axis)
    return ", ".join(map(str, kept))


def sharding(
    draw: st.DrawFn,
    among: Sequence[Mesh],
    rank: int,
    *,
    priorities: bool,
    bound: Collection[str] = (),
    boundary: Boundary | None = None,
) -> str:
    """The inside of a sharding of a tensor of `rank`: `@mesh, [{"a", ?}p1, {}], replicated={"b"}`.

    Axes need not divide the dimensions. Axes called as in `bound` are manual, or are in the `boundary`.
    There, no free axis waits for a priority: Shardy forgets that it is taken as soon as anything flows in
    or out, so that another dimension may get it, and in the end two have it.
    """
    may_wait = boundary is None
    mesh = draw(st.sampled_from(among))
    if mesh.maximal:
        return f"@{mesh.name}, []"
    boundary = boundary or Boundary([()] * rank, (), bare=False)
    free = [axis for axis in sub_axes(draw, mesh) if axis.name not in bound]
    free = [] if boundary.bare else draw(st.permutations(free))
    dimensions = []
    for leading in boundary.first:
        taken = [free.pop() for _ in range(min(len(free), draw(st.sampled_from((0, 1, 1, 2)))))]
        entries = [listed([*leading, *taken])] if leading or taken else []
        opened = boundary.bare or draw(st.booleans())
        if opened:
            entries.append("?")
        ranked = priorities and (may_wait if taken else opened) and chance(draw, 4)
        priority = f"p{draw(st.integers(0, 3))}" if ranked else ""
        dimensions.append("{" + ", ".join(entries) + "}" + priority)
    text = f"@{mesh.name}, [{', '.join(dimensions)}]"
    for name, rarity, taken in (("replicated", 8, [*boundary.replicated]), ("unreduced", 24, [])):
        if free and chance(draw, rarity):
            more = some(draw, free)
            free = [axis for axis in free if axis not in more]
            taken = [*taken, *more]
        axes = listed(sorted(taken, key=lambda a: (a.axis, a.before)))
        text += f", {name}={{{axes}}}" if axes else ""
    if not (mesh.devices or bound) and chance(draw, 16):
        text = f"mesh<{str(mesh)[1:-1]}>" + text.removeprefix(f"@{mesh.name}")
    return text

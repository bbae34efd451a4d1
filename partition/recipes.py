"""How ops are computed that are alike, between values that lie alike: found once, looked up then."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .building import Builder
from .choice.choosing import Choice, Chooser, Way
from .choice.knowledge import Knowledge
from .kinds import Kind
from .layouts import Layout, Shape
from .local.local import COMPUTED, Site, parts, reduce
from .reading import Make, Reading, Tensor, static_shape


@dataclass(slots=True, eq=False)
class Recipe:
    """How ops of one kind are computed whose operands and results have the same homes.

    ``tensors`` are what is known of the results. ``needed`` are the layouts of the operands, and whether
    these are their homes; ``given`` those of the results. Where the local op is the op on parts and nothing
    else, ``repeats``, the first one is ``like`` all others.
    """

    held: tuple[Layout, ...]
    free: frozenset[int]
    choice: Choice
    tensors: tuple[Tensor, ...]
    needed: tuple[tuple[Layout, bool], ...]
    given: tuple[Layout, ...]
    at_home: bool  # all results are
    repeats: bool
    like: Any = None


class Recipes:
    """The recipes of a walk."""

    def __init__(self, chooser: Chooser, reading: Reading, builder: Builder) -> None:
        self.chooser, self.reading, self.builder = chooser, reading, builder
        self._states: dict[tuple[Layout, bool], int] = {}
        self._known: dict[Any, Recipe] = {}

    def tensor(self, shape: Shape, home: Layout, make: Make | None = None) -> Tensor:
        """What is known of a value."""
        return Tensor(shape, home, self._states.setdefault((home, make is None), len(self._states)), make)

    def of(
        self,
        op: Any,
        kind: Kind,
        known: Knowledge,
        operands: Sequence[Tensor],
        moved: Mapping[Any, Layout],
        way: Way | None,
    ) -> Recipe:
        """How an op is computed; ``moved`` are the homes of values that are not where the module says, and
        ``way`` is the one by which all ops together cost least, where these were asked."""
        others = tuple([moved.get(value) for value in op.results]) if moved else ()
        key = kind, known, self.reading.manual[-1], others, way, *[tensor.state for tensor in operands]
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._new(op, kind, known, operands, others, way)
        return found

    def _new(
        self,
        op: Any,
        kind: Kind,
        known: Knowledge,
        operands: Sequence[Tensor],
        others: Sequence[Layout | None],
        way: Way | None,
    ) -> Recipe:
        homes = self.reading.homes(op)
        if others:
            homes = [other or home for other, home in zip(others, homes, strict=True)]
        held = tuple([tensor.home for tensor in operands] + homes)
        free = frozenset([t for t, tensor in enumerate(operands) if tensor.make is not None])
        choice = self.chooser.choose(known, held, free, way)
        layouts, count = choice.taken.layouts, len(operands)
        given = list(layouts[count:])
        if known.combined_by_region:  # by the lowering itself
            given = [layout.complete if layout.partial else layout for layout in given]
        lower = COMPUTED.get(known.lowering)
        gathered = known.combined_by_region and any(layout.partial for layout in layouts[count:])
        repeats = kind.closed and (lower is parts or (lower is reduce and not gathered))
        return Recipe(
            held,
            free,
            choice,
            tensors=tuple(
                self.tensor(static_shape(type_) or (), home)
                for type_, home in zip(kind.types, homes, strict=True)
            ),
            needed=tuple((layouts[t], layouts[t] == tensor.home) for t, tensor in enumerate(operands)),
            given=tuple(given),
            at_home=given == homes,
            repeats=repeats and Site(self.builder, op, known, choice.taken, lambda _: None).plain,
        )

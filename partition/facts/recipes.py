"""How ops are computed: found once for equal ops between equal layouts, and then looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...program.ids import Slot
from ...program.mlir.types import Operation
from ..choice.choosing import Chooser, Way
from ..choice.purposes import Computed
from ..layouts import Layout, Shape
from ..writing.building import Builder
from ..writing.local.local import COMPUTED, LocalSite, parts, reduce
from .kinds import Kind
from .knowledge import Knowledge
from .reading import Reading, TensorFacts, static_shape

# The homes of results that differ from the module's (None for others); and the way to compute the op that was
# chosen together with all others, if there was such a choice.
Chosen = tuple[tuple[Layout | None, ...], Way | None] | None


@dataclass(slots=True, eq=False)
class Recipe:
    """How ops of one kind are computed, if their operands and results have the same homes.

    ``tensors`` are the facts about the results. ``takes`` are operands by slot, with their layouts and
    whether these are their homes. ``needed`` are those that the copy of the op lacks, if it is ``kept``: then
    the local op is just the op on parts. It gets these ``types`` and ``attributes``. ``given`` are the
    layouts of the results.
    """

    computed: Computed
    free: frozenset[Slot]
    tensors: tuple[TensorFacts, ...]
    takes: tuple[tuple[Slot, Layout, bool], ...]
    needed: tuple[tuple[Slot, Layout, bool], ...]
    given: tuple[Layout, ...]
    at_home: bool  # all results are kept kept
    kept: bool
    types: tuple[tuple[int, Any], ...] = ()  # of results that are not whole
    attributes: tuple[tuple[str, Any], ...] = ()
    outside: tuple[str, ...] = ()

    def write(self, copy: Any, values: Sequence[Any]) -> None:
        """Turns a copy of an op into the op on each device, with the ``values`` that it needs."""
        if values:
            operands = copy.operands
            for (slot, *_), value in zip(self.needed, values, strict=True):
                operands[slot] = value
        if self.outside or self.attributes:
            held = copy.attributes
            for name in self.outside:
                del held[name]
            for name, value in self.attributes:
                held[name] = value
        if self.types:
            results = copy.results
            for i, type_ in self.types:
                results[i].set_type(type_)


class Recipes:
    """The recipes of a walk."""

    def __init__(self, chooser: Chooser, reading: Reading, builder: Builder) -> None:
        self.chooser, self.reading, self.builder = chooser, reading, builder
        self._tensors: dict[tuple[Shape, Layout, bool, bool], TensorFacts] = {}
        self._known: dict[Any, Recipe] = {}

    def tensor(
        self, shape: Shape, home: Layout, *, dataless: bool = False, kept: bool = False
    ) -> TensorFacts:
        """The facts about a value: the same object for equal ones."""
        key = shape, home, dataless, kept
        if key not in self._tensors:
            self._tensors[key] = TensorFacts(*key)
        return self._tensors[key]

    def find(
        self, kind: Kind, knowledge: Knowledge, operands: Iterable[TensorFacts | None], chosen: Chosen
    ) -> Recipe | None:
        """How an equal op with these operands was computed; None if there was none."""
        return self._known.get((kind, knowledge, self.reading.manual[-1], chosen, *operands))

    def of(
        self, op: Operation, kind: Kind, knowledge: Knowledge, operands: Sequence[TensorFacts], chosen: Chosen
    ) -> Recipe:
        """How an op with these operands is computed."""
        key = kind, knowledge, self.reading.manual[-1], chosen, *operands
        recipe = self._known.get(key)
        if recipe is None:
            recipe = self._known[key] = self._new(op, kind, knowledge, operands, chosen)
        return recipe

    def _new(
        self,
        op: Operation,
        kind: Kind,
        knowledge: Knowledge,
        operands: Sequence[TensorFacts],
        chosen: Chosen,
    ) -> Recipe:
        homes, way = self.reading.homes(op), None
        if chosen is not None:
            others, way = chosen
            homes = [other or home for other, home in zip(others, homes, strict=True)]
        held = tuple([tensor.home for tensor in operands] + homes)
        free = frozenset([t for t, tensor in zip(knowledge.slots, operands, strict=False) if tensor.dataless])
        choice = self.chooser.choose(knowledge, held, free, way)
        layouts, count = choice.taken.layouts, len(operands)
        given = list(layouts[count:])
        if knowledge.combined_by_itself:  # by the lowering itself
            given = [layout.complete if layout.partial else layout for layout in given]
        lower = COMPUTED.get(knowledge.lowering)
        gathered = knowledge.combined_by_itself and any(layout.partial for layout in layouts[count:])
        computed = Computed(knowledge, held, choice)
        site = LocalSite(self.builder, op, computed, lambda _: None)
        kept = kind.closed and (lower is parts or (lower is reduce and not gathered)) and site.plain
        at_home = given == homes
        pairs = zip(knowledge.slots, operands, strict=False)
        takes = [(t, layouts[t], layouts[t] == tensor.home) for t, tensor in pairs]
        needed = [each for each in takes if not (kept and each[2] and operands[each[0]].kept)]
        return Recipe(
            computed,
            free,
            tensors=tuple(
                self.tensor(static_shape(type_) or (), home, kept=kept and at_home)
                for type_, home in zip(kind.types, homes, strict=True)
            ),
            takes=tuple(takes),
            needed=tuple(needed),
            given=tuple(given),
            at_home=at_home,
            kept=kept,
            types=tuple([(i, type_) for i, type_ in enumerate(site.types()) if kept and type_ is not None]),
            attributes=tuple(site.attributes().items()) if kept else (),
            outside=kind.outside,
        )

"""The values of a module as a device has them: in which layouts each has been made, and where."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from jaxlib.mlir import ir

from .building import Builder, bytes_of, element_of
from .choice.knowledge import inside
from .choice.purposes import Purpose
from .choice.variables import Need, Spot
from .kinds import Kinds
from .layouts import Axes, Layout, Shape, replicated
from .reading import Tensor, static_shape
from .recipes import Recipes
from .reshards.moves import Plan
from .reshards.planning import Planner
from .reshards.steps import carry_out

_KEPT = 64  # ops for which what was gathered is kept, where memory is short


class Values:
    """The values of a module, and ops, by their numbers in ``kinds``. What is gathered is kept, or gathered
    ``again`` where it is used much later; ``recording``: what is needed where is taken down."""

    def __init__(
        self, kinds: Kinds, axes: Axes, planner: Planner, builder: Builder, *, recording: bool, again: bool
    ) -> None:
        self.kinds, self.axes, self.planner, self.builder = kinds, axes, planner, builder
        self.recording, self.again = recording, again
        self.recipes: Recipes
        self.tensors: dict[int, Tensor] = {}
        self.makes: dict[int, Callable[[Layout], Any]] = {}  # values that take no data
        self.locals: dict[int, Any] = {}  # of values that were made at home, there wherever the value is
        self.layouts: dict[int, tuple[Layout, ...]] = {}  # other ones in which values have been made
        self.first: dict[int, Layout] = {}  # those in which values are made before others
        self.copies: dict[int, Any] = {}  # of the ops of functions that are written
        self.kept: set[int] = set()  # the ops whose copies are theirs, at home
        self.needs: list[tuple[Any, Need]] = []
        self.spots: list[tuple[Any, Spot]] = []  # ops that are computed, and values that are handed on
        self.carried: dict[Any, Any] = {}  # those that loops carry, and the loops
        self.clock = 0  # ops so far
        self._made_at: dict[tuple[int, Layout], int] = {}
        self._types: dict[tuple[Any, Layout], Any] = {}

    def local(self, type_: Any, layout: Layout) -> Any:
        """The type of the part that a device holds."""
        if not any(layout.dims):
            return type_
        key = type_, layout
        if key not in self._types:
            shape = static_shape(type_) or ()
            element = ir.RankedTensorType(type_).element_type
            self._types[key] = self.builder.tensor(self.axes.local(shape, layout.dims), element)
        return self._types[key]

    def define(
        self,
        value: int,
        type_: Any,
        layout: Layout,
        local: Any,
        home: Layout | None = None,
        *,
        kept: bool = False,
    ) -> None:
        """Records the local value that a value of the module, of this type, has in a layout; ``kept``: it is
        its copy."""
        if value not in self.tensors:
            self.tensors[value] = self.recipes.tensor(static_shape(type_) or (), home or layout, kept=kept)
        self._keep(value, layout, local)

    def define_made(self, value: int, shape: Shape, home: Layout, make: Callable[[Layout], Any]) -> None:
        """Says how a value is made in any layout, of no data."""
        self.tensors[value], self.makes[value] = self.recipes.tensor(shape, home, made=True), make

    def _keep(self, value: int, layout: Layout, local: Any) -> None:
        self.builder.scope.known[value, layout] = local
        self.layouts[value] = (*self.layouts.get(value, ()), layout)

    def forget(self, value: int, layout: Layout) -> None:
        """Forgets that a value has been made in a layout here: what uses it takes it from another one."""
        del self.builder.scope.known[value, layout]
        self.layouts[value] = tuple(known for known in self.layouts[value] if known != layout)

    def known_layouts(self, value: int) -> tuple[Layout, ...]:
        """The layouts in which a value has been made in some scope."""
        home = () if self.at_home(value) is None else (self.tensors[value].home,)
        return (*home, *self.layouts.get(value, ()))

    def find(self, value: int, layout: Layout) -> Any:
        """The local value that there is here in a layout, or None."""
        local = self.at_home(value)
        if local is not None and self.tensors[value].home == layout:
            return local
        return self.builder.scope.find((value, layout))

    def at_home(self, value: int) -> Any:
        """The local value that was made at home, wherever that was, or None."""
        local = self.locals.get(value)
        if local is None and (definer := self.kinds.definer(value)) in self.kept:
            first = self.kinds.results(definer)[0]
            local = self.locals[value] = self.copies[definer].results[value - first]
        return local

    def get(self, value: int, layout: Layout, purpose: Purpose | None = None) -> Any:
        """A value in a layout, resharded from the cheapest one in which it is available here."""
        builder = self.builder
        found = self.find(value, layout)
        stale = self.again and not (found is None or purpose is None) and self._stale(value, layout)
        if self.recording and purpose is not None and purpose.computed is None:
            self._record(value, layout, purpose)
        if found is not None and not stale:
            return found
        tensor, make = self.tensors[value], self.makes.get(value)
        if make is not None and not layout.partial:
            local = make(layout)
        else:
            if make is not None:
                self.get(value, layout.complete)
            starts = dict[Layout, Any]()
            for known in self.known_layouts(value):
                if not (stale and known == layout) and (local := self.find(value, known)) is not None:
                    starts[known] = local
            width = bytes_of(element_of(next(iter(starts.values()))))
            first = self.first.get(value)
            also = {} if first in (None, layout) else {first: None}
            plan, start = self.cheapest(value, {**starts, **also}, layout, width)
            price = self.planner.with_steps(plan, width) if plan.price else 0.0
            if price and (local := self.made_anew(value, layout, price)) is not None:
                self._keep(value, layout, local)
                return local
            if start not in starts:  # it is made for other uses too
                starts[start] = self.get(value, start, None if purpose is None else replace(purpose))
            if plan.price and purpose is not None:
                purpose.start, purpose.goal = start, layout
            held = starts[start]
            if stale:  # or XLA takes both for one
                held = builder.barrier(held)
            with builder.serving(lambda: purpose or self.aside(value)):
                local = carry_out(builder, held, tensor.shape, start, plan)
            self._made_at[value, layout] = self.clock
        self._keep(value, layout, local)
        return local

    def made_anew(self, value: int, layout: Layout, price: float) -> Any:
        """A value made once more in a layout, of what it was made of, if that costs less than this price;
        None if not."""
        return None

    def cheapest(
        self, value: int, starts: Iterable[Layout], layout: Layout, width: int
    ) -> tuple[Plan, Layout]:
        """The cheapest plan from one of some layouts to another, and that layout."""
        planner, shape = self.planner, self.tensors[value].shape
        found = ((planner.plan(shape, start, layout, self.builder.manual), start) for start in starts)
        plans = ((planner.best(plan, width), start) for plan, start in found)
        return min(plans, key=lambda pair: planner.with_steps(pair[0], width))

    def _record(self, value: int, layout: Layout, purpose: Purpose) -> None:
        """Takes down that a value is needed in a layout, or is handed on, as propagated in this one."""
        tensor = self.tensors[value]
        if not (purpose.chosen and tensor.shape):
            self.needs.append((purpose.op, Need(purpose.value, layout)))
            return
        received = purpose.start is not None  # out of another region, of which only the value itself is known
        known = self.recipes.chooser.reader.handing_on(
            tensor.shape, bytes_of(element_of(purpose.value)), received
        )
        known = inside(known, self.builder.manual)
        free = frozenset([0] if value in self.makes else [])
        held = purpose.start or tensor.home, layout
        spot = Spot(known, (purpose.value, purpose.to), held, free, held[0] != layout and not free)
        self.spots.append((purpose.beside or purpose.op, spot))

    def _stale(self, value: int, layout: Layout) -> bool:
        """Whether a value was gathered so long ago that it is gathered again."""
        made = self._made_at.get((value, layout))
        return made is not None and self.clock - made > _KEPT

    def aside(self, value: int) -> Purpose:
        """The purpose of what is sent for no op in particular: the one that makes the value."""
        number = self.kinds.definer(value)
        found = self.kinds.listing.value(value)
        op = self.kinds.ops[number] if number >= 0 else found.owner.owner
        return Purpose(op, len(op.operands), found)

    def captured(self, value: Any) -> Any | None:
        """A value of the module that a region uses from outside, whole."""
        number = self.kinds.value(value)
        if number is None or number not in self.tensors:
            return None
        return self.get(number, replicated(len(self.tensors[number].shape)))

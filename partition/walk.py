"""The walk over an annotated module: which values are resharded for what, and from where.

Who writes the device program (``writing/writer.py``) and who takes down what ops need
(``facts/recording.py``) decide alike, for both are walks; they differ in what becomes of what is decided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..program.function import location
from ..program.mlir.modules import main_function, named_in, symbols
from .choice.purposes import Computed, Purpose, purpose_of
from .facts.annotated import Annotated
from .facts.bypasses import Bypasses
from .facts.kinds import Kind
from .facts.knowledge import Knowledge, inside
from .facts.reading import Reading, Tensor, static_shape
from .facts.recipes import Chosen, Recipe, Recipes
from .layouts import Layout, Shape, replicated
from .plan import Plan
from .reshards import moves
from .writing.building import Builder, Scope, bytes_of

_KEPT = 64  # ops for which what was gathered is kept, where memory is short


class RefusedError(ShardlogError):
    """An op cannot run on each device."""


class Walk(ABC):
    """The values of a module, and ops, by their numbers in ``kinds``, as a plan has them. A *local* value is
    what a device has of a value in a layout, whatever stands for it.

    Ops that cannot run on each device raise RefusedError, if the walk ``refuses`` them."""

    def __init__(self, annotated: Annotated, plan: Plan, builder: Builder, *, refuses: bool = True) -> None:
        self.plan, self.builder, self.refuses = plan, builder, refuses
        self.old, self.kinds, self.shardings = annotated.module, annotated.kinds, annotated.shardings
        self.axes, self.chooser, self.planner = annotated.axes, annotated.chooser, annotated.planner
        self.form, self.traits = annotated.form, builder.traits
        self.copied_first = {} if plan.again else plan.copies  # layouts that values are made in before others
        self.functions = symbols(self.old, "func.func")
        self.main = main_function(self.functions)
        self.reading = Reading(self.shardings, self.axes)
        self.bypasses = Bypasses(self.kinds, self.chooser.reader, self.functions, self.reading)
        self.recipes = Recipes(self.chooser, self.reading, builder)
        self.tensors: dict[int, Tensor] = {}
        self.makes: dict[int, Callable[[Layout], Any]] = {}  # values that take no data
        self.locals: dict[int, Any] = {}  # of values that were made at home, there wherever the value is
        self.layouts: dict[int, tuple[Layout, ...]] = {}  # other ones in which values have been made
        self.clock = 0  # ops so far
        self._made_at: dict[tuple[int, Layout], int] = {}
        self._types: dict[tuple[Any, Layout], Any] = {}
        self._widths: dict[int, int] = {}  # of elements, by the numbers of types

    # ---- What becomes of what is decided ----------------------------------------------------------------

    @property
    @abstractmethod
    def scope(self) -> Scope:
        """The local values that are there now."""

    @abstractmethod
    def carry(
        self, value: int, held: Any, start: Layout, plan: moves.Plan, purpose: Purpose | None, *, stale: bool
    ) -> Any:
        """A local value after the steps of a plan; ``stale``: of a value that was made so before."""

    @abstractmethod
    def lower(self, op: Any, computed: Computed, values: list[Any]) -> Sequence[Any]:
        """The results of an op by its lowering, of operands as that needs them."""

    @property
    @abstractmethod
    def flows(self) -> Mapping[str, Callable[[Any, int, Knowledge], bool | None]]:
        """What takes ops that hand values on, or make some of no data, by how these become local; given the
        walk, the op and what is known of it, it says whether that is its copy."""

    @abstractmethod
    def spread(self, number: int) -> bool:
        """Has what broadcasts a scalar made wherever it is used; whether that is done."""

    @abstractmethod
    def empty(self, number: int) -> bool:
        """Has results without elements made wherever they are used; whether that is the op's copy."""

    @abstractmethod
    def take(self, number: int, kind: Kind, recipe: Recipe, operands: Sequence[int]) -> bool:
        """Takes an op that is computed by a recipe; whether that is its copy."""

    @abstractmethod
    def keep_named(self, op: Any) -> None:
        """Keeps functions that an op names or its regions call, as comparisons do, as they are."""

    def at_home(self, value: int) -> Any:
        """The local value that was made at home, wherever that was, or None."""
        return self.locals.get(value)

    # ---- Values -----------------------------------------------------------------------------------------

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
        self.scope.known[value, layout] = local
        self.layouts[value] = (*self.layouts.get(value, ()), layout)

    def forget(self, value: int, layout: Layout) -> None:
        """Forgets that a value has been made in a layout here: what uses it takes it from another one."""
        del self.scope.known[value, layout]
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
        return self.scope.find((value, layout))

    def get(self, value: int, layout: Layout, purpose: Purpose | None = None) -> Any:
        """A value in a layout, resharded from the cheapest one in which it is available here."""
        found = self.find(value, layout)
        stale = self.plan.again and not (found is None or purpose is None) and self._stale(value, layout)
        if found is not None and not stale:
            return found
        make = self.makes.get(value)
        if make is not None and not layout.partial:
            local = make(layout)
        else:
            if make is not None:
                self.get(value, layout.complete)
            starts = dict[Layout, Any]()
            for known in self.known_layouts(value):
                if not (stale and known == layout) and (local := self.find(value, known)) is not None:
                    starts[known] = local
            width, first = self.width(value), self.copied_first.get(value)
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
            local = self.carry(value, starts[start], start, plan, purpose, stale=stale)
            self._made_at[value, layout] = self.clock
        self._keep(value, layout, local)
        return local

    def width(self, value: int) -> int:
        """The bytes of an element of a value."""
        type_ = int(self.kinds.listing.types[value])
        if type_ not in self._widths:
            held = ir.ShapedType(self.kinds.listing.value(value).type)
            self._widths[type_] = bytes_of(held.element_type)
        return self._widths[type_]

    def cheapest(
        self, value: int, starts: Iterable[Layout], layout: Layout, width: int
    ) -> tuple[moves.Plan, Layout]:
        """The cheapest plan from one of some layouts to another, and that layout."""
        planner, shape = self.planner, self.tensors[value].shape
        found = ((planner.plan(shape, start, layout, self.reading.manual[-1]), start) for start in starts)
        plans = ((planner.best(plan, width), start) for plan, start in found)
        return min(plans, key=lambda pair: planner.with_steps(pair[0], width))

    def made_anew(self, value: int, layout: Layout, price: float) -> Any:
        """What repeats smaller values, made of these where that sends less than to reshard it."""
        number = self.kinds.definer(value)
        if (
            layout.partial
            or number < 0
            or self.kinds.ops[number].name not in self.traits.family("broadcast_op")
        ):
            return None
        op, operands = self.kinds.ops[number], self.kinds.operands(number)
        if len(operands) != 1 or operands[0] not in self.tensors:
            return None
        known, tensor = self.chooser.reader.knowledge(op), self.tensors[operands[0]]
        if self.reading.manual[-1]:
            known = inside(known, self.reading.manual[-1])
        held = tensor.home, layout
        choice = self.chooser.choose(known, held, frozenset())
        needed, given = choice.taken.layouts
        if given != layout or tensor.made:
            return None
        width = self.width(operands[0])
        here = [each for each in self.known_layouts(operands[0]) if self.find(operands[0], each) is not None]
        plan, _ = self.cheapest(operands[0], here, needed, width)
        if self.planner.with_steps(plan, width) >= price:
            return None
        computed = Computed(known, held, choice)
        operand = self.get(operands[0], needed, purpose_of(op, computed, 0, op.operands[0]))
        return self.lower(op, computed, [operand])[0]

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

    # ---- Ops --------------------------------------------------------------------------------------------

    def op(self, number: int) -> bool:
        """Takes an op; whether that is its copy."""
        self.clock += 1
        kinds = self.kinds
        kind = kinds.of(number, self.chooser.reader)
        known = kind.known or self.chooser.reader.knowledge(kinds.ops[number])
        if self.reading.manual[-1]:
            known = inside(known, self.reading.manual[-1])
        operands = kinds.operands(number)
        if self.bypasses.take(number, known):
            return False
        if self.bypasses.touch(operands):
            known, operands = self.bypasses.reading(number, known)
        flow = self.flows.get(known.lowering)
        if flow is None:
            tensors = map(self.tensors.get, operands)
            recipe = self.recipes.find(kind, known, tensors, self._chosen(number))
            if recipe is not None:
                return self.take(number, kind, recipe, operands)
        op = kinds.ops[number]
        if known.refused and self.refuses:
            hint = f"{op.name} cannot be partitioned: {known.refused}"
            raise RefusedError(f"{op.name} cannot run on each device", where=location(op), hint=hint)
        self.builder.loc = op.location
        if flow is not None:
            return bool(flow(self, number, known))
        return self.computed(number, known, operands)

    def computed(self, number: int, known: Knowledge, operands: list[int] | None = None) -> bool:
        """Takes an op that is computed, in the cheapest way, and its results where they live; whether that
        is its copy."""
        if known.expands and self.spread(number):
            return False
        if known.gives_nothing:
            return self.empty(number)
        kind, op = self.kinds.of(number, self.chooser.reader), self.kinds.ops[number]
        operands = self.kinds.operands(number) if operands is None else operands
        tensors = [self.tensors[value] for value in operands]
        recipe = self.recipes.of(op, kind, known, tensors, self._chosen(number))
        if known.names_functions or len(op.regions):
            self.keep_named(op)
        return self.take(number, kind, recipe, operands)

    def give(
        self, number: int, recipe: Recipe, made: Sequence[Any], served: Callable[[int], Purpose | None]
    ) -> None:
        """Takes the results of an op that is computed to where they live. ``served``: what that is for, by
        result."""
        for i, (value, local) in enumerate(zip(self.kinds.results(number), made, strict=True)):
            tensor, layout = recipe.tensors[i], recipe.given[i]
            self.tensors[value] = tensor
            if recipe.at_home:
                self.locals[value] = local
                continue
            self._keep(value, layout, local)
            if layout != tensor.home:
                self.get(value, tensor.home, served(i))
                if value in self.plan.pinned:
                    self.forget(value, layout)

    def _chosen(self, number: int) -> Chosen:
        """What was chosen for an op among all ops."""
        homes, ways = self.plan.homes, self.plan.ways
        if not homes and not ways:
            return None
        results = self.kinds.results(number)
        return tuple([homes.get(value) for value in results]), ways.get(results[0]) if results else None

    def homes(self, number: int) -> list[Layout]:
        """The layouts of what an op hands on: as the plan says, or as the module says."""
        return self.settled(self.kinds.results(number), self.reading.homes(self.kinds.ops[number]))

    def settled(self, values: Iterable[int], layouts: Sequence[Layout]) -> list[Layout]:
        """The layouts of values that are handed on: as the plan says, or these."""
        homes = self.plan.homes
        if not homes:
            return list(layouts)
        return [homes.get(value, layout) for value, layout in zip(values, layouts, strict=True)]

    # ---- Functions --------------------------------------------------------------------------------------

    @cached_property
    def in_bodies(self) -> dict[str, frozenset[int]]:
        """The axes of the manual computations in which functions are called: they are written once for all
        calls, so that nothing in them goes along these."""
        found: dict[str, frozenset[int]] = {}
        waiting = [(op, self.reading.cut_by(op)) for op in self.kinds.having("manual_axes")]
        while waiting:
            op, cut = waiting.pop()
            for name in sorted(named_in(op) & self.functions.keys()):
                if not cut <= found.get(name, frozenset()):
                    found[name] = found.get(name, frozenset()) | cut
                    waiting.append((self.functions[name], found[name]))
        return found

    def enter(self, cut: frozenset[int]) -> None:
        """What comes now is inside of a manual computation over these axes."""
        self.reading.manual.append(self.reading.manual[-1] | cut)
        self.builder.manual = self.reading.manual[-1]

    def leave(self) -> None:
        """What is written now is outside of it again."""
        self.reading.manual.pop()
        self.builder.manual = self.reading.manual[-1]

    def entering_whole(self, layouts: Sequence[Layout]) -> list[Layout]:
        """The layouts in which whole tensors enter one manual computation over all axes of the main mesh, or
        leave it: those on another mesh whole."""
        on_main = self.axes.on_main
        return [layout if on_main(layout) else replicated(len(layout.dims)) for layout in layouts]

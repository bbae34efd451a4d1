"""The walk over an annotated module: the layouts in which each op needs its operands and gives its results.

The recorder, which decides a plan (``facts/recording.py``), and the writer (``writing/writer.py``) are both
walks. They ask for the same values in the same order. They differ in what a local value is, and in that the
recorder decides the reshards that the writer carries out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..program.ids import Slot
from ..program.mlir.modules import named_in
from ..program.mlir.types import Operation, Value
from .choice.purposes import Computed, Purpose, Use
from .facts.annotated import Annotated
from .facts.bypasses import Bypasses
from .facts.kinds import Kinds
from .facts.reading import Reading, TensorFacts, static_shape
from .facts.recipes import Recipe, Recipes
from .layouts import Layout, PieceSet, Shape, replicated
from .plan import Plan, Reshard
from .writing.building import Builder, Scope

_KEPT = 64  # the number of ops for which gathered values are kept if memory is short


class RefusedError(ShardlogError):
    """An op cannot run on each device."""


class Walk(ABC):
    """The values and ops of a module, by their numbers in ``kinds``, as in a plan. A *local* value stands for
    the part of a value that a device has in a layout."""

    def __init__(
        self,
        annotated: Annotated,
        plan: Plan,
        builder: Builder,
        reading: Reading,
        bypasses: Bypasses,
        recipes: Recipes,
    ) -> None:
        self.plan, self.builder = plan, builder
        self.reading, self.bypasses, self.recipes = reading, bypasses, recipes
        self.old, self.kinds, self.shardings = annotated.module, annotated.kinds, annotated.shardings
        self.axes, self.chooser, self.planner = annotated.axes, annotated.chooser, annotated.planner
        self.form, self.traits = annotated.form, builder.traits
        self.copied_first = {} if plan.again else plan.copies  # layouts that values are made in before others
        self.functions, self.main = annotated.functions, annotated.main
        self.tensors: dict[int, TensorFacts] = {}
        self.makes: dict[int, Callable[[Layout], Any]] = {}  # values that need no data
        self.locals: dict[int, Any] = {}  # of values at home, which exist wherever the value does
        self.layouts: dict[int, tuple[Layout, ...]] = {}  # other ones in which values have been made
        self.clock = 0  # ops so far
        self._made_at: dict[tuple[int, Layout], int] = {}
        self._types: dict[tuple[Any, Layout], Any] = {}
        self._shapes: dict[int, Shape] = {}  # by the numbers of types

    # ---- What the recorder and the writer do ------------------------------------------------------------

    @property
    @abstractmethod
    def scope(self) -> Scope:
        """The local values that are there now."""

    @abstractmethod
    def op(self, number: int) -> bool:
        """Processes an op. Returns whether its op in the device program is the copy of it."""

    @abstractmethod
    def reshard(self, value: int, layout: Layout, use: Use | None, *, stale: bool) -> Reshard:
        """How a value gets to a layout in which it does not exist; if ``stale``, it exists but is made
        again."""

    @abstractmethod
    def carry(self, held: Any, reshard: Reshard, use: Use | None, *, stale: bool) -> Any:
        """A local value after the steps of a reshard; ``stale``: of a value that was made this way before."""

    @abstractmethod
    def repeated(self, reshard: Reshard) -> Computed:
        """How the op that makes a value is computed once more, if that replaces a reshard."""

    @abstractmethod
    def lower(self, op: Operation, computed: Computed, values: list[Any]) -> Sequence[Any]:
        """The results of an op by its lowering, from operands in the layouts that it needs."""

    @abstractmethod
    def note(self, use: Use, value: int, layout: Layout, *, start: Layout | None = None) -> None:
        """Records that a value is passed on, or needed, in a layout; ``start``: its layout in another
        region."""

    def at_home(self, value: int) -> Any:
        """The local value that was made at home, in any scope, or None."""
        return self.locals.get(value)

    # ---- Values -----------------------------------------------------------------------------------------

    def local(self, type_: ir.Type, layout: Layout) -> Any:
        """The type of the part that a device holds."""
        if not any(layout.dims):
            return type_
        key = type_, layout
        if key not in self._types:
            shape = static_shape(type_) or ()
            element = ir.RankedTensorType(type_).element_type
            self._types[key] = self.builder.tensor(self.axes.local(shape, layout.dims), element)
        return self._types[key]

    def shape(self, value: int) -> Shape:
        """The shape of a value. Values that are not tensors of static shape count as scalars."""
        type_ = int(self.kinds.listing.types[value])
        if type_ not in self._shapes:
            self._shapes[type_] = static_shape(self.kinds.listing.value(value).type) or ()
        return self._shapes[type_]

    def define(
        self, value: int, layout: Layout, local: Any, home: Layout | None = None, *, kept: bool = False
    ) -> None:
        """Records the local value of a value of the module in a layout; ``kept``: it is the copy of the
        value."""
        if value not in self.tensors:
            self.tensors[value] = self.recipes.tensor(self.shape(value), home or layout, kept=kept)
        self._keep(value, layout, local)

    def define_all(self, values: Iterable[int], layouts: Iterable[Layout], locals_: Iterable[Any]) -> None:
        """Records several values like ``define``."""
        for value, layout, local in zip(values, layouts, locals_, strict=True):
            self.define(value, layout, local)

    def define_made(self, value: int, shape: Shape, home: Layout, make: Callable[[Layout], Any]) -> None:
        """Records how to make a value in any layout, without data."""
        self.tensors[value], self.makes[value] = self.recipes.tensor(shape, home, dataless=True), make

    def _keep(self, value: int, layout: Layout, local: Any) -> None:
        self.scope.values[value, layout] = local
        self.layouts[value] = (*self.layouts.get(value, ()), layout)

    def forget(self, value: int, layout: Layout) -> None:
        """Forgets that a value exists in a layout here. Its users take it from another layout."""
        del self.scope.values[value, layout]
        self.layouts[value] = tuple(other for other in self.layouts[value] if other != layout)

    def known_layouts(self, value: int) -> tuple[Layout, ...]:
        """The layouts in which a value has been made in any scope."""
        home = () if self.at_home(value) is None else (self.tensors[value].home,)
        return (*home, *self.layouts.get(value, ()))

    def find(self, value: int, layout: Layout) -> Any:
        """The local value in a layout that exists here, or None."""
        local = self.at_home(value)
        if local is not None and self.tensors[value].home == layout:
            return local
        return self.scope.find((value, layout))

    def get(self, value: int, layout: Layout, use: Use | None = None) -> Any:
        """A value in a layout. If it does not exist here in that layout, it is resharded."""
        held_here = self.find(value, layout)
        stale = self.plan.again and not (held_here is None or use is None) and self._stale(value, layout)
        if held_here is not None and not stale:
            return held_here
        make = self.makes.get(value)
        if make is not None and not layout.partial:
            local = make(layout)
        else:
            if make is not None:
                self.get(value, layout.complete)
            reshard = self.reshard(value, layout, use, stale=stale)
            if reshard.start is None:
                local = self._made_anew(value, reshard)
            else:
                held = None if stale and reshard.start == layout else self.find(value, reshard.start)
                if held is None:  # other uses share it
                    held = self.get(value, reshard.start, use)
                local = self.carry(held, reshard, use, stale=stale)
                self._made_at[value, layout] = self.clock
        self._keep(value, layout, local)
        return local

    def _made_anew(self, value: int, reshard: Reshard) -> Any:
        """A value that repeats a smaller one, made from that one."""
        number, computed = self.kinds.definer(value), self.repeated(reshard)
        (source,) = self.kinds.operands(number)
        operand = self.get(source, computed.choice.taken.layouts[0], Use(number, Slot(0), source, computed))
        return self.lower(self.kinds.ops[number], computed, [operand])[0]

    def _stale(self, value: int, layout: Layout) -> bool:
        """Whether a value was gathered so long ago that it is gathered again."""
        made_at = self._made_at.get((value, layout))
        return made_at is not None and self.clock - made_at > _KEPT

    def captured(self, value: Value) -> Any | None:
        """A whole value of the module that a region uses from outside."""
        number = self.kinds.value(value)
        if number is None or number not in self.tensors:
            return None
        return self.get(number, replicated(len(self.tensors[number].shape)))

    def entering(
        self,
        number: int,
        layouts: Sequence[Layout],
        to: Sequence[int] = (),
        *,
        chosen: bool = False,
        slots: Sequence[int] | None = None,
    ) -> list[Any]:
        """The operands of an op in the given layouts, all of them or those in some ``slots``. If the op
        passes them on, ``to`` are the values that they become, and the layouts are ``chosen`` together with
        those of all values."""
        operands, entering = self.kinds.operands(number), list[Any]()
        for i in range(len(operands)) if slots is None else slots:
            use = Use(number, Slot(i), operands[i], to=to[i] if to else -1, chosen=chosen)
            self.note(use, operands[i], layouts[i])
            entering.append(self.get(operands[i], layouts[i], use))
        return entering

    def received(
        self,
        number: int,
        values: Sequence[int],
        given: tuple[Sequence[int], Sequence[Any], Sequence[Layout]],
        homes: Sequence[Layout],
        beside: int = -1,
    ) -> None:
        """Takes values that an op passes on to their homes. ``given`` has their numbers, the local values and
        their layouts. ``beside`` is an op of the block inside the op that they belong to."""
        first = self.kinds.results(number).start - len(self.kinds.operands(number))
        if beside >= 0:
            first = self.kinds.arguments([beside]).start
        homes = self.settled(values, homes)
        for value, home, source, local, layout in zip(values, homes, *given, strict=True):
            self.define(value, layout, local, home)
            use = Use(number, Slot(value - first), source, to=value, chosen=True, beside=beside)
            self.note(use, value, home, start=layout)
            self.get(value, home, use)
            if layout != home and value in self.plan.pinned:
                self.forget(value, layout)

    def of_several(self, number: int) -> Iterator[tuple[int, Use]]:
        """The values that several branches of an op use in another layout than at home, with their purposes.
        They are made before the branches instead of in each of them."""
        by_value: dict[int, dict[int, Use]] = {}
        for branch, ops in enumerate(self.kinds.blocks(number) if self.copied_first else ()):
            for inner in range(ops[0], self.kinds.end(ops[-1])):
                for slot, value in enumerate(self.kinds.operands(inner)):
                    if value in self.copied_first and value in self.tensors:  # it comes from outside
                        by_value.setdefault(value, {}).setdefault(branch, Use(inner, Slot(slot), value))
        for value, uses in by_value.items():
            if len(uses) > 1:
                yield value, next(iter(uses.values()))

    # ---- Ops --------------------------------------------------------------------------------------------

    def give(self, number: int, recipe: Recipe, results: Sequence[Any], operands: int) -> None:
        """Takes the results of an op that is computed, with this many operands, to their homes."""
        for i, (value, local) in enumerate(zip(self.kinds.results(number), results, strict=True)):
            tensor, layout = recipe.tensors[i], recipe.given[i]
            self.tensors[value] = tensor
            if recipe.at_home:
                self.locals[value] = local
                continue
            self._keep(value, layout, local)
            if layout != tensor.home:
                self.get(value, tensor.home, Use(number, Slot(operands + i), value, recipe.computed))
                if value in self.plan.pinned:
                    self.forget(value, layout)

    def homes(self, number: int) -> list[Layout]:
        """The layouts of values that an op passes on: the plan's, or the module's."""
        return self.settled(self.kinds.results(number), self.reading.homes(self.kinds.ops[number]))

    def settled(self, values: Iterable[int], layouts: Sequence[Layout]) -> list[Layout]:
        """The layouts of values that are passed on: the plan's, or these."""
        homes = self.plan.homes
        if not homes:
            return list(layouts)
        return [homes.get(value, layout) for value, layout in zip(values, layouts, strict=True)]

    # ---- Functions --------------------------------------------------------------------------------------

    @cached_property
    def in_bodies(self) -> dict[str, PieceSet]:
        """The axes of the manual computations in which functions are called. A function is written once for
        all calls, so nothing in it is split along these axes."""
        cuts: dict[str, PieceSet] = {}
        waiting = [(op, self.reading.cut_by(op)) for op in self.kinds.having("manual_axes")]
        while waiting:
            op, cut = waiting.pop()
            for name in sorted(named_in(op) & self.functions.keys()):
                if not cut <= cuts.get(name, frozenset()):
                    cuts[name] = cuts.get(name, frozenset()) | cut
                    waiting.append((self.functions[name], cuts[name]))
        return cuts

    def enter(self, cut: PieceSet) -> None:
        """From here on, ops are inside of a manual computation over these axes."""
        self.reading.manual.append(self.reading.manual[-1] | cut)
        self.builder.manual = self.reading.manual[-1]

    def leave(self) -> None:
        """From here on, ops are outside of it again."""
        self.reading.manual.pop()
        self.builder.manual = self.reading.manual[-1]

    def entering_whole(self, layouts: Sequence[Layout]) -> list[Layout]:
        """The layouts in which whole tensors enter or leave one manual computation over all axes of the main
        mesh. Tensors on another mesh are whole."""
        on_main = self.axes.on_main
        return [layout if on_main(layout) else replicated(len(layout.dims)) for layout in layouts]


def purpose_of_reshard(kinds: Kinds, reshard: Reshard, use: Use | None) -> Purpose:
    """The purpose of what a reshard sends for a use of a value; what is sent for none in particular is for
    the op that makes the value."""
    value_of = kinds.listing.value
    if use is None:
        number, value = kinds.definer(reshard.value), value_of(reshard.value)
        op = kinds.ops[number] if number >= 0 else value.owner.owner
        return Purpose(op, Slot(len(op.operands)), value)
    return Purpose(
        kinds.ops[use.op],
        use.slot,
        value_of(use.value),
        start=reshard.start,
        goal=reshard.goal,
        computed=use.computed,
        to=None if use.to < 0 else value_of(use.to),
        chosen=use.chosen,
        beside=None if use.beside < 0 else kinds.ops[use.beside],
    )

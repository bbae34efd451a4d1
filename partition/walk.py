"""The walk over an annotated module: which values each op needs, in which layouts, and what it gives.

Who decides a plan (``facts/recording.py``) and who writes its program (``writing/writer.py``) are walks: they
ask for values alike, and in the same order. They differ in what a local value is, and in that the one decides
each reshard that the other carries out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..program.mlir.modules import named_in
from .choice.purposes import Computed, Use
from .facts.annotated import Annotated
from .facts.bypasses import Bypasses
from .facts.reading import Reading, Tensor, static_shape
from .facts.recipes import Recipe, Recipes
from .layouts import Layout, Shape, replicated
from .plan import Plan, Reshard
from .writing.building import Builder, Scope

_KEPT = 64  # ops for which what was gathered is kept, where memory is short


class RefusedError(ShardlogError):
    """An op cannot run on each device."""


class Walk(ABC):
    """The values of a module, and ops, by their numbers in ``kinds``, as a plan has them. A *local* value is
    what a device has of a value in a layout, whatever stands for it."""

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
        self.tensors: dict[int, Tensor] = {}
        self.makes: dict[int, Callable[[Layout], Any]] = {}  # values that take no data
        self.locals: dict[int, Any] = {}  # of values that were made at home, there wherever the value is
        self.layouts: dict[int, tuple[Layout, ...]] = {}  # other ones in which values have been made
        self.clock = 0  # ops so far
        self._made_at: dict[tuple[int, Layout], int] = {}
        self._types: dict[tuple[Any, Layout], Any] = {}
        self._shapes: dict[int, Shape] = {}  # by the numbers of types

    # ---- What becomes of what is decided ----------------------------------------------------------------

    @property
    @abstractmethod
    def scope(self) -> Scope:
        """The local values that are there now."""

    @abstractmethod
    def op(self, number: int) -> bool:
        """Takes an op; whether the op of the device program is its copy."""

    @abstractmethod
    def reshard(self, value: int, layout: Layout, use: Use | None, *, stale: bool) -> Reshard:
        """How a value is taken to a layout in which it is not there; ``stale``: it is there, but is made
        once more."""

    @abstractmethod
    def carry(self, held: Any, reshard: Reshard, use: Use | None, *, stale: bool) -> Any:
        """A local value after the steps of a reshard; ``stale``: of a value that was made so before."""

    @abstractmethod
    def repeated(self, reshard: Reshard) -> Computed:
        """How the op that makes a value is computed once more, where that is done in place of a reshard."""

    @abstractmethod
    def lower(self, op: Any, computed: Computed, values: list[Any]) -> Sequence[Any]:
        """The results of an op by its lowering, of operands as that needs them."""

    @abstractmethod
    def note(self, use: Use, value: int, layout: Layout, *, start: Layout | None = None) -> None:
        """Takes note that a value is handed on, or needed, in a layout; ``start``: out of another region, in
        which it is so."""

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

    def shape(self, value: int) -> Shape:
        """The shape of a value; that of a scalar for what is no tensor of static shape."""
        type_ = int(self.kinds.listing.types[value])
        if type_ not in self._shapes:
            self._shapes[type_] = static_shape(self.kinds.listing.value(value).type) or ()
        return self._shapes[type_]

    def define(
        self, value: int, layout: Layout, local: Any, home: Layout | None = None, *, kept: bool = False
    ) -> None:
        """Records the local value that a value of the module has in a layout; ``kept``: it is its copy."""
        if value not in self.tensors:
            self.tensors[value] = self.recipes.tensor(self.shape(value), home or layout, kept=kept)
        self._keep(value, layout, local)

    def define_all(self, values: Iterable[int], layouts: Iterable[Layout], locals_: Iterable[Any]) -> None:
        """The same of several values."""
        for value, layout, local in zip(values, layouts, locals_, strict=True):
            self.define(value, layout, local)

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

    def get(self, value: int, layout: Layout, use: Use | None = None) -> Any:
        """A value in a layout, resharded from another one where it is not available here."""
        found = self.find(value, layout)
        stale = self.plan.again and not (found is None or use is None) and self._stale(value, layout)
        if found is not None and not stale:
            return found
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
                if held is None:  # it is made for other uses too
                    held = self.get(value, reshard.start, use)
                local = self.carry(held, reshard, use, stale=stale)
                self._made_at[value, layout] = self.clock
        self._keep(value, layout, local)
        return local

    def _made_anew(self, value: int, reshard: Reshard) -> Any:
        """What repeats a smaller value, made of that."""
        number, computed = self.kinds.definer(value), self.repeated(reshard)
        (source,) = self.kinds.operands(number)
        operand = self.get(source, computed.choice.taken.layouts[0], Use(number, 0, source, computed))
        return self.lower(self.kinds.ops[number], computed, [operand])[0]

    def _stale(self, value: int, layout: Layout) -> bool:
        """Whether a value was gathered so long ago that it is gathered again."""
        made = self._made_at.get((value, layout))
        return made is not None and self.clock - made > _KEPT

    def captured(self, value: Any) -> Any | None:
        """A value of the module that a region uses from outside, whole."""
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
        """The operands of an op in the given layouts, and the values that they become (``to``) if it hands
        them on, in layouts that are ``chosen`` with those of all values; or those in some ``slots``."""
        operands, found = self.kinds.operands(number), list[Any]()
        for i in range(len(operands)) if slots is None else slots:
            use = Use(number, i, operands[i], to=to[i] if to else -1, chosen=chosen)
            self.note(use, operands[i], layouts[i])
            found.append(self.get(operands[i], layouts[i], use))
        return found

    def received(
        self,
        number: int,
        values: Sequence[int],
        given: tuple[Sequence[int], Sequence[Any], Sequence[Layout]],
        homes: Sequence[Layout],
        beside: int = -1,
    ) -> None:
        """Takes values that an op hands on to their homes. ``given``: what becomes of which they are, the
        local values, and their layouts. ``beside``: an op of the block in the op in which they are."""
        first = self.kinds.results(number).start - len(self.kinds.operands(number))
        if beside >= 0:
            first = self.kinds.arguments([beside]).start
        homes = self.settled(values, homes)
        for value, home, source, local, layout in zip(values, homes, *given, strict=True):
            self.define(value, layout, local, home)
            use = Use(number, value - first, source, to=value, chosen=True, beside=beside)
            self.note(use, value, home, start=layout)
            self.get(value, home, use)
            if layout != home and value in self.plan.pinned:
                self.forget(value, layout)

    def of_several(self, number: int) -> Iterator[tuple[int, Use]]:
        """The values that are made first in another layout than at home and that several branches of an op
        use, and for what: they are made before the branches, and not in each of them."""
        found: dict[int, dict[int, Use]] = {}
        for branch, ops in enumerate(self.kinds.blocks(number) if self.copied_first else ()):
            for inner in range(ops[0], self.kinds.end(ops[-1])):
                for slot, value in enumerate(self.kinds.operands(inner)):
                    if value in self.copied_first and value in self.tensors:  # it comes from around
                        found.setdefault(value, {}).setdefault(branch, Use(inner, slot, value))
        for value, uses in found.items():
            if len(uses) > 1:
                yield value, next(iter(uses.values()))

    # ---- Ops --------------------------------------------------------------------------------------------

    def give(self, number: int, recipe: Recipe, made: Sequence[Any], operands: int) -> None:
        """Takes the results of an op that is computed, which has so many operands, to where they live."""
        for i, (value, local) in enumerate(zip(self.kinds.results(number), made, strict=True)):
            tensor, layout = recipe.tensors[i], recipe.given[i]
            self.tensors[value] = tensor
            if recipe.at_home:
                self.locals[value] = local
                continue
            self._keep(value, layout, local)
            if layout != tensor.home:
                self.get(value, tensor.home, Use(number, operands + i, value, recipe.computed))
                if value in self.plan.pinned:
                    self.forget(value, layout)

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

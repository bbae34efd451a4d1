"""Walks over an annotated module and writes the program that each device runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError
from ..program.function import location
from ..program.mlir.modules import (
    boundary_attributes,
    children,
    entries_of,
    main_function,
    named_in,
    symbols,
)
from ..program.shardings import Shardings, manual_axes
from ..program.signature import text_of
from .building import OUTSIDE, Builder, Scope, bytes_of, element_of
from .bypasses import Bypasses
from .choice.choosing import Chooser, Way
from .choice.knowledge import Knowledge, inside
from .choice.purposes import Computed, Purpose, purpose_of
from .choice.variables import Spot
from .finishing.passes import COUNTED, Draft
from .forms import Form
from .kinds import Kind, Kinds
from .layouts import Axes, Layout, replicated
from .local import alone
from .local.flow import FLOW, empty, spread_scalar
from .local.local import COMPUTED, Site
from .local.windows import WINDOWS
from .reading import Reading, attribute_or_none
from .recipes import Chosen, Recipe, Recipes
from .reshards.planning import Planner
from .values import Values


class RefusedError(ShardlogError):
    """An op cannot run on each device."""


class Ends(NamedTuple):
    """How a function is called: the layouts of its arguments, the values of the module that it returns, and
    their layouts, which are those that they have."""

    takes: list[Layout]
    returned: list[Any]
    gives: list[Layout]


class Partitioner(Values):
    """Partitions one module."""

    def __init__(
        self,
        module: ir.Module,
        shardings: Shardings,
        axes: Axes,
        chooser: Chooser,
        planner: Planner,
        form: Form,
        channel: int,
        moved: Mapping[Any, Layout] | None = None,
        ways: Mapping[Any, Way] | None = None,
        pinned: Collection[Any] = (),
        first: Mapping[Any, Layout] | None = None,
        recording: bool = False,
        again: bool = False,
        kinds: Kinds | None = None,
        refuses: bool = True,
    ) -> None:
        builder = Builder(axes, form, channel, chooser.reader.traits)
        kinds = kinds or Kinds(module)
        super().__init__(kinds, axes, planner, builder, recording=recording, again=again)
        self.moved = moved or {}  # values that live elsewhere than the module says
        self.ways = ways or {}  # to compute ops, by their first results
        self.pinned = pinned  # values that are used as they are at home
        for value, layout in (first or {}).items():
            if (value_number := kinds.value(value)) is not None and not again:
                self.first[value_number] = layout
        self.computed_as: list[tuple[Any, Knowledge, Way]] = []
        self.old, self.shardings, self.chooser, self.form = module, shardings, chooser, form
        self.traits = chooser.reader.traits
        self.functions = symbols(module, "func.func")
        self.main = main_function(self.functions)
        self.written: dict[str, Any] = {}
        self.ends: dict[str, Ends] = {}  # of the other functions
        self._shardings: dict[Layout, Any] = {}
        self.boundary: tuple[list[Layout], list[Layout]] = [], []  # of the main function
        self.refuses = refuses
        self.reading = Reading(shardings, axes)
        self.bypasses = Bypasses(kinds, chooser.reader, self.functions, self.reading)
        self.recipes = Recipes(chooser, self.reading, builder)

    def run(self) -> Draft:
        """The program of each device, up to what decides how much it sends."""
        made = ir.Module.create(ir.Location.unknown(self.old.context))
        for name in self.old.operation.attributes:
            made.operation.attributes[name] = self.old.operation.attributes[name]
        self.module = made
        if self.form == "sdy-manual":
            for mesh in symbols(self.old, "sdy.mesh").values():
                mesh.operation.clone(ir.InsertionPoint(made.body))
        count = ir.IntegerAttr.get(self.builder.i32, self.axes.count)
        one = ir.IntegerAttr.get(self.builder.i32, 1)
        replicas = self.form == "replica"
        made.operation.attributes["mhlo.num_partitions"] = one if replicas else count
        made.operation.attributes["mhlo.num_replicas"] = count if replicas else one
        self._entry(self.functions[self.main])
        having = chain.from_iterable(map(self.kinds.numbers_having, OUTSIDE))
        annotated = not all(number in self.copies for number in having)
        draft = Draft(made, self.builder.sent, self.traits, self.axes, self.form, annotated)
        return draft.after(COUNTED)

    # ---- Functions --------------------------------------------------------------------------------------

    def _entry(self, func: Any) -> None:
        """Writes the main function, of whole tensors or of parts."""
        around = self.form == "sdy-manual" and self.axes.count > 1  # XLA takes none for one device
        self.boundary = arguments, results = self.reading.boundary(func)
        type_ = func.type
        if around:
            arguments, results = self._entering(arguments), self._entering(results)
        else:
            ends = (type_.inputs, arguments), (type_.results, results)
            takes, gives = ([*map(self.local, *end)] for end in ends)
            type_ = ir.FunctionType.get(takes, gives)
        made, ops = self._opened(func)
        made.attributes["function_type"] = ir.TypeAttr.get(type_)
        self._name_boundary(func, made, self.boundary if around else None)
        builder, block = self.builder, made.regions[0].blocks[0]
        if around:
            whole = block.create_before(*type_.inputs, arg_locs=[func.location] * len(arguments))
            builder.scope = Scope(whole)
            builder.loc = func.location
            manual = self._manual(func, whole, arguments, results)
            block.append_to(manual.regions[0])
        builder.scope = Scope(block)
        self.arguments(ops, block, arguments)
        returned = self.block(ops, results)
        builder.loc = func.location
        if around:
            for i, (inside, outside) in enumerate(zip(results, self.boundary[1], strict=True)):
                if inside != outside:  # XLA slices it
                    returned[i] = builder.fenced(returned[i])
            builder.op("sdy.return", returned, [])
            builder.scope = Scope(whole)
            returned = list(manual.results)
        builder.op("func.return", returned, [])

    def function(self, func: Any) -> Ends:
        """Writes the function that devices run in place of one of the module, when it is first asked for,
        and returns its ends."""
        name = text_of(func.attributes["sym_name"])
        if name not in self.ends:
            made, ops = self._opened(func)
            block, outer = made.regions[0].blocks[0], self.builder.scope
            self.enter(self._in_bodies.get(name, frozenset()))
            arguments = self.settled(func.arguments, self.reading.boundary(func)[0])
            self.builder.scope = Scope(block)
            self.arguments(ops, block, arguments)
            returned = self.block(ops)
            self.builder.loc = func.location
            self.builder.op("func.return", returned, [])
            self.builder.scope = outer
            self.leave()
            type_ = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in returned])
            made.attributes["function_type"] = ir.TypeAttr.get(type_)
            results = [self.tensors[value].home for value in self.kinds.operands(ops[-1])]
            self.ends[name] = Ends(arguments, list(self.kinds.ops[ops[-1]].operands), results)
        return self.ends[name]

    @cached_property
    def _in_bodies(self) -> dict[str, frozenset[int]]:
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
        """What is written now is inside of a manual computation over these axes."""
        self.reading.manual.append(self.reading.manual[-1] | cut)
        self.builder.manual = self.reading.manual[-1]

    def leave(self) -> None:
        """What is written now is outside of it again."""
        self.reading.manual.pop()
        self.builder.manual = self.reading.manual[-1]

    def _opened(self, func: Any) -> tuple[Any, list[int]]:
        """A copy of a function, in which the program is written, and its ops."""
        name = text_of(func.attributes["sym_name"])
        if name in self.written:  # as it is, for a region
            self.written[name].erase()
        self.written[name] = made = func.operation.clone(ir.InsertionPoint(self.module.body)).operation
        for label in list(made.attributes):
            if label not in ("sym_name", "sym_visibility", "function_type"):
                del made.attributes[label]
        (ops,) = self.open(self.kinds.listing.functions[name], made)
        return made, ops

    def open(self, number: int, copy: Any = None) -> list[list[int]]:
        """The ops in each block of an op, of which there is a copy; theirs are taken down."""
        blocks = self.kinds.blocks(number)
        self.copies.update(zip(chain(*blocks), children(copy or self.copies[number]), strict=True))
        return blocks

    def _entering(self, layouts: Sequence[Layout]) -> list[Layout]:
        """The layouts in which whole tensors enter one manual computation over all axes of the main mesh, or
        leave it: those on another mesh whole."""
        on_main = self.axes.on_main
        return [layout if on_main(layout) else replicated(len(layout.dims)) for layout in layouts]

    def _name_boundary(self, func: Any, made: Any, whole: tuple[list[Layout], list[Layout]] | None) -> None:
        """Copies the attributes of arguments and results; shardings, those of the layouts, only where the
        boundary has ``whole`` tensors."""
        manual = {"mhlo.sharding": ir.StringAttr.get("{manual}")}
        for number, label in enumerate(("arg_attrs", "res_attrs")):
            entries = list[Any]()
            for i, entry in enumerate(boundary_attributes(func, label)):
                given = attribute_or_none(entry, "sdy.sharding")
                said = None if given is None or whole is None else self._sharding(whole[number][i])
                if said is not None and said == given:
                    entries.append(entry)
                    continue
                kept = entries_of(entry, "sdy.sharding")
                kept |= {} if said is None else {"sdy.sharding": said}
                entries.append(ir.DictAttr.get(kept | manual if self.form == "manual" else kept))
            made.attributes[label] = ir.ArrayAttr.get(entries)

    def _manual(self, func: Any, block: Any, arguments: list[Layout], results: list[Layout]) -> Any:
        """A manual computation over all axes, from and to the function's whole tensors."""
        mesh = self.axes.mesh
        assert mesh is not None
        attributes = {
            "in_shardings": sdy.TensorShardingPerValueAttr.get(list(map(self._sharding, arguments))),
            "out_shardings": sdy.TensorShardingPerValueAttr.get(list(map(self._sharding, results))),
            "manual_axes": manual_axes(name for name, _ in mesh.axes),
        }
        operands = list(block.arguments)
        for i, layout in enumerate(arguments):
            if (
                layout.partial
            ):  # Shardy lets what a constraint gives be reduced, even one that changes nothing
                said = {"sharding": self._sharding(layout)}
                operands[i] = self.builder.one(
                    "sdy.sharding_constraint", [operands[i]], operands[i].type, said
                )
        return self.builder.op("sdy.manual_computation", operands, func.type.results, attributes, regions=1)

    def _sharding(self, layout: Layout) -> Any:
        """The attribute of a layout."""
        if layout not in self._shardings:
            self._shardings[layout] = self.shardings.attribute(self.axes.sharding(layout), closed=True)
        return self._shardings[layout]

    # ---- Blocks -----------------------------------------------------------------------------------------

    def arguments(
        self, ops: Sequence[int], block: Any, layouts: Sequence[Layout], some: Sequence[int] | None = None
    ) -> None:
        """Makes the arguments of a copy of the block with these ops parts of what that takes, or ``some`` of
        them."""
        types = [argument.type for argument in block.arguments]
        values, locals_ = self.kinds.arguments(ops), self.parts(block, layouts)
        for n in range(len(types)) if some is None else some:
            self.define(values[n], types[n], layouts[n], locals_[n], kept=True)

    def parts(self, block: Any, layouts: Sequence[Layout]) -> list[Any]:
        """The arguments of a copy of a block, made parts of what that takes."""
        for local, layout in zip(block.arguments, layouts, strict=True):
            local.set_type(self.local(local.type, layout))
        return list(block.arguments)

    def homes(self, op: Any) -> list[Layout]:
        """The layouts of what an op hands on: as all ops together say, or as the module says."""
        return self.settled(op.results, self.reading.homes(op))

    def settled(self, values: Iterable[Any], layouts: Sequence[Layout]) -> list[Layout]:
        """The layouts of values that are handed on: as all ops together say, or these."""
        if not self.moved:
            return list(layouts)
        return [self.moved.get(value, layout) for value, layout in zip(values, layouts, strict=True)]

    def entering(
        self,
        number: int,
        layouts: Sequence[Layout],
        to: Sequence[Any] = (),
        *,
        chosen: bool = False,
        slots: Sequence[int] | None = None,
    ) -> list[Any]:
        """The operands of an op in the given layouts, and the results that they become (``to``) if it hands
        them on, in layouts that are ``chosen`` with those of all values; or those in some ``slots``."""
        op, operands = self.kinds.ops[number], self.kinds.operands(number)
        return [
            self.get(
                operands[i],
                layouts[i],
                Purpose(op, i, op.operands[i], to=to[i] if to else None, chosen=chosen),
            )
            for i in (range(len(operands)) if slots is None else slots)
        ]

    def received(
        self,
        op: Any,
        values: Sequence[Any],
        numbers: Sequence[int],
        given: tuple[Sequence[Any], Sequence[Any], Sequence[Layout]],
        homes: Sequence[Layout],
        beside: Any = None,
    ) -> None:
        """Takes values that an op hands on to their homes. ``given``: what becomes of which they are, the
        local values, and their layouts. ``beside``: an op of the block in the op in which they are."""
        homes = self.settled(values, homes)
        ends = zip(values, numbers, homes, *given, strict=True)
        for value, number, home, source, local, layout in ends:
            self.define(number, value.type, layout, local, home)
            slot = len(op.operands) + value.result_number if beside is None else value.arg_number
            purpose = Purpose(op, slot, source, start=layout, to=value, chosen=True, beside=beside)
            self.get(number, home, purpose)
            if layout != home and value in self.pinned:
                self.forget(number, layout)

    def block(
        self,
        ops: Sequence[int],
        results: Sequence[Layout] | None = None,
        to: Sequence[Any] = (),
        slots: Sequence[int] | None = None,
    ) -> list[Any]:
        """Writes the ops of a block, and returns the operands of its terminator in the given layouts, or at
        home; they become results of an op, or what its next turn takes (``to``), where a block is a branch
        or the body of a loop, which takes those in some ``slots``. What is no op of the device program goes
        from the copy of the block."""
        scope, reader, copies, gone = self.builder.scope, self.chooser.reader, self.copies, list[Any]()
        *computed, last = ops
        for number in computed:
            scope.move(copies[number])
            if not self._op(number, self.kinds.of(number, reader)):
                gone.append(copies[number])
        gone.append(copies[last])
        scope.move(gone[-1])
        self.builder.loc = self.kinds.ops[last].location
        if results is None:
            returned = [self.get(value, self.tensors[value].home) for value in self.kinds.operands(last)]
        else:
            returned = self.entering(last, results, to, chosen=bool(to), slots=slots)
        for copy in reversed(gone):
            copy.erase()
        scope.move(None)
        return returned

    def _op(self, number: int, kind: Kind) -> bool:
        """Writes an op; whether that is its copy."""
        self.clock += 1
        kinds = self.kinds
        known = kind.known or self.chooser.reader.knowledge(kinds.ops[number])
        if self.builder.manual:
            known = inside(known, self.builder.manual)
        operands = kinds.operands(number)
        if self.bypasses.take(number, known):
            return False
        if self.bypasses.touch(operands):
            known, operands = self.bypasses.reading(number, known)
        chosen = self._chosen(kinds.ops[number]) if self.ways or self.moved else None
        flow = FLOW.get(known.lowering)
        tensors = map(self.tensors.get, operands)
        recipe = None if flow else self.recipes.find(kind, known, tensors, chosen)
        if recipe is not None:
            return self._computed(number, kind, recipe, operands)
        op = kinds.ops[number]
        if known.refused and self.refuses:
            hint = f"{op.name} cannot be partitioned: {known.refused}"
            raise RefusedError(f"{op.name} cannot run on each device", where=location(op), hint=hint)
        self.builder.loc = op.location
        if flow is not None:
            return bool(flow(self, number, known))
        return self.computed(number, known, operands)

    def computed(self, number: int, known: Knowledge, operands: list[int] | None = None) -> bool:
        """Writes an op that is computed, in the cheapest way, and its results where they live; whether that
        is its copy."""
        if known.expands and spread_scalar(self, number, known):
            return False
        if known.gives_nothing:
            return empty(self, number)
        kind, op = self.kinds.of(number, self.chooser.reader), self.kinds.ops[number]
        operands = self.kinds.operands(number) if operands is None else operands
        chosen = self._chosen(op) if self.ways or self.moved else None
        recipe = self.recipes.of(op, kind, known, [self.tensors[value] for value in operands], chosen)
        if known.names_functions or len(op.regions):
            self._keep_named(op)
        return self._computed(number, kind, recipe, operands)

    def _computed(self, number: int, kind: Kind, recipe: Recipe, operands: Sequence[int]) -> bool:
        op, results = self.kinds.ops[number], self.kinds.results(number)
        computed = recipe.computed
        self._note(number, recipe)
        values = self._needed(number, recipe, operands) if recipe.needed else []
        if computed.known.lowering == "shift":
            values.append(self.bypasses.filling(number, self.builder, self.get))
        if recipe.kept:
            copy = self.copies[number]
            recipe.write(copy, kind.outside, values)
            if recipe.at_home:
                self.kept.add(number)
                self.tensors.update(zip(results, recipe.tensors, strict=True))
                return True
            self.builder.scope.pass_by(copy)
            made = copy.results
        else:
            made = self._lowered(op, computed, values)
        for i, (value, local, tensor) in enumerate(zip(results, made, recipe.tensors, strict=True)):
            self.tensors[value], layout = tensor, recipe.given[i]
            if recipe.at_home:
                self.locals[value] = local
                continue
            self._keep(value, layout, local)
            if layout != tensor.home:
                self.get(value, tensor.home, purpose_of(op, computed, len(operands) + i, op.results[i]))
                if op.results[i] in self.pinned:
                    self.forget(value, layout)
        return recipe.kept

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
        if self.builder.manual:
            known = inside(known, self.builder.manual)
        held = tensor.home, layout
        choice = self.chooser.choose(known, held, frozenset())
        needed, given = choice.taken.layouts
        if given != layout or tensor.made:
            return None
        width = bytes_of(element_of(op.operands[0]))
        here = [each for each in self.known_layouts(operands[0]) if self.find(operands[0], each) is not None]
        plan, _ = self.cheapest(operands[0], here, needed, width)
        if self.planner.with_steps(plan, width) >= price:
            return None
        computed = Computed(known, held, choice)
        operand = self.get(operands[0], needed, purpose_of(op, computed, 0, op.operands[0]))
        return self._lowered(op, computed, [operand])[0]

    def _chosen(self, op: Any) -> Chosen:
        """What was chosen for an op among all ops."""
        way = self.ways.get(op.results[0]) if self.ways and len(op.results) else None
        return tuple([self.moved.get(value) for value in op.results]), way

    def _note(self, number: int, recipe: Recipe) -> None:
        """Takes down how an op lies, where that is asked, and how it is computed, if that has a price."""
        op = self.kinds.ops[number]
        known, taken = recipe.computed.known, recipe.computed.choice.taken
        if self.recording:
            values = *self.bypasses.taken(number), *op.results
            spot = Spot(known, values, recipe.computed.held, recipe.free, any(taken.sends))
            self.spots.append((op, spot))
        if self.planner.prices.all_work or known.multiplies:
            self.computed_as.append((op, known, taken.factors))

    def _needed(self, number: int, recipe: Recipe, operands: Sequence[int]) -> list[Any]:
        """The operands that an op needs besides those that its copy has."""
        values, op = list[Any](), self.kinds.ops[number]
        self.builder.loc = op.location
        taken = self.bypasses.taken(number)
        for slot, layout, home in recipe.needed:
            value = operands[slot]
            local = self.at_home(value) if home else None
            if local is None:
                local = self.builder.scope.find((value, layout))
                if local is None or self.again:
                    purpose = purpose_of(op, recipe.computed, slot, taken[slot])
                    local = self.get(value, layout, purpose)
            values.append(local)
        return values

    def _lowered(self, op: Any, computed: Computed, values: list[Any]) -> list[Any]:
        """The results of an op by its lowering, of operands as that needs them."""
        builder, known = self.builder, computed.known
        builder.loc = op.location
        site = Site(builder, op, computed, self.captured)
        with site.sends(len(op.operands)):
            results = _COMPUTED[known.lowering](site, values)
        if known.looks_up:
            builder.looked_up.update(results)
        return results

    def _keep_named(self, op: Any) -> None:
        """Functions that an op names or its regions call, as comparisons do: they stay as they are."""
        for name in sorted(named_in(op)):
            if name in self.functions and name not in self.written:
                func = self.functions[name].operation
                self.written[name] = made = func.clone(ir.InsertionPoint(self.module.body))
                for label in ("arg_attrs", "res_attrs"):
                    entries = [
                        ir.DictAttr.get(entries_of(e, *OUTSIDE)) for e in boundary_attributes(made, label)
                    ]
                    if label in made.attributes:
                        made.attributes[label] = ir.ArrayAttr.get(entries)
                self._keep_named(func)


_COMPUTED = {**COMPUTED, **WINDOWS, "once": alone.once, "spread": alone.spread}

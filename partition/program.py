"""Walks over an annotated module and writes the program that each device runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError
from ..program.function import location
from ..program.mlir.modules import boundary_attributes, main_function, symbols
from ..program.shardings import Shardings, manual_axes
from .building import Builder, Form, Scope, Sent, bytes_of, element_of
from .choice.choosing import Chooser, Way
from .choice.homes import Need
from .choice.knowledge import Knowledge
from .choice.purposes import Purpose, purpose_of
from .kinds import Kind, Kinds
from .layouts import Axes, Layout, replicated
from .local import alone
from .local.flow import FLOW, spread_scalar
from .local.local import COMPUTED, Site
from .local.windows import WINDOWS
from .reading import Reading, Tensor, static_shape
from .recipes import Recipe, Recipes
from .reshards.planning import Planner
from .reshards.steps import carry_out


class Partitioner:
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
        recording: bool = False,
        again: bool = False,
        kinds: Kinds | None = None,
    ) -> None:
        self.kinds = kinds or Kinds(module)
        self.moved = moved or {}  # values that live elsewhere than the module says
        self.ways = ways or {}  # to compute ops, by their first results
        self.recording = recording  # of how ops lie, and what is needed where
        self.again = again  # what was gathered long ago is gathered again, and not kept
        self.clock = 0  # ops so far
        self.made_at: dict[tuple[Any, Layout], int] = {}
        self.computed_as: list[tuple[Any, Knowledge, Way]] = []
        self.spots: list[tuple[Any, Knowledge, tuple[Layout, ...], frozenset[int]]] = []
        self.needs: list[tuple[Any, Need]] = []
        self.old, self.shardings, self.axes = module, shardings, axes
        self.chooser, self.planner, self.form = chooser, planner, form
        self.builder = Builder(axes, form, channel)
        self.functions = symbols(module, "func.func")
        self.main = main_function(self.functions)
        self.tensors: dict[Any, Tensor] = {}
        self.locals: dict[Any, Any] = {}  # of values that were made at home, there wherever the value is
        self.layouts: dict[Any, tuple[Layout, ...]] = {}  # other ones in which values have been made
        self.written: dict[str, Any] = {}
        self._shardings: dict[Layout, Any] = {}
        self.boundary: tuple[list[Layout], list[Layout]] = [], []  # of the main function
        self.refuses = True
        self.reading = Reading(shardings, axes)
        self.recipes = Recipes(chooser, self.reading, self.builder)

    def run(self) -> tuple[ir.Module, list[Sent]]:
        """The module of each device, and its collectives."""
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
        self.function(self.functions[self.main])
        return made, self._alive()

    def _alive(self) -> list[Sent]:
        """The collectives whose results are used. Others are erased, with what was made for them alone."""
        alive = []
        for collective in reversed(self.builder.sent):
            if any(True for _ in collective.op.results[0].uses):
                alive.append(collective)
                continue
            waiting: list[Any] = [collective.op]
            while waiting:
                op = waiting.pop()
                sources = [value.owner for value in op.operands]
                op.erase()
                for source in sources:
                    if isinstance(source, ir.Block) or source.name not in _PURE or source in waiting:
                        continue
                    if not any(True for _ in source.results[0].uses):
                        waiting.append(source)
        whole: dict[int, Purpose] = {}
        for collective in alive:
            if isinstance(about := collective.purpose, tuple):
                collective.purpose = whole.setdefault(
                    id(about), purpose_of(about, len(about[0].operands), None)
                )
        return alive[::-1]

    # ---- Functions --------------------------------------------------------------------------------------

    def function(self, func: Any) -> Any:
        """The function that devices run in place of one of the module, written when it is first asked for."""
        name = ir.StringAttr(func.attributes["sym_name"]).value
        if name in self.written:
            return self.written[name]
        entry = name == self.main
        around = entry and self.form == "sdy-manual" and self.axes.main >= 0
        arguments = self.reading.boundary(func, "arg_attrs", func.type.inputs)
        results = self.reading.boundary(func, "res_attrs", func.type.results)
        if entry:
            self.boundary = arguments, results
        if around:
            arguments, results = self._entering(arguments), self._entering(results)
        inputs = [
            self.local(type_, layout) for type_, layout in zip(func.type.inputs, arguments, strict=True)
        ]
        outputs = [
            self.local(type_, layout) for type_, layout in zip(func.type.results, results, strict=True)
        ]
        type_ = func.type if around else ir.FunctionType.get(inputs, outputs)
        attributes = {"sym_name": func.attributes["sym_name"], "function_type": ir.TypeAttr.get(type_)}
        if "sym_visibility" in func.attributes:
            attributes["sym_visibility"] = func.attributes["sym_visibility"]
        self.written[name] = made = ir.Operation.create(
            "func.func",
            attributes=attributes,
            regions=1,
            loc=func.location,
            ip=ir.InsertionPoint(self.module.body),
        )
        if entry:
            self._name_boundary(func, made, self.boundary if around else None)
        block = made.regions[0].blocks.append(*type_.inputs, arg_locs=[func.location] * len(inputs))
        outer, builder = self.builder.scope, self.builder
        builder.scope = Scope(block)
        if around:
            block = self._manual(func, block, inputs, arguments, results)
            builder.scope = Scope(block)
        body = func.regions[0].blocks[0]
        self.arguments(body, block, arguments)
        returned = self.block(body, results)
        builder.loc = func.location
        if around:
            for i, (inside, outside) in enumerate(zip(results, self.boundary[1], strict=True)):
                if inside != outside:  # XLA slices it
                    returned[i] = builder.fenced(returned[i])
            builder.op("sdy.return", returned, [])
            parent = block.owner
            builder.scope = Scope(made.regions[0].blocks[0])
            returned = list(parent.results)
        builder.op("func.return", returned, [])
        builder.scope = outer
        return made

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
            entries = []
            for i, entry in enumerate(boundary_attributes(func, label)):
                kept = {each.name: each.attr for each in entry}
                if kept.pop("sdy.sharding", None) is not None and whole:
                    kept["sdy.sharding"] = self._sharding(whole[number][i])
                entries.append(ir.DictAttr.get(kept | manual if self.form == "manual" else kept))
            made.attributes[label] = ir.ArrayAttr.get(entries)

    def _manual(
        self, func: Any, block: Any, inputs: list[Any], arguments: list[Layout], results: list[Layout]
    ) -> Any:
        """The body of a manual computation over all axes, from and to the function's whole tensors."""
        mesh = self.axes.mesh
        assert mesh is not None
        attributes = {
            "in_shardings": sdy.TensorShardingPerValueAttr.get(list(map(self._sharding, arguments))),
            "out_shardings": sdy.TensorShardingPerValueAttr.get(list(map(self._sharding, results))),
            "manual_axes": manual_axes(name for name, _ in mesh.axes),
        }
        op = self.builder.op(
            "sdy.manual_computation", list(block.arguments), func.type.results, attributes, regions=1
        )
        return op.regions[0].blocks.append(*inputs, arg_locs=[func.location] * len(inputs))

    def _sharding(self, layout: Layout) -> Any:
        """The attribute of a layout."""
        if layout not in self._shardings:
            self._shardings[layout] = self.shardings.attribute(self.axes.sharding(layout), closed=True)
        return self._shardings[layout]

    # ---- Values -----------------------------------------------------------------------------------------

    def local(self, type_: Any, layout: Layout) -> Any:
        """The type of the part that a device holds."""
        shape = static_shape(type_)
        if shape is None or not any(layout.dims):
            return type_
        return self.builder.tensor(
            self.axes.local(shape, layout.dims), ir.RankedTensorType(type_).element_type
        )

    def define(self, value: Any, layout: Layout, local: Any, home: Layout | None = None) -> None:
        """Records the local value that a value of the module has in a layout."""
        if value not in self.tensors:
            self.tensors[value] = self.recipes.tensor(static_shape(value.type) or (), home or layout)
        self._keep(value, layout, local)

    def _keep(self, value: Any, layout: Layout, local: Any) -> None:
        self.builder.scope.known[value, layout] = local
        self.layouts[value] = (*self.layouts.get(value, ()), layout)

    def known_layouts(self, value: Any) -> tuple[Layout, ...]:
        """The layouts in which a value has been made in some scope."""
        home = (self.tensors[value].home,) if value in self.locals else ()
        return (*home, *self.layouts.get(value, ()))

    def find(self, value: Any, layout: Layout) -> Any:
        """The local value that there is here in a layout, or None."""
        local = self.locals.get(value)
        if local is not None and self.tensors[value].home == layout:
            return local
        return self.builder.scope.find((value, layout))

    def get(self, value: Any, layout: Layout, purpose: Purpose | None = None) -> Any:
        """A value in a layout, resharded from the cheapest one in which it is available here."""
        builder = self.builder
        found = self.find(value, layout)
        stale = self.again and found is not None and self._stale(value, layout)
        if self.recording and purpose is not None and purpose.computed is None:
            self.needs.append((purpose.op, Need(value, layout)))
        if found is not None and not stale:
            return found
        tensor = self.tensors[value]
        if tensor.make is not None and not layout.partial:
            local = tensor.make(layout)
        else:
            if tensor.make is not None:
                self.get(value, layout.complete)
            plans = [
                (self.planner.plan(tensor.shape, known, layout), known)
                for known in dict.fromkeys(self.known_layouts(value))
                if not (stale and known == layout) and self.find(value, known) is not None
            ]
            plan, start = min(plans, key=lambda pair: self.planner.total(pair[0], 1))
            if plan.price and purpose is not None:
                builder.purpose = replace(purpose, start=start, goal=layout)
            held = self.find(value, start)
            if stale:  # or XLA takes both for one
                held = builder.one("stablehlo.optimization_barrier", [held], held.type)
            local = carry_out(builder, held, tensor.shape, start, plan)
            builder.purpose = None
            self.made_at[value, layout] = self.clock
        self._keep(value, layout, local)
        return local

    def _stale(self, value: Any, layout: Layout) -> bool:
        """Whether a value was gathered so long ago that it is gathered again."""
        made = self.made_at.get((value, layout))
        return made is not None and self.clock - made > _KEPT

    def width(self, value: Any) -> int:
        """The bytes of an element of a tensor."""
        return bytes_of(element_of(value))

    def captured(self, value: Any) -> Any | None:
        """A value of the module that a region uses from outside, whole."""
        if value not in self.tensors:
            return None
        return self.get(value, replicated(len(self.tensors[value].shape)))

    # ---- Blocks -----------------------------------------------------------------------------------------

    def arguments(self, old: Any, new: Any, layouts: Sequence[Layout]) -> None:
        """Says that the arguments of a block of the module are those of the block that is written."""
        for mine, theirs, layout in zip(old.arguments, new.arguments, layouts, strict=True):
            self.define(mine, layout, theirs)

    def block(self, block: Any, results: Sequence[Layout]) -> list[Any]:
        """Writes the ops of a block, and returns the operands of its terminator in the given layouts."""
        for op, kind in self.kinds.of_block(block, self.chooser.reader):
            self._op(op, kind)
        last = block.operations[len(block.operations) - 1].operation
        self.builder.loc = last.location
        return [
            self.get(value, layout, Purpose(last, slot, value))
            for slot, (value, layout) in enumerate(zip(last.operands, results, strict=True))
        ]

    def _op(self, op: Any, kind: Kind) -> None:
        self.builder.loc = op.location
        self.clock += 1
        known = kind.known or self.chooser.reader.knowledge(op)
        if known.refused and self.refuses:
            hint = f"{op.name} cannot be partitioned: {known.refused}"
            raise ShardlogError(f"{op.name} cannot run on each device", where=location(op), hint=hint)
        flow = FLOW.get(known.lowering)
        if flow is not None:
            flow(self, op, known)
        else:
            self._computed(op, kind, known)

    def computed(self, op: Any, known: Knowledge) -> None:
        """Writes an op that is computed, in the cheapest way, and its results where they live."""
        self._computed(op, self.kinds.of(op, self.chooser.reader), known)

    def _computed(self, op: Any, kind: Kind, known: Knowledge) -> None:
        if known.facts["expands_scalar"] and spread_scalar(self, op, known, self.reading.homes(op)):
            return
        builder, operands = self.builder, list(op.operands)
        tensors, locals_ = self.tensors, self.locals
        way = self.ways.get(op.results[0]) if self.ways and len(op.results) else None
        recipe = self.recipes.of(op, kind, known, [tensors[value] for value in operands], self.moved, way)
        if self.recording:
            self.spots.append((op, known, recipe.held, recipe.free))
        if self.planner.prices.all_work:
            self.computed_as.append((op, known, recipe.choice.taken.factors))
        about = op, known, recipe.held, recipe.choice
        values = list[Any]()
        for value, (layout, home) in zip(operands, recipe.needed, strict=True):
            local = locals_.get(value) if home else None
            if local is None:
                local = builder.scope.find((value, layout))
                if local is None or self.again:
                    local = self.get(value, layout, purpose_of(about, len(values), value))
            values.append(local)
        if recipe.like is not None:
            results = builder.like(recipe.like, values).results
        else:
            results = self._lowered(op, known, recipe, about, values)
            if recipe.repeats and len(results):
                recipe.like = results[0].owner
        if recipe.at_home:
            for value, local, tensor in zip(op.results, results, recipe.tensors, strict=True):
                tensors[value], locals_[value] = tensor, local
            return
        for i, (value, local, tensor) in enumerate(zip(op.results, results, recipe.tensors, strict=True)):
            tensors[value], layout = tensor, recipe.given[i]
            self._keep(value, layout, local)
            if layout != tensor.home:
                self.get(value, tensor.home, purpose_of(about, len(operands) + i, value))

    def _lowered(self, op: Any, known: Knowledge, recipe: Recipe, about: Any, values: list[Any]) -> list[Any]:
        """The results of an op by its lowering."""
        builder = self.builder
        if known.looks_up:
            values[0] = builder.fenced(values[0])
        builder.loc = op.location
        builder.purpose = about
        for name in known.names_functions:
            self._named(op.attributes[name])
        results = _COMPUTED[known.lowering](
            Site(builder, op, known, recipe.choice.taken, self.captured), values
        )
        if known.looks_up:
            builder.looked_up.update(results)
        return results

    def _named(self, names: Any) -> None:
        """Functions that an op names and does not call, as a comparison of scalars: they stay as they are."""
        for entry in names:
            if entry.value in self.functions and entry.value not in self.written:
                func = self.functions[entry.value].operation
                self.written[entry.value] = func.clone(ir.InsertionPoint(self.module.body))


_KEPT = 64  # ops for which what was gathered is kept, where memory is short
_COMPUTED = {**COMPUTED, **WINDOWS, "once": alone.once, "spread": alone.spread}
_MADE = ("slice", "dynamic_slice", "pad", "select", "broadcast_in_dim", "constant", "iota", "convert")
_PURE = frozenset(f"stablehlo.{name}" for name in (*_MADE, "compare", "reshape", "dynamic_update_slice"))

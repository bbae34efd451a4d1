"""Walks over an annotated module and writes the program that each device runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError
from ..program.function import RESULT_SHARDING, location
from ..program.modules import boundary_attributes, main_function, symbols
from ..program.shardings import Sharding, Shardings, manual_axes
from . import alone
from .building import Builder, Form, Scope, Sent, element_of, shape_of
from .choosing import Choice, Chooser
from .homes import Need
from .knowledge import Knowledge
from .layouts import Axes, Layout, Shape, replicated
from .local import COMPUTED, Site
from .planning import Planner
from .reshards import carry_out
from .windows import WINDOWS

Make = Callable[[Layout], Any]


@dataclass(slots=True)
class Tensor:
    """A value of the module: the shape and the layout that it has there, and how it is made in any layout
    where that takes no data."""

    shape: Shape
    home: Layout
    make: Make | None = None


@dataclass(frozen=True)
class Computed:
    """An op that is computed: what is known of it, how its slots lie, and the choice of several ways."""

    known: Knowledge
    held: tuple[Layout, ...]
    choice: Choice


@dataclass(frozen=True)
class Purpose:
    """What a collective is for: the op, the slot and the value; how the value was laid out and is to be;
    where there were several ways to compute the op, the choice; and where the op only hands the value on,
    the result that it becomes (``to``)."""

    op: Any
    slot: int
    value: Any
    start: Layout | None = None
    goal: Layout | None = None
    computed: Computed | None = None
    to: Any = None

    @property
    def known(self) -> Knowledge | None:
        """What is known of the op."""
        return self.computed.known if self.computed else None

    @property
    def held(self) -> tuple[Layout, ...]:
        """How the slots of the op lie."""
        return self.computed.held if self.computed else ()

    @property
    def choice(self) -> Choice | None:
        """The choice how to compute the op."""
        return self.computed.choice if self.computed else None


def _purpose(about: tuple[Any, Knowledge, tuple[Layout, ...], Choice], slot: int, value: Any) -> Purpose:
    op, known, held, choice = about
    return Purpose(op, slot, value, computed=Computed(known, held, choice))


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
        recording: bool = False,
    ) -> None:
        self.moved = moved or {}  # values that live elsewhere than the module says
        self.recording = recording  # of how ops lie, and what is needed where
        self.spots: list[tuple[Any, Knowledge, tuple[Layout, ...], frozenset[int]]] = []
        self.needs: list[tuple[Any, Need]] = []
        self.old, self.shardings, self.axes = module, shardings, axes
        self.chooser, self.planner, self.form = chooser, planner, form
        self.builder = Builder(axes, form, channel)
        self.functions = symbols(module, "func.func")
        self.main = main_function(self.functions)
        self.tensors: dict[Any, Tensor] = {}
        self.layouts: dict[Any, Layout | tuple[Layout, ...]] = {}  # of values; mostly it is one
        self.written: dict[str, Any] = {}
        self.refuses = True
        self.manual: list[frozenset[int]] = [frozenset()]  # the axes that bodies around have cut already
        self._read: dict[ir.Attribute, Sharding] = {}
        self._known_homes: dict[Any, list[Layout]] = {}

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
        self._function(self.functions[self.main])
        return made, self._alive()

    def _alive(self) -> list[Sent]:
        """The collectives whose results are used; others go, and what was made for them alone."""
        alive = []
        for collective in reversed(self.builder.sent):
            if any(True for _ in collective.op.results[0].uses):
                alive.append(collective)
                continue
            waiting = [collective.op]
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
                    id(about), _purpose(about, len(about[0].operands), None)
                )
        return alive[::-1]

    # ---- Functions --------------------------------------------------------------------------------------

    def _function(self, func: Any) -> Any:
        name = ir.StringAttr(func.attributes["sym_name"]).value
        if name in self.written:
            return self.written[name]
        entry = name == self.main
        around = entry and self.form == "sdy-manual" and self.axes.main >= 0
        arguments = self._boundary(func, "arg_attrs", func.type.inputs)
        results = self._boundary(func, "res_attrs", func.type.results)
        if around:  # one manual computation is over one mesh: what is on others enters and leaves whole
            on_main = self.axes.on_main
            arguments = [a if on_main(a) else replicated(len(a.dims)) for a in arguments]
            results = [r if on_main(r) else replicated(len(r.dims)) for r in results]
        inputs = [
            self._local(type_, layout) for type_, layout in zip(func.type.inputs, arguments, strict=True)
        ]
        outputs = [
            self._local(type_, layout) for type_, layout in zip(func.type.results, results, strict=True)
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
            self._name_boundary(func, made, around)
        block = made.regions[0].blocks.append(*type_.inputs, arg_locs=[func.location] * len(inputs))
        outer, builder = self.builder.scope, self.builder
        builder.scope = Scope(block)
        if around:
            block = self._manual(func, block, inputs, (arguments, results))
            builder.scope = Scope(block)
        body = func.regions[0].blocks[0]
        self._arguments(body, block, arguments)
        returned = self._block(body, results)
        builder.loc = func.location
        if around:
            builder.op("sdy.return", returned, [])
            parent = block.owner
            builder.scope = Scope(made.regions[0].blocks[0])
            returned = list(parent.results)
        builder.op("func.return", returned, [])
        builder.scope = outer
        return made

    def _boundary(self, func: Any, label: str, types: Sequence[Any]) -> list[Layout]:
        found = []
        for entry, type_ in zip(boundary_attributes(func, label), types, strict=True):
            found.append(self._home(_entry(entry, "sdy.sharding"), type_, func))
        return found

    def _name_boundary(self, func: Any, made: Any, around: bool) -> None:
        """What the entry says of its arguments and results; shardings only where these are whole."""
        manual = ir.DictAttr.get({"mhlo.sharding": ir.StringAttr.get("{manual}")})
        for label in ("arg_attrs", "res_attrs"):
            entries = []
            for entry in boundary_attributes(func, label):
                kept = {a.name: a.attr for a in entry if around or a.name != "sdy.sharding"}
                if self.form == "manual":
                    kept["mhlo.sharding"] = manual["mhlo.sharding"]
                entries.append(ir.DictAttr.get(kept))
            made.attributes[label] = ir.ArrayAttr.get(entries)

    def _manual(
        self, func: Any, block: Any, inputs: list[Any], layouts: tuple[list[Layout], list[Layout]]
    ) -> Any:
        """The body of a manual computation over all axes, from and to the function's whole tensors."""
        mesh = self.axes.mesh
        assert mesh is not None
        shardings = {}
        labels = ("arg_attrs", func.type.inputs), ("res_attrs", func.type.results)
        for (label, types), held in zip(labels, layouts, strict=True):
            found = []
            for entry, type_, layout in zip(boundary_attributes(func, label), types, held, strict=True):
                closed = [sdy.DimensionShardingAttr.get([], is_closed=True)] * _rank(type_)
                plain = sdy.TensorShardingAttr.get(mesh.name, closed)
                given = None if layout.whole else _entry(entry, "sdy.sharding")
                found.append(given or plain)
            shardings[label] = sdy.TensorShardingPerValueAttr.get(found)
        attributes = {
            "in_shardings": shardings["arg_attrs"],
            "out_shardings": shardings["res_attrs"],
            "manual_axes": manual_axes(name for name, _ in mesh.axes),
        }
        op = self.builder.op(
            "sdy.manual_computation", list(block.arguments), func.type.results, attributes, regions=1
        )
        return op.regions[0].blocks.append(*inputs, arg_locs=[func.location] * len(inputs))

    # ---- Values -----------------------------------------------------------------------------------------

    def _home(self, attribute: Any, type_: Any, where: Any) -> Layout:
        """The layout of a value with a sharding, without what bodies around have cut."""
        shape = _shape(type_)
        if attribute is None or shape is None:
            return replicated(_rank(type_))
        if attribute not in self._read:
            self._read[attribute] = self.shardings.read(attribute, location(where))
        layout = self.axes.layout(self._read[attribute], shape)
        if self.manual[-1]:
            layout = Layout(tuple(tuple(p for p in dim if p not in self.manual[-1]) for dim in layout.dims))
        return layout

    def _local(self, type_: Any, layout: Layout) -> Any:
        shape = _shape(type_)
        if shape is None or not any(layout.dims):
            return type_
        return self.builder.tensor(
            self.axes.local(shape, layout.dims), ir.RankedTensorType(type_).element_type
        )

    def _homes(self, op: Any) -> list[Layout]:
        attributes = op.attributes
        if "sdy.sharding" in attributes:
            key = attributes["sdy.sharding"], tuple(op.results.types), self.manual[-1]
            if key not in self._known_homes:
                self._known_homes[key] = self._read_homes(op)
            return self._known_homes[key]
        return self._read_homes(op)

    def _read_homes(self, op: Any) -> list[Layout]:
        attributes, results = op.attributes, list(op.results)
        shardings: Sequence[Any] = [None] * len(results)
        if not results:  # one without may have a sharding none the less: that of the device on which it runs
            return []
        if "sdy.sharding" in attributes:
            shardings = list(sdy.TensorShardingPerValueAttr(attributes["sdy.sharding"]).shardings)
        else:
            for label in RESULT_SHARDING:
                if op.name.startswith("sdy.") and label in attributes:
                    shardings = [attributes[label]]
        return [self._home(s, r.type, op) for s, r in zip(shardings, results, strict=True)]

    def define(self, value: Any, layout: Layout, local: Any, home: Layout | None = None) -> None:
        """Says what a value of the module is, in some layout."""
        if value not in self.tensors:
            self.tensors[value] = Tensor(_shape(value.type) or (), home or layout)
        self._keep(value, layout, local)

    def _keep(self, value: Any, layout: Layout, local: Any) -> None:
        self.builder.scope.known[value, layout] = local
        first = self.layouts.get(value)
        self.layouts[value] = layout if first is None else (*self._known_layouts(value), layout)

    def _known_layouts(self, value: Any) -> tuple[Layout, ...]:
        """The layouts in which a value is somewhere."""
        found = self.layouts[value]
        return (found,) if isinstance(found, Layout) else found

    def get(self, value: Any, layout: Layout, purpose: Purpose | None = None) -> Any:
        """A value in a layout: it is resharded from the nearest one in which it is known here."""
        builder = self.builder
        found = builder.scope.find((value, layout))
        if self.recording and purpose is not None and purpose.computed is None:
            self.needs.append((purpose.op, Need(value, layout)))
        if found is not None:
            return found
        tensor = self.tensors[value]
        if tensor.make is not None and not layout.partial:
            local = tensor.make(layout)
        else:
            if tensor.make is not None:
                self.get(value, layout.complete)
            plans = [
                (self.planner.plan(tensor.shape, known, layout), known)
                for known in dict.fromkeys(self._known_layouts(value))
                if builder.scope.find((value, known)) is not None
            ]
            plan, start = min(plans, key=lambda pair: pair[0].price)
            if plan.price and purpose is not None:
                builder.purpose = replace(purpose, start=start, goal=layout)
            local = carry_out(builder, builder.scope.find((value, start)), tensor.shape, start, plan)
            builder.purpose = None
        self._keep(value, layout, local)
        return local

    def at_home(self, value: Any, purpose: Purpose | None = None) -> Any:
        """A value as the module has it."""
        return self.get(value, self.tensors[value].home, purpose)

    def captured(self, value: Any) -> Any | None:
        """A value of the module that a region uses from outside, whole."""
        if value not in self.tensors:
            return None
        return self.get(value, replicated(len(self.tensors[value].shape)))

    # ---- Blocks -----------------------------------------------------------------------------------------

    def _arguments(self, old: Any, new: Any, layouts: Sequence[Layout]) -> None:
        for mine, theirs, layout in zip(old.arguments, new.arguments, layouts, strict=True):
            self.define(mine, layout, theirs)

    def _block(self, block: Any, results: Sequence[Layout]) -> list[Any]:
        """Writes the ops of a block; what it returns, in layouts."""
        ops = list(block.operations)
        for op in ops[:-1]:
            self._op(op.operation)
        last = ops[-1].operation
        self.builder.loc = last.location
        return [
            self.get(value, layout, Purpose(last, slot, value))
            for slot, (value, layout) in enumerate(zip(last.operands, results, strict=True))
        ]

    def _op(self, op: Any) -> None:
        self.builder.loc = op.location
        known = self.chooser.reader.knowledge(op)
        if known.refused and self.refuses:
            hint = f"{op.name} cannot be partitioned: {known.refused}"
            raise ShardlogError(f"{op.name} cannot run on each device", where=location(op), hint=hint)
        flow = _FLOW.get(known.lowering)
        if flow is not None:
            flow(self, op, known)
        else:
            self._computed(op, known)

    def _computed(self, op: Any, known: Knowledge) -> None:
        operands, homes = list(op.operands), self._homes(op)
        tensors = [self.tensors[value] for value in operands]
        if self._spread_scalar(op, known, homes):
            return
        free = frozenset([t for t, tensor in enumerate(tensors) if tensor.make is not None])
        if self.moved:
            homes = [self.moved.get(value, home) for value, home in zip(op.results, homes, strict=True)]
        held = tuple([t.home for t in tensors] + homes)
        if self.recording:
            self.spots.append((op, known, held, free))
        choice = self.chooser.choose(known, held, free)
        taken = choice.taken
        about = op, known, held, choice
        find, values = self.builder.scope.find, list[Any]()
        for slot, (value, layout) in enumerate(zip(operands, taken.layouts, strict=False)):
            local = find((value, layout))
            if local is None:
                local = self.get(value, layout, _purpose(about, slot, value))
            values.append(local)
        if known.looks_up:
            values[0] = self.builder.fenced(values[0])
        self.builder.loc = op.location
        self.builder.purpose = about
        for name in known.names_functions:
            self._named(op.attributes[name])
        lower = _COMPUTED[known.lowering]
        results = lower(Site(self.builder, op, known, taken, self.captured), values)
        if known.looks_up:
            self.builder.looked_up.update(results)
        for i, (value, local, home) in enumerate(zip(op.results, results, homes, strict=True)):
            slot = len(operands) + i
            layout = taken.layouts[slot]
            if layout.partial and known.combined_by_region:
                layout = layout.complete
            self.define(value, layout, local, home)
            if layout != home:
                self.get(value, home, _purpose(about, slot, value))

    def _named(self, names: Any) -> None:
        """Functions that an op names and does not call, as a comparison of scalars: they stay as they are."""
        for entry in names:
            if entry.value in self.functions and entry.value not in self.written:
                func = self.functions[entry.value].operation
                self.written[entry.value] = func.clone(ir.InsertionPoint(self.module.body))

    def _spread_scalar(self, op: Any, known: Knowledge, homes: list[Layout]) -> bool:
        """A scalar repeated is made where it is used."""
        if not known.facts["expands_scalar"] or len(op.operands) != 1:
            return False
        scalar, result = op.operands[0], op.results[0]
        shape = _shape(result.type)
        if shape is None or _shape(scalar.type) != ():
            return False

        def make(layout: Layout) -> Any:
            value = self.get(scalar, replicated(0))
            return self.builder.spread(value, self.axes.local(shape, layout.dims))

        self.tensors[result] = Tensor(shape, homes[0], make)
        return True

    # ---- What takes no data -----------------------------------------------------------------------------

    def _constant(self, op: Any, known: Knowledge) -> None:
        (result,), (home,) = op.results, self._homes(op)
        shape, loc = _shape(result.type) or (), op.location
        complex_ = isinstance(element_of(result), ir.ComplexType)  # whose values have no class in Python
        value: Any = None if complex_ else op.attributes["value"]
        splat = isinstance(value, ir.DenseElementsAttr) and value.is_splat

        def make(layout: Layout) -> Any:
            self.builder.loc = loc
            if splat and any(layout.dims):
                type_ = self._local(result.type, layout)
                part = ir.DenseElementsAttr.get_splat(type_, value.get_splat_value())
                return self.builder.one("stablehlo.constant", [], type_, {"value": part})
            whole = replicated(len(shape))
            found = self.builder.known((result, whole), lambda: self.builder.copy(op).results[0])
            return carry_out(self.builder, found, shape, whole, self.planner.plan(shape, whole, layout))

        self.tensors[result] = Tensor(shape, home, make)

    def _iota(self, op: Any, known: Knowledge) -> None:
        (result,), (home,) = op.results, self._homes(op)
        shape, loc, attribute = _shape(result.type) or (), op.location, op.attributes["iota_dimension"]
        d: int = ir.IntegerAttr(attribute).value
        element = element_of(result)

        def make(layout: Layout) -> Any:
            builder = self.builder
            builder.loc = loc
            type_ = self._local(result.type, layout)
            counted = builder.one("stablehlo.iota", [], type_, {"iota_dimension": attribute})
            if not layout.dims[d]:
                return counted
            start = builder.start(shape[d], layout.dims[d])
            start = builder.one("stablehlo.convert", [start], builder.tensor((), element))
            return builder.binary("stablehlo.add", counted, builder.spread(start, shape_of(counted)))

        self.tensors[result] = Tensor(shape, home, make)

    # ---- Ops that hand values on ------------------------------------------------------------------------

    def _identity(self, op: Any, known: Knowledge) -> None:
        (home,), (value,), (result,) = self._homes(op), op.operands, op.results
        if "sdy.sharding" not in op.attributes and not any(
            label in op.attributes for label in RESULT_SHARDING
        ):
            home = self.tensors[value].home
        self.define(result, home, self.get(value, home, Purpose(op, 0, value, to=result)))

    def _nothing(self, op: Any, known: Knowledge) -> None:
        """It is only for propagation."""

    def _carried(self, op: Any) -> tuple[list[Layout], list[Any]]:
        """The layouts of what goes in, which are those of the results, and the values in them."""
        homes = self._homes(op)
        values = [
            self.get(value, home, Purpose(op, i, value, to=result))
            for i, (value, home, result) in enumerate(zip(op.operands, homes, op.results, strict=True))
        ]
        return homes, values

    def _pass(self, op: Any, known: Knowledge) -> None:
        homes, values = self._carried(op)
        made = self.builder.op(op.name, values, [value.type for value in values], self._plain(op))
        for result, local, home in zip(op.results, made.results, homes, strict=True):
            self.define(result, home, local)

    def _loop(self, op: Any, known: Knowledge) -> None:
        homes, values = self._carried(op)
        types = [value.type for value in values]
        self.builder.loc = op.location
        made = self.builder.op(op.name, values, types, self._plain(op), regions=len(op.regions))
        for number, region in enumerate(op.regions):
            block = made.regions[number].blocks.append(*types, arg_locs=[op.location] * len(types))
            body = region.blocks[0]
            last = body.operations[len(body.operations) - 1]
            results = homes if number else [replicated(_rank(v.type)) for v in last.operands]
            self._region(op, body, block, homes, results)
        for result, local, home in zip(op.results, made.results, homes, strict=True):
            self.define(result, home, local)

    def _branches(self, op: Any, known: Knowledge) -> None:
        homes = self._homes(op)
        types = [self._local(r.type, home) for r, home in zip(op.results, homes, strict=True)]
        which = self.get(op.operands[0], replicated(0), Purpose(op, 0, op.operands[0]))
        self.builder.loc = op.location
        made = self.builder.op(op.name, [which], types, self._plain(op), regions=len(op.regions))
        for number, region in enumerate(op.regions):
            self._region(op, region.blocks[0], made.regions[number].blocks.append(), [], homes)
        for result, local, home in zip(op.results, made.results, homes, strict=True):
            self.define(result, home, local)

    def _region(
        self, op: Any, old: Any, new: Any, arguments: Sequence[Layout], results: Sequence[Layout]
    ) -> None:
        builder, outer = self.builder, self.builder.scope
        builder.scope = Scope(new, outer)
        self._arguments(old, new, arguments)
        builder.op("stablehlo.return", self._block(old, results), [])
        builder.scope = outer
        builder.loc = op.location

    def _call(self, op: Any, known: Knowledge) -> None:
        self._calls(op, op.attributes["callee"])

    def _composite(self, op: Any, known: Knowledge) -> None:
        self._calls(op, op.attributes["decomposition"])

    def _calls(self, op: Any, callee: Any) -> None:
        name = ir.FlatSymbolRefAttr(callee).value
        func = self.functions[name]
        inputs = self._boundary(func, "arg_attrs", func.type.inputs)
        outputs = self._boundary(func, "res_attrs", func.type.results)
        values = [
            self.get(value, layout, Purpose(op, i, value))
            for i, (value, layout) in enumerate(zip(op.operands, inputs, strict=True))
        ]
        self._function(func)
        self.builder.loc = op.location
        types = [self._local(t, layout) for t, layout in zip(func.type.results, outputs, strict=True)]
        made = self.builder.op("func.call", values, types, {"callee": callee})
        homes = self._homes(op) if "sdy.sharding" in op.attributes else outputs
        for i, (result, local, layout) in enumerate(zip(op.results, made.results, outputs, strict=True)):
            self.define(result, layout, local, homes[i])
            if layout != homes[i]:
                self.get(result, homes[i], Purpose(op, len(op.operands) + i, result))

    def _body(self, op: Any, known: Knowledge) -> None:
        """A computation with a body: its ops stand where it stood. Of a manual one the parts that enter
        are those that the body sees, and so are its results."""
        cut = frozenset[int]()
        if "manual_axes" in op.attributes:
            names = set(sdy.ManualAxesAttr(op.attributes["manual_axes"]))  # type: ignore[call-overload]
            cut = frozenset(n for n, piece in enumerate(self.axes.pieces) if piece.axis in names)
            self._check_mesh(op)
        entering, leaving = (
            [
                self._crossing(self._home(s, v.type, op), _shape(v.type), cut)
                for s, v in zip(
                    sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings, values, strict=True
                )
            ]
            for label, values in (("in_shardings", op.operands), ("out_shardings", op.results))
        )
        values = [
            self.get(value, layout, Purpose(op, i, value))
            for i, (value, layout) in enumerate(zip(op.operands, entering, strict=True))
        ]
        body = op.regions[0].blocks[0]
        self.manual.append(self.manual[-1] | cut)
        self.builder.manual = self.manual[-1]

        def inside(layout: Layout) -> Layout:
            return Layout(tuple(tuple(p for p in dim if p not in cut) for dim in layout.dims))

        for argument, layout, local in zip(body.arguments, entering, values, strict=True):
            self.define(argument, inside(layout), local)
        returned = self._block(body, [inside(layout) for layout in leaving])
        self.manual.pop()
        self.builder.manual = self.manual[-1]
        for result, layout, local in zip(op.results, leaving, returned, strict=True):
            self.define(result, layout, local)

    def _check_mesh(self, op: Any) -> None:
        """Raises ShardlogError for a manual computation on some of the devices."""
        for label in ("in_shardings", "out_shardings"):
            for attribute in sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings:
                if found := self.axes.elsewhere(self.shardings.read(attribute, location(op))):
                    message = f"a manual computation over {found}, in a program of {self.axes.count}"
                    hint = "a program runs on one set of devices: give all meshes as many"
                    raise ShardlogError(message, where=location(op), hint=hint)

    def _crossing(self, layout: Layout, shape: Shape | None, cut: frozenset[int]) -> Layout:
        """The layout in which a value goes into a body or out of it. Parts of parts are parts of the
        whole only where nothing is padded; elsewhere the body's own axes are left out."""
        if shape is None or not cut:
            return layout
        return Layout(
            tuple(
                pieces if size % self.axes.product(pieces) == 0 else tuple(p for p in pieces if p in cut)
                for size, pieces in zip(shape, layout.dims, strict=True)
            )
        )

    def _collective(self, op: Any, known: Knowledge) -> None:
        """A collective of a manual computation, over the same groups."""
        self._computed(op, known)
        first = op.results[0]
        made = self.builder.scope.find((first, self._known_layouts(first)[0])).owner
        if made.name == op.name:
            self.builder.adopt(made, Purpose(op, 0, op.operands[0]))

    def _device(self, op: Any, known: Knowledge) -> None:
        (result,) = op.results
        name = "stablehlo.replica_id" if self.form == "replica" else op.name
        self.define(result, replicated(0), self.builder.one(name, [], result.type))

    def _plain(self, op: Any) -> dict[str, Any]:
        attributes = op.attributes
        return {n: attributes[n] for n in attributes if n not in ("sdy.sharding", "mhlo.sharding")}


_COMPUTED = {**COMPUTED, **WINDOWS, "once": alone.once, "spread": alone.spread}
_FLOW: dict[str, Callable[[Partitioner, Any, Knowledge], None]] = {
    "constant": Partitioner._constant,
    "iota": Partitioner._iota,
    "identity": Partitioner._identity,
    "nothing": Partitioner._nothing,
    "pass": Partitioner._pass,
    "loop": Partitioner._loop,
    "branches": Partitioner._branches,
    "call": Partitioner._call,
    "composite": Partitioner._composite,
    "body": Partitioner._body,
    "collective": Partitioner._collective,
    "device": Partitioner._device,
}
_KEPT = frozenset({"func.func", "sdy.mesh", "sdy.manual_computation"})
_MADE = ("slice", "dynamic_slice", "pad", "select", "broadcast_in_dim", "constant", "iota", "convert")
_PURE = frozenset(f"stablehlo.{name}" for name in (*_MADE, "compare", "reshape", "dynamic_update_slice"))


def _rank(type_: Any) -> int:
    shape = _shape(type_)
    return 0 if shape is None else len(shape)


def _shape(type_: Any) -> Shape | None:
    if isinstance(type_, ir.RankedTensorType) and type_.has_static_shape:
        return tuple(type_.shape)
    return None


def _entry(attributes: Any, label: str) -> Any:
    """An entry of a dictionary of attributes, or None."""
    found: Any = attributes[label] if label in attributes else None  # noqa: SIM401 - not a dict
    return found

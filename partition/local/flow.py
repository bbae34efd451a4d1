"""Ops that compute nothing: constants and iotas, and what hands values on, as loops, branches and calls do.

There is a function for each, by the name that ``lowered_op`` gives it in ``rules/partition/local.dl``. It
writes the op with what the walk over the module (``program.py``) knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...program.function import RESULT_SHARDING
from ..building import Scope, element_of, shape_of
from ..choice.knowledge import Knowledge
from ..choice.purposes import Purpose
from ..layouts import Layout, replicated
from ..reading import rank, static_shape
from ..reshards.steps import carry_out

if TYPE_CHECKING:
    from ..program import Partitioner


def spread_scalar(walk: Partitioner, op: Any, known: Knowledge, homes: list[Layout]) -> bool:
    """Makes a broadcast scalar wherever it is used, and returns whether the op is one."""
    if not known.facts["expands_scalar"] or len(op.operands) != 1:
        return False
    scalar, result = op.operands[0], op.results[0]
    shape = static_shape(result.type)
    if shape is None or static_shape(scalar.type) != ():
        return False

    def make(layout: Layout) -> Any:
        value = walk.get(scalar, replicated(0))
        return walk.builder.spread(value, walk.axes.local(shape, layout.dims))

    walk.tensors[result] = walk.recipes.tensor(shape, homes[0], make)
    return True


# ---- What takes no data ----------------------------------------------------------------------------------


def _constant(walk: Partitioner, op: Any, known: Knowledge) -> None:
    (result,), (home,) = op.results, walk.reading.homes(op)
    shape, loc = static_shape(result.type) or (), op.location
    complex_ = isinstance(element_of(result), ir.ComplexType)  # whose values have no class in Python
    value: Any = None if complex_ else op.attributes["value"]
    splat = isinstance(value, ir.DenseElementsAttr) and value.is_splat

    def make(layout: Layout) -> Any:
        walk.builder.loc = loc
        if splat and any(layout.dims):
            type_ = walk.local(result.type, layout)
            part = ir.DenseElementsAttr.get_splat(type_, value.get_splat_value())
            return walk.builder.one("stablehlo.constant", [], type_, {"value": part})
        whole = replicated(len(shape))
        found = walk.builder.known((result, whole), lambda: walk.builder.copy(op).results[0])
        return carry_out(walk.builder, found, shape, whole, walk.planner.plan(shape, whole, layout))

    walk.tensors[result] = walk.recipes.tensor(shape, home, make)


def _iota(walk: Partitioner, op: Any, known: Knowledge) -> None:
    (result,), (home,) = op.results, walk.reading.homes(op)
    shape, loc, attribute = static_shape(result.type) or (), op.location, op.attributes["iota_dimension"]
    d: int = ir.IntegerAttr(attribute).value
    element = element_of(result)

    def make(layout: Layout) -> Any:
        builder = walk.builder
        builder.loc = loc
        type_ = walk.local(result.type, layout)
        counted = builder.one("stablehlo.iota", [], type_, {"iota_dimension": attribute})
        if not layout.dims[d]:
            return counted
        start = builder.start(shape[d], layout.dims[d])
        start = builder.one("stablehlo.convert", [start], builder.tensor((), element))
        return builder.binary("stablehlo.add", counted, builder.spread(start, shape_of(counted)))

    walk.tensors[result] = walk.recipes.tensor(shape, home, make)


# ---- Ops that hand values on -----------------------------------------------------------------------------


def _identity(walk: Partitioner, op: Any, known: Knowledge) -> None:
    (home,), (value,), (result,) = walk.reading.homes(op), op.operands, op.results
    if "sdy.sharding" not in op.attributes and not any(label in op.attributes for label in RESULT_SHARDING):
        home = walk.tensors[value].home
    walk.define(result, home, walk.get(value, home, Purpose(op, 0, value, to=result)))


def _nothing(walk: Partitioner, op: Any, known: Knowledge) -> None:
    """For ops that matter to propagation alone."""


def _carried(walk: Partitioner, op: Any) -> tuple[list[Layout], list[Any]]:
    """The homes of the results, which are the layouts that the operands enter in, and the operands in
    these."""
    homes = walk.reading.homes(op)
    values = [
        walk.get(value, home, Purpose(op, i, value, to=result))
        for i, (value, home, result) in enumerate(zip(op.operands, homes, op.results, strict=True))
    ]
    return homes, values


def _pass(walk: Partitioner, op: Any, known: Knowledge) -> None:
    homes, values = _carried(walk, op)
    made = walk.builder.op(op.name, values, [value.type for value in values], _plain(op))
    for result, local, home in zip(op.results, made.results, homes, strict=True):
        walk.define(result, home, local)


def _loop(walk: Partitioner, op: Any, known: Knowledge) -> None:
    homes, values = _carried(walk, op)
    types = [value.type for value in values]
    walk.builder.loc = op.location
    made = walk.builder.op(op.name, values, types, _plain(op), regions=len(op.regions))
    for number, region in enumerate(op.regions):
        block = made.regions[number].blocks.append(*types, arg_locs=[op.location] * len(types))
        body = region.blocks[0]
        last = body.operations[len(body.operations) - 1]
        results = homes if number else [replicated(rank(v.type)) for v in last.operands]
        _region(walk, op, body, block, homes, results)
    for result, local, home in zip(op.results, made.results, homes, strict=True):
        walk.define(result, home, local)


def _branches(walk: Partitioner, op: Any, known: Knowledge) -> None:
    homes = walk.reading.homes(op)
    types = [walk.local(r.type, home) for r, home in zip(op.results, homes, strict=True)]
    which = walk.get(op.operands[0], replicated(0), Purpose(op, 0, op.operands[0]))
    walk.builder.loc = op.location
    made = walk.builder.op(op.name, [which], types, _plain(op), regions=len(op.regions))
    for number, region in enumerate(op.regions):
        _region(walk, op, region.blocks[0], made.regions[number].blocks.append(), [], homes)
    for result, local, home in zip(op.results, made.results, homes, strict=True):
        walk.define(result, home, local)


def _region(
    walk: Partitioner, op: Any, old: Any, new: Any, arguments: Sequence[Layout], results: Sequence[Layout]
) -> None:
    builder, outer = walk.builder, walk.builder.scope
    builder.scope = Scope(new, outer)
    walk.arguments(old, new, arguments)
    builder.op("stablehlo.return", walk.block(old, results), [])
    builder.scope = outer
    builder.loc = op.location


def _call(walk: Partitioner, op: Any, known: Knowledge) -> None:
    _calls(walk, op, op.attributes["callee"])


def _composite(walk: Partitioner, op: Any, known: Knowledge) -> None:
    _calls(walk, op, op.attributes["decomposition"])


def _calls(walk: Partitioner, op: Any, callee: Any) -> None:
    name = ir.FlatSymbolRefAttr(callee).value
    func = walk.functions[name]
    inputs = walk.reading.boundary(func, "arg_attrs", func.type.inputs)
    outputs = walk.reading.boundary(func, "res_attrs", func.type.results)
    values = [
        walk.get(value, layout, Purpose(op, i, value))
        for i, (value, layout) in enumerate(zip(op.operands, inputs, strict=True))
    ]
    walk.function(func)
    walk.builder.loc = op.location
    types = [walk.local(t, layout) for t, layout in zip(func.type.results, outputs, strict=True)]
    made = walk.builder.op("func.call", values, types, {"callee": callee})
    homes = walk.reading.homes(op) if "sdy.sharding" in op.attributes else outputs
    for i, (result, local, layout) in enumerate(zip(op.results, made.results, outputs, strict=True)):
        walk.define(result, layout, local, homes[i])
        if layout != homes[i]:
            walk.get(result, homes[i], Purpose(op, len(op.operands) + i, result))


def _boundary(op: Any, label: str, count: int) -> Sequence[Any]:
    """The shardings of what enters a computation with a body, or leaves it; none where it does not say."""
    if label not in op.attributes:
        return [None] * count
    return list(sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings)


def _body(walk: Partitioner, op: Any, known: Knowledge) -> None:
    """Inlines a computation with a body. That of a manual computation is a device program already: it sees
    the parts that enter, and returns parts."""
    cut = frozenset[int]()
    if "manual_axes" in op.attributes:
        names = set(sdy.ManualAxesAttr(op.attributes["manual_axes"]))  # type: ignore[call-overload]
        cut = frozenset(n for n, piece in enumerate(walk.axes.pieces) if piece.axis in names)
        walk.reading.check_mesh(op)
    entering, leaving = (
        [
            walk.reading.crossing(walk.reading.home(s, v.type, op), static_shape(v.type), cut)
            for s, v in zip(_boundary(op, label, len(values)), values, strict=True)
        ]
        for label, values in (("in_shardings", op.operands), ("out_shardings", op.results))
    )
    values = [
        walk.get(value, layout, Purpose(op, i, value))
        for i, (value, layout) in enumerate(zip(op.operands, entering, strict=True))
    ]
    body = op.regions[0].blocks[0]
    walk.reading.manual.append(walk.reading.manual[-1] | cut)
    walk.builder.manual = walk.reading.manual[-1]

    def inside(layout: Layout) -> Layout:
        return layout.without(cut)

    for argument, layout, local in zip(body.arguments, entering, values, strict=True):
        walk.define(argument, inside(layout), local)
    returned = walk.block(body, [inside(layout) for layout in leaving])
    walk.reading.manual.pop()
    walk.builder.manual = walk.reading.manual[-1]
    for result, layout, local in zip(op.results, leaving, returned, strict=True):
        walk.define(result, layout, local)


def _collective(walk: Partitioner, op: Any, known: Knowledge) -> None:
    """A collective inside of a manual computation, over the same groups of devices."""
    walk.computed(op, known)
    first = op.results[0]
    made = walk.find(first, walk.known_layouts(first)[0]).owner
    if made.name == op.name:
        walk.builder.adopt(made, Purpose(op, 0, op.operands[0]))


def _device(walk: Partitioner, op: Any, known: Knowledge) -> None:
    (result,) = op.results
    name = "stablehlo.replica_id" if walk.form == "replica" else op.name
    walk.define(result, replicated(0), walk.builder.one(name, [], result.type))


def _plain(op: Any) -> dict[str, Any]:
    attributes = op.attributes
    return {n: attributes[n] for n in attributes if n not in ("sdy.sharding", "mhlo.sharding")}


FLOW: dict[str, Callable[[Partitioner, Any, Knowledge], None]] = {
    "constant": _constant,
    "iota": _iota,
    "identity": _identity,
    "nothing": _nothing,
    "pass": _pass,
    "loop": _loop,
    "branches": _branches,
    "call": _call,
    "composite": _composite,
    "body": _body,
    "collective": _collective,
    "device": _device,
}

"""Ops that compute nothing: constants and iotas, and ops that pass values on, such as loops, branches and
calls.

There is a function for each lowering that ``lowered_op`` names in ``rules/partition/local.dl``. It writes the
op with the state of the walk (``walk.py``), and returns true if that is the copy of the op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from jaxlib.mlir import ir

from ....program.function import RESULT_SHARDING
from ....program.ids import Slot
from ....program.mlir.types import Operation, Value
from ....program.signature import value_of
from ...choice.purposes import Purpose, Use
from ...facts.knowledge import Knowledge
from ...facts.reading import static_shape
from ...layouts import Layout, replicated
from ...preparing.computations import lacking
from ..building import Scope, shape_of
from ..steps import carry_out
from ..writer import Writer


def spread_scalar(walk: Writer, number: int) -> bool:
    """Has the broadcast of a scalar made wherever it is used. Returns whether it does."""
    op = walk.kinds.ops[number]
    if len(op.operands) != 1:
        return False
    (scalar,), (result,) = walk.kinds.operands(number), walk.kinds.results(number)
    shape = static_shape(op.results[0].type)
    if shape is None or static_shape(op.operands[0].type) != ():
        return False

    def make(layout: Layout) -> Any:
        value = walk.get(scalar, replicated(0))
        return walk.builder.spread(value, walk.axes.local(shape, layout.dims))

    (home,) = walk.reading.homes(op)
    walk.define_made(result, shape, home, make)
    return True


# ---- Ops without data ------------------------------------------------------------------------------------


def empty(walk: Writer, number: int) -> bool:
    """Has results without elements made wherever they are used. They are not copies of the op's."""
    op, builder = walk.kinds.ops[number], walk.builder

    def make(type_: ir.Type, layout: Layout) -> Any:
        local = plain = walk.local(type_, layout)
        if isinstance(local.element_type, ir.ComplexType):  # whose constants the bindings cannot read
            plain = builder.tensor(local.shape, ir.ComplexType(local.element_type).element_type)
        value = {"value": ir.Attribute.parse(f"dense<> : {plain}")}
        constant = builder.one("stablehlo.constant", [], plain, value)
        return constant if plain == local else builder.one("stablehlo.convert", [constant], local)

    ends = walk.kinds.results(number), op.results.types, walk.homes(number)
    for result, type_, home in zip(*ends, strict=True):
        walk.define_made(result, static_shape(type_) or (), home, partial(make, type_))
    return False


def _result(walk: Writer, number: int) -> tuple[Any, int, Layout]:
    """The type, the number and the home of the only result of an op."""
    op = walk.kinds.ops[number]
    return op.results[0].type, walk.kinds.results(number)[0], walk.reading.homes(op)[0]


def _constant(walk: Writer, number: int, knowledge: Knowledge) -> None:
    op, (type_, result, home) = walk.kinds.ops[number], _result(walk, number)
    shape, loc, held = static_shape(type_) or (), op.location, value_of(op)
    name, value = held or ("", None)
    splat = value.get_splat_value() if isinstance(value, ir.DenseElementsAttr) and value.is_splat else None

    def make(layout: Layout) -> Any:
        walk.builder.loc = loc
        if splat is not None and any(layout.dims):
            local = walk.local(type_, layout)
            part = ir.DenseElementsAttr.get_splat(local, splat)
            return _shaped(walk, op, local, {name: part})
        whole = replicated(len(shape))
        copied = walk.builder.shared((result, whole), lambda: walk.builder.copy(op).results[0])
        return carry_out(walk.builder, copied, shape, whole, walk.planner.route(shape, whole, layout).steps)

    walk.define_made(result, shape, home, make)


def _empty(walk: Writer, number: int, knowledge: Knowledge) -> None:
    """A tensor of any contents, in any shape."""
    op, (type_, result, home) = walk.kinds.ops[number], _result(walk, number)

    def make(layout: Layout) -> Any:
        walk.builder.loc = op.location
        return _shaped(walk, op, walk.local(type_, layout), {})

    walk.define_made(result, static_shape(type_) or (), home, make)


def _shaped(walk: Writer, op: Operation, type_: ir.Type, attributes: dict[str, ir.Attribute]) -> Any:
    """The result of a copy of an op without operands, in another type."""
    copied = walk.builder.copy(op)
    copied.results[0].set_type(type_)
    for name, value in attributes.items():
        copied.attributes[name] = value
    return copied.results[0]


def _iota(walk: Writer, number: int, knowledge: Knowledge) -> None:
    op, (type_, result, home) = walk.kinds.ops[number], _result(walk, number)
    shape, loc, attribute = static_shape(type_) or (), op.location, op.attributes["iota_dimension"]
    d: int = ir.IntegerAttr(attribute).value

    def make(layout: Layout) -> Any:
        builder = walk.builder
        builder.loc = loc
        counted = builder.one("stablehlo.iota", [], walk.local(type_, layout), {"iota_dimension": attribute})
        if not layout.dims[d]:
            return counted
        start = builder.start(shape[d], layout.dims[d])
        start = builder.one("stablehlo.convert", [start], builder.tensor((), type_.element_type))
        return builder.binary("stablehlo.add", counted, builder.spread(start, shape_of(counted)))

    walk.define_made(result, shape, home, make)


# ---- Ops that pass values on -----------------------------------------------------------------------------


def _identity(walk: Writer, number: int, knowledge: Knowledge) -> None:
    op = walk.kinds.ops[number]
    (home,), (value,), (result,) = (
        walk.reading.homes(op),
        walk.kinds.operands(number),
        walk.kinds.results(number),
    )
    if "sdy.sharding" not in op.attributes and not any(label in op.attributes for label in RESULT_SHARDING):
        home = walk.tensors[value].home
    if walk.tensors[value].dataless:
        walk.define_made(result, walk.tensors[value].shape, home, partial(walk.get, value))
        return
    walk.define(result, home, walk.get(value, home, Use(number, Slot(0), value, to=result)))


def _nothing(walk: Writer, number: int, knowledge: Knowledge) -> None:
    """Ops that matter only to propagation."""


def _pass(walk: Writer, number: int, knowledge: Knowledge) -> None:
    op = walk.kinds.ops[number]
    homes = walk.homes(number)
    values = walk.entering(number, homes, walk.kinds.results(number), chosen=True)
    written = walk.builder.op(op.name, values, [value.type for value in values], _plain(op))
    walk.define_all(walk.kinds.results(number), homes, written.results)


def _loop(walk: Writer, number: int, knowledge: Knowledge) -> None:
    """A loop. It carries the values that it changes, and others unless they need no data: those are made
    where they are used, also in its iterations."""
    op, kinds = walk.kinds.ops[number], walk.kinds
    test, body = walk.open(number)
    propagated = walk.reading.homes(op)
    ends = kinds.arguments(test), kinds.arguments(body), kinds.results(number)
    carried = ends[1]
    homes = walk.settled(carried, propagated)
    around = list[int]()  # the slots of the values that it carries
    for slot, (value, last) in enumerate(zip(kinds.operands(number), kinds.operands(body[-1]), strict=True)):
        if last != carried[slot] or not walk.tensors[value].dataless:
            around.append(slot)
            continue
        for numbers in ends:
            make, shape = partial(walk.get, value), walk.tensors[value].shape
            walk.define_made(numbers[slot], shape, propagated[slot], make)
    values = walk.entering(number, homes, carried, chosen=True, slots=around)
    types = [value.type for value in values]
    walk.builder.loc = op.location
    written = walk.builder.op(op.name, values, types, _plain(op), regions=len(op.regions))
    some = [homes[slot] for slot in around]

    def receive(numbers: range, given: Sequence[Value], beside: int = -1) -> None:
        """Takes values that a loop passes on, to its iterations and to later ops, from the layout in which it
        carries them."""
        sources, there = [carried[slot] for slot in around], [numbers[slot] for slot in around]
        walk.received(number, there, (sources, given, some), [propagated[slot] for slot in around], beside)

    with _region(walk, number, 0, written) as block:
        walk.builder.scope.move(walk.copies[test[0]])
        parts = walk.parts(block, homes)
        receive(ends[0], [parts[slot] for slot in around], test[-1])
        _return(walk, walk.block(test, [replicated(0)]))
        _erase_arguments(block, around)
    with _region(walk, number, 1, written) as block:
        walk.arguments(body, block, homes, around)
        _return(walk, walk.block(body, homes, carried, around))
        _erase_arguments(block, around)
    receive(ends[2], list(written.results))


def _erase_arguments(block: ir.Block, kept: Sequence[int]) -> None:
    """Erases the arguments of a block that are not kept, and that nothing uses."""
    for number in sorted({*range(len(block.arguments))}.difference(kept), reverse=True):
        block.erase_argument(number)


def _branches(walk: Writer, number: int, knowledge: Knowledge) -> None:
    op = walk.kinds.ops[number]
    homes = walk.homes(number)
    types = [walk.local(r.type, home) for r, home in zip(op.results, homes, strict=True)]
    index = walk.kinds.operands(number)[0]
    which = walk.get(index, replicated(0), Use(number, Slot(0), index))
    for value, use in walk.of_several(number):
        walk.get(value, walk.copied_first[value], use)
    walk.builder.loc = op.location
    written = walk.builder.op(op.name, [which], types, _plain(op), regions=len(op.regions))
    for i, ops in enumerate(walk.open(number)):
        with _region(walk, number, i, written):
            _return(walk, walk.block(ops, homes, walk.kinds.results(number)))
    walk.define_all(walk.kinds.results(number), homes, written.results)


@contextmanager
def _region(walk: Writer, number: int, i: int, op: Any) -> Iterator[Any]:
    """The block of region ``i`` of an op, in the op's device version. Ops are written there meanwhile."""
    builder, outer, block = walk.builder, walk.builder.scope, walk.copies[number].regions[i].blocks[0]
    block.append_to(op.regions[i])
    builder.scope = Scope(block, outer)
    yield block
    builder.scope = outer
    builder.loc = walk.kinds.ops[number].location


def _return(walk: Writer, values: Sequence[Value]) -> None:
    walk.builder.op("stablehlo.return", values, [])


def _call(walk: Writer, number: int, knowledge: Knowledge) -> None:
    _calls(walk, number, _plain(walk.kinds.ops[number]))  # it may say where to run


def _composite(walk: Writer, number: int, knowledge: Knowledge) -> None:
    _calls(walk, number, {"callee": walk.kinds.ops[number].attributes["decomposition"]})


def _calls(walk: Writer, number: int, attributes: dict[str, ir.Attribute]) -> None:
    op, name = walk.kinds.ops[number], ir.FlatSymbolRefAttr(attributes["callee"]).value
    func = walk.functions[name]
    ends = walk.function(func)
    values = walk.entering(number, ends.takes, ends.arguments, chosen=True)
    walk.builder.loc = op.location
    types = [walk.local(t, layout) for t, layout in zip(func.type.results, ends.gives, strict=True)]
    written = walk.builder.op("func.call", values, types, attributes)
    homes = walk.reading.homes(op) if "sdy.sharding" in op.attributes else ends.gives
    given = ends.returned, list(written.results), ends.gives
    walk.received(number, walk.kinds.results(number), given, homes)


def _body(walk: Writer, number: int, knowledge: Knowledge) -> None:
    """Inlines a computation with a body. The body of a manual computation is a device program already: it
    takes and returns parts."""
    op = walk.kinds.ops[number]
    cut, entering, leaving = walk.reading.around(op)
    values = walk.entering(number, entering)
    (ops,), copy = walk.open(number), walk.copies[number]
    for inner in ops:
        walk.copies[inner].move_before(copy)
    walk.enter(cut)

    def inside(layout: Layout) -> Layout:
        return layout.without(cut)

    walk.define_all(walk.kinds.arguments(ops), map(inside, entering), values)
    returned = walk.block(ops, [inside(layout) for layout in leaving])
    walk.builder.scope.move(copy)
    walk.leave()
    walk.define_all(walk.kinds.results(number), leaving, returned)


def _collective(walk: Writer, number: int, knowledge: Knowledge) -> bool:
    """A collective inside of a manual computation, over the same groups of devices."""
    op, first = walk.kinds.ops[number], walk.kinds.results(number)[0]
    kept = walk.computed(number)
    written = walk.find(first, walk.known_layouts(first)[0]).owner.operation
    if written.name == op.name:
        walk.builder.adopt(written, walk.reading.groups(op), Purpose(op, Slot(0), op.operands[0]))
    return kept


def _callback(walk: Writer, number: int, knowledge: Knowledge) -> None:
    """An op whose function says what each device computes. If the function is available, its ``Computation``
    has replaced the op already."""
    raise lacking(walk.kinds.ops[number])


def _device(walk: Writer, number: int, knowledge: Knowledge) -> None:
    op = walk.kinds.ops[number]
    device = walk.builder.device_id(op.results[0].type, op.name)
    walk.define(walk.kinds.results(number)[0], replicated(0), device)


def _plain(op: Operation) -> dict[str, Any]:
    attributes = op.attributes
    return {n: attributes[n] for n in attributes if n not in ("sdy.sharding", "mhlo.sharding")}


def hand_on(walk: Writer, number: int, knowledge: Knowledge) -> bool:
    """Writes an op that passes values on, or has its results made where they are used if they need no data.

    Returns whether the op that is written is the copy of it.
    """
    flow = FLOW.get(knowledge.lowering)
    if flow is not None:
        return bool(flow(walk, number, knowledge))
    if not (knowledge.expands and spread_scalar(walk, number)):
        empty(walk, number)
    return False


FLOW: dict[str, Callable[[Writer, int, Knowledge], bool | None]] = {
    "constant": _constant,
    "empty": _empty,
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
    "callback": _callback,
}

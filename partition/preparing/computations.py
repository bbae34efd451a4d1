"""Ops for which a Python function of the user, and not the rules, gives the computation of each device.

They become manual computations, and their operands and results are resharded like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from ...errors import ShardlogError
from ...notations.frontend_attributes import calls_back
from ...notations.gspmd.groups import list_devices
from ...program.function import location
from ...program.mlir.modules import main_function, operations_in, symbols
from ...program.mlir.types import Operation
from ...program.shardings import declared, manual_axes
from ...program.signature import text_of
from ..executions import with_inner
from ..writing.building import CHANNEL, channel_of


@dataclass(frozen=True)
class Computation:
    """The computation of each device for an op: the bytecode of a module whose main function takes a device's
    parts of the operands and returns its parts of the results; the shardings (``#sdy.sharding``) of operands
    and results; and the axes of their mesh that it is over."""

    module: bytes
    takes: tuple[Any, ...]
    gives: tuple[Any, ...]
    axes: tuple[str, ...]


def lacking(op: Operation) -> ShardlogError:
    """The error for an op whose function is missing."""
    message = "the module lacks the Python function (custom_partitioning) that defines this op on each device"
    hint = "partition where the function is: shardlog.run(jax.jit(f).lower(...)), or shardlog.jit"
    return ShardlogError(message, where=location(op), hint=hint)


def put_in_place_of_ops(
    module: ir.Module,
    ops: Iterable[tuple[Operation, Computation]],
    mark: Callable[[Operation, Operation, bool], None],
) -> None:
    """Replaces ops of a module by computations. ``mark`` is told of each new op, the op that it was made for,
    and whether it is inside of the computation."""
    names = {text_of(op.attributes["sym_name"]) for op in module.body.operations}
    channel = max(map(channel_of, operations_in(module)), default=0)
    for op, computation in ops:
        body = ir.Module.parse(computation.module)
        shardings = declared(symbols(body, "sdy.mesh"))
        for inner in operations_in(body):
            list_devices(
                inner, shardings
            )  # their meshes may differ from the module's meshes of the same names
        _rename(body, names)
        functions = symbols(body, "func.func")
        main = functions.pop(main_function(functions))
        computation_op = _manual(op, computation)
        called = [function.operation.clone(ir.InsertionPoint(module.body)) for function in functions.values()]
        _give_body(computation_op, main.operation.clone(ir.InsertionPoint(module.body)))
        mark(computation_op, op, False)
        for inner in (*operations_in(computation_op), *chain.from_iterable(map(with_inner, called))):
            if calls_back(inner):
                message = (
                    "the function from partition calls back into Python here, and JAX drops the callback"
                )
                hint = "remove jax.debug.print, pure_callback and the like from it: XLA would crash"
                raise ShardlogError(message, where=location(op), hint=hint)
            mark(inner, op, True)
            inner.location = op.location  # their locations are lines of the caller of the partitioner
            if channel_of(inner):
                channel += 1
                inner.attributes[CHANNEL] = stablehlo.ChannelHandle.get(channel, 1)
        for result, value in zip(op.results, computation_op.results, strict=True):
            result.replace_all_uses_with(value)
        op.erase()


def _rename(body: ir.Module, names: set[str]) -> None:
    """Gives the functions of a computation unused names."""
    for name, function in symbols(body, "func.func").items():
        new, count = name, 0
        while new in names:
            count += 1
            new = f"{name}_{count}"
        names.add(new)
        if new != name:
            ir.SymbolTable.replace_all_symbol_uses(name, new, body.operation)
            ir.SymbolTable.set_symbol_name(function, new)


def _manual(op: Operation, computation: Computation) -> Any:
    """An empty manual computation before an op, with that op's operands and results."""
    attributes: dict[str, ir.Attribute] = {
        "in_shardings": sdy.TensorShardingPerValueAttr.get(list(computation.takes)),
        "out_shardings": sdy.TensorShardingPerValueAttr.get(list(computation.gives)),
        "manual_axes": manual_axes(computation.axes),
    }
    types, operands, ip = list(op.results.types), list(op.operands), ir.InsertionPoint(op.operation)
    name = "sdy.manual_computation"
    return ir.Operation.create(name, types, operands, attributes, regions=1, loc=op.location, ip=ip)


def _give_body(computation: Any, function: Operation) -> None:
    """Makes the body of a function the body of a manual computation."""
    block = function.regions[0].blocks[0]
    block.append_to(computation.regions[0])
    *_, last = block.operations
    values = list(last.operands)
    last.operation.erase()
    ir.Operation.create("sdy.return", operands=values, loc=computation.location, ip=ir.InsertionPoint(block))
    function.erase()

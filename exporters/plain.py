"""A program without its shardings, for one device."""

from __future__ import annotations

from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..program.boundaries import boundary_axes
from ..program.function import location
from ..program.mlir.modules import (
    boundary_attributes,
    called,
    copy_of,
    entries_of,
    operations_in,
    ops_in,
    put_in_place,
    symbols,
)
from ..program.mlir.types import Operation
from ..rulebook.traits import OpTraits

_ANNOTATIONS = ("sdy.sharding", "mhlo.sharding")
# Where tensors lie, and whose buffer a result takes: with an argument elsewhere XLA ends the process.
_BUFFERS = ("mhlo.memory_kind", "tf.aliasing_output", "jax.buffer_donor")


def plain(module: ir.Module, traits: OpTraits) -> ir.Module:
    """A copy of an annotated module without meshes and shardings, without the ops that only say how
    values are sharded, and without the memories of arguments and results.

    Raises ShardlogError for manual computations, which are for several devices.
    """
    copy = copy_of(module)
    with module.context, ir.Location.unknown():
        for op in ops_in(copy):
            operation = op.operation
            lowering = traits.lowering(called(operation))
            if lowering == "identity":
                for result, operand in zip(operation.results, operation.operands, strict=True):
                    result.replace_all_uses_with(operand)
                operation.erase()
            elif lowering == "nothing":
                operation.erase()
            elif lowering == "body":
                _inline(operation)
            else:
                for label in _ANNOTATIONS:
                    if label in operation.attributes:
                        del operation.attributes[label]
        for function in symbols(copy, "func.func").values():
            for label in ("arg_attrs", "res_attrs"):
                entries = [
                    ir.DictAttr.get(entries_of(entry, *_ANNOTATIONS, *_BUFFERS))
                    for entry in boundary_attributes(function, label)
                ]
                if entries:
                    function.attributes[label] = ir.ArrayAttr.get(entries)
        for mesh in symbols(copy, "sdy.mesh").values():
            mesh.operation.erase()
        one = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 1)
        copy.operation.attributes["mhlo.num_partitions"] = one
        copy.operation.attributes["mhlo.num_replicas"] = one
    return copy


def tell_nobody(module: ir.Module, traits: OpTraits) -> None:
    """Removes ops that report to a function of the module's process by address: in another process XLA would
    call whatever is at that address."""
    tells = traits.family("tells_maker_op")
    for op in operations_in(module):
        if called(op) in tells:
            for result, operand in zip(op.results, op.operands, strict=True):
                result.replace_all_uses_with(operand)
            op.erase()


def _inline(operation: Operation) -> None:
    """Replaces an op by the ops of its body."""
    if boundary_axes(operation):
        hint = "it is the program of each of several devices"
        raise ShardlogError("a manual computation", where=location(operation), hint=hint)
    put_in_place(operation.regions[0].blocks[0], operation)

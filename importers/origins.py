"""Attributes of Shardy's debugging options: the origins of shardings, and the edges that they came by. They
are dropped, because they do not apply to the shardings that are decided now."""

from __future__ import annotations

from jaxlib.mlir import ir

from ..program.mlir.modules import boundary_attributes, entries_of, operations_in

_MARKS = (b"propagation_edges", b"sharding_origin")
_DEBUGGING = (
    *("sdy.propagation_edges", "sdy.block_arg_propagation_edges", "sdy.result_propagation_edges"),
    *("sdy.sharding_origins", "sdy.block_arg_sharding_origins", "sdy.result_sharding_origins"),
    "sdy.sharding_origin_name",
)


def drop_origins(module: ir.Module, data: bytes) -> bool:
    """Takes them off the ops, arguments and results of a module, in place; whether there were such. ``data``
    is the module as text or bytecode."""
    if not any(mark in data for mark in _MARKS):
        return False
    for op in operations_in(module):
        attributes = op.attributes
        for label in _DEBUGGING:
            if label in attributes:
                del attributes[label]
        for label in ("arg_attrs", "res_attrs"):
            if label in attributes:
                kept = [ir.DictAttr.get(entries_of(e, *_DEBUGGING)) for e in boundary_attributes(op, label)]
                attributes[label] = ir.ArrayAttr.get(kept)
    return True

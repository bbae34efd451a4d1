"""Telling functions of the user's how values are sharded, as ``jax.debug.inspect_array_sharding`` asks: XLA
tells them while it partitions, and not of a program that is partitioned already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..program.mlir.modules import called, operations_in
from ..runs.custom_partitioning import hlo_sharding

if TYPE_CHECKING:
    from ..partition.device_program import DeviceProgram
    from ..runs.result import Result


def tell(result: Result, program: DeviceProgram) -> None:
    """Tells functions that are there how a partitioned program has the values that they ask about."""
    asking = [each for each in result.source.interface.alive if callable(each)]
    if not asking:
        return
    from jaxlib import xla_client

    encode: Any = xla_client.encode_inspect_sharding_callback
    keys, tells = {encode(each): each for each in asking}, result.book.traits.family("tells_maker_op")
    for op in operations_in(result.module):
        if called(op) not in tells or op not in result.items:
            continue
        tell_one = keys.get(op.attributes["backend_config"].value_bytes)
        if tell_one is not None:
            value = result.record.value(result.record.op(result.items[op]).values[0])
            homes = program.homes.get(op.operands[0])
            sharding = program.axes.sharding(homes[0]) if homes else None
            tell_one(hlo_sharding(result, value, sharding))

"""Refuses functions that take or return a tensor on a single device, and ops with results on several, as
Shardy does since 0.11.

``rules/propagation/boundary.dl`` decides which to refuse.
"""

from __future__ import annotations

from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..program.function import location
from ..program.mlir.modules import operations_in
from ..program.shardings import Shardings
from ..rulebook.book import RuleBook
from .values import ValueShardings

_ROLES = {"argument": "arg_attrs", "result": "res_attrs"}


def check_single_devices(module: ir.Module, shardings: Shardings, book: RuleBook) -> None:
    """Raises ShardlogError at the first function with such an argument or result, or else at the first op
    with such results."""
    devices = {mesh.device_ids for mesh in shardings.meshes.meshes if mesh.maximal}
    if not devices:
        return
    values = ValueShardings(module, shardings, book)
    if book.refuses(single_device=True):
        _check_boundaries(values)
    if len(devices) > 1 and book.refuses(devices_differ=True):
        for function in values.functions.values():
            for op in operations_in(function, ir.WalkOrder.POST_ORDER):
                _check_results(op, values)


def _check_boundaries(values: ValueShardings) -> None:
    meshes = values.shardings.meshes.meshes
    for function in values.functions.values():
        for role, label in _ROLES.items():
            for number, sharding in enumerate(values.boundary(function, label)):
                if sharding is not None and meshes[sharding.mesh].maximal:
                    raise ShardlogError(
                        f"{role} {number} of @{function.name.value} has a sharding on a single device",
                        where=location(function),
                        hint="remove that sharding; only Shardy 0.10 accepts it (--shardy 0.10)",
                    )


def _check_results(op: ir.Operation, values: ValueShardings) -> None:
    meshes = values.shardings.meshes.meshes
    held = map(values.of, op.results) if len(op.results) > 1 else ()
    devices = {meshes[s.mesh].device_ids[0] for s in held if s is not None and meshes[s.mesh].maximal}
    if len(devices) > 1 and "callee" not in op.attributes and not values.flows(op):
        listed = " and ".join(map(str, sorted(devices)))
        raise ShardlogError(
            f"{op.name} has results on several single devices: {listed}",
            where=location(op),
            hint="annotate them with one device; only Shardy 0.10 accepts it (--shardy 0.10)",
        )

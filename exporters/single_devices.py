"""Refuses functions that take or return a tensor on a single device, as Shardy does since 0.11.

``rules/propagation/boundary.dl`` decides what is refused.
"""

from __future__ import annotations

from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..program.boundaries import boundary_shardings
from ..program.function import location
from ..program.mlir.modules import symbols
from ..program.shardings import Shardings
from ..rulebook.book import RuleBook

_ROLES = {"argument": "arg_attrs", "result": "res_attrs"}


def check_single_devices(module: ir.Module, shardings: Shardings, book: RuleBook) -> None:
    """Raises ShardlogError at the first function with such an argument or result."""
    meshes = shardings.meshes.meshes
    if not any(mesh.maximal for mesh in meshes) or not book.refuses(single_device=True):
        return
    for function in symbols(module, "func.func").values():
        for role, label in _ROLES.items():
            for number, sharding in enumerate(boundary_shardings(function, label, shardings)):
                if sharding is not None and meshes[sharding.mesh].maximal:
                    raise ShardlogError(
                        f"{role} {number} of @{function.name.value} has a sharding on a single device",
                        where=location(function),
                        hint="remove that sharding; only Shardy 0.10 accepts it (--shardy 0.10)",
                    )

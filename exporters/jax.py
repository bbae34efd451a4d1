"""Shardings as JAX has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ShardlogError
from ..importers.meshes import Mesh
from ..importers.shardings import Sharding

if TYPE_CHECKING:
    from jax.sharding import NamedSharding


def named_sharding(sharding: Sharding, mesh: Mesh) -> NamedSharding:
    """The ``jax.sharding.NamedSharding`` on an abstract mesh.

    Raises ShardlogError where an axis is split: JAX has no name for a sub-axis.
    """
    try:
        from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
    except ImportError as error:
        raise ShardlogError("JAX is not installed", hint="pip install 'shardlog[jax]'") from error
    entries = []
    for dimension in sharding.dimensions:
        for axis in dimension.axes:
            if axis.size != mesh.sizes[axis.name]:
                raise ShardlogError(
                    f'sub-axis "{axis.name}":({axis.pre}){axis.size} has no name in JAX',
                    hint="split the mesh axis into two",
                )
        names = tuple(axis.name for axis in dimension.axes)
        entries.append(names[0] if len(names) == 1 else names or None)
    abstract = AbstractMesh(tuple(size for _, size in mesh.axes), tuple(name for name, _ in mesh.axes))
    return NamedSharding(abstract, PartitionSpec(*entries))  # type: ignore[no-untyped-call]

"""Unreduced arrays: devices along an axis hold the terms of a sum, a maximum or a minimum.

JAX has such arrays, and neither makes them of whole ones nor makes whole ones of them outside of programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

if TYPE_CHECKING:
    import jax
    from jax import Device
    from jax.sharding import NamedSharding, PartitionSpec, Sharding


def placed(leaf: object, sharding: Sharding) -> jax.Array:
    """An array, or a value that converts to one, as a ``jax.Array`` with a sharding. The first device along
    the axes of an unreduced sum has the whole value, and the others zeros. For a maximum or minimum each has
    the whole value."""
    import jax

    if not _is_unreduced(sharding) or _is_unreduced(getattr(leaf, "sharding", None)):
        array: jax.Array = jax.device_put(leaf, sharding)
        return array
    whole = jax.device_put(leaf, _reduced(sharding))
    first = {device for device, group, place in _places(sharding) if place == 0}
    parts = [
        shard.data
        if shard.device in first or reduction(sharding.spec) != "sum"
        else jax.numpy.zeros_like(shard.data)
        for shard in whole.addressable_shards
    ]
    return jax.make_array_from_single_device_arrays(whole.shape, sharding, parts)


def combined(array: jax.Array) -> jax.Array:
    """An unreduced ``jax.Array``, reduced on the host; any other array unchanged."""
    import jax

    sharding = array.sharding
    if not _is_unreduced(sharding):
        return array
    group_of = {device: group for device, group, _ in _places(sharding)}
    combine = {"sum": np.add, "max": np.maximum, "min": np.minimum}[reduction(sharding.spec)]
    by_group: dict[Any, Any] = {}
    for shard in array.addressable_shards:
        part, group = np.asarray(shard.data), group_of[shard.device]
        by_group[group] = combine(by_group[group], part) if group in by_group else part
    parts = [jax.device_put(by_group[group_of[s.device]], s.device) for s in array.addressable_shards]
    return jax.make_array_from_single_device_arrays(array.shape, _reduced(sharding), parts)


def reduction(spec: PartitionSpec) -> str:
    """How the parts of the devices along the unreduced axes of a ``PartitionSpec`` are combined: "sum",
    "max" or "min". JAX 0.10 has sums alone."""
    kind = getattr(spec, "unreduced_kind", None)
    return "sum" if kind is None else str(kind.name)


def _is_unreduced(sharding: Sharding | None) -> TypeGuard[NamedSharding]:
    return bool(_unreduced(sharding))


def _unreduced(sharding: Sharding | None) -> frozenset[str]:
    return frozenset(getattr(getattr(sharding, "spec", None), "unreduced", ()))


def _reduced(sharding: NamedSharding) -> NamedSharding:
    """The sharding of the array when it is reduced, where each device along the axes has it."""
    from jax.sharding import NamedSharding, PartitionSpec

    spec = PartitionSpec(*sharding.spec.partitions)  # type: ignore[no-untyped-call]
    return NamedSharding(sharding.mesh, spec, memory_kind=sharding.memory_kind)


def _places(sharding: NamedSharding) -> list[tuple[Device, int, int]]:
    """Each device of a sharding, the group of devices whose parts are combined, and its place in the
    group."""
    names, devices = sharding.mesh.axis_names, sharding.mesh.devices
    along = [d for d, name in enumerate(names) if name in _unreduced(sharding)]
    rows = np.moveaxis(devices, along, range(-len(along), 0)).reshape(
        -1, int(np.prod([devices.shape[d] for d in along]))
    )
    return [(device, group, place) for group, row in enumerate(rows) for place, device in enumerate(row)]

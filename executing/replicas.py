"""The copies that devices have of a result: all of them count."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .differences import Array, difference

if TYPE_CHECKING:
    import jax


def worst(array: jax.Array, expected: Array) -> Array:
    """A ``jax.Array`` as a NumPy array: of the devices' copies, the one that is furthest from the expected
    values. They are equal, except for wrong values and those without a defined meaning."""
    first, *others = _copies(array)
    copy, most = first, None
    for other in others:
        if not np.array_equal(first, other, equal_nan=first.dtype.kind in "fc"):
            most = difference(first, expected) if most is None else most
            if (off := difference(other, expected)) > most:
                copy, most = other, off
    return copy


def _copies(array: jax.Array) -> list[Array]:
    """The whole array as often as devices hold it."""
    shards = array.addressable_shards
    count = max((shard.replica_id for shard in shards), default=0) + 1
    if count == 1 or not array.is_fully_addressable:
        return [np.asarray(array)]
    copies = [np.empty(array.shape, array.dtype) for _ in range(count)]
    for shard in shards:
        copies[shard.replica_id][shard.index] = np.asarray(shard.data)
    return copies

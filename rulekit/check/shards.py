"""Cutting arrays along factors, and putting results together again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..case import Array

# A dimension and where a factor stands in it: (dimension, product of the factors before, size of the factor).
Cut = tuple[int, int, int]


def parts(size: int) -> int:
    """The number of parts that a factor is cut into: the smallest prime that divides its size."""
    return next(p for p in range(2, size + 1) if size % p == 0)


def split(array: Array, cut: Cut, n: int) -> list[Array]:
    """The array's ``n`` shards along a factor."""
    d, before, size = cut
    shape = array.shape
    whole = array.reshape(*shape[:d], before, size, shape[d] // (before * size), *shape[d + 1 :])
    local = local_shape(shape, cut, n)
    return [np.ascontiguousarray(part).reshape(local) for part in np.split(whole, n, axis=d + 1)]


def join(arrays: Sequence[Array], cut: Cut) -> Array:
    """The whole array that ``split`` cut."""
    d, before, size = cut
    shape, n = arrays[0].shape, len(arrays)
    after = shape[d] * n // (before * size)
    shards = [a.reshape(*shape[:d], before, size // n, after, *shape[d + 1 :]) for a in arrays]
    return np.concatenate(shards, axis=d + 1).reshape(*shape[:d], shape[d] * n, *shape[d + 1 :])


def local_shape(shape: Sequence[int], cut: Cut, n: int) -> tuple[int, ...]:
    """The shape of a shard."""
    return tuple(size // n if d == cut[0] else size for d, size in enumerate(shape))


def masks(array: Array, cut: Cut, n: int) -> list[Array]:
    """For each shard the whole array, zero outside of the shard."""
    shards = split(array, cut, n)
    zeros = [np.zeros_like(shard) for shard in shards]
    return [join([*zeros[:i], shards[i], *zeros[i + 1 :]], cut) for i in range(n)]


_REDUCTIONS: Mapping[str, Callable[..., Any]] = {
    "sum": np.add,
    "product": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def reductions(arrays: Sequence[Array]) -> Iterator[Array]:
    """The arrays that the shards' results may reduce to."""
    for function in _REDUCTIONS.values():
        try:
            result = arrays[0]
            for other in arrays[1:]:
                result = function(result, other)
        except TypeError:
            continue  # bitwise operations on floats
        yield np.asarray(result)


def equal(one: Array, other: Array) -> bool:
    """Equal up to rounding."""
    if one.shape != other.shape:
        return False
    if not np.issubdtype(one.dtype, np.inexact):
        return np.array_equal(one, other)
    epsilon = float(np.finfo(one.dtype).eps) * 64 * max(1, prod(one.shape)) ** 0.5
    return np.allclose(one, other, rtol=epsilon, atol=epsilon, equal_nan=True)

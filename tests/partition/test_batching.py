"""Rows that a batch picks, each its own, send nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib.mlir import ir
from shardlog.partition.preparing.batching import counting_along
from shardlog.program.mlir.modules import ops_in

from ..support.traits import TRAITS

FLOATS, PLACES = jnp.float32, jnp.int32


def _array(shape: tuple[int, ...], type_: Any, axis: str | None) -> Any:
    sharding = NamedSharding(Mesh(np.array(jax.devices()), ("x",)), P(axis))  # type: ignore[no-untyped-call]
    return jax.ShapeDtypeStruct(shape, type_, sharding=sharding)  # type: ignore[no-untyped-call]


def _picked(x: jax.Array, at: jax.Array) -> jax.Array:
    return x[jnp.arange(16), at]


def _cached(cache: jax.Array, new: jax.Array, at: jax.Array) -> jax.Array:
    return cache.at[jnp.arange(16), at].set(new)


def _added(x: jax.Array, new: jax.Array, at: jax.Array) -> jax.Array:
    return x.at[jnp.arange(16)[:, None], at].add(new)


def _tokens(x: jax.Array, at: jax.Array) -> jax.Array:
    return x[jnp.arange(16)[:, None], np.arange(8)[None], at]


def _clipped(x: jax.Array, at: jax.Array) -> jax.Array:
    return x.at[jnp.arange(16), at].get(mode="clip") + x.at[jnp.arange(16), at].get(mode="fill")


def _in_a_place(x: jax.Array, row: jax.Array, column: jax.Array) -> jax.Array:
    return x[jnp.arange(16), row, column]


CASES: list[tuple[Callable[..., jax.Array], tuple[Any, ...]]] = [
    (_picked, ((16, 64), (16,))),
    (_picked, ((16, 8, 64), (16,))),
    (_cached, ((16, 64, 4), (16, 4), (16,))),
    (_added, ((16, 64), (16, 5), (16, 5))),
    (_tokens, ((16, 8, 64), (16, 8))),
    (_clipped, ((16, 64), (16,))),
    (_in_a_place, ((16, 8, 64), (16,), (16,))),
]


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("function, shapes", CASES)
def test_nothing_is_sent_for_them(
    function: Callable[..., jax.Array], shapes: tuple[Any, ...], keep: bool
) -> None:
    """Places count from the end as well, and may be outside."""
    count = function.__code__.co_argcount
    places = {n for n, name in enumerate(function.__code__.co_varnames[:count]) if name in "at row column"}
    given = [_array(shape, PLACES if n in places else FLOATS, "x") for n, shape in enumerate(shapes)]
    result = shardlog.run(jax.jit(function).lower(*given))
    program = result.partition(keep_shardings=keep)
    assert not program.collectives
    rng = np.random.default_rng(0)
    values = [
        rng.integers(-9, 12, shape).astype(np.int32)
        if n in places
        else rng.normal(size=shape).astype(np.float32)
        for n, shape in enumerate(shapes)
    ]
    np.testing.assert_allclose(program.compile()(*values), jax.jit(function)(*values), rtol=1e-6)


def test_what_does_not_count_up_is_no_batch() -> None:
    def few(x: jax.Array, at: jax.Array) -> jax.Array:
        return x[jnp.arange(8), at]  # of 16 rows

    def others(x: jax.Array, at: jax.Array) -> jax.Array:
        return x[jnp.arange(16)[::-1], at]

    for function, n in ((few, 8), (others, 16)):
        given = _array((16, 64), FLOATS, "x"), _array((n,), PLACES, None)
        program = shardlog.run(jax.jit(function).lower(*given)).partition()
        x, at = (
            np.random.default_rng(0).normal(size=(16, 64)).astype(np.float32),
            np.arange(n, dtype=np.int32),
        )
        np.testing.assert_allclose(program.compile()(x, at), jax.jit(function)(x, at), rtol=1e-6)
        assert program.collectives


FOUR = "%0 = stablehlo.iota dim = 0 : tensor<4xi32>\n"
MANY = "%0 = stablehlo.iota dim = 0 : tensor<200xi32>\n"


@pytest.mark.parametrize(
    "text, along",
    [
        ("%r = stablehlo.iota dim = 1 : tensor<2x4xi32>", 1),
        ("%r = stablehlo.iota dim = 0 : tensor<200xi8>", None),
        ("%r = stablehlo.constant dense<[[0, 1], [0, 1]]> : tensor<2x2xi32>", 1),
        ("%r = stablehlo.constant dense<[0, 2]> : tensor<2xi32>", None),
        (FOUR + "%r = stablehlo.reshape %0 : (tensor<4xi32>) -> tensor<1x4x1xi32>", 1),
        (FOUR + "%r = stablehlo.reshape %0 : (tensor<4xi32>) -> tensor<2x2xi32>", None),
        (FOUR + "%r = stablehlo.convert %0 : (tensor<4xi32>) -> tensor<4xi8>", 0),
        (MANY + "%r = stablehlo.convert %0 : (tensor<200xi32>) -> tensor<200xi8>", None),
        (FOUR + "%r = stablehlo.add %0, %0 : tensor<4xi32>", None),
    ],
)
def test_what_counts_up(text: str, along: int | None) -> None:
    with ir.Context() as context:
        from jaxlib.mlir.dialects import stablehlo

        stablehlo.register_dialect(context)
        module = ir.Module.parse(text)
        *_, last = ops_in(module)
        assert counting_along(last.operation.results[0], TRAITS) == along

"""Cumulative ops along dimensions that are in parts: each part sends what it makes together."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ..support.drawing import in_turn
from .running import run_partitioned

P: Any = PartitionSpec
OPS: dict[str, Callable[..., Any]] = {
    "sum": jax.lax.cumsum,
    "product": jax.lax.cumprod,
    "maximum": jax.lax.cummax,
    "minimum": jax.lax.cummin,
    "logarithm of a sum of exponentials": jax.lax.cumlogsumexp,
}


def lowered(function: Callable[..., Any], spec: Any, value: Any) -> jax.stages.Lowered:
    mesh = Mesh(np.array(jax.devices("cpu")[:8]).reshape(2, 4), ("a", "b"))
    sharding = NamedSharding(mesh, spec)
    argument = jax.ShapeDtypeStruct(value.shape, value.dtype, sharding=sharding)  # type: ignore[no-untyped-call]
    return jax.jit(function, out_shardings=sharding).lower(argument)


SPECS = [P("a", "b"), P(("b", "a")), P(None, ("a", "b"))]


@pytest.mark.parametrize(
    ("spec", "op", "reverse"), in_turn(0, product(SPECS, OPS, [False, True]), 3), ids=str
)
def test_of_each_part_one_row_is_sent(op: str, reverse: bool, spec: Any) -> None:
    x = np.random.default_rng(0).normal(size=(32, 64)).astype(np.float32)
    axis = 1 if len(spec) > 1 else 0

    def function(x: Any) -> Any:
        return OPS[op](x, axis, reverse=reverse)

    result = shardlog.run(lowered(function, spec, x))
    for keep in (True, False):
        program = result.partition("replica", keep_shardings=keep)
        (got,) = run_partitioned(result, program, [x])
        np.testing.assert_allclose(got, jax.jit(function)(x), rtol=1e-4, atol=1e-5)
        assert [each.kind for each in program.collectives] == ["all-gather"]
        parts = 4 if spec == P("a", "b") else 8
        others = {P("a", "b"): 16, P(("b", "a")): 64}.get(spec, 32)
        assert sum(each.total for each in program.collectives) == (parts - 1) * others * 4


MODULE = """sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<SIZExi32> {sdy.sharding = #sdy.sharding<@mesh, [{HELD}]>})
    -> (tensor<SIZExi32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = "stablehlo.reduce_window"(%x, %0) <{
    padding = dense<[[LOW, HIGH]]> : tensor<1x2xi64>, window_dimensions = array<i64: SIZE>
  }> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %2 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }) : (tensor<SIZExi32>, tensor<i32>) -> tensor<SIZExi32>
  return %1 : tensor<SIZExi32>
}
"""


@pytest.mark.parametrize("held", ['"a"', ""], ids=["of parts", "of the whole"])
@pytest.mark.parametrize("size", [9, 10, 13, 4])
@pytest.mark.parametrize("reverse", [False, True], ids=["from the first", "from the last"])
def test_the_last_parts_may_be_smaller(size: int, reverse: bool, held: str) -> None:
    x = np.arange(1, size + 1, dtype=np.int32)
    low, high = (0, size - 1) if reverse else (size - 1, 0)
    text = MODULE.replace("SIZE", str(size)).replace("LOW", str(low)).replace("HIGH", str(high))
    result = shardlog.run(text.replace("HELD", held))
    for keep in (True, False):
        (got,) = run_partitioned(result, result.partition("replica", keep_shardings=keep), [x])
        expected = np.cumsum(x[::-1])[::-1] if reverse else np.cumsum(x)
        assert got.tolist() == expected.tolist()


def test_windows_along_two_dimensions_reach_into_neighbours() -> None:
    x = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)

    def corner(x: Any) -> Any:  # the sum of all above and to the left
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (8, 8), (1, 1), ((7, 0), (7, 0)))

    result = shardlog.run(lowered(corner, P("a", "b"), x))
    (got,) = run_partitioned(result, result.partition("replica", keep_shardings=True), [x])
    np.testing.assert_allclose(got, jnp.cumsum(jnp.cumsum(x, 0), 1), rtol=1e-4, atol=1e-5)


def test_windows_with_holes_accumulate_nothing() -> None:
    x = np.random.default_rng(0).normal(size=(8, 9)).astype(np.float32)

    def every_other(x: Any) -> Any:  # of the nine elements up to one
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 5), (1, 1), ((0, 0), (8, 0)), None, (1, 2))

    module = shardlog.run(lowered(every_other, P(None, None), x)).text()
    held = '{sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>}'
    sharded = re.sub(r"\{sdy.sharding = #sdy.sharding<@mesh, \[\{\}, \{\}\]>\}", held, module)
    assert sharded != module
    result = shardlog.run(sharded)
    (got,) = run_partitioned(result, result.partition("replica", keep_shardings=True), [x])
    np.testing.assert_allclose(got, every_other(x), rtol=1e-4, atol=1e-5)

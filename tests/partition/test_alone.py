"""What happens once, and random numbers, which are the same on all devices."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import shardlog
from jax.experimental import io_callback
from jax.sharding import NamedSharding, PartitionSpec
from shardlog.errors import ShardlogError
from shardlog.partition.forms import FORMS

from ..support.programs import mesh
from .running import run_partitioned

NUMBERS = """
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func @main() -> (tensor<8x3xf32>,
                      tensor<8x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %low = stablehlo.constant dense<0.0> : tensor<f32>
  %high = stablehlo.constant dense<1.0> : tensor<f32>
  %shape = stablehlo.constant dense<[8, 3]> : tensor<2xi64>
  %0 = stablehlo.rng %low, %high, %shape, distribution = UNIFORM
     : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<8x3xf32>
  %1 = stablehlo.negate %0 : tensor<8x3xf32>
  return %0, %1 : tensor<8x3xf32>, tensor<8x3xf32>
}
"""


@pytest.mark.parametrize("form", ["replica", "manual"])
def test_random_numbers_are_those_of_one_device(form: Any) -> None:
    result = shardlog.run(NUMBERS)
    numbers, negated = run_partitioned(result, result.partition(form), [])
    assert np.array_equal(numbers, -negated)


@pytest.mark.parametrize("form", FORMS)
def test_what_gives_nothing_runs_once_for_all_devices(form: Any) -> None:
    """In each turn of a loop, of which nothing else asks which device it runs on."""
    seen = []

    def step(x: Any, _: Any) -> Any:
        jax.debug.callback(lambda x: seen.append(np.asarray(x)), x)
        return x * 2, None

    spec = NamedSharding(mesh(), PartitionSpec("data", "model"))  # type: ignore[no-untyped-call]
    x = jax.ShapeDtypeStruct((8, 16), np.float32, sharding=spec)  # type: ignore[no-untyped-call]
    lowered = jax.jit(lambda x: jax.lax.scan(step, x, length=3)[0]).lower(x)
    values = np.arange(128, dtype=np.float32).reshape(8, 16)
    got = shardlog.run(lowered).partition(form).compile()(values)
    assert np.array_equal(got, values * 8)
    jax.effects_barrier()  # type: ignore[no-untyped-call]
    assert [int(x[0, 1]) for x in seen] == [1, 2, 4]


@pytest.mark.parametrize("call", [io_callback, jax.pure_callback])
def test_a_callback_runs_once_for_all_devices(call: Any) -> None:
    seen = []

    def look(x: Any) -> Any:
        seen.append(np.asarray(x))
        return np.asarray(x) * 3

    def function(x: Any) -> Any:
        return call(look, x, x) + 1

    spec = NamedSharding(mesh(), PartitionSpec("data", "model"))  # type: ignore[no-untyped-call]
    x = jax.ShapeDtypeStruct((8, 16), np.float32, sharding=spec)  # type: ignore[no-untyped-call]
    partitioned = shardlog.run(jax.jit(function).lower(x)).partition()
    values = np.arange(128, dtype=np.float32).reshape(8, 16)
    got = partitioned.compile()(values)
    assert np.array_equal(got, values * 3 + 1)
    assert len(seen) == 1
    assert np.array_equal(seen[0], values)


def test_what_comes_from_the_host_is_refused() -> None:
    module = """
sdy.mesh @mesh = <["a"=8]>
func.func @main(%token: !stablehlo.token) -> tensor<8xf32> {
  %0:2 = "stablehlo.infeed"(%token) <{infeed_config = ""}>
      : (!stablehlo.token) -> (tensor<8xf32>, !stablehlo.token)
  return %0#0 : tensor<8xf32>
}
"""
    with pytest.raises(ShardlogError, match="cannot run on each device") as error:
        shardlog.run(module).partition()
    assert "take its own data from the host" in str(error.value)

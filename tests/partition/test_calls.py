"""Functions that are called several times: each call is partitioned for itself, and explained as the function
that was read."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from shardlog.program.shardings import Sharding
from shardlog.tests.support.lines_of_jax import on_host
from shardlog.tests.support.programs import array

pytestmark = pytest.mark.versions

# The lengths of %a are wanted in parts and, to be sorted, whole; those of %b in parts.
CALLED = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
#parts = #sdy.sharding<@mesh, [{"x"}]>
#whole = #sdy.sharding<@mesh, [{}]>
func.func private @length(%v: tensor<16x64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.multiply %v, %v : tensor<16x64xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<16x64xf32>, tensor<f32>) -> tensor<64xf32>
  %2 = stablehlo.sqrt %1 : tensor<64xf32>
  return %2 : tensor<64xf32>
}
func.func @main(%a: tensor<16x64xf32> {sdy.sharding = #rows}, %b: tensor<16x64xf32> {sdy.sharding = #rows})
    -> (tensor<64xf32> {sdy.sharding = #parts}, tensor<64xf32> {sdy.sharding = #whole}, tensor<64xf32> {sdy.sharding = #parts}) {
  %0 = func.call @length(%a) : (tensor<16x64xf32>) -> tensor<64xf32>
  %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %less = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<64xf32>) -> tensor<64xf32>
  %2 = func.call @length(%b) : (tensor<16x64xf32>) -> tensor<64xf32>
  return %0, %1, %2 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
}
"""  # noqa: E501


def test_each_call_has_its_own_shardings() -> None:
    result = shardlog.run(CALLED)
    kept = result.partition(keep_shardings=True).collectives
    kinds = ["reduce-scatter", "all-gather", "reduce-scatter"]
    assert [(c.kind, c.executions) for c in kept] == [(kind, 1) for kind in kinds]
    assert [c.value for c in kept if c.kind == "reduce-scatter"] == ["@length#1:%1"] * 2
    program = result.partition()
    assert [(c.kind, c.bytes) for c in program.collectives] == [("all-reduce", 384), ("reduce-scatter", 192)]
    a, b = np.random.default_rng(0).normal(size=(2, 16, 64)).astype(np.float32)
    lengths = [np.sqrt((value**2).sum(0)) for value in (a, b)]
    expected = lengths[0], np.sort(lengths[0]), lengths[1]
    for got, value in zip(program.compile()(a, b), expected, strict=True):
        np.testing.assert_allclose(got, value, rtol=1e-6)


def test_they_are_explained_as_the_function_that_was_read() -> None:
    result = shardlog.run(CALLED)
    program = result.partition()
    assert [(c.op, c.value) for c in program.collectives] == [("stablehlo.reduce", "@length#1:%1")] * 2
    assert [c.causes for c in program.collectives][1]
    (choice,) = result.chosen("@length#1:%2")  # in one call; in the other one it is as propagation says
    assert (choice.dims, choice.propagated) == (("",), ("x",))
    named, first, *_ = str(program.why(0)).splitlines()
    assert named.startswith("program: least bytes")
    assert first == 'all-reduce 0 over "x": 384 bytes from each of 4 devices, once'


def test_a_pin_holds_in_each_call() -> None:
    result = shardlog.run(CALLED)
    (value,) = (op.results[0] for op in result.items if op.name == "stablehlo.reduce")
    program = result.partition(pins={value: Sharding.open(0, 1)})
    assert [c.kind for c in program.collectives] == ["all-reduce"] * 2


def test_functions_that_say_where_to_compute_stay_functions() -> None:
    @on_host
    def total(x: jax.Array) -> jax.Array:
        return (x * x).sum(1)

    lowered = jax.jit(lambda x: total(x) + total(x + 1)).lower(array((8, 16), "data", "model"))
    for keep in (True, False):
        program = shardlog.run(lowered).partition(keep_shardings=keep)
        calls = [line for line in program.text().splitlines() if "call @compute_on" in line]
        assert ['_xla_compute_type = "host"' in call for call in calls] == [True] * 2


def test_a_function_of_many_calls_stays_one() -> None:
    """Each call takes time to choose for."""

    @jax.jit
    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        for _ in range(50):
            x = jnp.sin(x @ w)
        return x

    def steps(x: jax.Array, w: jax.Array) -> jax.Array:
        for _ in range(60):
            x = step(x, w)
        return x

    given = array((128, 256), "data"), array((256, 256), "model")
    program = shardlog.run(jax.jit(steps).lower(*given)).partition()
    assert program.text().count("call @step") > 50


def test_a_program_of_another_name_is_partitioned_as_one_called_main() -> None:
    named = [CALLED.replace("@main", name) for name in ("@main", "@step")]
    main, step = (shardlog.run(text).partition().text() for text in named)
    assert step.replace("@step", "@main") == main


def test_what_a_loop_hands_to_a_function_is_in_parts_there() -> None:
    """JAX calls a function for what a scan does in a turn. XLA has it in place, and what the loop stacks for
    the backward pass in parts; less would be sent if it all were computed on every device."""

    def loss(p: jax.Array, x: jax.Array) -> jax.Array:
        def turn(state: jax.Array, row: jax.Array) -> tuple[jax.Array, jax.Array]:
            state = jnp.tanh(state * p + row) / (1 + jnp.sum(p * state.mean(0)))
            return state, state

        return (jax.lax.scan(turn, jnp.zeros((16, 12)), x.T[..., None])[1] ** 2).mean()

    step, rows = jax.value_and_grad(loss), array((16, 40), "data")
    program = shardlog.run(jax.jit(step), jnp.ones(12), rows).partition()
    assert "tensor<40x16x12xf32>" not in program.text()
    p, x = np.linspace(0, 1, 12, dtype=np.float32), np.sin(np.arange(640, dtype=np.float32)).reshape(16, 40)
    for got, expected in zip(program.compile()(p, x), jax.jit(step)(p, x), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-6)

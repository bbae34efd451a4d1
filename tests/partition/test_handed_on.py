"""What functions take and give, and what loops carry, lies where all ops together want it."""

from __future__ import annotations

import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from shardlog.tests.support.programs import array

from .running import run_partitioned

# Both functions need all of %a, of which devices have parts.
CALLS = """\
sdy.mesh @mesh = <["x"=4]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #columns}) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = call @lower(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = call @upper(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @lower(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.cholesky %a, lower = true : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
func.func private @upper(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.cholesky %a, lower = false : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def test_functions_share_what_is_gathered() -> None:
    program = shardlog.run(CALLS).partition(keep_shardings=False)
    (only,) = program.collectives
    assert (only.kind, only.bytes) == ("all-gather", 3 * 8 * 2 * 4)
    a = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    lower, upper = program.compile()(a := a @ a.T + 8 * np.eye(8, dtype=np.float32))
    np.testing.assert_allclose(np.tril(lower), np.linalg.cholesky(a), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(np.triu(upper).T, np.linalg.cholesky(a), rtol=1e-4, atol=1e-4)


# Sums of what a function gives are summed once.
GIVES = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<16x8xf32> {sdy.sharding = #rows}) -> tensor<8x8xf32> {
  %0 = call @f(%a, %b) : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = call @f(%a, %b) : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
func.func private @f(%a: tensor<8x16xf32>, %b: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""  # noqa: E501


def test_functions_give_partial_sums() -> None:
    program = shardlog.run(GIVES).partition(keep_shardings=False)
    assert [c.kind for c in program.collectives] == ["all-reduce"]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((8, 16), (16, 8)))
    (got,) = program.compile()(a, b)
    np.testing.assert_array_equal(got, 2 * a @ b)


def sharding(*spec: str | None) -> jax.sharding.NamedSharding:
    """A sharding on four devices."""
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:4]), ("x",))
    return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*spec))  # type: ignore[no-untyped-call]


def test_what_every_turn_of_a_loop_needs_is_sent_before() -> None:
    def sums(x: jax.Array) -> jax.Array:
        def turn(total: jax.Array, n: jax.Array) -> tuple[jax.Array, None]:
            return total + n * jnp.sort(x, 0), None

        return jax.lax.scan(turn, jnp.zeros((8, 8)), jnp.arange(8.0))[0]

    x = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    result = shardlog.run(jax.jit(sums, in_shardings=sharding("x")).lower(x))
    program = result.partition(keep_shardings=False)
    assert [c.executions for c in program.collectives] == [1] * len(program.collectives)
    (got,) = jax.tree.leaves(program.compile()(x))
    np.testing.assert_allclose(got, 28 * np.sort(x, 0), rtol=1e-5)


def test_what_a_loop_needs_part_by_part_is_not_gathered_before() -> None:
    """It would take the memory of all parts: they are parts of columns in place of rows, at once."""

    def sums(matrices: jax.Array) -> jax.Array:
        def turn(total: jax.Array, matrix: jax.Array) -> tuple[jax.Array, None]:
            return total + jnp.sort(matrix, 0), None

        return jax.lax.scan(turn, jnp.zeros((8, 8)), matrices)[0]

    matrices = np.random.default_rng(0).standard_normal((6, 8, 8)).astype(np.float32)
    result = shardlog.run(jax.jit(sums, in_shardings=sharding(None, "x")).lower(matrices))
    program = result.partition(keep_shardings=False)
    exchanged, back = program.collectives
    assert {exchanged.kind, back.kind} == {"all-to-all"}
    assert (exchanged.bytes, exchanged.executions) == (6 * 8 * 2 * 4 * 3 / 4, 1)
    assert re.search(r"while\(.*tensor<6x8x2xf32>", program.text())
    (got,) = jax.tree.leaves(program.compile()(matrices))
    np.testing.assert_allclose(got, np.sort(matrices, 1).sum(0), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_what_has_no_elements_is_not_sent(dtype: Any) -> None:
    def sums(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.associative_scan(jnp.add, x), x[:0] * 2

    x = np.random.default_rng(0).integers(-9, 9, (7, 8)).astype(dtype)
    for keep in (True, False):
        result = shardlog.run(jax.jit(sums, in_shardings=sharding(None, "x")).lower(x))
        program = result.partition(keep_shardings=keep)
        assert not program.collectives
        got, nothing = program.compile()(x)
        np.testing.assert_array_equal(got, np.cumsum(x, 0))
        assert (nothing.shape, nothing.sharding.shard_shape(nothing.shape)) == ((0, 8), (0, 2))


def test_what_a_condition_needs_is_sent_each_turn() -> None:
    """So it is summed up where it lies, and the rest of the program as all ops together want it."""

    def doubled(x: jax.Array, a: jax.Array, b: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jax.lax.while_loop(lambda x: jnp.any(x < 100), lambda x: 2 * x, x), a @ b - b.T @ a.T

    rng = np.random.default_rng(0)
    x = rng.uniform(1, 9, (4096,)).astype(np.float32)
    a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((8, 16), (16, 8)))
    given = sharding("x"), sharding(None, "x"), sharding("x")
    lowered = jax.jit(doubled, in_shardings=given, out_shardings=(sharding("x"), sharding())).lower(x, a, b)
    program = shardlog.run(lowered).partition(keep_shardings=False)
    assert [c.kind for c in program.collectives] == ["all-reduce"] * 2
    got, difference = jax.tree.leaves(program.compile()(x, a, b))
    np.testing.assert_array_equal(got, x * 2 ** np.ceil(np.log2(100 / x.min())))
    np.testing.assert_array_equal(difference, a @ b - b.T @ a.T)


def test_what_a_condition_needs_is_no_copy_that_the_body_makes() -> None:
    """The weights are gathered before the loop; each turn gathers what it multiplies with them."""

    def turns(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.while_loop(lambda x: jnp.abs(x).max() > 0.1, lambda x: jnp.tanh(x @ w), x)

    lowered = jax.jit(turns).lower(array((16, 128), "data", "model"), array((128, 128), "data", "model"))
    program = shardlog.run(lowered).partition()
    each_turn = [c.kind for c in program.collectives if c.executions is None]
    assert sorted(each_turn) == ["all-gather", "all-reduce"]
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=shape).astype(np.float32) / 16 for shape in ((16, 128), (128, 128)))
    (got,) = jax.tree.leaves(program.compile()(x, w))
    np.testing.assert_allclose(got, jax.jit(turns)(x, w), atol=1e-5)


def test_what_a_loop_does_not_change_is_made_in_its_turns_where_it_is_made_of_no_data() -> None:
    """Its turns are counted by a bound that it carries, and elements below a floor are raised to that."""
    module = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #rows})
    -> (tensor<8x8xf32> {sdy.sharding = #rows}, tensor<8x8xf32> {sdy.sharding = #rows}) {
  %start = stablehlo.constant dense<0> : tensor<i32>
  %end = stablehlo.constant dense<5> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %scalar = stablehlo.constant dense<0.5> : tensor<f32>
  %floor = stablehlo.broadcast_in_dim %scalar, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
  %0:4 = stablehlo.while(%i = %start, %bound = %end, %least = %floor, %a = %x)
      : tensor<i32>, tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    cond {
      %c = stablehlo.compare LT, %i, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %j = stablehlo.add %i, %one : tensor<i32>
      %h = stablehlo.multiply %a, %least : tensor<8x8xf32>
      %m = stablehlo.maximum %h, %least : tensor<8x8xf32>
      stablehlo.return %j, %bound, %least, %m : tensor<i32>, tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
    }
  %1 = stablehlo.add %0#2, %0#3 : tensor<8x8xf32>
  return %1, %0#2 : tensor<8x8xf32>, tensor<8x8xf32>
}
"""
    for keep in (False, True):
        program = shardlog.run(module).partition(keep_shardings=keep)
        assert not program.collectives
        assert re.search(r"while\([^)]*\) : tensor<i32>, tensor<2x8xf32>\n", program.text())
        multiplied = [i for i in program.cost().items if i.op == "stablehlo.multiply"]
        assert [item.times for item in multiplied] == [5]
        x = np.random.default_rng(0).uniform(0, 40, (8, 8)).astype(np.float32)
        got, least = program.compile()(x)
        for _ in range(5):
            x = np.maximum(x * 0.5, 0.5)
        np.testing.assert_array_equal(got, x + 0.5)
        np.testing.assert_array_equal(least, np.full((8, 8), 0.5))


# Both loops take turns with the same weights, which are gathered of a value that is made in the inner one.
LOOPS = """\
sdy.mesh @mesh = <["x"=8]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
#whole = #sdy.sharding<@mesh, [{}]>
func.func @main(%w: tensor<16x16xf32> {sdy.sharding = #rows}, %v: tensor<16xf32> {sdy.sharding = #whole})
    -> (tensor<16xf32> {sdy.sharding = #whole}) {
  %start = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %two = stablehlo.constant dense<2> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %0:3 = stablehlo.while(%i = %start, %m = %w, %s = %v) : tensor<i32>, tensor<16x16xf32>, tensor<16xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1:2 = stablehlo.while(%j = %start, %t = %s) : tensor<i32>, tensor<16xf32>
    cond {
      %2 = stablehlo.compare LT, %j, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %2 : tensor<i1>
    } do {
      %2 = stablehlo.tanh %m {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<16x16xf32>
      %3 = sdy.sharding_constraint %2 <@mesh, [{}, {}]> : tensor<16x16xf32>
      %4 = stablehlo.dot_general %3, %t, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16xf32>) -> tensor<16xf32>
      %5 = stablehlo.add %j, %one : tensor<i32>
      stablehlo.return %5, %4 : tensor<i32>, tensor<16xf32>
    }
    %6 = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %6, %m, %1#1 : tensor<i32>, tensor<16x16xf32>, tensor<16xf32>
  }
  return %0#2 : tensor<16xf32>
}
"""  # noqa: E501


@pytest.mark.parametrize("keep", [True, False])
def test_what_is_the_same_in_all_turns_of_loops_is_sent_before_them(keep: bool) -> None:
    program = shardlog.run(LOOPS).partition(keep_shardings=keep)
    assert [(c.kind, c.bytes, c.executions) for c in program.collectives] == [("all-gather", 896, 1)]
    before, _, after = str(program.module_for("tpu")).partition("stablehlo.while")
    assert "all_gather" in before and "all_gather" not in after
    rng = np.random.default_rng(0)
    w, v = (rng.normal(size=shape).astype(np.float32) for shape in ((16, 16), (16,)))
    expected = v
    for _ in range(6):
        expected = np.tanh(w) @ expected
    np.testing.assert_allclose(program.compile()(w, v)[0], expected, rtol=1e-4)


def test_ops_in_composites_count() -> None:
    """The sum is made in parts, and what the composite needs of others is little."""

    @functools.partial(jax.lax.composite, name="own.normalised")
    def normalised(x: jax.Array) -> jax.Array:
        return x / jnp.sqrt((x * x).sum(-1, keepdims=True) + 1)

    def product(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.sin(normalised(x @ w))

    out = array((16, 8), "data", "model").sharding
    given = array((16, 32), "data", "model"), array((32, 8), "model")
    program = shardlog.run(jax.jit(product, out_shardings=out).lower(*given)).partition()
    scattered, squares, rows = 8 * 8 * 4 * 3 // 4, 2 * 8 * 4 * 3 // 4, 8 * 2 * 4 * 3 // 4
    assert squares == rows  # to add up the squares of parts, or to have whole rows there and parts behind it
    assert [c.bytes for c in program.collectives] == [scattered, squares]
    assert program.collectives[0].kind == "reduce-scatter"
    rng = np.random.default_rng(0)
    x, w = (rng.normal(size=each.shape).astype(np.float32) for each in given)
    (got,) = jax.tree.leaves(program.compile()(x, w))
    np.testing.assert_allclose(got, jax.jit(product)(x, w), atol=1e-5)


@pytest.mark.parametrize("keep", [True, False])
def test_what_is_repeated_is_sent_before_it_is(keep: bool) -> None:
    """Distances between all rows: of those repeated along a new dimension only the rows are gathered."""
    result = shardlog.run("""
sdy.mesh @mesh = <["a"=8]>
func.func @main(%x: tensor<64x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %y: tensor<64x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 2] : (tensor<64x24xf32>) -> tensor<64x64x24xf32>
  %1 = stablehlo.broadcast_in_dim %y, dims = [1, 2] : (tensor<64x24xf32>) -> tensor<64x64x24xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<64x64x24xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [2]
    : (tensor<64x64x24xf32>, tensor<f32>) -> tensor<64x64xf32>
  return %3 : tensor<64x64xf32>
}
""")
    program = result.partition("replica", keep_shardings=keep)
    assert [(c.kind, c.bytes, c.op) for c in program.collectives] == [
        ("all-gather", 64 * 24 * 4 * 7 // 8, "stablehlo.broadcast_in_dim")
    ]
    x, y = np.random.default_rng(0).normal(size=(2, 64, 24)).astype(np.float32)
    (got,) = run_partitioned(result, program, [x, y])
    np.testing.assert_allclose(got, (x[:, None] - y[None]).sum(-1), rtol=1e-4, atol=1e-4)

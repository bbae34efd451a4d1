"""Where values live when all ops choose together: less moves, and the results are the same."""

from __future__ import annotations

import itertools
from collections import Counter
from math import inf
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax.sharding import NamedSharding, PartitionSpec
from jaxlib.mlir import ir
from shardlog.cli.partitioning import collectives_text
from shardlog.explanations.partitioned import Partitioned
from shardlog.partition.choice import problem, tuning
from shardlog.partition.choice.candidates import Candidates
from shardlog.partition.choice.choosing import Chooser
from shardlog.partition.choice.costs import Costs
from shardlog.partition.choice.homes import Homes, never
from shardlog.partition.choice.least.sums import sum_of
from shardlog.partition.choice.variables import ValueKind, Variables
from shardlog.partition.facts.annotated import Annotated
from shardlog.partition.facts.flow import facts_of
from shardlog.partition.facts.kinds import Kinds
from shardlog.partition.layouts import Axes
from shardlog.partition.partitioning import _used
from shardlog.partition.preparing.calls import Unshared
from shardlog.partition.reshards.planning import _KEPT, Planner
from shardlog.runs.choice import ProgramChoice

from ..support import models
from ..support.drawing import by_day
from ..support.programs import PROGRAMS, array, lowered, mesh
from ..support.scanned import scanned_step


def sends(program: Partitioned) -> int:
    """The bytes that a device sends in all."""
    return sum(collective.total for collective in program.collectives)


def over(*axes: str | None) -> NamedSharding:
    return NamedSharding(mesh(), PartitionSpec(*axes))  # type: ignore[no-untyped-call]


# The gradient of a weight is summed twice over "x", though one sum at the end would do.
SUMS = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #columns}, %b: tensor<16x8xf32> {sdy.sharding = #rows},
                %c: tensor<8x16xf32> {sdy.sharding = #columns}, %d: tensor<16x8xf32> {sdy.sharding = #rows})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot_general %c, %d, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.negate %1 : tensor<8x8xf32>
  %3 = stablehlo.add %0, %2 : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}
"""  # noqa: E501


def test_partial_sums_are_summed_once() -> None:
    result = shardlog.run(SUMS)
    kept, moved = result.partition(keep_shardings=True), result.partition()
    assert [c.kind for c in kept.collectives] == ["all-reduce", "all-reduce"]
    (only,) = moved.collectives
    assert (only.kind, 2 * only.bytes) == ("all-reduce", sends(kept))
    rng = np.random.default_rng(0)
    a, b, c, d = (rng.integers(-9, 9, s).astype(np.float32) for s in ((8, 16), (16, 8), (8, 16), (16, 8)))
    (got,) = moved.compile()(a, b, c, d)
    np.testing.assert_array_equal(got, a @ b - c @ d)


# What is summed does not depend on the branch.
BRANCHES = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
func.func @main(%which: tensor<i1>, %a: tensor<8x16xf32> {sdy.sharding = #columns},
                %b: tensor<16x8xf32> {sdy.sharding = #rows})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = "stablehlo.if"(%which) ({
    %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %1 : tensor<8x8xf32>
  }, {
    %1 = stablehlo.dot_general %b, %a, contracting_dims = [0] x [1] : (tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<8x8xf32>
    stablehlo.return %1 : tensor<8x8xf32>
  }) : (tensor<i1>) -> tensor<8x8xf32>
  %2 = stablehlo.optimization_barrier %0 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
"""  # noqa: E501


def test_partial_sums_leave_branches() -> None:
    program = shardlog.run(BRANCHES).partition(keep_shardings=False)
    assert [(c.kind, c.bytes) for c in program.collectives] == [("all-reduce", 384)]
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-9, 9, s).astype(np.float32) for s in ((8, 16), (16, 8)))
    run = program.compile()
    for which, expected in ((True, a @ b), (False, (a @ b).T)):
        np.testing.assert_array_equal(run(np.bool_(which), a, b)[0], expected)


# To gather the operand sends 2,304 bytes, to gather the product 2,400: to multiply everywhere saves 96.
SMALL = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<16x48xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<48x50xf32>)
    -> (tensor<16x50xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<16x48xf32>, tensor<48x50xf32>) -> tensor<16x50xf32>
  return %0 : tensor<16x50xf32>
}
"""  # noqa: E501


def test_what_several_branches_need_is_gathered_before_them() -> None:
    def branching(flag: jax.Array, x: jax.Array) -> jax.Array:
        branches = lambda x: jnp.sin(x) @ x.T, lambda x: jnp.cos(x) @ x.T
        found: jax.Array = jax.lax.cond(flag[0] > 0, *branches, x)
        return found

    flag, x = jnp.ones(4), jnp.asarray(np.random.default_rng(0).normal(size=(8, 16)), jnp.float32)
    given = over(), over(None, "model")
    lowered = jax.jit(branching, in_shardings=given, out_shardings=over()).lower(flag, x)
    program = shardlog.run(lowered).partition(topology="v5e")
    assert [(c.kind, c.value) for c in program.collectives] == [("all-gather", "%arg1")]
    assert program.text().index("all_gather") < program.text().index("stablehlo.case")
    np.testing.assert_allclose(program.compile()(flag, x), branching(flag, x), rtol=1e-4, atol=1e-4)


def test_small_ops_are_computed_everywhere_if_less_is_sent() -> None:
    small = shardlog.run(SMALL).partition()
    assert [(c.kind, c.bytes) for c in small.collectives] == [("all-gather", 2304)]
    large = shardlog.run(SMALL.replace("16x", "1024x")).partition()
    assert [(c.kind, c.bytes) for c in large.collectives] == [("all-gather", 153600)]


def normalized(y: jax.Array) -> jax.Array:
    mean = y.mean(0)
    return (y - mean) * jax.lax.rsqrt((y * y).mean(0) - mean * mean + 1e-3)


def test_sums_are_made_at_once_where_nothing_is_gained_by_waiting() -> None:
    # The mean of squares could be left in parts until the squared mean has been taken off: one sum more.
    def loss(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(normalized(jax.nn.relu(normalized(x @ w)) @ w)))

    step = jax.jit(jax.grad(loss), in_shardings=(over("data"), over("model")))
    rng = np.random.default_rng(0)
    w, x = (rng.normal(size=shape).astype(np.float32) for shape in ((16, 16), (64, 16)))
    program = shardlog.run(step.lower(w, x)).partition()
    assert (
        program.text().count('"stablehlo.all_reduce"') == 5
    )  # two of moments and their gradients each, one of it all
    np.testing.assert_allclose(program.compile()(w, x), jax.grad(loss)(w, x), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("layers", "times"), [(4, 1), (32, 32)])
def test_what_a_loop_carries_is_gathered_before_it_if_it_is_small(layers: int, times: int) -> None:
    def scanned(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, w: (jnp.sin(x @ w), None), x, weights)[0]

    rng = np.random.default_rng(0)
    shapes = (layers, 16, 16), (64, 16)
    weights, x = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes)
    jitted = jax.jit(scanned, in_shardings=(over(None, "model"), over("data")), out_shardings=over("data"))
    program = shardlog.run(jitted.lower(weights, x)).partition()
    assert [(c.kind, c.executions) for c in program.collectives] == [("all-gather", times)]
    np.testing.assert_allclose(program.compile()(weights, x), scanned(weights, x), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("length", [8, 16, 128])
def test_what_a_loop_stacks_in_parts_is_gathered_behind_it(length: int) -> None:
    """And not in each of its turns: all of what goes around has to be in parts for that."""

    def scanned(rows: jax.Array, x: jax.Array) -> jax.Array:
        return jax.lax.scan(lambda x, row: (jnp.tanh(x + row), None), x, rows)[0].mean()

    given = over(None, "model", None), over("model", None)
    rows, x = np.zeros((length, 64, 64), np.float32), np.zeros((64, 64), np.float32)
    jitted = jax.jit(jax.grad(scanned), in_shardings=given, out_shardings=over())
    program = shardlog.run(jitted.lower(rows, x)).partition()
    assert [(c.kind, c.executions) for c in program.collectives] == [("all-gather", 1)]


def test_nothing_is_gathered_before_a_loop_of_which_nobody_knows_how_many_turns_it_has() -> None:
    def scanned(weights: jax.Array, x: jax.Array, turns: jax.Array) -> jax.Array:
        carried: jax.Array = jax.lax.fori_loop(0, turns, lambda i, x: jnp.sin(x @ weights[i]), x)
        return carried

    rng = np.random.default_rng(0)
    shapes = (6, 16, 16), (64, 16)
    weights, x = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes)
    given = over(None, "model"), over("data"), over()
    jitted = jax.jit(scanned, in_shardings=given, out_shardings=over("data"))
    program = shardlog.run(jitted.lower(weights, x, jnp.int32(3))).partition()
    assert [(c.kind, c.executions) for c in program.collectives] == [("all-gather", None)]
    got = program.compile()(weights, x, jnp.int32(3))
    np.testing.assert_allclose(got, scanned(weights, x, jnp.int32(3)), rtol=1e-3, atol=1e-4)


def test_what_is_gathered_as_a_whole_for_one_use_is_cut_for_the_other() -> None:
    """A product takes a matrix twice: in rows, first, and as a whole, which is gathered once for both."""
    x, wide, whole = "tensor<128x128xf32>", '[{}, {"y", "x"}]', "[{}, {}]"
    program = shardlog.run(f"""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: {x} {{sdy.sharding = #sdy.sharding<@mesh, {wide}>}},
                %b: {x} {{sdy.sharding = #sdy.sharding<@mesh, {whole}>}})
    -> ({x} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}}) {{
  %0 = stablehlo.add %a, %b : {x}
  %1 = stablehlo.tanh %0 : {x}
  %2 = stablehlo.multiply %1, %0 : {x}
  %3 = stablehlo.dot_general %2, %2, contracting_dims = [1] x [0] : ({x}, {x}) -> {x}
  %4 = stablehlo.dot_general %3, %b, contracting_dims = [1] x [0] : ({x}, {x}) -> {x}
  return %4 : {x}
}}""").partition(topology="v5e")
    assert {c.value for c in program.collectives} == {"%2"}
    assert sum(c.total for c in program.collectives) == 128 * 128 * 4 * 7 // 8


def test_a_loop_of_known_turns_counts_in_one_of_unknown_turns() -> None:
    def repeated(x: jax.Array, w: jax.Array, turns: jax.Array) -> jax.Array:
        def turn(i: int, x: jax.Array) -> jax.Array:
            carried: jax.Array = jax.lax.fori_loop(0, 3, lambda _, x: jnp.tanh(x @ w @ w.T), x)
            return carried

        carried: jax.Array = jax.lax.fori_loop(0, turns, turn, x)
        return carried

    jitted = jax.jit(repeated, in_shardings=(over("data"), over(None, "model"), over()))
    lowered = jitted.lower(jnp.ones((64, 16)), jnp.ones((16, 32)), jnp.int32(3))
    program = shardlog.run(lowered).partition(keep_shardings=True)
    (reduced,) = program.collectives
    assert (reduced.executions, reduced.repeats, reduced.total) == (None, 3, 3 * reduced.bytes)
    assert program.cost("v5e").sent == reduced.total
    assert "3 a turn" in collectives_text(program.collectives)


def test_what_costs_as_much_is_sent_together() -> None:
    program = shardlog.run(lowered("remat", 3)).partition()
    assert {c.op for c in program.collectives} == {"stablehlo.optimization_barrier"}  # before it, as one
    assert program.text().count('"stablehlo.all_gather"') == 1


@pytest.mark.parametrize("times", [1, 8])
def test_a_collective_less_is_worth_some_bytes_however_large_a_program_is(times: int) -> None:
    """Normal equations of masked rows: that what is masked is in parts of rows saves an eighth of it, and
    takes a collective more."""

    def solve(rows: jax.Array, factors: jax.Array) -> jax.Array:
        def one(row: jax.Array) -> jax.Array:
            matrix = (factors * (row != 0)[:, None]).T @ factors + jnp.eye(8)
            found: jax.Array = jnp.linalg.solve(matrix, factors.T @ row)
            return found

        found: jax.Array = jax.vmap(one)(rows)
        return found

    given = array((32 * times, 64), "data", "model"), array((64, 8), "model")
    found = shardlog.run(jax.jit(solve).lower(*given)).partition().collectives
    assert sorted(c.kind for c in found) == ["all-gather", "all-gather", "all-to-all"]


def test_what_a_loop_carries_is_gathered_before_it_where_that_saves_much() -> None:
    """Attention in chunks: a turn has one of them, of which all devices need all."""

    def attend(q: jax.Array, k: jax.Array) -> jax.Array:
        def chunks(x: jax.Array) -> jax.Array:
            return x.reshape(8, 8, 16)

        def step(state: jax.Array, chunk: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
            q, k = chunk
            return state + k.T @ jnp.tanh(k), q @ state

        return jax.lax.scan(step, jnp.zeros((16, 16)), (chunks(q), chunks(k)))[1]

    sequence = array((64, 16), "model")
    program = shardlog.run(jax.jit(attend).lower(sequence, sequence)).partition()
    assert {(c.kind, c.executions) for c in program.collectives} == {("all-gather", 1)}


# To sum up a product over "x" sends 2,304 bytes, to lay out the weight anew 3,072, once for both products.
SHARED = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
#whole = #sdy.sharding<@mesh, [{}, {}]>
func.func @main(%w: tensor<64x64xf32> {sdy.sharding = #rows},
                %a: tensor<12x64xf32> {sdy.sharding = #whole}, %b: tensor<12x64xf32> {sdy.sharding = #whole})
    -> (tensor<12x64xf32> {sdy.sharding = #columns}, tensor<12x64xf32> {sdy.sharding = #columns}) {
  %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<12x64xf32>, tensor<64x64xf32>) -> tensor<12x64xf32>
  %1 = stablehlo.dot_general %b, %w, contracting_dims = [1] x [0] : (tensor<12x64xf32>, tensor<64x64xf32>) -> tensor<12x64xf32>
  return %0, %1 : tensor<12x64xf32>, tensor<12x64xf32>
}
"""  # noqa: E501


def test_what_a_loop_carries_is_laid_out_otherwise_with_all_that_it_goes_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the first loop of a gradient stacks, whole along "data": the second one need not gather it."""
    monkeypatch.setattr(tuning, "COLLECTIVES", inf)  # or less is left to gain
    result = shardlog.run(scanned_step())
    assert sends(result.partition()) < 15_000_000  # 16,908,292 if it does


def test_what_loops_do_in_parts_is_gathered_behind_them() -> None:
    """The Thomas algorithm: what the second loop carries, and makes of it in a function, is whole by
    propagation, for the result is."""

    def solve(a: Any, b: Any, c: Any, d: Any) -> Any:
        def forwards(before: Any, row: Any) -> Any:
            a, b, c, d = row
            divisor = b - a * before[0]
            found = c / divisor, (d - a * before[1]) / divisor
            return found, found

        def backwards(after: Any, row: Any) -> Any:
            found = row[1] - row[0] * after
            return found, found

        zeros = jnp.zeros(48)
        rows = jax.lax.scan(forwards, (zeros, zeros), (a, b, c, d))[1]
        return jax.lax.scan(backwards, zeros, rows, reverse=True)[1]

    given = [array((32, 48), None, "model")] * 4
    program = shardlog.run(jax.jit(solve, out_shardings=over()).lower(*given)).partition()
    (gathered,) = program.collectives
    assert (gathered.kind, gathered.executions) == ("all-gather", 1)
    assert gathered.bytes == 32 * 48 * 4 * 3 / 4


def test_what_is_resharded_once_serves_all_uses() -> None:
    program = shardlog.run(SHARED).partition(keep_shardings=False)
    assert [(c.kind, c.bytes) for c in program.collectives] == [("all-to-all", 3072)]
    rng = np.random.default_rng(0)
    w, a, b = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((64, 64), (12, 64), (12, 64)))
    for got, expected in zip(program.compile()(w, a, b), (a @ w, b @ w), strict=True):
        np.testing.assert_array_equal(got, expected)


SORTED = """\
sdy.mesh @mesh = <["x"=4]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #columns})
    -> (tensor<8x16xf32> {sdy.sharding = #columns}) {
  %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
"""


def test_rows_that_must_be_whole_lie_on_different_devices() -> None:
    program = shardlog.run(SORTED).partition()
    assert [(c.kind, c.bytes) for c in program.collectives] == [("all-to-all", 96)] * 2
    x = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    (got,) = program.compile()(x)
    np.testing.assert_array_equal(got, np.sort(x, axis=1))


CONSTRAINED_ZEROS = """\
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>},
        tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {"a"}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"b"}, {"a"}]> : tensor<8x16xf32>
  %2 = stablehlo.maximum %x, %1 : tensor<8x16xf32>
  return %2, %1 : tensor<8x16xf32>, tensor<8x16xf32>
}
"""


@pytest.mark.parametrize("keep", [True, False])
def test_what_takes_no_data_does_not_move_behind_constraints(keep: bool) -> None:
    program = shardlog.run(CONSTRAINED_ZEROS).partition(keep_shardings=keep)
    assert program.collectives == ()
    x = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    got = program.compile()(x)
    np.testing.assert_array_equal(got[0], np.maximum(x, 0))
    np.testing.assert_array_equal(got[1], np.zeros_like(x))


SAME_DEVICES = """\
sdy.mesh @mesh = <["a"=2, "b"=4]>
sdy.mesh @flat = <["z"=8]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@flat, [{"z"}, {}]>}) {
  %0 = stablehlo.negate %x : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
"""


def test_what_is_alike_on_two_meshes_stays_where_it_is() -> None:
    program = shardlog.run(SAME_DEVICES).partition()
    (only,) = program.collectives
    assert (only.kind, only.axes, only.bytes) == ("all-to-all", ("b",), 3 * 4 * 4)
    assert any("@flat" in cause or "result" in cause for cause in only.causes), only.causes
    x = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
    (got,) = program.compile()(x)
    np.testing.assert_array_equal(got, -x)
    assert got.addressable_shards[0].data.shape == (1, 16)


TWO_MESHES = """\
sdy.mesh @mesh = <["a"=3, "b"=2]>
sdy.mesh @other = <["c"=2, "d"=3]>
func.func @main(%x: tensor<6x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
                %y: tensor<12x6xf32> {sdy.sharding = #sdy.sharding<@other, [{}, {"c"}]>})
    -> (tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<6x12xf32>, tensor<12x6xf32>) -> tensor<6x6xf32>
  return %0 : tensor<6x6xf32>
}
"""  # noqa: E501


def test_what_is_to_spare_follows_axes_of_its_own_mesh() -> None:
    program = shardlog.run(TWO_MESHES).partition("replica")
    assert {(c.kind, c.axes) for c in program.collectives} == {("all-gather", ("c",)), ("all-gather", ("a",))}
    rng = np.random.default_rng(0)
    x, y = (rng.integers(-9, 9, shape).astype(np.float32) for shape in ((6, 12), (12, 6)))
    (got,) = program.compile()(x, y)
    np.testing.assert_array_equal(got, x @ y)


@pytest.mark.parametrize("depth", by_day([1], [1, 2]))
@pytest.mark.parametrize("name", ["transformer", "lstm"])
def test_less_moves_in_models(name: str, depth: int) -> None:
    result = shardlog.run(models.text(name, depth=depth))
    kept, moved = (sends(result.partition(keep_shardings=keep)) for keep in (True, False))
    assert moved < kept


@pytest.mark.parametrize("name", ["train step", "attention", "gradient of a scan", "convolution"])
def test_results_are_the_same(name: str) -> None:
    function, shapes = PROGRAMS[name]
    rng = np.random.default_rng(0)
    inputs = [rng.random(shape, np.float32) for shape in shapes]
    result = shardlog.run(lowered(name, 3))
    got = result.partition(keep_shardings=False).compile()(*inputs)
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(jax.jit(function)(*inputs)), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-4)


def test_on_a_chain_the_choice_is_the_best_of_all() -> None:
    result = shardlog.run(SUMS)
    module, shardings = result.module, result.result.program.shardings
    with module.context, ir.Location.unknown():
        axes = Axes(shardings.meshes, _used(Kinds(module), shardings))
        planner = Planner(axes)
        chooser = Chooser(result.result.book, axes, planner)
        facts = facts_of(Annotated(Unshared(module, Kinds(module)), shardings, axes, chooser, planner))
        variables = Variables([spot for _, spot in facts.spots], [need for _, need in facts.needs])
        candidates = Candidates(variables, chooser, planner)
        homes = Homes(candidates).find(bound=True)
        costs = Costs(candidates)
        terms = costs.terms(never)
        assert terms is not None
        total = sum_of(terms, costs.alone(0.0) + costs.late(), variables.size)
        every = itertools.product(*(range(len(domain.places)) for domain in candidates.places()))
        least = min(total.energy(np.asarray(choice)) for choice in every)
        assert homes.cost == pytest.approx(least)
        assert homes.bound == pytest.approx(least)


@pytest.mark.parametrize("name", ["train step", "attention", "ragged_dot", "scan"])
def test_ways_are_those_that_the_rules_give_each_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    result = shardlog.run(lowered(name, 3))
    _KEPT.clear()
    shared = result.partition().text()
    assert result.programs.made(ProgramChoice()).text() == shared
    monkeypatch.setattr(Chooser, "_splits_alike", lambda self, knowledge, held, moves: (held,))
    _KEPT.clear()
    assert result.programs.made(ProgramChoice()).text() == shared
    _KEPT.clear()


@pytest.mark.parametrize("name", ["train step", "ragged_dot", "scan", "convolution"])
def test_values_and_kinds_are_those_found_one_by_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[tuple[Any, ...]]()

    def variables(*given: Any) -> Variables:
        found = Variables(*given)
        asked.append((found, *given[:5]))
        return found

    monkeypatch.setattr(problem, "Variables", variables)
    shardlog.run(lowered(name, 3)).partition()
    ((found, spots, needs, _, carried, opened),) = asked
    slots = [
        (
            value,
            role == "result",
            t in spot.free,
            spot.knowledge.shapes[t],
            spot.knowledge.widths[t],
            spot.held[t],
        )
        for spot in spots
        for t, (value, role) in enumerate(zip(spot.values, spot.knowledge.roles, strict=True))
    ]
    made = {value for value, result, *_ in slots if result}
    users = Counter(value for value, result, free, *_ in slots if not result and not free)
    kinds = dict[int, ValueKind]()
    for value, _, free, shape, width, home in slots:
        several = users[value] > 1
        if shape and value not in kinds and (value in made or (several and not free)):
            kinds[value] = ValueKind(shape, width, home, value in made, several, carried.get(value))
    assert not opened and found.values == list(kinds)
    assert [found.kinds[of] for of in found.of.tolist()] == list(kinds.values())
    number = {value: n for n, value in enumerate(kinds)}
    assert found.numbers == [tuple(number.get(value, -1) for value in spot.values) for spot in spots]
    for value, of in zip(kinds, found.of.tolist(), strict=True):
        wanted = Counter((need.layout, need.weight) for need in needs if need.value == value)
        assert found.wanted[of] == wanted
    for spot, row in zip(spots, found.row_of.tolist(), strict=True):
        assert spot._replace(values=()) == found.spots[row]._replace(values=())


def test_what_is_found_is_near_the_least() -> None:
    result = shardlog.run(models.text("lstm", depth=1, scan=False, train=True))
    homes = result.partition(seconds=600).found
    assert homes and homes.bound > 0
    assert homes.cost <= 1.1 * homes.bound


def test_no_more_is_sent_than_by_the_shardings_of_propagation() -> None:
    def heat(u: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(u: jax.Array, _: None) -> tuple[jax.Array, jax.Array]:
            around = sum(jnp.roll(u, shift, dim) for dim in (0, 1) for shift in (1, -1))
            u = u + 0.1 * (around - 4 * u)
            return u, u.max()

        return jax.lax.scan(step, u, None, length=5)

    # Halos of 16 elements are many permutations of a few bytes: a gather would be one collective, of more.
    argument = jax.ShapeDtypeStruct((32, 32), jnp.float32, sharding=over("data", "model"))  # type: ignore[no-untyped-call]
    ends = over("data", "model"), over()
    result = shardlog.run(jax.jit(heat, out_shardings=ends).lower(argument))
    kept, least = (result.partition(keep_shardings=keep) for keep in (True, False))
    assert 0 < sends(least) <= sends(kept)


def test_what_a_product_takes_can_lie_in_a_third_way() -> None:
    """Newton-Schulz steps of a wide matrix: its rows are in parts, and each product would need all of
    them. Of columns in parts sums are made where they lie."""

    def step(x: jax.Array) -> jax.Array:
        for _ in range(2):
            a = x @ x.T
            x = 1.5 * x - 0.5 * a @ x
        return x

    along = NamedSharding(jax.make_mesh((4,), ("x",)), PartitionSpec("x"))  # type: ignore[no-untyped-call]
    x = (np.random.default_rng(0).standard_normal((16, 256)) / 32).astype(np.float32)
    lowered = jax.jit(step, in_shardings=along, out_shardings=along).lower(x)
    program = shardlog.run(lowered).partition()
    there_and_back, sums = 2 * 4 * 256 * 4 * 3 // 4, 2 * 16 * 16 * 4 * 2 * 3 // 4
    assert sum(c.total for c in program.collectives) == there_and_back + sums
    (got,) = jax.tree.leaves(program.compile()(x))
    np.testing.assert_allclose(got, step(jnp.asarray(x)), rtol=1e-4, atol=1e-5)

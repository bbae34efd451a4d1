"""Completion: annotations for every op, by the method of the device mesh RFC."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.errors import ShardlogError

NET = """
module attributes {shard.spelling = "rfc"} {
  sdy.mesh @c = <["0"=2]>
  func.func @main(%x: tensor<4x6x10xf32> {sdy.sharding = #sdy.sharding<@c, [{}, {}, {"0"}]>},
                  %w: tensor<10x14xf32>, %v: tensor<14x10xf32>) -> tensor<4x6x10xf32> {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [2] x [0]
        : (tensor<4x6x10xf32>, tensor<10x14xf32>) -> tensor<4x6x14xf32>
    %1 = stablehlo.tanh %0 : tensor<4x6x14xf32>
    %2 = stablehlo.dot_general %1, %v, contracting_dims = [2] x [0]
        {sdy.sharding = #sdy.sharding_per_value<[<@c, [{}, {}, {}], unreduced={"0"}>]>}
        : (tensor<4x6x14xf32>, tensor<14x10xf32>) -> tensor<4x6x10xf32>
    %3 = sdy.sharding_constraint %2 <@c, [{}, {}, {"0"}]> : tensor<4x6x10xf32>
    return %3 : tensor<4x6x10xf32>
  }
}
"""
MESH = 'sdy.mesh @g = <["0"=2, "1"=3]>\n'


def complete(text: str, traversal: str = "backward-forward") -> str:
    return shardlog.run(text, propagation="completion", traversal=traversal).text()


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def test_a_partial_result_splits_the_reduction_and_all_that_leads_to_it() -> None:
    done = complete(NET)
    assert '%arg1: tensor<10x14xf32> {sdy.sharding = #sdy.sharding<@c, [{}, {"0"}]>}' in done
    assert '%arg2: tensor<14x10xf32> {sdy.sharding = #sdy.sharding<@c, [{"0"}, {}]>}' in done
    assert (
        "%0 = sdy.sharding_constraint %arg0 <@c, [{}, {}, {}]> {shard.inserted} : tensor<4x6x10xf32>" in done
    )
    assert done.count('[<@c, [{}, {}, {"0"}]>]') == 2  # the first product and tanh
    assert '[<@c, [{}, {}, {}], unreduced={"0"}>]' in done


def test_its_program_gathers_and_scatters_once() -> None:
    program = shardlog.run(NET, propagation="completion").partition().text()
    collectives = [line.split('"')[1] for line in lines(program) if '"stablehlo.' in line]
    assert collectives == ["stablehlo.all_gather", "stablehlo.reduce_scatter"]
    assert "all_gather_dim = 2" in program and "scatter_dimension = 2" in program
    for local in ("tensor<4x6x5xf32>", "tensor<10x7xf32>", "tensor<7x10xf32>"):
        assert local in program


CHAIN = (
    MESH
    + """
func.func @main(%x: tensor<12x18xf32>) -> tensor<12x18xf32> {
  %0 = stablehlo.abs %x : tensor<12x18xf32>
  %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@g, [{}, {"1"}]>]>} : tensor<12x18xf32>
  %2 = stablehlo.negate %1 : tensor<12x18xf32>
  return %2 : tensor<12x18xf32>
}
"""
)


@pytest.mark.parametrize(
    "traversal, reached",
    [("backward", True), ("forward", False), ("backward-forward", True), ("forward-backward", True)],
)
def test_a_traversal_reaches_operands_and_users(traversal: str, reached: bool) -> None:
    """Going backward, an op reads the annotations of its operands too, so users are reached either way."""
    done = lines(complete(CHAIN, traversal))
    (negated,) = [line for line in done if "stablehlo.negate" in line]
    (head,) = [line for line in done if "@main" in line]
    assert '[{}, {"1"}]' in negated
    assert ("%arg0: tensor<12x18xf32> {sdy.sharding" in head) == reached


FORK = (
    MESH
    + """
func.func @main(%x: tensor<12x18xf32>) -> (tensor<12x18xf32>, tensor<12x18xf32>) {
  %0 = stablehlo.abs %x : tensor<12x18xf32>
  %1 = stablehlo.tanh %0 {sdy.sharding = #sdy.sharding_per_value<[<@g, [{"0"}, {}]>]>} : tensor<12x18xf32>
  %2 = stablehlo.sine %0 {sdy.sharding = #sdy.sharding_per_value<[<@g, [{}, {"1"}]>]>} : tensor<12x18xf32>
  return %1, %2 : tensor<12x18xf32>, tensor<12x18xf32>
}
"""
)


@pytest.mark.parametrize(
    "traversal, shared", [("backward-forward", '[{"0"}, {}]'), ("forward-backward", '[{}, {"1"}]')]
)
def test_the_first_to_give_a_shared_value_an_annotation_wins(traversal: str, shared: str) -> None:
    (line,) = [line for line in lines(complete(FORK, traversal)) if "stablehlo.abs" in line]
    assert shared in line


def test_an_annotation_that_binds_the_op_is_kept_and_a_wish_is_resharded() -> None:
    done = complete(
        MESH
        + """
func.func @main(%x: tensor<12x18xf32> {sdy.sharding = #sdy.sharding<@g, [{"0"}, {}]>}) -> tensor<12x18xf32> {
  %0 = stablehlo.abs %x {sdy.sharding = #sdy.sharding_per_value<[<@g, [{}, {"0"}]>]>} : tensor<12x18xf32>
  return %0 : tensor<12x18xf32>
}
"""
    )
    assert '%0 = sdy.sharding_constraint %arg0 <@g, [{}, {"0"}]> {shard.inserted} : tensor<12x18xf32>' in done


def test_a_definition_that_the_op_cannot_give_is_what_its_users_see() -> None:
    done = lines(
        complete(
            MESH
            + """
func.func @main(%x: tensor<12x18xf32>, %y: tensor<12x18xf32>) -> tensor<12x18xf32> {
  %c = sdy.sharding_constraint %y <@g, [{"1"}, {"0"}]> : tensor<12x18xf32>
  %0 = stablehlo.add %x, %c {sdy.sharding = #sdy.sharding_per_value<[<@g, [{}, {}]>]>}
      : tensor<12x18xf32>
  %1 = stablehlo.tanh %0 : tensor<12x18xf32>
  return %1 : tensor<12x18xf32>
}
"""
        )
    )
    at = next(i for i, line in enumerate(done) if "stablehlo.add" in line)
    assert '[{"1"}, {"0"}]' in done[at]
    assert "sdy.sharding_constraint" in done[at + 1] and "[{}, {}]" in done[at + 1]


def test_nothing_annotated_changes_nothing() -> None:
    plain = MESH + "func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {\n  return %x : tensor<4xf32>\n}"
    assert "sharding" not in complete(plain).replace("sdy.mesh", "")


def test_completion_has_no_priorities() -> None:
    with pytest.raises(ShardlogError, match="no tactics and no priorities"):
        shardlog.run(CHAIN, propagation="completion", until=1)
    with pytest.raises(ShardlogError, match="unknown traversal 'sideways'") as caught:
        shardlog.run(CHAIN, propagation="completion", traversal="sideways")
    assert "backward" in caught.value.hint


def test_ops_keep_their_names_and_places_behind_constraints_that_are_put_in() -> None:
    session = shardlog.run(NET, propagation="completion")
    (gathered, scattered) = session.partition().collectives
    assert gathered.where.endswith(":6") and scattered.where.endswith(":12")
    assert str(session.why("%1")).startswith("%1 : tensor<4x6x14xf32>")
    assert session.cost().sent == 2 * 4 * 6 * 10 * 4 / 2


def test_a_result_stays_partial_by_the_reduction_of_its_op() -> None:
    reduced = """
module attributes {{shard.spelling = "mesh19"}} {{
  sdy.mesh @g = <["0"=2]>
  func.func @main(%x: tensor<4x6xf32> {{sdy.sharding = #sdy.sharding<@g, [{{}}, {{"0"}}]>}})
      -> tensor<4xf32> {{
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.{} across dimensions = [1]
        : (tensor<4x6xf32>, tensor<f32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }}
}}
"""
    for op, kind in [("add", "sum"), ("maximum", "max"), ("multiply", "product")]:
        session = shardlog.run(reduced.format(op), propagation="completion")
        assert f"to <@g, [[]], partial = {kind}[0]> :" in session.text(notation="mesh")


def test_a_program_that_is_local_already_is_left_alone() -> None:
    text = """
    shard.grid @g(shape = 2x3)
    func.func @main(%x: tensor<6x4xf32>) -> tensor<2x4xf32> {
      %0 = shard.reduce_scatter %x on @g grid_axes = [1] scatter_dim = 0 : tensor<6x4xf32> -> tensor<2x4xf32>
      return %0 : tensor<2x4xf32>
    }
    """
    completed = shardlog.run(text, propagation="completion")
    assert completed.partition("shard").text() == shardlog.run(text).partition("shard").text()
    assert "sharding_constraint" not in completed.text()

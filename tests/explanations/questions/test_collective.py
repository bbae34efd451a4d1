"""Why a partitioned program has a collective: the op, the ways to compute it, and the annotations."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import shardlog
from shardlog.errors import ShardlogError
from shardlog.explanations.questions.collective import Asked

from ...support import models
from ...support.drawing import by_day
from ...support.mlp import MLP
from ...support.sums import SUMS


def test_a_sum_is_followed_back_to_the_annotation_of_a_weight() -> None:
    moved = shardlog.run(MLP).partition().why(0)
    assert (moved.collective.kind, moved.collective.op) == ("all-reduce", "stablehlo.dot_general")
    assert (moved.before, moved.partial, moved.after) == (("data", ""), "model", ("data", ""))
    taken, *others = moved.ways
    assert taken.factors == (("i", "data"), ("k", "model"))
    assert taken.bytes == 4 * 16 * 4 * 2 * 3 // 4  # of a part of the result: twice three quarters
    assert all(way.bytes >= taken.bytes and way.lost for way in others)
    assert moved.maps == "([i, k], [k, j])->([i, j])"
    assert [(b.factor, b.sentence) for b in moved.because] == [
        ("i", "A part of factor i gives a part of the result."),
        ("k", "A part of factor k gives a partial result."),
    ]
    assert [(cause.site.value, cause.origin.value) for cause in moved.causes] == [
        ("%1", "%arg1"),
        ("%arg2", "%arg1"),
    ]


GATHERED = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.tanh %a : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


def test_a_gather_at_the_end_names_the_tensor_that_is_gathered() -> None:
    moved = shardlog.run(GATHERED).partition().why(0)
    assert moved.collective.kind == "all-gather"
    assert (moved.before, moved.after) == (("x", ""), ("", ""))
    assert [(cause.site.value, cause.axis, cause.origin.value) for cause in moved.causes] == [
        ("%0", "x", "%arg0")
    ]
    assert (
        str(moved).splitlines()[1].startswith('all-gather 0 over "x": 192 bytes from each of 4 devices, once')
    )


def test_a_number_that_is_none() -> None:
    with pytest.raises(ShardlogError, match="there is no collective 7") as error:
        shardlog.run(MLP).partition().why(7)
    assert error.value.hint == "they are numbered from 0 to 0"


def test_collectives_name_the_annotations_that_caused_them() -> None:
    (collective,) = shardlog.run(MLP).partition().collectives
    assert collective.causes == ("the annotation of %arg1 at <text>:3",)


LOOP = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.constant dense<9> : tensor<i32>
  %2 = stablehlo.constant dense<0.0> : tensor<8x8xf32>
  %3:2 = stablehlo.while(%i = %0, %sum = %2) : tensor<i32>, tensor<8x8xf32>
    cond {
      %4 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %4 = stablehlo.constant dense<1> : tensor<i32>
      %5 = stablehlo.add %i, %4 : tensor<i32>
      %turn = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
      %all = stablehlo.broadcast_in_dim %turn, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
      %more = stablehlo.multiply %a, %all : tensor<8x16xf32>
      %6 = stablehlo.dot_general %more, %b, contracting_dims = [1] x [0]
         : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
      %7 = stablehlo.add %sum, %6 : tensor<8x8xf32>
      stablehlo.return %5, %7 : tensor<i32>, tensor<8x8xf32>
    }
  return %3#1 : tensor<8x8xf32>
}
"""
ROTATED = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<24x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.concatenate %a, %b, %a, dim = 0
     : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<24x8xf32>
  return %0 : tensor<24x8xf32>
}
"""
LARGEST = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<1x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<1x2xf32>, tensor<1x2xi32>) {
  %0:2 = chlo.top_k(%a, k = 2) : tensor<1x64xf32> -> (tensor<1x2xf32>, tensor<1x2xi32>)
  return %0#0, %0#1 : tensor<1x2xf32>, tensor<1x2xi32>
}
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (LOOP, {("result 1", "%0#1")}),
        (ROTATED, {("operand 0", "%arg0")}),
        (LARGEST, {("result 0", "%values"), ("result 1", "%indices")}),
    ],
    ids=["a loop", "a concatenation", "a selection"],
)
def test_what_is_moved_is_named(text: str, expected: set[tuple[str, str]]) -> None:
    program = shardlog.run(text).partition()
    assert {(each.slot, each.value) for each in program.collectives} == expected


def test_what_goes_in_one_permutation_is_named() -> None:
    program = shardlog.run(ROTATED).partition()
    place = "of stablehlo.concatenate at <text>:5"
    middle, last = f"%arg1 for operand 1 {place}", f"%arg0 for operand 2 {place}"
    assert [each.also for each in program.collectives] == [(middle, last), (last,)]
    assert f"at once, other devices send of {middle}" in " ".join(str(program.why(0)).split())
    assert any(str(cause).startswith("%arg1 ") for cause in program.why(0).causes)


def test_partial_sums_that_are_handed_on_are_followed_to_where_they_begin() -> None:
    for text, begun, causes in (
        (SUMS, ["%0", "%1"], {"%arg0", "%arg1", "%arg2", "%arg3"}),
        (LOOP, ["%5"], {"%arg0", "%arg1"}),
    ):
        moved = shardlog.run(text).partition().why(0)
        assert [(b.op, b.value) for b in moved.begun] == [("stablehlo.dot_general", value) for value in begun]
        assert {cause.origin.value for cause in moved.causes} == causes
        assert f"the partial sums begin as {begun[0]} by stablehlo.dot_general at <text>:" in str(moved)


def test_tensors_that_the_choice_has_otherwise_are_named() -> None:
    moved = shardlog.run(SUMS).partition().why(0)
    assert [(p.value, p.dims, p.partial, p.propagated) for p in moved.chosen] == [
        ("%0", ("", ""), "x", ("", "")),
        ("%1", ("", ""), "x", ("", "")),
    ]
    assert shardlog.run(SUMS).partition(keep_shardings=True).why(0).chosen == ()


def test_the_steps_of_a_reshard_are_told_together() -> None:
    text = GATHERED.replace('["x"=4]', '["x"=4, "y"=2]').replace('[{"x"}, {}]', '[{"x"}, {"y"}]')
    program = shardlog.run(text).partition()
    first, second = (program.why(number) for number in range(2))
    assert first.steps == second.steps == (0, 1)
    assert "in 2 steps: collectives 0, 1" in str(second)
    assert shardlog.run(GATHERED).partition().why(0).steps == (0,)


def test_what_bytes_stand_for() -> None:
    result = shardlog.run(MLP)
    assert "with the bytes that a device sends" in str(result.partition().why(0))
    assert "take as long to send on v5e" in str(result.partition(topology="v5e").why(0))


@pytest.mark.parametrize("name", by_day(["recommender"], ["mixture_of_experts", "recommender"]))
def test_every_collective_has_a_reason_and_one_way_that_is_taken(name: str) -> None:
    program = shardlog.run(models.lower(name)).partition()
    for number in range(len(program.collectives)):
        moved = program.why(number)
        assert moved.causes or moved.chosen
        assert [way.taken for way in moved.ways] == [n == 0 for n in range(len(moved.ways))]
        assert str(moved).count("<- taken") == (len(moved.ways) > 1)


def test_what_a_loop_carries_otherwise_is_said() -> None:
    # Each turn needs the weight whole: it is gathered before the loop, though propagation has it in parts.
    text = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(%w: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %v: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %0 = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.constant dense<99> : tensor<i32>
  %2:3 = stablehlo.while(%i = %0, %a = %w, %y = %v) : tensor<i32>, tensor<16x16xf32>, tensor<4x16xf32>
    cond {
      %3 = stablehlo.compare LT, %i, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %3 : tensor<i1>
    } do {
      %3 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.add %i, %3 : tensor<i32>
      %5 = stablehlo.dot_general %y, %a, contracting_dims = [1] x [0]
         : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
      %6 = stablehlo.tanh %5 : tensor<4x16xf32>
      stablehlo.return %4, %a, %6 : tensor<i32>, tensor<16x16xf32>, tensor<4x16xf32>
    }
  return %2#2 : tensor<4x16xf32>
}
"""
    program = shardlog.run(text).partition()
    (collective,) = program.collectives
    assert (collective.op, collective.slot, collective.value, collective.executions) == (
        "stablehlo.while",
        "operand 1",
        "%arg0",
        1,
    )
    (placed,) = program.why(0).chosen
    assert (placed.value, placed.dims, placed.propagated) == (
        "the value that the loop carries for %0#1",
        ("", ""),
        ("x", ""),
    )


def test_causes_are_found_when_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, origins = list[int](), Asked.origins

    def noted(self: Asked, number: int) -> Iterator[Any]:
        asked.append(number)
        return origins(self, number)

    monkeypatch.setattr(Asked, "origins", noted)
    program = shardlog.run(models.text("transformer")).partition()
    cost, collectives = program.cost(), program.collectives
    assert sum(item.bytes for item in cost.collectives()) > 0
    assert asked == []
    number, causes = next((c.number, c.causes) for c in collectives if c.causes)
    assert asked == [*range(number + 1)]
    assert causes == tuple(dict.fromkeys(causes))
    assert type(copy.deepcopy(causes)) is tuple
    row = next(item for item in cost.collectives() if number in item.numbers)
    assert [*row.causes] == [*dict.fromkeys(cause for n in row.numbers for cause in collectives[n].causes)]

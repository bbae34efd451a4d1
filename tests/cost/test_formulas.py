"""What a program sends where sizes of its grid are not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import shardlog
from shardlog.cli import main
from shardlog.cost.formulas import formulas

TEXT = """
shard.grid @g(shape = ?x{}x4)
func.func @main(%x: tensor<12x40xf32>) -> tensor<12x40xf32> {{
  %s = shard.sharding @g split_axes = {} : !shard.sharding
  %0 = shard.shard %x to %s : tensor<12x40xf32>
  %t = shard.sharding @g split_axes = {} : !shard.sharding
  %1 = shard.shard %0 to %t annotate_for_users : tensor<12x40xf32>
  return %1 : tensor<12x40xf32>
}}
"""
BYTES = 12 * 40 * 4


@pytest.mark.parametrize(
    "size, start, end, argument, received",
    [
        ("2", "[[0]]", "[[]]", "12/nx40", ["1920 * (n - 1) / n"]),
        ("2", "[[0, 2]]", "[[0]]", "3/nx40", ["1440/n"]),
        ("2", "[[0], [2]]", "[[], [2]]", "12/nx10", ["480 * (n - 1) / n"]),
        ("?", "[[1], [0]]", "[[1]]", "12/n1x40/n0", ["1920 * (n0 - 1) / (n1 * n0)"]),
        ("?", "[[0, 1]]", "[[]]", "12/(n0 * n1)x40", ["1920 * (n0 * n1 - 1) / (n0 * n1)"]),
        ("2", "[[]]", "[[0]]", "12x40", []),
    ],
)
def test_the_bytes_of_a_gather(size: str, start: str, end: str, argument: str, received: list[str]) -> None:
    session = shardlog.run(TEXT.format(size, start, end), propagation="completion")
    answer = formulas(session.result)
    assert answer.arguments == (argument,)
    assert [each.bytes for each in answer.received] == received


@pytest.mark.parametrize("n", [2, 3, 6])
def test_a_formula_is_what_the_program_of_that_size_receives(n: int) -> None:
    text = TEXT.format("2", "[[0], [2]]", "[[], [2]]")
    (received,) = formulas(shardlog.run(text, propagation="completion").result).received
    sized = shardlog.run(text, propagation="completion", mesh=f"g:0={n},1=2,2=4")
    (collective,) = sized.partition(order="rfc").collectives
    assert eval(received.bytes, {"n": n}) == collective.bytes == BYTES / 4 * (n - 1) / n


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "program.mlir"
    module.write_text(TEXT.format("2", "[[0]]", "[[]]"))
    assert main(["cost", str(module), "--propagation", "completion"]) == 0
    assert "1920 * (n - 1) / n" in capsys.readouterr().out
    assert main(["cost", str(module), "--propagation", "completion", "--json"]) == 0
    (received,) = json.loads(capsys.readouterr().out)["received"]
    assert received["kind"] == "all-gather" and received["axes"] == ["0"]


REDUCED = """
shard.grid @g(shape = ?)
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %0 = shard.shard %x to %s annotate_for_users : tensor<8x16xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""


def test_an_op_that_reduces_what_is_split_sends_its_result() -> None:
    (received,) = formulas(shardlog.run(REDUCED, propagation="completion").result).received
    assert (received.kind, received.axes, received.place[-2:]) == ("all-reduce", ("0",), ":6")
    sized = shardlog.run(REDUCED, propagation="completion", mesh="g:0=4")
    (collective,) = sized.partition(order="rfc", keep_shardings=True).collectives
    assert eval(received.bytes, {"n": 4}) == collective.bytes == 2 * 8 * 4 * 4 * 3 / 4


COLLECTIVE = """
mesh.cluster @c(rank = 1, dim_sizes = [0])
func.func @main(%x: tensor<8x4xf32, #mesh.shard<[[], [], [0]]>>) -> tensor<8x4xf32> {
  %0 = mesh.all_reduce %x {mesh_axis = [0]} : tensor<8x4xf32, #mesh.shard<[[], [], [0]]>> -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


def test_collectives_of_the_program_count() -> None:
    (received,) = formulas(shardlog.run(COLLECTIVE).result).received
    assert (received.kind, received.bytes) == ("all-reduce", "256 * (n - 1) / n")

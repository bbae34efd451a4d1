"""``shardlog mutate``: another sharding option of an op, and what it changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.explanations.answers.mutated import Mutated

# A device gathers x and scatters the second product; 2048 operations are its part of each product.
NET = """
mesh.cluster @c(rank = 1, dim_sizes = [2])
func.func @net(%x: tensor<2x4x8xf32>, %w: tensor<8x32xf32>, %v: tensor<32x8xf32>) -> tensor<2x4x8xf32>
    attributes {mesh_cluster = @c} {
  %0 = mesh.annotate %x {required = true, sharding = [[], [], [0]]} : tensor<2x4x8xf32> -> tensor<2x4x8xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [2] x [0]
      : (tensor<2x4x8xf32>, tensor<8x32xf32>) -> tensor<2x4x32xf32>
  %2 = stablehlo.tanh %1 : tensor<2x4x32xf32>
  %3 = stablehlo.dot_general %2, %v, contracting_dims = [2] x [0]
      : (tensor<2x4x32xf32>, tensor<32x8xf32>) -> tensor<2x4x8xf32>
  %4 = mesh.annotate %3 {required = true, sharding = [[], [], [], [0]]}
      : tensor<2x4x8xf32> -> tensor<2x4x8xf32>
  %5 = mesh.annotate %4 {as_result = false, required = true, sharding = [[], [], [0]]}
      : tensor<2x4x8xf32> -> tensor<2x4x8xf32>
  return %5 : tensor<2x4x8xf32>
}
"""
BEFORE = {"all-gather": 128, "reduce-scatter": 128}
WORK = 2048 + 128 + 2048


@pytest.fixture
def net(tmp_path: Path) -> str:
    path = tmp_path / "net.mlir"
    path.write_text(NET)
    return str(path)


def mutated(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main(["mutate", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


@pytest.mark.parametrize("order", [[], ["--order", "rfc"]])
def test_contracting_the_sharded_dimension_scatters_the_product_and_gathers_nothing(
    net: str, order: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    mutation = mutated(capsys, net, "--option", "%1=[[], [], [], [0]]", *order)
    assert mutation["before"]["received"] == BEFORE and mutation["before"]["flops"] == WORK
    assert mutation["after"]["received"] == {"reduce-scatter": 128 + 2 * 4 * 32 * 4 // 2}
    assert mutation["after"]["flops"] == WORK and mutation["after"]["redundant"] == 0
    gone, new = ([(m["collective"], m["bytes"]) for m in mutation[which]] for which in ("gone", "new"))
    assert gone == [("all-gather", 128)] and new == [("reduce-scatter", 512)]


def test_an_op_without_axes_is_computed_by_every_device(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    mutation = mutated(capsys, net, "--option", "%1=[]")
    assert 0 <= mutation["after"]["redundant"] - 2048 < 8  # and some for the part that the device takes
    assert mutation["after"]["flops"] == WORK + mutation["after"]["redundant"]


def test_what_the_annotations_say_anyhow_changes_nothing(net: str) -> None:
    session = shardlog.run(Path(net), propagation="completion")
    mutation = session.mutate(["%1=[[], [], ['0']]".replace("'", '"'), "%4=@c[[], [], [], [0]]"])
    assert isinstance(mutation, Mutated) and not (mutation.gone or mutation.new)
    assert mutation.before == mutation.after


def test_a_saved_run_and_the_module_say_the_same(
    net: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "net.run"
    shardlog.run(Path(net), propagation="completion").save(saved)
    words = ["--option", "%1=[[], [], [], [0]]"]
    assert mutated(capsys, str(saved), *words) == mutated(capsys, net, *words)


def test_the_table_and_what_if(net: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--option", "%1=[[], [], [], [0]]"]
    assert main(["mutate", net, *words]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["bytes", "received,", "all-gather", "128", "0", "-128"] in rows
    assert main(["what-if", net, "--propagation", "completion", *words]) == 0
    assert "256 bytes must move to each device before, 640 after: +384" in capsys.readouterr().out


@pytest.mark.parametrize(
    "option, message",
    [
        ("%1=[[0]", "not a sharding option"),
        ("%1=[0]", "not a sharding option"),
        ("%1=[[0], [0]]", "axis 0 is listed twice"),
        ("%1=[[1]]", "the grid has no axis 1"),
        ("%1=@d[[0]]", "the module has no grid @d"),
        ("%1=[[], [], [], [], [0]]", "5 lists, and the op has 4 loops"),
        ("%x=[[0]]", "%x is not the result of an op"),
        ("%8=[[0]]", "there is no value %8"),
    ],
)
def test_an_option_that_an_op_cannot_have_is_refused(
    net: str, option: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["mutate", net, "--option", option]) == 2
    assert f"--option '{option}': error: {message}" in capsys.readouterr().err


def test_what_cannot_be_split_and_what_is_not_completed_is_refused() -> None:
    unit = NET.replace("2x4x", "1x4x")
    with pytest.raises(ShardlogError, match="loop 0 of the op cannot be split"):
        shardlog.run(unit, propagation="completion", sharding_option="%1=[[0]]")
    with pytest.raises(ShardlogError, match="two sharding options"):
        shardlog.run(NET, propagation="completion", sharding_option=["%3=[]", "%4=[]"])
    with pytest.raises(ShardlogError, match="no sharding options"):
        shardlog.run(NET, sharding_option="%1=[]")


def test_sizes_that_are_not_known_give_formulas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "unknown.mlir"
    path.write_text(NET.replace("[2])", "[0])"))
    words = [str(path), "--option", "%1=[[], [], [], [0]]"]
    mutation = mutated(capsys, *words)
    before, after = mutation["before"], mutation["after"]
    assert before["arguments"] == ["2x4x8/n", "8x32/n", "32/nx8"]
    assert after["arguments"] == ["2x4x8/n", "8/nx32", "32/nx8"]
    assert [(m["kind"], m["bytes"]) for m in before["received"]] == [
        ("all-gather", "256 * (n - 1) / n"),
        ("reduce-scatter", "256 * (n - 1) / n"),
    ]
    assert {m["kind"] for m in after["received"]} == {"reduce-scatter"}
    assert main(["mutate", *words]) == 0
    said = capsys.readouterr().out
    assert "argument 1      8x32/n" in said and "before   all-gather" in said

"""Plans of programs: printed, saved, read back and followed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog.errors import ShardlogError
from shardlog.partition.saved import SavedPlan

from ..support.programs import lowered

MLP = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<64x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %up: tensor<512x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
                %down: tensor<2048x512xf32>) -> tensor<64x512xf32> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] : (tensor<64x512xf32>, tensor<512x2048xf32>) -> tensor<64x2048xf32>
  %1 = stablehlo.tanh %0 : tensor<64x2048xf32>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0] : (tensor<64x2048xf32>, tensor<2048x512xf32>) -> tensor<64x512xf32>
  return %2 : tensor<64x512xf32>
}
"""  # noqa: E501
PROGRAMS = ("scan", "gradient of a scan", "shard_map", "top_k", "inner jit")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("options", [{}, {"keep_shardings": True}, {"topology": "v5e"}], ids=str)
def test_a_program_by_its_saved_plan_is_the_same(name: str, options: Any, tmp_path: Path) -> None:
    result = shardlog.run(lowered(name, 3))
    program = result.partition(**options)
    program.plan.save(path := tmp_path / "plan.json")
    followed = result.partition(plan=path)
    assert followed.text() == program.text()
    assert followed.decided == program.decided
    assert followed.plan == program.plan
    assert followed.collectives == program.collectives


def test_each_reshard_says_what_it_is_for() -> None:
    plan = shardlog.run(MLP).partition().plan
    (reshard,) = plan.reshards
    assert (reshard.value, reshard.steps) == ("%2", "all-reduce over model")
    assert (reshard.before, reshard.after) == ("[{data}, {}], partial over model", "[{data}, {}]")
    assert reshard.purpose.startswith("result of stablehlo.dot_general at ")
    assert [way.way for way in plan.ways] == ["i on data, j on model"] * 2 + ["i on data, k on model"]
    assert str(plan).endswith(
        "0 values with another sharding than propagation's, 3 ops computed in parts, 1 reshard"
    )


def test_a_plan_says_where_values_live_otherwise() -> None:
    program = shardlog.run(MLP).partition(pins='%1=[{"data"}, {}]')
    assert ("%1", "[{data}, {}]") in [(home.value, home.layout) for home in program.plan.homes]


def refusal(**given: Any) -> str:
    """The message of a partition that is refused."""
    with pytest.raises(ShardlogError) as error:
        shardlog.run(MLP).partition(**given)
    return str(error.value)


def test_a_plan_of_another_module_is_refused(tmp_path: Path) -> None:
    shardlog.run(MLP.replace("tanh", "cosine")).partition().plan.save(path := tmp_path / "plan.json")
    assert refusal(plan=path).startswith(f"{path}: error: a plan of another module, or of other shardings")


def test_a_plan_says_all(tmp_path: Path) -> None:
    shardlog.run(MLP).partition().plan.save(path := tmp_path / "plan.json")
    assert "memory has no effect with a plan" in refusal(plan=path, memory="1GiB")


def changed(tmp_path: Path, **fields: Any) -> Path:
    """The plan of a module, with other fields."""
    plan = json.loads(shardlog.run(MLP).partition().plan.file.text)
    (path := tmp_path / "plan.json").write_text(json.dumps(plan | fields))
    return path


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"version": 2}, "a plan of version 2, and this is version 1"),
        ({"axes": []}, "a plan of another mesh"),
        ({"axes": [[0, "none", 1, 2]]}, "a damaged plan"),
        ({"axes": [[7, "rows", 1, 2]]}, "a damaged plan"),
        ({"axes": [[0, "rows", 3, 5]]}, "a damaged plan"),
        ({"axes": [[0, "rows", None, 2]]}, "a damaged plan"),
        ({"reshards": []}, "an op asks for a reshard that it does not have"),
        ({"homes": {"999": [[], []]}}, "a damaged plan"),
        ({"ways": {"3": [[0, ["rows"]]]}}, "a damaged plan"),
        ({"ways": 3}, "a damaged plan"),
    ],
    ids=str,
)
def test_a_plan_changed_by_hand_is_refused(fields: Any, said: str, tmp_path: Path) -> None:
    assert said in refusal(plan=changed(tmp_path, **fields))


def test_a_plan_with_a_step_of_other_axes_is_one_message(tmp_path: Path) -> None:
    """MLIR refuses the program that it describes, in many lines."""
    plan = json.loads(shardlog.run(MLP).partition(pins='%1=[{"data"}, {}]').plan.file.text)
    (gather,) = [
        step for reshard in plan["reshards"] for step in reshard["steps"] if step["kind"] == "all_gather"
    ]
    gather["axes"] = []
    message = refusal(plan=changed(tmp_path, **plan))
    assert "a damaged plan (" in message
    assert len(message.splitlines()) == 2


@pytest.mark.parametrize("text", ["", "[]", "{}", "\xff"])
def test_what_is_no_plan_is_refused(text: str, tmp_path: Path) -> None:
    (path := tmp_path / "plan.json").write_bytes(text.encode("latin1"))
    assert f"{path}: error: " in refusal(plan=path)


def test_a_plan_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "cannot read: No such file or directory" in refusal(plan=tmp_path / "plan.json")


def test_plans_are_read_as_they_are_written() -> None:
    program = shardlog.run(MLP).partition(pins='%1=[{"data"}, {}]')
    assert SavedPlan(program.plan.file).plan(program.axes, 6) == program.decided

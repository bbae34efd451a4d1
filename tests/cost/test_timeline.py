"""The step as a timeline: what ``cost --trace`` writes is read back, and takes as long as the cost says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shardlog
from jsonschema import validate
from shardlog.cli import main
from shardlog.cost import timeline
from shardlog.cost.cost import Cost

from ..partition import test_collective_matmul as matmul
from ..support import models
from ..support.drawing import by_day
from ..support.mlp import MLP

# What Chrome's trace viewer and Perfetto need of the events that are written.
SCHEMA = {
    "type": "object",
    "required": ["traceEvents", "displayTimeUnit"],
    "properties": {
        "displayTimeUnit": {"enum": ["ms", "ns"]},
        "otherData": {"type": "object"},
        "traceEvents": {
            "type": "array",
            "items": {
                "required": ["ph", "pid", "tid", "name"],
                "properties": {
                    "pid": {"type": "integer"},
                    "tid": {"type": "integer"},
                    "name": {"type": "string"},
                    "args": {"type": "object"},
                },
                "oneOf": [
                    {
                        "required": ["ts", "dur", "cat"],
                        "properties": {
                            "ph": {"const": "X"},
                            "ts": {"type": "number", "minimum": 0},
                            "dur": {"type": "number", "exclusiveMinimum": 0},
                        },
                    },
                    {
                        "required": ["args"],
                        "properties": {
                            "ph": {"const": "M"},
                            "name": {"enum": ["process_name", "thread_name", "thread_sort_index"]},
                        },
                    },
                ],
            },
        },
    },
}

LOOP = """
sdy.mesh @mesh = <["x"=2]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #rows}, %w: tensor<8x8xf32> {sdy.sharding = #rows}) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %n = stablehlo.constant dense<TURNS> : tensor<i32>
  %0:2 = stablehlo.while(%i = %zero, %a = %x) : tensor<i32>, tensor<8x8xf32>
   cond {
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.tanh %w : tensor<8x8xf32>
    %y = stablehlo.dot_general %a, %t, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %next, %y : tensor<i32>, tensor<8x8xf32>
  }
  return %0#1 : tensor<8x8xf32>
}
"""  # noqa: E501


def events(cost: Cost) -> list[dict[str, Any]]:
    """What is done, of a trace that is one."""
    trace = cost.trace()
    validate(trace, SCHEMA)
    done = [row for row in trace["traceEvents"] if row["ph"] == "X"]
    end: dict[int, float] = {}
    for row in done:  # one after the other on each track, as viewers need it
        assert row["ts"] >= end.get(row["tid"], 0.0) - 1e-6
        end[row["tid"]] = row["ts"] + row["dur"]
    assert max(end.values()) / 1e6 == pytest.approx(cost.seconds)
    return done


def test_the_command_writes_a_track_for_computing_and_one_for_links(tmp_path: Path) -> None:
    (tmp_path / "mlp.mlir").write_text(MLP)
    file = tmp_path / "step.json"
    assert main(["cost", str(tmp_path / "mlp.mlir"), "--trace", str(file)]) == 0
    trace = json.loads(file.read_text())
    validate(trace, SCHEMA)
    rows = trace["traceEvents"]
    tracks = {row["tid"]: row["args"]["name"] for row in rows if row["name"] == "thread_name"}
    done = [(tracks[row["tid"]], row["name"]) for row in rows if row["ph"] == "X"]
    assert done == [
        ("compute", "stablehlo.dot_general"),
        ("compute", "stablehlo.tanh"),
        ("compute", "stablehlo.dot_general"),
        ("links of model", "all-reduce"),
    ]
    (sent,) = (row["args"] for row in rows if row["name"] == "all-reduce")
    assert (sent["op"], sent["collective"], sent["bytes"]) == ("stablehlo.dot_general", 0, 384)
    assert sent["place"].endswith("mlp.mlir:7")


def test_each_turn_of_a_loop_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    cost = shardlog.run(LOOP.replace("TURNS", "3")).partition().cost("v5e")
    names = [row["name"].removeprefix("stablehlo.") for row in events(cost)]
    # What is the same in each turn is computed once, and the test comes once more at the end.
    assert names.count("dot_general") == 3
    assert names.index("tanh") < names.index("dot_general")
    assert names.count("tanh") == 1
    assert names.count("compare") == 4
    assert names[-1] == "compare"
    # Of too many turns an event stands for all.
    monkeypatch.setattr(timeline, "MOST_EVENTS", 8)
    times = {row["name"].removeprefix("stablehlo."): row["args"]["times"] for row in events(cost)}
    assert (times["dot_general"], times["tanh"], times["compare"]) == (3, 1, 4)


TRAINED = [(True, "v5e"), (False, "v5e"), (True, "h100"), (False, "h100")]


@pytest.mark.parametrize(("scan", "topology"), by_day([(True, "v5e"), (False, "h100")], TRAINED))
def test_it_takes_as_long_as_the_cost_says(scan: bool, topology: str) -> None:
    program = models.lower("transformer", depth=1, scan=scan, train=True)
    cost = shardlog.run(program).partition().cost(topology)
    timeline = events(cost)
    layers = {row["args"].get("layer") for row in timeline}
    assert {"train_step/loss/cross_entropy", "backward/train_step/loss/cross_entropy"} <= layers
    sent = sum(row["args"]["bytes"] for row in timeline if row["tid"])
    assert sent == pytest.approx(cost.sent)


def test_what_overlaps_with_products_is_drawn_beside_them(tmp_path: Path) -> None:
    topology = matmul.machine(tmp_path)
    program = shardlog.run(matmul.MLP).partition(topology=topology, collective_matmul=True)
    done = events(program.cost(topology))
    gather, scatter = (row for row in done if row["tid"])
    products = [row for row in done if row["name"] == "stablehlo.dot_general"]
    assert (gather["name"], scatter["name"]) == ("all-gather", "reduce-scatter")
    assert gather["ts"] <= products[0]["ts"] < gather["ts"] + gather["dur"]
    assert scatter["ts"] < products[-1]["ts"] + products[-1]["dur"] <= scatter["ts"] + scatter["dur"] + 1e-6


def test_no_timeline_of_sizes_that_are_not_known(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "grid.mlir"
    file.write_text("""
shard.grid @grid(shape = ?)
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
""")
    assert main(["cost", str(file), "--trace", str(tmp_path / "step.json")]) == 2
    assert not (tmp_path / "step.json").exists()

"""`--stages`: its account of each user priority, which is what a run as far as this priority gives."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import shardlog
from shardlog import cli
from shardlog.propagation.schedules.schedule import Left, TacticDimension
from shardlog.runs.accounts import accounts_text

from ..support.schedules import case

# Two layers; the weights of the second have a size that 2 divides, but 4 does not.
MLP = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%arg0: tensor<8x16xf32> loc("x"), %arg1: tensor<16x32xf32> loc("up[0]"),
                %arg2: tensor<32x16xf32> loc("down[0]"), %arg3: tensor<16x6xf32> loc("up[1]"),
                %arg4: tensor<6x16xf32> loc("down[1]"), %arg5: tensor<3xbf16> loc("rest"))
    -> (tensor<8x16xf32> {jax.result_info = "result"}) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> loc("m.py":3:5)
  %1 = stablehlo.dot %0, %arg2 : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32> loc("m.py":3:5)
  %2 = stablehlo.dot %1, %arg3 : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32> loc("m.py":3:5)
  %3 = stablehlo.dot %2, %arg4 : (tensor<8x6xf32>, tensor<6x16xf32>) -> tensor<8x16xf32> loc("m.py":3:5)
  return %3 : tensor<8x16xf32>
}
"""
SCHEDULE = "batch: x[0] -> data; megatron: up.0[1] -> model; zero: up, down, rest -> data"

TEXT = """\
batch (user priority 0)
  given       x  dim 0 on data
  gained      6 of 11 tensors
              data: 6 in dim 0
  arguments   x  tensor<8x16xf32>  [{data}, {}]
  results     result  tensor<8x16xf32>  [{data}, {}]
  unchanged   5 arguments and results
  replicated  5 tensors, 4.756 KiB
              2 KiB      tensor<16x32xf32>  up[0]
              2 KiB      tensor<32x16xf32>  down[0]
              384 bytes  tensor<16x6xf32>   up[1]
              384 bytes  tensor<6x16xf32>   down[1]
              6 bytes    tensor<3xbf16>     rest

megatron (user priority 1)
  given       up[0]  dim 1 on model
  gained      3 of 11 tensors
              model: 1 in dim 0, 2 in dim 1
  arguments   up[0]    tensor<16x32xf32>  [{}, {model}]
              down[0]  tensor<32x16xf32>  [{model}, {}]
  unchanged   5 arguments and results
  replicated  3 tensors, 774 bytes
              384 bytes  tensor<16x6xf32>  up[1]
              384 bytes  tensor<6x16xf32>  down[1]
              6 bytes    tensor<3xbf16>    rest

zero (user priority 2)
  given       up[*] (2)  dim 0 on data
              down[0]    dim 1 on data
              down[1]    dim 0 on data
  left        rest  not on data: none of its dimensions is divisible by 2
  gained      4 of 11 tensors
              data: 3 in dim 0, 1 in dim 1
  arguments   up[0]    tensor<16x32xf32>  [{data}, {model}]
              down[0]  tensor<32x16xf32>  [{model}, {data}]
              up[1]    tensor<16x6xf32>   [{data}, {}]
              down[1]  tensor<6x16xf32>   [{data}, {}]
  unchanged   3 arguments and results
  replicated  1 tensor, 6 bytes
              6 bytes  tensor<3xbf16>  rest
"""


def test_text() -> None:
    assert accounts_text(shardlog.run(MLP, schedule=SCHEDULE).accounts) + "\n" == TEXT


def test_accounts() -> None:
    batch, _, zero = shardlog.run(MLP, schedule=SCHEDULE).accounts
    assert (batch.name, batch.priority, batch.given) == ("batch", 0, (TacticDimension("x", 0, ("data",)),))
    assert [held.tensor.name for held in batch.changed] == ["x", "result"]
    assert batch.axes == (("data", 0, 6),)
    assert (batch.gained, batch.tensors, batch.unchanged) == (6, 11, 5)
    assert [(t.name, t.bytes) for t in batch.replicated] == [
        ("up[0]", 2048),
        ("down[0]", 2048),
        ("up[1]", 384),
        ("down[1]", 384),
        ("rest", 6),
    ]
    assert zero.left == (Left("rest", ("data",), "none of its dimensions is divisible by 2"),)
    assert [given.dim for given in zero.given] == [0, 0, 1, 0]
    assert [tensor.name for tensor in zero.replicated] == ["rest"]


def test_a_tactic_that_leaves_everything_has_an_account_too() -> None:
    first, second = shardlog.run(MLP, schedule="batch: x[0] -> data; again: x -> data").accounts
    assert (second.name, second.given, second.gained) == ("again", (), 0)
    assert second.left == (Left("x", ("data",), "it is sharded on data already"),)
    assert second.replicated == first.replicated


def test_priorities_of_a_module() -> None:
    annotations = ['%arg0=[{"data"}, {?}]', '%arg1=[{?}, {"model", ?}p2]', '%2=[{?}, {"data", ?}p2]']
    accounts = shardlog.run(MLP, annotate=annotations).accounts
    assert [(a.name, a.priority, a.given) for a in accounts] == [
        ("annotations", 0, (TacticDimension("x", 0, ("data",)),)),
        ("annotations", 2, (TacticDimension("up[0]", 1, ("model",)), TacticDimension("%2", 1, ("data",)))),
    ]
    (all_at_once,) = shardlog.run(MLP, annotate=annotations, strategy="basic").accounts
    assert [(g.tensor, g.dim) for g in all_at_once.given] == [("x", 0), ("up[0]", 1), ("%2", 1)]


@pytest.mark.parametrize("name", ["lstm", "recommender"])
def test_an_account_is_that_of_a_run_that_stops_there(name: str) -> None:
    text, schedule = case(name, scan=False)
    whole = shardlog.run(text, schedule=schedule)
    assert sum(account.gained > 0 for account in whole.accounts) > 1
    for number, account in enumerate(whole.accounts):
        part = shardlog.run(text, schedule=schedule, until=account.priority)
        assert part.accounts == whole.accounts[: number + 1]
        sharded = {v for v, *_ in part.facts["sharded"]}
        names = {tensor.name for tensor in account.replicated}
        assert names.isdisjoint(sharded)


def test_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MLP)
    command = ["run", "m.mlir", "--schedule", SCHEDULE, "--stages"]
    assert cli.main(command) == 0
    out, err = capsys.readouterr()
    assert (out, err) == (TEXT, "")
    assert cli.main([*command, "--json", "-o", "out.mlir", "--until", "megatron"]) == 0
    priorities = json.loads(capsys.readouterr().out)["priorities"]
    assert [account["name"] for account in priorities] == ["batch", "megatron"]
    assert priorities[0]["changed"][0]["axes"] == [["data"], []]
    assert Path("out.mlir").read_text() == shardlog.run(MLP, schedule=SCHEDULE, until="megatron").text()


def test_a_saved_run_is_replayed_with_its_schedule(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MLP)
    assert cli.main(["run", "m.mlir", "--schedule", SCHEDULE, "--save", "m.run"]) == 0
    for run in (["m.run"], ["m.mlir", "--schedule", SCHEDULE]):
        assert cli.main(["why", *run, "%0", "--axis", "data", "--verify"]) == 0
    one, other = capsys.readouterr().out.split("%0 : ", 2)[1:]
    assert one == other and "derived again" in one

"""The JSON that commands print is valid by their schemas."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator, ValidationError, validate
from shardlog.autosharding.plan import AutoPlan, Placed
from shardlog.cli import main, parser
from shardlog.cli.schemas import schema

SHARD = """
shard.grid @g(shape = 2x3)
func.func @f(%x: tensor<6xf32>) -> tensor<6xf32> {
  %0 = shard.all_reduce %x on @g grid_axes = [0] : tensor<6xf32> -> tensor<6xf32>
  %1 = shard.all_reduce %0 on @g grid_axes = [1] : tensor<6xf32> -> tensor<6xf32>
  return %1 : tensor<6xf32>
}
"""

MODULE = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}p1, {?}]>} loc("x"),
                %u: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>})
    -> tensor<8x32xf32> {
  %0 = stablehlo.dot %x, %u : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> loc("model.py":7:9)
  %1 = stablehlo.custom_call @mine(%0) : (tensor<8x32xf32>) -> tensor<8x32xf32>
  return %1 : tensor<8x32xf32>
}
"""
DOCUMENTS = {
    "run": ["run m.mlir -o out --fail-on unknown-op --fail-on reshard-above=1 --fail-on replicated-above=1"],
    "run with stages": ["run m.mlir --stages", "--schedule", "batch: x[1] -> model"],
    "partition": ["partition m.mlir"],
    "auto": ["auto exec.mlir --topology h100"],
    "auto with a plan": ["auto exec.mlir --plan plan.json"],
    "diff-plan": ["diff-plan plan.json other.json"],
    "exec": ["exec exec.mlir"],
    "cost": ["cost m.mlir"],
    "compile": ["compile exec.mlir --target cpu"],
    "profile": ["profile p.dl"],
    "datalog": ["datalog p.dl --explain", "b(1)"],
    "datalog plan": ["datalog p.dl --plan"],
    "datalog why not": ["datalog p.dl --explain-not", "b(2)"],
    "why a collective": ["why m.mlir --collective 0"],
    "query": ["query m.mlir", "sharded(v, d, k, x), dim(v, d, n)"],
    "query without names": ["query m.mlir", 'sharded("%0", 0, 0, "data")'],
    "why": ["why m.mlir %0 --full --verify"],
    "why-not": ["why-not m.mlir %1 --dim 0 --axis data --verify"],
    "conflicts": ["conflicts m.mlir"],
    "diff": ["diff m.mlir other.mlir"],
    "what-if": ["what-if m.mlir --drop x"],
    "what-if with pins": ["what-if exec.mlir", "--pin", '%0=[{"data"}, {}]'],
    "simplify": ["simplify shard.mlir"],
    "mutate": ["mutate exec.mlir", "--option", '%0=[["model"]]'],
    "why with the choice": ["why exec.mlir %0 --no-keep-shardings"],
    "expect": ["expect m.mlir expected.toml --fail-on unknown-op"],
    "check": ["check m.mlir --expect expected.toml --baseline other.mlir --fail-on unknown-op"],
    "ops": ["ops m.mlir"],
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MODULE)
    Path("exec.mlir").write_text(MODULE.replace("stablehlo.custom_call @mine(%0)", "stablehlo.tanh %0"))
    Path("shard.mlir").write_text(SHARD)
    Path("p.dl").write_text(".decl a(x: number)\na(1).\n.decl b(x: number)\nb(x) :- a(x), x < 2.\n")
    Path("other.mlir").write_text(MODULE.replace('{"data"}p1', "{}"))
    for name, spec in (("plan", ("data", None)), ("other", (None, ("data", "model")))):
        placed = (Placed("x", spec),)
        plan = AutoPlan("data=2,model=4", "v5e", 1.0, 1, None, None, placed, placed, {})
        Path(f"{name}.json").write_text(plan.text)
    Path("expected.toml").write_text('"%u" = \'[{}, {"model"}]\'\n"x" = \'[{"data"}, {"model"}]\'\n')


@pytest.mark.parametrize("name", DOCUMENTS)
def test_json_is_as_its_schema_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words, *quoted = DOCUMENTS[name]
    assert main([*words.split(), *quoted, "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert found
    assert main([words.split()[0], "--schema"]) == 0
    document = json.loads(capsys.readouterr().out)
    Draft202012Validator.check_schema(document)
    validate(found, document)
    with pytest.raises(ValidationError):
        validate({"else": 1}, document)


def test_every_command_with_json_has_a_schema() -> None:
    (commands,) = (a.choices for a in parser()._actions if a.choices)
    with_json = [name for name, command in dict(commands).items() if "--json" in command.format_help()]
    assert set(with_json) == {name.split()[0] for name in DOCUMENTS}
    assert all(schema(name)["title"] == f"what shardlog {name} --json prints" for name in with_json)

"""The command line: what goes in, what comes out and where, and the facts that Soufflé reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog import cli
from shardlog.runs.records.saved import Saved

MODULE = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %arg1: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.tanh %0 : tensor<8x32xf32>
  return %1 : tensor<8x32xf32>
}
"""
ROWS_ON_DATA = '#sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>'


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a file with the example, in a folder of its own that is the current one."""
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MODULE)
    return "m.mlir"


def shell(command: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a shell command in which `shardlog` is the command line under test."""
    function = f'shardlog() {{ "{sys.executable}" -m shardlog "$@"; }}\n'
    return subprocess.run(
        ["bash", "-c", function + command], capture_output=True, text=True, check=False, **options
    )


def test_run_writes_the_annotated_module(module: str, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert cli.main(["run", module]) == 0
    written = capsysbinary.readouterr()
    assert written.out.decode() == shardlog.run(Path(module)).text()
    assert written.out.decode().count(ROWS_ON_DATA) == 2
    assert written.err == b""


def test_output_file_as_text_and_as_bytecode(module: str) -> None:
    assert cli.main(["run", module, "-o", "out.mlir"]) == 0
    assert cli.main(["run", module, "-o", "out.mlirbc"]) == 0
    assert Path("out.mlirbc").read_bytes().startswith(b"ML\xefR")
    assert cli.main(["run", "out.mlirbc", "-o", "again.mlir"]) == 0
    assert Path("again.mlir").read_bytes() == Path("out.mlir").read_bytes()
    assert sorted(p.name for p in Path().iterdir()) == ["again.mlir", module, "out.mlir", "out.mlirbc"]


def test_output_may_be_a_link_or_a_device(module: str) -> None:
    Path("real.mlir").touch()
    Path("link.mlir").symlink_to("real.mlir")
    assert cli.main(["run", module, "-o", "link.mlir"]) == 0
    assert Path("link.mlir").is_symlink()
    assert ROWS_ON_DATA in Path("real.mlir").read_text()
    assert cli.main(["run", module, "-o", os.devnull]) == 0
    assert Path(os.devnull).is_char_device()


def test_pipes(module: str) -> None:
    twice = shell(f"cat {module} | shardlog run - | shardlog run -")
    assert (twice.returncode, twice.stderr) == (0, "")
    assert twice.stdout == shardlog.run(Path(module)).text()


def test_reader_that_goes_away(module: str) -> None:
    done = shell(f"shardlog run {module} | true; echo ${{PIPESTATUS[0]}} >&2")
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_mesh_and_annotations(module: str) -> None:
    Path(module).write_text(f"module attributes {{mhlo.num_partitions = 8 : i32}} {{\n{MODULE}}}\n")
    mesh, annotation = "data=4,model=4", '%arg1=[{}, {"model"}]'
    assert cli.main(["run", module, "-o", "out.mlir", "--mesh", mesh, "--annotate", annotation]) == 0
    text = Path("out.mlir").read_text()
    assert 'sdy.mesh @mesh = <["data"=4, "model"=4]>' in text
    assert "mhlo.num_partitions = 16 : i32" in text
    assert text.count('<@mesh, [{"data"}, {"model"}]>]>') == 2


def test_open_shardings(module: str) -> None:
    assert cli.main(["run", module, "-o", "out.mlir", "--open"]) == 0
    assert '#sdy.sharding_per_value<[<@mesh, [{"data", ?}, {?}]>]>' in Path("out.mlir").read_text()


def test_statistics(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", module, "-o", "out.mlir", "--stats"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "user priority"
    assert [line.split()[:3] for line in lines[2:7]] == [["0", str(i), "aggressive"] for i in range(5)]
    assert lines[7].startswith("total")


def test_statistics_as_json(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", module, "-o", "out.mlir", "--json", "--strategy", "basic"]) == 0
    (stage,) = json.loads(capsys.readouterr().out)["stages"]
    assert (stage["strategy"], stage["level"], stage["changes"]) == ("basic", None, 3)


def test_statistics_do_not_mix_with_a_module_on_standard_output(module: str) -> None:
    done = shell(f"shardlog run {module} --json")
    assert done.stdout == shardlog.run(Path(module)).text()
    assert json.loads(done.stderr)["unknown_ops"] == []


UNKNOWN = MODULE.replace("stablehlo.tanh %0 :", '"my.tanh"(%0) : (tensor<8x32xf32>) ->')


def test_ops_without_a_rule_are_told_once(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(module).write_text(UNKNOWN)
    assert cli.main(["run", module, "-o", "out.mlir"]) == 0
    warning = "no rule for my.tanh (once, first at m.mlir:5:8): no sharding passes through it"
    assert capsys.readouterr().err == f"shardlog: warning: {warning}\n"


def test_rule_file(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(module).write_text(UNKNOWN)
    Path("my.dl").write_text('elementwise_op("my.tanh").\n')
    assert cli.main(["run", module, "-o", "out.mlir", "--rules", "my.dl"]) == 0
    assert capsys.readouterr().err == ""
    assert Path("out.mlir").read_text().count(ROWS_ON_DATA) == 2


def test_query(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["query", module, "sharded(v, d, _, x), value(v, t)"]) == 0
    assert capsys.readouterr().out == (
        "v      d  x     t\n"
        "-----  -  ----  ----------------\n"
        "%0     0  data  tensor<8x32xf32>\n"
        "%1     0  data  tensor<8x32xf32>\n"
        "%arg0  0  data  tensor<8x16xf32>\n"
    )


PATHS = """
sdy.mesh @mesh = <["data"=2]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>} loc("params['w']"),
                %arg1: tensor<4xf32>) -> (tensor<8xf32> {jax.result_info = "result['loss']"}, tensor<4xf32>) {
  %0 = stablehlo.abs %arg0 : tensor<8xf32>
  return %0, %arg1 : tensor<8xf32>, tensor<4xf32>
}
"""


@pytest.mark.usefixtures("module")
def test_query_of_paths_in_a_module_and_in_a_saved_run(capsys: pytest.CaptureFixture[str]) -> None:
    Path("paths.mlir").write_text(PATHS)
    assert cli.main(["run", "paths.mlir", "--save", "paths.shardlog"]) == 0
    for run in ("paths.mlir", "paths.shardlog"):
        assert cli.main(["query", run, "path(v, name), sharded(v, _, _, x)", "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == [
            {"v": "%0", "name": "result['loss']", "x": "data"},
            {"v": "%arg0", "name": "params['w']", "x": "data"},
        ]


@pytest.mark.usefixtures("module")
def test_a_query_of_a_saved_run_reads_the_relations_that_it_speaks_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shardlog.run(PATHS).save("paths.shardlog")
    monkeypatch.setattr("shardlog.runs.records.saved.Saved.result", None)
    read = Saved.relation
    names: list[str] = []
    firsts: list[Any] = []

    def relation(run: Saved, name: str, among: Any) -> Any:
        names.append(name)
        firsts.append(among)
        return read(run, name, among)

    monkeypatch.setattr(Saved, "relation", relation)
    assert (
        cli.main(["query", "paths.shardlog", "argument(v, i), !annotated(v), i < count : { dim(_, _, _) }"])
        == 0
    )
    assert capsys.readouterr().out.splitlines()[2:] == ["%arg1  1"]
    assert names == ["annotated", "argument", "dim"]
    assert firsts == [None, None, None]
    assert (
        cli.main(["query", "paths.shardlog", 'value("%arg1", _), dim("%arg1", d, size), argument(v, d)']) == 0
    )
    assert capsys.readouterr().out.splitlines()[2:] == ["0     4  %arg0"]
    assert dict(zip(names, firsts, strict=True))["dim"] == {"%arg1"}
    assert dict(zip(names, firsts, strict=True))["argument"] is None


@pytest.mark.usefixtures("module")
def test_numbers_in_names_are_sorted_as_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ", ".join(f"%arg{i}: tensor<f32>" for i in range(11))
    Path("many.mlir").write_text(
        f"func.func @main({arguments}) -> tensor<f32> {{ return %arg0 : tensor<f32> }}"
    )
    assert cli.main(["query", "many.mlir", "argument(v, _)"]) == 0
    assert capsys.readouterr().out.split()[2:] == [f"%arg{i}" for i in range(11)]


@pytest.mark.parametrize(
    ("body", "warning"),
    [
        ('sharded(v, _, _, "dta")', 'no x of sharded is "dta": did you mean data?'),
        ('!sharded("%arg7", _, _, _)', 'no v of sharded is "%arg7": did you mean %arg1?'),
        ('sharded(v, _, _, x), x = "dta:(1)2"', 'no x of sharded is "dta:(1)2": did you mean data?'),
        ('sharded(v, _, _, "data:(1)8")', 'no x of sharded is "data:(1)8": "data" has size 2'),
        (
            'n = count : { op(_, "stablehlo.tahn") }',
            'no name of op is "stablehlo.tahn": did you mean stablehlo.tanh?',
        ),
        ('fixed(v, _, "replicatd")', 'no why of fixed is "replicatd": did you mean replicated?'),
    ],
)
def test_a_symbol_that_cannot_occur_in_its_column_is_told(
    module: str, body: str, warning: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["query", module, body]) == 0
    assert capsys.readouterr().err == f"shardlog: warning: {warning}\n"


@pytest.mark.parametrize(
    "body", ['sharded("%0", _, _, "model:(1)2")', 'fixed(_, "data", "unreduced")', 'x = "dta"']
)
def test_a_symbol_that_can_occur_is_not_told(
    module: str, body: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["query", module, body]) == 0
    assert capsys.readouterr().err == ""


def test_query_with_arithmetic_and_aggregates_as_json(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    body = "argument(v, i), n = count : { dim(v, _, _) }, m = 10 * n + i"
    assert cli.main(["query", module, body, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == [
        {"v": "%arg0", "i": 0, "n": 2, "m": 20},
        {"v": "%arg1", "i": 1, "n": 2, "m": 21},
    ]


def test_query_without_variables_is_answered_by_yes_or_no(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["query", module, 'sharded("%0", 0, 0, "data")']) == 0
    assert cli.main(["query", module, 'sharded("%0", 1, _, _)']) == 0
    assert capsys.readouterr().out == "yes\nno\n"


def test_query_of_alternatives_has_the_variables_that_all_have(
    module: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["query", module, "argument(v, i), i = 0 ; returned(v, j)"]) == 0
    assert capsys.readouterr().out.split() == ["v", "-----", "%1", "%arg0"]


def test_places_are_those_of_the_file(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["query", module, 'op(o, "stablehlo.tanh"), location(o, place)']) == 0
    assert capsys.readouterr().out.split()[-1] == "m.mlir:5:8"


HEAVY = {"numpy", "jaxlib", "jax", "jinja2", "pyarrow"}  # each takes longer to load than a small run
MLIR = {"numpy", "jaxlib"}
LOADS: dict[str, tuple[set[str], int]] = {  # of these, and how many modules of shardlog at most
    "--help": (set(), 50),
    "fmt m.dl": (set(), 85),
    "run m.mlir -o out.mlir": (MLIR, 150),
    "run m.mlir --save out.run": (MLIR, 190),
    "ops m.mlir": (MLIR, 130),
    "rules show stablehlo.tanh": (MLIR, 135),
    "query m.mlir op(o,n)": (MLIR, 210),
    "facts m.mlir -o facts": (MLIR, 195),
    "partition m.mlir -o out.mlir": (MLIR, 265),
    "cost m.mlir": (MLIR, 310),
    "exec m.mlir": (MLIR | {"jax"}, 350),
    "why m.run %1": (set(), 125),
    "why-not m.run %1 --dim 0 --axis data": (set(), 125),
    "query m.run op(o,n)": (set(), 135),
    "diff m.run m.run": (set(), 130),
    "conflicts m.run": (MLIR, 335),
    "report m.run -o out.html": (MLIR | {"jinja2"}, 345),
}


def loaded(command: str) -> set[str]:
    """The modules that a process has loaded at the end of a command."""
    code = f"import sys; from shardlog import cli; cli.main({command.split()}); print('loaded', *sys.modules)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return set(process.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("command", LOADS)
def test_a_command_loads_only_what_it_uses(command: str, module: str) -> None:
    Path("m.dl").write_text(".decl p(x: number)\np(1).\n")
    assert cli.main(["run", module, "--save", "m.run"]) == 0
    heavy, most = LOADS[command]
    modules = loaded(command)
    if "shardlog.engine.plan.compiler" in modules:  # it has rules compiled, which it finds from then on
        modules = loaded(command)
    assert modules & HEAVY == heavy
    assert len([name for name in modules if name.startswith("shardlog")]) <= most

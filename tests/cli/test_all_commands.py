"""Every command takes every kind of program: it answers, or says in one message why it cannot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import shardlog
from shardlog.cli import main
from shardlog.runs.records.record import RunRecord

from ..notations.test_gspmd import PROGRAMS, axes_of, lower
from ..support.drawing import by_day
from ..support.models.expert_parallel import expert_parallel


def module(body: str, mesh: str = '"x"=2, "y"=3') -> str:
    return f"sdy.mesh @mesh = <[{mesh}]>\n{body}"


COMPLEX = module("""
func.func @main(%a: tensor<8x12xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<8x12xi1>, %c: tensor<8x12xf8E4M3FN>)
    -> (tensor<12x8xcomplex<f32>>, tensor<8x12xf64>) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x12xcomplex<f32>>) -> tensor<12x8xcomplex<f32>>
  %1 = stablehlo.constant dense<(1.0, 2.0)> : tensor<12x8xcomplex<f32>>
  %2 = stablehlo.multiply %0, %1 : tensor<12x8xcomplex<f32>>
  %3 = stablehlo.convert %c : (tensor<8x12xf8E4M3FN>) -> tensor<8x12xf64>
  %4 = stablehlo.select %b, %3, %3 : tensor<8x12xi1>, tensor<8x12xf64>
  return %2, %4 : tensor<12x8xcomplex<f32>>, tensor<8x12xf64>
}
""")
TWELVE = module(
    """
func.func @main(%a: tensor<24x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<24x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x":(1)6, ?}p1]>})
    -> tensor<24x24xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
     : (tensor<24x24xf32>, tensor<24x24xf32>) -> tensor<24x24xf32>
  %1 = stablehlo.reshape %0 : (tensor<24x24xf32>) -> tensor<4x6x24xf32>
  %2 = stablehlo.reshape %1 : (tensor<4x6x24xf32>) -> tensor<24x24xf32>
  return %2 : tensor<24x24xf32>
}
""",
    mesh='"x"=12, "y"=2',
)
WITHOUT_MESH = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n  return %a : tensor<8xf32>\n}\n"
ODD = module("""
func.func @main(%a: tensor<f32>, %t: !stablehlo.token, %e: tensor<0x3xf32>)
    -> (tensor<f32>, !stablehlo.token, tensor<0x3xf32>) {
  %0 = "my.op"(%a) : (tensor<f32>) -> tensor<f32>
      loc(callsite("lib.py":1:2 at callsite("a.py":3:4 at "b.py":5:6)))
  %1 = stablehlo.after_all %t, %t : !stablehlo.token
  return %0, %1, %e : tensor<f32>, !stablehlo.token, tensor<0x3xf32>
}
func.func @other(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = func.call @twice(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = func.call @twice(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @twice(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.constant dense<2.0> : tensor<8xf32>
  %1 = stablehlo.multiply %a, %0 : tensor<8xf32>
  %2 = stablehlo.add %1, %0 : tensor<8xf32>
  return %2 : tensor<8xf32>
}
""")


def experts(train: bool) -> str:
    return expert_parallel(depth=1, scan=True, train=train).as_text(debug_info=True)


# Programs by name, with the options of their runs.
TEXTS: dict[str, tuple[Callable[[], str], list[str]]] = {
    "experts": (partial(experts, False), []),
    "experts-trained": (partial(experts, True), []),
    **{
        f"gspmd-{function.__name__}": (
            partial(lower, function, arguments, shardy=False),
            ["--mesh", axes_of(arguments)],
        )
        for function, arguments in PROGRAMS
    },
    "complex": (lambda: COMPLEX, []),
    "axes-of-12": (lambda: TWELVE, []),
    "without-mesh": (lambda: WITHOUT_MESH, []),
    "odd": (lambda: ODD, []),
}
BY_DAY = ("gspmd-loop", "gspmd-partly_manual", "gspmd-callback", "complex", "without-mesh", "odd")


def questions(run: RunRecord, given: str, tmp: Path) -> Iterator[list[str]]:
    """Commands about a module or saved run: ``given`` stands for it."""
    values = [value for value in run.values() if value.shape]
    axes = [name for mesh in run.meshes.meshes for name, _ in mesh.axes]
    for value in values[:: max(1, len(values) // 3)]:
        yield ["why", given, value.name]
        for axis in axes[:1]:
            yield ["why-not", given, value.name, "--dim", "0", "--axis", axis, "--verify"]
    for value in values[-1:]:
        yield ["why", given, value.name, "--full", "--verify", "--json"]
        yield ["why", given, value.name, "--mermaid"]
        yield ["why", given, value.name, "--no-keep-shardings"]
    yield ["conflicts", given, "--full"]
    yield ["report", given, "-o", str(tmp / "report.html")]
    yield ["expect", given, str(tmp / "expected.toml"), "--update"]
    yield ["expect", given, str(tmp / "expected.toml"), "--json", "--fail-on", "replicated-above=1"]
    yield ["diff", given, str(tmp / "out.mlir"), "--as-is"]
    for annotation in run.annotations()[:1]:
        yield ["what-if", given, "--drop", annotation.value]


PLAIN = (
    ["run", "MODULE", "-o", "TMP/out.mlir", "--stats"],
    [
        "run",
        "MODULE",
        "--stages",
        "--fail-on",
        "replicated-above=1",
        "--fail-on",
        "reshard-above=1",
        "--json",
    ],
    ["run", "MODULE", "-o", "TMP/kept.mlirbc", "--keep-rules", "--open"],
    ["run", "MODULE", "-o", "TMP/gspmd.mlir", "--notation", "gspmd"],
    [
        "run",
        "MODULE",
        "-o",
        "TMP/other.mlir",
        "--conservative",
        "--separate-groups",
        "--strict-shardy",
        "--strategy",
        "basic",
    ],
    ["run", "MODULE", "--save", "TMP/run.shardlog"],
    ["facts", "MODULE", "-o", "TMP/facts"],
    ["query", "MODULE", "value(v, t), sharded(v, d, k, x), location(o, w), result(o, i, v)"],
    ["ops", "MODULE"],
    ["partition", "MODULE", "-o", "TMP/partitioned.mlir", "--list"],
    ["cost", "MODULE"],
    ["cost", "MODULE", "--no-keep-shardings", "--json", "--topology", "h100"],
    ["exec", "MODULE", "-o", "TMP/results.npz"],
)
_LARGE = 50_000  # characters of a program that takes long to compile


@pytest.mark.parametrize("name", by_day(BY_DAY, TEXTS))
@pytest.mark.filterwarnings("ignore")
def test_no_command_ends_in_a_traceback(name: str, tmp_path: Path) -> None:
    write, options = TEXTS[name]
    text = write()
    path = tmp_path / "module.mlir"
    path.write_text(text)
    for command in PLAIN:
        words = [w.replace("MODULE", str(path)).replace("TMP", str(tmp_path)) for w in command]
        more = options if command[0] != "ops" else []
        if command[0] == "exec" and len(text) > _LARGE:
            continue
        status = main([*words, *more])
        assert status in (0, 1) or "gspmd" in words or "exec" in words, words
    saved = tmp_path / "run.shardlog"
    run = shardlog.run(path, mesh=options[-1] if options else None).record
    for given, more in ((path, options), (saved, [])):
        for words in questions(run, str(given), tmp_path):
            # A value may have the axis, or there be no mesh: then it is one message.
            refusable = words[0] in ("why-not", "what-if") or not run.meshes.meshes
            assert main([*words, *more]) in ((0, 1, 2) if refusable else (0, 1)), words


def test_commands_about_stages_take_a_run_of_completion_which_has_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, facts = tmp_path / "module.mlir", tmp_path / "facts"
    path.write_text(COMPLEX)
    assert main(["run", str(path), "--propagation", "completion", "--stats"]) == 0
    *_, total = capsys.readouterr().err.splitlines()
    assert total.split() == ["total", "0", "0", "0", "0.0000"]
    assert main(["facts", str(path), "--propagation", "completion", "-o", str(facts)]) == 0
    assert (facts / "module" / "sharded.facts").read_text()
    assert not (facts / "turn" / "flows.facts").read_text()


def test_the_place_of_an_op_is_its_innermost_frame() -> None:
    (unknown,) = shardlog.run(ODD).unknown_ops
    assert unknown.location == "lib.py:1"

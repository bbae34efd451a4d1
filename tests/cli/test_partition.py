"""``shardlog partition`` and ``exec``: what they write, print and refuse."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import cycle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from shardlog.cli import main
from shardlog.executing import execution, judging

MLP = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
    %up: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>} loc("up"),
    %down: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>} loc("down"))
    -> (tensor<8x16xf32>, tensor<8xi32>) {
  %0 = stablehlo.dot %x, %up : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32> loc("model.py":5:1)
  %1 = stablehlo.tanh %0 : tensor<8x64xf32>
  %2 = stablehlo.dot %1, %down : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32> loc("model.py":7:1)
  %3 = stablehlo.iota dim = 0 : tensor<8xi32>
  return %2, %3 : tensor<8x16xf32>, tensor<8xi32>
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MLP)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert main(list(arguments)) == status
    return capsys.readouterr().out


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(list(arguments)) == 2
    printed = capsys.readouterr()
    assert not printed.out
    return printed.err


@pytest.mark.parametrize("form", ["sdy-manual", "manual", "replica"])
def test_the_module_is_that_of_each_device(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "partition", "m.mlir", "--as", form)
    assert "stablehlo.dot %" in text
    assert "-> tensor<4x16xf32>" in text  # of 8 rows over "data"=2
    printed(capsys, "partition", "m.mlir", "--as", form, "-o", "out.mlir")
    assert Path("out.mlir").read_text() == text


def test_collectives_are_listed_most_bytes_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        printed(capsys, "partition", "m.mlir", "--list", "--annotate", "result#0=[{}, {}]")
        == """\
program: least bytes (--keep-shardings: as decided; --topology MACHINE: least time there)
number  collective  axes   bytes  times  op             slot       value  place
------  ----------  -----  -----  -----  -------------  ---------  -----  ----------
     0  all-reduce  model    384      1  stablehlo.dot  result     %2     model.py:7
     1  all-gather  data     256      1  func.return    operand 0  %2     m.mlir:11
2 collectives, 640 bytes sent by each device
"""
    )
    listed = json.loads(printed(capsys, "partition", "m.mlir", "--json"))
    assert listed["bytes"] == 384
    assert [collective["kind"] for collective in listed["collectives"]] == ["all-reduce"]


def test_exec_compares_with_one_device(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "exec", "m.mlir", "-o", "out.npz")
    program, first, *results, last = text.splitlines()
    assert program.startswith("program: least bytes (")
    assert first == "on 8 cpu devices, 1 collective, 384 bytes sent by each"
    assert results[0].startswith("  result#0 : tensor<8x16xf32> is ")
    assert results[1:] == ["  result#1 : tensor<8xi32> is equal"]
    assert last == "as on one device"
    with np.load("out.npz") as written:
        assert {name: array.shape for name, array in written.items()} == {
            "result#0": (8, 16),
            "result#1": (8,),
        }


def test_exec_takes_inputs_by_name_and_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(1)
    x, up, down = (rng.standard_normal(s).astype(np.float32) for s in ((8, 16), (16, 64), (64, 16)))
    np.savez("named.npz", down=down, x=x, up=up)
    np.savez("ordered.npz", x, up, down)
    for name in ("named", "ordered"):
        printed(capsys, "exec", "m.mlir", "--inputs", f"{name}.npz", "-o", "out.npz")
        with np.load("out.npz") as written:
            np.testing.assert_allclose(written["result#0"], np.tanh(x @ up) @ down, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("element", "value"),
    [
        ("i64", np.int64(2**40 + 1)),
        ("ui64", np.uint64(2**63 + 1)),
        ("f64", np.float64(1 / 3)),
        ("complex<f64>", np.complex128(1 / 3 + 1j / 7)),
    ],
)
def test_exec_keeps_64_bits(element: str, value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    module = """\
sdy.mesh @mesh = <["data"=4]>
func.func @main(%x: T {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>} loc("x"))
    -> (T {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  %0 = stablehlo.multiply %x, %x : T
  return %0 : T
}
"""
    Path("wide.mlir").write_text(module.replace("T", f"tensor<8x{element}>"))
    assert printed(capsys, "exec", "wide.mlir").endswith("as on one device\n")
    inputs = np.full(8, value)
    np.savez("in.npz", x=inputs)
    printed(capsys, "exec", "wide.mlir", "--inputs", "in.npz", "-o", "out.npz")
    with np.load("out.npz") as outputs:
        assert outputs["result#0"].dtype == inputs.dtype
        np.testing.assert_array_equal(outputs["result#0"], inputs * inputs)


@pytest.mark.parametrize("off", [1e-3, np.nan, np.inf])
def test_exec_finds_what_is_wrong(
    off: float, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = execution.run_partitioned

    def damaged(*arguments: Any) -> Any:
        one, other = run(*arguments)
        wrong = one.copy()
        wrong[3, 4] += off * np.abs(one).max()
        return [wrong, other + 1]

    monkeypatch.setattr(execution, "run_partitioned", damaged)
    text = printed(capsys, "exec", "m.mlir", status=1)
    assert text.count("WRONG") == 2
    assert text.endswith("2 of 2 results wrong\n")
    document = json.loads(printed(capsys, "exec", "m.mlir", "--json", status=1))
    assert [result["right"] for result in document["results"]] == [False, False]


CANCELLED = """\
sdy.mesh @mesh = <["data"=2]>
#columns = #sdy.sharding<@mesh, [{}, {"data"}]>
func.func @main(%x: tensor<64x128xf32> {sdy.sharding = #columns}) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.constant dense<1.0> : tensor<64xf32>
  %2 = stablehlo.multiply %x, %x : tensor<64x128xf32>
  %3 = stablehlo.reduce(%2 init: %0) applies stablehlo.add across dimensions = [1]
      : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<64xf32>) -> tensor<64x128xf32>
  %5 = stablehlo.divide %2, %4 : tensor<64x128xf32>
  %6 = stablehlo.reduce(%5 init: %0) applies stablehlo.add across dimensions = [1]
      : (tensor<64x128xf32>, tensor<f32>) -> tensor<64xf32>
  %7 = stablehlo.subtract %6, %1 : tensor<64xf32>
  return %3, %7 : tensor<64xf32>, tensor<64xf32>
}
"""


def test_what_sums_in_another_order_explain_whatever_it_is_cannot_be_judged(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is nothing but rounding may be twice as large: that it is right is not known."""
    run = execution.run_partitioned

    def doubled(*arguments: Any) -> Any:
        one, other = run(*arguments)
        return [one, 2 * other]

    Path("m.mlir").write_text(CANCELLED)
    monkeypatch.setattr(execution, "run_partitioned", doubled)
    text = printed(capsys, "exec", "m.mlir")
    assert "  result#1 : tensor<64xf32> cannot be judged: it is off by " in text
    assert text.endswith("none is known to be wrong, 1 of 2 results cannot be judged\n")
    document = json.loads(printed(capsys, "exec", "m.mlir", "--json"))
    assert [result["right"] for result in document["results"]] == [True, None]


# Cosines of large numbers: what rounding changes in these is as large as a turn.
TURNED = """\
sdy.mesh @mesh = <["x"=8]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
func.func @main(%x: tensor<64x256xf32> {sdy.sharding = #columns}, %w: tensor<256x64xf32>)
    -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x256xf32>, tensor<256x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<64x64xf32>
  %2 = stablehlo.multiply %1, %1 : tensor<64x64xf32>
  %3 = stablehlo.cosine %2 : tensor<64x64xf32>
  return %3 : tensor<64x64xf32>
}
"""


@pytest.mark.parametrize("more", [0.0, 0.05])
def test_what_cannot_be_judged_is_with_smaller_inputs(
    more: float, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run = execution.run_partitioned
    Path("m.mlir").write_text(TURNED)
    monkeypatch.setattr(execution, "run_partitioned", lambda *given: [array + more for array in run(*given)])
    text = printed(capsys, "exec", "m.mlir", status=int(more > 0))
    assert text.endswith("1 of 1 results wrong\n" if more else "as on one device\n")
    assert "with inputs divided by 4" in text
    (entry,) = json.loads(printed(capsys, "exec", "m.mlir", "--json", status=int(more > 0)))["results"]
    assert (entry["right"], entry["inputs_divided_by"]) == (not more, 4)


def test_inputs_that_are_given_are_not_divided(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text(TURNED)
    rng = np.random.default_rng(0)
    np.savez("in.npz", *(rng.normal(size=shape).astype(np.float32) for shape in ((64, 256), (256, 64))))
    text = printed(capsys, "exec", "m.mlir", "--inputs", "in.npz")
    assert text.endswith("none is known to be wrong, 1 of 1 results cannot be judged\n")


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        (np.nan, -np.inf, "none is known to be wrong, 1 of 2 results cannot be judged"),
        (-np.inf, np.nan, "none is known to be wrong, 1 of 2 results cannot be judged"),
        (np.inf, -np.inf, "1 of 2 results wrong"),
        (1.0, np.nan, "1 of 2 results wrong"),
        (1.0, np.inf, "1 of 2 results wrong"),
        (np.nan, np.nan, "as on one device"),
        (-np.inf, -np.inf, "as on one device"),
    ],
)
def test_kinds_of_what_is_not_finite(
    one: float,
    other: float,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """XLA for CPUs passes over NaNs in maxima of long rows, and not in those of short ones: where one device
    has a NaN and the others an infinity, either may be right."""
    given = np.ones((8, 16), np.float32), np.ones((16, 64), np.float32), np.ones((64, 16), np.float32)

    def results(value: float) -> list[Any]:
        found = np.ones((8, 16), np.float32)
        found[3, 4] = value
        return [found, np.arange(8, dtype=np.int32)]

    monkeypatch.setattr(execution, "run_partitioned", lambda *_: results(one))
    monkeypatch.setattr(execution, "alone_on", lambda *_: lambda _: results(other))
    monkeypatch.setattr(judging, "wide_on", lambda *_: None)
    np.savez("in.npz", *given)
    text = printed(capsys, "exec", "m.mlir", "--inputs", "in.npz", status=int("wrong" in said[:20]))
    assert text.splitlines()[-1] == said


@pytest.mark.parametrize(
    ("largest", "nudged", "judged"),
    [(1.0, 1.0, True), (1e36, 1.0, False), (1.0, np.nan, False)],  # others overflow, or do if inputs change
)
@pytest.mark.parametrize(("one", "other"), [(1.0, np.nan), (np.inf, 1.0), (np.inf, -np.inf)])
def test_where_rounding_decides_what_is_finite_results_cannot_be_judged(
    one: float,
    other: float,
    largest: float,
    nudged: float,
    judged: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def results(value: float, elsewhere: float) -> list[Any]:
        array = np.full((8, 16), largest, np.float32)
        array[3, 4], array[0, 0] = value, elsewhere
        return [array, np.arange(8, dtype=np.int32)]

    alone = cycle([results(other, 1.0), results(other, nudged)])
    monkeypatch.setattr(execution, "run_partitioned", lambda *_: results(one, 1.0))
    monkeypatch.setattr(execution, "alone_on", lambda *_: lambda _: next(alone))
    monkeypatch.setattr(judging, "wide_on", lambda *_: None)
    text = printed(capsys, "exec", "m.mlir", status=int(judged))
    open_ = "none is known to be wrong, 1 of 2 results cannot be judged"
    assert text.splitlines()[-1] == ("1 of 2 results wrong" if judged else open_)
    if not judged:
        assert "rounding decides whether there is an overflow in 1 element" in text


def run_on(data: int) -> subprocess.CompletedProcess[str]:
    """Runs the program on a mesh with so many devices along "data", in a process of its own: here JAX has
    started with eight."""
    Path("m.mlir").write_text(MLP.replace('"data"=2', f'"data"={data}'))
    command = [sys.executable, "-m", "shardlog", "exec", "m.mlir"]
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment | {"JAX_PLATFORMS": "cpu"}, check=False
    )


def test_exec_makes_the_devices_it_needs() -> None:
    done = run_on(3)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\non 12 cpu devices" in done.stdout


def test_exec_refuses_more_cpu_devices_than_can_be_run_on() -> None:
    """XLA would wait for threads, and end the process with pages of what they wait for."""
    done = run_on(100)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "m.mlir: error: the mesh has 400 devices, but at most 256 CPU devices can run"
    )
    assert "hint: give it a smaller mesh, as with --mesh data=2,model=4" in done.stderr


CHOLESKY = """\
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> tensor<i32> {
  %0 = stablehlo.constant dense<[[4.0, 2.0], [2.0, 5.0]]> : tensor<2x2xf32>
  %1 = stablehlo.add %x, %0 : tensor<2x2xf32>
  %2:2 = stablehlo.custom_call @lapack_spotrf_ffi(%1) {
      backend_config = "", mhlo.backend_config = {uplo = 76 : ui8},
      operand_layouts = [dense<[0, 1]> : tensor<2xindex>],
      result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]
    } : (tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<i32>)
  return %2#1 : tensor<i32>
}
"""


def test_exec_calls_lapack_in_a_process_that_traced_nothing() -> None:
    Path("cholesky.mlir").write_text(CHOLESKY)
    command = [sys.executable, "-m", "shardlog", "exec", "cholesky.mlir"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "as on one device" in done.stdout, done.stderr


def test_a_program_that_fails_while_it_runs(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.mlir").write_text(CHOLESKY.replace("uplo = 76 : ui8", ""))
    error = refused(capsys, "exec", "wrong.mlir")
    assert "wrong.mlir: error: the program fails while it runs: INVALID_ARGUMENT" in error


def test_types_that_numpy_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text("""\
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}, %b: tensor<4xi1>,
                %c: tensor<4xf8E4M3FN>, %d: tensor<4xcomplex<f32>>, %e: tensor<4xui8>, %f: tensor<4xi4>)
    -> (tensor<4xbf16>, tensor<4xi1>, tensor<4xf8E4M3FN>, tensor<4xcomplex<f32>>,
        tensor<4xui8>, tensor<4xi4>) {
  return %a, %b, %c, %d, %e, %f
      : tensor<4xbf16>, tensor<4xi1>, tensor<4xf8E4M3FN>, tensor<4xcomplex<f32>>, tensor<4xui8>, tensor<4xi4>
}
""")
    printed(capsys, "exec", "m.mlir", "--random", "3", "-o", "out.npz")
    with np.load("out.npz") as written:
        kinds = [str(array.dtype) for array in written.values()]
        assert kinds == ["float32", "bool", "float32", "complex64", "uint8", "int8"]
        np.savez("again.npz", *written.values())
        bfloat = written["result#0"]
    assert (bfloat == bfloat.astype(ml_dtypes.bfloat16)).all()
    printed(capsys, "exec", "m.mlir", "--inputs", "again.npz", "-o", "again_out.npz")
    with np.load("again_out.npz") as written:
        assert (written["result#0"] == bfloat).all()


def test_bad_input_is_told_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert "3 devices for a mesh of 8" in refused(capsys, "exec", "m.mlir", "--devices", "3")
    assert "cannot read: No such file" in refused(capsys, "exec", "m.mlir", "--inputs", "absent.npz")
    assert "cannot read: No such file" in refused(capsys, "exec", "m.mlir", "--inputs", "")
    assert "not a file of arrays" in refused(capsys, "exec", "m.mlir", "--inputs", "m.mlir")
    x, up, down = (np.zeros(shape, np.float32) for shape in ((8, 16), (16, 64), (64, 16)))
    for arrays, message in (
        ({"x": x, "up": up}, "no array for down : tensor<64x16xf32>"),
        ({"x": x, "up": up, "down": down, "z": x}, "no argument is called z"),
        ({"x": x.T, "up": up, "down": down}, "x is float32[16, 8]"),
        ({"x": x.astype(int), "up": up, "down": down}, "expected float32[8, 16]"),
    ):
        np.savez("bad.npz", **arrays)
        error = refused(capsys, "exec", "m.mlir", "--inputs", "bad.npz", "-o", "out.npz")
        assert message in error
        assert error.startswith("bad.npz: error: ")
        assert not Path("out.npz").exists()
    Path("m.mlir").write_text(MLP.replace("stablehlo.tanh %0 :", "stablehlo.tanh %1 :"))
    refused(capsys, "partition", "m.mlir", "-o", "out.mlir")
    assert not Path("out.mlir").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("exec", "--random", "-1"), "'-1' is not a seed: expected a whole number"),
        (("partition", "--memory", "٣GiB"), "'٣GiB' is not a size"),
        (("partition", "--memory", "0.0001B"), "'0.0001B' is less than a byte"),
        (("partition", "--memory", "0"), "'0' is less than a byte"),
        (("partition", "--memory", "9" * 400), "size: expected one such as 16GiB"),  # a line that is cut
        (("partition", "-o", ""), "-o: error: the file name is empty"),
        (("exec", "-o", ""), "-o: error: the file name is empty"),
        (("run", "--save", ""), "--save: error: the file name is empty"),
        (("partition", "--topology", "v5e:2x2", "-o", "out.mlir"), "a torus of 4 devices is too small"),
        (("compile", "--target", "cpu", "--topology", "v5e:2x2", "-o", "out.hlo"), "a torus of 4 devices"),
        (("what-if", "--topology", "v5f", "--pin", "%0=[{}, {}]"), "there is no topology v5f"),
        (("what-if",), "there is nothing to change\n  hint: give --annotate, --drop or --pin"),
        (
            ("why", "%0", "--pin", "%0=[{}, {}]"),
            "--pin applies only to a program\n  hint: add --collective N or",
        ),
        (("why", "%0", "--topology", "v5e"), "--topology applies only to a program"),
        (("run", "--topology", "v5e"), "--topology applies only to the program that lints check"),
        (("why", "--collective", "0", "--dim", "0"), "--dim applies only to a value\n  hint: add VALUE"),
        (("why", "--collective", "0", "--verify"), "--verify applies only to a value"),
    ],
)
def test_options_that_say_nothing_are_refused(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *rest = arguments
    assert said in refused(capsys, command, "m.mlir", *rest)
    assert {path.name for path in Path().iterdir()} == {"m.mlir"}


def test_collectives_of_a_program_within_bounds_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    wide = "0" if "all-reduce" in printed(capsys, "partition", "m.mlir", "--list") else ""
    said = printed(capsys, "why", "m.mlir", "--collective", wide, "--memory", "1MiB", "--seconds", "60")
    assert said.splitlines()[1].startswith("all-reduce 0 over")
    assert "no program was found" in refused(capsys, "why", "m.mlir", "--collective", "0", "--memory", "9B")


def test_collectives_of_saved_runs_are_explained(capsys: pytest.CaptureFixture[str]) -> None:
    printed(capsys, "run", "m.mlir", "--save", "m.shardlog")
    asked = "--collective", "0", "--topology", "v5e"
    assert printed(capsys, "why", "m.shardlog", *asked) == printed(capsys, "why", "m.mlir", *asked)


def test_a_bound_without_a_machine_is_not_that_of_the_machine_of_costs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Tensors take whole tiles on the machine of costs, where none is named, and none in the bound."""
    assert main(["cost", "m.mlir", "--memory", "20KiB"]) == 0
    printed = capsys.readouterr()
    assert " of 16 GiB memory at most" in printed.out
    assert printed.err.startswith(
        "shardlog: warning: the bound of 20 KiB is on tensors without tiles; on TPU"
    )
    assert printed.err.endswith("--topology v5e bounds that\n")
    assert main(["cost", "m.mlir", "--memory", "1GiB"]) == 0
    assert not capsys.readouterr().err


def test_what_is_on_a_mesh_of_fewer_devices_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    half = 'sdy.mesh @half = <["q"=4]>\n'
    Path("m.mlir").write_text(half + MLP.replace('@mesh, [{"model"}, {}]', '@half, [{"q"}, {}]'))
    assert "%arg2: tensor<64x16xf32>" in printed(capsys, "partition", "m.mlir", "--as", "manual")
    assert printed(capsys, "exec", "m.mlir").endswith("as on one device\n")

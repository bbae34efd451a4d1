"""Lints: large copies, tensors that move, ops without a rule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import shardlog
from jsonschema import validate
from shardlog.checks.findings import Finding
from shardlog.checks.lint import Lint, findings
from shardlog.cli import main
from shardlog.cli.schemas import schema
from shardlog.errors import ShardlogError
from shardlog.runs.choice import ProgramChoice

MODULE = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("batch['x']"),
                %w: tensor<16x32xf32> loc("params['w']"),
                %v: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}
                    loc("params['v']")) -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> loc("model.py":7:9)
  %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0]
     : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32> loc("model.py":9:10)
  %2 = "my.op"(%1) : (tensor<8x16xf32>) -> tensor<8x16xf32> loc("model.py":10:10)
  return %2 : tensor<8x16xf32>
}
"""


def found(lint: str, *, keep_shardings: bool = False) -> list[Finding]:
    choice = ProgramChoice(keep_shardings=keep_shardings)
    return findings(shardlog.run(MODULE), [Lint.parse(lint)], choice)


def test_copies() -> None:
    copies = found("replicated-above=1KiB")
    # A fourth of a tensor on two devices, of 16 x 32 floats, is what an even share of it is.
    assert [(f.what, f.where, f.bytes) for f in copies] == [
        ("%arg1 : tensor<16x32xf32>", "params['w']", 2048 - 256)
    ]
    assert copies[0].sentence == (
        '1.75 KiB of the 2 KiB per device are copies: it is not sharded on "data", "model"'
    )
    assert copies[0].because == (
        'dim 1 on "data": the axis is on no tensor that it could come from',
        'dim 1 on "model": the axis is on no tensor that it could come from',
    )
    assert found("replicated-above=1.75KiB") == []


def test_moves() -> None:
    (move,) = found("reshard-above=300", keep_shardings=True)
    assert (move.what, move.where, move.bytes) == ("%0 : tensor<8x32xf32>", "model.py:9", 512)
    assert move.sentence == (
        "512 bytes per device, all-gather: [{data}, {}] -> [{}, {}] for stablehlo.dot_general, operand 0"
    )
    assert move.because == ("by the annotations of %arg0 at batch['x'] and %arg2 at params['v']",)
    assert found("reshard-above=0.5KiB", keep_shardings=True) == []
    assert found("reshard-above=300") == []  # the program that runs moves less
    (*_, unknown) = found("reshard-above=200")  # the op that no rule knows is computed whole
    assert (unknown.what, unknown.bytes) == ("%1 : tensor<8x16xf32>", 8 * 16 * 4 // 2)


def test_a_saved_run(tmp_path: Path) -> None:
    result, file = shardlog.run(MODULE), tmp_path / "run.shardlog"
    result.save(file)
    lints = [Lint.parse(text) for text in ("replicated-above=64", "reshard-above=64", "unknown-op")]
    assert findings(shardlog.open(file), lints) == findings(result, lints)


def test_unknown_ops() -> None:
    (op,) = found("unknown-op")
    assert (op.what, op.where, op.sentence) == ("my.op", "model.py:10:10", "no rule for it, once")


@pytest.mark.parametrize(
    ("text", "size"), [("64MiB", 64 << 20), ("1.5 KiB", 1536), ("2GiB", 2 << 30), ("7", 7), ("7B", 7)]
)
def test_sizes(text: str, size: int) -> None:
    assert Lint.parse(f"reshard-above={text}") == Lint("reshard-above", size)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("reshard", "there is no lint 'reshard'\n  hint: did you mean reshard-above?"),
        ("reshard-above", "no size\n  hint: expected a size in bytes, KiB, MiB, GiB or TiB"),
        ("replicated-above=64MB", "'64MB' is not a size"),
        ("replicated-above=-1", "'-1' is not a size"),
        ("unknown-op=3", "this lint takes no size"),
    ],
)
def test_bad_lints(text: str, message: str) -> None:
    with pytest.raises(ShardlogError) as error:
        Lint.parse(text)
    assert str(error.value).startswith(f"--fail-on {text}: error: {message}")


def test_a_size_that_no_number_holds() -> None:
    with pytest.raises(ShardlogError, match=f"'{'9' * 40}' is not a size"):
        Lint.parse(f"replicated-above={'9' * 400}TiB")


def test_the_output_is_written_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module, output = tmp_path / "mlp.mlir", tmp_path / "out.mlir"
    module.write_text(MODULE)
    run = ["run", str(module), "-o", str(output), "--fail-on"]
    assert main([*run, "reshard-above=1KiB"]) == 0
    kept = ["--keep-shardings", "--fail-on", "unknown-op"]
    assert main([*run, "reshard-above=300", *kept]) == 1
    assert "stablehlo.dot_general" in output.read_text()
    shown = capsys.readouterr().out
    assert [line.split()[0] for line in shown.splitlines() if not line.startswith(" ")] == [
        "program:",
        "reshard-above:",
        "unknown-op:",
    ]
    assert main([*run, "unknown-op", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [finding["lint"] for finding in document["findings"]] == ["unknown-op"]
    validate(document, schema("run"))


def test_why_there_is_no_rule(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = tmp_path / "mlp.mlir"
    module.write_text(
        MODULE.replace('"my.op"(%1)', '"stablehlo.unary_einsum"(%1) {einsum_config = "ab->ab"}')
    )
    assert main(["run", str(module), "-o", str(tmp_path / "out.mlir"), "--fail-on", "unknown-op"]) == 1
    captured = capsys.readouterr()
    assert "no sharding passes through it (to be written as reduce and transpose)" in captured.err
    assert "      to be written as reduce and transpose" in captured.out

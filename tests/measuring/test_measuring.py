"""Measuring a GPU: programs are drawn, compiled and run; numbers are fitted to their times."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from shardlog.cost.machine import OPS
from shardlog.measuring import __main__ as commands
from shardlog.measuring.data import Measurement, read_programs, read_rows, write
from shardlog.measuring.fit import Fit, host, programs
from shardlog.measuring.measure import Device
from shardlog.measuring.programs import draw

from ..cost.test_kernels import DATA
from ..support.machines import MACHINE


def status(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit status of a command."""
    monkeypatch.setattr("sys.argv", ["measuring", *arguments])
    return commands.main()


def test_drawn_programs_compile_and_run(tmp_path: Path) -> None:
    file = tmp_path / "programs.json.gz"
    draw(1, file)
    rows = read_programs(file)
    assert len({row["kind"] for row in rows}) >= 20
    device = Device("cpu")  # kernels are read from the profile of a GPU only
    for row in [row for row in rows if row["kind"] in ("dot", "rows", "reduce")][:3]:
        compiled = device.compiled(row)
        assert not isinstance(compiled, str), compiled
        program, shapes = compiled
        assert len(program.execute_sharded(device.arguments(shapes)).disassemble_into_single_device_arrays())


def test_numbers_that_are_wrong_are_found_again() -> None:
    rows = [row for row in read_rows([str(DATA)]) if row.kind == "data"]
    fit = Fit(programs(rows, "h100"), "h100")
    before = fit.error(fit.numbers, fit.every)
    fit.numbers["memory_bandwidth"] /= 4
    fit.numbers["cache_bandwidth"] /= 4
    wrong = fit.error(fit.numbers, fit.every)
    fit.fit(["memory_bandwidth", "cache_bandwidth"])
    assert fit.error(fit.numbers, fit.every) < before + 0.1 < wrong


def test_the_host_is_that_of_programs_of_many_kernels_and_of_one() -> None:
    rows = [Measurement("loop", "", "", 100.0, 1000.0, 200), Measurement("dot", "", "", 2.0, 50.0, 1)]
    assert host(rows, {}) == {"host": pytest.approx(5e-6), "call": pytest.approx(45e-6)}
    assert host([], {"host": 1.0, "call": 2.0}) == {"host": 1.0, "call": 2.0}


def test_a_gpu_that_is_not_there_is_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "programs.json.gz", tmp_path / "out.json.gz"
    write(file, [])
    monkeypatch.setattr("jax.devices", Device("cpu").client.devices)
    assert status(monkeypatch, "run", str(file), str(out)) == 2
    assert "measuring needs a GPU" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"text", "the file has no gzipped JSON"),
        (gzip.compress(b"text"), "the file has no gzipped JSON"),
        (gzip.compress(json.dumps({"rows": [{"text": ""}]}).encode()), "the file has no measured programs"),
        (gzip.compress(b"[]"), "the file has no measured programs"),
        (None, "cannot read: No such file or directory"),
    ],
    ids=["text", "no JSON", "no times", "no rows", "missing"],
)
def test_files_that_nothing_measured_are_refused(
    content: bytes | None,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "data.json.gz"
    if content is not None:
        file.write_bytes(content)
    assert status(monkeypatch, "compare", str(file)) == 2
    assert f"{file}: error: {said}" in capsys.readouterr().err


def test_a_number_that_the_machine_does_not_have_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(monkeypatch, "fit", str(DATA), "--keep", "hots") == 2
    assert "did you mean host?" in capsys.readouterr().err
    own = tmp_path / "own.toml"
    own.write_text(MACHINE.format(flops=1, bandwidth=1))
    assert status(monkeypatch, "fit", str(DATA), "--topology", str(own)) == 2
    assert "has no table [kernels] or [ops]" in capsys.readouterr().err


def test_a_cpu_is_measured_and_fitted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "programs.json.gz", tmp_path / "measured.json.gz"
    assert status(monkeypatch, "draw", "1", str(file), "--platform", "cpu") == 0
    write(file, [row for row in read_programs(file) if row["kind"] in ("reduce", "rows")][:3])
    assert status(monkeypatch, "run", str(file), str(out), "--platform", "cpu") == 0
    rows = read_rows([str(out)])
    assert len(rows) == 3
    assert all(row.busy > 0 for row in rows)
    assert status(monkeypatch, "fit", str(out), "--topology", "cpu", "--keep", *list(OPS)[1:]) == 0
    assert "[ops]\nleast = " in capsys.readouterr().out


def test_only_tpus_have_estimates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "programs.json.gz"
    write(file, [])
    assert status(monkeypatch, "estimate", str(file), str(tmp_path / "out"), "--target", "cpu") == 2
    assert "only XLA for TPUs has estimates" in capsys.readouterr().err

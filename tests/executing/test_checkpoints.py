"""Arguments from checkpoints of orbax, which the tests' extra does not bring: it is large."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from shardlog import ShardlogError
from shardlog.cli import main
from shardlog.executing.checkpoints import read_checkpoint
from shardlog.executing.values import BoundaryValue

from ..support.programs import array

STATE = {"params": {"w": np.ones((16, 4), np.float32), "layers": [np.float32(2), np.float32(3)]}, "step": 7}


def values(*names: str) -> list[BoundaryValue]:
    return [BoundaryValue(name, "tensor<f32>", "f32", ()) for name in names]


def saved(tree: Any, directory: Path) -> Path:
    checkpoints = pytest.importorskip("orbax.checkpoint", reason="orbax is not installed: shardlog[orbax]")
    with checkpoints.StandardCheckpointer() as writer:
        writer.save(directory.absolute(), tree)
    return directory


def test_leaves_are_arguments_by_their_paths(tmp_path: Path) -> None:
    """By the whole path, or without the name of the argument; each leaf once."""
    directory = saved(STATE, tmp_path / "state")
    names = "params['layers'][1]", "state.params['w']", "other.params['w']", "step", "x"
    arrays = read_checkpoint(directory, values(*names))
    assert list(arrays) == ["params['layers'][1]", "step", "state.params['w']"]
    assert (arrays["params['layers'][1]"], arrays["step"], arrays["state.params['w']"].shape) == (
        3,
        7,
        (16, 4),
    )


def test_what_is_not_in_a_checkpoint_is_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved(STATE["params"], Path("checkpoint"))

    def f(params: Any, x: Any) -> Any:
        return {"y": x @ params["w"], "w": params["w"]}

    for name, columns in (("f", 4), ("other", 8)):
        kinds = {"w": array((16, columns), None, "model")}, array((8, 16), "data")
        Path(f"{name}.mlir").write_text(str(jax.jit(f).lower(*kinds).as_text(debug_info=True)))
    assert main(["exec", "f.mlir", "--inputs", "checkpoint", "-o", "out.npz"]) == 0
    assert "at random, as the checkpoint lacks them: x\n" in capsys.readouterr().out
    with np.load("out.npz") as found:
        np.testing.assert_array_equal(found["result['w']"], np.ones((16, 4)))
    assert main(["exec", "other.mlir", "--inputs", "checkpoint"]) == 2
    said = "params['w'] is float32[16, 4]\n  hint: expected float32[16, 8], for tensor<16x8xf32>"
    assert said in capsys.readouterr().err


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    directory = saved(STATE, tmp_path / "checkpoints" / "100" / "default")
    for where, expected in (
        (tmp_path / "checkpoints", f"there is one in {directory}"),
        (directory, "params/w"),
    ):
        with pytest.raises(ShardlogError) as error:
            read_checkpoint(where, values("nothing"))
        assert expected in str(error.value)
    (directory / "_METADATA").write_text("{")
    with pytest.raises(ShardlogError, match="orbax cannot read it: "):
        read_checkpoint(directory, values("nothing"))


def test_without_orbax(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "orbax.checkpoint", None)
    with pytest.raises(ShardlogError, match=r"orbax is not installed[^$]*pip install 'shardlog\[orbax\]'"):
        read_checkpoint(tmp_path, values("x"))

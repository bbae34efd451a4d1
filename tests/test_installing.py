"""shardlog's wheel beside the newest JAX of each Python: JAX stays as it is, and README says what happens."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .test_docs import ROOT, run_page
from .versions import install, interpreters

pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built once, from a copy: what setuptools leaves behind would get into the next one."""
    folder = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            copy = folder / "source" / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((ROOT / name).read_bytes())
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    environment = os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")}
    done = subprocess.run(
        [*command, str(folder / "source")], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no wheel could be built: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    (built,) = folder.glob("*.whl")
    return built


@pytest.mark.parametrize("version", interpreters())
def test_jax_stays_and_the_tour_runs(
    version: str, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)  # the wheel is meant, not this folder
    folder = tmp_path / "environment"
    if missing := install(interpreters()[version], folder, "jax"):
        pytest.skip(f"JAX cannot be installed: {missing}")
    python = folder / "bin" / "python"

    def said(*command: str) -> str:
        return subprocess.run(
            [python, *command], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    versions = "import jax, jaxlib; print(jax.__version__, jaxlib.__version__)"
    before = said("-c", versions)
    said("-m", "pip", "install", "--quiet", f"{wheel}[jax]")
    assert said("-c", versions) == before
    assert "No broken requirements" in said("-m", "pip", "check")
    assert said("-c", "import shardlog.engine._core; print(shardlog.__file__)").startswith(str(folder))
    assert run_page(ROOT / "README.md", tmp_path, python)

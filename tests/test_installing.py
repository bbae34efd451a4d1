"""The wheels: shardlog's beside the newest JAX of each Python, where JAX stays as it is, and README says what
happens; shardlog-datalog's alone, where the page on Datalog says it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest
import shardlog

from .test_docs import ROOT, run_page
from .versions import install, interpreters

pytestmark = pytest.mark.install


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository: what setuptools leaves behind would get into the next wheel."""
    folder = tmp_path_factory.mktemp("source")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            copy = folder / name
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes((ROOT / name).read_bytes())
    return folder


@pytest.fixture(scope="module")
def wheel(source: Path) -> Path:
    """The wheel of shardlog, built once."""
    return built(source)


@pytest.fixture(scope="module")
def datalog_wheel(source: Path) -> Path:
    """The wheel of shardlog-datalog, built once."""
    return built(source / "standalone")


def built(project: Path) -> Path:
    folder = project / "wheel"
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    environment = {"CARGO_TARGET_DIR": str(ROOT / "target")} | os.environ
    done = subprocess.run(
        [*command, str(project)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no wheel could be built: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    (found,) = folder.glob("*.whl")
    return found


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


def test_datalog_alone_runs_its_page(
    datalog_wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    folder = tmp_path / "environment"
    if missing := install(sys.executable, folder, str(datalog_wheel)):
        pytest.skip(f"NumPy cannot be installed: {missing}")
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
    python = folder / "bin" / "python"
    asked = "import shardlog_datalog as d, shardlog_datalog.engine._core as core; print(d.__version__, core)"
    said = subprocess.run([python, "-c", asked], cwd=tmp_path, capture_output=True, text=True, check=True)
    version, _, core = said.stdout.partition(" ")
    assert version == shardlog.__version__
    assert str(folder) in core
    assert subprocess.run([python, "-c", "import jaxlib"], capture_output=True, check=False).returncode
    page = tmp_path / "datalog.md"
    text = (ROOT / "docs" / "datalog.md").read_text().replace("$ shardlog datalog", "$ shardlog-datalog")
    page.write_text(text.replace("shardlog.datalog", "shardlog_datalog"))
    assert run_page(page, tmp_path, python)


def test_the_wheels_share_no_file(wheel: Path, datalog_wheel: Path) -> None:
    one, other = (set(ZipFile(file).namelist()) for file in (wheel, datalog_wheel))
    assert one.isdisjoint(other)
    assert {name.split("/")[0].partition("-")[0] for name in other} == {"shardlog_datalog"}

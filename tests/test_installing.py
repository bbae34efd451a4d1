"""The wheels: shardlog's beside the newest JAX of each Python, where JAX stays as it is, and README and the
tour say what happens; shardlog-datalog's alone, as its page says; what is built of an sdist; the hooks.

With ``SHARDLOG_WHEELS`` the wheels in that folder are tried; without, they are built.
"""

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
DOT = """func.func @main(%a: tensor<8x4xf32>, %b: tensor<4x2xf32>) -> tensor<8x2xf32> {
  %0 = stablehlo.dot %a, %b : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return %0 : tensor<8x2xf32>
}
"""


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
    if given := os.environ.get("SHARDLOG_WHEELS"):
        kind = "shardlog_datalog" if project.name == "standalone" else "shardlog"
        (wheel,) = Path(given).resolve().glob(f"{kind}-*.whl")
        return wheel
    folder = project / "wheel"
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder)]
    environment = {"CARGO_TARGET_DIR": str(ROOT / "target")} | os.environ
    done = subprocess.run(
        [*command, str(project)], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no wheel could be built: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    (wheel,) = folder.glob("*.whl")
    return wheel


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
    said("-m", "pip", "install", "--quiet", f"{wheel}[jax,report]")
    assert said("-c", versions) == before
    assert "No broken requirements" in said("-m", "pip", "check")
    assert said("-c", "import shardlog.engine._core; print(shardlog.__file__)").startswith(str(folder))
    for page in ("README.md", "docs/tour.md"):
        assert run_page(ROOT / page, tmp_path, python)


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


def test_everything_installs_together(wheel: Path, tmp_path: Path) -> None:
    folder = tmp_path / "environment"
    if missing := install(sys.executable, folder, f"{wheel}[all]", "pytest"):
        pytest.skip(f"the extras cannot be installed: {missing}")
    python = folder / "bin" / "python"
    checked = subprocess.run([python, "-m", "pip", "check"], capture_output=True, text=True, check=False)
    assert "No broken requirements" in checked.stdout
    # The plugin is found by its entry point.
    command = [str(python), "-m", "pytest", "--markers"]
    asked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "@pytest.mark.shardlog(" in asked.stdout


def test_wheels_are_built_from_an_sdist(source: Path, tmp_path: Path) -> None:
    environment = {"CARGO_TARGET_DIR": str(ROOT / "target")} | os.environ
    folder = tmp_path / "environment"
    if missing := install(sys.executable, folder, "build>=1.2,<2"):
        pytest.skip(f"build cannot be installed: {missing}")
    command = [str(folder / "bin" / "python"), "-m", "build", "--outdir", str(tmp_path / "dist")]
    subprocess.run([*command, str(source)], env=environment, capture_output=True, check=True)
    (wheel,) = (tmp_path / "dist").glob(f"shardlog-{shardlog.__version__}-cp311-abi3-*.whl")
    (sdist,) = (tmp_path / "dist").glob("shardlog-*.tar.gz")
    assert sdist.name == f"shardlog-{shardlog.__version__}.tar.gz"
    names = ZipFile(wheel).namelist()
    for needed in (
        "rules/ops/main.dl",
        "cost/machines/v5e.toml",
        "engine/_core.abi3.so",
        "engine/_core.pyi",
        "py.typed",
    ):
        assert f"shardlog/{needed}" in names


def test_hooks_of_pre_commit(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "environment"
    if missing := install(sys.executable, folder, "pre-commit>=4,<5"):
        pytest.skip(f"pre-commit cannot be installed: {missing}")
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CARGO_TARGET_DIR", str(ROOT / "target"))
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "a.dl").write_text(".decl a(x:number)\na(1).\n")
    (repository / "b.rules").write_text("stablehlo.dot: i j, j k -> i k\n")
    (repository / "m.mlir").write_text(DOT)

    def ran(*command: str | Path, cwd: Path = repository) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)

    for where in (source, repository):
        for command in ("init -q", "add -A", "-c user.name=a -c user.email=a@b commit -qm x"):
            assert ran("git", *command.split(), cwd=where).returncode == 0
    hooks = f"- repo: {source}\n  rev: {ran('git', 'rev-parse', 'HEAD', cwd=source).stdout}"
    checks = "- {id: shardlog-rules-check, args: [--examples, m.mlir], files: rules$}"
    config = f"repos:\n{hooks}  hooks:\n  - id: shardlog-fmt\n  {checks}\n"
    (repository / ".pre-commit-config.yaml").write_text(config)
    done = ran(folder / "bin" / "pre-commit", "run", "--all-files")
    assert (repository / "a.dl").read_text() == ".decl a(x: number)\na(1).\n", done.stdout
    assert "stablehlo.dot: factor 1 (size 4" in done.stdout
    assert done.returncode == 1


def test_the_wheels_share_no_file(wheel: Path, datalog_wheel: Path) -> None:
    one, other = (set(ZipFile(file).namelist()) for file in (wheel, datalog_wheel))
    assert one.isdisjoint(other)
    assert {name.split("/")[0].partition("-")[0] for name in other} == {"shardlog_datalog"}

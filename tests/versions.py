"""The tests that depend on the line of JAX, with each Python and line that this machine can make an
environment of: ``python -m shardlog.tests.versions [--newest]``.

Environments are made in ``.venvs`` and kept. The tests are those with the marker ``versions``, whose files
need no more than JAX, pytest and hypothesis; before them come those with the marker ``install``. With
``--newest`` they are the newest line with the newest Python alone, and nothing where this process has that
line already, or where nothing can be installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from time import monotonic

from shardlog.program.shardy import LINES, installed

ROOT = Path(__file__).parents[1]
_FOLDER = ROOT / ".venvs"
_PYTHONS = ("3.11", "3.12", "3.13", "3.14")  # those that some JAX has wheels for
_TOOLS = ("pytest", "pytest-xdist", "hypothesis")
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


@dataclass(frozen=True)
class Outcome:
    """What the tests of a pair gave: counts by outcome, and what pytest wrote; or why there are none."""

    python: str
    line: str
    counts: Mapping[str, int]
    text: str = ""
    seconds: float = 0.0
    missing: str = ""

    @property
    def failed(self) -> int:
        return sum(self.counts.get(name, 0) for name in ("failed", "error", "errors"))

    def row(self) -> str:
        """A row of the table."""
        passed, skipped = (self.counts.get(name, 0) for name in ("passed", "skipped"))
        cells = f"{passed:6}  {self.failed:6}  {skipped:7}  {self.seconds:7.0f}"
        return f"{self.python:6}  {self.line:5}  {self.missing or cells}"


def interpreters() -> dict[str, str]:
    """The Pythons here that can make environments, by their version: on the PATH, or of pyenv."""
    return {version: path for version in _PYTHONS for path in [*_candidates(version)][:1]}


def _candidates(version: str) -> Iterator[str]:
    of_pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    known = shutil.which(f"python{version}"), *sorted(of_pyenv.glob(f"{version}.*/bin/python{version}"))
    for path in filter(None, map(str, filter(None, known))):
        asked = "import ensurepip, sys; print('%d.%d' % sys.version_info[:2])"
        done = subprocess.run([path, "-c", asked], capture_output=True, text=True, check=False)
        if done.stdout.strip() == version:
            yield path


def install(python: str, folder: Path, *packages: str) -> str:
    """Makes an environment with packages, unless it is there; returns why it cannot be made, or nothing."""
    said, kept = "\n".join(packages), folder / "packages"
    if kept.exists() and kept.read_text() == said:
        return ""
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    for command in ([python, "-m", "venv", "--clear", str(folder)], [*pip, *packages]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return (done.stderr.strip() or done.stdout.strip()).splitlines()[-1]
    kept.write_text(said)
    return ""


def of_jax(line: str) -> tuple[str, str]:
    """What pip is asked for to get a line of JAX."""
    return f"jax=={line}.*", f"jaxlib=={line}.*"


def tested(python: str, path: str, line: str) -> Outcome:
    """Runs the tests with a Python and a line of JAX."""
    start, folder = monotonic(), _FOLDER / f"{python}-{line}"
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["test"]
    tools = [each for each in listed if re.split("[<>=]", each)[0] in _TOOLS]
    if missing := install(path, folder, *of_jax(line), *tools):
        return Outcome(python, line, {}, missing=missing)
    files = [str(file) for file in sorted((ROOT / "tests").rglob("test_*.py")) if _is_marked(file)]
    with TemporaryDirectory() as root, TemporaryFile("w+") as said:
        Path(root, "shardlog").symlink_to(ROOT)  # gives the repository the name of the package
        command = [str(folder / "bin" / "python"), "-m", "pytest", "-q", "-n", "auto", "--maxprocesses", "4"]
        command += ["--dist", "worksteal", "-p", "no:cacheprovider", "-m", "versions and not nightly"]
        done = subprocess.run(
            [*command, *files],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": root},
            stdout=said,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said.seek(0)
        text = said.read()
    counts = {name: int(count) for count, name in _COUNTS.findall(text.rstrip().rpartition("\n")[2])}
    if done.returncode and not counts:
        counts = {"errors": 1}
    return Outcome(python, line, counts, text, monotonic() - start)


def _is_marked(file: Path) -> bool:
    return "mark.versions" in file.read_text(encoding="utf-8")


def main() -> int:
    """Prints what failed, and a table; 1 where something did."""
    pythons = interpreters()
    if "--newest" in sys.argv:
        python, line = max(pythons, key=_PYTHONS.index), LINES[-1]
        if line == installed():
            return 0
        found = tested(python, pythons[python], line)
        if found.missing or python < "3.12":
            print(f"left out: what JAX {line} does otherwise: {found.missing or 'it needs Python 3.12'}")
            return 0
        outcomes = [found]
    else:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            "install",
            str(ROOT / "tests/test_installing.py"),
        ]
        installs = subprocess.run(command, cwd=ROOT, check=False).returncode
        outcomes = [tested(each, path, line) for each, path in pythons.items() for line in LINES]
        if installs or all(outcome.missing for outcome in outcomes):
            outcomes.append(Outcome("all", "each", {"failed": 1}))
    for outcome in outcomes:
        if outcome.failed:
            print(f"Python {outcome.python}, JAX {outcome.line}:\n{outcome.text}")
    print("Python  JAX    passed  failed  skipped  seconds")
    print("\n".join(outcome.row() for outcome in outcomes))
    return int(any(outcome.failed for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())

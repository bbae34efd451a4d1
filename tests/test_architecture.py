"""The layers of the package: what stands further up may use what stands below, never the other way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"

_ALONE = ("__init__.py", "__main__.py", "setup.py")  # in no layer

# Doors: methods that hand over to a function further up, imported when they are called.
DOORS = {"runs/questions.py"}


def layers() -> list[str]:
    """The layers of the architecture page's first figure, from the top."""
    figure = re.search(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert figure is not None
    return [line.split()[0].removesuffix("/").removesuffix(".py") for line in figure[1].splitlines() if line]


def modules() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        if relative.parts[0] not in {"tests", "build", "examples", ".venv", *_ALONE}:
            yield relative


def used(path: Path) -> Iterator[str]:
    """The layers that a module imports from, wherever in the module it does."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            up = len(path.parts) - node.level
            parts = [*path.parts[:up], *(node.module or "").split(".")]
            names = [parts[0]] if parts[0] else [alias.name for alias in node.names]
            yield from (name for name in names if name not in {"__version__"})


def layer(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def test_every_room_is_in_the_figure() -> None:
    assert {layer(path) for path in modules()} == set(layers())


@pytest.mark.parametrize("path", [p for p in modules() if str(p) not in DOORS], ids=str)
def test_arrows_go_down(path: Path) -> None:
    order = layers()
    up = {name for name in used(path) if order.index(name) < order.index(layer(path))}
    assert not up, f"{path} uses {', '.join(sorted(up))}, which stand above it"


@pytest.mark.parametrize("folder", sorted({p.parent for p in modules() if len(p.parts) > 1}), ids=str)
def test_rooms_say_what_they_are_for(folder: Path) -> None:
    text = (ROOT / folder / "__init__.py").read_text()
    assert ast.get_docstring(ast.parse(text)), f"{folder}/__init__.py has no docstring"


def test_all_packages_are_in_the_wheel() -> None:
    listed = re.search(r"(?s)^packages = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert listed is not None
    packages = {".".join(("shardlog", *p.parent.parts)) for p in modules()}
    assert set(re.findall(r'"(.*?)"', listed[1])) == packages | {"shardlog"}

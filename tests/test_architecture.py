"""The layers of the package: what stands further up may use what stands below, never the other way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"

_ALONE = ("__init__.py", "__main__.py", "setup.py")  # in no layer

# Doors: methods that hand over to a function further up, imported when they are called: the questions to a
# run, what a result does, and answers that show themselves.
DOORS = {"runs/questions.py"}
DOORS_IN_A_LAYER = {"runs/result.py", "explanations/explanation.py"}
_SHOWN = Path("explanations/questions")


def layers() -> list[str]:
    """The layers of the architecture page's first figure, from the top."""
    figure = re.search(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert figure is not None
    return [line.split()[0].removesuffix("/").removesuffix(".py") for line in figure[1].splitlines() if line]


def modules() -> Iterator[Path]:
    for path in sorted(ROOT.rglob("*.py")):
        relative = path.relative_to(ROOT)
        if relative.parts[0] not in {"tests", "build", "examples", "standalone", ".venv", ".venvs", *_ALONE}:
            yield relative


def imported_from(path: Path, node: ast.ImportFrom) -> Path:
    """The file without its ending, or the folder, that a relative import in a module is from."""
    return Path(*path.parts[: len(path.parts) - node.level], *(node.module or "").split("."))


def used(path: Path) -> Iterator[str]:
    """The layers that a module imports from, wherever in the module it does."""
    for node in ast.walk(ast.parse((ROOT / path).read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            parts = imported_from(path, node).parts
            names = [parts[0]] if parts else [alias.name for alias in node.names]
            yield from (name for name in names if name not in {"__version__"})


def files_used(path: Path) -> Iterator[Path]:
    """The files that a module imports when it runs: not those of which it needs types, nor, of doors, those
    that are imported when they are called."""
    doors = str(path) in DOORS | DOORS_IN_A_LAYER or path.parent == _SHOWN
    waiting: list[ast.AST] = [ast.parse((ROOT / path).read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.FunctionDef) and doors:
            continue
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = imported_from(path, node)
            for found in (
                folder.with_suffix(".py") if node.module else folder,
                *(folder / f"{a.name}.py" for a in node.names),
            ):
                if (ROOT / found).is_file():
                    yield found
        waiting.extend(ast.iter_child_nodes(node))


def of_datalog_alone() -> set[str]:
    """What standalone/setup.py makes a distribution of: layers."""
    script = ast.parse((ROOT / "standalone" / "setup.py").read_text())
    lists = {ast.unparse(node.targets[0]): node.value for node in script.body if isinstance(node, ast.Assign)}
    return {*ast.literal_eval(lists["FOLDERS"]), *ast.literal_eval(lists["MODULES"])}


def layer(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def test_every_room_is_in_the_figure() -> None:
    assert {layer(path) for path in modules()} == set(layers())


@pytest.mark.parametrize("path", [p for p in modules() if str(p) not in DOORS], ids=str)
def test_arrows_go_down(path: Path) -> None:
    order = layers()
    up = {name for name in used(path) if order.index(name) < order.index(layer(path))}
    assert not up, f"{path} uses {', '.join(sorted(up))}, which stand above it"


def test_datalog_alone_needs_nothing_else() -> None:
    held = of_datalog_alone()
    needed = {name for path in modules() if layer(path) in held for name in used(path)}
    assert {"engine", "datalog"} <= needed <= held


def test_no_files_use_each_other_in_a_circle() -> None:
    try:
        TopologicalSorter({path: set(files_used(path)) for path in modules()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(map(str, error.args[1])))


@pytest.mark.parametrize("folder", sorted({p.parent for p in modules() if len(p.parts) > 1}), ids=str)
def test_rooms_say_what_they_are_for(folder: Path) -> None:
    text = (ROOT / folder / "__init__.py").read_text()
    assert ast.get_docstring(ast.parse(text)), f"{folder}/__init__.py has no docstring"


def test_all_packages_are_in_the_wheel() -> None:
    listed = re.search(r"(?s)^packages = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert listed is not None
    packages = {".".join(("shardlog", *p.parent.parts)) for p in modules()}
    assert set(re.findall(r'"(.*?)"', listed[1])) == packages | {"shardlog"}

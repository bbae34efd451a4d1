"""The layers of the package: what stands further up may use what stands below, never the other way.

All imports count: at the top of a module, for types, inside of functions, and by ``importlib``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"

_ALONE = ("__init__.py", "__main__.py", "setup.py")  # in no layer
_NO_PARTS = {"tests", "build", "docs", "examples", "standalone", *_ALONE}


def layers() -> list[str]:
    """The layers of the architecture page's first figure, from the top."""
    figure = re.search(r"```text\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert figure is not None
    return [line.split()[0].removesuffix("/").removesuffix(".py") for line in figure[1].splitlines() if line]


@cache
def modules() -> tuple[Path, ...]:
    tops = [top for top in sorted(ROOT.iterdir()) if top.name not in _NO_PARTS and top.name[0] != "."]
    files = [path for top in tops for path in ([top] if top.suffix == ".py" else sorted(top.rglob("*.py")))]
    return tuple(path.relative_to(ROOT) for path in files)


@cache
def imports(path: Path, text: str) -> tuple[tuple[Path, list[str]], ...]:
    """What a module imports from the package, wherever in the module it does.

    Files without their endings, or folders, and the names from each.
    """
    return tuple(_imports(path, text))


def _imports(path: Path, text: str) -> Iterator[tuple[Path, list[str]]]:
    for node in ast.walk(ast.parse(text)):
        found = list[tuple[str, list[str]]]()
        if isinstance(node, ast.ImportFrom):
            found = [("." * node.level + (node.module or ""), [alias.name for alias in node.names])]
        elif isinstance(node, ast.Import):
            found = [(alias.name, []) for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")):
            assert isinstance(node.args[0], ast.Constant), (
                f"{path}:{node.lineno}: nobody knows what it imports"
            )
            found = [(str(node.args[0].value), [])]
        for name, names in found:
            level = len(name) - len(name.lstrip("."))
            parts = [part for part in name[level:].split(".") if part]
            if level:
                yield Path(*path.parts[: len(path.parts) - level], *parts), names
            elif parts[0] == "shardlog":
                yield Path(*parts[1:]), names


def used(path: Path) -> Iterator[str]:
    """The layers that a module imports from."""
    for folder, names in imports(path, (ROOT / path).read_text()):
        yield from folder.parts[:1] or names


def files_used(path: Path) -> Iterator[Path]:
    """The files that a module imports."""
    for folder, names in imports(path, (ROOT / path).read_text()):
        if (ROOT / folder.with_name(f"{folder.name}.py") if folder.name else ROOT).is_file():
            yield folder.with_name(f"{folder.name}.py")
            continue
        for name in names:
            file = folder / f"{name}.py"
            yield file if (ROOT / file).is_file() else folder / "__init__.py"


def knots(uses: Mapping[Path, set[Path]]) -> list[list[Path]]:
    """The strongly connected components of several files: each of these uses all others, by way of some."""
    index, low = dict[Path, int](), dict[Path, int]()
    stack, knots = list[Path](), list[list[Path]]()

    def visit(path: Path) -> None:  # Tarjan's algorithm
        index[path] = low[path] = len(index)
        stack.append(path)
        for other in sorted(uses.get(path, ())):
            if other not in index:
                visit(other)
            if other in stack:
                low[path] = min(low[path], low[other])
        if low[path] == index[path]:
            component = stack[stack.index(path) :]
            del stack[-len(component) :]
            if len(component) > 1 or path in uses.get(path, ()):
                knots.append(sorted(component))

    for path in uses:
        if path not in index:
            visit(path)
    return knots


def of_datalog_alone() -> set[str]:
    """What standalone/setup.py makes a distribution of: layers."""
    script = ast.parse((ROOT / "standalone" / "setup.py").read_text())
    lists = {ast.unparse(node.targets[0]): node.value for node in script.body if isinstance(node, ast.Assign)}
    return {*ast.literal_eval(lists["FOLDERS"]), *ast.literal_eval(lists["MODULES"])}


def layer(path: Path) -> str:
    return path.parts[0].removesuffix(".py")


def parameters(tree: ast.Module) -> Iterator[ast.arg]:
    """The parameters of all functions of a module, without self and cls."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            given = node.args
            every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
            yield from (each for each in every if each is not None and each.arg not in ("self", "cls"))


def untyped(texts: Iterable[str]) -> float:
    """The percentage of parameters whose types are, or have in them, ``Any``."""
    types = [each.annotation for text in texts for each in parameters(ast.parse(text))]
    names = [{node.id for node in ast.walk(type_) if isinstance(node, ast.Name)} for type_ in types if type_]
    return 100 * sum("Any" in each for each in names) / max(len(types), 1)


def test_every_room_is_in_the_figure() -> None:
    assert {layer(path) for path in modules()} == set(layers())


@pytest.mark.parametrize("path", list(modules()), ids=str)
def test_arrows_go_down(path: Path) -> None:
    order = layers()
    up = {name for name in used(path) if order.index(name) < order.index(layer(path))}
    assert not up, f"{path} uses {', '.join(sorted(up))}, which stand above it"


def test_datalog_alone_needs_nothing_else() -> None:
    held = of_datalog_alone()
    needed = {name for path in modules() if layer(path) in held for name in used(path)}
    assert {"engine", "datalog"} <= needed <= held


def test_no_files_use_each_other_in_a_circle() -> None:
    files = [*modules(), *(Path(name) for name in _ALONE)]
    circles = knots({path: set(files_used(path)) for path in files})
    assert not circles, "\n".join(f"{len(knot)} files: {', '.join(map(str, knot))}" for knot in circles)


# The most percent of a room's parameters that may be Any: 10, where nothing else is listed. Internals of JAX,
# and the builders of MLIR's bindings, have no types that mypy knows.
MOST_UNTYPED = {
    "datalog": 14,
    "executing": 20,
    "exporters": 12,
    "importers": 11,
}


@pytest.mark.parametrize("room", sorted({path.parts[0] for path in modules() if len(path.parts) > 1}))
def test_parameters_have_types(room: str) -> None:
    texts = [(ROOT / path).read_text() for path in modules() if path.parts[0] == room]
    assert untyped(texts) <= MOST_UNTYPED.get(room, 10)


def test_parameters_without_types_are_counted() -> None:
    assert untyped(["def f(a: Any, *b: int, c: dict[str, Any], **d: str): ..."]) == 50


@pytest.mark.parametrize(
    "text",
    [
        "from ..b import x",
        "from .. import b",
        "from shardlog.b import x",
        "import shardlog.b",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from ..b import x",
        "def f():\n    from ..b import x",
        "import importlib\nimportlib.import_module('..b', __package__)",
    ],
)
def test_all_imports_count(text: str) -> None:
    ((folder, names),) = imports(Path("a/a.py"), text)
    assert (folder / names[0] if folder == Path() else folder) == Path("b")


def test_knots_are_whole() -> None:
    a, b, c, d = map(Path, "abcd")
    assert knots({a: {b}, b: {c}, c: {a, d}, d: set()}) == [[a, b, c]]
    assert knots({a: {b}, b: {c}, c: set()}) == []


@pytest.mark.parametrize("folder", sorted({p.parent for p in modules() if len(p.parts) > 1}), ids=str)
def test_rooms_say_what_they_are_for(folder: Path) -> None:
    text = (ROOT / folder / "__init__.py").read_text()
    assert ast.get_docstring(ast.parse(text)), f"{folder}/__init__.py has no docstring"


def test_all_packages_are_in_the_wheel() -> None:
    listed = re.search(r"(?s)^packages = \[(.*?)\]", (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert listed is not None
    packages = {".".join(("shardlog", *p.parent.parts)) for p in modules()}
    assert set(re.findall(r'"(.*?)"', listed[1])) == packages | {"shardlog"}

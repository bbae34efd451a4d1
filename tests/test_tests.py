"""The tests of the tests: each can fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent
FILES = sorted(path for path in ROOT.rglob("*.py") if not path.is_relative_to(ROOT / "bench"))

_OF_PYTEST = {"raises", "warns", "fail"}
_HELPERS = ("check_", "assert_")


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def asserts(function: ast.AST) -> bool:
    """Whether a function asserts something, or calls a helper whose name says that it does."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in _OF_PYTEST or name.startswith(_HELPERS):
                return True
    return False


@pytest.mark.parametrize("kind", ["test_", *_HELPERS])
def test_every_test_and_helper_asserts_something(kind: str) -> None:
    idle = [
        f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        for path in FILES
        for function in functions(path)
        if function.name.startswith(kind) and not asserts(function)
    ]
    assert idle == []


def test_what_asserts_nothing_is_found() -> None:
    for body, found in (
        ("run()", False),
        ("check_it()", True),
        ("assert run()", True),
        ("np.assert_x()", True),
    ):
        assert asserts(ast.parse(f"def test_it():\n    {body}")) == found, body

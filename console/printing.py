"""Documents and warnings, as commands print them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from .colours import show

if TYPE_CHECKING:
    from ..engine import Diagnostic


def print_json(document: object, file: TextIO | None = None) -> None:
    """Prints a document; the default of ``file`` is standard output."""
    import json

    print(json.dumps(document, indent=2), file=file)


def warn(message: str) -> None:
    """Prints a warning."""
    show(f"shardlog: warning: {message}", sys.stderr)


def show_warnings(warnings: Iterable[Diagnostic]) -> None:
    """Prints warnings about a program in Datalog."""
    for warning in warnings:
        show(warning, sys.stderr)


@contextmanager
def warnings_shown() -> Iterator[None]:
    """Prints the warnings about a program that has errors, too: they may point at a misspelt name."""
    from ..engine import DatalogError

    try:
        yield
    except DatalogError as error:
        show_warnings(error.warnings)
        raise

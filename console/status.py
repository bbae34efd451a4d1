"""The end of a command: its exit status, and one message for an error."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable
from io import TextIOWrapper

from ..errors import ShardlogError
from .colours import show
from .printing import warn

_PLACED = re.compile(r"(\S+:\d+): ")


def status_of(
    carry_out: Callable[[], int | None],
    name: str,
    instead: Callable[[Exception], Exception | None] = lambda error: None,
) -> int:
    """Carries out a command that is called ``name``, and returns its exit status: its own, 0 for None, 2
    after bad input, of which one message is printed. Warnings of Python are printed as the command's.

    ``instead`` gives the error to tell of in the place of one that was raised, if there is a better one.
    """
    for stream in ("stdin", "stdout", "stderr"):
        if getattr(sys, stream) is None:  # it was closed: as good as the null device
            setattr(sys, stream, os.fdopen(os.open(os.devnull, os.O_RDWR), "r+"))
    for writer in (sys.stdout, sys.stderr):
        if isinstance(writer, TextIOWrapper):
            writer.reconfigure(errors="backslashreplace")  # names need not be in the terminal's alphabet
    try:
        status = _carried_out(carry_out)
        sys.stdout.flush()
    except OSError as error:  # of standard output: others are told where they happen
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or what is left is written at exit
        if isinstance(error, BrokenPipeError):
            return 141  # as a process that SIGPIPE ends
        show(f"<stdout>: error: cannot write: {error.strerror}", sys.stderr)
        return 2
    except Exception as error:
        if isinstance(error, MemoryError):
            error = ShardlogError("there is not enough memory", where=name)
        error = instead(error) or error
        if not is_bad_input(error):
            raise
        show(_with_place(error), sys.stderr)
        return 2
    return status


def _carried_out(carry_out: Callable[[], int | None]) -> int:
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        try:
            return carry_out() or 0
        except SystemExit as end:  # of --help, --version and --schema, or bad arguments
            assert isinstance(end.code, int)
            return end.code


def is_bad_input(error: Exception) -> bool:
    """Whether an error is about the user's input, and says so."""
    from ..engine import DatalogError, EngineError

    return isinstance(error, ShardlogError | DatalogError | EngineError)


def _with_place(error: Exception) -> Exception:
    """An error in the form of all that users see, with its place or "shardlog" in front: the engine's have
    at most a place."""
    from ..engine import EngineError

    if not isinstance(error, EngineError):
        return error
    placed = _PLACED.match(str(error))
    where = placed[1] if placed else ""
    return ShardlogError(str(error).removeprefix(f"{where}: "), where=where)

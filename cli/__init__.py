"""The command line. Each module here has a group of commands: its ``add`` describes their arguments and says
which function carries each of them out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from . import checks, explain, programs, rules
from .running import common_arguments


def parser() -> argparse.ArgumentParser:
    """The arguments of the command line; ``carry_out`` of what is parsed is the function of its command."""
    from .. import __version__

    top = argparse.ArgumentParser(
        prog="shardlog",
        description="Decides how every tensor of a StableHLO program is sharded, by Datalog rules.",
    )
    top.add_argument("--version", action="version", version=f"shardlog {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = common_arguments()
    for group in (programs, explain, checks, rules):
        group.add(commands, common)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status (1: a check found something, 2: bad input)."""
    import warnings

    from .running import warn

    options = parser().parse_args(arguments)
    for stream in ("stdin", "stdout", "stderr"):
        if getattr(sys, stream) is None:  # it was closed: as good as the null device
            setattr(sys, stream, os.fdopen(os.open(os.devnull, os.O_RDWR), "r+"))
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: warn(str(message))
            status: int | None = options.carry_out(options)
            sys.stdout.flush()
    except KeyboardInterrupt:
        print("shardlog: interrupted", file=sys.stderr)
        return 130  # as a process that SIGINT ends
    except OSError as error:  # of standard output: others are told where they happen
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or what is left is written at exit
        if isinstance(error, BrokenPipeError):
            return 141  # as a process that SIGPIPE ends
        print(f"<stdout>: error: cannot write: {error.strerror}", file=sys.stderr)
        return 2
    except Exception as error:
        if not _bad_input(error):
            raise
        print(error, file=sys.stderr)
        return 2
    return status or 0


def _bad_input(error: Exception) -> bool:
    """Whether an error is about what the user gave, and says so."""
    from ..engine import DatalogError, EngineError
    from ..errors import ShardlogError

    return isinstance(error, ShardlogError | DatalogError | EngineError)

"""The command line. Each module here has a group of commands: its ``add`` describes their arguments and says
which function carries each of them out."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import ShardlogError, closest, nearest
from ..program.shardy import unusable
from . import authoring, checks, compiling, costing, datalog, explain, partitioning, programs, rules
from .colours import show
from .running import common_arguments

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


def parser() -> argparse.ArgumentParser:
    """The arguments of the command line; ``carry_out`` of what is parsed is the function of its command."""
    from .. import __version__

    _Formatter.width = shutil.get_terminal_size().columns - 2  # as argparse does
    top = _Parser(
        prog="shardlog",
        description="Decides by Datalog rules how every tensor of a StableHLO program is sharded.",
    )
    top.add_argument("--version", action="version", version=f"shardlog {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    common = common_arguments()
    for group in (programs, partitioning, costing, compiling, explain, checks, rules, authoring, datalog):
        group.add(commands, common)
    for command in commands.choices.values():
        command.set_defaults(parser=command)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; returns the exit status (1: a check found something, 2: bad input)."""
    for stream in ("stdin", "stdout", "stderr"):
        if getattr(sys, stream) is None:  # it was closed: as good as the null device
            setattr(sys, stream, os.fdopen(os.open(os.devnull, os.O_RDWR), "r+"))
    for writer in (sys.stdout, sys.stderr):
        if isinstance(writer, TextIOWrapper):
            writer.reconfigure(errors="backslashreplace")  # names need not be in the terminal's alphabet
    try:
        status = _carry_out(arguments)
        sys.stdout.flush()
    except OSError as error:  # of standard output: others are told where they happen
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or what is left is written at exit
        if isinstance(error, BrokenPipeError):
            return 141  # as a process that SIGPIPE ends
        show(f"<stdout>: error: cannot write: {error.strerror}", sys.stderr)
        return 2
    except Exception as error:
        if isinstance(error, MemoryError):
            error = ShardlogError("there is not enough memory", where=f"shardlog {' '.join(sys.argv[1:2])}")
        error = unusable(error) or error
        if not _bad_input(error):
            raise
        show(_with_place(error), sys.stderr)
        return 2
    return status


def _carry_out(arguments: Sequence[str] | None) -> int:
    import warnings

    from .running import warn

    top = parser()
    if "_ARGCOMPLETE" in os.environ:  # the shell asks what can come next
        with suppress(ImportError):
            from argcomplete import autocomplete

            autocomplete(top)
    try:
        options = _parsed(top, arguments)
    except SystemExit as end:  # of --help, --version and --schema, or with what is wrong with the arguments
        assert isinstance(end.code, int)
        return end.code
    _check_text(options)
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        try:
            status: int | None = options.carry_out(options)
        except OSError:
            raise
        except Exception as error:
            if not _bad_input(error):
                _check_saved(options)
            raise
    return status or 0


def _parsed(top: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The arguments as options. A value that may be left out may also stand behind options, which argparse
    does not see."""
    options, rest = top.parse_known_args(arguments)
    if len(rest) == 1 and getattr(options, "value", "") is None and not rest[0].startswith("-"):
        options.value = rest.pop()
    if rest:
        command: _Parser = options.parser
        near = nearest(rest[0].partition("=")[0], re.findall(r"--[\w-]+", command.format_usage()))
        command.error(f"unrecognized arguments: {' '.join(rest)}", f"did you mean {near}?" if near else "")
    return options


def _check_saved(options: argparse.Namespace) -> None:
    """Raises ShardlogError where a saved run is not as shardlog writes it, whatever went wrong with it."""
    from ..runs.records.saved import check_saved
    from ..runs.records.saved_file import is_saved

    for path in (Path(getattr(options, name, "")) for name in ("module", "other")):
        if is_saved(path):
            check_saved(path)


# Names of files are bytes; what else stands on a command line is text.
_FILES = {
    "module",
    "other",
    "output",
    "save",
    "rules",
    "op_priorities",
    "schedule",
    "file",
    "examples",
    "inputs",
    "program",
    "fact_dir",
    "output_dir",
    "include_from",
}


def _check_text(options: argparse.Namespace) -> None:
    from ..errors import check_text

    for name, given in vars(options).items():
        for text in given if isinstance(given, list) else [given]:
            if isinstance(text, str) and name not in _FILES:
                check_text(text, f"{name} {text}")


# What newcomers type, and what it is called here.
_MEANT = {
    "explain": "why, why-not and conflicts explain; report writes a page about a run",
    "lint": "run --fail-on LINT, or expect --fail-on LINT (docs/checks.md)",
    "test": "expect compares shardings with a file of expected ones",
    "shard": "run decides shardings, partition writes the program of each device",
    "propagate": "run propagates shardings",
    "annotate": "run --annotate VALUE=SHARDING",
    "convert": "run --notation gspmd writes GSPMD's shardings; -o OUT.mlirbc is bytecode",
    "visualize": "report writes a page; why --dot and --mermaid draw a derivation",
    "show": "report writes a page; why VALUE and why-not VALUE explain a value",
    "collectives": "partition --list lists collectives, conflicts the annotations that cause them",
    "memory": "cost says how much memory a device needs",
    "search": "query searches a run by the body of a rule",
    "save": "run --save FILE saves a run",
    "execute": "exec runs the partitioned program",
    "compare": "diff compares two runs, expect a run with a file",
    "format": "fmt formats rule files",
}
_CHOICES = re.compile(r"(.*: invalid choice: '(.*)') \(choose from (.*)\)")
_PLACED = re.compile(r"(\S+:\d+): ")


class _Formatter(argparse.HelpFormatter):
    """Is told how wide the terminal is: argparse makes one with every argument, and each would ask."""

    width = 0

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=self.width)


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=_Formatter)

    def error(self, message: str, hint: str = "") -> NoReturn:
        # argparse prints the usage too, which is longer than a page.
        if found := _CHOICES.fullmatch(message):
            names = [name.strip("' ") for name in found[3].split(",")]
            message, hint = found[1], closest(found[2], names)
            if "COMMAND" in message:
                hint = _MEANT.get(found[2].lower(), hint)
        hint = hint or f"see {self.prog} --help"
        show(ShardlogError(message, where=self.prog, hint=hint), sys.stderr)
        self.exit(2)

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        # argparse passes over errors of standard output: its end would be 0 on a full disk.
        if message:
            (file or sys.stderr).write(message)


def _with_place(error: Exception) -> Exception:
    """An error in the form of all that users see, with its place or "shardlog" in front: the engine's have
    at most a place."""
    from ..engine import EngineError

    if not isinstance(error, EngineError):
        return error
    found = _PLACED.match(str(error))
    where = found[1] if found else ""
    return ShardlogError(str(error).removeprefix(f"{where}: "), where=where)


def _bad_input(error: Exception) -> bool:
    """Whether an error is about what the user gave, and says so."""
    from ..engine import DatalogError, EngineError

    return isinstance(error, ShardlogError | DatalogError | EngineError)

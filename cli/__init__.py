"""The command line. Each module here has a group of commands: its ``add`` describes their arguments and says
which function carries each of them out."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..console.datalog import FILES
from ..console.parser import Parser, check_texts
from ..console.status import is_bad_input, status_of
from ..program.shardy import unusable

if TYPE_CHECKING:
    from ..console.parser import Commands


@cache
def parser(command: str = "") -> Parser:
    """The arguments of the command line; ``carry_out`` of the parsed arguments is the function of the
    command. If ``command`` is "datalog", other commands may be missing: they share nothing with it, and
    importing them takes longer than a small program. A process that calls ``main`` often makes it once."""
    from ..version import __version__

    top = Parser(
        prog="shardlog",
        description="Decides by Datalog rules how every tensor of a StableHLO program is sharded.",
    )
    top.meant = _MEANT
    top.add_argument("--version", action="version", version=f"shardlog {__version__}")
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    if command == "datalog":
        _add_datalog(commands)
    else:
        _add_all(commands)
    for described in commands.choices.values():
        described.set_defaults(parser=described)
    return top


def _add_datalog(commands: Commands) -> None:
    from . import datalog

    datalog.add(commands)


def _add_all(commands: Commands) -> None:
    from . import (
        authoring,
        automatic,
        checks,
        compiling,
        costing,
        dialects,
        explain,
        partitioning,
        programs,
        rules,
        sweeping,
    )
    from .running import common_arguments

    common = common_arguments()
    for group in (
        *(programs, partitioning, automatic, sweeping, dialects, costing, compiling),
        *(explain, checks, rules, authoring),
    ):
        group.add(commands, common)
    _add_datalog(commands)


def main(arguments: Sequence[str] | None = None, kept: list[Any] | None = None) -> int:
    """Runs the command line; returns the exit status (1: a check found something, 2: bad input).

    What the command made is ``kept`` there. A process that is about to end need not free a large run.
    """
    name, kept = f"shardlog {' '.join(sys.argv[1:2])}", [] if kept is None else kept
    return status_of(lambda: _carry_out(arguments, kept), name, unusable)


def _carry_out(arguments: Sequence[str] | None, kept: list[Any]) -> int | None:
    given = sys.argv[1:] if arguments is None else arguments
    completing = "_ARGCOMPLETE" in os.environ
    top = parser("datalog" if given[:1] == ["datalog"] and not completing else "")
    if completing:  # the shell asks what can come next
        with suppress(ImportError):
            from argcomplete import autocomplete

            autocomplete(top)
    options = _parsed(top, arguments)
    kept.append(options)
    check_texts(options, _FILES)
    try:
        status: int | None = options.carry_out(options)
    except OSError:
        raise
    except Exception as error:
        if not is_bad_input(error):
            _check_saved(options)
        raise
    return status


def _parsed(top: Parser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """The arguments as options. A value that may be left out may also stand behind options, which argparse
    does not see."""
    options, rest = top.parse_known_args(arguments)
    if len(rest) == 1 and getattr(options, "value", "") is None and not rest[0].startswith("-"):
        options.value = rest.pop()
    options.parser.refuse_rest(rest)
    return options


def _check_saved(options: argparse.Namespace) -> None:
    """Raises ShardlogError where a saved run is not as shardlog writes it, whatever went wrong with it."""
    from ..runs.records.saved import check_saved
    from ..runs.records.saved_file import is_saved

    for path in (Path(getattr(options, name, "")) for name in ("module", "other")):
        if is_saved(path):
            check_saved(path)


# Arguments that are names of files.
_FILES = {
    *FILES,
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
    "baseline",
}

# Words that newcomers type, and the commands that they mean.
_MEANT = {
    "explain": "why, why-not and conflicts explain; report writes a page about a run",
    "lint": "check --fail-on LINT (docs/checks.md)",
    "test": "check compares a program with expected shardings, a baseline and limits",
    "shard": "run decides shardings, partition writes the program of each device",
    "propagate": "run propagates shardings",
    "annotate": "run --annotate VALUE=SHARDING",
    "convert": "run --notation gspmd writes GSPMD's shardings; -o OUT.mlirbc is bytecode",
    "visualize": "report writes a page; why --dot and --mermaid draw a derivation",
    "show": "report writes a page; why VALUE and why-not VALUE explain a value",
    "collectives": "partition --list lists collectives, conflicts the annotations that cause them",
    "memory": "shardlog cost prints the memory that a device needs",
    "search": "query searches a run by the body of a rule",
    "save": "run --save FILE saves a run",
    "execute": "exec runs the partitioned program",
    "compare": "diff compares two runs, expect a run with a file",
    "format": "fmt formats rule files",
}

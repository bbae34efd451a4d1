"""The common parts of commands: the arguments of a run, the run they ask for, warnings, progress."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import Field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..console.colours import show
from ..console.parser import add_json as with_schema
from ..console.printing import warn
from ..program.mlir.origins import at
from ..runs.options import NAMES, ON_MODULES, Described, Options, flag_of

if TYPE_CHECKING:
    from ..console.schemas import Schema
    from ..session import Session

MODULE = "a StableHLO module (MLIR text or bytecode) or the folder of an XLA dump; - is standard input"
_STARTED = time.monotonic()
_QUIET_SECONDS = 1.0  # commands that take no longer show no progress


def common_arguments() -> argparse.ArgumentParser:
    """The arguments of every command that runs a module."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("module", metavar="MODULE", help=MODULE)
    add_options(common, *(name for name in NAMES if name not in ON_MODULES))
    about = "short for --view compiled"
    common.add_argument("--compiled", dest="view", action="store_const", const="compiled", help=about)
    return common


def add_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Adds options of a run, as ``runs/options.py`` describes them."""
    for option in fields(Options):
        if option.name in names:
            add_option(parser, option)


def add_option(parser: argparse._ActionsContainer, option: Field[Any]) -> None:
    """Adds an option to a parser or a group, as the metadata of its field describe it."""
    described: Described = option.metadata["described"]
    name, flag, default = option.name, flag_of(option), option.default
    about = described.about.replace("%", "%%")
    if described.negated:
        keep = argparse.BooleanOptionalAction
        about = f"{about}; default: {described.otherwise}"
        parser.add_argument(flag, dest=name, action=keep, default=default, help=about)
    elif isinstance(default, bool):
        about = described.otherwise if default else about
        parser.add_argument(flag, dest=name, action="store_false" if default else "store_true", help=about)
    elif described.repeated:
        about = f"{about}; may be repeated"
        parser.add_argument(
            flag, dest=name, metavar=described.metavar, action="append", default=[], help=about
        )
    else:
        otherwise = "%(default)s" if default else described.otherwise
        parser.add_argument(
            flag,
            dest=name,
            metavar=described.metavar,
            default=default,
            type=reads(described.read or str),
            choices=described.choices or None,
            help=f"{about}; default: {otherwise}" if otherwise else about,
        )


def reads(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """A reader whose message argparse shows unchanged."""

    def reader(text: str) -> Any:
        try:
            return read(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return reader


def whole_number(least: int, wrong: str) -> Callable[[str], int]:
    """Reads the number of an option, ``least`` or more. Of other texts the message says that they are
    ``wrong``."""

    def number(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and int(text) >= least):
            raise argparse.ArgumentTypeError(f"{text!r} {wrong}")
        return int(text)

    return number


def add_json(parser: argparse.ArgumentParser, about: str) -> None:
    """Adds ``--json``, and ``--schema``, which prints the schema of the command."""

    def of_command(name: str) -> Schema:
        from .schemas import schema

        return schema(name.rpartition(" ")[2])

    with_schema(parser, about, of_command)


def inputs(options: argparse.Namespace) -> list[str]:
    """The names of the files that a run reads."""
    module = "/dev/stdin" if options.module == "-" else options.module
    schedule = options.schedule if "\n" not in (options.schedule or "") else None
    others = (getattr(options, name, None) for name in ("other", "plan", "topology"))
    names = [module, *options.rules, options.op_priorities, schedule, *others]
    return [name for name in names if name]


def session_of(options: argparse.Namespace, *, names: bool = False) -> Session:
    """The run that ``options`` ask for; warns of ops without a rule. ``names``: see ``run_with``."""
    from ..runs.running import run_with
    from ..session import Session

    run_options = {name: value for name, value in vars(options).items() if name in NAMES}
    source = "-" if options.module == "-" else Path(options.module)
    with Progress() as progress:
        session = Session(run_with(source, Options(**run_options), progress, names=names))
    options.session = session  # it lives as long as these
    if (agreement := session.agreement()) is not None:
        show(f"shardlog: {agreement}", sys.stderr)
    for op in session.unknown_ops:
        times = "once" if op.count == 1 else f"{op.count:,} times"
        reason = f" ({op.reason})" if op.reason else ""
        first = f"first{at(op.location, op.stack)}"
        warn(f"no rule for {op.name} ({times}, {first}): no sharding passes through it{reason}")
    return session


def open_or_run(options: argparse.Namespace) -> Session:
    """The saved run, if one is given in place of a module; otherwise the run that the arguments ask for.

    Raises ShardlogError for options that would change a saved run.
    """
    from ..runs.records.saved_file import is_saved

    if not is_saved(Path(options.module)):
        return session_of(options, names=True)
    refuse_changes(options, options.module)
    options.session = session = opened(options.module)
    return session


def opened(path: str) -> Session:
    """A saved run. Raises ShardlogError for a file that is none."""
    from ..runs.records.saved import open_saved
    from ..session import Session

    return Session(saved=open_saved(path))


def refuse_changes(options: argparse.Namespace, saved: str) -> None:
    """Raises ShardlogError where ``options`` ask for a run that is not the saved one."""
    from ..engine import Limits

    default = {option.name: option.default for option in fields(Options)}
    Limits().changed(options.limits)  # an error in them is one
    default["limits"] = options.limits  # of queries too
    changed = [
        option
        for option in fields(Options)
        if (value := getattr(options, option.name, None)) is not None
        and (tuple(value) if isinstance(value, list) else value) != default[option.name]
    ]
    if changed:
        from ..errors import ShardlogError

        only = [option.name for option in changed] == ["annotate"]
        hint = "use what-if to try other annotations" if only else "run the module again"
        raise ShardlogError(f"{flag_of(changed[0])} cannot change a saved run", where=saved, hint=hint)


class Progress:
    """A bar on the terminal that says how far a run is; nothing where no terminal watches."""

    def __init__(self) -> None:
        watched = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"  # which cannot wipe a line
        self.quiet_until = _STARTED + _QUIET_SECONDS if watched else float("inf")
        self.shown = False

    def __enter__(self) -> Progress:
        return self

    def __call__(self, what: str, done: float) -> None:
        if time.monotonic() >= self.quiet_until:
            bar = "━" * round(40 * done)
            print(f"\r\x1b[K{bar:·<40} {what}", end="", file=sys.stderr, flush=True)
            self.shown = True

    def __exit__(self, *_: object) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

"""The parser of arguments: argparse's, with one line and a hint for each error."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import ShardlogError, check_text, closest, nearest
from .colours import show
from .printing import print_json

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from .schemas import Schema

    Commands = argparse._SubParsersAction[Any]  # where commands are added

_NUMBER = re.compile(r"invalid int value: ('.*')")
_CHOICES = re.compile(r"(.*: invalid choice: '(.*)') \(choose from (.*)\)")


_READ = ("module", "other", "plan", "changed", "sweep", "rules", "program")  # positional names of files


class _Formatter(argparse.HelpFormatter):
    """Takes the width of the terminal as given: argparse makes a formatter for every argument, and each
    would ask for it."""

    width = 0

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=self.width)


class Parser(argparse.ArgumentParser):
    """A parser of a command, or of several commands."""

    #: What newcomers type in the place of a command -> the hint.
    meant: Mapping[str, str] = {}

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=_Formatter)

    def format_help(self) -> str:
        """The help, as wide as the terminal is now."""
        _Formatter.width = shutil.get_terminal_size().columns - 2  # as argparse does
        return super().format_help()

    def error(self, message: str, hint: str = "") -> NoReturn:
        """Prints the error, and ends with status 2."""
        # argparse prints the usage too, which is longer than a page.
        if match := _CHOICES.fullmatch(message):
            names = [name.strip("' ") for name in match[3].split(",")]
            message, hint = match[1], closest(match[2], names)
            if "COMMAND" in message:
                hint = self.meant.get(match[2].lower(), hint)
        message = _NUMBER.sub(r"\1 is not a whole number", message)
        hint = hint or f"see {self.prog} --help"
        show(ShardlogError(message, where=self.prog, hint=hint), sys.stderr)
        self.exit(2)

    def refuse_rest(self, rest: Sequence[str]) -> None:
        """Ends with status 2 if arguments were not understood."""
        if rest:
            near = nearest(rest[0].partition("=")[0], re.findall(r"--[\w-]+", self.format_usage()))
            self.error(f"unrecognized arguments: {' '.join(rest)}", f"did you mean {near}?" if near else "")

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        # argparse passes over errors of standard output: its end would be 0 on a full disk.
        if message:
            (file or sys.stderr).write(message)


def add_json(parser: argparse.ArgumentParser, about: str, schema: Callable[[str], Schema]) -> None:
    """Adds ``--json``, and ``--schema``, which prints the ``schema`` of the command of a name, and ends as
    ``--help`` does."""
    parser.add_argument("--json", action="store_true", help=about)
    parser.add_argument("--schema", action=_Schema, const=schema, help="print the JSON schema of --json")


class _Schema(argparse.Action):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options, nargs=0)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        print_json(self.const(parser.prog))
        parser.exit()


def check_texts(options: argparse.Namespace, files: Collection[str]) -> None:
    """Raises ShardlogError where an argument is not UTF-8, or the name of a file to read is empty. Names of
    ``files`` are bytes; what else stands on a command line is text."""
    for name, given in vars(options).items():
        for text in given if isinstance(given, list) else [given]:
            if text == "" and name in _READ:
                hint = "is it a variable of the shell that is not set?"
                raise ShardlogError("the file name is empty", where=name, hint=hint)
            if isinstance(text, str) and name not in files:
                check_text(text, f"{name} {text}")

"""``shardlog expect``, and ``--fail-on`` of it and of ``run``: checks that end with exit status 1."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..console.colours import show
from ..console.printing import print_json
from .choosing import checked_choice, choice_arguments, choice_of, refuse_choice
from .running import add_json, open_or_run

if TYPE_CHECKING:
    from ..checks.findings import Finding
    from ..checks.lint import Lint
    from ..runs.choice import ProgramChoice
    from ..session import Session

_FAILED = 1
MEANT = "which one --fail-on checks; the default moves the fewest bytes"


def add(commands: Any, common: argparse.ArgumentParser) -> None:
    """Adds the command; ``common`` has the arguments that every run takes."""
    expect = commands.add_parser(
        "expect",
        parents=[common, choice_arguments(MEANT)],
        help="compare shardings with those in a file",
    )
    about = "a TOML file of expected shardings, by name or pattern (docs/checks.md)"
    expect.add_argument("file", metavar="SHARDINGS", help=about)
    expect.add_argument("--update", action="store_true", help="write the present shardings to the file")
    add_json(expect, "print differences and findings as JSON")
    add_fail_on(expect)
    expect.set_defaults(carry_out=_expect)


def add_fail_on(parser: argparse.ArgumentParser) -> None:
    """Adds ``--fail-on``."""
    about = "exit with status 1 if this lint finds something, as in replicated-above=64MiB (docs/checks.md)"
    parser.add_argument(
        "--fail-on", metavar="LINT", action="append", default=[], help=f"{about}; may be repeated"
    )


def lints(options: argparse.Namespace) -> list[Lint]:
    """The lints that ``--fail-on`` names. Raises ShardlogError for one that does not exist."""
    if not options.fail_on:
        refuse_choice(options, "the program that lints check", "--fail-on LINT")
        return []
    choice = checked_choice(options)
    from ..checks.lint import Lint

    wanted = [Lint.parse(text) for text in options.fail_on]
    for each in wanted:
        each.check(choice)
    return wanted


def lint(session: Session, wanted: list[Lint], choice: ProgramChoice) -> list[Finding]:
    """The findings of lints in a run, and in the program that is meant."""
    if not wanted:
        return []
    from ..checks.lint import findings

    return findings(session, wanted, choice)


def report(found: list[Any], file: TextIO, choice: ProgramChoice | None = None) -> int:
    """Prints what was found, in the program that is meant; returns the exit status."""
    if choice is not None and found:
        show(choice.line, file)
    for entry in found:
        show(entry, file)
    return _FAILED if found else 0


def _expect(options: argparse.Namespace) -> int:
    from ..checks.expect import check, update
    from ..checks.expectations import read_expectations

    wanted, path = lints(options), Path(options.file)
    if not options.update:
        read_expectations(path)  # errors in the file come before the work
    session = open_or_run(options)
    if options.update:
        verb = "written" if update(session, path) else "unchanged"
        print(f"{path}: {verb}", file=sys.stderr)
    differences = [] if options.update else check(session, path)
    choice = choice_of(options)
    found = lint(session, wanted, choice)
    if options.json:
        document: dict[str, Any] = {"program": str(choice)} if wanted else {}
        document["differences"] = [difference.as_json() for difference in differences]
        document["findings"] = [finding.as_json() for finding in found]
        print_json(document)
        return _FAILED if differences or found else 0
    return max(report(differences, sys.stdout), report(found, sys.stdout, choice))

"""``shardlog check`` and ``expect``, and ``--fail-on``: checks that end with exit status 1."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..checks.formats import FORMATS
from ..console.colours import show
from ..console.printing import print_json
from ..errors import ShardlogError, closest
from .choosing import checked_choice, choice_arguments, choice_of, refuse_choice
from .running import add_json, inputs, open_or_run, opened, session_of

if TYPE_CHECKING:
    from ..checks.findings import Finding
    from ..checks.lint import Lint
    from ..console.parser import Commands
    from ..runs.choice import ProgramChoice
    from ..session import Session

_FAILED = 1
MEANT = "which one --fail-on checks; the default moves the fewest bytes"


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
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

    about = "which one is checked; the default moves the fewest bytes"
    check = commands.add_parser(
        "check",
        parents=[common, choice_arguments(about)],
        help="check a program for CI: expected shardings, a baseline, limits",
    )
    about = "a TOML file of expected shardings, as shardlog expect --update writes it"
    check.add_argument("--expect", dest="file", metavar="SHARDINGS", help=about)
    about = "a saved run or a module to compare with; new collectives that send more are errors"
    check.add_argument("--baseline", metavar="RUN", help=about)
    add_fail_on(check)
    about = f"the format of the verdict ({', '.join(FORMATS)}), and a file to write it to; may be repeated"
    check.add_argument(
        "--format", dest="formats", metavar="FORMAT[=FILE]", action="append", default=[], help=about
    )
    add_json(check, "print the verdict as JSON")
    check.set_defaults(carry_out=_check)


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


def report(findings: list[Any], file: TextIO, choice: ProgramChoice | None = None) -> int:
    """Prints the findings about the chosen program. Returns the exit status."""
    if choice is not None and findings:
        show(choice.line, file)
    for entry in findings:
        show(entry, file)
    return _FAILED if findings else 0


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
    findings = lint(session, wanted, choice)
    if options.json:
        document: dict[str, Any] = {"program": str(choice)} if wanted else {}
        document["differences"] = [difference.as_json() for difference in differences]
        document["findings"] = [finding.as_json() for finding in findings]
        print_json(document)
        return _FAILED if differences or findings else 0
    return max(report(differences, sys.stdout), report(findings, sys.stdout, choice))


def _check(options: argparse.Namespace) -> int:
    """Returns 1 where the program has errors."""
    from ..checks.expectations import read_expectations
    from ..checks.formats.writers import WRITERS
    from ..checks.lint import Lint
    from ..checks.verdict import verdict
    from ..outputs import refuse_loss, write
    from ..runs.records.saved_file import is_saved

    if Path(options.module).suffix in (".dl", ".rules"):
        hint = "shardlog rules check checks rule files"
        raise ShardlogError("these are op rules, not a module", where=options.module, hint=hint)
    if not (options.file or options.baseline or options.fail_on):
        hint = "give --expect SHARDINGS, --baseline RUN or --fail-on LINT (docs/checks.md)"
        raise ShardlogError("there is nothing to check", where="check", hint=hint)
    formats = [_format(text) for text in options.formats]
    if options.json and (printed := [name for name, file in formats if not file]):
        hint = f"give the format a file, as in {printed[0]}=FILE, or leave out one of the two"
        raise ShardlogError("--json is printed there, too", where=f"--format {printed[0]}", hint=hint)
    files = [file for file in (options.file, options.baseline) if file]
    refuse_loss([(f"--format {name}", file or None) for name, file in formats], [*inputs(options), *files])
    wanted, choice = [Lint.parse(text) for text in options.fail_on], checked_choice(options)
    for each in wanted:
        each.check(choice)
    if options.file:
        read_expectations(Path(options.file))  # errors in the file come before the work
    session = open_or_run(options)
    baseline = None
    if options.baseline:
        if is_saved(Path(options.baseline)):
            baseline = opened(options.baseline)
        else:
            baseline = session_of(argparse.Namespace(**{**vars(options), "module": options.baseline}))
    checked = verdict(
        session,
        expected=Path(options.file) if options.file else None,
        baseline=baseline,
        lints=wanted,
        choice=choice,
    )
    if options.json:
        print_json(checked.as_json())
    elif not formats:
        formats = [("text", "")]
    for name, file in formats:
        text = WRITERS[name](checked)
        if file:
            write(file, text.encode())
        else:
            show(text.removesuffix("\n"), sys.stdout)
    return _FAILED if checked.errors else 0


def _format(text: str) -> tuple[str, str]:
    """A format and the file that is written in it, if one is given."""
    name, equals, file = text.partition("=")
    if name not in FORMATS:
        raise ShardlogError(
            f"there is no format {name!r}", where=f"--format {text}", hint=closest(name, FORMATS)
        )
    if equals and not file:
        raise ShardlogError("no file", where=f"--format {text}", hint=f"as in {name}=FILE")
    return name, file

"""``shardlog run``, ``facts`` and ``query``."""

from __future__ import annotations

import argparse
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ..console.colours import show
from ..console.printing import print_json, warn
from ..runs.options import ON_MODULES
from . import checks
from .choosing import choice_arguments, choice_of
from .running import Progress, add_json, add_options, inputs, open_or_run, session_of

if TYPE_CHECKING:
    from ..console.parser import Commands
    from ..session import Session


NOTATIONS = ("sdy", "gspmd", "shard", "mesh")


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Adds the commands; ``common`` has the arguments that every run takes."""
    run = commands.add_parser(
        "run",
        parents=[common, choice_arguments(checks.MEANT)],
        help="propagate shardings and write the annotated module",
    )
    run.add_argument(
        "-o",
        "--output",
        metavar="OUT",
        help="where to write the module; default: standard output; .mlirbc is bytecode",
    )
    about = "save the run for why, why-not, conflicts, diff and others; writes the module only with -o"
    run.add_argument("--save", metavar="FILE", help=about)
    notation = (
        "write shardings of sdy, mhlo.sharding of GSPMD, or annotations of MLIR's dialects shard and mesh; "
        "default: %(default)s"
    )
    about = (
        "write sharding constraints for all values, or only where XLA would decide differently; XLA ignores "
        "shardings on ops"
    )
    run.add_argument("--bind", choices=("none", "needed", "all"), default="none", help=about)
    run.add_argument("--notation", choices=NOTATIONS, default="sdy", help=notation)
    add_options(run, *ON_MODULES)
    run.add_argument(
        "--stats", action="store_true", help="print the turns, changes and seconds of every stage"
    )
    stages = "print what each tactic or user priority did; writes the module only with -o"
    run.add_argument("--stages", action="store_true", help=stages)
    add_json(run, "print statistics and ops without a rule as JSON")
    checks.add_fail_on(run)
    run.set_defaults(carry_out=_run)

    facts = commands.add_parser(
        "facts", parents=[common], help="write the facts of a module as files for Soufflé"
    )
    facts.add_argument("-o", "--output", metavar="DIR", required=True, help="the folder to write to")
    facts.set_defaults(carry_out=_facts)

    query = commands.add_parser("query", parents=[common], help="query a module and its shardings in Datalog")
    body = "the body of a rule, as in 'argument(v, i), sharded(v, d, k, x)'"
    query.add_argument("body", metavar="QUERY", help=body)
    add_json(query, "print rows as JSON instead of a table")
    query.set_defaults(carry_out=_query)


def _run(options: argparse.Namespace) -> int:
    from ..outputs import output, refuse_loss

    how: tuple[Any, ...] = (options.notation, options.bind)
    if options.notation in ("shard", "mesh"):  # otherwise the version is that of a program
        how = (*how, options.dialect_version)
        options.dialect_version = None
    lints = checks.lints(options)
    module = options.output or not (options.save or options.stages)
    refuse_loss([("-o", options.output), ("--save", options.save)], inputs(options))
    with output(options.output) if options.output else nullcontext() as file:
        session = session_of(options, names=bool(options.save))
        if module:
            with Progress() as progress:
                progress("printing", 0.9)
                bytecode = file is not None and options.output.endswith(".mlirbc")
                written = session.bytecode(*how[:2]) if bytecode else session.text(*how).encode()
            if file is not None:
                file.write_bytes(written)
            else:
                sys.stdout.buffer.write(written)
    if options.save:
        with Progress() as progress:
            session.save(options.save, progress)
    report = sys.stderr if module and not options.output else sys.stdout  # it may be the module's
    choice = choice_of(options)
    lint_findings = checks.lint(session, lints, choice)
    if options.json:
        from dataclasses import asdict

        entries = [finding.as_json() for finding in lint_findings]
        findings = {"program": str(choice), "findings": entries} if lints else {}
        priorities = {"priorities": [asdict(a) for a in session.accounts]} if options.stages else {}
        print_json(_statistics(session) | priorities | findings, report)
        return int(bool(lint_findings))
    if options.stages:
        from ..runs.accounts import accounts_text

        show(accounts_text(session.accounts), report)
    if options.stats:
        print(stages_table(session), file=report)
    return checks.report(lint_findings, report, choice)


def _facts(options: argparse.Namespace) -> None:
    from ..outputs import refuse_loss
    from ..runs.facts import write_facts

    refuse_loss([("-o", options.output)], inputs(options))
    written = write_facts(open_or_run(options).result, options.output)
    print(f"{written:,} facts in {options.output}", file=sys.stderr)


def _query(options: argparse.Namespace) -> None:
    from ..runs.query import Query

    query = Query(options.body)  # errors in the query come before the work
    relation = open_or_run(options).record.relation
    rows = query.run(relation, options.limits)
    for message in query.warnings(relation):
        warn(message)
    if options.json:
        print_json([dict(zip(rows.names, row, strict=True)) for row in rows])
    else:
        print(rows)


def _statistics(session: Session) -> dict[str, Any]:
    """The document that ``--json`` prints."""
    from dataclasses import asdict

    return {
        "stages": [asdict(stage) for stage in session.stages],
        "unknown_ops": [asdict(op) for op in session.unknown_ops],
    }


def stages_table(session: Session) -> str:
    """The table that ``--stats`` prints: a row per stage."""
    from ..runs.table import table

    stages = session.stages
    labels = [(str(s.priority), "-" if s.level is None else str(s.level), s.strategy) for s in stages]
    numbers = [(s.turns, s.distinct, s.changes, s.seconds) for s in stages]
    total = (*(sum(column) for column in zip(*numbers, strict=True)),) if numbers else (0, 0, 0, 0.0)
    rows = [
        (*label, *(f"{n:,}" for n in counts), f"{seconds:.4f}")
        for label, (*counts, seconds) in zip([*labels, ("total", "", "")], [*numbers, total], strict=True)
    ]
    names = ("user priority", "op priority", "strategy", "turns", "distinct turns", "changes", "seconds")
    return table(names, rows)

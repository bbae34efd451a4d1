"""``shardlog datalog``."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from ..errors import ShardlogError
from .colours import show
from .running import add_json, print_json, show_warnings, warn, warnings_shown

if TYPE_CHECKING:
    from ..datalog import Program
    from ..datalog.explanations import Explanation, WhyNot


def add(commands: Any, common: argparse.ArgumentParser) -> None:
    """Adds the command, which takes none of the arguments of a run."""
    command = commands.add_parser(
        "datalog", help="run a Datalog program over files of facts, as Soufflé does"
    )
    add_program(command)
    about = "the folder of the files that .output writes; - is standard output; default: this one"
    command.add_argument("-D", "--output-dir", metavar="DIR", default=".", help=about)
    about = "write the relations that were read or computed as tables of a DuckDB database, too"
    command.add_argument("--duckdb", metavar="FILE", help=about)
    about = "what evaluates: the core, the reference (slow), or stock Soufflé, where it is installed"
    command.add_argument(
        "--backend", choices=("auto", "core", "reference", "souffle"), default="auto", help=about
    )
    command.add_argument(
        "-j", "--jobs", metavar="N", type=_jobs, default=1, help="threads; the reference has one"
    )
    explain = command.add_mutually_exclusive_group()
    about = "write nothing, and say why a tuple holds, as in 'path(1, 5)'"
    explain.add_argument("--explain", metavar="FACT", help=about)
    explain.add_argument(
        "--explain-not", metavar="FACT", help="write nothing, and say why a tuple does not hold"
    )
    about = "with --explain: leave steps open that are further away; all: none; default: 32"
    command.add_argument("--depth", metavar="N|all", type=_depth, help=about)
    add_json(command, "print the explanation as JSON")
    command.set_defaults(carry_out=_datalog)


def add_program(command: argparse.ArgumentParser) -> None:
    """Adds the program that a command runs, and what it runs it with."""
    command.add_argument("program", metavar="PROGRAM", help="a program in Soufflé's dialect")
    about = "the folder of the files that .input reads; default: this one"
    command.add_argument("-F", "--fact-dir", metavar="DIR", default=".", help=about)
    about = "a folder that .include may reach beside that of the program; may be repeated"
    command.add_argument(
        "--allow-include", dest="include_from", metavar="DIR", action="append", default=[], help=about
    )
    about = "what the evaluation may take, as in tuples=5000000,memory=2G,seconds=10; default: no limit"
    command.add_argument("--limits", metavar="LIMITS", default="", help=about)


def program_of(options: argparse.Namespace, threads: int = 1, **how: Any) -> Program:
    """The program that options name, with ``how`` for ``Program``; warns of what nobody heeds in it."""
    from pathlib import Path

    from ..datalog import Limits, Program

    limits = Limits(threads=threads).changed(options.limits)
    with warnings_shown():
        program = Program(Path(options.program), include_from=options.include_from, limits=limits, **how)
    show_warnings(program.warnings())
    return program


def _datalog(options: argparse.Namespace) -> None:
    fact = options.explain if options.explain_not is None else options.explain_not
    if options.json and fact is None:
        raise ShardlogError("--json is of explanations", hint="add --explain FACT or --explain-not FACT")
    if options.depth is not None and options.explain is None:
        raise ShardlogError("--depth is of proofs", hint="add --explain FACT")
    souffle = options.backend == "souffle"
    program = program_of(
        options,
        options.jobs,
        backend="auto" if souffle else options.backend,
        magic=fact is None and options.duckdb is None,
    )
    if souffle:
        _souffle(options)
        return
    if fact is not None:
        _explain(program, fact, options)
        return
    program.read_inputs(options.fact_dir, program.outputs if options.duckdb is None else None)
    program.run_outputs()
    if options.duckdb is not None:
        program.write_duckdb(options.duckdb)
    program.write_outputs(None if options.output_dir == "-" else options.output_dir)


def _souffle(options: argparse.Namespace) -> None:
    """Stock Soufflé carries out the program: its files take their places when all went well."""
    from ..datalog.souffle import run_souffle

    for name in ("explain", "explain_not", "duckdb", "limits"):
        if getattr(options, name) not in (None, options.parser.get_default(name)):
            flag = f"--{name.replace('_', '-')}"
            raise ShardlogError(f"{flag} is not for --backend souffle", hint="leave one of them out")
    folder = None if options.output_dir == "-" else options.output_dir
    for line in run_souffle(options.program, options.fact_dir, folder, options.include_from, options.jobs):
        warn(line)


def _explain(program: Program, fact: str, options: argparse.Namespace) -> None:
    relation = program.relation_of(fact)
    program.read_inputs(options.fact_dir, [relation])
    program.run(relation)
    if options.explain is not None:
        from ..datalog.explanations import LEVELS

        depth = LEVELS if options.depth is None else options.depth
        explanation: Explanation | WhyNot = program.explain(fact, depth)
    else:
        explanation = program.explain_not(fact)
    if options.json:
        print_json(explanation.as_json())
    else:
        show(explanation)


def _depth(text: str) -> int:
    if text == "all":
        return sys.maxsize
    if not text.isascii() or not text.isdigit() or len(text) > 9:
        raise argparse.ArgumentTypeError(f"expected a number of steps or all, found {text!r}")
    return int(text)


def _jobs(text: str) -> int:
    if text == "auto":
        return os.cpu_count() or 1
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= 1024:
        raise argparse.ArgumentTypeError(f"expected a number of threads or auto, found {text!r}")
    return int(text)

"""The command that runs a program over files of facts, as Soufflé does: ``shardlog datalog``."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from ..errors import ShardlogError
from .colours import show
from .parser import add_json
from .printing import print_json, show_warnings, warn, warnings_shown

if TYPE_CHECKING:
    from ..datalog import Program
    from ..datalog.explanations import Explanation, WhyNot
    from .schemas import Schema

#: Arguments that are names of files.
FILES = ("program", "fact_dir", "output_dir", "include_from")

_PRAGMAS = ("magic-transform", "magic-transform-exclude", "inline-exclude")
_NO_CODE = "shardlog evaluates programs without compiling them to C++: leave it out"
_NO_LIBRARIES = "libraries hold functors, and shardlog runs no foreign code"
_NO_REPORT = "shardlog has no such report: use --explain or -p FILE"
_NO_STEPS = "shardlog has other compiler passes than Soufflé: leave it out"
_PREPROCESSOR = "the preprocessor is built in: leave it out"
_REFUSED = {  # options of Soufflé 2.5 that mean nothing here
    "-a --auto-schedule": "the engine orders joins itself: leave it out",
    **dict.fromkeys(["-c --compile", "-C --compile-many", "-g --generate", "-G --generate-many"], _NO_CODE),
    **dict.fromkeys(["-N --generate-namespace", "-o --dl-program", "-s --swig"], _NO_CODE),
    **dict.fromkeys(["-l --libraries", "-L --library-dir"], _NO_LIBRARIES),
    **dict.fromkeys(["-r --debug-report", "--emit-statistics", "--show", "-v --verbose"], _NO_REPORT),
    **dict.fromkeys(["--live-profile", "--profile-frequency"], "-p FILE writes a profile at the end"),
    "-t --provenance": "use --explain FACT or --explain-not FACT",
    **dict.fromkeys(["-z --disable-transformers", "--legacy", "--parse-errors"], _NO_STEPS),
    **dict.fromkeys(["--no-preprocessor", "--preprocessor"], _PREPROCESSOR),
    **dict.fromkeys(["-W --warn", "--wno"], "shardlog prints all warnings, or none with -w"),
    "-P --pragma": 'write it into the program: .pragma "KEY" "VALUE"',
}


class _Refused(argparse.Action):
    """An option of Soufflé that has no meaning here; ``const`` says why."""

    def __call__(
        self,
        parser: Any,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        parser.error(f"Soufflé's option {option_string} is not supported", self.const)


def describe(command: argparse.ArgumentParser) -> None:
    """Adds the arguments; ``carry_out`` of the parsed arguments is the function that carries the command
    out."""
    add_program(command)
    about = "the folder where .output writes its files; - is standard output; default: this one"
    command.add_argument("-D", "--output-dir", metavar="DIR", default=".", help=about)
    about = "also write the relations read and computed to a DuckDB database"
    command.add_argument("--duckdb", metavar="FILE", help=about)
    about = "the evaluator: the core, the reference (slow), or stock Soufflé, if installed"
    command.add_argument(
        "--backend", choices=("auto", "core", "reference", "souffle"), default="auto", help=about
    )
    command.add_argument(
        "-j",
        "--jobs",
        metavar="N",
        type=_jobs,
        default=1,
        help="the number of threads, or auto; the reference uses one",
    )
    command.add_argument("-w", "--no-warn", action="store_true", help="print no warnings")
    about = "write the time and tuples of each rule to this file, as JSON"
    command.add_argument("-p", "--profile", metavar="FILE", help=about)
    explain = command.add_mutually_exclusive_group()
    about = "explain why a tuple holds, as in 'path(1, 5)'; writes no output"
    explain.add_argument("--explain", metavar="FACT", help=about)
    explain.add_argument(
        "--explain-not", metavar="FACT", help="explain why a tuple does not hold; writes no output"
    )
    about = "print the steps of each rule with the rows expected and found after each; writes no output"
    explain.add_argument("--plan", action="store_true", help=about)
    about = "with --explain: the levels of the proof to print, or all; default: 32"
    command.add_argument("--depth", metavar="N|all", type=_depth, help=about)
    add_json(command, "print the explanation or the plan as JSON", _schema)
    for flags, why in _REFUSED.items():
        command.add_argument(*flags.split(), action=_Refused, nargs="?", help=argparse.SUPPRESS, const=why)
    command.set_defaults(carry_out=_carry_out)


def _schema(name: str) -> Schema:
    from .schemas import document, of_datalog

    return document(f"what {name} --json prints", of_datalog())


def add_program(command: argparse.ArgumentParser) -> None:
    """Adds the program that a command runs, and its options."""
    command.add_argument("program", metavar="PROGRAM", help="a program in Soufflé's dialect")
    about = "the folder from which .input reads files; default: this one"
    command.add_argument("-F", "--fact-dir", metavar="DIR", default=".", help=about)
    about = "another folder from which .include may read; may be repeated"
    command.add_argument(
        *("-I", "--include-dir", "--allow-include"),
        dest="include_from",
        metavar="DIR",
        action="append",
        default=[],
        help=about,
    )
    about = "define a macro, as #define does; several are separated by spaces; may be repeated"
    command.add_argument(
        "-M", "--macro", metavar="NAME=VALUE", type=_macros, action="extend", default=[], help=about
    )
    about = "use magic sets for these relations, as .pragma does; * is all"
    command.add_argument("-m", "--magic-transform", metavar="RELATIONS", help=about)
    command.add_argument("--magic-transform-exclude", metavar="RELATIONS", help="but not for these relations")
    command.add_argument("--inline-exclude", metavar="RELATIONS", help="do not inline these relations")
    about = "limits on the evaluation, as in tuples=5000000,memory=2G,seconds=10; default: none"
    command.add_argument("--limits", metavar="LIMITS", default="", help=about)


def program_of(options: argparse.Namespace, threads: int = 1, **how: Any) -> Program:
    """The program that options name, with the arguments ``how`` for ``Program``. Warns of ignored
    directives."""
    from pathlib import Path

    from ..datalog import Limits, Program

    limits = Limits(threads=threads).changed(options.limits)
    with warnings_shown():
        program = Program(
            Path(options.program),
            include_from=options.include_from,
            limits=limits,
            macros=dict(options.macro),
            pragmas=_pragmas(options),
            **how,
        )
    if not getattr(options, "no_warn", False):
        show_warnings(program.warnings())
    return program


def _pragmas(options: argparse.Namespace) -> dict[str, str]:
    """The pragmas that options stand for."""
    given = {name: getattr(options, name.replace("-", "_")) for name in _PRAGMAS}
    return {name: text for name, text in given.items() if text is not None}


def _carry_out(options: argparse.Namespace) -> None:
    fact = options.explain if options.explain_not is None else options.explain_not
    if options.json and fact is None and not options.plan:
        raise ShardlogError(
            "--json is only for explanations and plans",
            hint="add --explain FACT, --explain-not FACT or --plan",
        )
    if options.profile is not None and (fact is not None or options.plan):
        raise ShardlogError("--profile is not for explanations and plans", hint="leave one of them out")
    if options.depth is not None and options.explain is None:
        raise ShardlogError("--depth is only for proofs", hint="add --explain FACT")
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
    if options.plan:
        program.read_inputs(options.fact_dir, program.outputs)
        plan = program.plan(*program.outputs)
        if options.json:
            print_json(plan.as_json())
        else:
            print(plan)
        return
    from ..outputs import output, refuse_loss

    refuse_loss([("--profile", options.profile)], [options.program])
    with output(options.profile) if options.profile else nullcontext() as file:
        program.read_inputs(options.fact_dir, program.outputs if options.duckdb is None else None)
        if file is None:
            program.run_outputs()
        else:
            profile = program.profile(*program.outputs)
            file.write_text(json.dumps(profile.as_json(), indent=2) + "\n")
        if options.duckdb is not None:
            program.write_duckdb(options.duckdb)
        program.write_outputs(None if options.output_dir == "-" else options.output_dir)


def _souffle(options: argparse.Namespace) -> None:
    """Stock Soufflé carries out the program: its files take their places when all went well."""
    from ..datalog.souffle import run_souffle

    for name in ("explain", "explain_not", "plan", "duckdb", "limits", "profile"):
        if getattr(options, name) not in (None, options.parser.get_default(name)):
            flag = f"--{name.replace('_', '-')}"
            raise ShardlogError(f"{flag} is not for --backend souffle", hint="leave one of them out")
    folder = None if options.output_dir == "-" else options.output_dir
    flags = [f"-M{name}={body}" for name, body in options.macro]
    flags += [f"--{name}={text}" for name, text in _pragmas(options).items()]
    flags += ["-w"] if options.no_warn else []
    flags += [f"-I{folder}" for folder in options.include_from]
    for line in run_souffle(options.program, options.fact_dir, folder, flags, options.jobs):
        warn(line)


def _explain(program: Program, fact: str, options: argparse.Namespace) -> None:
    relation = program.relation_of(fact)
    program.read_inputs(options.fact_dir, [relation])
    program.run(relation)
    if options.explain is not None:
        from ..datalog.program import LEVELS

        depth = LEVELS if options.depth is None else options.depth
        explanation: Explanation | WhyNot = program.explain(fact, depth)
    else:
        explanation = program.explain_not(fact)
    if options.json:
        print_json(explanation.as_json())
    else:
        show(explanation)


def _macros(text: str) -> list[tuple[str, str]]:
    """Macros as a C compiler takes them: NAME=VALUE, or NAME for 1."""
    macros = []
    for part in re.findall(r'(?:[^\s"]|"[^"]*"?)+', text):
        name, given, body = part.partition("=")
        if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
            raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {part!r}")
        macros.append((name, body if given else "1"))
    return macros


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

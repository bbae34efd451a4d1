"""``shardlog datalog``."""

from __future__ import annotations

import argparse
from typing import Any

from .running import warn


def add(commands: Any, common: argparse.ArgumentParser) -> None:
    """Adds the command, which takes none of the arguments of a run."""
    command = commands.add_parser(
        "datalog", help="run a Datalog program over files of facts, as Soufflé does"
    )
    command.add_argument("program", metavar="PROGRAM", help="a program in Soufflé's dialect")
    about = "the folder of the files that .input reads; default: this one"
    command.add_argument("-F", "--fact-dir", metavar="DIR", default=".", help=about)
    about = "the folder of the files that .output writes; - is standard output; default: this one"
    command.add_argument("-D", "--output-dir", metavar="DIR", default=".", help=about)
    about = "a folder that .include may reach beside that of the program; may be repeated"
    command.add_argument(
        "--allow-include", dest="include_from", metavar="DIR", action="append", default=[], help=about
    )
    about = "what the evaluation may take, as in tuples=5000000,memory=2G,seconds=10; default: no limit"
    command.add_argument("--limits", metavar="LIMITS", default="", help=about)
    command.set_defaults(carry_out=_datalog)


def _datalog(options: argparse.Namespace) -> None:
    from pathlib import Path

    from ..datalog import Limits, Program

    limits = Limits().changed(options.limits)
    program = Program(Path(options.program), include_from=options.include_from, limits=limits)
    for warning in program.warnings():
        warn(warning)
    program.read_inputs(options.fact_dir)
    program.run_outputs()
    program.write_outputs(None if options.output_dir == "-" else options.output_dir)

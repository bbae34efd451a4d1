"""``shardlog compile``."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ..console.colours import show
from ..console.printing import print_json
from .choosing import checked_choice, choice_arguments, program_of
from .running import add_json, inputs, session_of

if TYPE_CHECKING:
    from ..console.parser import Commands


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Adds the command; ``common`` has the arguments that every run takes."""
    command = commands.add_parser(
        "compile",
        parents=[common, choice_arguments()],
        help="compile the partitioned program ahead of time; print its memory and its collectives",
    )
    about = (
        "cpu, tpu:v5e:2x4 (a slice of v4, v5e, v5p or v6e) or cuda:h100 (a100, h200, b200); needs no device"
    )
    command.add_argument("--target", metavar="TARGET", required=True, help=about)
    command.add_argument("-o", "--output", metavar="OUT", help="write the optimised HLO")
    add_json(command, "print JSON instead of text")
    command.set_defaults(carry_out=_compile)


def _compile(options: argparse.Namespace) -> None:
    from ..cost.targets import read_target
    from ..outputs import output, refuse_loss

    read_target(options.target)  # errors in it are reported before anything runs
    refuse_loss([("-o", options.output)], inputs(options))
    with output(options.output) if options.output else nullcontext() as file:
        checked_choice(options)
        compiled = program_of(options, session_of(options)).compile_ahead(options.target)
        if file is not None:
            file.write_text(compiled.hlo, encoding="utf-8")
    if options.json:
        print_json(compiled.as_json())
    else:
        show(str(compiled))

"""``shardlog cost``."""

from __future__ import annotations

import argparse
import gzip
import json
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ..console.colours import show
from ..console.printing import print_json, warn
from ..errors import ShardlogError
from ..outputs import output, refuse_loss
from ..program.elements import bytes_text
from ..runs.options import machine_of_costs
from .choosing import asked_of, choice_arguments, warn_of_memory
from .running import Progress, add_json, inputs, session_of

if TYPE_CHECKING:
    from ..console.parser import Commands


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Adds the command; ``common`` has the arguments that every run takes."""
    command = commands.add_parser(
        "cost",
        parents=[common, choice_arguments()],
        help="estimate the time and memory of the partitioned program on a machine",
    )
    about = "write the step as a timeline in Chrome's trace event format, for Perfetto; .gz is compressed"
    command.add_argument("--trace", metavar="STEP.json", help=about)
    command.add_argument("--full", action="store_true", help="print everything")
    add_json(command, "print JSON instead of text")
    command.set_defaults(carry_out=_cost)


def _cost(options: argparse.Namespace) -> None:
    from ..cost.machine import machine
    from ..cost.text import cost_text
    from ..program.carried import has_unknown_sizes

    refuse_loss([("--trace", options.trace)], inputs(options))
    topology = machine_of_costs(options.topology)
    machine(topology)  # errors in it are reported before anything runs
    session = session_of(options, names=True)  # of what collectives serve
    if has_unknown_sizes(session.module):
        if options.trace:
            message = "sizes that are not known give formulas, and no timeline"
            raise ShardlogError(message, where="--trace", hint="give the grid its sizes")
        from ..cost.formulas import formulas

        unknown = formulas(session.result)
        print_json(unknown.as_json()) if options.json else show(str(unknown))
        return
    with output(options.trace) if options.trace else nullcontext() as file:
        program = asked_of(options, session)
        with Progress() as progress:
            progress("counting costs", 0.9)
            cost = program.cost(topology, step=options.trace is not None)
        if options.topology is None and options.memory is not None and cost.peak > options.memory:
            bound = f"the bound of {bytes_text(options.memory)} is on tensors without tiles"
            needed = (
                f"on {cost.machine.name}, where they take whole tiles, {bytes_text(cost.peak)} are needed"
            )
            warn(f"{bound}; {needed}: --topology {topology} bounds that")
        if cost.peak > cost.machine.memory and not program.exceeds:  # reported before
            warn_of_memory(cost.peak, cost.machine)
        if file is not None:
            trace = f"{json.dumps(cost.trace(), ensure_ascii=False)}\n".encode()
            compressed = options.trace.endswith(".gz")
            file.write_bytes(gzip.compress(trace, mtime=0) if compressed else trace)
    if options.json:
        print_json(cost.as_json())
    else:
        show(cost_text(cost, full=options.full))

"""``shardlog partition`` and ``shardlog exec``."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..console.colours import show
from ..console.printing import print_json
from .choosing import checked_choice, choice_arguments, program_of
from .running import Progress, add_json, inputs, session_of, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..console.parser import Commands
    from ..executing.comparing import ResultComparison
    from ..executing.values import BoundaryValue
    from ..explanations.partitioned import Partitioned
    from ..partition.choice.homes import FoundHomes
    from ..runs.collectives import Collective
    from ..runs.result import Result

_RANDOM = 0  # the seed of random inputs


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Adds the commands; ``common`` has the arguments that every run takes."""
    partition = commands.add_parser(
        "partition", parents=[common, choice_arguments()], help="write the program that each device runs"
    )
    about = "where to write the program; default: standard output; .mlirbc is bytecode, .json is the plan"
    partition.add_argument("-o", "--output", metavar="OUT", help=about)
    about = "list the collectives, most bytes first; writes the program only with -o"
    partition.add_argument("--list", action="store_true", help=about)
    about = "print the plan: values whose sharding differs from propagation's, the way of each op, reshards"
    partition.add_argument("--show-plan", action="store_true", help=about)
    add_json(partition, "list the collectives as JSON")
    partition.set_defaults(carry_out=_partition)

    execute = commands.add_parser(
        "exec",
        parents=[common, choice_arguments()],
        help="run the partitioned program and compare it with a run on one device",
    )
    about = "the number of devices, real or virtual; default: the size of the mesh"
    execute.add_argument("--devices", type=int, metavar="N", help=about)
    given = execute.add_mutually_exclusive_group()
    about = f"draw random inputs from this seed; this is the default, with seed {_RANDOM}"
    given.add_argument(
        "--random",
        type=whole_number(0, "is not a seed: expected a whole number, zero or more"),
        nargs="?",
        const=_RANDOM,
        default=_RANDOM,
        metavar="SEED",
        help=about,
    )
    about = "read inputs from a .npz file, by name or in order, or from an Orbax checkpoint, a directory"
    given.add_argument("--inputs", metavar="FILE|DIR", help=about)
    execute.add_argument("-o", "--output", metavar="OUT", help="write the results to a .npz file")
    add_json(execute, "print JSON instead of text")
    execute.set_defaults(carry_out=_execute)


def _partition(options: argparse.Namespace) -> None:
    from ..outputs import output, refuse_loss

    refuse_loss([("-o", options.output)], inputs(options))
    with output(options.output) if options.output else nullcontext() as file:
        checked_choice(options)
        partitioned = program_of(options, session_of(options))
        if file is not None:
            with Progress() as progress:
                progress("printing", 0.9)
                written = _written(partitioned, Path(options.output).suffix)
            file.write_bytes(written)
        elif not (options.list or options.json or options.show_plan):
            sys.stdout.buffer.write(partitioned.text().encode())
    if options.json:
        from dataclasses import asdict

        collectives = [asdict(collective) for collective in partitioned.collectives]
        total = sum(collective.total for collective in partitioned.collectives)
        print_json({"program": str(partitioned.choice), "bytes": total, "collectives": collectives})
    elif options.list:
        show(f"{partitioned.choice.line}\n{collectives_text(partitioned.collectives)}")
        if options.seconds is not None and partitioned.found is not None:
            show(found_text(partitioned.found))
    if options.show_plan:
        show(f"{partitioned.choice.line}\n{partitioned.plan}")


def _written(program: Partitioned, suffix: str) -> bytes:
    """The content that ``-o`` writes: the plan, or the program as bytecode or text."""
    if suffix == ".json":
        return program.plan.file.text.encode()
    return program.bytecode() if suffix == ".mlirbc" else program.text().encode()


def _execute(options: argparse.Namespace) -> int:
    """Runs ``shardlog exec``; returns 1 if a result is wrong."""
    if os.environ["TF_CPP_MIN_LOG_LEVEL"] == "1":
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # nor XLA's warnings, such as that GSPMD will be removed
    from ..executing.execution import devices_for
    from ..executing.inputs import write_outputs
    from ..executing.judging import Trial
    from ..executing.values import boundary
    from ..outputs import output, refuse_loss
    from ..runs.table import plural

    refuse_loss([("-o", options.output)], [*inputs(options), options.inputs])
    with output(options.output) if options.output else nullcontext() as file:
        checked_choice(options)
        session = session_of(options)
        result = session.result
        partitioned = program_of(options, session)
        arguments, results = boundary(result)
        devices = devices_for(partitioned.axes.count, options.devices, result.source.name)
        arrays, drawn = _inputs(options, result, arguments)
        with Progress() as progress:
            progress("compiling", 0.9)
            trial = Trial(result, partitioned.compile(devices), devices)
            progress("running", 0.95)
            judgement = trial.at_random(options.random) if arrays is None else trial.of(arrays)
        comparisons = judgement.comparisons
        if file is not None:
            write_outputs(file, results, judgement.outputs)
    wrong = sum(not comparison.right for comparison in comparisons)
    if options.json:
        document = {"program": str(partitioned.choice), "devices": len(devices), "seeds": judgement.seeds}
        print_json(document | {"results": [comparison.as_json() for comparison in comparisons]})
    else:
        kind = devices[0].platform
        count, moved = len(partitioned.collectives), sum(c.total for c in partitioned.collectives)
        on, sent = plural(len(devices), f"{kind} device"), plural(count, "collective")
        show(partitioned.choice.line)
        show(f"on {on}, {sent}, {moved:,} bytes sent by each")
        if drawn:
            show(f"drawn at random, as the checkpoint lacks them: {', '.join(drawn)}")
        for comparison in comparisons:
            show(f"  {comparison}")
        if len(judgement.seeds) > 1:
            show(f"tried with seeds {', '.join(map(str, judgement.seeds))}")
        show(_verdict(comparisons))
    return int(wrong > 0)


def _inputs(
    options: argparse.Namespace, result: Result, arguments: Sequence[BoundaryValue]
) -> tuple[list[Any] | None, list[str]]:
    """The arrays that are given, if any, and the names of arguments that a checkpoint lacks: they are drawn
    at random."""
    from ..executing.domains import domains
    from ..executing.inputs import checkpoint_inputs, read_inputs

    if options.inputs is None:
        return None, []
    if options.inputs and (directory := Path(options.inputs)).is_dir():
        return checkpoint_inputs(directory, arguments, _RANDOM, domains(result))
    return read_inputs(options.inputs, arguments), []


def _verdict(comparisons: Sequence[ResultComparison]) -> str:
    """The verdict of all comparisons. It is "equal" only where nothing else is possible."""
    wrong = sum(not comparison.right for comparison in comparisons)
    open_ = sum(not comparison.judged for comparison in comparisons)
    unjudged = f"{open_} of {len(comparisons)} results cannot be judged"
    if wrong:
        verdict = f"{wrong} of {len(comparisons)} results wrong"
        return f"{verdict}, {unjudged}" if open_ else verdict
    return f"none is known to be wrong, {unjudged}" if open_ else "as on one device"


def found_text(homes: FoundHomes) -> str:
    """How good the shardings are that were found, by a lower bound."""
    if homes.bound <= 0:
        return "the time was too short for a lower bound"
    more = 100 * (homes.cost / homes.bound - 1)
    return f"at most {more:.1f} % above the optimum among the layouts considered"


def collectives_text(collectives: Sequence[Collective]) -> str:
    """The table that ``--list`` prints, most bytes first, and the total."""
    from ..runs.table import STACK, plural, table

    unknown = sum(collective.executions is None for collective in collectives)
    total = sum(collective.total for collective in collectives)
    text = f"{plural(len(collectives), 'collective')}, {total:,} bytes sent by each device"
    if unknown:
        text += f"; {unknown} in loops of unknown trip count, of which one iteration is counted"
    if not collectives:
        return text
    names = ("number", "collective", "axes", "bytes", "times", "op", "slot", "value", "place", STACK)
    rows = [
        (
            c.number,
            c.kind,
            ", ".join(c.axes) or "-",
            f"{c.bytes:,}",
            f"{c.repeats:,}" if c.executions is not None else f"{c.repeats:,} a turn",
            *(c.op, c.slot, c.value, c.where, c.stack or "-"),
        )
        for c in sorted(collectives, key=lambda c: (-c.total, c.number))
    ]
    return f"{table(names, rows)}\n{text}"

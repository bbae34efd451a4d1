"""``shardlog partition`` and ``shardlog exec``."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..program.elements import bytes_text
from ..runs.options import memory_of, seconds_of
from .colours import show
from .running import add_json, inputs, print_json, result_of, warn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..cost.machine import Machine
    from ..partition.choice.homes import Found
    from ..runs.executing.collectives import Collective
    from ..runs.executing.comparing import Comparison
    from ..runs.executing.partitioned import Partitioned
    from ..runs.executing.values import Value
    from ..runs.result import Result

FORMS = ("sdy-manual", "manual", "replica")
_RANDOM = 0  # the seed of random inputs


def add(commands: Any, common: argparse.ArgumentParser) -> None:
    """Adds the commands; ``common`` has the arguments that every run takes."""
    partition = commands.add_parser(
        "partition", parents=[common], help="write the program that each device runs"
    )
    about = "default: standard output; .mlirbc is bytecode"
    partition.add_argument("-o", "--output", metavar="OUT", help=about)
    add_form(partition)
    about = "show the collectives, most bytes first; -o says if to write the module"
    partition.add_argument("--list", action="store_true", help=about)
    add_json(partition, "show the collectives as JSON")
    partition.set_defaults(carry_out=_partition)

    execute = commands.add_parser(
        "exec", parents=[common], help="run the partitioned program, compare it with one device"
    )
    about = "the number of (virtual) devices; default: as many as the mesh has"
    execute.add_argument("--devices", type=int, metavar="N", help=about)
    given = execute.add_mutually_exclusive_group()
    about = f"run it with random inputs from this seed; the default, with seed {_RANDOM}"
    given.add_argument(
        "--random", type=_seed, nargs="?", const=_RANDOM, default=_RANDOM, metavar="SEED", help=about
    )
    about = "inputs, by name or in order, as numpy.savez writes them; or a checkpoint of orbax, a directory"
    given.add_argument("--inputs", metavar="FILE|DIR", help=about)
    execute.add_argument("-o", "--output", metavar="OUT", help="write the results, as numpy.savez does")
    add_form(execute)
    add_json(execute, "print JSON instead of text")
    execute.set_defaults(carry_out=_execute)


def add_form(parser: argparse.ArgumentParser) -> None:
    """Adds how the program is partitioned, and its form."""
    about = (
        "how XLA is to take it: in a manual computation, or as what each partition or each replica runs; "
        "default: %(default)s"
    )
    parser.add_argument("--as", dest="form", choices=FORMS, default=FORMS[0], help=about)
    about = (
        "make least the time on a machine, and not the bytes: v4, v5e, v5p, v6e, h100, h200, b200, cpu, or a "
        "TOML file"
    )
    parser.add_argument("--topology", metavar="MACHINE", help=about)
    add_matmul(parser)
    add_choice(parser)


def add_matmul(parser: argparse.ArgumentParser) -> None:
    """Adds whether collectives go on beside products."""
    about = "with --topology: multiply part by part while parts are sent, where that is faster there"
    parser.add_argument("--collective-matmul", action="store_true", help=about)


def add_choice(parser: argparse.ArgumentParser) -> None:
    """Adds how shardings are chosen."""
    about = (
        "shard all values as propagation decided; default: between the boundary and constraints, as costs "
        "least in all"
    )
    keep = argparse.BooleanOptionalAction
    parser.add_argument("--keep-shardings", action=keep, default=False, help=about)
    add_bounds(parser)


def add_bounds(parser: argparse.ArgumentParser) -> None:
    """Adds the bounds on what is chosen."""
    about = "shard a value so whatever that costs, the result of an op; as what-if takes it, repeatable"
    parser.add_argument("--pin", metavar="VALUE=SHARDING", action="append", default=[], help=about)
    about = "the memory that a device may need at most, as 16GiB or 500MiB; default: all that --topology has"
    parser.add_argument("--memory", type=_bytes, metavar="SIZE", help=about)
    about = "take the best shardings found after so long, and say how far from a lower bound they are"
    parser.add_argument("--seconds", type=_seconds, metavar="S", help=about)


def _seed(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is no seed: expected a whole number, zero or above")
    return int(text)


def _bytes(text: str) -> int:
    try:
        return memory_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(text: str) -> float:
    try:
        return seconds_of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def program_of(options: argparse.Namespace, result: Result) -> Partitioned:
    """The program that the options ask for; warns where its machine has not as much memory as it needs."""
    program = result.partition(
        options.form,
        keep_shardings=options.keep_shardings,
        topology=options.topology,
        memory=options.memory,
        seconds=options.seconds,
        pins=options.pin,
        collective_matmul=options.collective_matmul,
    )
    if program.exceeds:
        from ..cost.machine import machine

        warn_of_memory(program.exceeds, machine(options.topology))
    return program


def warn_of_memory(needed: int, known: Machine) -> None:
    """Warns that a device needs so many bytes, which are more than it has."""
    warn(f"{bytes_text(needed)} are needed on a device, and {known.name} has {bytes_text(known.memory)}")


def check_topology(options: argparse.Namespace) -> None:
    """What is wrong with the machine is said before anything runs."""
    if options.topology is not None:
        from ..cost.machine import machine

        machine(options.topology)


def _partition(options: argparse.Namespace) -> None:
    from ..outputs import output, refuse_loss

    refuse_loss([("-o", options.output)], inputs(options))
    with output(options.output) if options.output else nullcontext() as file:
        check_topology(options)
        partitioned = program_of(options, result_of(options))
        if file is not None:
            bytecode = options.output.endswith(".mlirbc")
            file.write_bytes(partitioned.bytecode() if bytecode else partitioned.text().encode())
        elif not (options.list or options.json):
            sys.stdout.buffer.write(partitioned.text().encode())
    if options.json:
        from dataclasses import asdict

        found = [asdict(collective) for collective in partitioned.collectives]
        total = sum(collective.total for collective in partitioned.collectives)
        print_json({"bytes": total, "collectives": found})
    elif options.list:
        show(collectives_text(partitioned.collectives))
        if options.seconds is not None and partitioned.found is not None:
            show(found_text(partitioned.found))


def _execute(options: argparse.Namespace) -> int:
    """Runs ``shardlog exec``; returns 1 if a result is wrong."""
    if os.environ["TF_CPP_MIN_LOG_LEVEL"] == "1":
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"  # nor XLA's warnings, such as that GSPMD is going to go
    from ..outputs import output, refuse_loss
    from ..runs.executing.execution import devices_for
    from ..runs.executing.inputs import write_outputs
    from ..runs.executing.judging import Trial
    from ..runs.executing.values import boundary
    from ..runs.table import plural

    refuse_loss([("-o", options.output)], [*inputs(options), options.inputs])
    with output(options.output) if options.output else nullcontext() as file:
        check_topology(options)
        result = result_of(options)
        partitioned = program_of(options, result)
        arguments, results = boundary(result)
        devices = devices_for(partitioned.axes.count, options.devices, result.source.name)
        arrays, drawn = _inputs(options, result, arguments)
        trial = Trial(result, partitioned.compile(devices), devices)
        judgement = trial.at_random(options.random) if arrays is None else trial.of(arrays)
        found = judgement.comparisons
        if file is not None:
            write_outputs(file, results, judgement.outputs)
    wrong = sum(not comparison.right for comparison in found)
    if options.json:
        each = [comparison.as_json() for comparison in found]
        print_json({"devices": len(devices), "seeds": judgement.seeds, "results": each})
    else:
        kind = devices[0].platform
        count, moved = len(partitioned.collectives), sum(c.total for c in partitioned.collectives)
        on, sent = plural(len(devices), f"{kind} device"), plural(count, "collective")
        show(f"on {on}, {sent}, {moved:,} bytes sent by each")
        if drawn:
            show(f"at random, as the checkpoint lacks them: {', '.join(drawn)}")
        for comparison in found:
            show(f"  {comparison}")
        if len(judgement.seeds) > 1:
            show(f"tried with seeds {', '.join(map(str, judgement.seeds))}")
        show(_verdict(found))
    return int(wrong > 0)


def _inputs(
    options: argparse.Namespace, result: Result, arguments: Sequence[Value]
) -> tuple[list[Any] | None, list[str]]:
    """The arrays that are given, if any, and the names of arguments that a checkpoint lacks: they are drawn
    at random."""
    from ..runs.executing.domains import domains
    from ..runs.executing.inputs import checkpoint_inputs, read_inputs

    if options.inputs is None:
        return None, []
    if options.inputs and (directory := Path(options.inputs)).is_dir():
        return checkpoint_inputs(directory, arguments, _RANDOM, domains(result))
    return read_inputs(options.inputs, arguments), []


def _verdict(found: Sequence[Comparison]) -> str:
    """What all comparisons say together: equal is said only where nothing else is possible."""
    wrong = sum(not comparison.right for comparison in found)
    open_ = sum(not comparison.judged for comparison in found)
    unjudged = f"{open_} of {len(found)} results cannot be judged"
    if wrong:
        said = f"{wrong} of {len(found)} results wrong"
        return f"{said}, {unjudged}" if open_ else said
    return f"none is known to be wrong, {unjudged}" if open_ else "as on one device"


def found_text(found: Found) -> str:
    """How good the shardings are that were found, by a lower bound."""
    if found.bound <= 0:
        return "there was no time for a lower bound"
    more = 100 * (found.cost / found.bound - 1)
    return f"at most {more:.1f} % more than the least of the ways that were looked at"


def collectives_text(collectives: Sequence[Collective]) -> str:
    """The table that ``--list`` prints, most bytes first, and the total."""
    from ..runs.table import plural, table

    unknown = sum(collective.executions is None for collective in collectives)
    total = sum(collective.total for collective in collectives)
    text = f"{plural(len(collectives), 'collective')}, {total:,} bytes sent by each device"
    if unknown:
        text += f"; {unknown} in loops that do not say how many turns they take, of which one is counted"
    if not collectives:
        return text
    names = ("number", "collective", "axes", "bytes", "times", "op", "slot", "value", "place")
    rows = [
        (
            c.number,
            c.kind,
            ", ".join(c.axes) or "-",
            f"{c.bytes:,}",
            f"{c.repeats:,}" if c.executions is not None else f"{c.repeats:,} a turn",
            *(c.op, c.slot, c.value, c.where),
        )
        for c in sorted(collectives, key=lambda c: (-c.total, c.number))
    ]
    return f"{table(names, rows)}\n{text}"

"""The options that say which program is meant, the same for all commands that say something about one."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import TYPE_CHECKING

from ..console.printing import warn
from ..errors import ShardlogError
from ..program.elements import bytes_text
from ..runs.choice import ProgramChoice
from ..runs.options import flag_of
from .running import Progress, add_option

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..cost.machine import Machine
    from ..explanations.partitioned import Partitioned
    from ..session import Session


def choice_arguments(
    about: str = "the same options for all commands; the default moves the fewest bytes",
) -> argparse.ArgumentParser:
    """The arguments that say which program is meant."""
    parser = argparse.ArgumentParser(add_help=False)
    group = parser.add_argument_group("the partitioned program", about)
    for option in fields(ProgramChoice):
        add_option(group, option)
    return parser


def choice_of(options: argparse.Namespace) -> ProgramChoice:
    """The program that the options mean."""
    return ProgramChoice(**{option.name: getattr(options, option.name) for option in fields(ProgramChoice)})


def refuse_choice(options: argparse.Namespace, about: str, wanted: str) -> None:
    """Refuses options that choose a program, where the command describes none."""
    for option in fields(ProgramChoice):
        value = getattr(options, option.name)
        if value is not None and value != [] and value != option.default:
            flag = flag_of(option)
            raise ShardlogError(
                f"{flag} applies only to {about}", where=flag, hint=f"add {wanted}, or leave the option out"
            )


def checked_choice(options: argparse.Namespace) -> ProgramChoice:
    """Like ``choice_of``; an error in the machine is reported before anything runs."""
    choice = choice_of(options)
    if choice.topology is not None:
        from ..cost.machine import machine

        machine(choice.topology)
    return choice


def program_of(options: argparse.Namespace, session: Session) -> Partitioned:
    """The program that is meant, which devices can run; warns where its machine has not as much memory as it
    needs."""
    return _partitioned(session.programs.of, options)


def asked_of(options: argparse.Namespace, session: Session) -> Partitioned:
    """Like ``program_of``, to ask for its collectives and its cost: devices may not be able to run it."""
    return _partitioned(session.programs.asked, options)


def _partitioned(make: Callable[[ProgramChoice], Partitioned], options: argparse.Namespace) -> Partitioned:
    with Progress() as progress:
        progress("partitioning", 0.8)
        program = make(choice_of(options))
    if program.exceeds and program.topology is not None:
        from ..cost.machine import machine

        warn_of_memory(program.exceeds, machine(program.topology))
    return program


def warn_of_memory(needed: int, machine: Machine) -> None:
    """Warns that a device needs so many bytes, which are more than it has."""
    warn(f"{bytes_text(needed)} are needed on a device, and {machine.name} has {bytes_text(machine.memory)}")

"""``shardlog datalog``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..console.datalog import describe

if TYPE_CHECKING:
    from ..console.parser import Commands


def add(commands: Commands) -> None:
    """Adds the command, which takes none of the arguments of a run."""
    about = "run a Datalog program over files of facts, as Soufflé does"
    describe(commands.add_parser("datalog", help=about))

"""The plan for a program on a mesh, or on the best mesh of a number of devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..cost.machine import machine
from ..errors import ShardlogError
from ..explanations.partitioned import Partitioned
from ..runs.options import Options
from ..runs.running import run_with
from ..session import Session
from .meshes import devices_of, meshes_of
from .options import AutoOptions
from .plan import AutoPlan
from .searching import Search


def plan(source: Any, options: AutoOptions, progress: Callable[[str, float], None] | None = None) -> AutoPlan:
    """The best plan found for a program, which is any input of ``shardlog.run``. The same program and options
    give the same plan.

    Raises ShardlogError for bad input, and if no plan was found within the limit on memory.
    """
    tell = progress or (lambda what, done: None)
    machine(options.topology)  # errors in it are reported before anything runs
    best: AutoPlan | None = None
    for mesh in _meshes(options):
        found = Search(source, mesh, options, tell).best()
        if best is None or found.seconds < best.seconds:
            best = found
    assert best is not None
    return best


def session_of(source: Any, plan: AutoPlan) -> Session:
    """The run of a program with the shardings of its plan. Raises ShardlogError for another program."""
    return Session(run_with(source, Options(mesh=plan.mesh, annotate=plan.annotations)))


def program(source: Any, plan: AutoPlan) -> Partitioned:
    """The program that each device runs by a plan. Raises ShardlogError for a program that is not the
    plan's."""
    return session_of(source, plan).partition(topology=plan.topology, memory=plan.memory)


def _meshes(options: AutoOptions) -> list[str | None]:
    if options.devices is None:
        return [options.mesh]
    if options.mesh is None:
        return [*meshes_of(options.devices)]
    if devices_of(options.mesh) != options.devices:
        message = f"a mesh of {devices_of(options.mesh):,} devices, and --devices {options.devices:,}"
        raise ShardlogError(message, where=f"--mesh {options.mesh}", hint="leave one of them out")
    return [options.mesh]

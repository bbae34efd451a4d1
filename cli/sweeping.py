"""``shardlog sweep``."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from ..console.colours import show
from ..console.printing import warn
from ..runs.table import plural
from ..sweeping import KINDS
from .running import Progress

if TYPE_CHECKING:
    from ..console.parser import Commands


def add(commands: Commands, common: argparse.ArgumentParser) -> None:
    """Adds the command."""
    sweep = commands.add_parser(
        "sweep", help="find plans for models on meshes, machines and limits of memory, many at a time"
    )
    about = "a TOML file with models, meshes or devices, topologies and memory; all combinations are tasks"
    sweep.add_argument("sweep", metavar="SWEEP.toml", help=about)
    about = "the workers; default: %(default)s"
    sweep.add_argument("--on", choices=KINDS, default=KINDS[0], help=about)
    about = "the number of tasks at a time; default: the number of CPUs"
    sweep.add_argument("--workers", type=int, metavar="N", help=about)
    about = "the address of a cluster of Ray or Dask; default: one is started on this machine"
    sweep.add_argument("--address", metavar="ADDRESS", help=about)
    about = (
        "the folder for a file per task, table.csv and plot.svg; tasks that have a file are not repeated; "
        "default: the name of SWEEP.toml without .toml"
    )
    sweep.add_argument("-o", "--output", metavar="FOLDER", help=about)
    sweep.set_defaults(carry_out=_sweep)


def _sweep(options: argparse.Namespace) -> int:
    """Returns 1 if tasks were not done."""
    from ..outputs import refuse_loss, write
    from ..sweeping.asked import read_sweep
    from ..sweeping.executors import workers
    from ..sweeping.results import csv_text, plot, rows_of, table_text
    from ..sweeping.running import carry_out

    path = Path(options.sweep)
    tasks = read_sweep(path)
    folder = path.with_suffix("") if options.output is None else Path(options.output)
    refuse_loss([("-o", str(folder))], [str(path)])
    with workers(options.on, options.workers, options.address) as (executor, at_once), Progress() as progress:
        finished = carry_out(tasks, folder, executor, at_once, progress)
    rows = rows_of(tasks, folder)
    write(folder / "table.csv", csv_text(rows).encode())
    if (drawn := plot(rows)) is not None:
        write(folder / "plot.svg", drawn.encode())
    show(table_text(rows))
    before = f", {finished.before:,} were done before" if finished.before else ""
    show(f"{plural(finished.now, 'task')}{before}; table.csv and plot.svg are in {folder}")
    for task, error in finished.not_done:
        warn(f"{task.name} was not done: {error}")
    return int(bool(finished.not_done))

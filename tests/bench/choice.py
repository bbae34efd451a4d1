"""How long it takes to choose where values live: `python -m shardlog.tests.bench.choice`.

Train steps of 24 and 96 layers, and one whose layers are scanned, each in a process of its own: seconds of
the processor to partition it as propagation decided, and so that least moves; the first time, and again.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from functools import partial
from typing import Any

from .bench import timed
from .bytes_moved import example

PROGRAMS = ("train step, 24 layers", "train step, 96 layers", "transformer, 24 layers scanned")


def source(name: str) -> Any:
    """The program of a name."""
    if name.endswith("scanned"):
        from ..support import models

        return models.text("transformer", depth=24, scan=True)
    return example(int(name.split()[-2]))


def measure(name: str) -> None:
    """Prints a row of the table."""
    import shardlog
    from shardlog.runs.choice import ProgramChoice

    result = shardlog.run(source(name))
    meant = (ProgramChoice(keep_shardings=keep) for keep in (True, True, False, False))
    ways = (partial(result.programs.made, choice) for choice in meant)
    row = [timed(way) for way in ways]
    print(f"{name:32}" + "".join(f"{seconds:12.2f}" for seconds in row), flush=True)


def main() -> None:
    """Prints the table, or the row of one program."""
    warnings.simplefilter("ignore")
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    print(f"{'':32}{'as decided':>12}{'again':>12}{'least':>12}{'again':>12}", flush=True)
    for name in PROGRAMS:
        subprocess.run([sys.executable, "-m", "shardlog.tests.bench.choice", name], check=True)


if __name__ == "__main__":
    main()

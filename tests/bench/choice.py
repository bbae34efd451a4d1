"""How long it takes to choose where values live: `python -m shardlog.tests.bench.choice`.

Train steps of 24 and 96 layers, and one whose layers are scanned, each in a process of its own: seconds of
the processor to partition it as propagation decided, and so that least moves; the first time, and again.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from time import process_time
from typing import Any

PROGRAMS = ("train step, 24 layers", "train step, 96 layers", "transformer, 24 layers scanned")


def source(name: str) -> Any:
    """The program of a name."""
    if name.endswith("scanned"):
        from ..support import models

        return models.text("transformer", depth=24, scan=True)
    from shardlog.examples import train_step

    layers = int(name.split()[-2])
    train_step.LAYERS, train_step.PARAMS["layers"] = layers, [train_step.LAYER] * layers
    return train_step.lower()[0].as_text()


def measure(name: str) -> None:
    """Prints a row of the table."""
    import shardlog

    result, row = shardlog.run(source(name)), []
    for keep in (True, False):
        for _ in range(2):
            start = process_time()
            result.partition(keep_shardings=keep)
            row.append(process_time() - start)
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

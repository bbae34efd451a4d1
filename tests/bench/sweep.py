"""A sweep of 100 tasks whose workers are killed: `python -m shardlog.tests.bench.sweep [--on ray|dask]`.

Five sizes of a train step, five meshes, two machines and two limits of memory. While processes carry them
out, a worker is killed now and then. At the end all results are there, and equal to those of tasks that are
carried out here.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")

from shardlog.sweeping import KINDS
from shardlog.sweeping.asked import read_sweep
from shardlog.sweeping.executors import Processes, workers
from shardlog.sweeping.results import rows_of, table_text
from shardlog.sweeping.running import carry_out, file_of
from shardlog.sweeping.tasks import perform

_SWEEP = """models = {models}
meshes = ["data=8", "data=4,model=2", "data=2,model=4", "data=16", "data=4,model=4"]
topologies = ["h100", "v5e"]
memory = ["none", "300KiB"]
compare = false
"""
_COMPARED = 5  # results that are made here as well


def module(width: int) -> str:
    """A train step of two layers of a width."""
    import jax
    import jax.numpy as jnp

    def array(*shape: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(shape, jnp.float32)  # type: ignore[no-untyped-call]

    def loss(params: list[jax.Array], x: jax.Array) -> jax.Array:
        for up, down in params:
            x = x + jnp.tanh(x @ up) @ down
        return (x * x).mean()

    def step(params: Any, batch: jax.Array) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, batch))

    params = [(array(width, 4 * width), array(4 * width, width))] * 2
    lowered = jax.jit(step).trace(params, array(512, width)).lower(lowering_platforms=("cpu",))
    return str(lowered.as_text(debug_info=True))


def main() -> None:
    """Prints the table, and how often a worker was killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--on", choices=KINDS, default=KINDS[0])
    parser.add_argument("--kills", type=int, default=20, help="of processes")
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder, widths = Path(name), (32, 64, 96, 128, 160)
        for width in widths:
            (folder / f"{width}.mlir").write_text(module(width))
        path = folder / "sweep.toml"
        path.write_text(_SWEEP.format(models=json.dumps([f"{width}.mlir" for width in widths])))
        tasks, killed = read_sweep(path), list[int]()
        with workers(options.on, 2) as (executor, at_once):
            if isinstance(executor, Processes):
                arguments = executor, options.kills, killed
                threading.Thread(target=_kill, args=arguments, daemon=True).start()
            finished = carry_out(tasks, folder / "out", executor, at_once, attempts=options.kills + 1)
        rows = rows_of(tasks, folder / "out")
        print(table_text(rows))
        assert len(rows) == len(tasks) == finished.now == 100
        for task in random.Random(0).sample(tasks, _COMPARED):
            assert file_of(folder / "out", task).read_text() == perform(task)
        files = len(list((folder / "out").iterdir()))
        assert files == len(tasks)
        print(f"{len(tasks)} tasks on {options.on}, {len(killed)} workers killed: {files} results, each once")


def _kill(executor: Processes, kills: int, killed: list[int]) -> None:
    """Kills a worker at random times."""
    drawn = random.Random(0)
    while len(killed) < kills:
        time.sleep(drawn.uniform(1, 5))
        found = [pid for pool in [*executor._pools] for pid in [*(pool._processes or {})]]
        if found:
            killed.append(drawn.choice(found))
            os.kill(killed[-1], signal.SIGKILL)


if __name__ == "__main__":
    main()

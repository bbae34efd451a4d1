"""What programs move, ours beside XLA's: `python -m shardlog.tests.bench.bytes_moved [--all]`.

The same program with the same shardings at its boundary is compiled twice for eight CPU devices: as XLA
partitions it, and as we do, with the shardings that propagation decided and with those by which least
moves. Bytes are counted in the optimised HLO of each: what a device sends by the ring model, turns of
loops counted.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from math import exp, log
from typing import Any

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")


def programs(every: bool) -> Iterator[tuple[str, Any]]:
    """The names of programs, and the programs."""
    from shardlog.examples import train_step

    from ..support import models
    from ..support.programs import PROGRAMS, lowered

    for layers in (2, 24) if every else (2,):
        train_step.LAYERS, train_step.PARAMS["layers"] = layers, [train_step.LAYER] * layers
        yield f"train step, {layers} layers", train_step.lower()[0].as_text()
    for name in models.MODELS:
        yield name, models.text(name)
    if every:
        for name in PROGRAMS:
            yield name, lowered(name, 3)


def by_xla(result: Any, devices: Any) -> float:
    """What the program moves as XLA partitions it: shardings stand at its boundary and in constraints."""
    from shardlog.cost.hlo import hlo_bytes
    from shardlog.importers.compiling import load
    from shardlog.program.modules import copy_of, ops_in

    module = copy_of(result.module)
    with module.context:
        for op in ops_in(module):
            if "sdy.sharding" in op.attributes:
                del op.attributes["sdy.sharding"]
    loaded = load(module, devices)
    return sum(hlo_bytes(part.to_string()) for part in loaded.hlo_modules())


def main() -> None:
    """Prints the table, and the geometric mean over programs of which XLA moves something."""
    import jax
    import shardlog
    from shardlog.cost.hlo import hlo_bytes

    warnings.simplefilter("ignore")
    devices, ratios = jax.devices(), list[list[float]]()
    print(f"{'program':28}{'XLA':>14}{'as decided':>14}{'least':>14}   of XLA's")
    for name, source in programs("--all" in sys.argv):
        result = shardlog.run(source)
        whole = by_xla(result, devices)
        ours = [hlo_bytes(result.partition(keep_shardings=k).compile().hlo) for k in (True, False)]
        said = ""
        if whole:
            ratios.append([max(moved, 1) / whole for moved in ours])
            said = "  ".join(f"{ratio:.2f}" for ratio in ratios[-1])
        print(f"{name:28}{whole:14,.0f}{ours[0]:14,.0f}{ours[1]:14,.0f}   {said}", flush=True)
    means = (exp(sum(map(log, column)) / len(column)) for column in zip(*ratios, strict=True))
    print(f"geometric mean of what XLA moves: {', '.join(f'{mean:.2f}' for mean in means)}")


if __name__ == "__main__":
    main()

"""Partitioned programs, ours beside XLA's: `python -m shardlog.tests.bench.bytes_moved [--all]`.

The same program with the same shardings at its boundary is compiled for eight CPU devices: as XLA partitions
it, and as we do, with the shardings that propagation decided and with those by which least moves. Bytes and
collectives are counted in the optimised HLO of each: what a device sends by the ring model, turns of loops
counted. The time of the choice and of partitioning is that of the processor, ``bound`` how far the choice is
from a lower bound. How long the programs take is measured by ``steps.py``.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import geometric_mean
from time import process_time
from typing import Any

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")


def programs(every: bool) -> Iterator[tuple[str, Any]]:
    """The names of programs, and the programs."""
    from ..support import models
    from ..support.programs import PROGRAMS, lowered

    for layers in (2, 24) if every else (2,):
        yield f"train step, {layers} layers", example(layers)
    for name in models.MODELS:
        yield name, models.text(name)
    if every:
        for name in PROGRAMS:
            yield name, lowered(name, 3)


def example(layers: int) -> str:
    """The train step of the examples, of a model with so many layers."""
    from shardlog.examples import train_step

    train_step.LAYERS, train_step.PARAMS["layers"] = layers, [train_step.LAYER] * layers
    return str(train_step.lower()[0].as_text())


@dataclass(frozen=True)
class Measured:
    """A compiled program: bytes that a device sends, and collectives."""

    bytes: float
    count: int


def by_xla(result: Any, devices: Any) -> Any:
    """The program as XLA partitions it."""
    from shardlog.importers.sources.compiling import load

    return load(undecided(result), devices)


def undecided(result: Any) -> Any:
    """The module that XLA is given: shardings stand at its boundary, of what is whole as well, and in
    constraints."""
    from shardlog.exporters.bind import bind
    from shardlog.program.mlir.modules import copy_of, ops_in

    module = copy_of(result.module)
    with module.context:
        for op in ops_in(module):
            if op.operation.name == "sdy.reshard":  # none of the user's
                op.results[0].replace_all_uses_with(op.operands[0])
                op.operation.erase()
    return bind(module, result.result.book.traits, only=())


def measured(loaded: Any) -> Measured:
    """What a compiled program moves."""
    from shardlog.cost.hlo import hlo_collectives

    kinds = hlo_collectives("\n".join(m.to_string() for m in loaded.hlo_modules())).values()
    return Measured(sum(sent for _, sent in kinds), sum(n for n, _ in kinds))


def main() -> None:
    """Prints the table, and geometric means over programs of which XLA moves something."""
    import jax
    import shardlog

    warnings.simplefilter("ignore")
    devices, ratios = jax.devices(), list[list[float]]()
    head = f"{'':28}{'XLA':>13}{'as decided, least':>20}{'collectives':>18}{'choice':>9}"
    print(f"{head}{'bound':>8}")
    for name, source in programs("--all" in sys.argv):
        result = shardlog.run(source)
        kept = result.partition(keep_shardings=True)
        start = process_time()
        least = result.partition()
        took = process_time() - start
        bound = result.partition(seconds=60).found
        gap = f"{bound.cost / bound.bound - 1:8.1%}" if bound and bound.bound > 0 else f"{'':8}"
        loaded = [by_xla(result, devices), *(program.compile()._loaded for program in (kept, least))]
        xla, *ours = map(measured, loaded)
        bytes_, counts = "", f"{xla.count} {ours[0].count} {ours[1].count}"
        if xla.bytes:
            row = [max(each.bytes, 1) / xla.bytes for each in ours]
            ratios.append(row)
            bytes_ = " ".join(f"{ratio:.2f}" for ratio in row)
        print(f"{name:28}{xla.bytes:13,.0f}{bytes_:>20}{counts:>18}{took:9.2f}{gap}", flush=True)
    means = [geometric_mean(column) for column in zip(*ratios, strict=True)]
    print(f"geometric means: bytes {means[0]:.2f}, {means[1]:.2f}")


if __name__ == "__main__":
    main()

"""Partitioned programs on a GPU, ours beside XLA's: `python -m shardlog.tests.bench.gpu [MODULE...]`.

One GPU is the first of eight; XLA mocks the others, and what they would send. The same program with the same
shardings at its boundary is compiled as XLA partitions it, and as we do, with the shardings that propagation
decided, with those by which least moves, and with those that take the least time on H100s. They run in turn;
a step is the median of several, by the clock, and computing is what the GPU is busy with in one, by XLA's
profiler: small kernels end before the next ones are launched. Time is computing, and what the collectives
that are left take as we say. Bytes and collectives are counted in the optimised HLO, memory is what XLA says.
Needs a GPU and XLA's plugin for it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from ..support.tools import gpu
from ..support.ways import ways
from .beside import moved, over, print_means, print_row
from .llama import Llama

_MACHINE, _DEVICES, _STEPS = "h100", 8, 9
_FLAGS = "--xla_gpu_shard_autotuning=false"  # it waits for the others, which are none
FIGURES = ("step", "computing", "time", "bytes", "memory")
WAYS = ways(_MACHINE)


@dataclass(frozen=True)
class Measured:
    """A compiled program: seconds of a step without what others do, of computing, and of this with
    collectives; bytes that a device sends, bytes of its memory, and collectives."""

    step: float
    computing: float
    time: float
    bytes: float
    memory: int
    count: int


def programs() -> Iterator[tuple[str, str]]:
    """The names of programs, and the programs."""
    from .bytes_moved import example

    if len(sys.argv) > 1:
        yield from ((Path(name).stem, Path(name).read_text(encoding="utf-8")) for name in sys.argv[1:])
        return
    yield "8 billion parameters, 4 layers", Llama((2, 4), 4, 32768, 8, 2048).text("cuda")
    yield "train step, 4 layers", example(4)


def measured(programs: list[Any], arguments: list[Any]) -> list[Measured]:
    """Programs that take these arguments, run in turn."""
    import jax
    from shardlog.cost.machine import machine

    def seconds(program: Any) -> float:
        given = [_copied(array) for array in arguments]  # for programs take them
        jax.block_until_ready(given)  # type: ignore[no-untyped-call]
        start = perf_counter()
        _run(program, given)
        return perf_counter() - start

    rounds = [[seconds(program) for program in programs] for _ in range(1 + _STEPS)][1:]
    found = []
    for program, times in zip(programs, zip(*rounds, strict=True), strict=True):
        step, computing = median(times), busy(program, [_copied(array) for array in arguments])
        sent = moved("\n".join(part.to_string() for part in program.hlo_modules()), machine(_MACHINE))
        memory = program.get_compiled_memory_stats()
        held = memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes
        total = held + memory.temp_size_in_bytes
        time = computing + sent.seconds
        found.append(Measured(step, computing, time, sent.bytes, total, sent.collectives))
    return found


def busy(program: Any, given: list[Any]) -> float:
    """The seconds for which the kernels and copies of a program take the GPU; it may take what is given."""
    import jax
    from jax.profiler import ProfileData

    jax.block_until_ready(given)  # type: ignore[no-untyped-call]
    with TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            _run(program, given)
        (path,) = Path(folder).rglob("*.xplane.pb")
        planes = [plane for plane in ProfileData.from_file(str(path)).planes if "/device:GPU" in plane.name]
        events = (event for plane in planes for line in plane.lines for event in line.events)
        return sum(float(event.duration_ns) for event in events) * 1e-9


def _run(program: Any, given: list[Any]) -> None:
    """Runs a program, and waits for what it gives."""
    import jax

    parts = program.execute_sharded(given).disassemble_into_single_device_arrays()
    jax.block_until_ready(parts)  # type: ignore[no-untyped-call]


def _copied(array: Any) -> Any:
    import jax

    parts = [shard.data.copy() for shard in array.addressable_shards]
    return jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)


def placed(session: Any, devices: Any) -> list[Any]:
    """The parts of random arguments that the devices hold that are there."""
    import jax
    import numpy as np
    from shardlog.executing.values import boundary
    from shardlog.runs.jax import device_shardings

    rng, found = np.random.default_rng(0), []
    for value, sharding in zip(
        boundary(session.result)[0], device_shardings(session.result, devices)[0], strict=True
    ):
        shape = sharding.shard_shape(value.shape)
        exact = value.dtype.kind in "biu"
        part = rng.integers(0, 2, shape) if exact else 0.02 * abs(rng.standard_normal(shape))
        parts = [jax.device_put(part.astype(value.dtype), to) for to in sharding.addressable_devices]
        found.append(jax.make_array_from_single_device_arrays(value.shape, sharding, parts))
    return found


def main() -> None:
    """Prints the table, and geometric means."""
    if gpu() is None:
        sys.exit("needs a GPU, and XLA's plugin for CUDA, as in pip install 'jax[cuda12]'")
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_FLAGS}"
    os.environ["JAX_PLATFORMS"] = "cuda,cpu"
    import jax

    jax.config.update("mock_num_gpu_processes", _DEVICES)  # type: ignore[no-untyped-call]
    import shardlog
    from shardlog.cost.machine import machine

    from .bytes_moved import by_xla

    warnings.simplefilter("ignore")
    devices, ratios = jax.devices()[:_DEVICES], list[list[list[float]]]()
    print(f"{devices[0].device_kind}, and {machine(_MACHINE).name} for what is sent")
    print_row("program", "partitioned by", "collectives", "predicted", *FIGURES)
    print("|---" * (4 + len(FIGURES)) + "|", flush=True)
    for name, text in programs():
        result = shardlog.run(text)
        partitioned = [result.partition(**way) for way in WAYS.values()]
        loaded = [by_xla(result, devices), *(each.compile(devices)._loaded for each in partitioned)]
        xla, *ours = measured(loaded, placed(result, devices))
        predicted = []
        for program, each in zip(partitioned, ours, strict=True):
            cost = program.cost(_MACHINE)
            alone = cost.seconds - sum(item.seconds for item in cost.collectives())
            predicted.append(f"{alone / each.computing:.2f}")
        ratios.append([over(each, xla, FIGURES) for each in ours])
        took = (f"{1000 * seconds:.3g} ms" for seconds in (xla.step, xla.computing))
        print_row(name, "XLA", str(xla.count), "", *took, "", f"{xla.bytes:,.0f} B", "")
        for way, each, share, figures in zip(WAYS, ours, predicted, ratios[-1], strict=True):
            print_row("", way, str(each.count), share, *(f"{ratio:.2f}" for ratio in figures))
    print_means(list(WAYS), ratios, empty=2)


if __name__ == "__main__":
    main()

"""Found plans on a GPU, in at most eight minutes: `python -m shardlog.tests.bench.found_on_gpu [--on cpu]`.

Order: five plans of one train step, from the best one to strategies that cost more, run as the first of eight
devices on one GPU; XLA mocks the others. The order of their costs has to be that of the computing that is
measured, with the collectives as they are costed. Plans within the tolerance of each other may change places.

Results: eight processes, which may share the GPU, run a found plan of a small train step. The results have to
be those of one device.

Exits with 1 if one of both does not hold. With ``--on cpu`` all runs on CPU devices, and steps are measured
by the clock: this shows that the script runs, and says nothing of a GPU's order.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from itertools import combinations
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

_MACHINE, _MESH, _PLANS, _STEPS = "h100", "data=4,model=2", 5, 7
_TOLERANCE = 0.03  # a difference in time that a measurement does not tell


class Plan(NamedTuple):
    """A plan: its name, the seconds that it costs, and those that were measured."""

    name: str
    cost: float
    measured: float


def misordered(plans: Sequence[Plan], tolerance: float = _TOLERANCE) -> list[tuple[str, str]]:
    """The pairs of plans of which the one that costs less was measured to take longer."""
    misordered = []
    for one, other in combinations(sorted(plans, key=lambda plan: plan.cost), 2):
        if other.cost > one.cost * (1 + tolerance) and one.measured > other.measured * (1 + tolerance):
            misordered.append((one.name, other.name))
    return misordered


def spread(names: Sequence[str], count: int) -> list[str]:
    """So many of some names, the first and the last, and others at equal distances."""
    if len(names) <= count:
        return list(names)
    return [names[round(n * (len(names) - 1) / (count - 1))] for n in range(count)]


def train_step(layers: int, width: int, rows: int) -> str:
    """A train step of dense layers."""
    import jax
    import jax.numpy as jnp

    def array(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32)  # type: ignore[no-untyped-call]

    def loss(params: Any, batch: Any) -> Any:
        x = batch["x"]
        for up, down in params:
            x = x + jnp.tanh(x @ up) @ down
        return ((x - batch["y"]) ** 2).mean()

    def step(params: Any, batch: Any) -> Any:
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params, batch))

    params = [(array(width, 4 * width), array(4 * width, width))] * layers
    batch = {"x": array(rows, width), "y": array(rows, width)}
    lowered = jax.jit(step).trace(params, batch).lower(lowering_platforms=("cpu", "cuda"))
    return str(lowered.as_text(debug_info=True))


def ordered(platform: str) -> bool:
    """Measures five plans, prints them, and returns whether their costs are in order."""
    import jax
    from shardlog.autosharding.options import AutoOptions
    from shardlog.autosharding.searching import Search
    from shardlog.cost.machine import machine
    from shardlog.session import Session

    from .beside import moved, print_row
    from .gpu import busy, placed

    sizes = (4, 2048, 8192) if platform == "cuda" else (2, 64, 256)
    search = Search(train_step(*sizes), _MESH, AutoOptions(topology=_MACHINE), lambda what, done: None)
    costed = sorted([*search.costed()[:1], *search.strategies()], key=lambda each: each.cost.seconds)
    different = {each.cost.seconds: each for each in reversed(costed)}
    by_name = {each.candidate.name: each for each in sorted(different.values(), key=lambda e: e.cost.seconds)}
    devices, plans = jax.devices()[:8], list[Plan]()
    print_row("plan", "cost", "measured", "of this computing", "ratio")
    print("|---" * 5 + "|", flush=True)
    for name in spread(list(by_name), _PLANS):
        result = Session(search.run(by_name[name].candidate))
        program = result.partition(topology=_MACHINE).compile(devices)._loaded
        sent = moved("\n".join(part.to_string() for part in program.hlo_modules()), machine(_MACHINE))
        take = busy if platform == "cuda" else _clocked
        computing = median(take(program, placed(result, devices)) for _ in range(_STEPS))
        seconds = computing + sent.seconds if platform == "cuda" else computing
        plans.append(Plan(name, by_name[name].cost.seconds, seconds))
        times = (f"{1e3 * each:.3g} ms" for each in (plans[-1].cost, seconds, computing))
        print_row(name, *times, f"{plans[-1].cost / seconds:.2f}")
    wrong = misordered(plans)
    for one, other in wrong:
        print(f"{one} costs less than {other}, and took longer")
    print(f"{len(plans)} plans, {len(wrong)} pairs out of order")
    return not wrong


def _clocked(program: Any, given: list[Any]) -> float:
    """The seconds of a step by the clock."""
    import jax

    jax.block_until_ready(given)  # type: ignore[no-untyped-call]
    start = perf_counter()
    parts = program.execute_sharded(given).disassemble_into_single_device_arrays()
    jax.block_until_ready(parts)  # type: ignore[no-untyped-call]
    return perf_counter() - start


def right(platform: str) -> bool:
    """Whether eight processes get the results of one device by a found plan."""
    from shardlog.autosharding.automatic import plan, session_of
    from shardlog.autosharding.options import AutoOptions

    from ..partition.ranks import wrong

    text = train_step(2, 64, 256)
    options = AutoOptions(mesh=_MESH, topology=_MACHINE, keep=("batch=data", "params[0]=-,model"))
    module = str(session_of(text, plan(text, options)).result.module)
    found = wrong([module], 8, platform)
    for line in found:
        print(line)
    print(f"eight processes: {'the results of one device' if not found else 'other results'}")
    return not found


def main() -> int:
    """Checks both; returns the exit status."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--on", choices=("cuda", "cpu"), default="cuda")
    platform: str = parser.parse_args().on
    if platform == "cuda":
        from ..support.tools import gpu
        from .gpu import _FLAGS

        if gpu() is None:
            sys.exit("needs a GPU, and XLA's plugin for CUDA, as in pip install 'jax[cuda12]'")
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_FLAGS}"
        os.environ |= {"JAX_PLATFORMS": "cuda,cpu", "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    else:
        os.environ["JAX_PLATFORMS"] = "cpu"
        os.environ["XLA_FLAGS"] = (
            f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
        )
    import jax

    if platform == "cuda":
        jax.config.update("mock_num_gpu_processes", 8)  # type: ignore[no-untyped-call]
    same = right(platform)
    in_order = ordered(platform)
    return int(not (same and (in_order or platform == "cpu")))


if __name__ == "__main__":
    sys.exit(main())

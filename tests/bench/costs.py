"""Predicted costs beside XLA's figures and the bytes that are sent: `python -m shardlog.tests.bench.costs`.

The first table has ten shardings of one train step: the bytes that shardlog predicts for a device, and those
counted in the program that XLA compiled for eight CPU devices. The second has the programs of the
tests: the operations and the peak memory of the partitioned program, shardlog's beside XLA's.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

MESH = "data=2,model=4"
_WIDTH, _HIDDEN, _BATCH, _LAYERS = 256, 1024, 64, 2

# The shardings of the weights (up and down) and of the batch.
SHARDINGS = {
    "data": ("[{}, {}]", "[{}, {}]", '[{"data"}, {}]'),
    "all data": ("[{}, {}]", "[{}, {}]", '[{"data", "model"}, {}]'),
    "Megatron": ('[{}, {"model"}]', '[{"model"}, {}]', "[{}, {}]"),
    "Megatron and data": ('[{}, {"model"}]', '[{"model"}, {}]', '[{"data"}, {}]'),
    "rows": ('[{"model"}, {}]', '[{"model"}, {}]', '[{"data"}, {}]'),
    "columns": ('[{}, {"model"}]', '[{}, {"model"}]', '[{"data"}, {}]'),
    "FSDP": ('[{"data"}, {}]', '[{"data"}, {}]', '[{"data"}, {}]'),
    "FSDP over all": ('[{"data", "model"}, {}]', '[{"data", "model"}, {}]', '[{"data", "model"}, {}]'),
    "Megatron and FSDP": ('[{"data"}, {"model"}]', '[{"model"}, {"data"}]', '[{"data"}, {}]'),
    "features": ('[{"model"}, {}]', '[{}, {"model"}]', '[{"data"}, {"model"}]'),
}


def lowered() -> Any:
    """A train step of perceptrons, without shardings."""
    import jax
    import jax.numpy as jnp

    def step(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            y = x
            for up, down in params:
                y = y + jnp.tanh(y @ up) @ down
            return jnp.mean(y**2)

        return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))

    def array(*shape: int) -> Any:
        return jax.ShapeDtypeStruct(shape, jnp.float32)  # type: ignore[no-untyped-call]

    layer = array(_WIDTH, _HIDDEN), array(_HIDDEN, _WIDTH)
    return jax.jit(step).lower([layer] * _LAYERS, array(_BATCH, _WIDTH))


def sent() -> list[tuple[str, float, float]]:
    """The ten shardings, by the bytes that we say that a device sends; and those that it sends."""
    import shardlog
    from shardlog.cost.hlo import hlo_bytes

    program, found = lowered(), []
    for name, (up, down, x) in SHARDINGS.items():
        annotate = [f"params[{n}][{k}]={s}" for n in range(_LAYERS) for k, s in enumerate((up, down))]
        # Results are sharded as what they replace.
        annotate += [f"result[{n}][{k}]={s}" for n in range(_LAYERS) for k, s in enumerate((up, down))]
        run = shardlog.run(program, mesh=MESH, annotate=[*annotate, f"x={x}"])
        partitioned = run.partition(keep_shardings=True)
        found.append((name, partitioned.cost().sent, hlo_bytes(partitioned.compile().hlo)))
    return sorted(found, key=lambda row: row[1])


def programs() -> list[tuple[str, float, float, int, int]]:
    """The programs of the tests: operations, ours and XLA's, and peak memory, ours and XLA's."""
    import shardlog

    from .bytes_moved import programs

    found = []
    for name, source in programs(True):
        if "24" in name:
            continue
        ahead = shardlog.run(source).partition(keep_shardings=True).compile_ahead("cpu")
        memory = ahead.memory
        flops = ahead.compiled_flops or 0.0
        found.append((name, ahead.flops, flops, memory.expected, memory.total))
    return found


def main() -> None:
    """Prints the tables."""
    warnings.simplefilter("ignore")
    rows = sent()
    print("| sharding | predicted | sent |\n|---|---|---|")
    for name, said, counted in rows:
        print(f"| {name} | {said:,.0f} | {counted:,.0f} |")
    counts = [counted for *_, counted in rows]
    print("in the same order" if counts == sorted(counts) else "in another order", flush=True)
    print("\n| program | operations | memory | |\n|---|---|---|---|")
    within = total = 0
    for name, flops, theirs, memory, others in programs():
        ratio = f"{flops / theirs:.2f}" if theirs else "-"
        print(f"| {name} | {ratio} | {memory / others:.2f} | {others:,} |", flush=True)
        within, total = within + (0.8 <= memory / others <= 1.2), total + 1
    print(f"peak memory within 20 % on {within} of {total}")


if __name__ == "__main__":
    main()

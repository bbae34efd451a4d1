"""A model of 8 billion parameters on a pod: `python -m shardlog.tests.bench.pod`.

A train step (Adam, layers scanned and computed again, products in bf16) of a transformer with the sizes of
Llama 3 8B is compiled ahead of time with libtpu for 256 TPUs v5e, parameters in parts over both axes of the
mesh: as XLA partitions it, and as we do, with least bytes and in the least time. What is measured is as in
`tpu.py`. Each compilation takes libtpu about two minutes.
"""

from __future__ import annotations

import warnings

from . import tpu
from .beside import over
from .llama import Llama

MODEL = Llama(mesh=(64, 4), layers=32, vocabulary=128256, batch=128, sequence=4096)


def main() -> None:
    """Prints what each program moves, holds and takes."""
    import shardlog
    from shardlog.program.mlir.modules import bytecode_of

    from .bytes_moved import undecided

    warnings.simplefilter("ignore")
    result, devices = shardlog.run(MODEL.text("tpu")), 256
    module = undecided(result)
    with module.context:
        xla = tpu.compiled(bytecode_of(module), "16x16", devices)
    print(f"XLA: {xla.bytes:,.0f} bytes in {xla.count:,} collectives, {xla.memory:,} bytes of memory")
    for name, way in tpu.WAYS.items():
        ours = tpu.compiled(bytecode_of(result.partition(**way).module_for("tpu")), "16x16", devices)
        ratios = zip(tpu.FIGURES, over(ours, xla, tpu.FIGURES), strict=True)
        said = ", ".join(f"{what} {ratio:.2f}" for what, ratio in ratios)
        print(f"{name}: {said}, {ours.count:,} collectives", flush=True)


if __name__ == "__main__":
    main()

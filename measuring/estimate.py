"""The estimates of XLA for TPUs for programs, ahead of time: no TPU is needed.

What is written is what ``data`` reads. The time is the cycles that XLA writes beside each op of the optimised
HLO, loops counted by their turns, over the clock. Programs that do not compile, or for which XLA has no
estimate, are named and left out.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ..cost.hlo import hlo_cycles
from ..cost.targets import compile_for, read_target
from ..errors import ShardlogError
from .data import read_programs, write

_CLOCK = {"v4": 1.05e9, "v5e": 1.5e9, "v5p": 1.75e9, "v6e": 1.75e9}  # cycles per second


def run(source: Path, out: Path, target: str, seconds: float) -> None:
    """Writes the estimates of programs for a target such as tpu:v5e:2x2, until the time is over.

    Raises ShardlogError for a target that is no TPU, and for a file that has no programs.
    """
    rows, estimates = read_programs(source), list[dict[str, Any]]()
    tpu, start = read_target(target), time.monotonic()
    if tpu.platform != "tpu":
        raise ShardlogError("only XLA for TPUs has estimates", where="--target", hint="as in tpu:v5e:2x2")
    for row in rows:
        if time.monotonic() - start > seconds:
            break
        try:
            hlo = compile_for(row["text"].encode(), tpu, 1, "sdy-manual")["hlo"]
        except ShardlogError as error:
            print(f"{row['kind']} {row['name']}: {error.message[:200]}", flush=True)
            continue
        if cycles := hlo_cycles(hlo):
            estimates.append(
                {**row, "busy_us": round(cycles / _CLOCK[tpu.name] * 1e6, 2), "count": 0, "hlo": hlo}
            )
        else:
            print(f"{row['kind']} {row['name']}: XLA has no estimate", flush=True)
    write(out, {"device": f"{target}, as XLA estimates", "rows": estimates})
    print(f"{len(estimates)} of {len(rows)} programs estimated")

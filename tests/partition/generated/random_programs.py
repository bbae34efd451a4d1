"""Random programs, partitioned and run on eight devices, compared with themselves on one.

    python -m shardlog.tests.partition.generated.random_programs --count N --seed S

The exit status is 1 where any differs. Program ``i`` of a seed is always the same.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import shardlog
from shardlog.importers.sources.text import make_context

from ..running import ENDED, Array, run_partitioned, run_whole, survive
from .random_ops import OPS
from .writing import Program, mesh

FORMS = ("replica", "replica", "replica", "manual", "sdy-manual")
NAMES = sorted({op.__name__.strip("_") for op in OPS})
XLA_UNABLE = (ENDED,)  # by a mistake of its own


def write(seed: int, number: int, only: Sequence[str] = ()) -> tuple[Program, list[str]]:
    """A random program, and the random ops in it."""
    random = Random(f"{seed}/{number}")
    meshes = [mesh(random)]
    if random.random() < 0.2:
        count = int(np.prod([size for _, size in meshes[0].axes]))
        meshes.append(mesh(random, "other", count))
    program, ops = Program(random, meshes, random.choice((0.3, 0.6, 0.9))), []
    among = [op for op in OPS if not only or op.__name__.strip("_") in only]
    for _ in range(random.randint(2, 5)):
        op = random.choice(among)
        ops.append(op.__name__)
        op(program)
    if not program.results:
        program.give(program.argument((4,)))
    return program, ops


def differs(got: Array, expected: Array) -> str:
    """How two results differ; "" where they do not."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return f"{got.dtype}{got.shape} and not {expected.dtype}{expected.shape}"
    wide: Any = np.complex128 if got.dtype.kind == "c" else np.float64
    if got.dtype.kind in "biu" or "int" in got.dtype.name:
        same = got == expected
    else:
        a, b = got.astype(wide), expected.astype(wide)
        eps = float(ml_dtypes.finfo(got.real.dtype).eps)  # type: ignore[no-untyped-call]
        scale = np.max(np.abs(np.where(np.isfinite(b), b, 0)), initial=0)
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= 16 * eps * max(scale, 1e-30)
        same = (a == b) | (np.isnan(a) & np.isnan(b)) | near
    if np.all(same):
        return ""
    first = tuple(map(int, np.argwhere(~same)[0]))
    return f"{np.sum(~same)} of {same.size} differ; at {first} {got[first]} and not {expected[first]}"


def check(program: Program, form: Any = "replica", *, keep: bool = True, trace: bool = False) -> str:
    """What is wrong with a program; "" where nothing is. ``keep``: values are sharded as propagation says;
    ``trace``: errors are raised."""
    try:
        result = shardlog.run(program.text(True))
        partitioned = result.partition(form, keep_shardings=keep)
        got = run_partitioned(result, partitioned, program.arrays)
    except Exception as error:  # whatever it is, it is wrong
        if trace:
            raise
        return f"{type(error).__name__}: {' '.join(str(error).split())[:600]}"
    from jaxlib.mlir import ir

    with make_context():
        expected = run_whole(ir.Module.parse(program.text(False)), program.arrays)
    for number, (one, other) in enumerate(zip(got, expected, strict=True)):
        if message := differs(one, other):
            return f"result {number}: {message[:400]}"
    return ""


def checked(seed: int, number: int, only: Sequence[str] = ()) -> str:
    """What is wrong with a program of a seed; "" where nothing is."""
    program, ops = write(seed, number, only)
    random = Random(number)
    form = random.choice(FORMS if len(program.meshes) == 1 else FORMS[:-1])
    keep = random.random() < 0.5
    message = check(program, form, keep=keep)
    how = f"{form}, {'as decided' if keep else 'least'}"
    return message and f"program {number} of seed {seed} ({how}; {', '.join(ops)}): {message}"


def main() -> int:
    """Runs programs; 1 where any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help=f"of these ops: {', '.join(NAMES)}")
    parser.add_argument("--from", dest="first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--to", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--here", action="store_true", help="in this process, which XLA may end")
    options = parser.parse_args()
    numbers = range(options.first, options.to or options.first + options.count)
    if options.here:
        for number in numbers:
            print(f"{number} {checked(options.seed, number, options.only)}", flush=True)
        return 0
    wrong = refused = 0
    passed = ["--seed", str(options.seed), *(["--only", *options.only] if options.only else [])]
    for number, message in survive("shardlog.tests.partition.generated.random_programs", numbers, passed):
        if message:
            unable = any(text in message for text in XLA_UNABLE)
            wrong, refused = wrong + (not unable), refused + unable
            print(f"{number} of {len(numbers)}: {message}", flush=True)
    print(f"{options.count} programs: {wrong} wrong, {refused} that XLA does not run")
    return int(wrong > 0)


if __name__ == "__main__":
    import os

    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.exit(main())

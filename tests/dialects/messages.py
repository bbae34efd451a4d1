"""Reshards as calls of MPI, read and run by LLVM's main branch: as many processes as devices, of a real MPI.

    python -m shardlog.tests.dialects.messages --peer PYTHON --runner LIBRARY [--reshards N] [--seed S]

The peer is a Python in which ``torch_mlir``, ``mpi4py`` and ``mpich`` are installed; the library is
``libmlir_c_runner_utils.so`` of any LLVM. Random reshards of a matrix on 2x3 and 2x2x2, and products that are
reduced, are written by ``partition --as mpi``, lowered by the peer's own passes (``convert-to-llvm``), and
compiled by it. Prints how many give each process the right part.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
import tempfile
import warnings
from itertools import product
from pathlib import Path

import numpy as np

from ..exporters.dialects.test_mpi import PRODUCT, RESHARD, mpi, part, shardings

_PASSES = (
    "builtin.module(one-shot-bufferize{bufferize-function-boundaries=1 "
    "function-boundary-type-conversion=identity-layout-map},convert-linalg-to-loops,expand-strided-metadata,"
    "lower-affine,convert-scf-to-cf,convert-to-llvm,reconcile-unrealized-casts)"
)
_PEER = """
import ctypes, sys
from pathlib import Path
import numpy as np
from mpi4py import MPI
from torch_mlir import ir
from torch_mlir.execution_engine import ExecutionEngine
from torch_mlir.passmanager import PassManager
from torch_mlir.runtime import get_ranked_memref_descriptor, ranked_memref_to_numpy

folder, passes, *libraries = sys.argv[1:]
world = MPI.COMM_WORLD
for case in sorted(Path(folder).glob("*.mlir")):
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(case.read_text())
        (main,) = [op for op in module.body.operations if op.operation.name == "func.func"]
        main.attributes["llvm.emit_c_interface"] = ir.UnitAttr.get()
        PassManager.parse(passes).run(module.operation)
        engine = ExecutionEngine(module, shared_libs=libraries)
        held = np.load(case.with_suffix(".npz"))
        given = [np.ascontiguousarray(held[f"{world.rank}_{i}"]) for i in range(len(held) // world.size - 1)]
        wanted = held[f"{world.rank}_wanted"]
        result = get_ranked_memref_descriptor(np.zeros_like(wanted))
        descriptors = [ctypes.pointer(get_ranked_memref_descriptor(x)) for x in given]
        engine.invoke("main", *(ctypes.pointer(ctypes.pointer(d)) if i == 0 else ctypes.pointer(d)
                                for i, d in enumerate([result, *descriptors])))
        found = ranked_memref_to_numpy(ctypes.pointer(result))
        right = world.allreduce(int(np.array_equal(found, wanted)), MPI.MIN)
    if world.rank == 0:
        print(case.stem, "right" if right else "wrong", flush=True)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", required=True, help="a Python with torch_mlir, mpi4py and mpich")
    parser.add_argument("--runner", required=True, help="libmlir_c_runner_utils.so")
    parser.add_argument("--reshards", type=int, default=40, help="on each grid")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    draw = random.Random(options.seed)
    mpiexec = Path(options.peer).absolute().with_name("mpiexec")
    library = mpiexec.parents[1] / "lib" / "libmpi.so.12"
    for grid in ((2, 3), (2, 2, 2)):
        with tempfile.TemporaryDirectory() as folder:
            for number in range(options.reshards):
                write(Path(folder) / f"{number:04}", grid, draw)
            command = [mpiexec, "-n", str(np.prod(grid)), options.peer, "-c", _PEER, folder, _PASSES]
            done = subprocess.run(
                [*command, library, options.runner], capture_output=True, text=True, check=False
            )
            if done.returncode:
                sys.exit(done.stderr)
            lines = [line.split() for line in done.stdout.splitlines()]
            for name, said in lines:
                if said == "wrong":
                    print((Path(folder) / f"{name}.mlir").read_text())
            right = sum(said == "right" for _, said in lines)
            sizes = "x".join(map(str, grid))
            print(f"{sizes}: {right} of {options.reshards} programs give each process its part")


def write(path: Path, grid: tuple[int, ...], draw: random.Random) -> None:
    """Writes a random program, and what each process is given and gives."""
    devices = list(product(*map(range, grid)))
    every, values = shardings(len(grid), 2), np.random.default_rng(draw.randrange(1 << 30))
    start, end = draw.choice(every), draw.choice(every)
    x = values.integers(-9, 9, (24, 24)).astype(np.float32)
    text = RESHARD.format(grid="x".join(map(str, grid)), shape="24x24", start=start, end=end)
    given, whole = [[part(x, start, device, grid)] for device in devices], x
    if draw.random() < 0.3:
        axes = draw.sample(range(len(grid)), draw.randint(1, len(grid)))
        x, y = (values.integers(-9, 9, shape).astype(np.float32) for shape in ((24, 24), (24, 24)))
        text = (
            PRODUCT.replace("2x3", "x".join(map(str, grid))).replace("6x12", "24x24").replace("12x6", "24x24")
        )
        text = text.replace("6x6", "24x24").format(axes, end)
        given = [[part(x, [[], axes], d, grid), part(y, [axes, []], d, grid)] for d in devices]
        whole = x @ y
    written = mpi(text)
    takes = [f"%arg{i}: tensor<{'x'.join(map(str, value.shape))}xf32>" for i, value in enumerate(given[0])]
    if "stablehlo." in written or not all(each in written for each in takes):
        # What LLVM does not lower; or completion has cut an argument along the result's axes, too.
        write(path, grid, draw)
        return
    path.with_suffix(".mlir").write_text(written)
    arrays = {f"{r}_{i}": value for r, each in enumerate(given) for i, value in enumerate(each)}
    wanted = {f"{r}_wanted": part(whole, end, device, grid) for r, device in enumerate(devices)}
    np.savez(path.with_suffix(".npz"), **arrays, **wanted)


if __name__ == "__main__":
    main()

"""Results of LLVM's own tests by numbers: functions partitioned by a peer and here run on devices.

    LLVM=<a checkout of llvm/llvm-project> \
        python -m shardlog.tests.dialects.results --peer PYTHON [FILE ...]

The peer is a Python in which ``torch_mlir`` is installed (see ``completion.py``). Each function with
annotations in the tests of the dialect shard, or in the files that are named, is partitioned by the peer's
pass ``shard-partition``. Its program and the one from here run on the same numbers, and each device's part is
compared with that of the whole. Prints a table: how many functions of a file run, and are right here; how
many the peer refuses, and how many of its programs are right and wrong. Functions that are wrong here are
shown.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before JAX is imported
    os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=64")
    os.environ.setdefault("JAX_ENABLE_X64", "1")

import jax
import numpy as np
import shardlog
from jaxlib.mlir import ir
from shardlog.errors import ShardlogError
from shardlog.executing.execution import alone_on
from shardlog.program.mlir.modules import boundary_attributes

from ..exporters.dialects.test_mpi import part
from .conformance import functions

FOLDER = "Dialect/Shard"
COLUMNS = ("functions", "run", "right here", "peer refuses", "peer right", "peer wrong")
_GRID = re.compile(r"^ *shard\.grid .*$", re.MULTILINE)
_PEER = """
import json, sys
from torch_mlir import ir
from torch_mlir.passmanager import PassManager

def one(text):
    context = ir.Context()
    context.attach_diagnostic_handler(lambda diagnostic: True)
    try:
        module = ir.Module.parse(text, context)
        passes = PassManager.parse("builtin.module(func.func(shard-partition),canonicalize)", context)
        passes.run(module.operation)
    except Exception:
        return None
    return str(module)

print(json.dumps([one(text) for text in json.load(sys.stdin)]))
"""


def axes_of(entry: Any) -> tuple[str, list[list[int]]]:
    """The grid and the lists of axes of a value of the boundary."""
    text = str(entry["sdy.sharding"]) if "sdy.sharding" in entry else "@, []"
    grid, dims = re.findall(r"@(\w*), \[(.*)\]", text)[0]
    lists = re.findall(r"\{([^{}]*)\}", dims)
    return grid, [[int(axis) for axis in re.findall(r'"(\d+)"', each)] for each in lists]


class Case:
    """A function, its inputs and what it gives as a whole."""

    def __init__(self, text: str) -> None:
        self.session = shardlog.run(text, propagation="completion")
        result = self.session.result
        function: Any
        (function,) = (op for op in result.module.body.operations if op.operation.name == "func.func")
        with result.module.context:
            self.given, self.gives = (
                [axes_of(entry) for entry in boundary_attributes(function, label)]
                for label in ("arg_attrs", "res_attrs")
            )
        self.grid = next(grid for grid, _ in (*self.given, *self.gives) if grid)
        shape = re.findall(rf"shard.grid @{self.grid}\(shape = ([\dx]+)\)", text)[0]
        self.sizes = [int(size) for size in shape.split("x")]
        draw = np.random.default_rng(1)
        types = [ir.RankedTensorType(type_) for type_ in function.type.inputs]
        self.inputs = [draw.integers(1, 9, t.shape).astype(_dtype(str(t.element_type))) for t in types]
        self.devices = jax.devices()[: int(np.prod(self.sizes))]
        self.compiled = self.session.partition().compile(self.devices)
        self.whole = [np.asarray(v) for v in alone_on(result, self.devices)(self.inputs)]

    def parts(self, values: list[Any], lists: list[tuple[str, list[list[int]]]]) -> list[list[Any]]:
        """What each device has of each value."""
        return [
            [part(value, axes, device, self.sizes) for value, (_, axes) in zip(values, lists, strict=True)]
            for device in product(*map(range, self.sizes))
        ]

    def is_right_here(self) -> bool:
        leaves = jax.tree.leaves(self.compiled(*self.inputs))
        return all(_same(np.asarray(a), b) for a, b in zip(leaves, self.whole, strict=True))

    def is_right(self, text: str) -> bool:
        """Whether a program of each device gives the parts of the whole."""
        given = self.parts(self.inputs, self.given)
        wanted = self.parts(self.whole, self.gives)
        if "shard." not in _GRID.sub("", text):  # nothing is sent
            text = _with_identity(text, self.grid)
        compiled = shardlog.run(text).partition().compile(self.devices)
        leaves = jax.tree.leaves(compiled(*(np.stack(each) for each in zip(*given, strict=True))))
        return all(
            _same(np.asarray(output)[device], value)
            for device, row in enumerate(wanted)
            for output, value in zip(leaves, row, strict=True)
        )


def _with_identity(text: str, grid: str) -> str:
    """A program of each device with one op of the dialect, by which it is known as such."""
    argument = re.search(r"(%\w+): (tensor<[^>]*>)", text)
    assert argument is not None
    line = (
        f"%none = shard.all_reduce {argument[1]} on @{grid} grid_axes = [] : {argument[2]} -> {argument[2]}"
    )
    head, brace, rest = text.partition(") -> ")
    types, brace_of_body, body = rest.partition("{\n")
    return f"{head}{brace}{types}{brace_of_body}    {line}\n{body}"


def _same(found: Any, wanted: Any) -> bool:
    return found.shape == wanted.shape and np.allclose(found, wanted, rtol=1e-4, atol=1e-4, equal_nan=True)


def _dtype(element: str) -> Any:
    return np.dtype({"f": "f", "i": "i"}[element[0]] + str(int(element[1:]) // 8))


def outcomes(text: str, theirs: str | None, verbose: bool) -> Iterator[str]:
    """The columns in which a function counts."""
    yield "functions"
    try:
        case = Case(text)
    except ShardlogError as error:
        if verbose:
            print(f"does not run: {error.message}")
        return
    except (IndexError, StopIteration, ValueError):  # sizes that are not known, or no annotation
        return
    yield "run"
    if case.is_right_here():
        yield "right here"
    else:
        print(f"wrong here:\n{text}")
    if theirs is None:
        yield "peer refuses"
        return
    try:
        right = case.is_right(theirs)
    except ShardlogError as error:
        if verbose:
            print(f"the peer's program does not run: {error.message}")
        return
    except (ValueError, TypeError):  # of another shape
        right = False
    if verbose and not right:
        print(f"wrong at the peer:\n{text}")
    yield "peer right" if right else "peer wrong"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", required=True, help="a Python with torch_mlir")
    parser.add_argument("-v", "--verbose", action="store_true", help="say why functions do not run")
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    files = options.files or sorted((Path(os.environ["LLVM"]) / "mlir" / "test" / FOLDER).glob("*.mlir"))
    total, width = Counter[str](), max(len(file.name) for file in files)
    print(" " * width, *(f"{name:>12}" for name in COLUMNS))
    for file in files:
        texts = [*functions(file)]
        command = [options.peer, "-c", _PEER]
        done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(done.stderr)
        counts = Counter[str]()
        for text, theirs in zip(texts, json.loads(done.stdout), strict=True):
            counts.update(outcomes(text, theirs, options.verbose))
        print(f"{file.name:{width}}", *(f"{counts[name]:12}" for name in COLUMNS))
        total += counts
    print(f"{'all':{width}}", *(f"{total[name]:12}" for name in COLUMNS))


if __name__ == "__main__":
    main()

"""Ours beside Shardy's, on train steps of a transformer: `python -m shardlog.tests.bench.bench`.

Every time is the median of several repetitions, ours and Shardy's in turn, in one process and with MLIR's
verifier off; only ratios mean anything on another machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import shardlog
from jaxlib.mlir import ir
from shardlog.importers.source import make_context
from shardlog.propagation.fixpoint import propagate
from shardlog.rulebook.book import RuleBook

from ..support import models
from ..support.oracle import BEFORE, PROPAGATE, manager, pipeline

SHALLOW, DEEP = 24, 96  # layers

SMALL = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x8xf32> {
  %0 = stablehlo.tanh %a : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
"""


@dataclass(frozen=True)
class Pair:
    """A measure of ours and of Shardy's."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """Ours in units of Shardy's."""
        return self.ours / self.theirs


def train_step(depth: int) -> str:
    """The text of the unrolled train step with `depth` layers."""
    return models.text("transformer", depth=depth, scan=False, train=True)


def ops(text: str) -> int:
    """The number of ops in a module, its own included."""
    count = 0

    def visit(_: ir.Operation) -> ir.WalkResult:
        nonlocal count
        count += 1
        return ir.WalkResult.ADVANCE

    with make_context():
        ir.Module.parse(text).operation.walk(visit)
    return count


def timed(function: Callable[[], Any]) -> float:
    """Seconds that a call takes."""
    start = perf_counter()
    function()
    return perf_counter() - start


def paired(ours: Callable[[], float], theirs: Callable[[], float], repetitions: int) -> Pair:
    """The medians of two measures, taken in turn."""
    both = [(ours(), theirs()) for _ in range(repetitions)]
    return Pair(median(a for a, _ in both), median(b for _, b in both))


def fixpoint(text: str, repetitions: int = 5) -> Pair:
    """Seconds for the fixpoint alone, and for `sdy-user-priority-propagate` alone."""
    program, book = shardlog.run(text).program, RuleBook(())
    with make_context():
        prepared = ir.Module.parse(text)
        manager(*BEFORE).run(prepared.operation)
        pass_ = manager(PROPAGATE["user-priority"])

        def theirs() -> float:
            clone = prepared.operation.clone()
            return timed(lambda: pass_.run(clone.operation))

        return paired(lambda: timed(lambda: propagate(program, book, "user-priority")), theirs, repetitions)


def whole(text: str, repetitions: int = 5) -> Pair:
    """Seconds from text to text: ours, and parse, reference pipeline and print."""

    def theirs() -> None:
        with make_context():
            module = ir.Module.parse(text)
            manager(*pipeline()).run(module.operation)
            str(module)

    return paired(lambda: timed(lambda: shardlog.run(text).text()), lambda: timed(theirs), repetitions)


def memory(text: str) -> Pair:
    """Peak memory in MiB from text to text, each in a process of its own.

    Read from Linux's /proc: `ru_maxrss` of a child starts at what its parent had.
    """

    def peak(statements: str) -> float:
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
            file.write(text)
            file.flush()
            program = (
                f"text = open({file.name!r}).read()\n{statements}\n"
                "print(next(line for line in open('/proc/self/status') if line.startswith('VmHWM')))"
            )
            return int(python("-c", program).split()[1]) / 1024

    ours = "import shardlog\nprinted = shardlog.run(text).text()"
    theirs = (
        "from shardlog.importers.source import make_context\n"
        "from jaxlib.mlir import ir, passmanager\n"
        "with make_context():\n"
        "    module = ir.Module.parse(text)\n"
        f"    manager = passmanager.PassManager.parse('builtin.module({','.join(pipeline())})')\n"
        "    manager.enable_verifier(False)\n"
        "    manager.run(module.operation)\n"
        "    printed = str(module)"
    )
    return Pair(peak(ours), peak(theirs))


def python(*arguments: str) -> str:
    """The output of a fresh interpreter."""
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout


def start_up(repetitions: int = 5) -> dict[str, float]:
    """Seconds for `--help` and for running a module of one op, from the start of the process to its end."""
    command = ("-c", "import sys; from shardlog.__main__ import main; sys.exit(main())")
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.mlir"
        small.write_text(SMALL)
        calls = {"--help": ("--help",), "run a small module": ("run", str(small))}
        return {
            name: median(timed(partial(python, *command, *arguments)) for _ in range(repetitions))
            for name, arguments in calls.items()
        }


def main() -> None:
    """Prints all measures."""
    wholes: dict[int, Pair] = {}
    fixpoints: dict[int, Pair] = {}
    counts: dict[int, int] = {}
    for depth in (SHALLOW, DEEP):
        text = train_step(depth)
        counts[depth] = ops(text)
        print(f"\n{depth} layers, {counts[depth]:,} ops{'':14}{'ours':>9}  {'Shardy':>9}   ratio")
        fixpoints[depth], wholes[depth] = fixpoint(text), whole(text)
        rows = (("fixpoint", fixpoints[depth], 1e3, "ms"), ("text to text", wholes[depth], 1e3, "ms"))
        for name, pair, scale, unit in (*rows, ("peak memory", memory(text), 1, "MiB")):
            row = f"{pair.ours * scale:9.0f}  {pair.theirs * scale:9.0f} {unit:3} {pair.ratio:5.2f}"
            print(f"  {name:32}{row}")
    growth = counts[DEEP] / counts[SHALLOW]
    print(f"\nfrom {SHALLOW} to {DEEP} layers: {growth:.2f} times the ops, and the time of")
    for name, pairs in (("fixpoint", fixpoints), ("text to text", wholes)):
        ours, theirs = pairs[DEEP].ours / pairs[SHALLOW].ours, pairs[DEEP].theirs / pairs[SHALLOW].theirs
        print(f"  {name:30} {ours:9.2f}  {theirs:9.2f}")
    print("\nstart-up, seconds")
    for name, seconds in start_up().items():
        print(f"  {name:30} {seconds:9.3f}")


if __name__ == "__main__":
    main()

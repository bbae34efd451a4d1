"""Ours beside Shardy's, on train steps of transformers: `python -m shardlog.tests.bench.bench`.

Every time is the median of several repetitions, ours and Shardy's in turn, in one process: time of the
processor, with MLIR's verifier off and in contexts of one thread. Only ratios hold on other machines.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time
from typing import Any

import shardlog
from jaxlib.mlir import ir
from shardlog.importers.program import import_program
from shardlog.importers.sources.text import make_context
from shardlog.program.mlir.modules import bytecode_of
from shardlog.propagation.fixpoint import propagate
from shardlog.rulebook.book import RuleBook

from ..support import models
from ..support.oracle import BEFORE, PROPAGATE, manager, pipeline

SHALLOW, DEEP = 24, 96  # layers
OTHER = ("grouped_query", 92)


@dataclass(frozen=True)
class Pair:
    """A measure of ours and of Shardy's."""

    ours: float
    theirs: float

    @property
    def ratio(self) -> float:
        """Ours in units of Shardy's."""
        return self.ours / self.theirs


def train_step(depth: int, model: str = "transformer") -> str:
    """The text of the unrolled train step of a model with `depth` layers."""
    return models.text(model, depth=depth, scan=False, train=True)


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
    """Seconds of the processor that a call takes."""
    start = process_time()
    function()
    return process_time() - start


def waited(function: Callable[[], Any]) -> float:
    """Seconds that pass in a call."""
    start = perf_counter()
    function()
    return perf_counter() - start


def paired(ours: Callable[[], float], theirs: Callable[[], float], repetitions: int) -> Pair:
    """The medians of two measures, taken in turn."""
    both = [(ours(), theirs()) for _ in range(repetitions)]
    return Pair(median(a for a, _ in both), median(b for _, b in both))


def fixpoint(text: str, repetitions: int = 5) -> Pair:
    """Seconds for the fixpoint alone, and for `sdy-user-priority-propagate` alone."""
    program, book = shardlog.run(text).result.program, RuleBook(())
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
            module.operation.get_asm(assume_verified=True)

    return paired(lambda: timed(lambda: shardlog.run(text).text()), lambda: timed(theirs), repetitions)


def between_bytecode(text: str, repetitions: int = 5) -> Pair:
    """Seconds from a module in memory to bytecode: ours, which leaves the module as it is, and those for a
    copy, reference pipeline and bytecode."""
    with make_context():
        given = ir.Module.parse(text)
    return paired(
        lambda: timed(lambda: annotated(given)), lambda: timed(lambda: copied_by_shardy(given)), repetitions
    )


def annotated(given: ir.Module) -> bytes:
    """What we make of a module, as bytecode."""
    return shardlog.run(given).bytecode()


def copied_by_shardy(given: ir.Module) -> bytes:
    """What the reference pipeline makes of a copy of a module, as bytecode."""
    with make_context():
        module = ir.Module.parse(bytecode_of(given))
        manager(*pipeline()).run(module.operation)
        return bytecode_of(module)


def first(text: str, repetitions: int = 3) -> Pair:
    """``between_bytecode`` for the first program of a process, which has imported all that it needs."""

    def seconds(function: str) -> float:
        with tempfile.NamedTemporaryFile("w", suffix=".mlir") as file:
            file.write(text)
            file.flush()
            program = (
                "from shardlog.tests.bench.bench import *\n"
                "def module(text):\n    with make_context():\n        return ir.Module.parse(text)\n"
                f"given = module(open({file.name!r}).read())\n"
                f"{function}(module('func.func @main() {{ return }}'))\n"
                f"print(timed(lambda: {function}(given)))"
            )
            return float(python("-c", program))

    return paired(lambda: seconds("annotated"), lambda: seconds("copied_by_shardy"), repetitions)


def reading(text: str, repetitions: int = 5) -> Pair:
    """Seconds to import a module, and to parse it."""
    book = RuleBook(())
    with make_context():
        module = ir.Module.parse(text)

    def parse() -> None:
        with make_context():
            ir.Module.parse(text)

    return paired(lambda: timed(lambda: import_program(module, book)), lambda: timed(parse), repetitions)


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
        "from shardlog.importers.sources.text import make_context\n"
        "from jaxlib.mlir import ir, passmanager\n"
        "with make_context():\n"
        "    module = ir.Module.parse(text)\n"
        f"    manager = passmanager.PassManager.parse('builtin.module({','.join(pipeline())})')\n"
        "    manager.enable_verifier(False)\n"
        "    manager.run(module.operation)\n"
        "    printed = module.operation.get_asm(assume_verified=True)"
    )
    return Pair(peak(ours), peak(theirs))


def python(*arguments: str) -> str:
    """The output of a fresh interpreter."""
    return subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True).stdout


def rows(text: str, repetitions: int) -> dict[str, tuple[Pair, str]]:
    """All measures of a program, each with its unit."""
    return {
        "fixpoint": (fixpoint(text, repetitions), "ms"),
        "import, beside MLIR's parser": (reading(text, repetitions), "ms"),
        "text to text": (whole(text, repetitions), "ms"),
        "module to bytecode": (between_bytecode(text, repetitions), "ms"),
        "the same, first of a process": (first(text), "ms"),
        "peak memory, text to text": (memory(text), "MiB"),
    }


def main() -> None:
    """Prints all measures, as tables of Markdown."""
    found: dict[str, dict[str, tuple[Pair, str]]] = {}
    counts: dict[str, int] = {}
    for model, depth in (("transformer", SHALLOW), ("transformer", DEEP), OTHER):
        text = train_step(depth, model)
        title = f"{model.replace('_', ' ')}, {depth} layers"
        counts[title], found[title] = ops(text), rows(text, 7 if depth == SHALLOW else 3)
        print(f"\n| {title}: {counts[title]:,} ops | ours | Shardy | ratio |\n|---|---|---|---|")
        for name, (pair, unit) in found[title].items():
            scale = 1e3 if unit == "ms" else 1
            values = f"{pair.ours * scale:,.0f} {unit} | {pair.theirs * scale:,.0f} {unit}"
            print(f"| {name} | {values} | {pair.ratio:.2f} |", flush=True)
    shallow, deep, _ = found
    growth = counts[deep] / counts[shallow]
    print(f"\nfrom {SHALLOW} to {DEEP} layers: {growth:.2f} times the ops, and the time of")
    for name in ("fixpoint", "text to text"):
        (a, _), (b, _) = found[shallow][name], found[deep][name]
        print(f"  {name:30} {b.ours / a.ours:9.2f}  {b.theirs / a.theirs:9.2f}")


if __name__ == "__main__":
    main()

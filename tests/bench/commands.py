"""What commands take, as whole processes: `python -m shardlog.tests.bench.commands`.

Of a module of one op, the least of several times; and of a train step that is unrolled to 96 and to 960
layers, ten times as many ops. Times are those of the processor, memory is the most that a process held.
Python finds bytecode, as it does where shardlog is installed.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from .bench import train_step
from .processes import Taken, bytecode, shardlog, taken

DEPTHS = (96, 960)  # layers

SMALL = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<4x8xf32> {
  %0 = stablehlo.tanh %a : tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
"""

START = {
    "--help": ("--help",),
    "run": ("run", "{0}.mlir", "-o", "{0}.out.mlir"),
    "why, of the saved run": ("why", "{0}.run", "%0"),
}
COMMANDS = {
    "text to text": ("run", "{0}.mlir", "-o", "{0}.out.mlir"),
    "run --save": ("run", "{0}.mlir", "--save", "{0}.run"),
    "why, of the saved run": ("why", "{0}.run", "result#0"),
    "report, of the saved run": ("report", "{0}.run", "-o", "{0}.html"),
}


def written(depth: int, file: Path) -> int:
    """Writes the train step with `depth` layers; returns its lines."""
    file.write_text(train_step(depth))
    with file.open() as lines:
        return sum(1 for _ in lines)


def found(arguments: Sequence[str], name: str) -> Taken:
    """What a command of shardlog takes, in whose arguments {0} stands for the name of a module."""
    return taken(shardlog([part.format(name) for part in arguments]))


def start_up(repetitions: int = 10) -> None:
    """Prints a row for every command on a small module."""
    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder, "small"))
        Path(f"{name}.mlir").write_text(SMALL)
        found(["run", "{0}.mlir", "--save", "{0}.run"], name)
        print("| command, one op | s | MiB |\n|---|---|---|")
        for what, arguments in START.items():
            each = [found(arguments, name) for _ in range(repetitions)]
            least = min(each, key=lambda one: one.processor)
            print(f"| {what} | {least.processor:.2f} | {least.mebibytes:.0f} |", flush=True)


def growth() -> None:
    """Prints a row for every command on a large program, and on one of ten times its ops."""
    with tempfile.TemporaryDirectory() as folder:
        names = [str(Path(folder, str(depth))) for depth in DEPTHS]
        lines = [written(depth, Path(f"{name}.mlir")) for name, depth in zip(names, DEPTHS, strict=True)]
        print(f"{lines[0]:,} and {lines[1]:,} lines, {lines[1] / lines[0]:.1f} times as many")
        print("| command | s | s | ratio | MiB | MiB | ratio |\n|---|---|---|---|---|---|---|")
        for what, arguments in COMMANDS.items():
            small, large = (found(arguments, name) for name in names)
            ratio = large.processor / small.processor
            seconds = f"{small.processor:.2f} | {large.processor:.2f} | {ratio:.1f}"
            memory = (
                f"{small.mebibytes:.0f} | {large.mebibytes:.0f} | {large.mebibytes / small.mebibytes:.1f}"
            )
            print(f"| {what} | {seconds} | {memory} |", flush=True)


if __name__ == "__main__":
    with bytecode():
        start_up()
        print()
        growth()

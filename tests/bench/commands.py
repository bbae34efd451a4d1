"""What commands take, as whole processes: `python -m shardlog.tests.bench.commands`.

Of a module of one op, the least of several times; and of a train step that is unrolled to 96 and to 960
layers, ten times as many ops. Times are those of the processor, memory is the most that a process held.
Python finds bytecode, as it does where shardlog is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True)
class Taken:
    """The processor's seconds, and the peak of memory in MiB."""

    seconds: float
    mebibytes: float


def written(depth: int, file: Path) -> int:
    """Write the train step with `depth` layers; returns its lines. A process of its own does, for the peak of
    a process counts for those that it starts."""
    program = f"from {__package__}.bench import train_step; print(train_step({depth}))"
    with file.open("w") as stream:
        subprocess.run([sys.executable, "-c", program], check=True, stdout=stream)
    with file.open() as lines:
        return sum(1 for _ in lines)


def taken(arguments: Sequence[str]) -> Taken:
    """What a command of shardlog takes. Raises CalledProcessError where it fails."""
    return process([sys.executable, "-m", "shardlog", *arguments])


def process(command: Sequence[str]) -> Taken:
    """What a process takes. Raises CalledProcessError where it fails."""
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as running:
        _, status, usage = os.wait4(running.pid, 0)
        running.returncode = os.waitstatus_to_exitcode(status)
    if running.returncode != 0:
        raise subprocess.CalledProcessError(running.returncode, command)
    return Taken(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def start_up(repetitions: int = 10) -> None:
    """Prints a row for every command on a small module."""
    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder, "small"))
        Path(f"{name}.mlir").write_text(SMALL)
        taken(["run", f"{name}.mlir", "--save", f"{name}.run"])
        print("| command, one op | s | MiB |\n|---|---|---|")
        for what, arguments in START.items():
            each = [taken([part.format(name) for part in arguments]) for _ in range(repetitions)]
            least = min(each, key=lambda found: found.seconds)
            print(f"| {what} | {least.seconds:.2f} | {least.mebibytes:.0f} |", flush=True)


def growth() -> None:
    """Prints a row for every command on a large program, and on one of ten times its ops."""
    with tempfile.TemporaryDirectory() as folder:
        names = [str(Path(folder, str(depth))) for depth in DEPTHS]
        lines = [written(depth, Path(f"{name}.mlir")) for name, depth in zip(names, DEPTHS, strict=True)]
        print(f"{lines[0]:,} and {lines[1]:,} lines, {lines[1] / lines[0]:.1f} times as many")
        print("| command | s | s | ratio | MiB | MiB | ratio |\n|---|---|---|---|---|---|---|")
        for what, arguments in COMMANDS.items():
            small, large = (taken([part.format(name) for part in arguments]) for name in names)
            seconds = f"{small.seconds:.2f} | {large.seconds:.2f} | {large.seconds / small.seconds:.1f}"
            memory = (
                f"{small.mebibytes:.0f} | {large.mebibytes:.0f} | {large.mebibytes / small.mebibytes:.1f}"
            )
            print(f"| {what} | {seconds} | {memory} |", flush=True)


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as bytecode:
        os.environ["PYTHONPYCACHEPREFIX"] = bytecode
        start_up()
        print()
        growth()

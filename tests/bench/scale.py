"""What commands take of a large program: `python -m shardlog.tests.bench.scale`.

A train step is unrolled to 96 and to 960 layers, ten times as many ops. Every command is a process of its
own: its time is that of the processor, its memory the most that it held at a time.
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
    command = [sys.executable, "-m", "shardlog", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Taken(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def main() -> None:
    """Prints a row for every command."""
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
    main()

"""What each command takes for a program as large as real models, beside Shardy: `python -m
shardlog.tests.bench.size --ops 20000 200000`.

Each figure is that of a whole process: the processor's time, and the peak of memory. Shardy's process parses
the same file, runs the reference pipeline without MLIR's verifier, and prints. Only ratios hold on other
machines. Python finds bytecode, as it does where shardlog is installed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from .processes import Taken, bytecode, shardlog, taken

LAYER = """\
  %a{i} = stablehlo.dot_general {x}, %w, contracting_dims = [1] x [0] : (T, T) -> T
  %b{i} = stablehlo.tanh %a{i} : T
  %c{i} = stablehlo.dot_general %b{i}, %v, contracting_dims = [1] x [0] : (T, T) -> T
  %d{i} = stablehlo.add {x}, %c{i} : T
  %e{i} = stablehlo.negate %d{i} : T
"""
HEAD = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: T {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}]>}},
                %w: T {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"model"}}]>}}, %v: T) -> T {{
{layers}  return %e{last} : T
}}
"""
SHARDY = """
import sys
from pathlib import Path
from jaxlib.mlir import ir
from shardlog.importers.sources.text import make_context
from shardlog.tests.support.oracle import manager, pipeline
with make_context():
    module = ir.Module.parse(Path(sys.argv[1]).read_text())
    manager(*pipeline()).run(module.operation)
    Path(sys.argv[2]).write_text(module.operation.get_asm(assume_verified=True))
"""
COMMANDS = {
    "run": ("run", "{0}.mlir", "-o", "{0}.out.mlir"),
    "run --save": ("run", "{0}.mlir", "--save", "{0}.run"),
    "why": ("why", "{0}.run", "result#0"),
    "why-not": ("why-not", "{0}.run", "%9", "--dim", "1", "--axis", "model"),
    "conflicts": ("conflicts", "{0}.run", "--limit", "20"),
    "conflicts, asked again": ("conflicts", "{0}.run", "--limit", "20"),  # the cache has the answer
    "query": ("query", "{0}.run", 'sharded("%9", d, k, x)'),
    "partition": ("partition", "{0}.mlir", "--keep-shardings", "-o", "{0}.device.mlir"),
    "partition, least bytes": ("partition", "{0}.mlir", "-o", "{0}.least.mlir"),
    "cost": ("cost", "{0}.mlir", "--topology", "v5e"),
    "report": ("report", "{0}.run", "-o", "{0}.html"),
}


def program(ops: int) -> str:
    """An unrolled program of so many ops, five for each layer."""
    layers = [LAYER.format(i=i, x=f"%e{i - 1}" if i else "%x") for i in range(ops // 5)]
    return (
        HEAD.format(layers="".join(layers), last=len(layers) - 1)
        .replace(" T", " tensor<64x64xf32>")
        .replace("(T", "(tensor<64x64xf32>")
    )


def print_row(*cells: str) -> None:
    """Prints a row of a table."""
    print(f"| {' | '.join(cells)} |", flush=True)


def shardy(name: str) -> Taken:
    """What parsing, the reference pipeline and printing take."""
    return taken([sys.executable, "-c", SHARDY, f"{name}.mlir", f"{name}.shardy.mlir"])


def measured(ops: int, commands: Collection[str]) -> None:
    """Prints a row for each command on a program of so many ops."""
    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder, str(ops)))
        Path(f"{name}.mlir").write_text(program(ops))
        theirs = shardy(name)
        print_row(f"{ops:,} ops", "s", "ratio", "MiB", "ratio")
        print_row(*["---"] * 5)
        print_row("Shardy", f"{theirs.processor:.2f}", "1", f"{theirs.mebibytes:.0f}", "1")
        for command, arguments in COMMANDS.items():
            if command in commands:
                found = taken(shardlog([part.format(name) for part in arguments]))
                print_row(
                    command,
                    f"{found.processor:.2f}",
                    f"{found.processor / theirs.processor:.2f}",
                    f"{found.mebibytes:.0f}",
                    f"{found.mebibytes / theirs.mebibytes:.2f}",
                )


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a table for each size."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ops", type=int, nargs="+", default=[20_000, 200_000])
    parser.add_argument("--commands", nargs="+", choices=COMMANDS, default=list(COMMANDS))
    options = parser.parse_args(arguments)
    with bytecode(), tempfile.TemporaryDirectory() as cache, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHARDLOG_CACHE", cache)  # of this run alone: no answers of earlier ones
        measured(100, COMMANDS)  # writes the bytecode and compiles the rules
        for ops in options.ops:
            print(flush=True)
            measured(ops, {"run --save", *options.commands})


if __name__ == "__main__":
    main()

"""What completion of a program in tosa and shard takes, beside LLVM's own pass, and what reading takes beside
the same program in StableHLO: `python -m shardlog.tests.bench.dialects --peer mlir-opt --ops 10000`.

Figures are the processor's time: of whole processes for completion, and inside of one for reading, up to the
graph. Only ratios hold on other machines.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from jaxlib.mlir import ir
from shardlog.importers.program import import_program
from shardlog.importers.sources.text import Text, parse_module
from shardlog.rulebook.book import RuleBook

from .processes import bytecode, shardlog, taken

T, Z = "tensor<1x64x64xf32>", "tensor<1xf32>"
PASS = "builtin.module(func.func(sharding-propagation{traversal=backward-forward}))"
LAYER = f"""\
  %a{{i}} = tosa.matmul {{x}}, %w, %z, %z : ({T}, {T}, {Z}, {Z}) -> {T}
  %b{{i}} = tosa.tanh %a{{i}} : ({T}) -> {T}
  %c{{i}} = tosa.matmul %b{{i}}, %v, %z, %z : ({T}, {T}, {Z}, {Z}) -> {T}
  %d{{i}} = tosa.add {{x}}, %c{{i}} : ({T}, {T}) -> {T}
  %e{{i}} = tosa.negate %d{{i}}, %z, %z : ({T}, {Z}, {Z}) -> {T}
"""
DIMS = "batching_dims = [0] x [0], contracting_dims = [2] x [1]"
SAME = f"""\
  %a{{i}} = stablehlo.dot_general {{x}}, %w, {DIMS} : ({T}, {T}) -> {T}
  %b{{i}} = stablehlo.tanh %a{{i}} : {T}
  %c{{i}} = stablehlo.dot_general %b{{i}}, %v, {DIMS} : ({T}, {T}) -> {T}
  %d{{i}} = stablehlo.add {{x}}, %c{{i}} : {T}
  %e{{i}} = stablehlo.negate %d{{i}} : {T}
"""
IN_SHARD = f"""\
shard.grid @g(shape = 2x4)
func.func @main(%x: {T}, %w: {T}, %v: {T}) -> {T} {{{{
  %z = "tosa.const"() <{{{{values = dense<0.0> : {Z}}}}}> : () -> {Z}
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %x0 = shard.shard %x to %s : {T}
  %x1 = shard.shard %x0 to %s annotate_for_users : {T}
{{layers}}  return {{last}} : {T}
}}}}
"""
IN_SDY = f"""\
sdy.mesh @g = <["0"=2, "1"=4]>
func.func @main(%x: {T}, %w: {T}, %v: {T}) -> {T} {{{{
  %x1 = sdy.sharding_constraint %x <@g, [{{{{}}}}, {{{{"0"}}}}, {{{{}}}}]> : {T}
{{layers}}  return {{last}} : {T}
}}}}
"""


def program(ops: int, head: str, layer: str) -> str:
    """A program of so many ops, five for each layer."""
    layers = [layer.format(i=i, x=f"%e{i - 1}" if i else "%x1") for i in range(ops // 5)]
    return head.format(layers="".join(layers), last=f"%e{len(layers) - 1}")


def reading(text: str) -> float:
    """Seconds of the processor from a text to its graph: the least of five."""
    book, least = RuleBook(()), float("inf")
    for _ in range(5):
        start = time.process_time()
        module = parse_module(Text(text.encode(), "module"))
        with module.context, ir.Location.unknown():
            import_program(module, book)
        least = min(least, time.process_time() - start)
    return least


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints both ratios."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peer", help="mlir-opt of LLVM 22 or later")
    parser.add_argument("--ops", type=int, default=10_000)
    options = parser.parse_args(arguments)
    ours, same = program(options.ops, IN_SHARD, LAYER), program(options.ops, IN_SDY, SAME)
    of_tosa, of_stablehlo = reading(ours), reading(same)
    print(f"reading: {of_tosa:.3f} s, StableHLO {of_stablehlo:.3f} s: {of_tosa / of_stablehlo:.2f}")
    with bytecode(), tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder, "module.mlir"), str(Path(folder, "out.mlir"))
        file.write_text(ours)
        command = shardlog(
            ["run", str(file), "--propagation", "completion", "--notation", "shard", "-o", out]
        )
        taken(command)  # writes the bytecode
        mine = taken(command).processor
        print(f"completion: {mine:.2f} s", end="")
        if options.peer:
            theirs = taken([options.peer, f"--pass-pipeline={PASS}", str(file), "-o", out]).processor
            print(f", mlir-opt {theirs:.2f} s: {mine / theirs:.2f}", end="")
        print()


if __name__ == "__main__":
    main()

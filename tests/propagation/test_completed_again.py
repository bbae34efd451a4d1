"""A completed module that is completed again stays as it is."""

from __future__ import annotations

import random

import pytest
import shardlog

from ..dialects.completion import Module

FILLED = """
shard.grid @g(shape = 2)
func.func @main(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x4xf32>
  %o = linalg.fill ins(%c : f32) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  %x1 = shard.shard %x to %s annotate_for_users : tensor<4x4xf32>
  %0 = linalg.matmul ins(%x1, %y : tensor<4x4xf32>, tensor<4x4xf32>)
      outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
  %1 = linalg.matmul ins(%0, %x1 : tensor<4x4xf32>, tensor<4x4xf32>)
      outs(%o : tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = linalg.exp ins(%1 : tensor<4x4xf32>) outs(%e : tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0, %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
"""
PARTIAL = """
mesh.mesh @g(shape = 2x3)
func.func @main(%x: tensor<6x6xf32>, %y: tensor<6x6xf32>, %z: tensor<6x6xf32>) -> tensor<6x6xf32> {
  %0 = mesh.shard %x to <@g, [[], [1, 0]]> annotate_for_users : tensor<6x6xf32>
  %1 = linalg.matmul ins(%0, %y : tensor<6x6xf32>, tensor<6x6xf32>)
      outs(%z : tensor<6x6xf32>) -> tensor<6x6xf32>
  %2 = mesh.shard %1 to <@g, [[], []]> annotate_for_users : tensor<6x6xf32>
  return %2 : tensor<6x6xf32>
}
"""


class Generated(Module):
    """A random module, some of whose ops share operands that are constant."""

    def operands(self, count: int) -> list[str]:
        chosen = super().operands(count)
        if self.draw.random() < 0.6:
            chosen[-1] = self.annotated(self.draw.choice(("%empty", "%filled", "%ones")), users=True)
        return chosen

    def text(self) -> str:
        head, function, *body = super().text().split("\n")
        t = self.type()
        constants = f"""  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {t}
  %filled = linalg.fill ins(%zero : f32) outs(%empty : {t}) -> {t}
  %ones = arith.constant dense<1.0> : {t}"""
        return "\n".join([head, function, constants, *body])


def completed(text: str, notation: str) -> str:
    return shardlog.run(text, propagation="completion", closed=True).text(notation)  # type: ignore[arg-type]


@pytest.mark.parametrize("text, notation", [(FILLED, "shard"), (PARTIAL, "mesh")])
def test_nothing_is_added(text: str, notation: str) -> None:
    once = completed(text, notation)
    assert completed(once, notation) == once


def test_what_an_op_overwrites_has_no_dead_copies() -> None:
    assert completed(FILLED, "shard").count("tensor.empty") == 2  # of the fill, and of the last op


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("notation", ["shard", "mesh"])
def test_random_modules(seed: int, notation: str) -> None:
    """What uses an argument may see its annotation only the second time: completion annotates an argument
    last, as LLVM does. And mesh has partial sums, which the text in shard has not."""
    twice = completed(completed(Generated(random.Random(seed)).text(), notation), notation)
    assert completed(twice, notation) == twice

"""Data-flow edges: which values of an op share a sharding."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from ..support import oracle
from .rules import answers, walk


def edges(name: str, text: str) -> list[tuple[Any, ...]]:
    """(owner, sources, targets) of the edges of the op called `name`, e.g. "argument 1 of region 0"."""
    with oracle.context():
        module = ir.Module.parse(text)
        op = next(op for op in walk(module.operation) if op.name == name)
        said = answers(op)

    def ends(relation: str, edge: int) -> tuple[str, ...]:
        return tuple(
            f"{what} {i} of region {r}" if what in ("argument", "return") else f"{what} {i}"
            for e, what, r, i in said[relation]
            if e == edge
        )

    return [(*ends("edge_owner", e), ends("edge_source", e), ends("edge_target", e)) for (e,) in said["edge"]]


def test_while() -> None:
    text = """
    func.func @main(%a: tensor<4xf32>, %n: tensor<i32>, %t: !stablehlo.token) {
      %r:3 = stablehlo.while(%x = %a, %u = %t, %i = %n) : tensor<4xf32>, !stablehlo.token, tensor<i32>
        cond {
          %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %c : tensor<i1>
        } do {
          stablehlo.return %x, %u, %i : tensor<4xf32>, !stablehlo.token, tensor<i32>
        }
      return
    }"""
    assert edges("stablehlo.while", text) == [
        (
            f"result {i}",
            (f"operand {i}", f"return {i} of region 1"),
            (f"argument {i} of region 0", f"argument {i} of region 1", f"result {i}"),
        )
        for i in (0, 2)  # a token has no sharding
    ]


def test_case() -> None:
    text = """
    func.func @main(%a: tensor<4xf32>, %i: tensor<i32>) {
      %r = "stablehlo.case"(%i) ({
        stablehlo.return %a : tensor<4xf32>
      }, {
        stablehlo.return %a : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
      return
    }"""
    sources = ("return 0 of region 0", "return 0 of region 1")
    assert edges("stablehlo.case", text) == [("result 0", sources, ("result 0",))]


def test_optimization_barrier() -> None:
    text = """
    func.func @main(%a: tensor<4xf32>, %b: tensor<2xf32>) {
      %r:2 = stablehlo.optimization_barrier %a, %b : tensor<4xf32>, tensor<2xf32>
      return
    }"""
    assert edges("stablehlo.optimization_barrier", text) == [
        ("result 0", ("operand 0",), ("result 0",)),
        ("result 1", ("operand 1",), ("result 1",)),
    ]


def test_named_computation() -> None:
    text = """
    func.func @main(%a: tensor<4xf32>, %b: tensor<2xf32>) {
      %r = sdy.named_computation<"f">(%a, %b) (%c: tensor<4xf32>, %d: tensor<2xf32>) {
        sdy.return %d : tensor<2xf32>
      } : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
      return
    }"""
    assert edges("sdy.named_computation", text) == [
        ("argument 0 of region 0", ("operand 0",), ("argument 0 of region 0",)),
        ("argument 1 of region 0", ("operand 1",), ("argument 1 of region 0",)),
        ("result 0", ("return 0 of region 0",), ("result 0",)),
    ]

"""Index tensors are moved and padded like others, although StableHLO's ops take none."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
import shardlog

Program = tuple[str, str, str, Callable[[Any], Any]]


def _reduced(rows: int, op: str, expected: Callable[[Any], Any]) -> Program:
    """The rows of an argument, combined by an op of arith."""
    argument, result = f"tensor<{rows}x2xindex>", "tensor<2xindex>"
    body = f"""
        %x1 = shard.shard %x to %s annotate_for_users : {argument}
        %o = arith.constant dense<0> : {result}
        %r = linalg.reduce ins(%x1 : {argument}) outs(%o : {result}) dimensions = [0]
          (%a: index, %b: index) {{
            %c = arith.{op} %a, %b : index
            linalg.yield %c : index
          }}
        """
    return f"%x: {argument}", result, body, expected


PROGRAMS: dict[str, Program] = {
    "constant, padded": (
        "%x: tensor<4x5xf32>",
        "tensor<3x5xf32>",
        """
        %i = arith.constant dense<[[0],[2],[1]]> : tensor<3x1xindex>
        %i1 = shard.shard %i to %s : tensor<3x1xindex>
        %i2 = shard.shard %i1 to %s annotate_for_users : tensor<3x1xindex>
        %r = tensor.gather %x[%i2] gather_dims([0]) : (tensor<4x5xf32>, tensor<3x1xindex>) -> tensor<3x5xf32>
        """,
        lambda x: x[[0, 2, 1]],
    ),
    "argument and result": (
        "%x: tensor<4xindex>",
        "tensor<4xindex>",
        """
        %x1 = shard.shard %x to %s annotate_for_users : tensor<4xindex>
        %c = arith.constant dense<3> : tensor<4xindex>
        %y = arith.addi %x1, %c : tensor<4xindex>
        %y1 = shard.shard %y to %s : tensor<4xindex>
        %r = shard.shard %y1 to %w annotate_for_users : tensor<4xindex>
        """,
        lambda x: x + 3,
    ),
    "uneven argument and result": (
        "%x: tensor<5xindex>",
        "tensor<5xindex>",
        """
        %x1 = shard.shard %x to %s annotate_for_users : tensor<5xindex>
        %c = arith.constant dense<3> : tensor<5xindex>
        %y = arith.muli %x1, %c : tensor<5xindex>
        %r = shard.shard %y to %s : tensor<5xindex>
        """,
        lambda x: x * 3,
    ),
    "reduced": _reduced(4, "addi", lambda x: x.sum(0)),
    "largest": _reduced(5, "maxsi", lambda x: x.max(0)),
    "carried by a loop": (
        "%x: tensor<5xindex>",
        "tensor<5xindex>",
        """
        %a = arith.constant 0 : index
        %b = arith.constant 3 : index
        %c = arith.constant 1 : index
        %k = scf.for %i = %a to %b step %c iter_args(%y = %x) -> (tensor<5xindex>) {
          %y1 = shard.shard %y to %s annotate_for_users : tensor<5xindex>
          %z = arith.addi %y1, %y1 : tensor<5xindex>
          %z1 = shard.shard %z to %w : tensor<5xindex>
          scf.yield %z1 : tensor<5xindex>
        }
        %r = shard.shard %k to %s annotate_for_users : tensor<5xindex>
        """,
        lambda x: x * 8,
    ),
}


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_compute_what_the_whole_does(name: str, keep: bool) -> None:
    argument, result, body, expected = PROGRAMS[name]
    text = f"""shard.grid @g(shape = 2)
func.func @main({argument}) -> {result} {{
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %w = shard.sharding @g split_axes = [[]] : !shard.sharding{body}
  return %r : {result}
}}
"""
    run = shardlog.run(text, propagation="completion")
    sizes = [int(size) for size in re.findall(r"\d+(?=x)", argument)]
    x = np.random.default_rng(0).integers(1, 100, sizes)
    x = x.astype(np.float32) if "f32" in argument else x
    program = run.partition(keep_shardings=keep)
    with jax.enable_x64(True):
        np.testing.assert_array_equal(program.compile()(x)[0], expected(x))
    written = run.partition(form="shard", keep_shardings=keep).text()
    assert "index" in written.partition("func.func")[2].partition("{")[0] or "f32" in argument
    assert shardlog.run(written).partition().text()  # it reads

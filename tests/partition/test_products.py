"""Products are written so that XLA for CPUs copies the smaller operand, or none; elsewhere as they are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import shardlog
from shardlog.explanations.partitioned import Partitioned
from shardlog.program.mlir.modules import ops_in

HEAD = 'sdy.mesh @mesh = <["x"=2]>\n'
# The gradient of a weight: of what both operands have, the first dimensions are summed.
GRADIENT = """
func.func @main(%large: tensor<2x8x32xf32>, %small: tensor<2x8x4xf32>) -> RESULT {
  %0 = stablehlo.tanh %large : tensor<2x8x32xf32>
  %1 = stablehlo.dot_general LEFT, RIGHT, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, HIGHEST]
      : (TYPES) -> GIVEN
  BEHIND
  return %2 : RESULT
}
"""
LARGE, SMALL = "tensor<2x8x32xf32>", "tensor<2x8x4xf32>"
WIDE, HIGH = "tensor<4x32xf32>", "tensor<32x4xf32>"


def program(left: str, transposes: int) -> Partitioned:
    """The gradient with the larger operand on the left, or the smaller one, and so many transposes behind."""
    large_left = left == "large"
    given, turned = (HIGH, WIDE) if large_left else (WIDE, HIGH)
    types = [given, turned, given][: transposes + 1]
    behind = [
        f"%t{n} = stablehlo.transpose %{'1' if n == 0 else f't{n - 1}'}, dims = [1, 0] : ({a}) -> {b}"
        for n, (a, b) in enumerate(pairwise(types))
    ]
    last = f"t{transposes - 1}" if transposes else "1"
    behind.append(f"%2 = stablehlo.add %{last}, %{last} : {types[-1]}")
    pairs = [("%0", LARGE), ("%small", SMALL)][:: 1 if large_left else -1]
    text = GRADIENT.replace("LEFT, RIGHT", ", ".join(name for name, _ in pairs))
    text = text.replace("TYPES", ", ".join(type_ for _, type_ in pairs)).replace("GIVEN", given)
    text = text.replace("BEHIND", "\n  ".join(behind)).replace("RESULT", types[-1])
    return shardlog.run(HEAD + text).partition()


def left_operand(made: Partitioned, platform: str) -> tuple[str, bool]:
    """The type of the left operand of the product for a platform, and whether a barrier is behind it."""
    module = made.module_for(platform)
    with module.context:
        ops = {op.operation.name: op.operation for op in ops_in(module)}
        product, fenced = ops["stablehlo.dot_general"], "stablehlo.optimization_barrier" in ops
        return str(product.operands[0].type), fenced


@pytest.mark.parametrize(
    ("left", "transposes", "written", "fenced"),
    [
        ("large", 0, SMALL, True),  # copying the smaller one and the result is less
        ("small", 0, SMALL, False),
        ("large", 1, LARGE, False),  # XLA exchanges the operands itself, as the result is transposed
        ("small", 1, SMALL, True),  # and must not
        ("large", 2, SMALL, True),
        ("small", 2, SMALL, False),
    ],
)
def test_the_smaller_operand_is_copied(left: str, transposes: int, written: str, fenced: bool) -> None:
    compiled = program(left, transposes)
    assert left_operand(compiled, "cpu") == (written, fenced)
    assert left_operand(compiled, "tpu") == (LARGE if left == "large" else SMALL, False)
    assert "optimization_barrier" not in compiled.text()
    large, small = np.arange(512.0).reshape(2, 8, 32) % 7 - 3, np.arange(64.0).reshape(2, 8, 4) % 5
    wanted = 2 * np.einsum("abi,abj->ij", np.tanh(large), small)
    if (left == "small") != (transposes == 1):
        wanted = wanted.T
    (got,) = compiled.compile()(large.astype(np.float32), small.astype(np.float32))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)

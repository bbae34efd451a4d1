"""The program of each device is read again, and gives each device its parts of the whole."""

from __future__ import annotations

import random
import re

import pytest

from ...dialects.results import Case

INIT = """%c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : {0}
  %o = linalg.fill ins(%c0 : f32) outs(%e : {0}) -> {0}
  """
STEPS = "{dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}"
# The shapes of arguments and of the result, and the ops: of arguments %a0 and %a1 of types T0 and T1, with
# the result %r of type R.
PROGRAMS: dict[str, tuple[list[str], str, str]] = {
    "add": (
        ["12x12", "12x12"],
        "12x12",
        "%e = tensor.empty() : R\n  %r = linalg.add ins(%a0, %a1 : T0, T1) outs(%e : R) -> R",
    ),
    "exp": (["12x6"], "12x6", "%e = tensor.empty() : R\n  %r = linalg.negf ins(%a0 : T0) outs(%e : R) -> R"),
    "matmul": (
        ["12x6", "6x4"],
        "12x4",
        INIT.format("R") + "%r = linalg.matmul ins(%a0, %a1 : T0, T1) outs(%o : R) -> R",
    ),
    "pooling": (
        ["4x8x8x4"],
        "4x4x4x4",
        INIT.format("R") + "%w = tensor.empty() : tensor<2x2xf32>\n  "
        f"%r = linalg.pooling_nhwc_sum {STEPS} ins(%a0, %w : T0, tensor<2x2xf32>) outs(%o : R) -> R",
    ),
    "convolution": (
        ["4x8x8x4", "2x2x4x6"],
        "4x4x4x6",
        INIT.format("R") + f"%r = linalg.conv_2d_nhwc_hwcf {STEPS} ins(%a0, %a1 : T0, T1) outs(%o : R) -> R",
    ),
    "transpose": (
        ["2x12x6"],
        "6x2x12",
        "%e = tensor.empty() : R\n  %r = linalg.transpose ins(%a0 : T0) outs(%e : R) permutation = [2, 0, 1]",
    ),
    "reduce": (
        ["12x6"],
        "12",
        INIT.format("R") + "%r = linalg.reduce { arith.addf } ins(%a0 : T0) outs(%o : R) dimensions = [1]",
    ),
    "slice": (["12x12"], "6x12", "%r = tensor.extract_slice %a0[2, 0] [6, 12] [1, 1] : T0 to R"),
    "concat": (["4x12", "8x12"], "12x12", "%r = tosa.concat %a0, %a1 {axis = 0 : i32} : (T0, T1) -> R"),
    "reverse": (["12x12"], "12x12", "%r = tosa.reverse %a0 {axis = 0 : i32} : (T0) -> R"),
}
GRIDS = ((2, 3), (2, 2, 2), (2, 1, 3))


def lists(draw: random.Random, grid: tuple[int, ...], shape: str) -> list[list[int]]:
    """Axes for each dimension that they divide."""
    left, axes = draw.sample(range(len(grid)), len(grid)), list[list[int]]()
    for size in map(int, shape.split("x")):
        axes.append([])
        while left and draw.random() < 0.6 and size % grid[left[-1]] == 0:
            size //= grid[left[-1]]
            axes[-1].append(left.pop())
    return axes


def program(name: str, seed: int) -> str:
    """A program with random annotations: of arguments, for their users, and of the result."""
    draw = random.Random(seed)
    grid, (given, result, ops) = draw.choice(GRIDS), PROGRAMS[name]
    before, after = list[str](), list[str]()

    def annotated(lines: list[str], value: str, shape: str, flag: str) -> str:
        number = len(before) + len(after)
        sharding = f"shard.sharding @g split_axes = {lists(draw, grid, shape)} : !shard.sharding"
        lines.append(f"%s{number} = {sharding}")
        lines.append(f"%v{number} = shard.shard {value} to %s{number}{flag} : tensor<{shape}xf32>")
        return f"%v{number}"

    for i, shape in enumerate(given):
        value = annotated(before, f"%x{i}", shape, "")
        value = annotated(before, value, shape, " annotate_for_users")
        ops = re.sub(rf"%a{i}\b", value, ops).replace(f"T{i}", f"tensor<{shape}xf32>")
    last = annotated(after, "%r", result, "")
    kind = f"tensor<{result}xf32>"
    arguments = ", ".join(f"%x{i}: tensor<{shape}xf32>" for i, shape in enumerate(given))
    body = "\n  ".join([*before, re.sub(r"\bR\b", kind, ops), *after])
    return f"""shard.grid @g(shape = {"x".join(map(str, grid))})
func.func @main({arguments}) -> {kind} {{
  {body}
  return {last} : {kind}
}}
"""


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_written_is_read_and_right(name: str, seed: int) -> None:
    case = Case(program(name, seed))
    assert case.is_right_here()
    assert case.is_right(case.session.partition(form="shard", keep_shardings=True).text())

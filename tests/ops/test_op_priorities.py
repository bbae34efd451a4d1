"""Op priorities: from which slots shardings flow at each level."""

from __future__ import annotations

from typing import Any

import pytest
from jaxlib.mlir import ir

from ..support import oracle
from .rules import answers, solver, walk

LEVELS = (-1, 0, 1, 2, 3, 4)  # -1: no op priorities
BOTH = "operand result"


def flows(op: str, *, multiple_uses: bool = False) -> list[dict[int, str]]:
    """For each factor of an op over %a, %b and %i: level -> roles."""
    arguments = "%a: tensor<4x6xf32>, %b: tensor<4xf32>, %i: tensor<i32>"
    with oracle.context():
        module = ir.Module.parse(f"func.func @main({arguments}) {{\n{op}\nreturn }}")
        said = answers(list(walk(module.operation))[1], multiple_uses=multiple_uses)
    found: list[dict[int, str]] = [{} for _ in said["factor"]]
    for level, f, role in said["flows"]:
        found[f][level] = f"{found[f][level]} {role}" if level in found[f] else role
    return found


def from_level(first: int, roles: str = BOTH) -> dict[int, str]:
    return {level: roles for level in LEVELS if level >= first or level < 0}


@pytest.mark.parametrize(
    "op",
    [
        "%r = stablehlo.add %a, %a : tensor<4x6xf32>",
        "%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>",
        "%r = stablehlo.reshape %a : (tensor<4x6xf32>) -> tensor<24xf32>",
        "%r = stablehlo.bitcast_convert %a : (tensor<4x6xf32>) -> tensor<4x6xi32>",
        "%r = stablehlo.custom_call @MoveToHost(%a) : (tensor<4x6xf32>) -> tensor<4x6xf32>",
    ],
)
def test_pass_through_ops(op: str) -> None:
    assert set(map(str, flows(op))) == {str(from_level(0))}
    assert set(map(str, flows(op, multiple_uses=True))) == {str(from_level(1))}


def test_dynamic_slices_pass_forward() -> None:
    types = "(tensor<4x6xf32>, tensor<i32>, tensor<i32>) -> tensor<4x1xf32>"
    op = f"%r = stablehlo.dynamic_slice %a, %i, %i, sizes = [4, 1] : {types}"
    whole, cut = flows(op)
    assert whole == {0: "operand", 1: "operand", **from_level(2)}
    assert cut == {}  # blocked


def test_factors_that_pass_through_come_before_others() -> None:
    op = "%r = stablehlo.dot %b, %a : (tensor<4xf32>, tensor<4x6xf32>) -> tensor<6xf32>"
    columns, contracted = flows(op)
    assert columns == from_level(2)
    assert contracted == from_level(3)


def test_broadcasts_pass_forward_last() -> None:
    op = "%r = stablehlo.broadcast_in_dim %b, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>"
    late = {2: "result", 3: "result", **from_level(4)}
    assert flows(op) == [late, late]


@pytest.mark.parametrize(
    ("direction", "role"), [("NONE", ""), ("FORWARD", "operand"), ("BACKWARD", "result")]
)
def test_a_barrier_decides_for_itself(direction: str, role: str) -> None:
    op = f"%r = sdy.propagation_barrier %b allowed_direction={direction} : tensor<4xf32>"
    assert flows(op, multiple_uses=True) == [from_level(0, role) if role else {}]


def test_function_results_know_no_levels() -> None:
    facts: dict[str, list[tuple[Any, ...]]] = {
        "op": [("func.result",)],
        "slot": [(0, "operand", 0, 1), (1, "result", 0, 1)],
        "dim": [(0, 0, 4), (1, 0, 4)],
        "multiple_uses": [()],
    }
    said = solver().solve(facts)
    assert said["flows"] == [(level, 0, role) for level in LEVELS for role in ("operand", "result")]
    assert said["elementwise"] == []

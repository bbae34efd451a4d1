"""Programs of tosa and linalg in parts give what they give as a whole."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import shardlog
from shardlog.executing.execution import alone_on

from ..exporters.test_lowering import (
    BIAS,
    LOOPS,
    T3,
    U3,
    Array,
    draw,
    maps,
    program,
    structured,
    tensor,
)

_MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
_ZEROS = '  %z1 = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>'


def annotated(text: str, shardings: list[str]) -> str:
    """A program with shardings of its arguments, of the dimensions by axes: "x, , y"."""
    for i, dims in enumerate(shardings):
        listed = ", ".join(f'{{"{axis}"}}' if (axis := each.strip()) else "{}" for each in dims.split(","))
        sharding = f"{{sdy.sharding = #sdy.sharding<@mesh, [{listed}]>}}"
        text = re.sub(rf"(%a{i}: tensor<[^>]*>)", rf"\1 {sharding}", text, count=1)
    return _MESH + text


def moved(text: str, inputs: list[Array]) -> list[tuple[str, int]]:
    """What a program sends in parts; what it gives is compared with the whole."""
    import jax

    devices = jax.devices()[:4]
    session = shardlog.run(text)
    parts = session.partition()
    leaves = jax.tree.leaves(parts.compile(devices)(*inputs))
    for one, other in zip(leaves, alone_on(session.result, devices)(inputs), strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-4)
    return [(sent.kind, sent.bytes) for sent in parts.sent]


@pytest.mark.parametrize(
    ("name", "shardings", "kinds"),
    [
        ("matmul", [",x", "x,", ","], ["all_reduce"]),  # what it starts from is counted once
        ("matmul", ["x,", ",y", "x,y"], []),
        ("largest", ["x,y", "x"], ["all_reduce"]),
        ("squares", ["x,y"], ["all_reduce"]),
        ("softmax", ["y,x", "y", "y"], ["all_reduce"]),
        ("sums", ["x,y", "y"], ["all_reduce"]),
        ("transpose", ["x,y", "y,x"], []),
        ("rows and columns", ["x", ",x"], []),
        ("where it is", [",x", "x,"], ["all_gather"] * 2),  # its body asks where it is
        ("convolution", [",,,", ",,,x", "y,,,x"], []),
        ("convolution", [",,,x", ",,x,", ",,,"], None),  # three channels on two devices
    ],
)
def test_loops(name: str, shardings: list[str], kinds: list[str] | None) -> None:
    text, inputs, _ = LOOPS[name]
    sent = moved(annotated(text, shardings), list(inputs))
    assert kinds is None or [kind for kind, _ in sent] == kinds


_CONV = (
    "{acc_type = f32, pad = array<i64: 1, 1, 0, 2>, stride = array<i64: 2, 1>, dilation = array<i64: 1, 2>}"
)


@pytest.mark.parametrize(
    ("op", "operands", "result", "shardings", "kinds"),
    [
        ("tosa.matmul", [0, 1, -1, -1], "tensor<2x3x5xf32>", [",,x", ",x,"], ["all_reduce"]),
        (
            f"tosa.conv2d {_CONV}",
            [2, 3, 4, -1, -1],
            "tensor<2x5x5x5xf32>",
            [",,,x", ",,,x"],
            ["all_reduce"],
        ),
        ("tosa.reduce_product {axis = 2 : i32}", [0], "tensor<2x3x1xf32>", [",,x"], ["all_reduce"]),
        ("tosa.concat {axis = 2 : i32}", [0, 0], "tensor<2x3x8xf32>", ["x,,"], []),
    ],
)
def test_tosa(op: str, operands: list[int], result: str, shardings: list[str], kinds: list[str]) -> None:
    inputs: list[Array] = [T3, U3, draw(2, 9, 7, 4), draw(5, 3, 3, 4), BIAS]
    used = sorted({i for i in operands if i >= 0})
    text = program(
        [(op, [used.index(i) if i >= 0 else i for i in operands], result)], [inputs[i] for i in used], _ZEROS
    )
    sent = moved(annotated(text, shardings), [inputs[i] for i in used])
    assert [kind for kind, _ in sent] == kinds


_ROWS = "pad = array<i64: 0, 1, 2, 2>, stride = array<i64: 2, 1>"
_OVER_ROWS = f"tosa.conv2d {{acc_type = f32, {_ROWS}, dilation = array<i64: 1, 2>}}"
_POOLED = f"tosa.max_pool2d {{kernel = array<i64: 3, 5>, {_ROWS}}}"
_SQUARE = draw(2, 8, 8, 4)


@pytest.mark.parametrize(
    ("op", "operands", "result", "sharding"),
    [
        (_OVER_ROWS, [0, 1, 2, -1, -1], "tensor<2x4x8x5xf32>", ",x,,"),
        (_OVER_ROWS, [0, 1, 2, -1, -1], "tensor<2x4x8x5xf32>", ",x,y,"),
        (_POOLED, [0], "tensor<2x4x8x4xf32>", ",x,,"),
    ],
)
def test_windows_read_rows_of_neighbours(op: str, operands: list[int], result: str, sharding: str) -> None:
    inputs: list[Array] = [_SQUARE, draw(5, 3, 3, 4), BIAS][: max(operands) + 1]
    sent = moved(annotated(program([(op, operands, result)], inputs, _ZEROS), [sharding]), inputs)
    assert {kind for kind, _ in sent} == {"collective_permute"}
    assert sum(size for _, size in sent) < _SQUARE.nbytes / 2  # than a gather


@pytest.mark.parametrize(
    ("body", "attributes", "shapes"),
    [
        (["linalg.yield %b0"], maps(2, "pp", "d0 + 3, d1", "d0, d1"), [(20, 64), (16, 64)]),
        (
            ["%m = arith.mulf %b0, %b1 : f32", "%n = arith.addf %b2, %m : f32", "linalg.yield %n"],
            maps(3, "ppr", "d0 * 2 + d2 + 1, d1", "d2", "d0, d1"),
            [(36, 64), (3,), (16, 64)],
        ),
    ],
)
def test_maps_that_begin_at_later_elements(
    body: list[str], attributes: str, shapes: list[tuple[int, ...]]
) -> None:
    inputs = [draw(*shape) for shape in shapes]
    text = structured("linalg.generic", len(inputs) - 1, body, attributes, *inputs)
    sent = moved(annotated(text, ["x,"]), inputs)
    assert {kind for kind, _ in sent} == {"collective_permute"}
    assert sum(size for _, size in sent) < inputs[0].nbytes / 4  # than a gather


def test_padding_of_integers_is_their_zero_point() -> None:
    """Zeros would be taken for -3."""
    zero = '  %z1 = "tosa.const"() {values = dense<3> : tensor<1xi8>} : () -> tensor<1xi8>'
    inputs = [draw(*shape, kind="int8") for shape in ((2, 8, 8, 4), (5, 3, 3, 4))]
    inputs.append(np.arange(5, dtype=np.int32))
    op = _OVER_ROWS.replace("acc_type = f32", "acc_type = i32")
    text = program([(op, [0, 1, 2, -1, -1], "tensor<2x4x8x5xi32>")], inputs, zero)
    text = text.replace("tensor<1xf32>", "tensor<1xi8>")
    assert {kind for kind, _ in moved(annotated(text, [",x,,"]), inputs)} == {"collective_permute"}


def _layers(dialect: str) -> tuple[str, list[Any]]:
    """Three layers [64, 128] -> 512 -> 512 -> 128; the second product leaves partial sums."""
    widths, batch = (128, 512, 512, 128), "1x" if dialect == "tosa" else ""
    arrays: list[Array] = [np.linspace(-1, 1, 64 * 128, dtype=np.float32).reshape(64, 128)]
    names, lines, last = ["%x"], list[str](), "%x"
    for i, (rows, columns) in enumerate(pairwise(widths)):
        taken, weight, given = (
            f"tensor<{batch}{n}x{m}xf32>" for n, m in ((64, rows), (rows, columns), (64, columns))
        )
        arrays.append(np.cos(np.arange(rows * columns, dtype=np.float32)).reshape(rows, columns) / rows)
        names.append(f"%w{i}")
        if dialect == "tosa":
            lines.append(
                f'  %p{i} = "tosa.matmul"({last}, %w{i}, %z, %z) : '
                f"({taken}, {weight}, tensor<1xf32>, tensor<1xf32>) -> {given}"
            )
            lines.append(f'  %h{i} = "tosa.tanh"(%p{i}) : ({given}) -> {given}')
        else:
            lines += [
                f"  %e{i} = tensor.empty() : {given}",
                f'  %f{i} = "linalg.fill"(%c, %e{i}) ({{',
                '  ^bb0(%a: f32, %b: f32): "linalg.yield"(%a) : (f32) -> ()',
                f"  }}) {{operandSegmentSizes = array<i32: 1, 1>}} : (f32, {given}) -> {given}",
                f'  %p{i} = "linalg.matmul"({last}, %w{i}, %f{i}) ({{',
                "  ^bb0(%a: f32, %b: f32, %d: f32):",
                "    %m = arith.mulf %a, %b : f32",
                "    %n = arith.addf %d, %m : f32",
                '    "linalg.yield"(%n) : (f32) -> ()',
                f"  }}) {{operandSegmentSizes = array<i32: 2, 1>}} : ({taken}, {weight}, {given}) -> {given}",
                f"  %h{i} = math.tanh %p{i} : {given}",
            ]
        last = f"%h{i}"
    if dialect == "tosa":
        arrays = [array[None] for array in arrays]
    dims = ["x,", ",y", "y,", ",y"]
    arguments = [
        f"{name}: {tensor(array)} {{sdy.sharding = #sdy.sharding<@mesh, ["
        + ", ".join(f'{{"{axis}"}}' if axis else "{}" for axis in ("," * (array.ndim - 2) + each).split(","))
        + "]>}"
        for name, array, each in zip(names, arrays, dims, strict=True)
    ]
    zero = _ZEROS.replace("%z1", "%z") if dialect == "tosa" else "  %c = arith.constant 0.0 : f32"
    head = f"func.func @main({', '.join(arguments)}) -> tensor<{batch}64x128xf32> {{"
    return "\n".join(
        [_MESH + head, zero, *lines, f"  return {last} : tensor<{batch}64x128xf32>", "}"]
    ), arrays


@pytest.mark.parametrize("dialect", ["tosa", "linalg"])
def test_three_layers(dialect: str) -> None:
    """The second product is summed, 32x512 elements of 4 bytes: for two devices, each sends as much."""
    text, arrays = _layers(dialect)
    assert moved(text, arrays) == [("all_reduce", 32 * 512 * 4)]


def test_a_scalar_may_be_repeated() -> None:
    text = """
sdy.mesh @m = <["x"=2]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}, %v: f32) -> tensor<8xf32> {
  %0 = tensor.splat %v : tensor<4xf32>
  %1 = tensor.concat dim(0) %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""
    assert "tensor.splat" in shardlog.run(text).partition("shard").text()

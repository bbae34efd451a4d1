"""Programs of other dialects, written in StableHLO and run by XLA, give what NumPy computes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import shardlog
from shardlog.errors import ShardlogError
from shardlog.exporters.lowering.lowering import lowered
from shardlog.importers.sources.text import Text, parse_module
from shardlog.rulebook.book import RuleBook

Array = npt.NDArray[Any]
_NAMES = {
    "float32": "f32",
    "int32": "i32",
    "int8": "i8",
    "bool": "i1",
    "int64": "i64",
    "int16": "i16",
    "float16": "f16",
}


def tensor(array: Array) -> str:
    """The type of an array."""
    return f"tensor<{''.join(f'{n}x' for n in array.shape)}{_NAMES[str(array.dtype)]}>"


def run(text: str, *inputs: Any) -> list[Array]:
    """What a program gives on one device."""
    import jax
    from shardlog.executing.execution import alone_on

    result = shardlog.run(text.encode()).result
    with jax.enable_x64(True):
        return list(alone_on(result, jax.devices())(list(inputs)))


def program(ops: Sequence[tuple[str, Sequence[int], str]], inputs: Sequence[Array], before: str = "") -> str:
    """A program of several ops of its arguments: each the op with its attributes, the numbers of arguments,
    and the type of the result."""
    arguments = ", ".join(f"%a{i}: {tensor(array)}" for i, array in enumerate(inputs))
    lines, names, types = list[str](), list[str](), list[str]()
    for n, (op, operands, result) in enumerate(ops):
        name, _, attributes = op.partition(" ")
        taken = ", ".join(f"%a{i}" if i >= 0 else f"%z{-i}" for i in operands)
        kinds = ", ".join(tensor(inputs[i]) if i >= 0 else "tensor<1xf32>" for i in operands)
        lines.append(f'  %{n} = "{name}"({taken}) {attributes} : ({kinds}) -> {result}')
        names.append(f"%{n}")
        types.append(result)
    ends = f"  return {', '.join(names)} : {', '.join(types)}"
    return "\n".join([f"func.func @main({arguments}) -> ({', '.join(types)}) {{", before, *lines, ends, "}"])


def draw(*shape: int, kind: str = "float32", low: float = -3, high: float = 3) -> Array:
    """Random elements, the same each time."""
    generator = np.random.default_rng(len(shape) + sum(shape))
    if kind == "bool":
        return np.asarray(generator.random(shape) < 0.5)
    if kind.startswith("int"):
        return generator.integers(int(low), int(high), shape).astype(kind)
    return generator.uniform(low, high, shape).astype(kind)


def _erf(a: Array) -> Array:
    return np.asarray(np.vectorize(math.erf)(a), a.dtype)


A, B = draw(4, 6), draw(6, 4).T
K, J = draw(4, 6, kind="int32", low=-50, high=50), draw(4, 6, kind="int32", low=1, high=9)
P, Q = draw(4, 6, kind="bool"), ~draw(6, 4, kind="bool").T
N = np.where(P, np.nan, A).astype(np.float32)  # some are no numbers
ROW = draw(1, 6)
UP = draw(4, 6, low=0.1)  # above zero
F, INT, BIT = "tensor<4x6xf32>", "tensor<4x6xi32>", "tensor<4x6xi1>"


def _unsigned(f: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda a, b: f(a.view(np.uint32), b.view(np.uint32))


_COMPARISONS: list[Callable[..., Any]] = [
    *(np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal),
    *map(_unsigned, (np.less, np.less_equal, np.greater, np.greater_equal)),
]
_ORDERED: dict[int, Callable[..., Any]] = {
    1: np.equal,
    3: np.greater_equal,
    6: lambda a, b: (a < b) | (a > b),
    7: lambda a, b: ~(np.isnan(a) | np.isnan(b)),
    9: lambda a, b: ~(a <= b),
    13: np.not_equal,
    14: lambda a, b: np.isnan(a) | np.isnan(b),
}
ELEMENTWISE: list[tuple[str, list[int], str, Callable[..., Any]]] = [
    ("tosa.abs", [0], F, np.abs),
    ("tosa.add", [0, 8], F, np.add),
    ("tosa.sub", [8, 0], F, np.subtract),
    ("tosa.mul", [0, 8], F, np.multiply),
    ("tosa.maximum", [0, 1], F, np.maximum),
    ("tosa.minimum", [0, 4], F, np.minimum),
    ("tosa.pow", [9, 0], F, np.power),
    ("tosa.exp", [0], F, np.exp),
    ("tosa.log", [9], F, np.log),
    ("tosa.rsqrt", [9], F, lambda a: 1 / np.sqrt(a)),
    ("tosa.reciprocal", [9], F, lambda a: 1 / a),
    ("tosa.sigmoid", [0], F, lambda a: 1 / (1 + np.exp(-a))),
    ("tosa.tanh", [0], F, np.tanh),
    ("tosa.erf", [0], F, _erf),
    ("tosa.ceil", [0], F, np.ceil),
    ("tosa.floor", [0], F, np.floor),
    ("tosa.negate", [0], F, np.negative),
    ("tosa.clamp {min_val = -1.0 : f32, max_val = 2.0 : f32}", [0], F, lambda a: np.clip(a, -1, 2)),
    ("tosa.greater", [0, 8], BIT, np.greater),
    ("tosa.greater_equal", [0, 0], BIT, np.greater_equal),
    ("tosa.equal", [4, 4], BIT, np.equal),
    ("tosa.select", [5, 0, 8], F, np.where),
    ("tosa.cast", [0], INT, np.rint),
    ("tosa.cast", [0], BIT, lambda a: a != 0),
    ("tosa.cast", [5], F, lambda a: a.astype(np.float32)),
    ("tosa.intdiv", [2, 3], INT, lambda a, b: np.trunc(a / b)),
    ("tosa.bitwise_xor", [2, 3], INT, np.bitwise_xor),
    ("tosa.bitwise_not", [2], INT, np.invert),
    ("tosa.logical_left_shift", [2, 3], INT, np.left_shift),
    ("tosa.arithmetic_right_shift {round = false}", [2, 3], INT, np.right_shift),
    ("tosa.logical_right_shift", [2, 3], INT, _unsigned(np.right_shift)),
    ("tosa.logical_and", [5, 6], BIT, np.logical_and),
    ("tosa.logical_not", [5], BIT, np.logical_not),
    ("arith.addf", [0, 1], F, np.add),
    ("arith.remf", [0, 1], F, np.fmod),
    ("arith.maximumf", [0, 4], F, np.maximum),
    ("arith.maxnumf", [0, 4], F, np.fmax),
    ("arith.minnumf", [4, 0], F, np.fmin),
    ("arith.muli", [2, 3], INT, np.multiply),
    ("arith.divsi", [2, 3], INT, lambda a, b: np.trunc(a / b)),
    ("arith.divui", [2, 3], INT, _unsigned(np.floor_divide)),
    ("arith.floordivsi", [2, 3], INT, np.floor_divide),
    ("arith.ceildivsi", [2, 3], INT, lambda a, b: -(-a // b)),
    ("arith.ceildivui", [2, 3], INT, _unsigned(lambda a, b: a // b + (a % b != 0))),
    ("arith.remsi", [2, 3], INT, np.fmod),
    ("arith.remui", [2, 3], INT, _unsigned(np.remainder)),
    ("arith.maxui", [2, 3], INT, _unsigned(np.maximum)),
    ("arith.minsi", [2, 3], INT, np.minimum),
    ("arith.shrui", [2, 3], INT, _unsigned(np.right_shift)),
    ("arith.extui", [5], INT, lambda a: a.astype(np.int32)),
    ("arith.extsi", [5], INT, lambda a: -a.astype(np.int32)),
    ("arith.extsi", [7], INT, lambda a: a.astype(np.int32)),
    ("arith.extui", [7], INT, lambda a: a.view(np.uint8).astype(np.int32)),
    ("arith.trunci", [2], BIT, lambda a: a & 1),
    ("arith.trunci", [2], "tensor<4x6xi8>", lambda a: a.astype(np.int8)),
    ("arith.sitofp", [7], F, lambda a: a.astype(np.float32)),
    ("arith.uitofp", [7], F, lambda a: a.view(np.uint8).astype(np.float32)),
    ("arith.fptosi", [0], INT, np.trunc),
    ("arith.fptoui", [9], INT, np.trunc),
    ("arith.bitcast", [0], INT, lambda a: a.view(np.int32)),
    ("arith.select", [5, 0, 1], F, np.where),
    ("math.exp2", [0], F, np.exp2),
    ("math.log2", [9], F, np.log2),
    ("math.log10", [9], F, np.log10),
    ("math.log1p", [9], F, np.log1p),
    ("math.expm1", [0], F, np.expm1),
    ("math.atan", [0], F, np.arctan),
    ("math.atan2", [0, 1], F, np.arctan2),
    ("math.sinh", [0], F, np.sinh),
    ("math.erf", [0], F, _erf),
    ("math.trunc", [0], F, np.trunc),
    ("math.round", [0], F, lambda a: np.sign(a) * np.floor(np.abs(a) + 0.5)),
    ("math.roundeven", [0], F, np.rint),
    ("math.copysign", [0, 1], F, np.copysign),
    ("math.fma", [0, 1, 9], F, lambda a, b, c: a * b + c),
    ("math.clampf", [0, 10, 9], F, np.clip),
    ("math.isnan", [4], BIT, np.isnan),
    ("math.isinf", [4], BIT, np.isinf),
    ("math.fpowi", [0, 3], F, lambda a, b: a.astype(np.float64) ** b),
    ("math.ctpop", [2], INT, np.vectorize(lambda n: bin(int(n) & 0xFFFFFFFF).count("1"))),
    ("math.cttz", [3], INT, np.vectorize(lambda n: (int(n) & -int(n)).bit_length() - 1)),
]


ELEMENTWISE += [(f"arith.cmpi {{predicate = {i} : i64}}", [2, 3], BIT, f) for i, f in enumerate(_COMPARISONS)]
ELEMENTWISE += [(f"arith.cmpf {{predicate = {i} : i64}}", [0, 4], BIT, f) for i, f in _ORDERED.items()]


def test_elementwise_ops() -> None:
    small = draw(4, 6, kind="int8", low=-100, high=100)
    inputs = [A, B, K, J, N, P, Q, small, ROW, UP, -UP]
    ops = [(op, operands, kind) for op, operands, kind, _ in ELEMENTWISE]
    outputs = run(program(ops, inputs), *inputs)
    assert len(outputs) > 80
    for (op, operands, _, reference), array in zip(ELEMENTWISE, outputs, strict=True):
        with np.errstate(all="ignore"):
            expected = np.asarray(reference(*(inputs[i] for i in operands)))
        if array.dtype == np.int32 and expected.dtype == np.uint32:
            expected = expected.view(np.int32)
        np.testing.assert_allclose(array, expected, rtol=2e-5, atol=2e-6, err_msg=op)


# ---- Loops ------------------------------------------------------------------------------------------

_MULTIPLY_ADD = ["%m = arith.mulf %b0, %b1 : f32", "%n = arith.addf %b2, %m : f32", "linalg.yield %n"]


def structured(
    name: str, inputs: int, body: Sequence[str], attributes: str, *arrays: Array, outs: int = 1
) -> str:
    """A program of a structured op."""
    types = [tensor(array) for array in arrays]
    kinds = [_NAMES[str(array.dtype)] for array in arrays]
    arguments = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(types))
    scalars = ", ".join(f"%b{i}: {kind}" for i, kind in enumerate(kinds))
    *lines, last = body
    returned = last.split()[1:]
    lines.append(f'"linalg.yield"({" ".join(returned)}) : ({", ".join(kinds[inputs:])}) -> ()')
    segments = f"operandSegmentSizes = array<i32: {inputs}, {outs}>"
    listed = ", ".join(filter(None, [attributes, segments]))
    results = ", ".join(types[inputs:])
    names = ", ".join(f"%0#{i}" for i in range(outs)) if outs > 1 else "%0"
    return f"""func.func @main({arguments}) -> ({results}) {{
  %0{f":{outs}" if outs > 1 else ""} = "{name}"({", ".join(f"%a{i}" for i in range(len(arrays)))}) ({{
  ^bb0({scalars}):
    {chr(10).join(lines)}
  }}) {{{listed}}} : ({", ".join(types)}) -> ({results})
  return {names} : {results}
}}"""


def maps(loops: int, kinds: str, *results: str) -> str:
    """The attributes of a generic op: its loops by kind (p, r), its maps by their results."""
    dims = ", ".join(f"d{i}" for i in range(loops))
    words = {"p": '"parallel"', "r": '"reduction"'}
    listed = ", ".join(f"affine_map<({dims}) -> ({result})>" for result in results)
    return f"indexing_maps = [{listed}], iterator_types = [{', '.join(words[kind] for kind in kinds)}]"


def _windows(image: Array, kernel: Array, start: Array, stride: int, spread: int) -> Array:
    """A convolution of images [n, h, w, c] by a kernel [y, x, c, f]."""
    found = start.astype(np.float64)
    for y in range(kernel.shape[0]):
        for x in range(kernel.shape[1]):
            rows = image[:, y * spread :, x * spread :][:, ::stride, ::stride]
            part = rows[:, : start.shape[1], : start.shape[2]]
            found = found + np.einsum("nhwc,cf->nhwf", part, kernel[y, x])
    return found


X, W, C, V, S = draw(8, 6), draw(6, 4), draw(8, 4), draw(8), draw()
L3, L = draw(3), draw(10)
IMAGE, KERNEL = draw(2, 9, 7, 3), draw(3, 3, 3, 5)

LOOPS: dict[str, tuple[str, Sequence[Array], Any]] = {
    "matmul": (structured("linalg.matmul", 2, _MULTIPLY_ADD, "", X, W, C), [X, W, C], C + X @ W),
    "transposed": (
        structured(
            "linalg.matmul",
            2,
            _MULTIPLY_ADD,
            maps(3, "ppr", "d2, d0", "d2, d1", "d0, d1").split(", iterator")[0],
            X,
            C,
            draw(6, 4),
        ),
        [X, C, draw(6, 4)],
        draw(6, 4) + X.T @ C,
    ),
    "batches": (
        structured("linalg.batch_matmul", 2, _MULTIPLY_ADD, "", draw(2, 3, 4), draw(2, 4, 5), draw(2, 3, 5)),
        [draw(2, 3, 4), draw(2, 4, 5), draw(2, 3, 5)],
        draw(2, 3, 5) + draw(2, 3, 4) @ draw(2, 4, 5),
    ),
    "largest": (
        structured(
            "linalg.generic",
            1,
            ["%m = arith.maximumf %b0, %b1 : f32", "linalg.yield %m"],
            maps(2, "pr", "d0, d1", "d0"),
            X,
            V,
        ),
        [X, V],
        np.maximum(V, X.max(1)),
    ),
    "squares": (
        structured(
            "linalg.generic",
            1,
            ["%m = arith.mulf %b0, %b0 : f32", "%n = arith.addf %m, %b1 : f32", "linalg.yield %n"],
            maps(2, "rr", "d0, d1", ""),
            X,
            S,
        ),
        [X, S],
        S + (X.astype(np.float64) ** 2).sum(),
    ),
    "softmax": (
        structured(
            "linalg.generic",
            2,
            [
                "%m = arith.subf %b0, %b1 : f32",
                "%e = math.exp %m : f32",
                "%n = arith.addf %b2, %e : f32",
                "linalg.yield %n",
            ],
            maps(2, "pr", "d0, d1", "d0", "d0"),
            X,
            V,
            draw(8, low=0),
        ),
        [X, V, draw(8, low=0)],
        draw(8, low=0) + np.exp(X - V[:, None]).sum(1),
    ),
    "stencil": (
        structured("linalg.generic", 2, _MULTIPLY_ADD, maps(2, "pr", "d0 + d1", "d1", "d0"), L, L3, V),
        [L, L3, V],
        V + np.correlate(L, L3, "valid"),
    ),
    "rows and columns": (
        structured(
            "linalg.generic", 1, ["linalg.yield %b0"], maps(2, "pp", "d0 * 6 + d1", "d1, d0"), draw(48), X.T
        ),
        [draw(48), X.T],
        draw(48).reshape(8, 6).T,
    ),
    "where it is": (
        structured(
            "linalg.generic",
            1,
            [
                '%i = "linalg.index"() {dim = 0 : i64} : () -> index',
                "%j = arith.index_cast %i : index to i32",
                "%m = arith.muli %j, %b0 : i32",
                "linalg.yield %m",
            ],
            maps(2, "pp", "d1, d0", "d0, d1"),
            K,
            np.zeros((6, 4), np.int32),
        ),
        [K, np.zeros((6, 4), np.int32)],
        K.T * np.arange(6)[:, None],
    ),
    "sums": (
        structured(
            "linalg.reduce",
            1,
            ["%m = arith.addf %b0, %b1 : f32", "linalg.yield %m"],
            "dimensions = array<i64: 0>",
            X,
            draw(6),
        ),
        [X, draw(6)],
        draw(6) + X.sum(0),
    ),
    "transpose": (
        structured("linalg.transpose", 1, ["linalg.yield %b0"], "permutation = array<i64: 1, 0>", X, X.T),
        [X, X.T],
        X.T,
    ),
    "broadcast": (
        structured("linalg.broadcast", 1, ["linalg.yield %b0"], "dimensions = array<i64: 1>", V, X),
        [V, X],
        np.repeat(V[:, None], 6, 1),
    ),
    "convolution": (
        structured(
            "linalg.conv_2d_nhwc_hwcf",
            2,
            _MULTIPLY_ADD,
            "strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>",
            IMAGE,
            KERNEL,
            draw(2, 4, 3, 5),
        ),
        [IMAGE, KERNEL, draw(2, 4, 3, 5)],
        _windows(IMAGE, KERNEL, draw(2, 4, 3, 5), 2, 1),
    ),
    "pooling": (
        structured(
            "linalg.pooling_nhwc_max",
            2,
            ["%m = arith.maximumf %b2, %b0 : f32", "linalg.yield %m"],
            "strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>",
            IMAGE,
            draw(2, 2),
            draw(2, 8, 6, 3),
        ),
        [IMAGE, draw(2, 2), draw(2, 8, 6, 3)],
        np.maximum(
            draw(2, 8, 6, 3),
            np.max([IMAGE[:, y : y + 8, x : x + 6] for y in range(2) for x in range(2)], axis=0),
        ),
    ),
}


@pytest.mark.parametrize("name", LOOPS)
def test_loops(name: str) -> None:
    text, inputs, expected = LOOPS[name]
    (found,) = run(text, *inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


_A, _B = draw(4, 6), draw(4, 6, low=1, high=2)
_POOLED = draw(2, 8, 8, 3, low=-3, high=-1)
_PARTS = np.stack([_POOLED[:, y::2, x::2] for y in range(2) for x in range(2)])
_BYTES = draw(4, 6, kind="int8"), draw(6, 5, kind="int8")
_SQUARE = "{dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}"
_KIND = "kind=#linalg.elementwise_kind<{}> "
NAMED: dict[str, tuple[str, Sequence[Array], Array]] = {
    "add": ("linalg.add ", [_A, _B], _A + _B),
    "sub": ("linalg.sub ", [_A, _B], _A - _B),
    "div": ("linalg.div ", [_A, _B], _A / _B),
    "max": ("linalg.max ", [_A, _B], np.maximum(_A, _B)),
    "powf": ("linalg.powf ", [_B, _A], _B**_A),
    "exp": ("linalg.exp ", [_A], np.exp(_A)),
    "negf": ("linalg.negf ", [_A], -_A),
    "square": ("linalg.square ", [_A], _A * _A),
    "reciprocal": ("linalg.reciprocal ", [_B], 1 / _B),
    "select": ("linalg.select ", [_A > 0, _A, _B], np.where(_A > 0, _A, _B)),
    "elementwise": (f"linalg.elementwise {_KIND.format('sub')}", [_A, _B], _A - _B),
    "sums": (f"linalg.pooling_nhwc_sum {_SQUARE} ", [_POOLED, draw(2, 2)], _PARTS.sum(0) + 0.5),
    "largest": (f"linalg.pooling_nhwc_max {_SQUARE} ", [_POOLED, draw(2, 2)], np.maximum(_PARTS.max(0), 0.5)),
    "least": (f"linalg.pooling_nhwc_min {_SQUARE} ", [_POOLED, draw(2, 2)], np.minimum(_PARTS.min(0), 0.5)),
    "zero points": (
        "linalg.quantized_matmul ",
        [*_BYTES, np.asarray(2, np.int32), np.asarray(-1, np.int32)],
        (_BYTES[0].astype(np.int32) - 2) @ (_BYTES[1].astype(np.int32) + 1) + 5,
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_named_ops_without_a_region(name: str) -> None:
    """Where results are reduced, they start from one half, or from five."""
    op, inputs, expected = NAMED[name]
    kinds = [tensor(each).replace("tensor<i32>", "i32") for each in inputs]
    names = ", ".join(f"%a{i}" for i in range(len(inputs)))
    result = tensor(expected.astype(np.int32 if "quantized" in op else np.float32))
    start = "5 : i32" if "quantized" in op else "0.5 : f32"
    text = f"""
func.func @main({", ".join(f"%a{i}: {kind}" for i, kind in enumerate(kinds))}) -> {result} {{
  %c = arith.constant {start}
  %o = tensor.splat %c : {result}
  %r = {op}ins({names} : {", ".join(kinds)}) outs(%o : {result}) -> {result}
  return %r : {result}
}}
"""
    (found,) = run(text, *inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_what_a_transpose_is_written_into_does_not_count() -> None:
    text = """
func.func @main(%a: tensor<4x6xf32>, %o: tensor<6x4xf32>) -> tensor<6x4xf32> {
  %r = linalg.transpose ins(%a : tensor<4x6xf32>) outs(%o : tensor<6x4xf32>) permutation = [1, 0]
  return %r : tensor<6x4xf32>
}
"""
    (found,) = run(text, _A, draw(6, 4))
    np.testing.assert_array_equal(found, _A.T)


def test_sums_of_products_are_products_of_tensors() -> None:
    for name in ("matmul", "batches", "stencil", "convolution"):
        written = str(lowered(parse_module(Text(LOOPS[name][0].encode(), name)), RuleBook()))
        assert "stablehlo.dot_general" in written
        assert "linalg" not in written


# ---- tosa: what is not elementwise ------------------------------------------------------------------

T3, U3, P3 = draw(2, 3, 4), draw(2, 4, 5), draw(2, 3, 4, kind="bool")
OHWI, HWCM, BIAS = KERNEL.transpose(3, 0, 1, 2), draw(3, 3, 3, 2), draw(5)
_CONV = (
    "{acc_type = f32, pad = array<i64: 1, 1, 0, 2>, stride = array<i64: 2, 1>, dilation = array<i64: 1, 2>}"
)
_POOL = "{kernel = array<i64: 2, 3>, pad = array<i64: 0, 1, 1, 1>, stride = array<i64: 2, 2>, acc_type = f32}"
_ZEROS = '  %z1 = "tosa.const"() {values = dense<0.0> : tensor<1xf32>} : () -> tensor<1xf32>'


def _convolved() -> Array:
    image = np.pad(IMAGE, [(0, 0), (1, 1), (0, 2), (0, 0)])
    found = np.zeros((2, 5, 5, 5)) + BIAS
    for y in range(3):
        for x in range(3):
            part = image[:, y : y + 9 : 2, 2 * x : 2 * x + 5]
            found = found + np.einsum("nhwc,oc->nhwo", part, OHWI[:, y, x])
    return found


def _depthwise() -> Array:
    found = np.zeros((2, 7, 5, 3, 2))
    for y in range(3):
        for x in range(3):
            found = found + IMAGE[:, y : y + 7, x : x + 5, :, None] * HWCM[y, x]
    return found.reshape(2, 7, 5, 6) + np.arange(6)


def _pooled(largest: bool) -> Array:
    image = np.pad(IMAGE.astype(np.float64), [(0, 0), (0, 1), (1, 1), (0, 0)], constant_values=np.nan)
    windows = [image[:, y : y + 9 : 2, x : x + 7 : 2] for y in range(2) for x in range(3)]
    return np.asarray(np.nanmax(windows, 0) if largest else np.nanmean(windows, 0))


SPOTS, ROWS = np.asarray([[3, 0], [1, 2]], np.int32), draw(2, 2, 5)
BYTES, TABLE = draw(3, 4, kind="int8", low=-128, high=128), draw(256, kind="int8", low=-128, high=128)
WORDS = np.arange(-(1 << 15), 1 << 15, 5000).astype(np.int16)
LONG_TABLE = draw(513, kind="int64", low=-(1 << 15), high=1 << 15).astype(np.int16)
_RESIZE = (
    "{{scale = array<i64: 5, 2, 4, 3>, offset = array<i64: -1, 2>, border = array<i64: 3, 1>, "
    "mode = #tosa.resize_mode<{}>}}"
)


def _scattered() -> Array:
    found = U3.copy()
    for n, row in enumerate(SPOTS):
        found[n, row] = ROWS[n]
    return found


def _between_entries() -> Array:
    place = WORDS.astype(np.int64) + (1 << 15)
    at, part, table = place >> 7, place & 127, LONG_TABLE.astype(np.int64)
    return np.asarray((table[at] * 128 + (table[at + 1] - table[at]) * part).astype(np.int32))


def _resized(*, nearest: bool) -> Array:
    """By the definition of TOSA, pixel by pixel."""
    found = np.zeros((2, 20, 10, 3))
    height, width = IMAGE.shape[1:3]
    for oy in range(20):
        for ox in range(10):
            (iy, dy), (ix, dx) = divmod(oy * 2 - 1, 5), divmod(ox * 3 + 2, 4)
            fy, fx = dy / 5, dx / 4
            ys, xs = ([min(max(i, 0), n - 1) for i in (at, at + 1)] for at, n in ((iy, height), (ix, width)))
            if nearest:
                found[:, oy, ox] = IMAGE[:, ys[fy >= 0.5], xs[fx >= 0.5]]
                continue
            for y, part in zip(ys, (1 - fy, fy), strict=True):
                for x, share in zip(xs, (1 - fx, fx), strict=True):
                    found[:, oy, ox] += IMAGE[:, y, x] * part * share
    return found


def _transposed() -> Array:
    height, width = IMAGE.shape[1:3]
    found = np.zeros((2, (height - 1) * 2 + 3 + 1, (width - 1) * 3 + 3 + 2, 5)) + BIAS
    for y in range(height):
        for x in range(width):
            spread = np.einsum("nc,oyxc->nyxo", IMAGE[:, y, x], OHWI)
            found[:, 1 + 2 * y : 4 + 2 * y, 3 * x : 3 * x + 3] += spread
    return found


TOSA: list[tuple[str, list[int], Any]] = [
    ("tosa.matmul", [0, 1, -1, -1], T3 @ U3),
    ("tosa.matmul_t", [0, 0], T3 @ T3.transpose(0, 2, 1)),
    ("tosa.fully_connected", [9, 10, 6], X @ draw(5, 6).T + BIAS),
    (f"tosa.conv2d {_CONV}", [3, 4, 6, -1, -1], _convolved()),
    (
        "tosa.depthwise_conv2d {acc_type = f32, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>, "
        "dilation = array<i64: 1, 1>}",
        [3, 5, 7],
        _depthwise(),
    ),
    (f"tosa.max_pool2d {_POOL}", [3], _pooled(largest=True)),
    (f"tosa.avg_pool2d {_POOL}", [3, -1, -1], _pooled(largest=False)),
    ("tosa.reduce_sum {axis = 1 : i32}", [0], T3.sum(1, keepdims=True)),
    ("tosa.reduce_max {axis = 2 : i32}", [0], T3.max(2, keepdims=True)),
    ("tosa.reduce_min {axis = 0 : i32}", [0], T3.min(0, keepdims=True)),
    ("tosa.reduce_product {axis = 2 : i32}", [0], T3.prod(2, keepdims=True)),
    ("tosa.reduce_all {axis = 1 : i32}", [2], P3.all(1, keepdims=True)),
    ("tosa.reduce_any {axis = 2 : i32}", [2], P3.any(2, keepdims=True)),
    ("tosa.argmax {axis = 1 : i32}", [0], T3.argmax(1).astype(np.int32)),
    ("tosa.reshape {new_shape = array<i64: 6, 4>}", [0], T3.reshape(6, 4)),
    ("tosa.transpose {perms = array<i32: 2, 0, 1>}", [0], T3.transpose(2, 0, 1)),
    ("tosa.concat {axis = 2 : i32}", [0, 0], np.concatenate([T3, T3], 2)),
    ("tosa.reverse {axis = 1 : i32}", [0], T3[:, ::-1]),
    ("tosa.slice {start = array<i64: 0, 1, 2>, size = array<i64: 2, 2, 1>}", [0], T3[:, 1:3, 2:3]),
    ("tosa.pad {padding = array<i64: 0, 0, 1, 2, 0, 1>}", [0], np.pad(T3, [(0, 0), (1, 2), (0, 1)])),
    ("tosa.tile {multiples = array<i64: 1, 2, 3>}", [0], np.tile(T3, (1, 2, 3))),
    ("tosa.gather", [1, 8], np.stack([U3[n][[3, 0, 0]] for n in range(2)])),
    ("tosa.scatter", [1, 11, 12], _scattered()),
    ("tosa.table", [13, 14], TABLE[BYTES.astype(int) + 128]),
    ("tosa.table", [15, 16], _between_entries()),
    (f"tosa.resize {_RESIZE.format('NEAREST')}", [3], _resized(nearest=True)),
    (f"tosa.resize {_RESIZE.format('BILINEAR')}", [3], _resized(nearest=False)),
    (
        "tosa.transpose_conv2d {acc_type = f32, out_pad = array<i64: 1, 0, 0, 2>, stride = array<i64: 2, 3>}",
        [3, 4, 6, -1, -1],
        _transposed(),
    ),
]


def test_tosa() -> None:
    places = np.asarray([[3, 0, 0]] * 2, np.int32)
    inputs = [T3, U3, P3, IMAGE, OHWI, HWCM, BIAS, np.arange(6, dtype=np.float32), places, X, draw(5, 6)]
    inputs += [SPOTS, ROWS, BYTES, TABLE, WORDS, LONG_TABLE]
    kinds = {"float64": "float32"}
    ops = [
        (op, operands, tensor(np.asarray(known).astype(kinds.get(str(np.asarray(known).dtype), known.dtype))))
        for op, operands, known in TOSA
    ]
    for (op, _, expected), found in zip(TOSA, run(program(ops, inputs, _ZEROS), *inputs), strict=True):
        assert found.shape == expected.shape, op
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5, err_msg=op)


def test_tensor() -> None:
    text = """func.func @main(%a: tensor<4x6xf32>, %x: f32, %i: index) ->
      (tensor<24xf32>, tensor<2x2x6xf32>, tensor<2x6xf32>, tensor<6x6xf32>, f32, tensor<4x6xf32>,
       tensor<4x6xf32>, tensor<2xf32>, tensor<8x6xf32>, index) {
      %c = arith.constant 1 : index
      %0 = tensor.collapse_shape %a [[0, 1]] : tensor<4x6xf32> into tensor<24xf32>
      %1 = tensor.expand_shape %a [[0, 1], [2]] output_shape [2, 2, 6]
        : tensor<4x6xf32> into tensor<2x2x6xf32>
      %2 = tensor.extract_slice %a[%i, 0] [2, 6] [1, 1] : tensor<4x6xf32> to tensor<2x6xf32>
      %3 = tensor.pad %a low[1, 0] high[1, 0] {
        ^bb0(%j: index, %k: index):
          tensor.yield %x : f32
      } : tensor<4x6xf32> to tensor<6x6xf32>
      %4 = tensor.extract %a[%i, %c] : tensor<4x6xf32>
      %5 = tensor.insert %x into %a[%c, %i] : tensor<4x6xf32>
      %6 = tensor.insert_slice %2 into %a[0, 0] [2, 6] [1, 1] : tensor<2x6xf32> into tensor<4x6xf32>
      %7 = tensor.from_elements %x, %4 : tensor<2xf32>
      %8 = tensor.concat dim(0) %a, %a : (tensor<4x6xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
      %9 = tensor.dim %a, %c : tensor<4x6xf32>
      return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9 : tensor<24xf32>, tensor<2x2x6xf32>, tensor<2x6xf32>,
        tensor<6x6xf32>, f32, tensor<4x6xf32>, tensor<4x6xf32>, tensor<2xf32>, tensor<8x6xf32>, index
    }"""
    module = lowered(parse_module(Text(text.encode(), "tensor")), RuleBook())
    outputs = run(str(module), A, np.float32(7), np.int64(2))
    put, moved = A.copy(), A.copy()
    put[1, 2], moved[:2] = 7, A[2:]
    padded = np.pad(A, [(1, 1), (0, 0)], constant_values=7)
    rest = [A[2, 1], put, moved, np.asarray([7, A[2, 1]]), np.concatenate([A, A]), np.int64(6)]
    for one, other in zip(outputs, [A.reshape(24), A.reshape(2, 2, 6), A[2:], padded, *rest], strict=True):
        np.testing.assert_array_equal(one, other)


def test_elements_by_their_indices() -> None:
    text = """#map = affine_map<(d0, d1)[s0] -> ((d0 - d1) floordiv 2 + (d0 * 5) mod 3 + s0)>
    func.func @main(%a: tensor<4x6xf32>, %i: tensor<5x1xindex>, %j: tensor<3x2xi32>, %n: index) ->
      (tensor<5x6xf32>, tensor<5x4x1xf32>, tensor<3xf32>, tensor<3x4xf32>, index) {
      %0 = tensor.gather %a[%i] gather_dims([0]) : (tensor<4x6xf32>, tensor<5x1xindex>) -> tensor<5x6xf32>
      %1 = tensor.gather %a[%i] gather_dims([1]) : (tensor<4x6xf32>, tensor<5x1xindex>) -> tensor<5x4x1xf32>
      %2 = tensor.gather %a[%j] gather_dims([0, 1]) : (tensor<4x6xf32>, tensor<3x2xi32>) -> tensor<3xf32>
      %3 = tensor.generate {
        ^bb0(%p: index, %q: index):
          %m = affine.apply #map(%p, %q)[%n]
          %k = arith.index_cast %m : index to i32
          %f = arith.sitofp %k : i32 to f32
          tensor.yield %f : f32
      } : tensor<3x4xf32>
      %4 = affine.apply affine_map<(d0) -> (-d0 ceildiv 3)>(%n)
      return %0, %1, %2, %3, %4 : tensor<5x6xf32>, tensor<5x4x1xf32>, tensor<3xf32>, tensor<3x4xf32>, index
    }"""
    module = lowered(parse_module(Text(text.encode(), "indices")), RuleBook())
    rows, spots = np.asarray([[3], [0], [1], [1], [2]]), np.asarray([[0, 5], [3, 1], [2, 2]], np.int32)
    outputs = run(str(module), A, rows, spots, np.int64(7))
    p, q = np.indices((3, 4))
    made = ((p - q) // 2 + p * 5 % 3 + 7).astype(np.float32)
    expected = [A[rows[:, 0]], A[:, rows[:, 0]].T[..., None], A[spots[:, 0], spots[:, 1]], made, np.int64(-2)]
    for one, other in zip(outputs, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_floats_have_no_zero_points() -> None:
    (found,) = run(program([("tosa.negate", [0, 1, 1], tensor(A))], [A, draw(1)]), A, draw(1))
    np.testing.assert_array_equal(found, -A)


def test_notes_about_a_constant_are_not_its_elements() -> None:
    text = """func.func @main(%a: tensor<4xi32>) -> (tensor<4xi32>, tensor<4xi32>) {
      %0 = arith.constant {shard.entries = 2 : i64} dense<7> : tensor<4xi32>
      %s = "tosa.const"() {shard.entries = 1 : i64, values = dense<0> : tensor<1xi8>} : () -> tensor<1xi8>
      %1 = "tosa.mul"(%a, %0, %s) : (tensor<4xi32>, tensor<4xi32>, tensor<1xi8>) -> tensor<4xi32>
      return %0, %1 : tensor<4xi32>, tensor<4xi32>
    }"""
    module = lowered(parse_module(Text(text.encode(), "constants")), RuleBook())
    seven, product = run(str(module), np.arange(4, dtype=np.int32))
    np.testing.assert_array_equal(seven, np.full(4, 7))
    np.testing.assert_array_equal(product, 7 * np.arange(4))


TWO_RESULTS = """
func.func @main(%x: tensor<4x4xf32>, %y: tensor<4x4xf32>, %z: tensor<4xf32>)
    -> (tensor<4x4xf32>, tensor<4xf32>) {
  %0:2 = linalg.generic {iterator_types = ["parallel", "reduction"], indexing_maps =
      [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, affine_map<(i, j) -> (i)>]}
      ins(%x : tensor<4x4xf32>) outs(%y, %z : tensor<4x4xf32>, tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %c, %a : f32
    linalg.yield %a, %s : f32, f32
  } -> (tensor<4x4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<4x4xf32>, tensor<4xf32>
}
"""
LOOP = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = arith.constant 0 : index
  %b = arith.constant 3 : index
  %c = arith.constant 1 : index
  %0 = scf.for %i = %a to %b step %c iter_args(%y = %x) -> (tensor<4xf32>) {
    %1 = tosa.tanh %y : (tensor<4xf32>) -> tensor<4xf32>
    scf.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<4xf32>
}
"""
COUNTS = np.arange(6, dtype=np.int32).reshape(2, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            program([("tosa.negate", [0, 1, 1], tensor(COUNTS))], [COUNTS, COUNTS[0, :1]]),
            "tosa.negate cannot run: operand 1 is not a constant zero",
        ),
        (
            structured(
                "linalg.generic",
                1,
                ["%m = arith.subf %b0, %b1 : f32", "linalg.yield %m"],
                maps(2, "pr", "d0, d1", "d0"),
                X,
                V,
            ),
            "linalg.generic cannot run: its body combines elements in a way that is not known",
        ),
        (program([("tosa.rfft2d", [0], F)], [A]), "XLA does not have the op tosa.rfft2d"),
        (TWO_RESULTS, "linalg.generic cannot run: it reduces, and has several results"),
        (LOOP, "XLA does not have the op scf.for"),
    ],
)
def test_what_cannot_run(text: str, message: str) -> None:
    with pytest.raises(ShardlogError) as error:
        shardlog.run(text.encode()).compile()
    assert message in error.value.message

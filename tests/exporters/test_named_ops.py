"""Each named op of linalg is computed as its name says: beside NumPy, over the whole space of its loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from shardlog.importers.dialects.bodies import bodies
from shardlog.rulebook.book import RuleBook

from .test_lowering import Array, _erf, run, tensor

# For each op the dimensions of inputs and output: a letter is a loop, and "y+h" the sum of two.
SUMS = {
    "matmul": "m k, k n -> m n",
    "matmul_transpose_a": "k m, k n -> m n",
    "matmul_transpose_b": "m k, n k -> m n",
    "batch_matmul": "b m k, b k n -> b m n",
    "batch_matmul_transpose_a": "b k m, b k n -> b m n",
    "batch_matmul_transpose_b": "b m k, b n k -> b m n",
    "batch_reduce_matmul": "b m k, b k n -> m n",
    "batch_matvec": "b m k, b k -> b m",
    "batch_vecmat": "b k, b k n -> b n",
    "mmt4d": "m k p q, n k r q -> m n p r",
    "batch_mmt4d": "b m k p q, b n k r q -> b m n p r",
    "matvec": "m n, n -> m",
    "vecmat": "m, m n -> n",
    "dot": "m, m ->",
    "conv_1d": "x+w, w -> x",
    "conv_1d_nwc_wcf": "n x+w c, w c f -> n x f",
    "conv_1d_ncw_fcw": "n c x+w, f c w -> n f x",
    "conv_2d": "y+h x+w, h w -> y x",
    "conv_2d_nhwc_hwcf": "n y+h x+w c, h w c f -> n y x f",
    "conv_2d_nhwc_fhwc": "n y+h x+w c, f h w c -> n y x f",
    "conv_2d_nchw_fchw": "n c y+h x+w, f c h w -> n f y x",
    "conv_2d_ngchw_fgchw": "n g c y+h x+w, f g c h w -> n g f y x",
    "conv_2d_ngchw_gfchw": "n g c y+h x+w, g f c h w -> n g f y x",
    "conv_2d_nhwgc_gfhwc": "n y+h x+w g c, g f h w c -> n y x g f",
    "conv_3d": "z+d y+h x+w, d h w -> z y x",
    "conv_3d_ndhwc_dhwcf": "n z+d y+h x+w c, d h w c f -> n z y x f",
    "conv_3d_ncdhw_fcdhw": "n c z+d y+h x+w, f c d h w -> n f z y x",
    "depthwise_conv_1d_ncw_cw": "n c x+w, c w -> n c x",
    "depthwise_conv_1d_nwc_wc": "n x+w c, w c -> n x c",
    "depthwise_conv_1d_nwc_wcm": "n x+w c, w c m -> n x c m",
    "depthwise_conv_2d_nchw_chw": "n c y+h x+w, c h w -> n c y x",
    "depthwise_conv_2d_nhwc_hwc": "n y+h x+w c, h w c -> n y x c",
    "depthwise_conv_2d_nhwc_hwcm": "n y+h x+w c, h w c m -> n y x c m",
    "depthwise_conv_3d_ncdhw_cdhw": "n c z+d y+h x+w, c d h w -> n c z y x",
    "depthwise_conv_3d_ndhwc_dhwc": "n z+d y+h x+w c, d h w c -> n z y x c",
    "depthwise_conv_3d_ndhwc_dhwcm": "n z+d y+h x+w c, d h w c m -> n z y x c m",
}
POOLED = {
    "ncw": "n c x+w, w -> n c x",
    "nwc": "n x+w c, w -> n x c",
    "nchw": "n c y+h x+w, h w -> n c y x",
    "nhwc": "n y+h x+w c, h w -> n y x c",
    "ndhwc": "n z+d y+h x+w c, d h w -> n z y x c",
}
QUANTIZED = {
    "quantized_matmul": SUMS["matmul"],
    "quantized_batch_matmul": SUMS["batch_matmul"],
    **{f"{name}_q": dims for name, dims in SUMS.items() if f"linalg.{name}_q" in bodies().terms},
}
# Ops with a rule; the others are refused by name.
RULED = {name.removeprefix("linalg.") for name, _ in RuleBook().traits.relations["written_as"]}
SIZES = dict(zip("bmknpqrxyzwhdcfg", (2, 3, 4, 2, 2, 3, 2, 5, 4, 3, 3, 2, 2, 3, 2, 2), strict=True))
_UNSIGNED = np.uint32


def computed(dims: str, inputs: list[Array], start: Array, combine: Callable[[Any, Any, Any], Any]) -> Array:
    """The output of loops that combine an element of it with one of each input."""
    *sides, out = [side.split() for side in re.split(r"->|,", dims)]
    letters = sorted(set(re.findall(r"\w", dims)))
    result = start.copy()
    for point in product(*(range(SIZES[letter]) for letter in letters)):
        at = dict(zip(letters, point, strict=True))
        places = [tuple(sum(at[i] for i in dim.split("+")) for dim in side) for side in (*sides, out)]
        left, right = (array[place] for array, place in zip(inputs, places, strict=False))
        result[places[-1]] = combine(result[places[-1]], left, right)
    return result


def shapes(dims: str) -> list[list[int]]:
    def size(dim: str) -> int:
        loops = dim.split("+")
        return sum(SIZES[loop] for loop in loops) - len(loops) + 1

    return [[size(dim) for dim in side.split()] for side in re.split(r"->|,", dims)]


def drawn(dims: str, kind: type, low: int = -8, high: int = 8, out: type | None = None) -> list[Array]:
    """Inputs and the start of the output: whole numbers, whose sums are exact."""
    draw = np.random.default_rng(len(dims))
    kinds = (kind, kind, out or kind)
    return [
        np.asarray(draw.integers(low, high, shape)).astype(k)
        for shape, k in zip(shapes(dims), kinds, strict=True)
    ]


def result_of(op: str, inputs: list[Array], start: Array) -> Array:
    kinds = [tensor(each).replace("tensor<i32>", "i32") for each in inputs]
    taken = ", ".join(f"%a{i}" for i in range(len(inputs)))
    out = tensor(start)
    arguments = ", ".join(f"%a{i}: {kind}" for i, kind in enumerate(kinds))
    (found,) = run(
        f"func.func @main({arguments}, %o: {out}) -> {out} {{\n"
        f"  %r = linalg.{op} ins({taken} : {', '.join(kinds)}) outs(%o : {out}) -> {out}\n"
        f"  return %r : {out}\n}}",
        *inputs,
        start,
    )
    return found


@pytest.mark.parametrize("kind", [np.float32, np.int32])
@pytest.mark.parametrize("op", [op for op in SUMS if op in RULED])
def test_sums_of_products(op: str, kind: type) -> None:
    *inputs, start = drawn(SUMS[op], kind)
    expected = computed(SUMS[op], inputs, start, lambda o, a, b: o + a * b)
    np.testing.assert_array_equal(result_of(op, inputs, start), expected)


@pytest.mark.parametrize("op", [op for op in QUANTIZED if op in RULED])
def test_zero_points(op: str) -> None:
    *inputs, start = drawn(QUANTIZED[op], np.int8, out=np.int32)
    expected = computed(QUANTIZED[op], inputs, start, lambda o, a, b: o + (int(a) - 2) * (int(b) + 3))
    points = [np.asarray(2, np.int32), np.asarray(-3, np.int32)]
    np.testing.assert_array_equal(result_of(op, [*inputs, *points], start), expected)


POOLINGS: dict[str, tuple[type, Callable[[Any, Any, Any], Any]]] = {
    "sum": (np.float32, lambda o, a, _: o + a),
    "max": (np.float32, lambda o, a, _: max(o, a)),
    "min": (np.float32, lambda o, a, _: min(o, a)),
    "max_unsigned": (np.int32, lambda o, a, _: max(o, a, key=_UNSIGNED)),
    "min_unsigned": (np.int32, lambda o, a, _: min(o, a, key=_UNSIGNED)),
}


@pytest.mark.parametrize("pooling", POOLINGS)
@pytest.mark.parametrize("layout", POOLED)
def test_poolings(layout: str, pooling: str) -> None:
    kind, combine = POOLINGS[pooling]
    op = f"pooling_{layout}_{pooling}"
    if op in RULED:
        *inputs, start = drawn(POOLED[layout], kind)
        expected = computed(POOLED[layout], inputs, start, combine)
        np.testing.assert_array_equal(result_of(op, inputs, start), expected)


_X, _Y = np.random.default_rng(1).uniform(0.5, 3, (2, 4, 6)).astype(np.float32)
_I, _J = np.random.default_rng(2).integers(-9, 9, (2, 4, 6)).astype(np.int32)
_J[_J == 0] = 5
_UI, _UJ = _I.astype(np.uint32), _J.astype(np.uint32)
ELEMENTWISE: dict[str, tuple[list[Array], Array]] = {
    "exp": ([_X], np.exp(_X)),
    "log": ([_X], np.log(_X)),
    "abs": ([-_X], _X),
    "ceil": ([_X], np.ceil(_X)),
    "floor": ([-_X], np.floor(-_X)),
    "negf": ([_X], -_X),
    "round": ([np.asarray([2.5, -2.5, 0.5, 1.2], np.float32)], np.asarray([3, -3, 1, 1])),
    "sqrt": ([_X], np.sqrt(_X)),
    "rsqrt": ([_X], 1 / np.sqrt(_X)),
    "tanh": ([_X], np.tanh(_X)),
    "erf": ([_X], _erf(_X)),
    "square": ([_X], _X * _X),
    "reciprocal": ([_X], 1 / _X),
    "copy": ([_X], _X),
    "add": ([_X, _Y], _X + _Y),
    "sub": ([_X, _Y], _X - _Y),
    "mul": ([_X, _Y], _X * _Y),
    "div": ([_X, _Y], _X / _Y),
    "max": ([_X, _Y], np.maximum(_X, _Y)),
    "min": ([_X, _Y], np.minimum(_X, _Y)),
    "powf": ([_X, _Y], _X**_Y),
    "select": ([_X > 1, _X, _Y], np.where(_X > 1, _X, _Y)),
    "add of integers": ([_I, _J], _I + _J),
    "sub of integers": ([_I, _J], _I - _J),
    "mul of integers": ([_I, _J], _I * _J),
    "div of integers": ([_I, _J], np.trunc(_I / _J).astype(np.int32)),
    "div_unsigned of integers": ([_I, _J], (_UI // _UJ).astype(np.int32)),
    "max of integers": ([_I, _J], np.maximum(_I, _J)),
    "min of integers": ([_I, _J], np.minimum(_I, _J)),
    "abs of integers": ([_I], np.abs(_I)),
    "square of integers": ([_I], _I * _I),
    "add of booleans": ([_I > 0, _J > 0], (_I > 0) | (_J > 0)),
    "mul of booleans": ([_I > 0, _J > 0], (_I > 0) & (_J > 0)),
    "max of booleans": ([_I > 0, _J > 0], (_I > 0) | (_J > 0)),
    "min of booleans": ([_I > 0, _J > 0], (_I > 0) & (_J > 0)),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str) -> None:
    inputs, expected = ELEMENTWISE[name]
    found = result_of(name.partition(" ")[0], inputs, np.zeros_like(inputs[-1]))
    assert found.dtype == inputs[-1].dtype
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_every_op_with_a_function_of_its_own_is_in_a_table() -> None:
    poolings = (f"pooling_{layout}_{pooling}" for layout, pooling in product(POOLED, POOLINGS))
    covered = {*SUMS, *QUANTIZED, *poolings, *(name.partition(" ")[0] for name in ELEMENTWISE)}
    others = {"contract", "fill", "transpose", "broadcast"}  # with attributes; see test_lowering.py
    assert {name.removeprefix("linalg.") for name in bodies().terms} - others <= covered

"""Values that devices have parts of, which a maximum, a product or another reduction combines: annotations in
mesh are completed, resharded and computed by the reduction that they say."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import shardlog
from shardlog.errors import ShardlogError

KINDS = {
    "sum": ("stablehlo.add", "0.0"),
    "max": ("stablehlo.maximum", "0xFF800000"),
    "min": ("stablehlo.minimum", "0x7F800000"),
    "product": ("stablehlo.multiply", "1.0"),
}
NUMPY = {
    "sum": np.add,
    "max": np.maximum,
    "min": np.minimum,
    "product": np.multiply,
}
SIZES = (2, 3)


def reduced(kind: str, split: str, partial: str, users: str) -> str:
    """A module whose rows are reduced: how its operand is split, how its result is annotated, and how its
    users want that."""
    op, start = KINDS[kind]
    x, r = "tensor<6x12xf32>", "tensor<6xf32>"
    return f"""
mesh.mesh @g(shape = 2x3)
func.func @main(%x: {x}) -> {r} {{
  %c = stablehlo.constant dense<{start}> : tensor<f32>
  %0 = mesh.shard %x to <@g, {split}> annotate_for_users : {x}
  %1 = stablehlo.reduce(%0 init: %c) applies {op} across dimensions = [1] : ({x}, tensor<f32>) -> {r}
  %2 = mesh.shard %1 to <@g, {partial}> : {r}
  %3 = mesh.shard %2 to <@g, {users}> annotate_for_users : {r}
  %4 = stablehlo.add %3, %3 : {r}
  return %4 : {r}
}}
"""


def expected(kind: str, x: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> npt.NDArray[Any]:
    return np.asarray(2 * NUMPY[kind].reduce(x, axis=1))


def given(seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    """Powers of two: sums and products of them are exact."""
    return np.exp2(np.random.default_rng(seed).integers(-2, 3, (6, 12))).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_a_partial_result_is_reduced_and_scattered_by_its_kind(kind: str) -> None:
    text = reduced(kind, "[[], [0]]", f"[[]], partial = {kind}[0]", "[[0]]")
    session = shardlog.run(text, propagation="completion")
    assert f"to <@g, [[]], partial = {kind}[0]> :" in session.text(notation="mesh")
    program = session.partition(keep_shardings=True)
    (sent,) = program.collectives
    assert sent.kind == "reduce-scatter" and KINDS[kind][0] in program.text()
    x = given(0)
    np.testing.assert_array_equal(program.compile()(x)[0], expected(kind, x))


@pytest.mark.parametrize("kind", KINDS)
def test_completion_leaves_results_partial_as_their_op_reduces(kind: str) -> None:
    text = reduced(kind, "[[], [0]]", "[[]]", "[[0]]")
    lines = [line for line in text.splitlines() if "%2 =" not in line]
    text = "\n".join(lines).replace("%3 = mesh.shard %2", "%3 = mesh.shard %1")
    said = shardlog.run(text, propagation="completion").text(notation="mesh")
    assert f"partial = {kind}[0]> :" in said


def test_an_option_of_another_reduction_is_resharded() -> None:
    """The result of a maximum is no partial sum: devices reduce it, and one of them keeps it."""
    text = reduced("max", "[[], [0]]", "[[]], partial = sum[0]", "[[0]]")
    session = shardlog.run(text, propagation="completion")
    assert "partial = sum[0]" in session.text(notation="mesh")
    x = given(1)
    for keep in (True, False):
        (got,) = session.partition(keep_shardings=keep).compile()(x)
        np.testing.assert_array_equal(got, expected("max", x))


def test_what_no_collective_combines_is_refused() -> None:
    text = reduced("sum", "[[], [0]]", "[[]], partial = generic[0]", "[[0]]")
    with pytest.raises(ShardlogError, match="not supported by partitioning: generic"):
        shardlog.run(text).partition()


@pytest.mark.parametrize(
    ("kind", "element"),
    [("average", "i32"), ("bitwise_and", "f32"), ("bitwise_xor", "f32"), ("max", "complex<f32>")],
)
def test_reductions_that_elements_do_not_have_are_refused(kind: str, element: str) -> None:
    text = AVERAGED.format([0], "[[]]").replace("average", kind).replace("f32", element)
    message = re.escape(f"a partial {kind} of {element} is not supported")
    with pytest.raises(ShardlogError, match=message):
        shardlog.run(text).partition()


AVERAGED = """
mesh.mesh @g(shape = 2x3)
func.func @main(%x: tensor<6x4xf32>) -> tensor<6x4xf32> {{
  %0 = mesh.shard %x to <@g, [[]], partial = average{}> : tensor<6x4xf32>
  %1 = mesh.shard %0 to <@g, {}> annotate_for_users : tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}}
"""


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("users", ["[[]]", "[[0]]", "[[1], [0]]"])
def test_an_average_of_different_parts_is_their_mean(axes: tuple[int, ...], users: str) -> None:
    """The argument of each device is another one: the program of a device is run on a row for each."""
    text = AVERAGED.format(list(axes), users)
    local = shardlog.run(text, propagation="completion").partition("shard").text()
    x = np.random.default_rng(3).integers(0, 6, (2, 3, 6, 4)).astype(np.float32)
    (got,) = shardlog.run(local).partition().compile()(x.reshape(6, 6, 4))
    mean = x.mean(axis=axes, keepdims=True) * np.ones_like(x)
    rows, columns = (("[0]" in users, 0), (False, 0)) if users != "[[1], [0]]" else ((True, 1), (True, 0))
    for device in np.ndindex(2, 3):
        part = mean[device]
        for dim, (split, axis) in enumerate((rows, columns)):
            part = np.split(part, (2, 3)[axis], dim)[device[axis]] if split else part
        np.testing.assert_allclose(got[3 * device[0] + device[1]], part, rtol=1e-6)


BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}


@pytest.mark.parametrize("users", ["[[]]", "[[0]]"])
@pytest.mark.parametrize("kind", BITS)
def test_bits_are_combined_on_devices(kind: str, users: str) -> None:
    text = reduced("sum", "[[], [0]]", f"[[]], partial = {kind}[0]", users)
    name, start = kind.removeprefix("bitwise_"), -1 if kind == "bitwise_and" else 0
    text = (
        text.replace("f32", "i32")
        .replace("0.0", str(start))
        .replace("applies stablehlo.add", f"applies stablehlo.{name}")
    )
    session = shardlog.run(text, propagation="completion")
    assert f"partial = {kind}[0]> :" in session.text(notation="mesh")
    x = np.random.default_rng(0).integers(0, 1 << 20, (6, 12)).astype(np.int32)
    for keep in (True, False):
        (got,) = session.partition(keep_shardings=keep).compile()(x)
        np.testing.assert_array_equal(got, 2 * BITS[kind].reduce(x, axis=1))


GIVEN = """
mesh.mesh @g(shape = 2x3)
func.func @main(%x: tensor<6x4xi32>) -> tensor<6x4xi32> {{
  %0 = mesh.shard %x to <@g, [[0]], partial = {}[1]> : tensor<6x4xi32>
  %1 = mesh.shard %0 to <@g, [[0], []]> annotate_for_users : tensor<6x4xi32>
  return %1 : tensor<6x4xi32>
}}
"""


@pytest.mark.parametrize("kind", ["max", "min", "bitwise_and", "bitwise_or"])
def test_arguments_are_partial(kind: str) -> None:
    session = shardlog.run(GIVEN.format(kind), propagation="completion")
    assert f"all_reduce %arg0 on @g grid_axes = [1] reduction = {kind}" in session.partition("shard").text()
    x = np.arange(24, dtype=np.int32).reshape(6, 4)
    np.testing.assert_array_equal(session.partition().compile()(x)[0], x)  # each device has its rows whole


@pytest.mark.parametrize("kind", ["product", "bitwise_xor"])
def test_arguments_that_equal_parts_do_not_make_are_refused(kind: str) -> None:
    session = shardlog.run(GIVEN.format(kind), propagation="completion")
    with pytest.raises(ShardlogError, match=f"a partial {kind} at the boundary of a function"):
        session.partition()


def layout(draw: random.Random, rank: int, axes: list[int]) -> str:
    lists: list[list[int]] = [[] for _ in range(rank)]
    for axis in draw.sample(axes, draw.randint(0, len(axes))):
        lists[draw.randrange(rank)].append(axis)
    return str(lists)


@pytest.mark.parametrize("seed", range(10))
def test_random_annotations_give_what_numpy_does(seed: int) -> None:
    draw = random.Random(seed)
    kind, other = draw.choice([*KINDS]), draw.choice([*KINDS])
    other = draw.choice([kind, kind, other, "average"])
    loose = draw.sample([0, 1], draw.randint(1, 2))
    free = [axis for axis in (0, 1) if axis not in loose]
    result = f"{layout(draw, 1, free)}, partial = {other}[{', '.join(map(str, sorted(loose)))}]"
    text = reduced(kind, layout(draw, 2, [0, 1]), result, layout(draw, 1, [0, 1]))
    x = given(seed)
    for propagation in ("completion", "shardy"):
        session = shardlog.run(text, propagation=propagation)
        for keep in (True, False):
            (got,) = session.partition(keep_shardings=keep).compile()(x)
            np.testing.assert_allclose(got, expected(kind, x), rtol=1e-6)

"""Partitioned programs as calls of MPI, run by all processes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import shardlog
from shardlog.errors import ShardlogError

from ...importers.dialects.test_local import OPS, expected, program
from ...support.drawing import by_day, in_turn
from ...support.mpi import run

jax = pytest.importorskip("jax")

RESHARD = """
shard.grid @g(shape = {grid})
func.func @main(%x: tensor<{shape}xf32>) -> tensor<{shape}xf32> {{
  %s = shard.sharding @g split_axes = {start} : !shard.sharding
  %t = shard.sharding @g split_axes = {end} : !shard.sharding
  %0 = shard.shard %x to %s : tensor<{shape}xf32>
  %1 = shard.shard %0 to %t annotate_for_users : tensor<{shape}xf32>
  return %1 : tensor<{shape}xf32>
}}
"""
Lists = Sequence[Sequence[int]]


def mpi(text: str, **options: Any) -> str:
    """The program of each process."""
    return shardlog.run(text, propagation="completion").partition("mpi", **options).text()


def part(value: Any, lists: Lists, device: Sequence[int], grid: Sequence[int]) -> Any:
    """What a device has of a tensor."""
    for dim, axes in enumerate(lists):
        for axis in axes:  # the first is outermost
            value = np.split(value, grid[axis], dim)[device[axis]]
    return value


def shardings(axes: int, dims: int) -> list[list[list[int]]]:
    """All lists of axes for so many dimensions."""
    shardings: list[list[list[int]]] = [[[] for _ in range(dims)]]
    todo = list(shardings)
    while todo:
        lists = todo.pop()
        for axis in set(range(axes)) - {a for each in lists for a in each}:
            for dim in range(dims):
                longer = [[*each, axis] if d == dim else each for d, each in enumerate(lists)]
                if longer not in shardings:
                    shardings.append(longer)
                    todo.append(longer)
    return shardings


def check_reshard(grid: Sequence[int], start: Lists, end: Lists, shape: Sequence[int] = (12, 18)) -> str:
    """Reshards a matrix; every device has the right part of it then."""
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    sizes = "x".join(map(str, shape))
    text = mpi(RESHARD.format(grid="x".join(map(str, grid)), shape=sizes, start=start, end=end))
    devices = list(product(*map(range, grid)))
    outputs = run(text, [[part(x, start, device, grid)] for device in devices])
    for device, (value,) in zip(devices, outputs, strict=True):
        np.testing.assert_array_equal(value, part(x, end, device, grid), f"{start} to {end} on {device}")
    return text


@pytest.mark.parametrize("start", in_turn(0, shardings(2, 2)), ids=str)
def test_reshards_of_a_matrix(start: Lists) -> None:
    for end in shardings(2, 2):
        check_reshard((2, 3), start, end)


@pytest.mark.parametrize("seed", by_day(range(5), range(12)))
def test_reshards_on_three_axes(seed: int) -> None:
    chosen = np.random.default_rng(seed)
    every = shardings(3, 2)
    for start, end in chosen.integers(len(every), size=(4, 2)):
        check_reshard((2, 2, 2), every[start], every[end], (16, 8))


PRODUCT = """
shard.grid @g(shape = 2x3)
func.func @main(%x: tensor<6x12xf32>, %y: tensor<12x6xf32>) -> tensor<6x6xf32> {{
  %s = shard.sharding @g split_axes = [[], {}] : !shard.sharding
  %0 = shard.shard %x to %s : tensor<6x12xf32>
  %1 = shard.shard %0 to %s annotate_for_users : tensor<6x12xf32>
  %c = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x6xf32>
  %f = linalg.fill ins(%c : f32) outs(%e : tensor<6x6xf32>) -> tensor<6x6xf32>
  %2 = linalg.matmul ins(%1, %y : tensor<6x12xf32>, tensor<12x6xf32>) outs(%f : tensor<6x6xf32>)
      -> tensor<6x6xf32>
  %t = shard.sharding @g split_axes = {} : !shard.sharding
  %3 = shard.shard %2 to %t annotate_for_users : tensor<6x6xf32>
  return %3 : tensor<6x6xf32>
}}
"""


def test_a_communicator_is_colored_by_the_other_axes_and_ordered_by_its_own() -> None:
    text = mpi(PRODUCT.format([1], []))
    made = dict(re.findall(r"(%\w+) = (.*)", text))
    ((color, key),) = re.findall(r"mpi.comm_split\(%\w+, (%\w+), (%\w+)\)", text)
    row, column = (made[made[cast].split()[1]] for cast in (color, key))
    assert row.startswith("arith.divui") and column.startswith("arith.remui")
    assert "MPI_SUM" in text
    whole = mpi(PRODUCT.format([0, 1], []))
    assert "comm_split" not in whole  # that of all devices, row by row, is there
    assert "comm_split" in mpi(PRODUCT.format([1, 0], [[], [1, 0]]))


LOCAL = """
shard.grid @g(shape = 2x3)
func.func @main(%x: tensor<6x12x{0}>) -> tensor<{2}x{0}> {{
  %0 = {1} : tensor<6x12x{0}> -> tensor<{2}x{0}>
  return %0 : tensor<{2}x{0}>
}}
"""
DEVICES = list(product(range(2), range(3)))


def run_local(element: str, op: str, result: str, x: Any) -> list[Any]:
    """What an op of shard gives on each device of 2x3, by calls of MPI."""
    text = shardlog.run(LOCAL.format(element, op, result)).partition("mpi").text()
    return [value for (value,) in run(text, [[value] for value in x])]


@pytest.mark.parametrize(
    ("element", "dtype", "kind", "by"),
    [
        ("f32", np.float32, "sum", np.sum),
        ("f64", np.float64, "product", np.prod),
        ("i32", np.int32, "min", np.min),
        ("ui8", np.uint8, "max", np.max),
        ("i64", np.int64, "bitwise_and", np.bitwise_and.reduce),
        ("i8", np.int8, "bitwise_or", np.bitwise_or.reduce),
        ("i16", np.int16, "bitwise_xor", np.bitwise_xor.reduce),
        ("i1", np.bool_, "bitwise_or", np.any),
        ("i1", np.bool_, "min", np.all),
        ("bf16", ml_dtypes.bfloat16, "sum", np.sum),
        ("f16", np.float16, "average", np.mean),
    ],
)
def test_reductions(element: str, dtype: Any, kind: str, by: Any) -> None:
    x = np.random.default_rng(1).integers(0, 4, (6, 6, 12)).astype(dtype)
    op = f"shard.all_reduce %x on @g grid_axes = [1] reduction = {kind}"
    for (row, _), value in zip(DEVICES, run_local(element, op, "6x12", x), strict=True):
        wanted = by(x[row * 3 : row * 3 + 3].astype(np.float32 if dtype is np.float16 else dtype), axis=0)
        np.testing.assert_array_equal(value, wanted.astype(dtype))


@pytest.mark.parametrize(
    "element, dtype", [("bf16", ml_dtypes.bfloat16), ("i1", np.bool_), ("f32", np.float32)]
)
def test_a_gather_keeps_every_bit(element: str, dtype: Any) -> None:
    x = np.random.default_rng(1).normal(size=(6, 6, 12)).astype(dtype)
    op = "shard.all_gather %x on @g grid_axes = [1, 0] gather_axis = 1"
    wanted = np.concatenate([x[row * 3 + column] for column in range(3) for row in range(2)], 1)
    for value in run_local(element, op, "6x72", x):
        np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize(
    ("element", "op", "message"),
    [
        ("complex<f32>", "all_reduce %x on @g grid_axes = [0]", "no datatype for complex<f32>"),
        ("f8E5M2", "all_reduce %x on @g grid_axes = [0]", "no datatype for f8E5M2"),
        ("i4", "all_gather %x on @g grid_axes = [0] gather_axis = 0", "no datatype for i4"),
    ],
)
def test_what_mpi_lacks_is_refused(element: str, op: str, message: str) -> None:
    result = "12x12" if "gather" in op else "6x12"
    with pytest.raises(ShardlogError, match=message) as caught:
        shardlog.run(LOCAL.format(element, f"shard.{op}", result)).partition("mpi").text()
    assert ":4" in caught.value.where
    with pytest.raises(ShardlogError, match="LLVM 22 lacks ops of the dialect mpi"):
        mpi(PRODUCT.format([0], []), dialect_version="22")


def test_each_collective_of_shard_gives_what_the_dialect_says() -> None:
    x = np.random.default_rng(1).integers(-50, 50, (6, 6, 12)).astype(np.float32)
    session = shardlog.run(program(OPS))
    again = shardlog.run(session.partition("shard").text())  # its own dialect says it all, too
    wanted = expected(dict(zip(DEVICES, x, strict=True)))
    for text in (session.partition("mpi").text(), again.partition("mpi").text()):
        for device, outputs in zip(DEVICES, run(text, [[value] for value in x]), strict=True):
            for name, output in zip(OPS, outputs, strict=True):
                if (want := wanted[name][device]) is not None:  # otherwise anything
                    np.testing.assert_allclose(output, want, err_msg=f"{name} on {device}", rtol=1e-6)


def check_read(text: str, inputs: Sequence[Sequence[Any]]) -> None:
    """A program of processes runs on devices as its calls say."""
    compiled = shardlog.run(text).partition().compile(jax.devices()[: len(inputs)])
    outputs = compiled(*(np.stack(each) for each in zip(*inputs, strict=True)))
    for process, wanted in enumerate(run(text, inputs)):
        for output, value in zip(outputs, wanted, strict=True):
            np.testing.assert_allclose(np.asarray(output)[process], value, 1e-6, err_msg=f"of {process}")


@pytest.mark.parametrize("seed", range(6))
def test_reshards_that_were_written_run_again(seed: int) -> None:
    grid, shape = ((2, 3), (12, 18)) if seed % 2 else ((2, 2, 2), (16, 8))
    every = shardings(len(grid), 2)
    start, end = (every[i] for i in np.random.default_rng(seed).choice(len(every), 2, replace=False))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    sizes, of_grid = ("x".join(map(str, each)) for each in (shape, grid))
    text = mpi(RESHARD.format(grid=of_grid, shape=sizes, start=start, end=end))
    check_read(text, [[part(x, start, device, grid)] for device in product(*map(range, grid))])


def test_collectives_that_were_written_run_again() -> None:
    ops = {name: op for name, op in OPS.items() if name != "shift"}  # which leaves some devices anything
    x = np.random.default_rng(1).integers(-50, 50, (6, 6, 12)).astype(np.float32)
    check_read(shardlog.run(program(ops)).partition("mpi").text(), [[value] for value in x])


@pytest.mark.parametrize(
    ("element", "dtype", "kind"),
    [("i1", np.bool_, "bitwise_or"), ("bf16", ml_dtypes.bfloat16, "sum"), ("i64", np.int64, "bitwise_xor")],
)
def test_reductions_that_were_written_run_again(element: str, dtype: Any, kind: str) -> None:
    x = np.random.default_rng(1).integers(0, 2, (6, 6, 12)).astype(dtype)
    op = f"shard.all_reduce %x on @g grid_axes = [1] reduction = {kind}"
    text = shardlog.run(LOCAL.format(element, op, "6x12")).partition("mpi").text()
    with jax.enable_x64(True):
        check_read(text, [[value] for value in x])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (r"cf.assert .*", "", "the number of its processes is not known"),
        (r"MPI_SUM", "MPI_MAXLOC", r"its reduction is not known \(MPI_MAXLOC\)"),
        (r"mpi.comm_split\((%\w+), %\w+", r"mpi.comm_split(\1, %cut", "do not follow from the rank"),
        (r"(%c\d+_i32 = arith.constant) 6", r"\1 0", "cf.assert cannot run: 0 processes"),
        (r"(%c\d+_i32 = arith.constant) 6", r"\1 2000000000", "2,000,000,000 processes"),
        (r"(mpi.allreduce)", r"mpi.barrier(%0)\n \1", "mpi.barrier cannot run"),
    ],
)
def test_other_calls_are_refused(old: str, new: str, message: str) -> None:
    head = (
        "%cut_ = tensor.extract %arg0[%c3, %c3] : tensor<6x4xf32>\n%cut = arith.fptosi %cut_ : f32 to i32\n"
    )
    text = re.sub(r"(%\w+ = mpi.comm_split)", rf"{head}\1", mpi(PRODUCT.format([1], [])), count=1)
    with pytest.raises(ShardlogError, match=message) as caught:
        shardlog.run(re.sub(old, new, text, count=1))
    assert "--as shard" in caught.value.hint


def test_buffers_of_other_numbers_of_processes_are_refused() -> None:
    text = mpi(RESHARD.format(grid="6", shape="12x18", start=[[0]], end=[[]]))
    with pytest.raises(ShardlogError, match="its shape differs from the tensor<12x"):
        shardlog.run(text.replace("arith.constant 6 : i32", "arith.constant 12 : i32"))


def test_whole_arguments_are_cut() -> None:
    text = mpi(PRODUCT.format([1], [[0]]), whole_arguments=True)
    x, y = (np.arange(72, dtype=np.float32).reshape(shape) for shape in ((6, 12), (12, 6)))
    for (row, _), (value,) in zip(DEVICES, run(text, [[x, y]] * 6), strict=True):
        np.testing.assert_array_equal(value, np.split(x @ y, 2)[row])

"""Memory: what lives at once, on any machine; and what XLA's compiler for CPUs makes of some ops, beside its
own figures."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jax import lax
from shardlog.cost.inlining import inlined
from shardlog.cost.machine import machine
from shardlog.cost.memory import peaks
from shardlog.program.elements import size_of
from shardlog.program.shardy import LINES, installed

from ..support import models
from ..support.programs import array
from ..support.traits import TRAITS

KIB = 1024
ROWS = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)


def figures(function: Callable[..., Any], *arguments: Any) -> tuple[int, int]:
    """The memory of a partitioned program beyond arguments and results on a CPU device: as we say, and as XLA
    does."""
    program = shardlog.run(jax.jit(function).lower(*arguments)).partition(keep_shardings=True)
    said = program.compile()._loaded.get_compiled_memory_stats()
    ends = said.argument_size_in_bytes + said.output_size_in_bytes
    return program.cost("cpu").peak - ends, said.temp_size_in_bytes


def peak(text: str, topology: str = "h100") -> float:
    """The peak memory of a module, in KiB."""
    peak: int = shardlog.run(text).partition().cost(topology).peak
    return peak / KIB


def plain(*shape: int) -> Any:
    """An argument that is whole everywhere."""
    return array(shape)


def _turned(x: Any) -> Any:
    return jnp.concatenate([x[5:], x[:5]])


def _updated(x: Any, y: Any, i: Any) -> Any:
    return lax.dynamic_update_slice(x, y, (i, 0))


def _sometimes(x: Any, *, first: bool) -> Any:
    def write(i: Any, rows: Any) -> Any:
        branches = lambda: rows, lambda: rows.at[i].set(2 * x)
        return lax.switch(i % 2, branches if first else branches[::-1])

    return lax.fori_loop(0, 4, write, jnp.zeros((4, *x.shape)))[3] + x


def _summed_again(x: Any, y: Any, z: Any) -> Any:
    ahead = x[:, :, None] >= y[:, None]
    rows = (jnp.where(ahead, z[..., None], 0) - jnp.where(ahead, 0, z[..., None])).sum(2)
    return rows, jnp.where(rows[0, 0] > 0, rows, rows).sum((0, 1))


def _late(x: Any, y: Any) -> Any:
    part = jnp.sort(x)[:64].reshape(8, 8)
    product = y @ y
    return (product @ (product @ y))[:8, :8] @ part


def _gated(x: Any, y: Any, z: Any, w: Any) -> Any:
    gated = x * y
    return (gated * (gated * z @ w)) @ w


def _gated_twice(x: Any, y: Any, z: Any, w: Any) -> Any:
    gated = x * y
    return (gated * z @ w) @ (gated * w)


def _differences(x: Any, y: Any, z: Any) -> Any:
    d = x[:, None] - y[None]
    return jnp.sin(d) * (lax.sort(jnp.sum(d * d, -1) @ z) @ z.T)[:, :, None]


def _difference(x: Any, y: Any, z: Any) -> Any:
    d = x - y
    return d * (lax.sort(d @ z) @ z.T)


def _swept(x: Any) -> Any:
    """Three scans, each of what the one before it made."""
    for _ in range(3):
        x = lax.scan(lambda s, row: (s + row, jnp.tanh(s) * row), jnp.zeros(64), x)[1]
    return x


CASES: dict[str, tuple[Callable[..., Any], list[Any], int]] = {
    # Columns are gathered as if they were rows, and then copied; and the number of the device.
    "gathered columns": (lambda x: jnp.sort(x, 1), [array((3, 256), None, "model")], 6 * KIB + 4),
    "gathered rows": (lambda x: jnp.sort(x, 0), [array((256, 3), "model")], 3 * KIB + 4),
    # With features innermost: the kernel, and the product; the image has the memory of the result until then.
    "features in front": (
        lambda x, w: lax.conv(x, w, (1, 1), "SAME"),
        [plain(4, 16, 16, 16), plain(16, 16, 3, 3)],
        (64 + 9) * KIB,
    ),
    "features innermost": (
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        [plain(4, 16, 16, 16), plain(3, 3, 16, 16)],
        0,
    ),
    # What is contracted is last in a copy of the smaller operand; and the product, of which a copy is given.
    "rows of two dimensions": (
        lambda x, y: jnp.einsum("btd,btf->df", x, y),
        [plain(8, 32, 64), plain(8, 32, 16)],
        (16 + 4) * KIB,
    ),
    "columns": (lambda x, y: x.T @ y, [plain(64, 32), plain(64, 16)], 0),
    # Matrices are computed as they are wanted, but not rows of several dimensions, or batches.
    "turned": (lambda x, y: jnp.sort((x @ y).T), [plain(64, 32), plain(32, 128)], 0),
    "rows of several dimensions, turned": (
        lambda x, y: jnp.sort(jnp.einsum("ab,bcd->cad", x, y)),
        [plain(16, 32), plain(32, 8, 64)],
        32 * KIB,
    ),
    "batches, turned": (
        lambda x, y: jnp.sort(jnp.einsum("abk,akd->bad", x, y)),
        [plain(4, 16, 32), plain(4, 32, 128)],
        32 * KIB,
    ),
    # What is fused with another shape is not written in place.
    "in another shape": (
        lambda x, y: jnp.tanh((x @ y).reshape(32, 16, 4)),
        [plain(32, 32), plain(32, 64)],
        8 * KIB,
    ),
    "in its own shape": (lambda x, y: jnp.tanh(x @ y), [plain(32, 32), plain(32, 64)], 0),
    # Both operands with the batch in front.
    "batches inside": (
        lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y),
        [plain(8, 32, 4, 16), plain(8, 32, 4, 16)],
        128 * KIB,
    ),
    # Rows from each device, which are put together in the memory of the result; parts that are exchanged, and
    # those that come, have it before.
    "parts": (lambda x: lax.reshape(jnp.sort(x, 1), (64 * 64,)), [array((64, 64), None, "model")], 16 * KIB),
    # By columns, in place; a copy is the result; beside the addresses of two results, and the second one.
    "a library's layout": (
        lambda x: jnp.linalg.cholesky(x, symmetrize_input=False),
        [plain(32, 32)],
        64 + 4 * KIB + 4,
    ),
    # Operands and products of narrow elements are of 32 bits; the arguments are copied first: 16, 64 and
    # 64 KiB, and the product.
    "narrow elements": (
        lambda x, y, z: jnp.tanh(x @ y) @ z,
        [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in ((32, 128), (128, 128), (128, 128))],  # type: ignore[no-untyped-call]
        (16 + 64 + 64 + 16) * KIB,
    ),
    # What every turn of a loop reads is widened before the loop; a part, the sum, and addresses.
    "narrow elements in a loop": (
        lambda x, rows: lax.scan(lambda x, row: (jnp.tanh(x @ row), None), x, rows)[0],
        [plain(32, 64), jax.ShapeDtypeStruct((8, 64, 64), jnp.bfloat16)],  # type: ignore[no-untyped-call]
        (128 + 16 + 8) * KIB + 68,
    ),
    # What loops begin with is copied for each of them before all, and goes around in a place of its own.
    "loops one after the other": (_swept, [plain(64, 64)], 33924),
    # What goes around may be written to when nobody knows that the others have read it: both are copied.
    "around at once": (
        lambda x, y: lax.fori_loop(0, 5, lambda _, both: (both[0] + 2 * both[1], both[0] - both[1]), (x, y)),
        [plain(64, 64), plain(64, 64)],
        32 * KIB + 68,
    ),
    # What is broadcast is subtracted again in place of being kept, which other values are.
    "computed again": (_differences, [plain(32, 8), plain(32, 8), plain(32, 512)], 68 * KIB),
    "kept": (_difference, [plain(32, 32), plain(32, 32), plain(32, 512)], 68 * KIB),
    # What is computed of constants is part of the program.
    "constants": (lambda x: x @ lax.sin(jnp.asarray(ROWS)), [plain(64, 64)], 0),
    # An error function is computed once, not for each part of its result that is read.
    "what costs much": (
        lambda x, i: lax.dynamic_slice(lax.erf(x), (i, i), (8, 8)),
        [plain(32, 32), jax.ShapeDtypeStruct((), jnp.int32)],  # type: ignore[no-untyped-call]
        4 * KIB,
    ),
    "what costs little": (
        lambda x, i: lax.dynamic_slice(-x, (i, i), (8, 8)),
        [plain(32, 32), jax.ShapeDtypeStruct((), jnp.int32)],  # type: ignore[no-untyped-call]
        0,
    ),
    # What is put together is not computed at two places for each element; at one it is.
    "read at two places": (lambda x: _turned(x)[::2] * _turned(x)[1::2], [plain(4096)], 16 * KIB),
    "read at one place": (lambda x: _turned(x) * x, [plain(4096)], 0),
    # A library reduces much, and multiplies what it reduces; but it does not choose.
    "chosen, and reduced": (lambda x: jnp.sum(jnp.where(x > 0, x, 1), 1), [plain(64, 128)], 32 * KIB),
    "reduced twice": (lambda x, y: jnp.sum(jnp.sqrt(jnp.sum(x * y, 2)), 1), [plain(64, 64, 8)] * 2, 0),
    "multiplied, and reduced": (lambda x, y: jnp.sum(x * y, 1), [plain(64, 128), plain(64, 128)], 0),
    # Of long rows parts are reduced first.
    "few long rows": (lambda x: jnp.sum(jnp.where(x > 0, x, 1), 1), [plain(8, 500)], 16000),
    "few short rows": (lambda x: jnp.sum(jnp.where(x > 0, x, 1), 1), [plain(64, 32)], 0),
    # Of all before each place sums within 16 are made first, and of the last of these what is before them;
    # the second time in place.
    "sums of all before": (lambda x: jnp.cumsum(x, 1), [plain(64, 512)], (128 + 8) * KIB),
    "sums of sums": (lambda x: jnp.cumsum(jnp.cumsum(x, 1) ** 2, 1), [plain(64, 512)], (128 + 8) * KIB),
    "sums that are read": (
        lambda x: jnp.sum(jnp.where(jnp.cumsum(x, 1) > 0, x, 1), 1),
        [plain(64, 512)],
        256 * KIB,
    ),
    "sums of few": (lambda x: jnp.cumsum(x, 1), [plain(512, 16)], 0),
    # Long rows are put together apart from what is computed of them, and what is cut out for them, too.
    "rows put together": (lambda x: jnp.roll(x, 3, 1) + x, [plain(64, 128)], 32 * KIB),
    "short rows put together": (lambda x: jnp.roll(x, 3, 1) + x, [plain(64, 64)], 0),
    "what is put together in rows": (lambda x: jnp.roll(x, 3, 0) + x, [plain(64, 128)], 0),
    # What is computed twice is computed once.
    "twice": (lambda x, y: (jnp.tanh(x) @ y) * (jnp.tanh(x) @ x), [plain(64, 64), plain(64, 64)], 32 * KIB),
    "nothing is added up": (
        lambda x, y: jnp.tanh(jnp.einsum("bi,bj->bij", x, y))[:, ::2],
        [plain(16, 32), plain(16, 32)],
        0,
    ),
    # All kernels for all groups, twice; and a copy of the first operand, whose features are not innermost.
    "groups of a batch": (
        lambda x, y: lax.conv_general_dilated(
            x, y, (1, 1), "VALID", dimension_numbers=("CHWN", "IHWO", "HWNC"), batch_group_count=64
        ),
        [plain(1, 12, 12, 64), plain(1, 8, 8, 64)],
        (2 * 400 + 36) * KIB,
    ),
    # In what the loop carries, if the first branch hands that on; and numbers.
    "written in the second branch": (partial(_sometimes, first=True), [plain(64, 64)], 64 * KIB + 324),
    "written in the first branch": (partial(_sometimes, first=False), [plain(64, 64)], 128 * KIB + 324),
    # Of a difference, which is stored for both.
    "sums of sums that are needed themselves": (
        _summed_again,
        [plain(4, 64, 4), plain(4, 64, 4), plain(4, 64, 64)],
        256 * KIB,
    ),
    # Of what is sorted a part is kept until the end, in another shape: three products and the part.
    "a part in another shape": (_late, [plain(2048), plain(64, 64)], 48 * KIB + 256),
    # In place of a copy of the argument.
    "updated twice": (
        lambda x, y, i: lax.dynamic_slice(_updated(_updated(x, y, i), 2 * y, 2 * i), (i, i), (8, 8)),
        [plain(64, 64), plain(8, 64), jax.ShapeDtypeStruct((), jnp.int32)],  # type: ignore[no-untyped-call]
        16 * KIB + 4,
    ),
    # Stored for a user that comes behind a product of matrices with it, as activations are for gradients.
    "kept for a gradient": (_gated, [plain(64, 64)] * 4, 32 * KIB),
    "repeated for both users": (_gated_twice, [plain(64, 64)] * 4, 32 * KIB),
}


# What XLA has otherwise since a line. It also has no branches since 0.11 where what they do is little, which
# we do not say.
SINCE = {
    "narrow elements": ("0.11", 8 * KIB),
    "narrow elements in a loop": ("0.11", (16 + 8) * KIB + 68),
    "short rows put together": ("0.12", 16 * KIB),
}
BRANCHES = "written in the first branch"


@pytest.mark.parametrize("name", CASES)
def test_what_is_stored_on_a_cpu(name: str) -> None:
    function, arguments, expected = CASES[name]
    since, newer = SINCE.get(name, ("", 0))
    if since and LINES.index(installed()) >= LINES.index(since):
        expected = newer
    ours, theirs = figures(function, *arguments)
    assert ours == expected
    if name != BRANCHES or installed() == "0.10":
        assert theirs == pytest.approx(expected, rel=0.05, abs=64)


PRODUCTS = """\
func.func @main(%x: tensor<16x16xf32>) -> tensor<f32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %4 = stablehlo.reduce(%3 init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x16xf32>, tensor<f32>) -> tensor<f32>
  %5 = stablehlo.add %2, %4 : tensor<f32>
  return %5 : tensor<f32>
}
"""  # noqa: E501


def test_what_can_run_does_where_a_machine_says_so() -> None:
    # As the program is: the argument, two products, the result. By breadth: both first products at once, and
    # the third, before what becomes of the second.
    assert peak(PRODUCTS) == pytest.approx(3, abs=0.1)
    assert peak(PRODUCTS, "cpu") == pytest.approx(4, abs=0.2)


def test_what_is_fused_is_written_in_place() -> None:
    chain = """\
func.func @main(%x: tensor<32x32xf32>, %y: tensor<16x32xf32>, %b: tensor<32x16xf32>) -> tensor<16x16xf32> {
  %0 = stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<16x32xf32>) -> tensor<32x16xf32>
  %2 = stablehlo.negate %1 : tensor<32x16xf32>
  %3 = stablehlo.add %2, %b : tensor<32x16xf32>
  %4 = stablehlo.dot_general %y, %3, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x16xf32>) -> tensor<16x16xf32>
  return %4 : tensor<16x16xf32>
}
"""  # noqa: E501
    # Arguments, the result, and the first product.
    assert peak(chain) == 4 + 2 + 2 + 1 + 2


@pytest.mark.parametrize(
    ("levels", "steps"), [(40, ("abs %c{0}", "add %c{0}, %d{0}")), (3000, ("abs %c{0}",))]
)
def test_what_is_made_from_a_value_by_many_ops_is_looked_through_once(
    levels: int, steps: tuple[str, ...]
) -> None:
    """A chain is deeper than Python's calls may be; sums with their own operands make 2**40 ways."""
    lines = [
        "%y = stablehlo.multiply %x, %x : tensor<16x16xf32>",
        "%c0 = stablehlo.negate %y : tensor<16x16xf32>",
    ]
    for n in range(levels):
        names = [f"%d{n}", f"%c{n + 1}"][-len(steps) :]
        each = zip(names, steps, strict=True)
        lines += [f"{name} = stablehlo.{step.format(n)} : tensor<16x16xf32>" for name, step in each]
    lines += [f"%r = stablehlo.multiply %y, %c{levels} : tensor<16x16xf32>", "return %r : tensor<16x16xf32>"]
    body = "\n".join(lines)
    text = f"func.func @main(%x: tensor<16x16xf32>) -> tensor<16x16xf32> {{\n{body}\n}}"
    assert peak(text, "cpu") == 2  # the argument and the result


def test_a_branch_computes_the_result() -> None:
    branches = """\
func.func @main(%p: tensor<i1>, %x: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = "stablehlo.if"(%p) ({
    %1 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    stablehlo.return %1 : tensor<16x16xf32>
  }, {
    %1 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
    stablehlo.return %1 : tensor<16x16xf32>
  }) : (tensor<i1>) -> tensor<16x16xf32>
  %2 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %2 : tensor<16x16xf32>
}
"""  # noqa: E501
    assert peak(branches) == pytest.approx(3, abs=0.01)


@pytest.mark.parametrize(
    ("type_", "size"),
    [
        ("f32", 512),
        ("16xf32", 512),
        ("156xf32", 1024),
        ("4100xf32", 5 * 4096),
        ("4xi1", 512),
        ("0x2xf32", 0),
        ("8x128xf32", 4096),
        ("3x2x16xf32", 3 * 1024),
        ("3x5x16xf32", 5 * 4 * 512),  # rows of 5, each of 3 by 16
        ("16x8xf32", 4096),  # of 8 rows
        ("2x12x1x8xf32", 2 * 4096),
        ("8x2xbf16", 512),
        ("32x64xi1", 4096),
        ("4x4xcomplex<f32>", 2 * 2048),
    ],
)
def test_tensors_take_whole_tiles_on_tpus(type_: str, size: int) -> None:
    assert machine("v5e").allocation.size(f"tensor<{type_}>") == size
    assert machine("h100").allocation.size(f"tensor<{type_}>") == size_of(f"tensor<{type_}>")


@pytest.mark.tpu
@pytest.mark.parametrize("name", ["decode", "recommender", "lstm"])
def test_arguments_and_results_are_as_large_as_on_tpus(name: str) -> None:
    program = shardlog.run(models.text(name)).partition()
    memory = program.compile_ahead("tpu:v5e:2x4").memory
    said = peaks(inlined(program.module, TRAITS), machine("v5e").allocation, TRAITS)[0]
    assert (said.arguments, said.results) == pytest.approx(
        (memory.arguments, memory.results - memory.shared), abs=512
    )


def _read_after(w: Any, x: Any, y: Any) -> Any:
    return w - x.T @ y, lax.sort(y @ w)


def _read_before(w: Any, x: Any, y: Any) -> Any:
    return w - x.T @ lax.sort(y @ w)


def _put_together(rows: Any, x: Any) -> Any:
    return lax.scan(lambda x, row: (x + row, jnp.tanh(x)), x, rows)


DONATED: dict[str, tuple[Callable[..., Any], list[Any], int]] = {
    # What is read when its memory may have been written to is copied first; then a product has that.
    "read after": (_read_after, [plain(64, 64), plain(64, 64), plain(64, 64)], 16 * KIB),
    # Two products, neither in the memory that is read last of all.
    "read before": (_read_before, [plain(64, 64), plain(64, 64), plain(64, 64)], 32 * KIB),
    "read and written at once": (
        lambda w, x, y: (w - (0.9 * x + y), 0.9 * x + y),
        [plain(64, 64), plain(64, 64), plain(64, 64)],
        0,
    ),
    # A loop puts its results together somewhere else, and then they are copied; and what it adds up.
    "put together": (_put_together, [plain(16, 32, 32), plain(32, 32)], 68 * KIB),
    "carried": (
        lambda w, x: lax.fori_loop(0, 8, lambda _, w: w @ x, w),
        [plain(64, 64), plain(64, 64)],
        16 * KIB,
    ),
}


@pytest.mark.parametrize("name", DONATED)
def test_what_is_copied_because_an_argument_is_donated(name: str) -> None:
    function, arguments, expected = DONATED[name]
    lowered = jax.jit(function, donate_argnums=0).lower(*arguments)
    program = shardlog.run(lowered).partition(keep_shardings=True)
    stats = program.compile()._loaded.get_compiled_memory_stats()
    ends = stats.argument_size_in_bytes + stats.output_size_in_bytes - stats.alias_size_in_bytes
    figures = program.cost("cpu").peak - ends, stats.temp_size_in_bytes
    assert figures == pytest.approx((expected, expected), rel=0.05, abs=192)

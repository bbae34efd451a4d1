"""Windows whose parts read stretches of others."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import jax
import numpy as np
import pytest
import shardlog
from jaxlib.mlir import ir
from shardlog.cost.hlo import hlo_collectives
from shardlog.importers.sources.text import make_context
from shardlog.partition.choice.choosing import stretch
from shardlog.partition.facts.knowledge import Read
from shardlog.partition.reshards.exchange import Round
from shardlog.program.ids import Slot
from shardlog.tests.support.programs import array

from .running import run_partitioned, run_whole

DILATED = """
sdy.mesh @mesh = <["a"=8]>
func.func @main(%x: tensor<7xf32> {sdy.sharding = #sdy.sharding<@mesh, [SHARDED]>})
    -> (tensor<13xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%x, %0) <{
    window_dimensions = array<i64: 1>, base_dilations = array<i64: 2>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<7xf32>, tensor<f32>) -> tensor<13xf32>
  return %1 : tensor<13xf32>
}
"""


@pytest.mark.parametrize("sharded", ["{}", '{"a"}'])
def test_windows_of_one_element_between_which_there_is_nothing(sharded: str) -> None:
    result = shardlog.run(DILATED.replace("SHARDED", sharded))
    (got,) = run_partitioned(result, result.partition("replica"), [np.arange(1, 8, dtype=np.float32)])
    assert got.tolist() == [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0, 7]


FIRST_ROWS = """
sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
    -> (tensor<3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0 = stablehlo.slice %x [0:3] : (tensor<32xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
"""


def test_rows_past_the_end_of_a_result_are_not_fetched() -> None:
    result = shardlog.run(FIRST_ROWS)
    program = result.partition("replica")
    (got,) = run_partitioned(result, program, [np.arange(32, dtype=np.float32)])
    assert got.tolist() == [0, 1, 2]
    assert [len(each.pairs) for each in exchanged(3, 32, 4)] == [1, 1]


def exchanged(result_size: int, size: int, parts: int) -> tuple[Round, ...]:
    """What parts send for a slice from the first row on."""
    read = Read(
        Slot(0),
        0,
        Slot(1),
        0,
        stride=1,
        low=0,
        dilation=1,
        extent=1,
        backwards=False,
        accumulates=False,
        around=False,
    )
    return stretch(read, size, result_size, parts).exchange.rounds


SPREAD = """
sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<1x8x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {}]>},
                %w: tensor<2x1x1xf32>)
    -> (tensor<1x16x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}, {}]>}) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
    window = {pad = [[1, 1]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<1x8x1xf32>, tensor<2x1x1xf32>) -> tensor<1x16x1xf32>
  return %0 : tensor<1x16x1xf32>
}
"""


def test_a_stretch_that_begins_in_a_hole_does_not_fetch_the_row_before_it() -> None:
    result = shardlog.run(SPREAD)
    program = result.partition("replica")
    x, w = np.arange(1, 9, dtype=np.float32), np.array([10, 1], np.float32)
    (got,) = run_partitioned(result, program, [x.reshape(1, 8, 1), w.reshape(2, 1, 1)])
    assert got.ravel().tolist() == [each * by for each in x.tolist() for by in (1, 10)]
    assert program.sent == []


# Rows of a tensor of 32, cut out by their first and last ones and put beside each other.
CUTS = {
    "rotated": [(29, 32), (0, 29)],
    "turned back": [(2, 32), (0, 2)],
    "swapped": [(16, 32), (0, 16)],
    "in another order": [(24, 32), (8, 24), (0, 8)],
    "twice": [(30, 32), (4, 32), (0, 2)],
}


def joined(cuts: list[tuple[int, int]], out: str, *, negate: bool = False) -> str:
    """The cuts side by side, every second one negated if it says so."""
    sizes = [last - first for first, last in cuts]
    types = [f"tensor<{size}x4xf32>" for size in sizes]
    given = f"tensor<{sum(sizes)}x4xf32>"
    lines = [
        f"  %{n} = stablehlo.slice %x [{first}:{last}, 0:4] : (tensor<32x4xf32>) -> {type_}"
        for n, ((first, last), type_) in enumerate(zip(cuts, types, strict=True))
    ]
    every = [f"%{n}" for n in range(len(cuts))]
    if negate:
        for n in range(0, len(cuts), 2):
            every[n] = f"%n{n}"
            lines.append(f"  %n{n} = stablehlo.negate %{n} : {types[n]}")
    names = ", ".join(every)
    return f"""
sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<32x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{}}]>}})
    -> ({given} {{sdy.sharding = #sdy.sharding<@mesh, [{out}, {{}}]>}}) {{
{chr(10).join(lines)}
  %r = stablehlo.concatenate {names}, dim = 0 : ({", ".join(types)}) -> {given}
  return %r : {given}
}}
"""


@pytest.mark.parametrize("cuts", CUTS.values(), ids=CUTS)
@pytest.mark.parametrize("out", ['{"a"}', "{}"])
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("negate", [False, True])
def test_rows_put_beside_each_other_are_read_where_they_are(
    cuts: list[tuple[int, int]], out: str, keep: bool, negate: bool
) -> None:
    result = shardlog.run(joined(cuts, out, negate=negate))
    x = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    (got,) = run_partitioned(result, result.partition("replica", keep_shardings=keep), [x])
    signs = [1 if n % 2 or not negate else -1 for n in range(len(cuts))]
    rows = [sign * x[first:last] for sign, (first, last) in zip(signs, cuts, strict=True)]
    np.testing.assert_array_equal(got, np.concatenate(rows))


@pytest.mark.parametrize("negate", [False, True])
@pytest.mark.parametrize(("cuts", "rows"), [("rotated", 3), ("swapped", 8)])
def test_a_rotation_sends_the_rows_that_change_devices(cuts: str, rows: int, negate: bool) -> None:
    """As in rotary embeddings by halves, which negate the half that comes first."""
    program = shardlog.run(joined(CUTS[cuts], '{"a"}', negate=negate)).partition(keep_shardings=True)
    assert {(c.kind, c.bytes) for c in program.collectives} == {("collective-permute", rows * 4 * 4)}
    assert program.text().count("stablehlo.collective_permute") == 1


def test_rows_of_others_are_cut_out_before_they_are_sent() -> None:
    """Where they are not in parts: eleven rows of sixteen are put beside others, and change devices."""
    program = shardlog.run("""
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<16x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>},
                %y: tensor<16x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>})
    -> (tensor<16x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>}) {
  %0 = stablehlo.slice %x [0:5, 0:24] : (tensor<16x24xf32>) -> tensor<5x24xf32>
  %1 = stablehlo.slice %y [0:11, 0:24] : (tensor<16x24xf32>) -> tensor<11x24xf32>
  %r = stablehlo.concatenate %0, %1, dim = 0 : (tensor<5x24xf32>, tensor<11x24xf32>) -> tensor<16x24xf32>
  return %r : tensor<16x24xf32>
}
""").partition()
    assert [(c.kind, c.bytes) for c in program.collectives] == [("collective-permute", 11 * 12 * 4)]


# What is padded by its first and last rows, and the first row of what is cut out of it, again and again.
SHIFTS = {
    "one": ((1, 0), [0]),
    "both ways": ((1, 1), [0, 2, 1]),
    "far": ((3, 9), [0, 12]),
    "less than all": ((-1, 3), [2, 0]),
}


def shifted(pads: tuple[int, int], starts: list[int], rows: int, *, called: bool) -> str:
    low, high = pads
    part, wide = f"tensor<{rows}x4xf32>", f"tensor<{rows + low + high}x4xf32>"
    pad = f"stablehlo.pad %x, %f, low = [{low}, 0], high = [{high}, 0], interior = [0, 0]"
    padding = [
        "  %f = stablehlo.convert %s : (tensor<i32>) -> tensor<f32>",
        "  %p = PAD : (PART, tensor<f32>) -> WIDE",
    ]
    lines = ["  %p = call @pad(%s, %x) : (tensor<i32>, PART) -> WIDE"] if called else list(padding)
    for n, start in enumerate(starts):
        lines.append(f"  %c{n} = stablehlo.slice %p [{start}:{start + rows}, 0:4] : (WIDE) -> PART")
        lines.append(f"  %r{n} = stablehlo.subtract %{f'r{n - 1}' if n else 'x'}, %c{n} : PART")
    text = f"""
sdy.mesh @mesh = <["a"=8]>
func.func @main(%x: PART {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{}}]>}}, %s: tensor<i32>)
    -> (PART {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{}}]>}}) {{
{chr(10).join(lines)}
  return %r{len(starts) - 1} : PART
}}
func.func private @pad(%s: tensor<i32>, %x: PART) -> WIDE {{
{chr(10).join(padding)}
  return %p : WIDE
}}
"""
    return text.replace("PAD", pad).replace("PART", part).replace("WIDE", wide)


@pytest.mark.parametrize("shifts", SHIFTS.values(), ids=SHIFTS)
@pytest.mark.parametrize("rows", [64, 61])
@pytest.mark.parametrize("called", [False, True])
def test_what_is_padded_and_cut_again_is_shifted(
    shifts: tuple[tuple[int, int], list[int]], rows: int, called: bool
) -> None:
    (low, high), starts = shifts
    result = shardlog.run(shifted(*shifts, rows, called=called))
    x = np.random.default_rng(0).integers(-9, 9, (rows, 4)).astype(np.float32)
    program = result.partition("replica", keep_shardings=True)
    (got,) = run_partitioned(result, program, [x, np.array(7, np.int32)])
    wide = np.full((rows + low + high, 4), 7, np.float32)
    wide[max(low, 0) : low + rows] = x[max(-low, 0) :]
    np.testing.assert_array_equal(got, x - sum(wide[start : start + rows] for start in starts))


@pytest.mark.parametrize("called", [False, True])
def test_stencils_send_a_row_to_each_side(called: bool) -> None:
    text = shifted(*SHIFTS["both ways"], 64, called=called)
    for keep in (False, True):
        program = shardlog.run(text).partition(keep_shardings=keep)
        assert [(c.kind, c.bytes) for c in program.collectives] == [("collective-permute", 4 * 4)] * 2


def test_a_function_that_does_more_than_pad_is_called() -> None:
    text = shifted(*SHIFTS["one"], 64, called=True)
    effect = "  stablehlo.custom_call @print(%s) {has_side_effect = true} : (tensor<i32>) -> ()\n"
    start, end = text.split("  return %p")
    assert "@print" in shardlog.run(f"{start}{effect}  return %p{end}").partition().text()


def test_permutations_in_which_a_device_sends_again_count_each() -> None:
    # Three permutations would send as much as a gather does.
    def before(x: Any) -> Any:
        return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 13), (1, 1), ((0, 0), (12, 0)))

    result = shardlog.run(jax.jit(before).lower(array((8, 16), "data", "model")))
    assert [each.kind for each in result.partition().collectives] == ["all-gather"]


def counted(shape: tuple[int, ...], windows: list[tuple[int, ...]]) -> list[int]:
    """How many windows each dimension has; a window has a size, a stride, and what it is padded by."""
    return [
        (n + low + high - size) // stride + 1
        for n, (size, stride, low, high) in zip(shape, windows, strict=True)
    ]


def given_to_selected(
    shape: tuple[int, ...], windows: list[tuple[int, ...]], sharded: str, how: tuple[str, str]
) -> str:
    """What ``how`` windows select is given to, and combined by."""
    selects, combines = how
    sizes, strides, *_ = zip(*windows, strict=True)
    padding = ", ".join(f"[{low}, {high}]" for *_, low, high in windows)
    whole, given = (f"tensor<{'x'.join(map(str, n))}xf32>" for n in (shape, counted(shape, windows)))
    held = f"sdy.sharding = #sdy.sharding<@mesh, [{sharded}]>"
    return f"""
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: {whole} {{{held}}}, %s: {given} {{{held}}}) -> ({whole} {{{held}}}) {{
  %i = stablehlo.constant dense<0.0> : tensor<f32>
  %r = "stablehlo.select_and_scatter"(%x, %s, %i) <{{
    window_dimensions = array<i64: {", ".join(map(str, sizes))}>,
    padding = dense<[{padding}]> : tensor<{len(shape)}x2xi64>,
    window_strides = array<i64: {", ".join(map(str, strides))}>
  }}> ({{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare {selects}, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }}, {{
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.{combines} %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }}) : ({whole}, {given}, tensor<f32>) -> {whole}
  return %r : {whole}
}}
"""


def selecting(seed: int) -> tuple[str, list[Any]]:
    """A program whose windows select, and its operands, of which many are the same, and some no numbers."""
    draw = np.random.default_rng(seed)
    shape = tuple(int(n) for n in draw.integers(6, 21, 2))
    windows = list[tuple[int, ...]]()
    for _ in shape:
        size = int(draw.integers(1, 5))
        windows.append((size, int(draw.integers(1, size + 1)), *(int(n) for n in draw.integers(0, size, 2))))
    sharded = draw.choice(['{"a"}, {"b"}', '{"a", "b"}, {}', '{}, {"b"}', '{"b"}, {"a"}'])
    how = str(draw.choice(["GE", "GT", "LE", "LT"])), str(draw.choice(["add", "maximum"]))
    text = given_to_selected(shape, windows, str(sharded), how)
    x = draw.choice(
        [0, 1, 2, 2.5, -1, np.inf, -np.inf, np.nan], shape, p=[0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.15, 0.05]
    )
    return text, [x.astype(np.float32), draw.integers(-9, 9, counted(shape, windows)).astype(np.float32)]


@pytest.mark.parametrize("seed", range(12))
def test_windows_select_as_in_the_whole(seed: int) -> None:
    text, operands = selecting(seed)
    result = shardlog.run(text)
    with make_context():
        (expected,) = run_whole(ir.Module.parse(re.sub(r" {sdy.sharding = .*?>}", "", text)), operands)
    for keep in (True, False):
        (got,) = run_partitioned(result, result.partition("replica", keep_shardings=keep), operands)
        np.testing.assert_array_equal(got, expected)


POOLS = {"aligned": (2, 2, 0, 0), "overlapping": (3, 2, 0, 1), "everywhere": (3, 1, 1, 1)}


@pytest.mark.parametrize(("window", "rows"), [*zip(POOLS.values(), (0, 4, 6), strict=True)], ids=POOLS)
def test_windows_that_select_send_the_rows_that_lie_between_parts(
    window: tuple[int, int, int, int], rows: int
) -> None:
    text = given_to_selected((32, 8), [window, (1, 1, 0, 0)], '{"b"}, {}', ("GE", "add"))
    program = shardlog.run(text).partition(keep_shardings=True)
    assert {each.kind for each in program.collectives} <= {"collective-permute"}
    assert sum(each.bytes for each in program.collectives) == rows * 8 * 4


def test_there_is_no_window_before_the_first() -> None:
    """Of 33 rows in two parts of 17, and the 16 windows of three of them that begin at every second one."""
    each_second = Read(Slot(0), 0, Slot(3), 0, 2, 0, 1, 3, backwards=False, accumulates=False, around=True)
    assert stretch(each_second, 33, 33, 2).length == 19  # of nine windows
    given = Read(
        Slot(1), 0, Slot(3), 0, 1, 2, 2, 3, backwards=False, accumulates=False, around=False, from_first=True
    )
    exchange = stretch(given, 16, 33, 2).exchange
    assert (exchange.starts, exchange.length) == ((0, 8), 9)
    assert [each.pairs for each in exchange.rounds] == [((1, 0),)]


# Propagation leaves what the function takes whole, as 31 rows are not divisible.
ENDS = """
sdy.mesh @mesh = <["a"=4]>
#rows = #sdy.sharding<@mesh, [{"a"}, {}]>
func.func @main(%x: tensor<32x4xf32> {sdy.sharding = #rows}) -> (tensor<32x4xf32> {sdy.sharding = #rows}) {
  %0 = stablehlo.slice %x [1:32, 0:4] : (tensor<32x4xf32>) -> tensor<31x4xf32>
  %1 = stablehlo.slice %x [0:31, 0:4] : (tensor<32x4xf32>) -> tensor<31x4xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<31x4xf32>
  %3 = call @padded(%2) : (tensor<31x4xf32>) -> tensor<32x4xf32>
  return %3 : tensor<32x4xf32>
}
func.func private @padded(%x: tensor<31x4xf32>) -> tensor<32x4xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.pad %x, %0, low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<31x4xf32>, tensor<f32>) -> tensor<32x4xf32>
  return %1 : tensor<32x4xf32>
}
"""  # noqa: E501


def test_what_windows_read_may_live_in_parts_where_propagation_left_it_whole() -> None:
    result = shardlog.run(ENDS)
    program = result.partition()
    assert [(c.kind, c.bytes) for c in program.collectives] == [("collective-permute", 4 * 4)]
    x = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    (got,) = run_partitioned(result, result.partition("replica"), [x])
    np.testing.assert_array_equal(got, np.pad(np.diff(x, axis=0), ((0, 1), (0, 0))))


# A kernel, images, their axes, and strides.
IMAGES = {
    "rows": ((3, 3, 4, 8), (2, 32, 16, 4), (None, "model"), (1, 1)),
    "rows and columns": ((3, 3, 4, 8), (2, 16, 16, 4), (None, "data", "model"), (1, 1)),
    "every second row": ((3, 3, 3, 8), (2, 30, 48, 3), (None, "data", "model"), (2, 2)),
    "images and rows": ((3, 3, 4, 8), (4, 32, 17, 4), ("data", "model"), (1, 1)),
    "patches": ((16, 16, 3, 8), (2, 128, 128, 3), (None, "model"), (16, 16)),
    "patches that lie across": ((16, 16, 3, 8), (2, 224, 96, 3), (None, "model"), (16, 16)),
}


def convolved(images: Any, kernel: Any, strides: tuple[int, int] = (1, 1)) -> Any:
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(images, kernel, strides, "SAME", dimension_numbers=numbers)


@pytest.mark.parametrize(("kernel", "images", "axes", "strides"), IMAGES.values(), ids=IMAGES)
def test_gradients_of_kernels_are_added_up_where_images_are_in_parts(
    kernel: tuple[int, ...],
    images: tuple[int, ...],
    axes: tuple[str | None, ...],
    strides: tuple[int, int],
) -> None:
    """Neither images nor cotangents are gathered: rows next to parts are sent, and parts of the gradient."""

    def gradient(k: Any, x: Any) -> Any:
        def loss(k: Any) -> Any:
            return (jax.nn.relu(convolved(x, k, strides)) ** 2).sum()

        return jax.grad(loss)(k)

    given = array(kernel), array(images, *axes)
    lowered = jax.jit(gradient, out_shardings=given[0].sharding).lower(*given)
    program, kinds = shardlog.run(lowered).partition(), dict[str, float]()
    for each in program.collectives:
        kinds[each.kind] = kinds.get(each.kind, 0) + each.total
    rows = kinds.pop("collective-permute", 0)
    assert kinds.keys() <= {"all-reduce", "all-gather"}
    assert sum(kinds.values()) < 2 * prod(kernel) * 4  # of the gradient
    assert rows < prod(images) * 4 / 4
    rng = np.random.default_rng(0)
    values = [rng.normal(size=each.shape).astype(np.float32) for each in given]
    compiled, expected = program.compile(), jax.jit(gradient)(*values)
    sent = hlo_collectives(compiled.hlo).get("collective-permute", (0, 0))[1]
    assert rows / 2 < sent <= rows or not rows  # for both uses; some become one
    got = compiled(*values)
    np.testing.assert_allclose(got, expected, rtol=1e-3, atol=1e-2)


def test_rows_that_many_ops_need_are_sent_once() -> None:
    """A small U-Net with images in parts of space: convolutions and their gradients need the same rows."""

    def gradients(*given: Any) -> Any:
        def loss(first: Any, below: Any, last: Any, x: Any) -> Any:
            wide = jax.nn.relu(convolved(x, first))
            window = (1, 2, 2, 1)
            pooled = jax.lax.reduce_window(wide, -np.inf, jax.lax.max, window, window, "VALID")
            deep = jax.nn.relu(convolved(pooled, below))
            back = jax.image.resize(deep, (*wide.shape[:3], deep.shape[3]), "bilinear")
            return (convolved(jax.numpy.concatenate([back, wide], -1), last) ** 2).sum()

        return jax.grad(loss, (0, 1, 2))(*given)

    kernels = [(3, 3, 3, 8), (3, 3, 8, 16), (3, 3, 24, 8)]
    given = [*map(array, kernels), array((2, 16, 16, 3), None, "data", "model")]
    rng = np.random.default_rng(0)
    values = [rng.normal(size=each.shape).astype(np.float32) / 8 for each in given]
    expected = jax.jit(gradients)(*values)
    result = shardlog.run(jax.jit(gradients).lower(*given))
    for keep in (True, False):
        program = result.partition(keep_shardings=keep, seconds=None if keep else 600)
        sent = [(c.kind, c.bytes, c.value) for c in program.collectives if c.kind == "collective-permute"]
        assert keep == bool(sent)
        compiled = program.compile()
        listed = sum(c.total for c in program.collectives)
        assert sum(size for _, size in hlo_collectives(compiled.hlo).values()) <= listed
        for got, wanted in zip(compiled(*values), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-3)


NARROW = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "bfloat16", "float16")


@pytest.mark.parametrize("name", NARROW)
def test_padding_is_neutral_in_narrow_floats(name: str) -> None:
    """Some of them have no infinities."""

    def extremes(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        x = jax.lax.with_sharding_constraint(x, rows)  # type: ignore[no-untyped-call]
        return x.max(0), x.min(0)

    rows = array((13, 6), "model").sharding
    x = np.random.default_rng(0).uniform(3, 9, (13, 6)).astype(jax.numpy.dtype(name))
    x[:, ::2] = -x[:, ::2]
    for keep in (True, False):
        program = shardlog.run(jax.jit(extremes).lower(x)).partition(keep_shardings=keep)
        got = jax.tree.leaves(program.compile()(x))
        for found, expected in zip(got, (x.max(0), x.min(0)), strict=True):
            np.testing.assert_array_equal(np.asarray(found, np.float32), expected.astype(np.float32))


DILATED_TWICE = """
sdy.mesh @mesh = <["d"=2, "m"=4]>
#parts = #sdy.sharding<@mesh, [{}, {"d"}, {"m"}, {}]>
func.func @main(%x: tensor<2x16x16x8xf32> {sdy.sharding = #parts}, %w: tensor<4x4x8x4xf32>)
    -> (tensor<2x32x32x4xf32> {sdy.sharding = #parts}) {
  %0 = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
    window = {pad = [[2, 2], [2, 2]], lhs_dilate = [2, 2]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
    : (tensor<2x16x16x8xf32>, tensor<4x4x8x4xf32>) -> tensor<2x32x32x4xf32>
  return %0 : tensor<2x32x32x4xf32>
}
"""


def test_rows_are_sent_before_they_are_spread_out() -> None:
    result = shardlog.run(DILATED_TWICE)
    program = result.partition("replica")
    rows, columns = 2 * 1 * 4 * 8, 2 * (1 + 8 + 1) * 1 * 8  # with the rows from both sides
    assert [c.bytes for c in program.collectives] == [4 * rows, 4 * columns, 4 * columns]
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape).astype(np.float32) for shape in ((2, 16, 16, 8), (4, 4, 8, 4))]
    (got,), (want,) = run_partitioned(result, program, arrays), run_whole(result.module, arrays)
    np.testing.assert_array_equal(got, want)


POOLED = """
sdy.mesh @mesh = <["a"=4]>
func.func @main(%x: tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>})
    -> (tensor<64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%x, %0) <{
    window_dimensions = array<i64: 3>, base_dilations = array<i64: 2>,
    padding = dense<[[1, 2]]> : tensor<1x2xi64>
  }> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<32xf32>, tensor<f32>) -> tensor<64xf32>
  return %1 : tensor<64xf32>
}
"""


def test_parts_of_what_is_dilated_fetch_no_more_than_they_read() -> None:
    result = shardlog.run(POOLED)
    program = result.partition("replica")
    assert [(c.kind, c.bytes) for c in program.collectives] == [("collective-permute", 4)]
    x = np.arange(32, dtype=np.float32)
    (got,), (want,) = run_partitioned(result, program, [x]), run_whole(result.module, [x])
    np.testing.assert_array_equal(got, want)


REVERSED = """
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
#parts = #sdy.sharding<@mesh, [{"a"}, {"b"}, {"c"}]>
func.func @main(%x: tensor<4x6x8xf32> {sdy.sharding = #parts})
    -> (tensor<4x6x8xf32> {sdy.sharding = #parts}) {
  %0 = stablehlo.reverse %x, dims = [0, 1, 2] : tensor<4x6x8xf32>
  return %0 : tensor<4x6x8xf32>
}
"""


def test_what_is_reversed_along_several_dimensions_is_sent_once() -> None:
    result = shardlog.run(REVERSED)
    program = result.partition("replica")
    (sent,) = program.collectives
    assert (sent.kind, sent.bytes) == ("collective-permute", 4 * 2 * 3 * 4)
    assert not sent.also  # it is for one operand
    x = np.arange(4 * 6 * 8, dtype=np.float32).reshape(4, 6, 8)
    np.testing.assert_array_equal(run_partitioned(result, program, [x])[0], x[::-1, ::-1, ::-1])

"""Programs of each device, with collectives of the dialect shard, run on all devices."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest
import shardlog
from shardlog.errors import ShardlogError

jax = pytest.importorskip("jax")
SIZES = (2, 3)
DEVICES = list(product(*map(range, SIZES)))  # row by row
Values = dict[tuple[int, ...], Any]  # by device
T = "tensor<6x12xf32>"
OPS = {
    "gather": f"shard.all_gather %x on @g grid_axes = [1, 0] gather_axis = 1 : {T} -> tensor<6x72xf32>",
    "max": f"shard.all_reduce %x on @g grid_axes = [0] reduction = max : {T} -> {T}",
    "average": f"shard.all_reduce %x on @g grid_axes = [1] reduction = average : {T} -> {T}",
    "none": f"shard.all_reduce %x on @g grid_axes = [] : {T} -> {T}",
    "slice": f"shard.all_slice %x on @g grid_axes = [1, 0] slice_axis = 0 : {T} -> tensor<1x12xf32>",
    "exchange": "shard.all_to_all %x on @g grid_axes = [1] split_axis = 1 concat_axis = 0 "
    f": {T} -> tensor<18x4xf32>",
    "scatter": f"shard.reduce_scatter %x on @g grid_axes = [1] scatter_dim = 0 : {T} -> tensor<2x12xf32>",
    "broadcast": f"shard.broadcast %x on @g grid_axes = [1] root = [2] : ({T}) -> {T}",
    "parts": f"shard.scatter %x on @g grid_axes = [0] scatter_dim = 1 root = [1] : ({T}) -> tensor<6x6xf32>",
    "rotate": f"shard.shift %x on @g grid_axes = [0, 1] shift_axis = 1 offset = -1 rotate : {T} -> {T}",
    "shift": f"shard.shift %x on @g grid_axes = [1] shift_axis = 1 offset = 1 : {T} -> {T}",
    "halo": f"shard.update_halo %x on @g split_axes = [[1]] halo_sizes = [2, 1] : {T}",
    "wide": f"shard.update_halo %x on @g split_axes = [[1]] halo_sizes = [3, 1] : {T}",
}


def group(device: tuple[int, ...], axes: Sequence[int]) -> list[tuple[int, ...]]:
    """The devices of a device's group; the axis that is listed first is outermost."""
    found = []
    for coordinates in product(*(range(SIZES[axis]) for axis in axes)):
        other = list(device)
        for axis, coordinate in zip(axes, coordinates, strict=True):
            other[axis] = coordinate
        found.append(tuple(other))
    return found


def each(give: Callable[[tuple[int, ...]], Any]) -> Values:
    return {device: give(device) for device in DEVICES}


def expected(x: Values) -> dict[str, Values]:
    """What the dialect says of each op, device by device."""

    def part(value: Any, device: tuple[int, ...], axes: Sequence[int], dim: int) -> Any:
        members = group(device, axes)
        return np.split(value, len(members), dim)[members.index(device)]

    def halo(device: tuple[int, ...]) -> Any:
        value = x[device].copy()
        row, column = device
        if column > 0:
            value[:2] = x[row, column - 1][3:5]  # the core is rows 2 to 4
        if column < 2:
            value[5:] = x[row, column + 1][2:3]
        return value

    def wide(device: tuple[int, ...]) -> Any:
        value = x[device].copy()
        row, column = device
        if column > 0:
            value[1:3] = x[row, column - 1][3:5]  # the core is rows 3 and 4
        if column > 1:
            value[:1] = x[row, column - 2][4:5]
        if column < 2:
            value[5:] = x[row, column + 1][3:4]
        return value

    def along(device: tuple[int, ...], axes: Sequence[int]) -> list[Any]:
        return [x[other] for other in group(device, axes)]

    return {
        "gather": each(lambda d: np.concatenate(along(d, [1, 0]), 1)),
        "max": each(lambda d: np.max(along(d, [0]), 0)),
        "average": each(lambda d: np.mean(along(d, [1]), 0)),
        "none": x,
        "slice": each(lambda d: part(x[d], d, [1, 0], 0)),
        "exchange": each(lambda d: np.concatenate([part(v, d, [1], 1) for v in along(d, [1])], 0)),
        "scatter": each(lambda d: part(np.sum(along(d, [1]), 0), d, [1], 0)),
        "broadcast": each(lambda d: x[d[0], 2]),
        "parts": each(lambda d: part(x[1, d[1]], d, [0], 1)),
        "rotate": each(lambda d: x[d[0], (d[1] + 1) % 3]),
        "shift": each(lambda d: x[d[0], d[1] - 1] if d[1] else None),
        "halo": each(halo),
        "wide": each(wide),
    }


def program(ops: dict[str, str]) -> str:
    results = [op.rpartition("-> ")[2].rpartition(" : ")[2] for op in ops.values()]
    lines = [f"  %{name} = {op}" for name, op in ops.items()]
    names = ", ".join(f"%{name}" for name in ops)
    head = f"shard.grid @g(shape = 2x3)\nfunc.func @main(%x: {T}) -> ({', '.join(results)}) {{"
    return "\n".join([head, *lines, f"  return {names} : {', '.join(results)}", "}"])


def test_each_collective_gives_what_the_dialect_says() -> None:
    x = np.random.default_rng(1).integers(-50, 50, (6, 6, 12)).astype(np.float32)
    compiled = shardlog.run(program(OPS)).partition().compile(jax.devices()[:6])
    outputs = compiled(x)
    wanted = expected(dict(zip(DEVICES, x, strict=True)))
    assert len(outputs) == len(OPS)
    for name, output in zip(OPS, outputs, strict=True):
        for device, value in zip(DEVICES, np.asarray(output), strict=True):
            if (want := wanted[name][device]) is not None:  # otherwise anything
                np.testing.assert_allclose(value, want, err_msg=f"{name} on {device}", rtol=1e-6)


RESHARD = """
shard.grid @g(shape = 2x3)
func.func @main(%x: tensor<12x18xf32>) -> tensor<12x18xf32> {
  %s = shard.sharding @g split_axes = [[0, 1]] : !shard.sharding
  %t = shard.sharding @g split_axes = [[1, 0]] : !shard.sharding
  %0 = shard.shard %x to %s : tensor<12x18xf32>
  %1 = shard.shard %0 to %t annotate_for_users : tensor<12x18xf32>
  return %1 : tensor<12x18xf32>
}
"""


def test_a_reduction_into_another_type_reduces_in_that_type() -> None:
    op = f"shard.all_reduce %x on @g grid_axes = [1] : {T} -> tensor<6x12xi32>"
    x = np.full((6, 6, 12), 16777217.9, np.float32)  # a sum of three is no float32
    (output,) = shardlog.run(program({"r": op})).partition().compile(jax.devices()[:6])(x)
    np.testing.assert_array_equal(np.asarray(output), x.astype(np.int32) * 3)


@pytest.mark.parametrize("kind", ["and", "or", "xor"])
def test_bits_are_reduced(kind: str) -> None:
    """XLA has no collective for that."""
    t = T.replace("f32", "i32")
    ops = {
        "all": f"shard.all_reduce %x on @g grid_axes = [1] reduction = bitwise_{kind} : {t} -> {t}",
        "part": f"shard.reduce_scatter %x on @g grid_axes = [1] reduction = bitwise_{kind} scatter_dim = 0 "
        f": {t} -> tensor<2x12xi32>",
    }
    x = np.random.default_rng(2).integers(-99, 99, (6, 6, 12)).astype(np.int32)
    compiled = shardlog.run(program(ops).replace(T, t)).partition().compile(jax.devices()[:6])
    whole, part = (np.asarray(output) for output in compiled(x))
    wanted = getattr(np, f"bitwise_{kind}").reduce(x.reshape(2, 3, 6, 12), axis=1)
    np.testing.assert_array_equal(whole, wanted.repeat(3, 0))
    np.testing.assert_array_equal(part, wanted.reshape(6, 2, 12))


def test_a_mesh_with_fewer_axes_is_refused() -> None:
    with pytest.raises(ShardlogError, match=r"all_gather is along axis 1, and @g has 1 axis"):
        shardlog.run(program({"gather": OPS["gather"]}), mesh="data=6")


def test_a_program_that_was_written_runs_again() -> None:
    """Its sends and receives are one permutation."""
    text = shardlog.run(RESHARD, propagation="completion").partition(form="shard").text()
    assert "shard.send" in text
    x = np.arange(12 * 18, dtype=np.float32).reshape(6, 2, 18)
    (output,) = shardlog.run(text).partition().compile(jax.devices()[:6])(x)
    places = [column * 2 + row for row, column in DEVICES]  # of [1, 0]
    np.testing.assert_array_equal(np.asarray(output), x[places])


def test_messages_between_the_same_devices_arrive_in_order() -> None:
    send = "shard.send {} on @g grid_axes = [1] destination = [%to] : (tensor<6xf32>, index) -> tensor<6xf32>"
    receive = "shard.recv {} on @g grid_axes = [1] source = [%of] : (tensor<6xf32>, index) -> tensor<6xf32>"
    text = f"""
shard.grid @g(shape = 1x2)
func.func @main(%x: tensor<6xf32>, %y: tensor<6xf32>) -> (tensor<6xf32>, tensor<6xf32>) {{
  %to = shard.process_linear_index on @g : index
  %of = shard.process_linear_index on @g : index
  %0 = {send.format("%x")}
  %1 = {send.format("%y")}
  %2 = {receive.format("%x")}
  %3 = {receive.format("%x")}
  return %2, %3 : tensor<6xf32>, tensor<6xf32>
}}
"""
    x, y = np.arange(24, dtype=np.float32).reshape(2, 2, 6)
    found = shardlog.run(text).partition().compile(jax.devices()[:2])(x, y)
    np.testing.assert_array_equal(np.asarray(found), [x, y])


CALLED = """
shard.grid @g(shape = 2x3)
func.func @main(%x: tensor<6xf32>) -> tensor<6xf32> {{
  %0 = func.call @sum(%x) : (tensor<6xf32>) -> tensor<6xf32>
  %1 = func.call @sum(%0) : (tensor<6xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}}
func.func private @sum(%x: tensor<6xf32>) -> tensor<6xf32> {{
  %0 = shard.all_reduce %x on @g grid_axes = [1] : tensor<6xf32> -> tensor<6xf32>{}
  return %0 : tensor<6xf32>
}}
"""


def test_functions_are_called() -> None:
    x = np.arange(36, dtype=np.float32).reshape(6, 6)
    (output,) = shardlog.run(CALLED.format("")).partition().compile(jax.devices()[:6])(x)
    wanted = x.reshape(2, 3, 6).sum(1).repeat(3, 0) * 3
    np.testing.assert_array_equal(np.asarray(output), wanted)
    itself = "\n  %1 = func.call @sum(%0) : (tensor<6xf32>) -> tensor<6xf32>"
    with pytest.raises(ShardlogError, match="calls itself"):
        shardlog.run(CALLED.format(itself))


@pytest.mark.parametrize(
    "op, message",
    [
        (
            f"shard.all_reduce %x on @g grid_axes = [0] reduction = generic : {T} -> {T}",
            "its reduction is not known",
        ),
        (f"shard.recv %x on @g grid_axes = [0] source = [1] : ({T}) -> {T}", "no shard.send before it"),
    ],
)
def test_what_cannot_run_is_refused(op: str, message: str) -> None:
    with pytest.raises(ShardlogError, match=message) as caught:
        shardlog.run(program({"r": op}))
    assert ":3" in caught.value.where


def test_a_program_computes_with_the_place_of_its_device() -> None:
    text = """shard.grid @g(shape = 2x3)
func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
  %i, %j = shard.process_multi_index on @g : index, index
  %down, %up = shard.neighbors_linear_indices on @g[%i, %j] split_axes = [1] : index, index
  %n = shard.grid_shape @g axes = [1] : index
  %zero = arith.constant 0 : index
  %first = arith.cmpi eq, %j, %zero : index
  %y = scf.if %first -> tensor<4xi32> {
    scf.yield %x : tensor<4xi32>
  } else {
    %z = arith.constant dense<0> : tensor<4xi32>
    scf.yield %z : tensor<4xi32>
  }
  %a = arith.muli %i, %n : index
  %0 = arith.index_cast %a : index to i32
  %1 = arith.index_cast %j : index to i32
  %2 = arith.index_cast %down : index to i32
  %3 = arith.index_cast %up : index to i32
  %t = tensor.from_elements %0, %1, %2, %3 : tensor<4xi32>
  %r = tosa.add %y, %t : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  return %r : tensor<4xi32>
}
"""
    x = np.arange(24, dtype=np.int32).reshape(6, 4) * 100
    (found,) = jax.tree.leaves(shardlog.run(text).partition().compile(jax.devices()[:6])(x))
    for number, (row, column) in enumerate(DEVICES):
        down, up = number - 1 if column > 0 else -1, number + 1 if column < 2 else -1
        given = x[number] if column == 0 else 0
        np.testing.assert_array_equal(
            np.asarray(found)[number], given + np.array([row * 3, column, down, up])
        )


DECIDING = """shard.grid @g(shape = 2x3)
func.func @main(%x: tensor<6xf32>, %own: tensor<i1>) -> tensor<6xf32> {{
  %i, %j = shard.process_multi_index on @g : index, index
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %half = arith.constant 0.5 : f32
  {condition}
  %s = {head} {{
    %r = {collective} : {type}
    scf.yield %r : tensor<6xf32>
  }} {rest}
  return %s : tensor<6xf32>
}}
"""
IF, ELSE = "scf.if %p -> tensor<6xf32>", "else {\n    scf.yield %x : tensor<6xf32>\n  }"
FOR = "scf.for %k = %zero to %n step %one iter_args(%a = %x) -> tensor<6xf32>"
WHILE = """scf.while (%a = %x) : (tensor<6xf32>) -> tensor<6xf32> {{
    {}
    %e = tensor.extract %t[] : tensor<f32>
    %p = arith.cmpf ogt, %e, %half : f32
    scf.condition(%p) %a : tensor<6xf32>
  }} do {{
    ^bb0(%a: tensor<6xf32>):
    %r = shard.all_reduce %a on @g grid_axes = [0] reduction = average : tensor<6xf32> -> tensor<6xf32>
    %b = tosa.sub %r, %r : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    scf.yield %b : tensor<6xf32>
  }}"""
FLAG = "%p = tensor.extract %f[] : tensor<i1>"
ROW = "%p = arith.cmpi eq, %i, %zero : index"
SUM = "shard.all_reduce %x on @g grid_axes = [{}]"
AGREED = "%f = shard.all_reduce %own on @g grid_axes = [{}] reduction = max : tensor<i1> -> tensor<i1>\n  "


def deciding(condition: str, head: str = IF, collective: str = SUM.format(1), types: str = "") -> str:
    """A program whose collective is in a branch or a loop; a loop %n times if the head is FOR."""
    return DECIDING.format(
        condition=condition,
        head=head,
        collective=collective,
        type=types or "tensor<6xf32> -> tensor<6xf32>",
        rest=ELSE if head == IF else "",
    )


def converging(norm: str) -> str:
    """A loop until a number is small, which may be another one on each device."""
    head, _, rest = DECIDING.partition("  %s = ")
    end = rest.rpartition("}} {rest}")[2]
    return f"{head.format(condition='')}  %s = {WHILE.format(norm)}{end.format()}"


NORM = """%m = tosa.reduce_max %a {axis = 0 : i32} : (tensor<6xf32>) -> tensor<1xf32>
    %o = shard.all_reduce %m on @g grid_axes = [AXES] reduction = max : tensor<1xf32> -> tensor<1xf32>
    %t = tensor.collapse_shape %o [] : tensor<1xf32> into tensor<f32>"""
PART = """%q = shard.all_reduce %x on @g grid_axes = [0, 1] : tensor<6xf32> -> tensor<6xf32>
  %h = shard.all_slice %q on @g grid_axes = [0] slice_axis = 0 : tensor<6xf32> -> tensor<3xf32>
  %e = tensor.extract %h[%zero] : tensor<3xf32>
  %p = arith.cmpf ogt, %e, %half : f32"""
SHIFT = "shard.shift %x on @g grid_axes = [1] shift_axis = 1 offset = 1"


@pytest.mark.parametrize(
    "text, axis, source",
    [
        (deciding(FLAG.replace("%f", "%own")), 1, "argument 1 of @main"),
        (deciding(AGREED.format(0) + FLAG), 1, "argument 1 of @main"),
        (deciding(ROW, collective=SUM.format("0, 1")), 0, "shard.process_multi_index in line 3"),
        (deciding("%n = arith.addi %j, %one : index", FOR), 1, "shard.process_multi_index in line 3"),
        (deciding(PART, collective=SUM.format(0)), 0, "shard.all_slice in line 8"),
        (deciding(ROW, collective=SHIFT), 0, "shard.process_multi_index in line 3"),
        (converging(NORM.replace("AXES", "1")), 0, "argument 0 of @main"),
    ],
    ids=["argument", "agreed along another axis", "row", "loop", "slice", "permutation", "converging"],
)
def test_a_collective_that_some_devices_may_not_reach_is_refused(text: str, axis: int, source: str) -> None:
    """They would wait for ever: XLA must not run it."""
    with pytest.raises(ShardlogError) as refused:
        shardlog.run(text)
    message = rf"devices along axis {axis} may decide differently, and shard\.\w+ in line \d+ waits for them"
    assert re.fullmatch(rf"{message}: it depends on {re.escape(source)}", refused.value.message)
    assert "shard.all_reduce along that axis" in refused.value.hint
    line = text.splitlines().index(next(line for line in text.splitlines() if line.startswith("  %s = "))) + 1
    assert refused.value.where.endswith(f":{line}:8")


@pytest.mark.parametrize(
    "text, wanted",
    [
        (
            deciding(AGREED.format(1) + FLAG),
            lambda x, own: np.where(own.any(1, keepdims=True), x.sum(1, keepdims=True), x),
        ),
        (deciding(AGREED.format("0, 1") + FLAG), lambda x, own: x.sum(1, keepdims=True)),
        (deciding(ROW), lambda x, own: np.where([[[True]], [[False]]], x.sum(1, keepdims=True), x)),
        (
            deciding("%n = shard.grid_shape @g axes = [0] : index", FOR, SUM.format(1).replace("%x", "%a")),
            lambda x, own: x.sum(1, keepdims=True) * 3,
        ),
        (converging(NORM.replace("AXES", "0, 1")), lambda x, own: x * 0),
        (converging(NORM.replace("AXES", "0")), lambda x, own: x * 0),
    ],
    ids=["agreed along its axis", "agreed by all", "row", "loop", "converging", "converging by column"],
)
def test_a_collective_that_all_devices_of_a_group_reach_runs(text: str, wanted: Any) -> None:
    x = np.arange(36, dtype=np.float32).reshape(6, 6) + 1
    own = np.array([False, True, False, False, False, False])
    (found,) = jax.tree.leaves(shardlog.run(text).partition().compile(jax.devices()[:6])(x, own))
    expected = wanted(x.reshape(2, 3, 6), own.reshape(2, 3, 1))
    np.testing.assert_array_equal(np.asarray(found), np.broadcast_to(expected, (2, 3, 6)).reshape(6, 6))


def given(axes: str) -> str:
    """A program that branches by an argument which is the same along some axes."""
    noted = f"%own: tensor<i1> {{shard.alike_along = array<i16: {axes}>}}"
    return deciding(FLAG.replace("%f", "%own")).replace("%own: tensor<i1>", noted, 1)


def test_an_argument_may_be_the_same_along_axes() -> None:
    """Then its first dimension lists the devices along the others."""
    text = given("1")
    x, own = np.arange(36, dtype=np.float32).reshape(6, 6), np.asarray([True, False])
    (found,) = jax.tree.leaves(shardlog.run(text).partition().compile(jax.devices()[:6])(x, own))
    rows = x.reshape(2, 3, 6)
    wanted = np.where([[[True]], [[False]]], rows.sum(1, keepdims=True), rows)
    np.testing.assert_array_equal(np.asarray(found), wanted.reshape(6, 6))


@pytest.mark.parametrize(
    "axes, message",
    [("0", "devices along axis 1 may decide differently"), ("1, 2", "argument 1 names axis 2")],
)
def test_an_argument_that_is_the_same_along_other_axes(axes: str, message: str) -> None:
    with pytest.raises(ShardlogError, match=message):
        shardlog.run(given(axes))


COUNTED = """shard.grid @g(shape = 2x2)
func.func @main(%x: tensor<8x6xf32>, %n: tensor<i32>) -> tensor<8x6xf32> {
  %s = shard.sharding @g split_axes = [[0], [1]] : !shard.sharding
  %0 = shard.shard %x to %s : tensor<8x6xf32>
  %z = stablehlo.constant dense<0> : tensor<i32>
  %o = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %z, %v = %0) : tensor<i32>, tensor<8x6xf32>
    cond {
      %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %t = shard.sharding @g split_axes = [[1], [0]] : !shard.sharding
      %a = shard.shard %v to %t annotate_for_users : tensor<8x6xf32>
      %y = stablehlo.tanh %a : tensor<8x6xf32>
      %j = stablehlo.add %i, %o : tensor<i32>
      stablehlo.return %j, %y : tensor<i32>, tensor<8x6xf32>
    }
  return %r#1 : tensor<8x6xf32>
}
"""


def test_a_loop_with_collectives_that_was_written_runs_again() -> None:
    run = shardlog.run(COUNTED, propagation="completion")
    text = run.partition(form="shard").text()
    assert "%arg1: tensor<i32> {shard.alike_along = array<i16: 0, 1>}" in text
    again = shardlog.run(text)
    assert again.partition(form="shard").text() == text
    x, n = np.linspace(-1, 1, 48, dtype=np.float32).reshape(8, 6), np.asarray([3], np.int32)
    devices = jax.devices()[:4]
    whole = np.asarray(run.partition().compile(devices)(x, n[0])[0])
    parts = np.stack([x[i : i + 4, j : j + 3] for i in (0, 4) for j in (0, 3)])
    (found,) = jax.tree.leaves(again.partition().compile(devices)(parts, n))
    rows = [np.concatenate(pair, 1) for pair in np.asarray(found).reshape(2, 2, 4, 3)]
    np.testing.assert_array_equal(np.concatenate(rows), whole)


def test_annotations_of_whole_tensors_are_refused_beside_ops_of_a_device() -> None:
    text = """
shard.grid @g(shape = 2)
func.func @main(%x: tensor<6xf32>) -> tensor<12xf32> {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %0 = shard.shard %x to %s annotate_for_users : tensor<6xf32>
  %1 = shard.all_gather %0 on @g grid_axes = [0] gather_axis = 0 : tensor<6xf32> -> tensor<12xf32>
  return %1 : tensor<12xf32>
}
"""
    gather = text.splitlines()[5]
    for op, line in {
        "shard.all_gather": gather,
        "shard.process_linear_index": f"  %i = shard.process_linear_index on @g : index\n{gather}",
    }.items():
        for each in (text, text.replace(" annotate_for_users", "")):
            with pytest.raises(ShardlogError) as refused:
                shardlog.run(each.replace(gather, line))
            assert (
                refused.value.message
                == f"{op} is of the program of a device, and @main annotates whole tensors"
            )
            assert refused.value.where.endswith(":6:8")


def test_each_function_has_its_own_form() -> None:
    text = """
shard.grid @g(shape = 2)
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %0 = shard.shard %x to %s : tensor<8xf32>
  %1 = tosa.exp %0 : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func @each(%x: tensor<4xf32>) -> tensor<8xf32> {
  %0 = shard.all_gather %x on @g grid_axes = [0] gather_axis = 0 : tensor<4xf32> -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    whole, each = shardlog.run(text), shardlog.run(text, entry="each")
    main = "func.func @main(%arg0: tensor<4xf32>) -> "
    assert f"{main}tensor<4xf32>" in whole.partition(form="shard").text()
    assert f"{main}tensor<8xf32>" in each.partition(form="shard").text()
    x = np.arange(8, dtype=np.float32)
    (got,) = whole.partition().compile(jax.devices()[:2])(x)
    np.testing.assert_allclose(got, np.exp(x), rtol=1e-6)
    (got,) = each.partition().compile(jax.devices()[:2])(x.reshape(2, 4))
    np.testing.assert_array_equal(got, [x, x])


REDUCED = """
shard.grid @g(shape = 2x3)
func.func @main(%x: tensor<4xELEMENT>) -> tensor<2xELEMENT> {
  %0 = shard.all_reduce %x on @g grid_axes = [1] reduction = KIND : tensor<4xELEMENT> -> tensor<4xELEMENT>
  %1 = shard.reduce_scatter %0 on @g grid_axes = [0] reduction = KIND scatter_dim = 0
      : tensor<4xELEMENT> -> tensor<2xELEMENT>
  return %1 : tensor<2xELEMENT>
}
"""


@pytest.mark.parametrize("kind", ["and", "or", "xor"])
def test_bits_are_reduced_whether_partitioned_or_not(kind: str) -> None:
    """XLA has no such collectives."""
    session = shardlog.run(REDUCED.replace("ELEMENT", "i32").replace("KIND", f"bitwise_{kind}"))
    x = np.random.default_rng(0).integers(0, 1 << 20, (6, 4)).astype(np.int32)
    all_of = getattr(np, f"bitwise_{kind}").reduce(x)
    expected = [all_of[:2]] * 3 + [all_of[2:]] * 3
    for program in (session, session.partition()):
        np.testing.assert_array_equal(program.compile()(x)[0], expected)


@pytest.mark.parametrize(
    ("kind", "element"), [("bitwise_xor", "f32"), ("average", "i32"), ("min", "complex<f32>")]
)
def test_elements_without_a_reduction_are_refused(kind: str, element: str) -> None:
    text = REDUCED.replace("ELEMENT", element).replace("KIND", kind)
    with pytest.raises(ShardlogError, match="all_reduce cannot run: its elements are") as refused:
        shardlog.run(text)
    assert ":4:" in str(refused.value)

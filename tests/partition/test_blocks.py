"""Parts of unequal size, and parts with halos: devices compute on what they are said to hold."""

from __future__ import annotations

import random
from collections.abc import Sequence

import jax
import numpy as np
import pytest
import shardlog
from shardlog.errors import ShardlogError
from shardlog.executing.execution import alone_on

SIZES = (2, 3)


def sharding(name: str, axes: Sequence[Sequence[int]], more: str) -> str:
    return f"  %{name} = shard.sharding @g split_axes = {[*map(list, axes)]} {more} : !shard.sharding"


def annotated(value: str, name: str, type_: str, said: str) -> list[str]:
    return [
        f"  %{value}_ = shard.shard %{value} to %{said} : {type_}",
        f"  %{name} = shard.shard %{value}_ to %{said} annotate_for_users : {type_}",
    ]


def module(*lines: str, takes: str = "%x: tensor<7xf32>", gives: str = "tensor<7xf32>") -> str:
    body = "\n".join(lines)
    return f"shard.grid @g(shape = 2x3)\nfunc.func @main({takes}) -> {gives} {{\n{body}\n}}\n"


EXP = module(
    sharding("s", [[0]], "sharded_dims_offsets = [0, 3, 7]"),
    *annotated("x", "p", "tensor<7xf32>", "s"),
    "  %y = tosa.exp %p : (tensor<7xf32>) -> tensor<7xf32>",
    *annotated("y", "q", "tensor<7xf32>", "s"),
    "  return %q : tensor<7xf32>",
)


@pytest.mark.parametrize("propagation", ["shardy", "completion"])
def test_a_device_computes_on_its_rows_and_padding(propagation: str) -> None:
    program = shardlog.run(EXP, propagation=propagation).partition(keep_shardings=True)
    (line,) = (line for line in program.text().splitlines() if "tosa.exp" in line)
    assert line.endswith("(tensor<4xf32>) -> tensor<4xf32>")  # three rows and one of padding, or four
    (sent,) = program.collectives
    assert sent.kind == "all-gather"  # of the result, which is whole at the boundary
    x = np.arange(7, dtype=np.float32)
    np.testing.assert_allclose(program.compile()(x)[0], np.exp(x), rtol=1e-6)


def test_halos_and_offsets_stay_on_arguments_that_are_cut_unevenly() -> None:
    text = shardlog.run(EXP, propagation="completion").text(notation="shard")
    assert text.count("split_axes = [[0]] sharded_dims_offsets = [0, 3, 7]") == 1
    assert text.count("shard.shard %") == 5
    again = shardlog.run(text, propagation="completion")
    assert again.text(notation="shard") == text


def test_a_dialect_without_them_is_not_written() -> None:
    with pytest.raises(ShardlogError, match="offsets of parts of a sharding on @g") as refused:
        shardlog.run(EXP).text(notation="mesh")
    assert "write shard" in str(refused.value)


@pytest.mark.parametrize(
    "more", ["sharded_dims_offsets = [0, ?, 7]", "halo_sizes = [1, ?]"], ids=["offsets", "halo"]
)
def test_what_is_not_known_before_it_runs_is_refused(more: str) -> None:
    text = EXP.replace("sharded_dims_offsets = [0, 3, 7]", more)
    with pytest.raises(ShardlogError, match="is not known"):
        shardlog.run(text).partition()


def test_parts_of_ops_that_are_not_elementwise_are_put_together() -> None:
    text = module(
        sharding("s", [[1]], "halo_sizes = [2, 1]"),
        *annotated("x", "p", "tensor<7xf32>", "s"),
        "  %r = stablehlo.reverse %p, dims = [0] : tensor<7xf32>",
        "  return %r : tensor<7xf32>",
    )
    x = np.arange(7, dtype=np.float32)
    for keep in (True, False):
        program = shardlog.run(text).partition(keep_shardings=keep)
        np.testing.assert_array_equal(program.compile()(x)[0], x[::-1])


# ---- Random ones -------------------------------------------------------------------------------------------


class _Drawn:
    """A random module of 2-d tensors, with random parts."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.shape = [self.draw.randint(5, 13) for _ in range(2)]
        self.lines: list[str] = []
        self.known: list[str] = []

    def said(self, name: str) -> None:
        axes: list[list[int]] = [[], []]
        for axis in self.draw.sample((0, 1), self.draw.randint(1, 2)):
            axes[self.draw.randrange(2)].append(axis)
        sharded = [(d, int(np.prod([SIZES[a] for a in each]))) for d, each in enumerate(axes) if each]
        numbers = list[int]()
        how = self.draw.choice(["halo_sizes", "sharded_dims_offsets", ""])
        for dim, count in sharded:
            if how == "halo_sizes":
                numbers += [self.draw.randint(0, 3) for _ in range(2)]
            else:
                cuts = sorted(self.draw.randint(0, self.shape[dim]) for _ in range(count - 1))
                numbers += [0, *cuts, self.shape[dim]]
        self.lines.append(sharding(name, axes, f"{how} = {numbers}" if how else ""))
        self.known.append(name)

    def text(self) -> str:
        type_ = f"tensor<{self.shape[0]}x{self.shape[1]}xf32>"
        for name in ("s", "t"):
            self.said(name)
        values = ["x", "y"]
        for step in range(5):
            operands = [self.draw.choice(values) for _ in range(2)]
            if self.draw.random() < 0.8:
                self.lines += annotated(operands[0], f"p{step}", type_, self.draw.choice(self.known))
                self.lines[-2:] = [line.replace(f"{operands[0]}_", f"d{step}") for line in self.lines[-2:]]
                operands[0] = f"p{step}"
            a, b = (f"%{value}" for value in operands)
            op = self.draw.choice(["stablehlo.add", "stablehlo.tanh", "sum"])
            if op == "sum":
                self.lines += [
                    f"  %c{step} = stablehlo.constant dense<0.0> : tensor<f32>",
                    f"  %r{step} = stablehlo.reduce({a} init: %c{step}) applies stablehlo.add across "
                    f"dimensions = [0] : ({type_}, tensor<f32>) -> tensor<{self.shape[1]}xf32>",
                    f"  %v{step} = stablehlo.broadcast_in_dim %r{step}, dims = [1] : "
                    f"(tensor<{self.shape[1]}xf32>) -> {type_}",
                ]
            else:
                self.lines.append(f"  %v{step} = {op} {a}{f', {b}' if op.endswith('add') else ''} : {type_}")
            values.append(f"v{step}")
        self.lines.append(f"  return %{values[-1]} : {type_}")
        return module(*self.lines, takes=f"%x: {type_}, %y: {type_}", gives=type_)


@pytest.mark.parametrize("seed", range(12))
def test_random_parts_give_what_one_device_does(seed: int) -> None:
    drawn = _Drawn(seed)
    text = drawn.text()
    session = shardlog.run(text, propagation=drawn.draw.choice(["shardy", "completion"]))
    given = np.random.default_rng(seed).uniform(-1, 1, (2, *drawn.shape)).astype(np.float32)
    (expected,) = alone_on(session.result, jax.devices()[:1])([*given])
    for keep in (True, False):
        program = session.partition(keep_shardings=keep)
        assert all(sent.where for sent in program.collectives)
        np.testing.assert_allclose(program.compile()(*given)[0], expected, rtol=1e-4, atol=1e-5)


# ---- Stencils ----------------------------------------------------------------------------------------------

STENCILS = {
    "convolution": (
        "tensor<1x12x8x3xf32>",
        "stablehlo.convolution(%p, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], "
        "window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}",
        "tensor<3x3x3x3xf32>",
    ),
    "reduce_window": (
        "tensor<1x12x8x3xf32>",
        '"stablehlo.reduce_window"(%p, %k) <{'
        "padding = dense<[[0, 0], [1, 1], [0, 0], [0, 0]]> : tensor<4x2xi64>, "
        "window_dimensions = array<i64: 1, 3, 1, 1>}> ({\n  ^bb0(%a: tensor<f32>, %b: tensor<f32>):\n"
        "    %m = stablehlo.add %a, %b : tensor<f32>\n    stablehlo.return %m : tensor<f32>\n  })",
        "tensor<f32>",
    ),
    "pad": (
        "tensor<1x12x8x3xf32>",
        "stablehlo.pad %p, %k, low = [0, 1, 0, 0], high = [0, -1, 0, 0], interior = [0, 0, 0, 0]",
        "tensor<f32>",
    ),
}


@pytest.mark.parametrize("op", STENCILS)
def test_a_stencil_of_halos_receives_rows_of_its_neighbours_only(op: str) -> None:
    type_, statement, other = STENCILS[op]
    text = module(
        sharding("s", [[], [1]], "halo_sizes = [1, 1]"),
        sharding("t", [[], [1]], ""),
        *annotated("x", "p", type_, "s"),
        f"  %y = {statement} : ({type_}, {other}) -> {type_}",
        *annotated("y", "q", type_, "t"),
        f"  return %q : {type_}",
        takes=f"%x: {type_}, %k: {other}",
        gives=type_,
    )
    for propagation in ("shardy", "completion"):
        session = shardlog.run(text, propagation=propagation)
        for keep in (True, False):
            program = session.partition(keep_shardings=keep)
            assert {sent.kind for sent in program.collectives} == {"collective-permute"}
            assert sum(sent.total for sent in program.collectives) <= 2 * 8 * 3 * 4  # a row to either side
            draw = np.random.default_rng(0)
            sizes = [tuple(map(int, t[7:-1].split("x")[:-1])) for t in (type_, other)]
            given = [draw.integers(-3, 4, size).astype(np.float32) for size in sizes]
            given[1] *= op == "convolution"
            (expected,) = alone_on(session.result, jax.devices()[:1])(given)
            np.testing.assert_array_equal(program.compile()(*given)[0], expected)


@pytest.mark.parametrize(
    ("halos", "held"),
    [
        ([1, 2, 0, 3], "6x6"),
        ([4, 2, 7, 3], "9x13"),
    ],  # of parts of 3x3: neighbours of neighbours have rows, too
)
def test_an_elementwise_op_between_halos_computes_on_them(halos: list[int], held: str) -> None:
    text = module(
        sharding("s", [[0], [1]], f"halo_sizes = {halos}"),
        *annotated("x", "p", "tensor<6x9xf32>", "s"),
        "  %y = stablehlo.tanh %p : tensor<6x9xf32>",
        *annotated("y", "q", "tensor<6x9xf32>", "s"),
        "  %z = stablehlo.negate %q : tensor<6x9xf32>",
        "  return %z : tensor<6x9xf32>",
        takes="%x: tensor<6x9xf32>",
        gives="tensor<6x9xf32>",
    )
    program = shardlog.run(text, propagation="completion").partition(keep_shardings=True)
    lines = program.text().splitlines()
    assert sum("stablehlo.tanh" in line and f"tensor<{held}xf32>" in line for line in lines) == 1
    assert {sent.kind for sent in program.collectives} == {"collective-permute"}
    assert sum("stablehlo.negate" in line and "tensor<3x3xf32>" in line for line in lines) == 1
    x = np.random.default_rng(1).uniform(-1, 1, (6, 9)).astype(np.float32)
    np.testing.assert_allclose(program.compile()(x)[0], -np.tanh(x), rtol=1e-5)

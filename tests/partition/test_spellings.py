"""Random programs of tosa, linalg and tensor, annotated at random in each of the five spellings of MLIR's
sharding dialects: completed and partitioned, they give what one device does."""

from __future__ import annotations

import random
import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import shardlog
from shardlog.executing.execution import alone_on

from ..support.drawing import by_day

GRIDS = ((2, 3), (2, 2, 2), (4,), (2, 2), (3,))
SPELLINGS = ("rfc", "mesh19", "mesh", "shard22", "main")
_REDUCED = {"f32": ("addf", "maximumf", "minimumf"), "i32": ("addi", "maxsi", "andi", "ori", "xori")}
# By name: its arguments, what it gives, and its ops. {n} rows, elements {e}, an op {o} of arith.
PROGRAMS = {
    "elementwise": (
        ("{n}x12x{e}", "{n}x12x{e}"),
        "{n}x12x{e}",
        "tosa.maximum {a}, {b} : ({A}, {B}) -> {R}",
    ),
    "matmul": (
        ("{n}x12x{e}", "12x6x{e}", "{n}x6x{e}"),
        "{n}x6x{e}",
        "linalg.matmul ins({a}, {b} : {A}, {B}) outs({c} : {C}) -> {R}",
    ),
    "reduce": (
        ("{n}x12x{e}", "{n}x{e}"),
        "{n}x{e}",
        "linalg.reduce ins({a} : {A}) outs({b} : {B}) dimensions = [1] (%i: {e}, %j: {e}) "
        "{{ %q = arith.{o} %i, %j : {e} linalg.yield %q : {e} }}",
    ),
    "reduce_max": (("{n}x12x{e}",), "{n}x1x{e}", "tosa.reduce_max {a} {{axis = 1 : i32}} : ({A}) -> {R}"),
    "transpose": (
        ("{n}x12x{e}", "12x{n}x{e}"),
        "12x{n}x{e}",
        "linalg.transpose ins({a} : {A}) outs({b} : {B}) permutation = [1, 0]",
    ),
    "expand": (
        ("{n}x12x{e}",),
        "{n}x3x4x{e}",
        "tensor.expand_shape {a} [[0], [1, 2]] output_shape [{n}, 3, 4] : {A} into {R}",
    ),
    "generic": (
        ("{n}x12x{e}", "12x{n}x{e}", "{n}x12x{e}"),
        "{n}x12x{e}",
        "linalg.generic {{indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j, i)>, "
        'affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}} '
        "ins({a}, {b} : {A}, {B}) outs({c} : {C}) {{\n  ^bb0(%i: {e}, %j: {e}, %k: {e}):\n"
        "    %q = arith.{o} %i, %j : {e}\n    linalg.yield %q : {e}\n  }} -> {R}",
    ),
    "slice": (
        ("{n}x12x{e}",),
        "{n}x4x{e}",
        "tensor.extract_slice {a}[0, 2] [{n}, 4] [1, 2] : {A} to {R}",
    ),
    "concat": (
        ("{n}x12x{e}", "5x12x{e}"),
        "{m}x12x{e}",
        "tosa.concat {a}, {b} {{axis = 0 : i32}} : ({A}, {B}) -> {R}",
    ),
    "batch_matmul": (
        ("2x{n}x12x{e}", "2x12x5x{e}", "2x{n}x5x{e}"),
        "2x{n}x5x{e}",
        "linalg.batch_matmul ins({a}, {b} : {A}, {B}) outs({c} : {C}) -> {R}",
    ),
}


class _Drawn:
    """A random program: its text, and the types of its arguments."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.spelling = SPELLINGS[seed % len(SPELLINGS)]
        self.grid = self.draw.choice(GRIDS)
        self.lines: list[str] = []
        takes, gives, op = PROGRAMS[[*PROGRAMS][seed // len(SPELLINGS) % len(PROGRAMS)]]
        n, element = self.draw.choice([12, 24, 7, 10]), self.draw.choice(["f32", "i32"])
        numbers = {"n": n, "m": n + 5, "e": element, "o": self.draw.choice(_REDUCED[element])}
        self.types = [f"tensor<{each.format(**numbers)}>" for each in takes]
        result = f"tensor<{gives.format(**numbers)}>"
        values = [self.maybe(f"%x{i}", type_, 0.8) for i, type_ in enumerate(self.types)]
        words = dict(zip("abc", values, strict=False)) | dict(zip("ABC", self.types, strict=False))
        self.lines.append(f"%op = {op.format(**words, **numbers, R=result)}")
        returned = self.maybe("%op", result, 0.8)
        returned = self.annotated(returned, result, users=True)
        arguments = ", ".join(f"%x{i}: {type_}" for i, type_ in enumerate(self.types))
        body = "\n".join(f"  {line}" for line in (*self.lines, f"return {returned} : {result}"))
        self.text = f"{self.declared()}\nfunc.func @main({arguments}) -> {result} {{\n{body}\n}}\n"

    def declared(self) -> str:
        """The grid."""
        shape = "x".join(map(str, self.grid))
        if self.spelling == "rfc":
            return f"mesh.cluster @g(rank = {len(self.grid)}, dim_sizes = {list(self.grid)})"
        return f"{'mesh.mesh' if 'mesh' in self.spelling else 'shard.grid'} @g(shape = {shape})"

    def maybe(self, value: str, type_: str, chance: float) -> str:
        """A value, annotated or not."""
        if self.draw.random() > chance:
            return value
        return self.annotated(value, type_, users=self.draw.random() < 0.5)

    def annotated(self, value: str, type_: str, *, users: bool) -> str:
        """An annotation of a value in random parts."""
        axes: list[list[int]] = [[] for _ in range(type_.count("x"))]
        for axis in self.draw.sample(range(len(self.grid)), self.draw.randint(0, len(self.grid))):
            self.draw.choice(axes).append(axis)
        name = f"%v{len(self.lines)}"
        behind = " annotate_for_users" if users else ""
        if self.spelling == "rfc":
            said = f"{{required = true, as_result = {str(not users).lower()}, sharding = {axes}}}"
            self.lines.append(f"{name} = mesh.annotate {value} {said} : {type_} -> {type_}")
        elif self.spelling == "mesh19":
            self.lines.append(f"{name} = mesh.shard {value} to <@g, {axes}>{behind} : {type_}")
        else:
            dialect = self.spelling if self.spelling == "mesh" else "shard"
            sharding = f"{dialect}.sharding @g split_axes = {axes} : !{dialect}.sharding"
            self.lines.append(f"%s{len(self.lines)} = {sharding}")
            self.lines.append(
                f"{name} = {dialect}.shard {value} to %s{len(self.lines) - 1}{behind} : {type_}"
            )
        return name

    def given(self, seed: int) -> list[npt.NDArray[Any]]:
        """Arguments of whole numbers, of which sums are exact."""
        draw, given = np.random.default_rng(seed), []
        for type_ in self.types:
            shape, element = re.fullmatch(r"tensor<((?:\d+x)+)(\w+)>", type_).groups()  # type: ignore[union-attr]
            sizes = [int(size) for size in shape.split("x")[:-1]]
            given.append(draw.integers(-4, 5, sizes).astype({"f32": np.float32, "i32": np.int32}[element]))
        return given


@pytest.mark.parametrize("seed", by_day(range(0, 100, 12), range(100)))
def test_random_programs_give_what_one_device_does(seed: int) -> None:
    import jax

    drawn = _Drawn(seed)
    given = drawn.given(seed)
    for propagation in ("completion", "shardy"):
        session = shardlog.run(drawn.text, propagation=propagation)
        (expected,) = alone_on(session.result, jax.devices()[:1])(given)
        for keep in (True, False):
            (got,) = session.partition(keep_shardings=keep).compile()(*given)
            np.testing.assert_array_equal(got, expected, err_msg=drawn.text)


def test_a_dimension_that_an_op_cuts_is_not_computed_in_parts() -> None:
    """Its result is sharded there: all of it is computed, and cut."""
    text = """
shard.grid @g(shape = 2)
func.func @main(%x: tensor<10x12xf32>) -> tensor<10x4xf32> {
  %0 = tensor.extract_slice %x[0, 2] [10, 4] [1, 2] : tensor<10x12xf32> to tensor<10x4xf32>
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %1 = shard.shard %0 to %s annotate_for_users : tensor<10x4xf32>
  return %1 : tensor<10x4xf32>
}
"""
    program = shardlog.run(text).partition()
    x = np.arange(120, dtype=np.float32).reshape(10, 12)
    np.testing.assert_array_equal(program.compile()(x)[0], x[:, 2:10:2])


def test_collectives_are_named_where_completion_reshards_for_ops_that_nothing_uses() -> None:
    text = """
shard.grid @g(shape = 2)
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %s = shard.sharding @g split_axes = [[0]] : !shard.sharding
  %t = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %0 = shard.shard %x to %s : tensor<4x6xf32>
  %unused = stablehlo.tanh %0 : tensor<4x6xf32>
  %1 = shard.shard %unused to %t : tensor<4x6xf32>
  %2 = shard.shard %0 to %t annotate_for_users : tensor<4x6xf32>
  %3 = stablehlo.negate %2 : tensor<4x6xf32>
  return %3 : tensor<4x6xf32>
}
"""
    session = shardlog.run(text, propagation="completion")
    (sent,) = session.partition(keep_shardings=True).collectives
    assert (sent.kind, sent.value) == ("all-to-all", "%x")


def test_collectives_are_named_where_completion_reshards_copies_of_a_constant() -> None:
    x = "tensor<2x8x8x3xf32>"
    text = f"""
shard.grid @g(shape = 4)
func.func @main(%x: {x}) -> {x} {{
  %s = shard.sharding @g split_axes = [[], [0]] : !shard.sharding
  %0 = shard.shard %x to %s annotate_for_users : {x}
  %z = "tosa.const"() {{values = dense<0.0> : tensor<1xf32>}} : () -> tensor<1xf32>
  %1 = tosa.avg_pool2d %0, %z, %z {{acc_type = f32, kernel = array<i64: 3, 3>, stride = array<i64: 1, 1>,
      pad = array<i64: 1, 1, 1, 1>}} : ({x}, tensor<1xf32>, tensor<1xf32>) -> {x}
  return %1 : {x}
}}
"""
    session = shardlog.run(text, propagation="completion")
    (sent,) = session.partition(keep_shardings=True).collectives
    assert (sent.kind, sent.value) == ("all-gather", "%0")

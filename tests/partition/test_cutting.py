"""What is cut out of rows beside each other is put together of what is cut out of these."""

from __future__ import annotations

from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardlog
from jaxlib.mlir import ir
from shardlog.cost.hlo import hlo_collectives
from shardlog.importers.sources.text import make_context
from shardlog.partition.facts.kinds import Kinds
from shardlog.partition.preparing.calls import unshared
from shardlog.partition.preparing.cutting import cut_before_joining
from shardlog.program.mlir.modules import copy_of, operations_in
from shardlog.tests.support.programs import array

from ..support.drawing import by_day
from ..support.traits import TRAITS
from .running import run_whole


def typed(shape: list[int]) -> str:
    return f"tensor<{'x'.join(map(str, shape))}xf32>"


def chain(seed: int) -> tuple[str, list[Any]]:
    """Random cuts, and rows beside each other, each of what is there before; with arguments."""
    random, lines = Random(seed), list[str]()
    values = [(f"%arg{n}", [random.randint(1, 6), random.randint(1, 6)]) for n in range(2)]
    arguments = [*values]
    for number in range(random.randint(4, 14)):
        name, shape = random.choice(values[-6:])
        if random.random() < 0.5:
            d = random.randrange(2)
            others = [v for v in values if v[1][1 - d] == shape[1 - d]]
            joined = [random.choice(others) for _ in range(random.randint(2, 3))]
            made = [n if e != d else sum(s[d] for _, s in joined) for e, n in enumerate(shape)]
            given = ", ".join(typed(s) for _, s in joined)
            names = ", ".join(each for each, _ in joined)
            line = f"stablehlo.concatenate {names}, dim = {d} : ({given}) -> {typed(made)}"
        else:
            cuts, made = list[str](), list[int]()
            for n in shape:
                low = random.randint(0, max(n - 1, 0))
                low, high = random.choice([(0, n), (low, random.randint(min(low + (seed % 4 > 0), n), n))])
                step = random.choice((1, 1, 1, 1, 2))
                cuts.append(f"{low}:{high}:{step}")
                made.append(-(-(high - low) // step))
            line = f"stablehlo.slice {name} [{', '.join(cuts)}] : ({typed(shape)}) -> {typed(made)}"
        lines.append(f"  %{number} = {line}")
        values.append((f"%{number}", made))
    results = [values[-1], random.choice(values)]
    types, names = (", ".join(each) for each in ([typed(s) for _, s in results], [n for n, _ in results]))
    given = ", ".join(f"{name}: {typed(shape)}" for name, shape in arguments)
    head, end = f"func.func @main({given}) -> ({types}) {{", f"  return {names} : {types}"
    text = "\n".join([head, *lines, end, "}"])
    rng = np.random.default_rng(seed)
    return text, [rng.normal(size=shape).astype(np.float32) for _, shape in arguments]


@pytest.mark.parametrize("seed", range(60))
def test_chains_give_the_same(seed: int) -> None:
    text, arguments = chain(seed)
    with make_context():
        module = ir.Module.parse(text)
        expected = run_whole(copy_of(module), arguments)
        with ir.Location.unknown():
            cut_before_joining(operations_in(module), TRAITS, lambda made, op, whole: None)
        module.operation.verify()
        for got, wanted in zip(run_whole(module, arguments), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_a_cut_that_leaves_out_what_is_beside_is_made_first() -> None:
    with make_context():
        module = ir.Module.parse("""
func.func @main(%x: tensor<8x4xf32>, %y: tensor<2x4xf32>) -> (tensor<8x4xf32>, tensor<3x2xf32>) {
  %0 = stablehlo.concatenate %y, %x, dim = 0 : (tensor<2x4xf32>, tensor<8x4xf32>) -> tensor<10x4xf32>
  %1 = stablehlo.slice %0 [2:10, 0:4] : (tensor<10x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.slice %0 [1:4, 1:3] : (tensor<10x4xf32>) -> tensor<3x2xf32>
  return %1, %2 : tensor<8x4xf32>, tensor<3x2xf32>
}
""")
        with ir.Location.unknown():
            made = unshared(Kinds(module), TRAITS, cut=True).module
        *_, joined, last = operations_in(made)
        assert last.operands[0].arg_number == 0  # the first cut is %x itself
        assert [list(value.type.shape) for value in joined.operands] == [[1, 2], [2, 2]]


AROUND = ["edge", "wrap", "reflect", "symmetric", "constant"]


@pytest.mark.parametrize("mode", by_day(["wrap", "reflect"], AROUND))
def test_stencils_send_rows_whatever_is_around(mode: str) -> None:
    """Nine points, so that edges have corners; twice, in a loop."""

    def step(u: Any, _: None) -> Any:
        p = jnp.pad(u, 1, mode=mode)
        around = [p[i : i + 64, j : j + 128] for i in range(3) for j in range(3)]
        return u + 0.1 * (sum(around) - 9 * u), None

    def steps(u: Any) -> Any:
        return jax.lax.scan(step, u, None, length=2)[0]

    given = array((64, 128), "data", "model")
    result = shardlog.run(jax.jit(steps, out_shardings=given.sharding).lower(given))
    value = np.random.default_rng(0).normal(size=(64, 128)).astype(np.float32)
    expected = jax.jit(steps)(value)
    for keep in (True, False):
        program = result.partition(keep_shardings=keep)
        np.testing.assert_allclose(program.compile()(value), expected, rtol=1e-4, atol=1e-5)
    sent = sum(size for _, size in hlo_collectives(program.compile().hlo).values())
    assert sent < 64 * 128 * 4 / 4  # of which a device has an eighth

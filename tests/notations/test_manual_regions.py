"""Manual regions that no call encloses: which ops are in them, and what the program computes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import shardlog

from ..partition.running import run_partitioned

WHOLE, PART, ROWS = "tensor<8x4xf32>", "tensor<4x4xf32>", "{devices=[2,1]<=[2]}"
ARGUMENTS = f"%x: {WHOLE}, %y: {WHOLE}, %z: tensor<f32>"


def custom(name: str, target: str, value: str, sharding: str, before: str, after: str = "") -> str:
    attributes = f'{{mhlo.sharding = "{sharding}"}} : ({before}) -> {after or before}'
    return f"{name} = stablehlo.custom_call @{target}({value}) {attributes}"


def sharded(name: str, value: str, sharding: str = ROWS, type_: str = WHOLE) -> str:
    return custom(name, "Sharding", value, sharding, type_)


def shard(name: str, value: str) -> str:
    return custom(name, "SPMDFullToShardShape", value, "{manual}", WHOLE, PART)


def full(name: str, value: str) -> str:
    return custom(name, "SPMDShardToFullShape", value, ROWS, PART, WHOLE)


def enter(name: str, value: str) -> str:
    return f"{sharded(f'{name}_s', value)}\n{shard(name, f'{name}_s')}"


def leave(name: str, value: str) -> str:
    return f"{sharded(f'{name}_m', value, '{manual}', PART)}\n{full(name, f'{name}_m')}"


def op(name: str, kind: str, *values: str, type_: str = PART) -> str:
    return f"{name} = stablehlo.{kind} {', '.join(values)} : {type_}"


def call(name: str, value: str) -> str:
    return f"{name} = func.call @twice({value}) : ({PART}) -> {PART}"


def loop(value: str, type_: str, *body: str) -> str:
    lines = "\n".join(body)
    return f"""%begin = stablehlo.constant dense<0> : tensor<i32>
%turns = stablehlo.constant dense<3> : tensor<i32>
%one = stablehlo.constant dense<1> : tensor<i32>
%w:2 = stablehlo.while(%i = %begin, %v = {value}) : tensor<i32>, {type_} cond {{
  %p = stablehlo.compare LT, %i, %turns : (tensor<i32>, tensor<i32>) -> tensor<i1>
  stablehlo.return %p : tensor<i1>
}} do {{
  %j = stablehlo.add %i, %one : tensor<i32>
  {lines}
  stablehlo.return %j, %u : tensor<i32>, {type_}
}}"""


def module(*lines: str, arguments: str = ARGUMENTS, result: str = "%r") -> str:
    body = "\n".join(lines)
    doubled = op("%0", "add", "%a", "%a")
    twice = f"func.func private @twice(%a: {PART}) -> {PART} {{\n{doubled}\nreturn %0 : {PART}\n}}"
    return f"func.func @main({arguments}) -> {WHOLE} {{\n{body}\nreturn {result} : {WHOLE}\n}}\n{twice}"


Computed = Callable[[Any, Any, Any], Any]
CASES: dict[str, tuple[str, int, Computed]] = {  # a module, its manual computations, and what it computes
    "two in a row": (
        module(
            enter("%a", "%x"),
            op("%b", "tanh", "%a"),
            leave("%c", "%b"),
            op("%d", "exponential", "%c", type_=WHOLE),
            enter("%e", "%d"),
            op("%f", "negate", "%e"),
            leave("%r", "%f"),
        ),
        2,
        lambda x, y, z: -np.exp(np.tanh(x)),
    ),
    "two at once": (
        module(
            enter("%a", "%x"),
            enter("%e", "%y"),
            op("%b", "tanh", "%a"),
            op("%f", "negate", "%e"),
            leave("%c", "%b"),
            leave("%g", "%f"),
            op("%r", "add", "%c", "%g", type_=WHOLE),
        ),
        2,
        lambda x, y, z: np.tanh(x) - y,
    ),
    "several values enter and leave": (
        module(
            enter("%a", "%x"),
            enter("%e", "%y"),
            op("%b", "multiply", "%a", "%e"),
            leave("%c", "%b"),
            op("%d", "add", "%b", "%e"),
            leave("%g", "%d"),
            op("%r", "subtract", "%c", "%g", type_=WHOLE),
        ),
        1,
        lambda x, y, z: x * y - (x * y + y),
    ),
    "forks": (
        module(
            sharded("%s", "%x"),
            shard("%a", "%s"),
            shard("%e", "%s"),
            op("%b", "add", "%a", "%e"),
            sharded("%m", "%b", "{manual}", PART),
            full("%c", "%m"),
            full("%d", "%m"),
            op("%r", "multiply", "%c", "%d", type_=WHOLE),
        ),
        1,
        lambda x, y, z: (2 * x) ** 2,
    ),
    "ops outside between those inside": (
        module(
            enter("%a", "%x"),
            op("%b", "tanh", "%a"),
            leave("%c", "%b"),
            op("%d", "exponential", "%c", type_=WHOLE),
            op("%e", "negate", "%a"),
            leave("%f", "%e"),
            op("%r", "add", "%d", "%f", type_=WHOLE),
        ),
        1,
        lambda x, y, z: np.exp(np.tanh(x)) - x,
    ),
    "constants and scalars from outside": (
        module(
            f"%two = stablehlo.constant dense<2.0> : {PART}",
            f"%zs = stablehlo.broadcast_in_dim %z, dims = [] : (tensor<f32>) -> {PART}",
            enter("%a", "%x"),
            op("%b", "multiply", "%a", "%two"),
            op("%c", "add", "%b", "%zs"),
            leave("%r", "%c"),
        ),
        1,
        lambda x, y, z: 2 * x + z,
    ),
    "of constants alone": (
        module(f"%two = stablehlo.constant dense<2.0> : {PART}", op("%b", "tanh", "%two"), leave("%r", "%b")),
        1,
        lambda x, y, z: np.tanh(np.full((8, 4), 2.0)),
    ),
    "without constraints": (
        module(
            shard("%a", "%x"),
            op("%b", "tanh", "%a"),
            full("%r", "%b"),
            arguments=ARGUMENTS.replace(f"%x: {WHOLE}", f'%x: {WHOLE} {{mhlo.sharding = "{ROWS}"}}'),
        ),
        1,
        lambda x, y, z: np.tanh(x),
    ),
    "no op": (module(enter("%a", "%x"), leave("%r", "%a")), 1, lambda x, y, z: x),
    "a call": (module(enter("%a", "%x"), call("%b", "%a"), leave("%r", "%b")), 1, lambda x, y, z: 2 * x),
    "a call whose result leaves twice": (
        module(
            enter("%a", "%x"),
            call("%b", "%a"),
            leave("%c", "%b"),
            leave("%d", "%b"),
            op("%r", "multiply", "%c", "%d", type_=WHOLE),
        ),
        1,
        lambda x, y, z: (2 * x) ** 2,
    ),
    "calls among others": (
        module(
            enter("%a", "%x"), call("%b", "%a"), op("%c", "tanh", "%b"), call("%d", "%c"), leave("%r", "%d")
        ),
        1,
        lambda x, y, z: 2 * np.tanh(2 * x),
    ),
    "a loop inside": (
        module(enter("%a", "%x"), loop("%a", PART, op("%u", "add", "%v", "%a")), leave("%r", "%w#1")),
        1,
        lambda x, y, z: 4 * x,
    ),
    "inside of a loop": (
        module(
            loop("%x", WHOLE, enter("%a", "%v"), op("%b", "tanh", "%a"), leave("%u", "%b")), result="%w#1"
        ),
        1,
        lambda x, y, z: np.tanh(np.tanh(np.tanh(x))),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_regions(name: str) -> None:
    text, count, computed = CASES[name]
    result = shardlog.run(text)
    assert result.text().count("sdy.manual_computation") == count
    assert "SPMD" not in result.text()
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype(np.float32) for shape in ((8, 4), (8, 4), ())]
    (found,) = run_partitioned(result, result.partition(form="replica"), arrays)
    np.testing.assert_allclose(found, computed(*arrays), rtol=1e-5, atol=1e-5)


def test_a_region_in_a_region_of_other_axes() -> None:
    """The second dimension is free in the outer one, and manual in the inner one."""
    inner = "tensor<4x2xf32>"
    opened = '", backend_config = "unspecified_dims=[1]'
    outside = "{devices=[2,1,2]<=[4] last_tile_dim_replicate}" + opened
    free = "{devices=[1,1,2,2]<=[4] last_tile_dims={manual, replicated}}" + opened
    columns = "{devices=[1,2,2]<=[2,2]T(1,0) last_tile_dims={manual}}"
    text = module(
        sharded("%0", "%x", outside),
        custom("%1", "SPMDFullToShardShape", "%0", free, WHOLE, PART),
        op("%2", "tanh", "%1"),
        sharded("%3", "%2", columns, PART),
        custom("%4", "SPMDFullToShardShape", "%3", "{manual}", PART, inner),
        op("%5", "exponential", "%4", type_=inner),
        sharded("%6", "%5", "{manual}", inner),
        custom("%7", "SPMDShardToFullShape", "%6", columns, inner, PART),
        op("%8", "negate", "%7"),
        sharded("%9", "%8", free, PART),
        custom("%r", "SPMDShardToFullShape", "%9", outside, PART, WHOLE),
    )
    result = shardlog.run(text, mesh="a=2,b=2")
    assert result.text().count('manual_axes={"a"}') == result.text().count('manual_axes={"b"}') == 1
    x = np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32)
    arrays: list[Any] = [x, x, np.float32(0)]
    (found,) = run_partitioned(result, result.partition(form="replica"), arrays)
    np.testing.assert_allclose(found, -np.exp(np.tanh(x)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("lines", "message", "line"),
    [
        (
            (
                *(enter("%a", "%x"), op("%b", "tanh", "%a"), leave("%c", "%b")),
                *(enter("%d", "%c"), op("%e", "add", "%d", "%a"), leave("%r", "%e")),
            ),
            "a value leaves a manual region and comes back into it",
            8,
        ),
        (
            (full("%r", "%x").replace(PART, WHOLE),),
            "@SPMDShardToFullShape of a value that is in no manual region",
            2,
        ),
        (
            (
                enter("%a", "%x"),
                f"%k = stablehlo.slice %y [0:4, 0:4] : ({WHOLE}) -> {PART}",
                op("%b", "add", "%a", "%k"),
                leave("%r", "%b"),
            ),
            "stablehlo.add is in a manual region, and an operand of it is not",
            5,
        ),
        (
            (shard("%a", "%x"), leave("%r", "%a")),
            "the operand of @SPMDFullToShardShape has no sharding",
            2,
        ),
    ],
)
def test_what_is_no_region(lines: tuple[str, ...], message: str, line: int) -> None:
    with pytest.raises(shardlog.ShardlogError, match=message) as error:
        shardlog.run(module(*lines))
    assert error.value.where.startswith(f"<text>:{line}")


ONE_REGION = """
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @Sharding(%arg0) {mhlo.sharding = "{devices=[2]<=[2]}"}
    : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @SPMDFullToShardShape(%0) {mhlo.sharding = "{manual}"}
    : (tensor<8xf32>) -> tensor<4xf32>
  %2 = stablehlo.tanh %1 : tensor<4xf32>
  %3 = stablehlo.custom_call @SPMDShardToFullShape(%2) {mhlo.sharding = "{devices=[2]<=[2]}"}
    : (tensor<4xf32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}
"""


@pytest.mark.parametrize("target", ["Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape"])
def test_custom_calls_of_more_than_one_value(target: str) -> None:
    """What used a second result of them ended the process when they were gone."""
    assert "sdy.manual_computation" in shardlog.run(ONE_REGION).text()
    (call,) = re.findall(rf"  (%\d) = (.*@{target}\((%\w+)\).*\n    : \((.*)\) -> (.*)\n)", ONE_REGION)
    name, rest, operand, taken, given = call
    several = f"{name}:2 = {rest.replace(f'-> {given}', f'-> ({given}, {given})')}"
    several += f"  %second = stablehlo.tanh {name}#1 : {given}\n"
    text = ONE_REGION.replace(f"{name} = {rest}", several)
    before, after = text.split(several)
    none = rest.replace(f"({operand})", "()").replace(f"({taken})", "()")
    for damaged, count in (
        (f"{before}{several}{after.replace(name, f'{name}#0')}", "1 operands and 2 results"),
        (ONE_REGION.replace(rest, none), "0 operands and 1 results"),
    ):
        with pytest.raises(shardlog.ShardlogError, match=f"@{target} has {count}"):
            shardlog.run(damaged)

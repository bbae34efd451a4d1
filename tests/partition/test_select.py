"""The largest elements of rows that are in parts: they are among the largest of each part."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import shardlog
from ml_dtypes import bfloat16

from .running import run_partitioned

MODULE = """sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%x: tensor<4xNxTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{BATCH}, {ROW}]>})
    -> (tensor<4xKxTYPE> {sdy.sharding = #sdy.sharding<@mesh, [{BATCH}, {}]>},
        tensor<4xKxi32> {sdy.sharding = #sdy.sharding<@mesh, [{BATCH}, {}]>}) {
  %0:2 = chlo.top_k(%x, k = NUMBER) : tensor<4xNxTYPE> -> (tensor<4xKxTYPE>, tensor<4xKxi32>)
  return %0#0, %0#1 : tensor<4xKxTYPE>, tensor<4xKxi32>
}
"""
TYPES: dict[str, Any] = {"f32": np.float32, "bf16": bfloat16, "i32": np.int32, "ui8": np.uint8}


def module(size: int, number: int, type_: str = "f32", batch: str = "", row: str = '"b"') -> str:
    text = MODULE.replace("xNx", f"x{size}x").replace("xKx", f"x{number}x").replace("NUMBER", str(number))
    return text.replace("TYPE", type_).replace("BATCH", batch).replace("ROW", row)


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize(("batch", "row"), [("", '"b"'), ('"a"', '"b"'), ("", '"b", "a"'), ('"b"', '"a"')])
def test_each_device_selects_of_its_part(type_: str, batch: str, row: str) -> None:
    x: Any = np.random.default_rng(0).integers(0, 50, (4, 512)).astype(TYPES[type_])  # with many equal ones
    if type_ == "f32":
        x[0, ::5], x[1, 3:9], x[2] = np.inf, np.nan, -np.inf
    expected = [np.asarray(value) for value in jax.lax.top_k(x, 4)]
    result = shardlog.run(module(512, 4, type_, batch, row))
    for keep in (True, False):
        program = result.partition("replica", keep_shardings=keep)
        for got, wanted in zip(run_partitioned(result, program, [x]), expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
    assert {each.kind for each in program.collectives} == {"all-gather"}
    parts = 8 if "," in row else 2 if "a" in row else 4
    rows = 4 if not batch else 2 if "a" in batch else 1
    assert sum(each.total for each in program.collectives) == (parts - 1) * rows * 4 * (x.itemsize + 4)


@pytest.mark.parametrize(("size", "number"), [(64, 20), (62, 4)], ids=["few in a part", "parts of two sizes"])
def test_parts_that_do_not_have_so_many_are_gathered(size: int, number: int) -> None:
    x = np.random.default_rng(0).normal(size=(4, size)).astype(np.float32)
    result = shardlog.run(module(size, number))
    got = run_partitioned(result, result.partition("replica"), [x])
    for value, wanted in zip(got, jax.lax.top_k(x, number), strict=True):
        np.testing.assert_array_equal(value, wanted)

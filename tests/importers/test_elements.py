"""The sizes of tensors in bytes."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir
from shardlog.importers.sources.text import make_context
from shardlog.program.elements import size_of


@pytest.mark.parametrize(
    ("type_", "size"),
    [
        ("tensor<4x8xf32>", 128),
        ("tensor<f64>", 8),
        ("tensor<8xbf16>", 16),
        ("tensor<8xtf32>", 32),
        ("tensor<3xi1>", 3),
        ("tensor<3xui4>", 3),
        ("tensor<3xi2>", 3),
        ("tensor<3xf8E4M3FN>", 3),
        ("tensor<3xf4E2M1FN>", 3),
        ("tensor<2x3xcomplex<f32>>", 48),
        ("tensor<2xcomplex<f64>>", 32),
        ("tensor<2xindex>", 16),
        ("tensor<0x4xf32>", 0),
        ("tensor<4x!quant.uniform<i8:f32, 5.000000e-01>>", 4),
        ("tensor<4xf32, #stablehlo.bounds<?>>", 16),
        ("tensor<?x4xf32>", 0),
        ("tensor<*xf32>", 0),
        ("!stablehlo.token", 0),
    ],
)
def test_sizes(type_: str, size: int) -> None:
    assert size_of(type_) == size
    if "quant" not in type_ and "#" not in type_:
        with make_context():
            assert str(ir.Type.parse(type_)) == type_

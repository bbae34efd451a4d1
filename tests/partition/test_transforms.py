"""Fourier transforms of operands that are gathered first, and triangular systems."""

from __future__ import annotations

import numpy as np
import pytest
import shardlog

from .running import run_partitioned

ROWS = """
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func @main(%x: tensor<16x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>})
    -> (tensor<16x24xcomplex<f32>> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = stablehlo.convert %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : (tensor<16x24xf32>) -> tensor<16x24xcomplex<f32>>
  %1 = stablehlo.fft %0, type = FFT, length = LENGTH {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : (tensor<16x24xcomplex<f32>>) -> tensor<16x24xcomplex<f32>>
  %2 = stablehlo.abs %1 : (tensor<16x24xcomplex<f32>>) -> tensor<16x24xf32>
  %3 = stablehlo.convert %2 : (tensor<16x24xf32>) -> tensor<16x24xcomplex<f32>>
  %4 = stablehlo.multiply %1, %3 : tensor<16x24xcomplex<f32>>
  %5 = stablehlo.fft %4, type = FFT, length = LENGTH {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : (tensor<16x24xcomplex<f32>>) -> tensor<16x24xcomplex<f32>>
  return %5 : tensor<16x24xcomplex<f32>>
}
"""  # noqa: E501


@pytest.mark.parametrize(("length", "dims"), [("[24]", (1,)), ("[16, 24]", (0, 1))], ids=["rows", "planes"])
def test_what_xla_would_gather_in_another_order_is_transformed(length: str, dims: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).standard_normal((16, 24)).astype(np.float32)
    y = np.fft.fftn(x, axes=dims)
    wanted = np.fft.fftn(y * np.abs(y), axes=dims)
    program = shardlog.run(ROWS.replace("LENGTH", length)).partition(keep_shardings=True)
    (got,) = program.compile()(x)
    assert np.allclose(got, wanted, rtol=1e-4, atol=1e-4 * np.abs(wanted).max())


SOLVE = """
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%a: tensor<2x3x3xf32>, %b: tensor<2xSHAPExf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, DIMS]>})
    -> (tensor<2xSHAPExf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, DIMS]>}) {
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = LEFT, lower = true, unit_diagonal = false,
    transpose_a = #stablehlo<transpose HOW>}> : (tensor<2x3x3xf32>, tensor<2xSHAPExf32>) -> tensor<2xSHAPExf32>
  return %0 : tensor<2xSHAPExf32>
}
"""  # noqa: E501


@pytest.mark.parametrize("how", ["NO_TRANSPOSE", "TRANSPOSE"])
@pytest.mark.parametrize("left", [True, False])
def test_columns_of_right_hand_sides_are_solved_where_they_are(left: bool, how: str) -> None:
    shape, dims = ((3, 8), '{}, {"b"}') if left else ((8, 3), '{"b"}, {}')
    text = SOLVE.replace("SHAPE", "x".join(map(str, shape))).replace("DIMS", dims)
    result = shardlog.run(text.replace("LEFT", str(left).lower()).replace("HOW", how))
    program = result.partition("replica", keep_shardings=True)
    assert not program.collectives
    rng = np.random.default_rng(0)
    a = np.tril(rng.normal(size=(2, 3, 3))).astype(np.float32) + 3 * np.eye(3, dtype=np.float32)
    x = rng.normal(size=(2, *shape)).astype(np.float32)
    acting = a if how == "NO_TRANSPOSE" else a.swapaxes(1, 2)
    (got,) = run_partitioned(result, program, [a, acting @ x if left else x @ acting])
    np.testing.assert_allclose(got, x, rtol=1e-3, atol=1e-5)

"""Fourier transforms of what is gathered first."""

from __future__ import annotations

import numpy as np
import pytest
import shardlog

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

"""Products whose transposes stand behind collectives are computed the other way around; what is summed is
negated behind its collective."""

from __future__ import annotations

import numpy as np
import pytest
import shardlog
from shardlog.program.mlir.modules import ops_in

HEAD = '#b = #sdy.sharding<@mesh, [{"x"}, {}]>\nsdy.mesh @mesh = <["x"=2, "y"=2]>\n'
# The gradient of a weight, as JAX writes it: summed over x, and one part of it for each y.
GRADIENT = """
func.func @main(%x: tensor<8x6xf32> {sdy.sharding = #b}, %g: tensor<8x4xf32> {sdy.sharding = #b})
    -> (tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [WANTED]>}) {
  %0 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0], precision = [DEFAULT, HIGHEST]
      : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}
"""


@pytest.mark.parametrize(
    ("wanted", "kind"),
    [("{}, {}", "all_reduce"), ('{"x"}, {}', "reduce_scatter"), ('{}, {"x"}', "reduce_scatter")],
)
def test_the_gradient_of_a_weight_is_not_transposed(wanted: str, kind: str) -> None:
    program = shardlog.run(HEAD + GRADIENT.replace("WANTED", wanted)).partition()
    with program.module.context:
        ops = {op.operation.name: str(op) for op in ops_in(program.module)}
    assert f"stablehlo.{kind}" in ops and "stablehlo.transpose" not in ops
    assert "precision = [HIGHEST, DEFAULT]" in ops["stablehlo.dot_general"]
    x, g = np.arange(48.0).reshape(8, 6) % 7, np.arange(32.0).reshape(8, 4) % 5
    (got,) = program.compile()(x.astype(np.float32), g.astype(np.float32))
    np.testing.assert_array_equal(got, x.T @ g)


# Turned once before it is gathered and once behind that.
TWICE = """
func.func @main(%x: tensor<8x6xf32> {sdy.sharding = #b}, %g: tensor<8x4xf32> {sdy.sharding = #b})
    -> (tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0]
      : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{"x"}, {}]> : tensor<6x4xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{}, {}]> : tensor<6x4xf32>
  %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  return %4 : tensor<4x6xf32>
}
"""


@pytest.mark.parametrize("keep", [True, False])
def test_what_is_turned_twice_is_not_transposed(keep: bool) -> None:
    program = shardlog.run(HEAD + TWICE).partition(keep_shardings=keep)
    with program.module.context:
        names = [op.operation.name for op in ops_in(program.module)]
    assert "stablehlo.all_gather" in names and "stablehlo.transpose" not in names
    x, g = np.arange(48.0).reshape(8, 6) % 7, np.arange(32.0).reshape(8, 4) % 5
    (got,) = program.compile()(x.astype(np.float32), g.astype(np.float32))
    np.testing.assert_array_equal(got, g.T @ x)


# With a batch and several dimensions of each operand, and a gather behind the sum.
LARGE = """
func.func @main(%a: tensor<4x8x2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}, {}]>},
                %b: tensor<4x8x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>})
    -> (tensor<ORDERxf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [1] x [1]
      : (tensor<4x8x2x3xf32>, tensor<4x8x5xf32>) -> tensor<4x2x3x5xf32>
  %1 = stablehlo.transpose %0, dims = [DIMS] : (tensor<4x2x3x5xf32>) -> tensor<ORDERxf32>
  return %1 : tensor<ORDERxf32>
}
"""


@pytest.mark.parametrize(("dims", "left"), [((0, 3, 1, 2), 0), ((0, 1, 3, 2), 1)])
def test_only_what_another_order_of_operands_gives_is_no_transpose(dims: tuple[int, ...], left: int) -> None:
    order = "x".join(str((4, 2, 3, 5)[d]) for d in dims)
    text = HEAD + LARGE.replace("ORDER", order).replace("DIMS", ", ".join(map(str, dims)))
    program = shardlog.run(text).partition()
    with program.module.context:
        transposes = [op for op in ops_in(program.module) if op.operation.name == "stablehlo.transpose"]
    assert len(transposes) == left
    a, b = np.arange(192.0).reshape(4, 8, 2, 3) % 7, np.arange(160.0).reshape(4, 8, 5) % 5
    wanted = np.einsum("ncij,nck->nijk", a, b).transpose(dims)
    (got,) = program.compile()(a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(got, wanted)


# The gradient of a mean that was subtracted, and of a scale, both summed over the rows.
SIGNS = """
func.func @main(%x: tensor<8x6xf32> {sdy.sharding = #b}) -> tensor<6xf32> {
  %zero = stablehlo.constant dense<START> : tensor<f32>
  %0 = stablehlo.negate %x : tensor<8x6xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0]
      : (tensor<8x6xf32>, tensor<f32>) -> tensor<6xf32>
  %2 = stablehlo.exponential %1 : tensor<6xf32>
  return %2 : tensor<6xf32>
}
"""


@pytest.mark.parametrize(("start", "last"), [("0.0", "negate"), ("1.0", "all_reduce")])
def test_a_sum_is_negated_behind_its_collective(start: str, last: str) -> None:
    program = shardlog.run(HEAD + SIGNS.replace("START", start)).partition()
    with program.module.context:
        (exponential,) = (o for o in ops_in(program.module) if o.operation.name == "stablehlo.exponential")
        assert exponential.operands[0].owner.operation.name == f"stablehlo.{last}"
    x = np.arange(48.0, dtype=np.float32).reshape(8, 6) % 3
    (got,) = program.compile()(x)
    np.testing.assert_allclose(got, np.exp(float(start) - x.sum(0)), rtol=1e-6)

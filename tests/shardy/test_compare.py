"""The comparison of modules sees what it must see."""

from __future__ import annotations

from ..support.compare import differences

MODULE = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}]>]>} : tensor<4xf32>
  %1 = stablehlo.negate %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
"""


def test_names_of_values_do_not_matter() -> None:
    assert differences(MODULE, MODULE.replace("%x", "%left")) == []


def test_another_sharding() -> None:
    (difference,) = differences(MODULE.replace('{"a"}', "{}"), MODULE)
    assert "sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>, expected" in difference


def test_another_operand() -> None:
    (difference,) = differences(MODULE.replace("negate %0", "negate %x"), MODULE)
    assert "operands ['argument 0 of module / 1 func.func @main']" in difference


def test_a_missing_op() -> None:
    (difference,) = differences(MODULE.replace("%1 = stablehlo.negate %0", "%1 = stablehlo.abs %0"), MODULE)
    assert "expected %1 = stablehlo.negate" in difference


def test_an_argument_without_its_sharding() -> None:
    sharded = MODULE.replace(
        "%y: tensor<4xf32>", "%y: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}"
    )
    (difference,) = differences(MODULE, sharded)
    assert "argument 1 = None, expected {sdy.sharding" in difference

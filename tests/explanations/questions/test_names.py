"""Names that are no tensor's own: of constants that were copied, ops with several results, and dead ops."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog
from shardlog.explanations.questions.values import Values

MODULE = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
#rows = #sdy.sharding<@mesh, [{"data"}, {}]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #rows}, %y: tensor<8x16xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
  %cst = stablehlo.constant dense<1.0> : tensor<8x16xf32>
  %0 = stablehlo.add %x, %cst : tensor<8x16xf32>
  %1 = stablehlo.multiply %y, %cst : tensor<8x16xf32>
  %2 = stablehlo.negate %y : tensor<8x16xf32>
  %3:2 = stablehlo.optimization_barrier %0, %1 : tensor<8x16xf32>, tensor<8x16xf32>
  return %3#0, %3#1, %0 : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}
func.func private @unused(%z: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.sine %z : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


@pytest.fixture(params=["in memory", "saved"])
def values(request: pytest.FixtureRequest, tmp_path: Path) -> Values:
    (tmp_path / "m.mlir").write_text(MODULE)
    result = shardlog.run(tmp_path / "m.mlir")
    if request.param == "in memory":
        return Values(result.record)
    result.save(tmp_path / "m.run")
    return Values(shardlog.open(tmp_path / "m.run").record)


def test_a_constant_stands_for_its_copies(values: Values) -> None:
    assert [value.name for value in values.find("%cst")] == ["%cst'1", "%cst'2"]
    _, one, other = values.note("%cst").splitlines()
    assert one.startswith("  %cst'1 [{data}, {}] for stablehlo.add at ")
    assert other.startswith("  %cst'2 [{}, {}] for stablehlo.multiply at ")
    assert values.note("%0") == ""


def test_an_op_stands_for_its_results(values: Values) -> None:
    assert [value.name for value in values.find("%3")] == ["%3#0", "%3#1"]


@pytest.mark.parametrize(
    ("name", "why"),
    [("%2", "no result depends on it, so it is dead"), ("@unused:%0", "nothing calls @unused")],
)
def test_what_is_not_there(name: str, why: str) -> None:
    with pytest.raises(shardlog.ShardlogError, match=f"{name} has no sharding: {why}"):
        shardlog.run(MODULE).why(name)

"""Shardings in JAX's notation, wherever a sharding is given as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import shardlog
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.importers.specs import dimensions

MODULE = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(%x: tensor<8x16xf32> loc("batch['x']"), %w: tensor<16x32xf32>) -> tensor<8x32xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("P(None, 'data')", '[{}, {"data"}]'),
        ("P('data')", '[{"data"}, {}]'),
        ("P()", "[{}, {}]"),
        ("PartitionSpec(('data', 'model'), None)", '[{"data", "model"}, {}]'),
        ('jax.sharding.PartitionSpec("data", ("model",))', '[{"data"}, {"model"}]'),
        ("P( (), P.UNCONSTRAINED )", "[{}, {?}]"),
        ("P('data', unreduced={'model'})", '[{"data"}, {}], unreduced={"model"}'),
        ("P(unreduced={'model', 'data'}, unreduced_kind=sum)", '[{}, {}], unreduced={"data", "model"}'),
        ("P('data', reduced={'model'})", '[{"data"}, {}]'),
    ],
)
def test_it_is_what_it_is_in_shardy(text: str, said: str) -> None:
    assert dimensions(text, "", 2) == said
    both = [
        shardlog.run(MODULE, annotate=f"batch['x']={each}", shardy="0.10").text() for each in (text, said)
    ]
    assert both[0] == both[1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("P('data', None, None)", "3 entries for 2 dimensions"),
        ("P(1)", "not a PartitionSpec"),
        ("P('data'", "not a PartitionSpec"),
        ("P('data').x", "not a PartitionSpec"),
        ("P(*['data'])", "not a PartitionSpec"),
        ("P(data)", "not a PartitionSpec"),
        ("P(exit())", "not a PartitionSpec"),
        ("P('data', partitions='x')", "not a PartitionSpec"),
        ("P(" + "(" * 400, "not a PartitionSpec"),
        ("P('dat')", "unknown axis name"),
        ("P('data', unreduced={'model'}, unreduced_kind='x')", "not a PartitionSpec"),
        ("P('data', unreduced={'model'}, unreduced_kind=UnreducedKind.mul)", "has no reduction mul"),
    ],
)
def test_what_is_none_is_refused(text: str, message: str) -> None:
    with pytest.raises(ShardlogError) as error:
        shardlog.run(MODULE, annotate=f"%arg0={text}")
    assert message in str(error.value)
    assert error.value.where.startswith("--annotate '%arg0=P(")


def test_pins_expectations_and_pictures_take_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(MODULE)
    result: Any = shardlog.run("m.mlir", annotate="%arg0=P('data')")
    pins = "%0=P('data')", '%0=[{"data"}, {}]'
    one, other = (result.partition(pins=pin).text() for pin in pins)
    assert one == other
    Path("shardings.toml").write_text(""""batch['x']" = "P('data')"\n"%0" = "P('model')"\n""")
    assert main(["expect", "m.mlir", "shardings.toml", "--annotate", "%arg0=P('data')"]) == 1
    Path("shardings.toml").write_text(""""batch['x']" = "P('data')"\n"%0" = "P('data')"\n""")
    assert main(["expect", "m.mlir", "shardings.toml", "--annotate", "%arg0=P('data')"]) == 0
    mesh = "data=2,model=4"
    pictures = (shardlog.visualize(text, (8, 32), mesh=mesh) for text in ("P('data')", '[{"data"}, {}]'))
    assert len({str(picture) for picture in pictures}) == 1

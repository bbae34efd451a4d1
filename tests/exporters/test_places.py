"""Places of ops: read from locations, with or without their texts."""

from __future__ import annotations

from itertools import product

import pytest
from jaxlib.mlir import ir
from shardlog.exporters.relations import OpPlace
from shardlog.importers.sources.text import Text, parse_module
from shardlog.program.mlir.origins import Frame, frame, origin

PLAIN = (
    "",
    'loc("model.py":9:2)',
    'loc("a b.py":9:2)',
    'loc("":0:0)',
    'loc("tab\t.py":9:2)',
    'loc("model.py":3:4 to 5:6)',
    'loc("model.py":3:4 to :6)',
    'loc("layer"("model.py":3:4))',
    'loc(callsite("f"("lib.py":3:1) at "g"("model.py":9:2)))',
    "loc(unknown)",
)
ESCAPED = ('loc("a\\22b.py":1:1)', 'loc("a\\\\b.py":1:1)', 'loc("caf\\C3\\A9.py":1:1)', 'loc("\\FF.py":1:1)')
MODULE = """\
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {{
  %0 = stablehlo.negate %a : tensor<2xf32> {}
  return %0 : tensor<2xf32>
}}
"""


@pytest.mark.parametrize(
    ("location", "name"),
    [
        *product(PLAIN, ("model.mlir", 'a"b.mlir', "a\\b.mlir", "caf\u00e9.mlir")),
        *product((*ESCAPED, 'loc("caf\u00e9.py":1:1)'), ("model.mlir",)),
    ],
)
def test_places_are_those_of_texts(location: str, name: str) -> None:
    text = Text(MODULE.format(location).encode(), name)
    module = parse_module(text)
    op = module.body.operations[0].regions[0].blocks[0].operations[0]
    written = text.location(op)
    for place in (OpPlace(text.key_of(op.location), text) for _ in range(2)):
        assert (place.origin, place.frame) == (origin(written), frame(written))
        assert place.location == written
        place.let_go()
        assert (place.location, place.origin, place.key) == (written, origin(written), None)


def test_most_frames_are_read_without_a_text() -> None:
    text = Text(MODULE.format("").encode(), "model.mlir")
    module = parse_module(text)
    op = module.body.operations[0].regions[0].blocks[0].operations[0]
    assert text.key_of(op.location) == Frame("", "model.mlir", 2, 8)
    assert isinstance(Text("\u00e9".encode(), "model.mlir").key_of(op.location), ir.Attribute)

"""Reading the text of a module."""

from __future__ import annotations

from typing import Any

import pytest
import shardlog
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import stablehlo
from shardlog.errors import ShardlogError
from shardlog.importers.sources.text import Text, make_context, parse_module

PROGRAM = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {?}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""  # noqa: E501
GSPMD = """
func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{devices=[2,1]<=[2]}"}) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (PROGRAM, {}),
        (PROGRAM, {"mesh": "a=4,b=2"}),
        (PROGRAM, {"annotate": {"%1": '[{}, {"b"}]'}}),
        (GSPMD, {"mesh": "a=2"}),
        (GSPMD, {}),
    ],
)
def test_a_module_in_memory_is_read_as_its_text_and_stays_as_it_is(
    text: str, options: dict[str, Any]
) -> None:
    with make_context():
        module = ir.Module.parse(text)
    before, expected = str(module), shardlog.run(text, **options).text()
    assert shardlog.run(module, **options).text() == expected != before
    assert str(module) == before


def test_a_module_of_a_context_without_sdy() -> None:
    registry, context = ir.DialectRegistry(), ir.Context()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    stablehlo.register_dialect(context)
    with context:
        module = ir.Module.parse(
            "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }"
        )
    options: Any = {"mesh": "a=2", "annotate": {"%arg0": '[{"a"}]'}}
    assert shardlog.run(module, **options).text() == shardlog.run(str(module), **options).text()
    assert not context.is_registered_operation("sdy.mesh")


def test_a_module_in_memory_that_does_not_verify() -> None:
    with make_context():
        module = ir.Module.parse(PROGRAM)
    tanh = module.body.operations[1].regions[0].blocks[0].operations[0]
    with module.context:
        tanh.attributes["sdy.sharding"] = ir.UnitAttr.get()
    with pytest.raises(ShardlogError, match="should have a sharding attribute"):
        shardlog.run(module)


def test_a_module_that_memory_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(data: bytes) -> ir.Module:
        raise MemoryError

    monkeypatch.setattr(ir.Module, "parse", parse)
    with pytest.raises(ShardlogError, match="not enough memory for the module"):
        parse_module(Text(b"module {}", "m.mlir"))

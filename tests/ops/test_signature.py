"""The facts that describe an op."""

from __future__ import annotations

from jaxlib.mlir import ir
from shardlog.program.signature import Facts, describe

from ..support import oracle
from .rules import around, walk


def facts(op: str, arguments: str = "%a: tensor<8x4xf32>", last: bool = True) -> Facts:
    """The facts of the last (or the first) op of a function body."""
    with oracle.context():
        module = ir.Module.parse(f"func.func @main({arguments}) {{\n{op}\nreturn }}")
        ops = [o for o in walk(module.operation) if o.name != "func.return"]
        return describe(ops[-1] if last else ops[1], False, around())


def test_slots_and_attributes() -> None:
    assert facts("%r = stablehlo.slice %a [0:8, 1:3] : (tensor<8x4xf32>) -> tensor<8x2xf32>") == {
        "op": [("stablehlo.slice",)],
        "slot": [(0, "operand", 0, 2), (1, "result", 0, 2)],
        "dim": [(0, 0, 8), (0, 1, 4), (1, 0, 8), (1, 1, 2)],
        "element": [(0, "f32", 32), (1, "f32", 32)],
        "attribute_size": [("limit_indices", 2), ("start_indices", 2), ("strides", 2)],
        "attribute_item": [
            ("limit_indices", 0, 8),
            ("limit_indices", 1, 3),
            ("start_indices", 0, 0),
            ("start_indices", 1, 1),
            ("strides", 0, 1),
            ("strides", 1, 1),
        ],
    }


def test_structured_attributes_are_flattened() -> None:
    op = "%r = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1]"
    said = facts(f"{op} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>")
    assert ("dot_dimension_numbers.lhs_contracting_dimensions", 0, 1) in said["attribute_item"]
    assert ("dot_dimension_numbers.lhs_batching_dimensions", 0) in said["attribute_size"]


def test_enums_flags_and_frontend_attributes() -> None:
    op = "%r = stablehlo.custom_call @f(%a) {api_version = 4 : i32, has_side_effect = true,"
    op += " backend_config = {k = [3, 4]},"
    said = facts(f'{op} mhlo.frontend_attributes = {{x = "y"}}}} : (tensor<8x4xf32>) -> tensor<8x4xf32>')
    assert said["attribute_symbol"] == [("call_target_name", "f")]
    assert ("has_side_effect", 1) in said["attribute_number"]
    assert said["attribute_item"] == [("backend_config.k", 0, 3), ("backend_config.k", 1, 4)]


def test_a_matrix_is_read_and_the_value_of_a_constant_is_not() -> None:
    region = "({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):\n stablehlo.return %x : tensor<f32> })"
    attributes = "{window_dimensions = array<i64: 1, 1>, padding = dense<1> : tensor<2x2xi64>}"
    types = "(tensor<8x4xf32>, tensor<f32>) -> tensor<10x6xf32>"
    window = f'%r = "stablehlo.reduce_window"(%a, %s) {region} {attributes} : {types}'
    said = facts(window, "%a: tensor<8x4xf32>, %s: tensor<f32>", last=False)
    assert [row for row in said["attribute_row"] if row[0] == "padding"] == [
        ("padding", i, j, 1) for i in (0, 1) for j in (0, 1)
    ]
    assert said["region"] == [(0, 2, 1)]
    for value in ("dense<[1, 2]> : tensor<2xi32>", "dense<(0.0, 1.0)> : tensor<2xcomplex<f32>>"):
        assert set(facts(f"%r = stablehlo.constant {value}")) == {"op", "slot", "dim", "element"}


def test_what_stands_around_an_op() -> None:
    said = facts(
        "%s = stablehlo.slice %a [0:1, 0:4] : (tensor<8x4xf32>) -> tensor<1x4xf32>\n"
        "%r = stablehlo.concatenate %a, %s, dim = 0 : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<9x4xf32>"
    )
    assert said["operand_value"] == [(0, 0), (1, 1)]
    assert (said["defined_by"], said["defined_from"]) == ([(1, "stablehlo.slice")], [(1, 0)])


def test_a_sharding_rule_of_its_own() -> None:
    rule = "([i, jk])->([i, k]) {i=8, j=2, k=2} reduction={j} permutation={i} blocked_propagation={k}, custom"
    attribute = f"{{sdy.sharding_rule = #sdy.op_sharding_rule<{rule}>}}"
    said = facts(f"%r = stablehlo.custom_call @f(%a) {attribute} : (tensor<8x4xf32>) -> tensor<8x2xf32>")
    assert said["rule_factor"] == [(0, 8, "permutation"), (1, 2, "reduction"), (2, 2, "pass_through")]
    assert said["rule_maps"] == [(0, 0, 0, 0), (0, 1, 0, 1), (0, 1, 1, 2), (1, 0, 0, 0), (1, 1, 0, 2)]
    assert said["rule_blocked"] == [(2,)]

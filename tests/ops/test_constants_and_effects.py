"""Ops that may be removed and ops that keep constants, against what Shardy's passes do to them."""

from __future__ import annotations

from typing import Any

import pytest
from jaxlib.mlir import ir

from ..support import oracle
from .rules import answers, walk
from .test_table import MODULES

# Values that keep an op alive, and shapes that Shardy refuses.
IN_USE = ("sdy.named_computation", "sdy.reshard", "stablehlo.set_dimension_size")


def inner(module: ir.Module) -> list[Any]:
    """The ops that stand right inside of the module's functions, without the returns."""
    functions: list[Any] = [op for op in walk(module.operation) if op.name == "func.func"]
    ops = [op.operation for f in functions for block in f.regions[0] for op in block]
    return [op for op in ops if op.name != "func.return"]


@pytest.mark.parametrize("text", MODULES)
def test_unused_pure_ops_are_those_that_propagation_removes(text: str) -> None:
    text = "".join(line for line in text.splitlines(keepends=True) if "set_dimension_size" not in line)
    with oracle.context():
        module = ir.Module.parse(text)
        pure = {
            op.name: bool(said["pure"] or said["pure_inside"])
            for op in inner(module)
            for said in [answers(op)]
        }
    with oracle.context():
        module = ir.Module.parse(oracle.run_passes(text, "sdy-basic-propagate"))
        left = {op.name for op in inner(module)}
    assert {name for name, removable in pure.items() if not removable} == left - set(IN_USE)


@pytest.mark.parametrize("text", MODULES)
def test_ops_that_keep_constants_are_those_that_shardy_splits(text: str) -> None:
    """An op of constants with two uses is split where it is itself a constant."""
    with oracle.context():
        module = ir.Module.parse(text)
        for op in inner(module):
            if len(op.regions) or not len(op.results) or not _plain([*op.operands, *op.results]):
                continue
            if op.name == "func.call":  # a constant if the function's body is
                continue
            twice = _twice(op)
            oracle.manager("sdy-constant-or-scalar-splitter").run(twice.operation)
            name = op.name.replace("stablehlo.constant", "sdy.constant")
            split = [other.name for other in walk(twice.operation)].count(name) == 2
            said = answers(op, modes=["strict_shardy"])
            scalar = op.results[0].type.rank == 0
            assert split == (bool(said["keeps_constant"] or said["constant"]) and not scalar), str(op)


def _plain(values: list[Any]) -> bool:
    """Static tensors of integers or floats, of which constants are easily made."""
    types = [value.type for value in values]
    return all(
        isinstance(t, ir.RankedTensorType)
        and t.has_static_shape
        and isinstance(t.element_type, ir.IntegerType | ir.FloatType)
        for t in types
    )


def _twice(op: ir.Operation) -> ir.Module:
    """A module that computes `op` of constants and returns its first result twice."""
    module = ir.Module.parse('sdy.mesh @mesh = <["x"=2]>\nfunc.func @main() { return }')
    function = module.body.operations[1]
    end = function.regions[0].blocks[0].operations[0].operation
    with ir.InsertionPoint(end), ir.Location.unknown():
        operands = [
            ir.Operation.create(
                "stablehlo.constant",
                results=[value.type],
                attributes={
                    "value": ir.Attribute.parse(f"dense<{_zero(value.type.element_type)}> : {value.type}")
                },
            ).results[0]
            for value in op.operands
        ]
        types = [result.type for result in op.results]
        made = ir.Operation.create(
            op.name, results=types, operands=operands, attributes=dict(op.attributes.items())
        )
        ir.Operation.create("func.return", operands=[made.results[0]] * 2)
    end.erase()
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([], [types[0]] * 2))
    return module


def _zero(element: Any) -> str:
    if isinstance(element, ir.FloatType):
        return "0.0"
    return "false" if element.width == 1 else "0"

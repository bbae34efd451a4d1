"""Which op of a program lets rounding decide: it gives another whole number, or another side of a jump."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..exporters.plain import plain
from ..exporters.wide import wide
from ..program.function import location
from ..program.mlir.modules import main_function, operations_in, put_calls_in_place, symbols
from ..program.mlir.types import Value
from ..runs.table import plural
from .differences import Array
from .execution import in_64_bits, module_alone
from .rounding import eps_of
from .values import Arrays

if TYPE_CHECKING:
    from jax import Device

    from ..runs.result import Result

_LOOKED_AT = 200, 1 << 24  # ops that are looked at, and their elements


def decided_by(result: Result, devices: Sequence[Device], inputs: Arrays, moved: Sequence[Arrays]) -> str:
    """The first op that goes another way in 64 bits, or with inputs that are ``moved`` by rounding, with its
    place: "stablehlo.sort at f.py:3 goes another way for 2 of 64 elements". Empty where none is found."""
    try:
        module, ops = _watched(result)
        alone = module_alone(result, module, devices)
        exact = in_64_bits(module_alone(result, wide(module, result.book.traits), devices))
    except ShardlogError:  # of programs for several devices, and of ops without a wide form
        return ""
    runs = [exact(inputs), alone(inputs), *map(exact, moved)]
    for op, *values in zip(ops, *runs, strict=True):
        first = values[0].astype(values[1].dtype)
        changed = sum(_changes(first, other) for other in values[1:])
        if count := int(np.count_nonzero(changed)):
            return f"{op} goes another way for {count:,} of {plural(first.size, 'element')}"
    return ""


def lets_rounding_decide(result: Result) -> bool:
    """Whether the program makes whole numbers of floating-point ones anywhere, or compares these."""
    with result.module.context:
        return any(_decisions(op, result) for op in operations_in(result.module))


def _changes(one: Array, other: Array) -> npt.NDArray[np.bool_]:
    """Where whole numbers differ: what jumps does so by much."""
    exact = one.dtype.kind in "biu"
    differ: npt.NDArray[np.bool_]
    differ = one != other if exact else np.abs(one - other) > 0.25 * np.maximum(1, np.abs(one))
    return differ


def _watched(result: Result) -> tuple[ir.Module, list[str]]:
    """The program with the decisions of its ops as further results, and these ops with their places. Raises
    ShardlogError for ops that one device cannot compute."""
    module = plain(result.module, result.book.traits)
    functions = symbols(module, "func.func")
    main = functions[main_function(functions)]
    with module.context, ir.Location.unknown():
        put_calls_in_place(main, functions)
        block = main.regions[0].blocks[0]
        *ops, last = [op.operation for op in block.operations]
        values: list[Any] = []
        names, room = [], _LOOKED_AT[1]
        for op in ops:
            for value in _decisions(op, result):
                room -= prod(value.type.shape)
                if len(values) < _LOOKED_AT[0] and room >= 0:
                    values.append(value)
                    where = result.source.line(location(op))
                    names.append(f"{op.name} at {where}" if where else op.name)
        ir.Operation.create(last.name, operands=values, ip=ir.InsertionPoint(last))
        last.erase()
        kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in values])
        main.attributes["function_type"] = ir.TypeAttr.get(kind)
        main.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get({})] * len(values))
    return module, names


def _decisions(op: ir.Operation, result: Result) -> list[Any]:
    """The results of an op in which a small change of its operands may become a large one."""
    if not any(map(_rounded, op.operands)):
        return []
    if op.name in result.book.traits.family("jumps_op"):
        return list(op.results)
    tensors = [value for value in op.results if isinstance(value.type, ir.RankedTensorType)]
    return [value for value in tensors if not _rounded(value)]


def _rounded(value: Value) -> bool:
    kind = value.type
    return isinstance(kind, ir.RankedTensorType) and eps_of(str(kind.element_type)) > 0

"""Results of manual computations that are declared replicated, and are not: their users are undefined.

A ``shard_map`` with ``check_vma=False`` may declare a result replicated that devices compute differently.
Then the partitioner may use any device's copy, and of two programs that differ neither is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy, stablehlo

from ..exporters.bind import bind
from ..exporters.tokens import is_token, without_tokens
from ..importers.sources.compiling import load
from ..program.boundaries import boundary_axes
from ..program.function import location
from ..program.mlir.modules import copy_of, main_function, put_calls_in_place, symbols
from ..program.shardings import read_mesh
from ..runs.jax import device_shardings
from .differences import Array, difference
from .partial import placed
from .rounding import eps_of
from .values import Arrays

if TYPE_CHECKING:
    from jax import Device

    from ..runs.result import Result


def undefined(result: Result, devices: Sequence[Device], inputs: Arrays) -> str:
    """Along which axes devices differ, though a manual computation calls a result replicated there, and which
    one it is. Empty where none does; those in loops and branches are not looked at."""
    module, watched = _watched(result)
    if not watched:
        return ""
    loaded = load(without_tokens(module), devices, result.source.interface.callbacks)
    main = symbols(result.module, "func.func")[main_function(symbols(result.module, "func.func"))]
    shardings = zip(device_shardings(result, devices)[0], main.type.inputs, strict=True)
    kept = [sharding for sharding, kind in shardings if not is_token(kind)]
    arrays = [placed(array, to) for array, to in zip(inputs, kept, strict=True)]
    parts = loaded.execute_sharded(arrays).disassemble_into_single_device_arrays()
    for (axes, element, where), (first, *_) in zip(watched, parts, strict=True):
        held = np.asarray(first)
        apart = [name for i, name in enumerate(axes) if _differ(np.moveaxis(held, i, 0), element)]
        if apart:
            named = f"{'axis' if len(apart) == 1 else 'axes'} {', '.join(map(repr, apart))}"
            return f"devices differ along {named}, which out_specs call replicated, at {where}"
    return ""


def _differ(rows: Array, element: str) -> bool:
    return any(difference(row, rows[0]) > sqrt(eps_of(element)) for row in rows[1:])


def _watched(result: Result) -> tuple[ir.Module, list[tuple[list[str], str, str]]]:
    """The program with the results of its manual computations as its own, and one more dimension for each
    axis along which they are declared replicated. Also the names of these axes, the elements, and the place
    of the op."""
    module, watched = copy_of(result.module), []
    functions = symbols(module, "func.func")
    main = functions[main_function(functions)]
    with module.context, ir.Location.unknown():
        sizes = {
            name: dict(read_mesh(name, op.attributes["mesh"]).axes)
            for name, op in symbols(module, "sdy.mesh").items()
        }
        put_calls_in_place(main, functions)
        block, values = main.regions[0].blocks[0], []
        for op in [op for op in block.operations if "manual_axes" in op.attributes]:
            where = result.source.line(location(op)) or result.source.name
            for value, axes in _with_axes(op, sizes):
                values.append(value)
                watched.append((axes, str(value.type.element_type), where))
        last = list(block.operations)[-1].operation
        ir.Operation.create(last.name, operands=values, ip=ir.InsertionPoint(last))
        last.erase()
        kind = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in values])
        main.attributes["function_type"] = ir.TypeAttr.get(kind)
        main.attributes["res_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get({})] * len(values))
        return bind(module, result.book.traits), watched


def _with_axes(op: ir.Operation, sizes: dict[str, dict[str, int]]) -> list[tuple[Any, list[str]]]:
    """Rewrites a manual computation, so that its results hold each device's copy of those that are declared
    replicated. Returns these results and their axes."""
    shardings = list(sdy.TensorShardingPerValueAttr(op.attributes["out_shardings"]).shardings)
    manual = boundary_axes(op)
    block = op.regions[0].blocks[0]
    last = list(block.operations)[-1].operation
    returned, types, more, names = list(last.operands), [], [], []
    for value, result, sharding in zip(returned[:], op.results, shardings, strict=True):
        of = sdy.TensorShardingAttr(sharding)
        mesh = sizes[ir.FlatSymbolRefAttr(of.mesh_or_ref).value]
        parts = [axis for d in of.dimension_shardings for axis in sdy.DimensionShardingAttr(d).axes]
        used = {sdy.AxisRefAttr(axis).name for axis in [*parts, *of.unreduced_axes]}
        axes = [name for name in manual if name not in used and mesh[name] > 1]
        if not axes or not isinstance(result.type, ir.RankedTensorType):
            continue
        before = [mesh[name] for name in axes]
        local = ir.RankedTensorType.get([1] * len(axes) + list(value.type.shape), value.type.element_type)
        types.append(ir.RankedTensorType.get(before + list(result.type.shape), result.type.element_type))
        returned.append(stablehlo.ReshapeOp(local, value, ip=ir.InsertionPoint(last)).result)
        own = [sdy.DimensionShardingAttr.get([sdy.AxisRefAttr.get(name)], is_closed=True) for name in axes]
        more.append(sdy.TensorShardingAttr.get(of.mesh_or_ref, [*own, *of.dimension_shardings]))
        names.append(axes)
    rewritten = sdy.ManualComputationOp(
        [*(r.type for r in op.results), *types],
        list(op.operands),
        op.attributes["in_shardings"],
        sdy.TensorShardingPerValueAttr.get([*shardings, *more]),
        op.attributes["manual_axes"],
        loc=op.location,
        ip=ir.InsertionPoint(op),
    ).operation
    block.append_to(rewritten.regions[0])
    ir.Operation.create(last.name, operands=returned, ip=ir.InsertionPoint(last))
    last.erase()
    count = len(op.results)
    for old, new in zip(op.results, rewritten.results, strict=False):
        old.replace_all_uses_with(new)
    op.erase()
    return list(zip(list(rewritten.results)[count:], names, strict=True))

"""Annotations and meshes that a user gives beside the module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError, closest
from .diagnostics import explain
from .function import RESULT_SHARDING
from .meshes import Mesh, symbol
from .shardings import mesh_attribute
from .source import main_function, symbols

_AXIS = r'[^\s=,:"@]+\s*=\s*\d+'
_MESH = re.compile(rf"\s*(?:@?(?P<name>\w+)\s*:)?\s*(?P<axes>{_AXIS}(?:\s*,\s*{_AXIS})*)\s*")
_ANNOTATION = re.compile(r"\s*(?P<value>%[\w.$-]+(?:#\d+)?)\s*=\s*(?P<sharding>.*\S)\s*", re.DOTALL)


def replace_mesh(module: ir.Module, text: str) -> None:
    """Gives the module the mesh that ``text`` says (``data=2,model=4``), in place of the one it has.

    A module with several meshes needs the name of one: ``name: data=2,model=4``.
    """
    where = f"--mesh '{text}'"
    match = _MESH.fullmatch(text)
    if not match:
        raise ShardlogError("not a mesh", where=where, hint="expected axes with sizes, as in data=2,model=4")
    axes = [re.split(r"\s*=\s*", axis) for axis in re.split(r"\s*,\s*", match["axes"])]
    names = [name for name, _ in axes]
    for name, size in axes:
        if names.count(name) > 1:
            raise ShardlogError(
                f"the axis {name} stands there twice", where=where, hint="name every axis once"
            )
        if not 0 < int(size) < 1 << 31:
            raise ShardlogError(
                f"the axis {name} has size {size}", where=where, hint="expected a number of devices"
            )
    attribute = mesh_attribute(Mesh("", tuple((name, int(size)) for name, size in axes)))
    old = symbols(module, "sdy.mesh")
    if not old:
        sdy.MeshOp(match["name"] or "mesh", attribute, ip=ir.InsertionPoint.at_block_begin(module.body))
        return
    if match["name"] is None and len(old) > 1:
        hint = f"say which one, as in '{next(iter(old))}: {text.strip()}'; {closest('', old)}"
        raise ShardlogError(f"the module has {len(old)} meshes", where=where, hint=hint)
    name = match["name"] or next(iter(old))
    if name not in old:
        raise ShardlogError(f"the module has no mesh {symbol(name)}", where=where, hint=closest(name, old))
    old[name].attributes["mesh"] = attribute
    if "mhlo.num_partitions" in module.operation.attributes:
        devices = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), prod(int(size) for _, size in axes))
        module.operation.attributes["mhlo.num_partitions"] = devices
    if "stablehlo.mesh" in old[name].attributes:
        del old[name].attributes["stablehlo.mesh"]
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        message, _ = explain(error, "")
        raise ShardlogError(
            f"the shardings of the module do not fit this mesh: {message}",
            where=where,
            hint="keep the names of the axes that the module uses",
        ) from None


def apply_annotations(module: ir.Module, annotations: Sequence[str]) -> None:
    """Annotates values of the main function: ``%name=[{"axis"}, {}]`` or ``%name=<@mesh, [{"axis"}, {}]>``.

    Values are called as MLIR prints them.
    """
    if not annotations:
        return
    functions = symbols(module, "func.func")
    main = functions[main_function(functions)]
    values = _values(module, main)
    for text in annotations:
        where = f"--annotate '{text}'"
        match = _ANNOTATION.fullmatch(text)
        if not match:
            hint = """expected a value and its sharding, as in %arg0=[{"data"}, {}]"""
            raise ShardlogError("not an annotation", where=where, hint=hint)
        name = match["value"]
        if name not in values:
            raise ShardlogError(f"there is no value {name}", where=where, hint=closest(name, values))
        _annotate(main, values[name], parse_sharding(module, match["sharding"], where), where)
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            meshes = symbols(module, "sdy.mesh").items()
            declared = "\n".join(f"sdy.mesh {symbol(mesh)} = {op.attributes['mesh']}" for mesh, op in meshes)
            message, hint = explain(error, declared)
            raise ShardlogError(message, where=where, hint=hint) from None


def _values(module: ir.Module, main: Any) -> dict[str, ir.Value[Any]]:
    """The values of a function by the names under which MLIR prints them."""
    state = ir.AsmState(module.operation)
    values: dict[str, ir.Value[Any]] = {}

    def walk(region: Any) -> None:
        for block in region.blocks:
            for argument in block.arguments:
                values[argument.get_name(state)] = argument
            for op in block.operations:
                for result in op.results:
                    values[result.get_name(state)] = result
                for inner in op.regions:
                    walk(inner)

    walk(main.regions[0])
    return values


def parse_sharding(module: ir.Module, sharding: str, where: str) -> ir.Attribute:
    """The attribute that ``[{"data"}, {}]`` or ``<@mesh, [{"data"}, {}]>`` says, in the current context.

    Raises ShardlogError, with ``where`` for its place, where that is no sharding.
    """
    if sharding.startswith("["):
        meshes = list(symbols(module, "sdy.mesh"))
        if not meshes:
            raise ShardlogError(
                "the module has no mesh", where=where, hint="give it one, as in --mesh data=2,model=4"
            )
        if len(meshes) > 1:
            hint = f"name one of them, as in <{symbol(meshes[0])}, [...]>; {closest('', meshes)}"
            raise ShardlogError(f"the module has {len(meshes)} meshes", where=where, hint=hint)
        sharding = f"<{symbol(meshes[0])}, {sharding}>"
    try:
        return ir.Attribute.parse(f"#sdy.sharding{sharding}")
    except ir.MLIRError as error:
        message, _ = explain(error, "")
        hint = """expected one {...} for each dimension, as in [{"data", ?}, {}]"""
        raise ShardlogError(f"not a sharding: {message}", where=where, hint=hint) from None


def _annotate(main: Any, value: ir.Value[Any], sharding: ir.Attribute, where: str) -> None:
    owner: Any = value.owner
    if isinstance(owner, ir.Block):
        if owner != main.regions[0].blocks[0]:
            raise ShardlogError(
                "an argument of a region has no sharding of its own",
                where=where,
                hint="annotate the result of the op around it",
            )
        attributes = main.attributes
        empty = [ir.DictAttr.get({})] * len(owner.arguments)
        entries: list[Any] = list(attributes["arg_attrs"]) if "arg_attrs" in attributes else list(empty)
        number = ir.BlockArgument(value).arg_number
        others = {entry.name: entry.attr for entry in entries[number]}
        entries[number] = ir.DictAttr.get({**others, "sdy.sharding": sharding})
        attributes["arg_attrs"] = ir.ArrayAttr.get(entries)
        return
    for label in RESULT_SHARDING:
        if owner.operation.name.startswith("sdy.") and label in owner.attributes:
            owner.attributes[label] = sharding
            return
    owner.attributes["sdy.sharding"] = _per_value(owner, ir.OpResult(value).result_number, sharding)


def _per_value(op: Any, number: int, sharding: ir.Attribute) -> ir.Attribute:
    """The shardings of an op's results with a new one for a result; others are open where they have none."""
    mesh = sdy.TensorShardingAttr(sharding).mesh_or_ref
    if "sdy.sharding" in op.attributes:
        shardings = list(sdy.TensorShardingPerValueAttr(op.attributes["sdy.sharding"]).shardings)
    else:
        ranks = (getattr(result.type, "rank", 0) for result in op.results)
        open_dimension = sdy.DimensionShardingAttr.get([], is_closed=False)
        shardings = [sdy.TensorShardingAttr.get(mesh, [open_dimension] * rank) for rank in ranks]
    shardings[number] = sharding
    attribute: ir.Attribute = sdy.TensorShardingPerValueAttr.get(shardings)
    return attribute

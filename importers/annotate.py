"""Annotations and meshes that a user gives beside the module."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from ..errors import ShardlogError, closest
from .source import main_function

_MESH = re.compile(r"\s*(?:@?(?P<name>\w+)\s*:)?\s*(?P<axes>[\w.]+\s*=\s*\d+(?:\s*,\s*[\w.]+\s*=\s*\d+)*)\s*")
_ANNOTATION = re.compile(r"\s*(?P<value>%[\w.$-]+(?:#\d+)?)\s*=\s*(?P<sharding>.*\S)\s*", re.DOTALL)


def replace_mesh(module: ir.Module, text: str) -> None:
    """Gives the module the mesh that ``text`` says (``data=2,model=4``), in place of the one it has.

    A module with several meshes needs the name of one: ``name: data=2,model=4``.
    """
    match = _MESH.fullmatch(text)
    if not match:
        raise ShardlogError(
            f"not a mesh: {text!r}", where="--mesh", hint='expected axes with sizes, as in "data=2,model=4"'
        )
    axes = [tuple(part.split("=")) for part in match["axes"].replace(" ", "").split(",")]
    names = [name for name, _ in axes]
    if len(set(names)) < len(names):
        raise ShardlogError(f"an axis stands twice in {text!r}", where="--mesh", hint="name every axis once")
    if any(int(size) < 1 for _, size in axes):
        raise ShardlogError(
            f"an axis of size 0 in {text!r}", where="--mesh", hint="an axis has at least one device"
        )
    old = {
        op.attributes["sym_name"].value: op
        for op in module.body.operations
        if op.operation.name == "sdy.mesh"
    }
    wanted = match["name"]
    if wanted is None and len(old) > 1:
        raise ShardlogError(
            f"the module has {len(old)} meshes", where="--mesh", hint=f"say which: {sorted(old)[0]}: {text}"
        )
    name = wanted or next(iter(old), "mesh")
    entries = ", ".join(f'"{axis}"={size}' for axis, size in axes)
    attribute = ir.Attribute.parse(f"#sdy.mesh<[{entries}]>")
    if name in old:
        before = re.findall(r'"([\w.]+)"=', str(old[name].attributes["mesh"]))
        old[name].attributes["mesh"] = attribute
        if "stablehlo.mesh" in old[name].attributes:
            del old[name].attributes["stablehlo.mesh"]
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            missing = [axis for axis in before if axis not in names]
            raise ShardlogError(
                f"the module's shardings do not fit the mesh {text!r}: {error.error_diagnostics[0].message}",
                where="--mesh",
                hint=f"the module uses the axes {', '.join(missing or before)}",
            ) from None
        return
    from jaxlib.mlir.dialects import sdy

    sdy.MeshOp(name, attribute, ip=ir.InsertionPoint.at_block_begin(module.body))


def apply_annotations(module: ir.Module, annotations: Sequence[str]) -> None:
    """Annotates values of the main function: ``%name=[{"axis"}, {}]`` or ``%name=<@mesh, [{"axis"}, {}]>``."""
    if not annotations:
        return
    functions = {
        op.attributes["sym_name"].value: op
        for op in module.body.operations
        if op.operation.name == "func.func"
    }
    main = functions[main_function(functions)]
    values = _names(module, main)
    for text in annotations:
        match = _ANNOTATION.fullmatch(text)
        if not match:
            raise ShardlogError(
                f"not an annotation: {text!r}", where="--annotate", hint="""expected '%arg0=[{"data"}, {}]'"""
            )
        name = match["value"]
        if name not in values:
            raise ShardlogError(
                f"there is no value {name}", where="--annotate", hint=closest(name, list(values))
            )
        _annotate(main, values[name], _sharding(module, text, match["sharding"]))
        try:
            module.operation.verify()
        except ir.MLIRError as error:
            raise ShardlogError(
                error.error_diagnostics[0].message,
                where=f"--annotate {text}",
                hint="give one entry in [...] per dimension, with axes of the mesh, each used once",
            ) from None


def _names(module: ir.Module, main: Any) -> dict[str, ir.Value]:
    """The values of a function by the names under which MLIR prints them."""
    state = ir.AsmState(module.operation)
    values: dict[str, ir.Value] = {}

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


def _sharding(module: ir.Module, text: str, sharding: str) -> ir.Attribute:
    if sharding.startswith("["):
        meshes = [
            op.attributes["sym_name"].value
            for op in module.body.operations
            if op.operation.name == "sdy.mesh"
        ]
        if len(meshes) != 1:
            raise ShardlogError(
                f"the module has {len(meshes) or 'no'} meshes" if len(meshes) != 1 else "",
                where=f"--annotate {text}",
                hint="give --mesh, or name the mesh: '%arg0=<@mesh, [...]>'",
            )
        sharding = f"<@{meshes[0]}, {sharding}>"
    try:
        return ir.Attribute.parse(f"#sdy.sharding{sharding}")
    except ir.MLIRError as error:
        raise ShardlogError(
            f"not a sharding: {error.error_diagnostics[0].message if error.error_diagnostics else sharding}",
            where=f"--annotate {text}",
            hint="""expected one {...} per dimension, as in [{"data", ?}, {}]""",
        ) from None


def _annotate(main: Any, value: ir.Value, sharding: ir.Attribute) -> None:
    owner = value.owner
    if isinstance(owner, ir.Block):
        if owner != main.regions[0].blocks[0]:
            raise ShardlogError(
                "an argument of a region has no sharding of its own",
                where="--annotate",
                hint="annotate the result of the op around it",
            )
        count = len(owner.arguments)
        old = (
            list(main.attributes["arg_attrs"])
            if "arg_attrs" in main.attributes
            else [ir.DictAttr.get({})] * count
        )
        number = value.arg_number
        old[number] = ir.DictAttr.get({**{e.name: e.attr for e in old[number]}, "sdy.sharding": sharding})
        main.attributes["arg_attrs"] = ir.ArrayAttr.get(old)
        return
    for label in ("sharding", "out_sharding"):
        if owner.name.startswith("sdy.") and label in owner.attributes:
            owner.attributes[label] = sharding
            return
    entries = []
    for i, result in enumerate(owner.results):
        if i == value.result_number:
            entries.append(str(sharding).removeprefix("#sdy.sharding"))
        else:
            rank = result.type.rank if isinstance(result.type, ir.RankedTensorType) else 0
            mesh = str(sharding).removeprefix("#sdy.sharding<").split(",", 1)[0]
            entries.append(f"<{mesh}, [{', '.join(['{?}'] * rank)}]>")
    owner.attributes["sdy.sharding"] = ir.Attribute.parse(f"#sdy.sharding_per_value<[{', '.join(entries)}]>")

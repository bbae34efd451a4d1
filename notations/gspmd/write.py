"""An annotated module in GSPMD's notation: ``mhlo.sharding`` in place of all of sdy.

As XLA's exporter has it (stablehlo_round_trip/export_shardings.cc and shard_map_export.cc), except that
constraints are ``@Sharding`` custom calls, as JAX writes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, sdy

from ...errors import ShardlogError
from ...program.boundaries import boundary_axes
from ...program.function import RESULT_SHARDING, location, sharding_of
from ...program.meshes import SubAxis
from ...program.mlir.modules import copy_of, entries_of, ops_in, symbols
from ...program.mlir.types import Operation, Value
from ...program.shardings import Dimension, Sharding, declared
from ...program.signature import text_of
from ...rulebook.traits import OpTraits
from .groups import list_devices
from .hlo_sharding import tuple_text
from .regions import FULL_TO_SHARD, SHARD_TO_FULL
from .tiles import from_sharding

_BODY = "xla.sdy.inlinable_manual_computation_body"  # XLA's name for it


def to_gspmd(module: ir.Module, traits: OpTraits) -> ir.Module:
    """A copy of ``module`` with ``mhlo.sharding`` attributes and without sdy.

    Open dimensions and priorities are lost. Raises ShardlogError for ops that GSPMD has nothing for.
    """
    copy = copy_of(module)
    with module.context, ir.Location.unknown():
        _GspmdWriter(module, copy, traits).run()
        copy.operation.verify()
    return copy


@dataclass(frozen=True)
class _Manual:
    """The manual axes around an op, all of one mesh."""

    mesh: int
    axes: tuple[str, ...]


class _GspmdWriter:
    def __init__(self, source: ir.Module, module: ir.Module, traits: OpTraits) -> None:
        self.module = module
        self.left_out = traits.family("same_sharding_op")
        self.sources = symbols(source, "func.func")  # as they were, for functions that are needed twice
        self.functions = symbols(module, "func.func")
        self.mesh_ops = symbols(module, "sdy.mesh")
        self.shardings = declared(self.mesh_ops)
        self.meshes = self.shardings.meshes.meshes
        self.versions: dict[tuple[str, _Manual | None], str] = {}
        self.texts: dict[tuple[tuple[Sharding, ...], tuple[str, ...]], ir.StringAttr] = {}
        self.taken = {*self.functions, *self.mesh_ops}

    def run(self) -> None:
        calls = (op for op in ops_in(self.module) if op.operation.name == "func.call")
        called = {op.attributes["callee"].value for op in calls}
        for name in [
            *(n for n in self.sources if n not in called),
            *(n for n in self.sources if n in called),
        ]:
            if all(name != version for version, _ in self.versions):
                self.version(name, None)
        for op in self.mesh_ops.values():
            op.operation.erase()

    # ---- Functions -----------------------------------------------------------------------------------------

    def version(self, name: str, manual: _Manual | None) -> str:
        """The name of a function for calls with these manual axes; the first have the function itself."""
        if (name, manual) not in self.versions:
            op = self.functions[name]
            version = name
            if any(name == other for other, _ in self.versions):
                version = self.free_name(name)
                op = self.sources[name].operation.clone(ir.InsertionPoint(self.module.body)).opview
                op.attributes["sym_name"] = ir.StringAttr.get(version)
                op.attributes["sym_visibility"] = ir.StringAttr.get("private")
            self.versions[name, manual] = version
            kind = op.attributes["function_type"].value
            for label, types in (("arg_attrs", kind.inputs), ("res_attrs", kind.results)):
                given = map(sharding_of, op.attributes.get(label, [{}] * len(types)))
                shardings = [self.inside(s, t, manual) for s, t in zip(given, types, strict=True)]
                self.set_values(op, label, shardings, manual)
            for block in op.regions[0].blocks:
                self.write_block(block, manual)
        return self.versions[name, manual]

    def free_name(self, name: str) -> str:
        free, suffix = name, 0
        while free in self.taken:
            free, suffix = f"{name}_{suffix}", suffix + 1
        self.taken.add(free)
        return free

    def set_values(
        self, op: Operation, label: str, shardings: Sequence[Sharding | None], manual: _Manual | None
    ) -> None:
        """The shardings of the arguments or results of a function."""
        entries = []
        for entry, sharding in zip(op.attributes.get(label, [()] * len(shardings)), shardings, strict=True):
            kept = entries_of(entry, "sdy.sharding")
            if sharding is not None and (text := self.text([sharding], manual)) is not None:
                kept["mhlo.sharding"] = text
            entries.append(ir.DictAttr.get(kept))
        if any(len(entry) for entry in entries):
            op.attributes[label] = ir.ArrayAttr.get(entries)

    # ---- Ops -----------------------------------------------------------------------------------------------

    def write_block(self, block: Any, manual: _Manual | None) -> None:
        ops = list(block.operations)
        for op in ops:
            self.write_op(op, manual, last=op is ops[-1])

    def write_op(self, op: Operation, manual: _Manual | None, *, last: bool) -> None:
        name = op.operation.name
        if name == "sdy.manual_computation":
            self.write_manual_computation(op, manual)
            return
        if name.startswith("sdy."):
            self.write_constraint(op, manual)
            return
        for region in op.regions:
            for block in region.blocks:
                self.write_block(block, manual)
        list_devices(op, self.shardings)
        if name == "func.call":
            callee = self.version(op.attributes["callee"].value, manual)
            op.attributes["callee"] = ir.FlatSymbolRefAttr.get(callee)
        given: list[Any] = [None] * len(op.results)
        if "sdy.sharding" in op.attributes:
            given = list(sdy.TensorShardingPerValueAttr(op.attributes["sdy.sharding"]).shardings)
            del op.attributes["sdy.sharding"]
        elif last or manual is None:
            return
        types = [result.type for result in op.results] or [None]
        shardings = [self.inside(s, kind, manual) for s, kind in zip(given or [None], types, strict=True)]
        if (text := self.text([s for s in shardings if s is not None], manual)) is not None:
            op.attributes["mhlo.sharding"] = text

    def write_constraint(self, op: Operation, manual: _Manual | None) -> None:
        """Writes an op that names the sharding of its only result as ``@Sharding``."""
        label = next((label for label in RESULT_SHARDING if label in op.attributes), None)
        name, value = op.operation.name, op.operands[0] if len(op.operands) == 1 else None
        left_out = name in self.left_out
        if value is None or (label is None and not left_out):
            hint = "GSPMD's notation has only constraints and manual computations; keep sdy's"
            raise ShardlogError(f"GSPMD's notation cannot express {name}", where=location(op), hint=hint)
        if not left_out:
            sharding = self.inside(op.attributes[label], value.type, manual)
            assert sharding is not None
            value = self.custom_call("Sharding", value, value.type, sharding, manual, op)
        op.results[0].replace_all_uses_with(value)
        op.operation.erase()

    def write_manual_computation(self, op: Operation, outer: _Manual | None) -> None:
        """Operands and results cross the boundary through custom calls, the body is called as a function."""
        block = op.regions[0].blocks[0]
        last = list(block.operations)[-1]
        entering, leaving = (
            [self.shardings.read(s) for s in sdy.TensorShardingPerValueAttr(op.attributes[label]).shardings]
            for label in ("in_shardings", "out_shardings")
        )
        if not entering and not leaving:
            inner = list(block.operations)[:-1]
            for other in inner:
                other.operation.move_before(op.operation)
                self.write_op(other, outer, last=False)
            op.operation.erase()
            return
        names = tuple(boundary_axes(op))
        manual = _Manual((entering + leaving)[0].mesh, (outer.axes if outer else ()) + names)
        shards = [
            self.cross(operand, argument.type, sharding, (outer, manual), FULL_TO_SHARD, op)
            for operand, argument, sharding in zip(op.operands, block.arguments, entering, strict=True)
        ]
        returned = [value.type for value in last.operands]
        body = self.body([argument.type for argument in block.arguments], returned, op.location)
        self.set_values(body, "arg_attrs", [_without(s, manual.axes) for s in entering], manual)
        self.set_values(body, "res_attrs", [_without(s, manual.axes) for s in leaving], manual)
        name = text_of(body.attributes["sym_name"])
        call = func.CallOp(returned, name, shards, loc=op.location, ip=ir.InsertionPoint(op.operation))
        if (text := self.text([_without(s, manual.axes) for s in leaving], manual)) is not None:
            call.attributes["mhlo.sharding"] = text
        for result, shard, sharding in zip(op.results, call.results, leaving, strict=True):
            whole = self.cross(shard, result.type, sharding, (manual, outer), SHARD_TO_FULL, op)
            result.replace_all_uses_with(whole)
        func.ReturnOp(list(last.operands), loc=last.location, ip=ir.InsertionPoint(last))
        last.operation.erase()
        block.append_to(body.regions[0])
        op.operation.erase()
        self.write_block(body.regions[0].blocks[0], manual)

    def body(self, entering: list[ir.Type], leaving: list[ir.Type], place: ir.Location) -> ir.Operation:
        """A private function for a body, empty as yet."""
        attributes: dict[str, ir.Attribute] = {
            "sym_name": ir.StringAttr.get(self.free_name(_BODY)),
            "sym_visibility": ir.StringAttr.get("private"),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(entering, leaving)),
        }
        point = ir.InsertionPoint(self.module.body)
        return ir.Operation.create("func.func", attributes=attributes, regions=1, loc=place, ip=point)

    def cross(
        self,
        value: Value,
        kind: ir.Type,
        sharding: Sharding,
        sides: tuple[_Manual | None, _Manual | None],
        target: str,
        near: Operation,
    ) -> Any:
        """``value`` on the other side of the boundary of a manual computation, where it has type ``kind``."""
        if not isinstance(kind, ir.RankedTensorType):
            return value
        for side, name, result in zip(sides, ("Sharding", target), (value.type, kind), strict=True):
            without_axes = _without(sharding, side.axes if side else ())
            value = self.custom_call(name, value, result, without_axes, side, near)
        return value

    def custom_call(
        self,
        target: str,
        value: Any,
        kind: ir.Type,
        sharding: Sharding,
        manual: _Manual | None,
        near: Operation,
    ) -> Any:
        opened = [str(d) for d, dimension in enumerate(sharding.dimensions) if not dimension.closed]
        config = f"unspecified_dims=[{','.join(opened)}]" if opened else ""
        attributes: dict[str, ir.Attribute] = {
            "call_target_name": ir.StringAttr.get(target),
            "backend_config": ir.StringAttr.get(config),
        }
        if (text := self.text([sharding], manual)) is not None:
            attributes["mhlo.sharding"] = text
        call = ir.Operation.create(
            "stablehlo.custom_call",
            results=[kind],
            operands=[value],
            attributes=attributes,
            loc=near.location,
            ip=ir.InsertionPoint(near.operation),
        )
        return call.results[0]

    # ---- Shardings -----------------------------------------------------------------------------------------

    def inside(
        self, attribute: ir.Attribute | None, kind: ir.Type | None, manual: _Manual | None
    ) -> Sharding | None:
        """The sharding of a value; inside of a manual computation, one without is not sharded further."""
        sharding = None if attribute is None else self.shardings.read(attribute)
        if manual is not None and (sharding is None or sharding.mesh != manual.mesh):
            rank = kind.rank if isinstance(kind, ir.RankedTensorType) else 0
            return Sharding(manual.mesh, (Dimension(closed=True),) * rank)
        return sharding

    def text(self, shardings: Iterable[Sharding], manual: _Manual | None) -> ir.StringAttr | None:
        axes = manual.axes if manual else ()
        key = (tuple(shardings), axes)
        if key not in self.texts:
            converted = tuple(from_sharding(s, self.meshes[s.mesh], axes) for s in key[0])
            self.texts[key] = ir.StringAttr.get(
                str(converted[0]) if len(converted) == 1 else tuple_text(converted)
            )
        return self.texts[key] if key[0] else None


def _without(sharding: Sharding, names: Sequence[str]) -> Sharding:
    def free(axes: tuple[SubAxis, ...]) -> tuple[SubAxis, ...]:
        return tuple(axis for axis in axes if axis.name not in names)

    dimensions = tuple(replace(d, axes=free(d.axes)) for d in sharding.dimensions)
    return replace(sharding, dimensions=dimensions, unreduced=free(sharding.unreduced))

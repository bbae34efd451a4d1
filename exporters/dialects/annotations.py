"""The annotations of a module in the words of shard or mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ...errors import ShardlogError
from ...program.carried import ENTRIES, HALO, OFFSETS, PARTIAL, SPELLING, UNEVEN, UNKNOWN, with_partial
from ...program.function import location
from ...program.meshes import Meshes
from ...program.mlir.modules import boundary_attributes, copy_of, entries_of, is_used, operations_in, symbols
from ...program.mlir.types import Attributes, FunctionOp, Operation, Value
from ...program.shardings import Sharding, Shardings, is_writable, read_mesh
from ...program.signature import text_of
from .grids import MeshGrid, grids_of
from .spelling import Spelling

SHARDING = "sdy.sharding"
_KEPT = (HALO, OFFSETS, ENTRIES, PARTIAL)  # beside a sharding; the dialects have words for them
_OF_ENDS = (SHARDING, UNEVEN, *_KEPT)  # of arguments and results
_CONSTRAINTS = ("sdy.sharding_constraint", "sdy.reshard")
_OWN = ("stablehlo.mesh", UNKNOWN)


def to_dialect(module: ir.Module, spelling: Spelling) -> ir.Module:
    """A copy of a module with its annotations in a dialect.

    Raises ShardlogError for shardings that the dialect cannot express.
    """
    copy = copy_of(module)
    with copy.context, ir.Location.unknown():
        _AnnotationWriter(copy, spelling).write()
    return copy


@dataclass(frozen=True)
class _Annotation:
    """A sharding, the attributes beside it, and the op that has both."""

    sharding: Sharding
    beside: Mapping[str, ir.Attribute]
    op: Any


class _AnnotationWriter:
    def __init__(self, module: ir.Module, spelling: Spelling) -> None:
        self.module, self.spelling = module, spelling
        declared = symbols(module, "sdy.mesh")
        meshes = Meshes([read_mesh(name, op.attributes["mesh"]) for name, op in declared.items()])
        self.shardings = Shardings(meshes, {name: i for i, name in enumerate(declared)})
        self.shardings.units = True
        self.declared = declared
        self.grids: list[MeshGrid] = []
        self.read: dict[Any, list[_Annotation | None]] = {}  # by the attribute of an op that has no other
        self.specs: dict[Any, dict[str, Any]] = {}  # by the content of an annotation
        self.specs_by_identity: dict[int, dict[str, Any]] = {}  # by the identity of an annotation
        # The shardings of each function, by the identity of a spec.
        self.written_in: dict[str, dict[int, Any]] = {}
        self.function: Any = None  # the one that is written, ...
        self.written: dict[int, Any] = {}  # ... and what ``written_in`` has of it
        self.defined: dict[Any, Any] = {}  # annotated for users -> annotated where it is defined
        self.seen: list[Any] = []  # the ops of the former

    def write(self) -> None:
        ops = operations_in(self.module)
        self.check(ops)
        arguments = {name: self.boundary(op, "arg_attrs") for name, op in self.functions.items()}
        results = {name: self.boundary(op, "res_attrs") for name, op in self.functions.items()}
        held = {i: self.of_op(op) for i, op in enumerate(ops)}
        every = [*arguments.values(), *results.values(), *held.values()]
        annotations = {id(one): one for group in every for one in group if one is not None}
        used = {one.sharding: None for one in annotations.values()}
        unknown = {
            name: list(ir.DenseI64ArrayAttr(op.attributes[UNKNOWN]))
            for name, op in self.declared.items()
            if UNKNOWN in op.attributes
        }
        places = {name: location(op) for name, op in self.declared.items()}
        self.grids = grids_of(self.shardings.meshes, used, places, unknown)
        for grid in self.grids:
            self.declare(grid)
        for name, function in self.functions.items():
            self.enter(function, arguments[name])
        for i, op in enumerate(ops):
            if op.name == "func.func":
                self.begin(op)
            if op.name in _CONSTRAINTS:
                self.constrain(op, held[i][0])
            elif op.name.startswith("shard."):
                self.spelling.respell(op)
            else:
                self.define(op, held[i])
        for name, function in self.functions.items():
            self.leave(function, results[name])
        for op in self.seen:
            if not is_used(op):
                op.erase()
        for op in self.declared.values():
            op.erase()
        attributes = self.module.operation.attributes
        if SPELLING in attributes:
            del attributes[SPELLING]

    @property
    def functions(self) -> dict[str, Any]:
        functions: dict[str, Any] = symbols(self.module, "func.func")
        return functions

    def check(self, ops: list[Operation]) -> None:
        """Raises ShardlogError for an op of sdy that the dialect has no word for."""
        for op in ops:
            if op.name.startswith("sdy.") and op.name not in (*_CONSTRAINTS, "sdy.mesh"):
                hint = "write the module in sdy, or the program of each device: shardlog partition --as shard"
                message = f"{self.spelling.dialect} has no op for {op.name}"
                raise ShardlogError(message, where=location(op), hint=hint)

    def boundary(self, function: FunctionOp, label: str) -> list[_Annotation | None]:
        """The annotations of the arguments or results of a function."""
        entries = boundary_attributes(function, label)
        return [
            self.annotation(_whole(entry), entry, function) if SHARDING in entry else None
            for entry in entries
        ]

    def of_op(self, op: Operation) -> list[_Annotation | None]:
        """The annotations of an op's results."""
        held = op.attributes
        if op.name in _CONSTRAINTS:
            return [self.annotation(held["sharding"], held, op)]
        labels = {*held}
        if SHARDING not in labels or not len(op.results):
            return []
        attribute, alone = held[SHARDING], labels.isdisjoint(_KEPT)
        if alone and attribute in self.read:
            return self.read[attribute]
        each = sdy.TensorShardingPerValueAttr(attribute).shardings
        annotations: list[_Annotation | None] = [self.annotation(sharding, held, op) for sharding in each]
        if alone:
            self.read[attribute] = annotations
        return annotations

    def annotation(self, attribute: ir.Attribute, held: Attributes, op: Operation) -> _Annotation:
        beside = {label: held[label] for label in _KEPT if label in held}
        sharding = with_partial(self.shardings.read(attribute), held, self.shardings)
        return _Annotation(sharding, beside, op)

    def declare(self, grid: MeshGrid) -> None:
        """Writes a grid."""
        old = self.declared[grid.name]
        attributes = grid.attributes()
        attributes |= {k: v for k, v in entries_of(old.attributes).items() if "." in k and k not in _OWN}
        self.op(f"{self.spelling.dialect}.{self.spelling.grid}", [], [], attributes, ir.InsertionPoint(old))

    def op(self, name: str, operands: list[Any], types: list[Any], attributes: Any, place: Any) -> Any:
        return ir.Operation.create(name, results=types, operands=operands, attributes=attributes, ip=place)

    def begin(self, function: FunctionOp) -> None:
        """Begins or goes on with a function."""
        self.function = function
        self.written = self.written_in.setdefault(text_of(function.attributes["sym_name"]), {})

    def shard(self, value: Any, annotation: _Annotation, place: Any, users: bool) -> Any:
        """Annotates a value. Returns the op, whose result is for the users that it is meant for."""
        return self.spelling.annotate(self.op, value, self.sharding(self.spec(annotation)), place, users)

    def sharding(self, spec: dict[str, Any]) -> Any:
        """A sharding, which a function has once, before all ops; or its attributes, where it is no value."""
        if not self.spelling.values:
            return spec["attributes"]
        written = self.written
        if id(spec) not in written:
            last = next(reversed(written.values()), None)
            begin = ir.InsertionPoint.at_block_begin(self.function.regions[0].blocks[0])
            place = begin if last is None else ir.InsertionPoint.after(last.owner)
            name = f"{self.spelling.dialect}.sharding"
            written[id(spec)] = self.op(name, [], [spec["type"]], spec["attributes"], place).results[0]
        return written[id(spec)]

    def spec(self, annotation: _Annotation) -> dict[str, Any]:
        """The content of an annotation, in the dialect's terms."""
        if id(annotation) not in self.specs_by_identity:
            key = annotation.sharding, *annotation.beside.items()
            if key not in self.specs:
                self.specs[key] = self.spelling.completed(self.new_spec(annotation))
            self.specs_by_identity[id(annotation)] = self.specs[key]
        return self.specs_by_identity[id(annotation)]

    def new_spec(self, annotation: _Annotation) -> dict[str, Any]:
        sharding, grid = annotation.sharding, self.grids[annotation.sharding.mesh]
        lists = [grid.numbers(dimension.axes) for dimension in sharding.dimensions]
        if ENTRIES in annotation.beside:
            lists = lists[: ir.IntegerAttr(annotation.beside[ENTRIES]).value]
        spec: dict[str, Any] = {
            "grid": grid.name,
            "lists": lists or [[]],  # LLVM reads no empty one
            "partial": (sharding.reduction, grid.numbers(sharding.unreduced)),
            "halo": annotation.beside.get(HALO),
            "offsets": annotation.beside.get(OFFSETS),
            "more": None,
        }
        if not self.spelling.values and (spec["halo"] or spec["offsets"]):
            message = f"{'halo sizes' if spec['halo'] else 'offsets of parts'} of a sharding on @{grid.name}"
            hint = "mesh of LLVM 19 has no words for them: write shard"
            raise ShardlogError(message, where=location(annotation.op), hint=hint)
        plain = all(d.closed and not d.priority for d in sharding.dimensions)
        carries = sharding.unreduced and not self.spelling.partial
        if carries and not is_writable(sharding.reduction):
            message = f"a partial result, {sharding.reduction}, of a sharding on @{grid.name}"
            hint = "shard has no words for it: write mesh"
            raise ShardlogError(message, where=location(annotation.op), hint=hint)
        if not plain or sharding.replicated or carries:
            spec["more"] = ir.StringAttr.get(self.shardings.text(sharding))
        return spec

    def define(self, op: ir.Operation, each: list[_Annotation | None]) -> None:
        """Annotates the results of an op, for it and for its users."""
        if each:
            self.annotate(op.results, each, ir.InsertionPoint.after(op))
        for label in (SHARDING, *_KEPT):
            if label in op.attributes and op.name not in _CONSTRAINTS:
                del op.attributes[label]

    def annotate(
        self, values: Sequence[Any], each: Sequence[_Annotation | None], place: ir.InsertionPoint
    ) -> None:
        """Annotates tensors where they are defined, and after that for their users: in the order in which
        these annotations are written again once they are read."""
        annotated = [
            (value, annotation, self.shard(value, annotation, place, users=False))
            for value, annotation in zip(values, each, strict=False)
            if annotation is not None and isinstance(value.type, ir.RankedTensorType)
        ]
        for value, annotation, defined in annotated:
            seen = self.shard(defined.results[0], annotation, place, users=True)
            value.replace_all_uses_except(seen.results[0], defined)
            self.defined[seen.results[0]] = defined.results[0]
            self.seen.append(seen)

    def constrain(self, op: ir.Operation, annotation: _Annotation | None) -> None:
        """Writes a constraint as an annotation for the users of a value."""
        assert annotation is not None
        value = op.operands[0]
        value = self.defined.get(value, value)
        annotated = self.shard(value, annotation, ir.InsertionPoint(op), users=True)
        op.results[0].replace_all_uses_with(annotated.results[0])
        op.erase()

    def enter(self, function: FunctionOp, arguments: list[_Annotation | None]) -> None:
        """Annotates the arguments of a function."""
        if not len(function.regions[0].blocks):
            return
        self.begin(function.operation)
        block = function.regions[0].blocks[0]
        self.annotate(block.arguments, arguments, ir.InsertionPoint.at_block_begin(block))

    def leave(self, function: FunctionOp, results: list[_Annotation | None]) -> None:
        """Annotates the values that a function returns, if they are sharded otherwise."""
        for label in ("arg_attrs", "res_attrs"):
            if label in function.attributes:
                entries = [entries_of(e, *_OF_ENDS) for e in boundary_attributes(function, label)]
                function.attributes[label] = ir.ArrayAttr.get([ir.DictAttr.get(e) for e in entries])
        if not len(function.regions[0].blocks):
            return
        self.begin(function.operation)
        block = function.regions[0].blocks[0]
        end = block.operations[-1].operation
        for i, (value, annotation) in enumerate(zip(end.operands, results, strict=False)):
            if annotation is not None and not self.is_annotated(value, annotation):
                end.operands[i] = self.shard(value, annotation, ir.InsertionPoint(end), users=True).results[0]

    def is_annotated(self, value: Value, annotation: _Annotation) -> bool:
        """Whether a value is annotated for its users alike."""
        return self.spelling.says(value, self.spec(annotation))


def _whole(entry: Attributes) -> ir.Attribute:
    """The sharding of an argument or a result, with axes that do not divide it: the dialects have those."""
    whole: ir.Attribute = entry[SHARDING]
    return ir.Attribute.parse(text_of(entry[UNEVEN])) if UNEVEN in entry else whole

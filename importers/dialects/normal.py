"""The normal form: all sharding information of the dialects is expressed in sdy.

A grid becomes a mesh whose axes are called by their numbers. An annotation of a value's definition becomes
the value's sharding. An annotation for users becomes a constraint. Everything that sdy cannot express becomes
an attribute beside it:

- ``shard.unknown``, on a mesh: the axes of unknown size, which have size 2 there;
- ``shard.halo``, ``shard.offsets``: as in the dialect;
- ``shard.partial``: a reduction that the sdy of this jaxlib lacks, as in ``product{"0"}``;
- ``shard.entries``: the number of dimensions of an annotation with fewer lists than dimensions;
- ``shard.required = false``: a hint; ``shard.for_users``: a constraint that does not apply to the definition.

Collectives on the parts of devices keep their names, in the newest spelling: ``shard.all_gather`` and so on.
The RFC's collectives take whole tensors, and become sdy's. ``shard.spelling`` is the spelling of the input.
"""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, sdy

from ...errors import ShardlogError
from ...program.carried import AXES, DYNAMIC, ENTRIES, HALO, OFFSETS, OPTION, PARTIAL, SAID, SPELLING, UNKNOWN
from ...program.function import location
from ...program.meshes import Mesh, symbol
from ...program.mlir.modules import (
    entries_of,
    is_used,
    operations_in,
    put_like,
)
from ...program.mlir.types import Operation, Value
from ...program.shardings import mesh_attribute
from ...program.signature import text_of
from .axes import GridAxes, axes_of
from .checks import check_collective, collectives
from .control import CONTROL, to_stablehlo_control
from .definitions import Definitions
from .formats import formats
from .grids import Grid, Spec, axis_lists, check_kind, counted, find, integers, kind_of, read_partial
from .marks import ANNOTATIONS, SHARDINGS
from .rfc import attributes_of, read_target, read_whole

_STAND_IN = 2  # for a size that is not known: axes of size 1 shard nothing
_OURS = ("shard.", "mesh.")
_GRIDS = ("shard.grid", "mesh.mesh", "mesh.cluster")
_ASKING = ("shard.get_sharding", "mesh.get_sharding")
_ENCODING = "#mesh.shard"
_SHARDING = re.compile(
    r'\s*(?:@(?P<grid>[\w$.-]+|"[^"]*")\s*,\s*)?(?P<lists>\[\s*(?:\[[\s\d,-]*\]\s*,?\s*)*\])\s*'
    r"(?:,\s*partial\s*=\s*(?P<partial>\w+\s*\[[\s\d,-]*\])\s*)?"
)
ENCODING = _ENCODING.encode()
_RFC = {"mesh_axis", "tensor_axis", "sharding"}  # the attributes of its annotations and collectives
_AXES_SAID = re.compile(r"(?:#mesh\.shard<|mesh_axis = |sharding = )([\[\]\s\d,]+)")
_OLD = {"mesh": "grid", "mesh_axes": "grid_axes"}
_NEW_NAMES = {
    "mesh.mesh_shape": "shard.grid_shape",
    "mesh.cluster_shape": "shard.grid_shape",
    "mesh.local_split": "shard.all_slice",
}


Labels = frozenset[str]  # of the attributes of an op


def to_normal_form(module: ir.Module, data: bytes, place: Callable[[str], str] = str) -> bool:
    """Brings a module into the normal form, in place. Returns whether it had anything of the dialects.
    ``data`` is its text, and ``place`` gives a place as the user knows it.

    Raises ShardlogError for invalid input.
    """
    normal = _Normal(module, ENCODING in data, place)
    with module.context, ir.Location.unknown():
        return normal.run()


@dataclass(frozen=True)
class _Meaning:
    """The meaning of an annotation: in sdy, for a value and for the only result of an op, and the attributes
    beside it."""

    spec: Spec
    sharding: ir.Attribute
    of_one: ir.Attribute
    beside: Mapping[str, ir.Attribute]


class _Normal:
    def __init__(self, module: ir.Module, encoded: bool, place: Callable[[str], str]) -> None:
        self.module, self.may_encode, self.place = module, encoded, place
        self.ops = operations_in(module)
        self.by_name: dict[str, list[Any]] = defaultdict(list)
        self.grids: dict[str, Grid] = {}
        self.named: dict[str, GridAxes] = {}  # of the axes of grids
        self.specs: dict[Any, Spec] = {}  # by the value of a sharding
        self.alike: dict[Any, Spec] = {}  # by the attributes of a sharding
        self.of_values: dict[Any, Spec] = {}  # by the value that is sharded so
        self.noted = set[str]()
        self.definitions = Definitions()
        self.meant: dict[Any, _Meaning] = {}  # by the meaning of an annotation, and a type
        self.fitting = set[Any]()  # kinds of ops that lack nothing

    def run(self) -> bool:
        for op in self.ops:
            self.by_name[op.name].append(op)
        ours = {name for name in self.by_name if name.startswith(_OURS)}
        encoded = self.may_encode and self.has_encodings(self.ops)
        if not ours and not encoded:
            return False
        spelling = self.spelling(ours, encoded)
        grids = self.called(_GRIDS)
        if spelling == "rfc" and not grids:
            grids = [self.assumed_cluster()]
        self.read(ours, grids, spelling, encoded)
        for op in grids:
            self.write_grid(op)
        self.finish_functions()
        self.module.operation.attributes[SPELLING] = ir.StringAttr.get(spelling)
        if spelling == "rfc":  # whose types and collectives may contradict themselves
            self.module.operation.verify()
        if not CONTROL.keys().isdisjoint(self.by_name):
            to_stablehlo_control(operations_in(self.module))
        if any(name.startswith("mhlo.") for name in self.by_name):
            _to_stablehlo(self.module)
        return True

    def called(self, names: Collection[str]) -> list[Any]:
        """The ops with some names, in order."""
        each = [self.by_name[name] for name in names if name in self.by_name]
        return each[0] if len(each) == 1 else [op for op in self.ops if op.name in names] if each else []

    def read(self, ours: set[str], grids: Sequence[Any], spelling: str, encoded: bool) -> None:
        """Reads grids, shardings, annotations and collectives: ops with the names ``ours``. Grids remain."""
        shardings, annotations, asking = map(self.called, (SHARDINGS, ANNOTATIONS, _ASKING))
        others = self.called(ours.difference(_GRIDS, SHARDINGS, ANNOTATIONS, _ASKING))
        for op in grids:
            self.look_at(op, self.read_grid)
        if annotations or shardings or spelling == "rfc":
            makers = self.called([name for name in self.by_name if name not in ANNOTATIONS])
            self.definitions = Definitions(makers, few=len(annotations) < len(makers) / 10)
        if encoded:
            self.read_encodings(self.ops)
        for op in shardings:
            self.look_at(op, self.read_sharding)
        for op in annotations:
            self.look_at(op, self.annotate)
        if spelling == "rfc":
            for op in self.called([name for name in self.by_name if not name.startswith((*_OURS, "sdy."))]):
                if "sharding" in op.attributes:
                    self.read_option(op)
        for op in others:
            self.look_at(op, self.read_collective, op.location)
        for op in reversed(annotations):
            op.erase()
        for op in (*asking, *shardings):
            if not is_used(op):
                op.erase()

    def finish_functions(self) -> None:
        """Takes the clusters off functions. A module that only declares grids gets one that does nothing."""
        functions = self.called(["func.func"])
        if not functions:
            with ir.InsertionPoint(self.module.body):
                empty: Any = func.FuncOp("main", ((), ()))
            with ir.InsertionPoint(empty.add_entry_block()):
                func.ReturnOp(())
        for op in functions:
            if "mesh_cluster" in op.attributes:
                del op.attributes["mesh_cluster"]

    def look_at(self, op: Any, read: Callable[[Any, Labels], None], place: Any = None) -> None:
        """Reads an op; a ``place`` is that of one that may be gone afterwards. Raises ShardlogError for one
        that generic form has with other attributes and operands than it has: MLIR does not look at ops that
        it does not know."""
        name = op.name
        labels = frozenset(op.attributes)
        if (kind := (name, labels, len(op.operands))) not in self.fitting:
            statement = None if _RFC & labels else formats().of(name)
            if statement is not None and (lacks := statement.lacks(labels, len(op.operands))):
                raise _unfitting(name, place or op.location, lacks)
            self.fitting.add(kind)
        try:
            read(op, labels)
        except (ValueError, IndexError, KeyError, RuntimeError):  # of MLIR's bindings
            has = "attributes, operands or results of other kinds than it takes"
            raise _unfitting(name, place or op.location, has) from None

    def spelling(self, names: set[str], encoded: bool) -> str:
        """The spelling that a module is in, of whose ops some names are of the dialects."""
        if encoded or names & {"mesh.cluster", "mesh.annotate"}:
            return "rfc"
        if any(name.startswith("mesh.") for name in names):
            return "mesh19"
        scatters = (op for name in names if "scatter" in name for op in self.by_name[name])
        old = any("scatter_axis" in op.attributes for op in scatters)
        return "shard22" if old else "shard"

    # ---- Grids ---------------------------------------------------------------------------------------------

    def read_grid(self, op: Operation, labels: Labels) -> None:
        name, where = text_of(op.attributes["sym_name"]), location(op)
        word = op.name.partition(".")[2]
        if op.parent is not None and op.parent.name != "builtin.module":
            hint = "declare it beside the functions, not in them"
            raise ShardlogError(f"{word} @{name} stands in {op.parent.name}", where=where, hint=hint)
        if name in self.grids:
            raise ShardlogError(
                f"{word} @{name} is declared twice", where=where, hint="give each a name of its own"
            )
        if "shape" in labels:
            given = integers(op.attributes["shape"])
            sizes = tuple(None if size == DYNAMIC else size for size in given)
        else:
            sizes = self.cluster_sizes(op, where)
        if not sizes:
            raise ShardlogError(f"{word} @{name} has no axes", where=where, hint="give it one axis at least")
        for axis, size in enumerate(sizes):
            if size is not None and size <= 0:
                hint = "a size is 1 or more, or ? where it is not known"
                raise ShardlogError(f"axis {axis} of {word} @{name} has size {size}", where=where, hint=hint)
        self.grids[name] = Grid(name, sizes, word)
        self.named[name] = axes_of(op.attributes.get(AXES), [size or _STAND_IN for size in sizes], where)

    def cluster_sizes(self, op: Operation, where: str) -> tuple[int | None, ...]:
        """The sizes of a cluster of the RFC. A missing size, or one that is not above 0, is unknown."""
        given = integers(op.attributes.get("dim_sizes"))
        (rank,) = integers(op.attributes["rank"]) if "rank" in op.attributes else (len(given),)
        if rank < 0 or rank > 1 << 10:
            raise ShardlogError(f"a cluster of rank {rank}", where=where, hint="give the number of its axes")
        if len(given) > rank:
            hint = f"give {rank}, or make the rank {len(given)}"
            raise ShardlogError(f"{len(given)} sizes for a cluster of rank {rank}", where=where, hint=hint)
        sizes = [size if size > 0 else None for size in given]
        return (*sizes, *(None,) * (rank - len(sizes)))

    def assumed_cluster(self) -> Any:
        """A cluster of unknown sizes, in a module that declares none, with the axes that it names."""
        axes_text = " ".join(_AXES_SAID.findall(str(self.module)))
        rank = max(map(int, re.findall(r"\d+", axes_text)), default=0) + 1
        self.note(f"no cluster is declared: one of {counted(rank, 'axis', 'axes')} is assumed", "-:1:1")
        held = {
            "sym_name": ir.StringAttr.get("cluster"),
            "rank": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), rank),
        }
        place = ir.InsertionPoint.at_block_begin(self.module.body)
        place_of_text = ir.Location.file("-", 1, 1)
        return ir.Operation.create("mesh.cluster", attributes=held, loc=place_of_text, ip=place)

    def write_grid(self, op: Any) -> None:
        """Replaces a grid by a mesh."""
        grid = self.grids[text_of(op.attributes["sym_name"])]
        mesh = Mesh(grid.name, self.named[grid.name].mesh.axes)
        mesh_op = sdy.MeshOp(grid.name, mesh_attribute(mesh), ip=ir.InsertionPoint(op), loc=op.location)
        if "sym_visibility" in op.attributes:
            mesh_op.operation.attributes["sym_visibility"] = op.attributes["sym_visibility"]
        unknown = [axis for axis, size in enumerate(grid.sizes) if size is None]
        if unknown:
            mesh_op.operation.attributes[UNKNOWN] = ir.DenseI64ArrayAttr.get(unknown)
        op.erase()

    # ---- Shardings -----------------------------------------------------------------------------------------

    def read_sharding(self, op: Operation, labels: Labels) -> None:
        """Reads a sharding. Those that say the same are one."""
        held, key = op.attributes, None
        if not len(op.operands):
            key = frozenset((label, held[label]) for label in labels)
        spec = self.alike.get(key)
        if spec is None:
            spec = self.sharding(op)
            if key is not None:
                self.alike[key] = spec
        self.specs[op.results[0]] = spec

    def sharding(self, op: Operation) -> Spec:
        """The meaning of a sharding."""
        held, where = op.attributes, location(op)
        name = held["grid"] if "grid" in held else held["mesh"]
        reduction, partial = read_partial(text_of(held["partial"])) if "partial" in held else ("sum", ())
        if "partial_axes" in held:
            partial, reduction = integers(held["partial_axes"]), kind_of(held.get("partial_type"))
        given = iter([*op.operands])
        offsets = self.numbers(held.get("static_sharded_dims_offsets"), given, where)
        halo = self.numbers(held.get("static_halo_sizes"), given, where)
        spec = Spec(
            ir.FlatSymbolRefAttr(name).value,
            axis_lists(held["split_axes"]),
            partial,
            reduction,
            halo,
            offsets,
            sdy_sharding=text_of(held[SAID]) if SAID in held else "",
        )
        grid = find(self.grids, spec.grid, where)
        spec.fit(grid, None, where)
        spec.check_offsets(grid, (), where)
        return spec

    def numbers(self, attribute: ir.Attribute, given: Iterator[Any], where: str) -> tuple[int, ...]:
        """Numbers, some given as operands. Constant operands are resolved."""
        numbers = list[int]()
        for number in integers(attribute):
            if number == DYNAMIC and (value := next(given, None)) is not None:
                owner = self.definitions.maker(value)
                constant = owner.attributes.get("value") if owner is not None and not owner.operands else None
                if isinstance(constant, ir.IntegerAttr):
                    number = constant.value
                else:
                    self.note("a size or an offset that is computed is taken for an unknown one", where)
            numbers.append(number)
        return tuple(numbers)

    def meaning(self, op: Operation, labels: Labels, type_: ir.Type) -> _Meaning:
        """The meaning of an annotation of a tensor of a type. Equal ones are read once."""
        key = None
        if "shard" in labels:
            key = op.attributes["shard"], type_
        elif SAID not in labels and op.name != "mesh.annotate":
            spec = self.specs.get(op.operands[1])
            key = None if spec is None else (id(spec), type_)
        if SAID not in labels and key in self.meant:
            return self.meant[key]
        spec = self.spec_of(op)
        sharding = self.attribute(spec)
        meaning = _Meaning(spec, sharding, sdy.TensorShardingPerValueAttr.get([sharding]), self.beside(spec))
        if SAID not in labels and key is not None:
            self.meant[key] = meaning
        return meaning

    def spec_of(self, op: Operation) -> Spec:
        """The sharding that an annotation says, for the tensor that it is of."""
        held, where = op.attributes, location(op)
        type_ = op.results[0].type
        rank = type_.rank if isinstance(type_, ir.RankedTensorType) else None
        if op.name == "mesh.annotate":
            lists = held.get("sharding")
            nested = isinstance(lists, ir.ArrayAttr) and all(isinstance(e, ir.ArrayAttr) for e in lists)
            if not nested and not str(lists).startswith(_ENCODING):
                hint = "give them, as in {sharding = [[0], [1]], required = true}"
                raise ShardlogError(
                    f"{op.name} has no list of axes for each dimension", where=where, hint=hint
                )
            spec = self.of_rfc(axis_lists(lists), rank, op, where)
        elif "shard" in held:
            spec = self.of_attribute(str(held["shard"]), rank, op, where)
        else:
            spec = self.sharding_of(op.operands[1], where)
        grid = find(self.grids, spec.grid, where)
        if rank is None:
            hint = "only tensors with a rank have shardings"
            raise ShardlogError(f"a {type_} is annotated", where=where, hint=hint)
        if spec.partial:
            check_kind(spec.reduction, collectives().kinds, where)
        fitted = spec.fit(grid, rank, where)
        if rank is not None:
            shape = [None if type_.is_dynamic_dim(i) else type_.get_dim_size(i) for i in range(rank)]
            fitted.check_halo(shape, where)
            fitted.check_offsets(grid, shape, where)
        return fitted

    def sharding_of(self, value: Value, where: str) -> Spec:
        """The sharding that a value is. Raises ShardlogError for one that is not known."""
        if value in self.specs:
            return self.specs[value]
        op = self.definitions.maker(value)
        if op is not None and op.name in _ASKING and op.operands[0] in self.of_values:
            return self.of_values[op.operands[0]]
        hint = "give it the result of shard.sharding, or the sharding of a value annotated before"
        raise ShardlogError("the sharding is not known here", where=where, hint=hint)

    def of_attribute(self, text: str, rank: int | None, op: Operation, where: str) -> Spec:
        """The sharding that ``#mesh.shard<@m, [[0]], partial = max[1]>`` says, or one without a grid."""
        inside = text[text.index("<") + 1 : text.rindex(">")]
        match = _SHARDING.fullmatch(inside)
        if match is None:
            hint = "its form is <@mesh, [[0], [1]], partial = sum[2]>; the RFC names no mesh"
            raise ShardlogError(f"no sharding: <{inside}>", where=where, hint=hint)
        lists = axis_lists(match["lists"])
        if match["grid"] is None:
            return self.of_rfc(lists, rank, op, where)
        reduction, partial = read_partial(match["partial"] or "")
        more = text_of(op.attributes[SAID]) if SAID in op.attributes else ""
        return Spec(match["grid"].strip('"'), lists, partial, reduction, sdy_sharding=more)

    def of_rfc(self, lists: tuple[tuple[int, ...], ...], rank: int | None, op: Operation, where: str) -> Spec:
        """The sharding of the RFC, whose entry behind the last dimension says along which axes the tensor is
        a partial sum."""
        grid = self.cluster_of(op, where)
        if rank is not None and len(lists) == rank + 1:
            return Spec(grid, lists[:rank], lists[rank])
        return Spec(grid, lists)

    def cluster_of(self, op: Operation, where: str) -> str:
        """The name of the cluster of an op of the RFC: the cluster of its function, or else the only
        cluster."""
        around = op.operation if op.operation.name == "func.func" else op.operation.parent
        while around is not None:
            if "mesh_cluster" in around.attributes:
                return str(ir.FlatSymbolRefAttr(around.attributes["mesh_cluster"]).value)
            around = around.parent
        if len(self.grids) == 1:
            return next(iter(self.grids))
        clusters = ", ".join(f"@{name}" for name in self.grids) or "none"
        hint = f"name it at the function: attributes {{mesh_cluster = @name}}; there are: {clusters}"
        raise ShardlogError(
            "the module has several clusters, or none, and the function names none", where=where, hint=hint
        )

    def annotate(self, op: Any, labels: Labels) -> None:
        """Replaces an annotation by one of sdy on the same value."""
        held, value, result = op.attributes, op.operands[0], op.result
        meaning = self.meaning(op, labels, type_ := result.type)
        users, beside = "annotate_for_users" in labels, meaning.beside
        if "as_result" in labels:
            users = not ir.BoolAttr(held["as_result"]).value
        if "required" in labels and not ir.BoolAttr(held["required"]).value:
            beside = {**beside, "shard.required": ir.BoolAttr.get(False)}
        if users or not self.definitions.shard(value, meaning.sharding, beside, meaning.of_one):
            attributes = {"sharding": meaning.sharding, **beside}
            if users:
                attributes["shard.for_users"] = self.unit
            place, name = ir.InsertionPoint(op), "sdy.sharding_constraint"
            annotation = ir.Operation.create(name, [type_], [value], attributes, loc=op.location, ip=place)
            value = annotation.result
            self.definitions.add([annotation])
        result.replace_all_uses_with(value)
        self.of_values[value] = meaning.spec

    def read_option(self, op: Operation) -> None:
        """Reads the sharding option of an op, which the RFC calls its sharding."""
        lists, where = op.attributes["sharding"], location(op)
        if not isinstance(lists, ir.ArrayAttr) or not all(isinstance(each, ir.ArrayAttr) for each in lists):
            return  # an attribute of others
        name, loops = self.cluster_of(op, where), [[*integers(axes)] for axes in lists]
        find(self.grids, name, where).check([axis for axes in loops for axis in axes], where)
        op.attributes[OPTION] = ir.StringAttr.get(f"@{name}{loops}")

    def erase(self, op: Operation) -> None:
        """Erases an op."""
        for value in op.results:
            self.definitions.forget(value)
            self.of_values.pop(value, None)
        op.erase()

    def attribute(self, spec: Spec) -> ir.Attribute:
        """The sharding of sdy; all its dimensions are closed."""
        if spec.sdy_sharding:
            return self.sdy_attribute(spec)
        names = self.named[spec.grid].text
        dimensions = ", ".join("{" + names(axes) + "}" for axes in spec.axes)
        text = f"#sdy.sharding<{symbol(spec.grid)}, [{dimensions}]"
        if spec.partial and spec.reduction in self.reductions:
            kind = "" if spec.reduction == "sum" else spec.reduction
            text += f", unreduced={kind}{{{names(sorted(spec.partial))}}}"
        return ir.Attribute.parse(text + ">")

    def sdy_attribute(self, spec: Spec) -> ir.Attribute:
        """The sharding of sdy that stands beside an annotation as text."""
        try:
            attribute = ir.Attribute.parse(spec.sdy_sharding)
            sdy.TensorShardingAttr(attribute)
        except (ir.MLIRError, ValueError):
            hint = "leave it out, and the annotation alone counts"
            raise ShardlogError(f"{SAID} is not a sharding: {spec.sdy_sharding}", hint=hint) from None
        return attribute

    @cached_property
    def unit(self) -> ir.Attribute:
        return ir.UnitAttr.get()

    @cached_property
    def reductions(self) -> tuple[str, ...]:
        """The reductions of unreduced axes that the sdy of this jaxlib has."""
        return ("sum", "max", "min") if hasattr(sdy.TensorShardingAttr, "reduction_op") else ("sum",)

    def beside(self, spec: Spec) -> dict[str, ir.Attribute]:
        """The attributes for everything that sdy cannot express."""
        attributes = dict[str, ir.Attribute]()
        if spec.entries is not None:
            attributes[ENTRIES] = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), spec.entries)
        if spec.halo:
            attributes[HALO] = ir.DenseI64ArrayAttr.get(spec.halo)
        if spec.offsets:
            attributes[OFFSETS] = ir.DenseI64ArrayAttr.get(spec.offsets)
        if spec.partial and spec.reduction not in self.reductions:
            axes = self.named[spec.grid].text(sorted(spec.partial))
            attributes[PARTIAL] = ir.StringAttr.get(f"{spec.reduction}{{{axes}}}")
        return attributes

    # ---- Encodings of the RFC ------------------------------------------------------------------------------

    def has_encodings(self, ops: list[Operation]) -> bool:
        """Whether types of tensors say how these are sharded."""
        return any(
            _encoding(value.type) is not None
            for op in ops
            for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.arguments))
        ) or any(op.name == "func.func" and _ENCODING in str(op.attributes["function_type"]) for op in ops)

    def read_encodings(self, ops: list[Operation]) -> None:
        """Turns encodings of types into shardings, and removes them."""
        for op in ops:
            for value in op.results:
                if op.name in ANNOTATIONS:
                    value.set_type(_plain(value.type))
                else:
                    self.read_encoding(value, op)
            for block in (block for region in op.regions for block in region.blocks):
                for value in block.arguments:
                    self.read_encoding(value, op)
            if op.name == "func.func":
                self.read_function_type(op)

    def read_encoding(self, value: Value, op: Operation) -> None:
        if (text := _encoding(value.type)) is not None:
            spec = self.of_values[value] = self.encoded(text, value.type, op)
            value.set_type(_plain(value.type))
            self.definitions.shard(value, self.attribute(spec), self.beside(spec))

    def read_function_type(self, op: Operation) -> None:
        type_: Any = ir.TypeAttr(op.attributes["function_type"]).value
        for number, result in enumerate(type_.results):
            if (text := _encoding(result)) is not None:
                spec = self.encoded(text, result, op)
                attributes = self.attribute(spec), self.beside(spec)
                self.definitions.shard_boundary(op.opview, "res_attrs", number, *attributes)
        plain = ir.FunctionType.get([_plain(t) for t in type_.inputs], [_plain(t) for t in type_.results])
        op.attributes["function_type"] = ir.TypeAttr.get(plain)

    def encoded(self, text: str, type_: Any, op: Any) -> Spec:
        where = location(op)
        spec = self.of_attribute(text, type_.rank, op, where)
        return spec.fit(find(self.grids, spec.grid, where), type_.rank, where)

    # ---- Collectives ---------------------------------------------------------------------------------------

    def read_collective(self, op: Operation, labels: Labels) -> None:
        """Gives a collective its newest spelling, and checks it."""
        where = location(op)
        if op.name == "mesh.size":
            self.read_size(op, where)
            return
        if op.name.startswith("mesh.") and _RFC & labels:
            self.read_rfc(op, where)
            return
        newest = self.respelled(op)
        name = newest.name
        if name == "shard.shard_shape" or not collectives().knows(name):
            if "grid" in newest.attributes:
                find(self.grids, ir.FlatSymbolRefAttr(newest.attributes["grid"]).value, where)
            return
        grid = find(self.grids, ir.FlatSymbolRefAttr(newest.attributes["grid"]).value, where)
        check_collective(newest, grid)

    def respelled(self, op: Operation) -> Any:
        """An op in the newest spelling: itself, or another one in its place."""
        name = _new_name(op)
        renamed = _OLD | collectives().renamed.get(name, {})
        held = {renamed.get(label, label): each for label, each in entries_of(op.attributes).items()}
        if "reduction" in held:
            held["reduction"] = _reduction(kind_of(held["reduction"]))
        if name == op.name and not set(renamed) & set(op.attributes):
            return op
        respelled = put_like(op, name, held)
        self.erase(op)
        return respelled

    def read_size(self, op: Operation, where: str) -> None:
        """The size of an axis of a cluster: a constant where it is known."""
        grid = find(self.grids, self.cluster_of(op, where), where)
        axes = integers(op.attributes["axis"])
        grid.check(axes, where)
        if (size := grid.devices(axes)) is None:
            held = {"grid": ir.FlatSymbolRefAttr.get(grid.name), "axes": ir.DenseI16ArrayAttr.get([*axes])}
            put_like(op, "shard.grid_shape", held)
        else:
            put_like(op, "arith.constant", {"value": ir.IntegerAttr.get(op.results[0].type, size)})
        self.erase(op)

    def read_rfc(self, op: Operation, where: str) -> None:
        """Translates a collective of the RFC to sdy's."""
        name = _new_name(op)
        grid = find(self.grids, self.cluster_of(op, where), where)
        reduction = kind_of(op.attributes.get("reduction"))
        value, type_ = op.operands[0], op.results[0].type
        before = self.of_values.get(value)
        if name not in collectives().whole or value.type != type_ or reduction not in self.reductions:
            message = f"{op.name} of {value.type} that gives {type_}"
            if value.type == type_:
                message = f"{op.name} with reduction {reduction} is not known"
            if name not in collectives().whole:
                message = f"{op.name} of whole tensors is not known"
            hint = f"known are, of whole tensors: {', '.join(collectives().whole)}; as sums"
            raise ShardlogError(message, where=where, hint=hint)
        if "sharding" in op.attributes:
            target = self.of_rfc(axis_lists(op.attributes["sharding"]), type_.rank, op, where)
            target = target.fit(grid, type_.rank, where)
            before = before or replace(target, axes=((),) * type_.rank)
            whole = read_target(op, name, before, target, where)
        else:
            whole, note = read_whole(op, name, grid, reduction, where)
            if note:
                self.note(note, where)
        if not whole.of and not whole.axes:  # it does nothing
            op.results[0].replace_all_uses_with(value)
            self.erase(op)
            return
        if before is None:
            before = self.of_values[value] = whole.before(type_.rank, grid.name)
            self.definitions.shard(value, self.attribute(before), {})
        after = whole.after(before)
        given = self.of_values.get(op.results[0])
        if given is not None and (given.axes, set(given.partial)) != (after.axes, set(after.partial)):
            message = f"{op.name} gives {after.lists()}, not {given.lists()} as its type says"
            raise ShardlogError(
                message,
                where=where,
                hint="a collective adds its axes to its operand's, or removes them",
            )
        held = {label: op.attributes[label] for label in op.attributes if "." in label}
        held |= attributes_of(whole, type_.rank) | {"out_sharding": self.attribute(after)}
        for label in ("sdy.sharding", ENTRIES):
            held.pop(label, None)
        if reduction != "sum":
            number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), self.reductions.index(reduction))
            held["reduction_op"] = number
        collective = put_like(op, collectives().whole[name][0], held)
        self.erase(op)
        self.of_values[collective.results[0]] = after
        self.definitions.add([collective.operation])

    def note(self, message: str, where: str) -> None:
        """Warns about an ambiguous reading, once per kind."""
        if message not in self.noted:
            self.noted.add(message)
            warnings.warn(f"{message} (at {self.place(where)})", stacklevel=2)


def _unfitting(name: str, place: ir.Location, has: str) -> ShardlogError:
    """The error that an op is none of its kind."""
    statement = formats().of(name)
    hint = f"its form is: {name} {statement.texts[0]}" if statement is not None else ""
    where = str(place).removeprefix("loc(").removesuffix(")").replace('"', "")
    return ShardlogError(f"{name} has {has}", where=where, hint=hint)


def _to_stablehlo(module: ir.Module) -> None:
    """Turns ops of mhlo, which the RFC uses, into their counterparts in StableHLO."""
    from jaxlib.mlir._mlir_libs import _mlirHlo
    from jaxlib.mlir.passmanager import PassManager

    _mlirHlo.register_mhlo_passes()
    PassManager.parse("builtin.module(hlo-legalize-to-stablehlo)").run(module.operation)


def _new_name(op: Operation) -> str:
    return str(_NEW_NAMES.get(op.name, op.name.replace("mesh.", "shard.", 1)))


def _reduction(kind: str) -> ir.Attribute:
    return ir.Attribute.parse(f"#shard<partial {kind}>")


def _encoding(type_: ir.Type) -> str | None:
    """How a type says that its tensors are sharded."""
    if not isinstance(type_, ir.RankedTensorType) or type_.encoding is None:
        return None
    text = str(type_.encoding)
    return text if text.startswith(_ENCODING) else None


def _plain(type_: Any) -> Any:
    """A type without sharding information."""
    if _encoding(type_) is None:
        return type_
    return ir.RankedTensorType.get(type_.shape, type_.element_type)

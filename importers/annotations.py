"""Annotations and meshes that a user gives beside the module."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError, closest
from ..notations.marks import may_have_strings
from ..program.carried import SPELLING, UNKNOWN
from ..program.function import RESULT_SHARDING
from ..program.meshes import Mesh, symbol
from ..program.mlir.diagnostics import explain
from ..program.mlir.modules import boundary_attributes, main_function, symbols, with_attributes
from ..program.mlir.places import argument_path, result_path
from ..program.mlir.types import FunctionOp, Operation
from ..program.shardings import changed, mesh_attribute
from .dialects.marks import may_have_shardings, may_have_statements
from .origins import drop_origins
from .sources.nesting import open_module
from .sources.text import Text
from .sources.vetting import risk
from .specs import NOTATION, dimensions, is_spec

_NAME = r'(?:[^\s=,:"@]+|"(?:[^"\\]|\\.)*")'
_AXIS = rf"{_NAME}\s*=\s*\d+"
_MESH = re.compile(rf"\s*(?:@?(?P<name>\w+)\s*:)?\s*(?P<axes>{_AXIS}(?:\s*,\s*{_AXIS})*)\s*")
_SIZES = re.compile(r"\s*@?(?P<name>[\w$.-]+)\s*=\s*(?P<sizes>\d+(?:x\d+)*)\s*")
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
# A value, and a sharding in brackets; quoted parts of a value's path may have anything in them.
_ANNOTATION = re.compile(
    r"""\s*(?P<value>(?:[^='"\s]|'[^']*'|"[^"]*")(?:[^='"]|'[^']*'|"[^"]*")*?)\s*=\s*(?P<sharding>(?:[\[<]|"""
    + NOTATION
    + r""").*\S)\s*""",
    re.DOTALL,
)


def to_sdy(module: ir.Module, text: Text, mesh: str | None, where: str = "") -> bool:
    """Converts a module, in place, to the form in which values and ops are numbered and named: with the given
    mesh, with sdy's shardings instead of GSPMD's and XLA's strings, without an outer module, and without
    notes on the origins of other shardings. Returns whether the module changed. Errors in the mesh are at
    ``where``, or else at the option --mesh."""
    with module.context, ir.Location.unknown():
        changed = open_module(module) | drop_origins(module, text.data) | (mesh is not None)
        from_xla = may_have_strings(text.data) and _from_strings(module)
        if mesh is not None:
            replace_mesh(module, mesh, where)
        from_gspmd = b"mhlo.sharding" in text.data and not from_xla
        if from_gspmd:
            from ..notations.gspmd.read import read_gspmd

            read_gspmd(module)
    of_devices = may_have_statements(text.data) and _from_devices(module, text)
    return changed or from_xla or from_gspmd or of_devices


def _from_strings(module: ir.Module) -> bool:
    """Reads XLA's strings; returns whether there were any."""
    from ..notations.frontend_attributes import read_frontend_attributes

    return read_frontend_attributes(module)


def _from_devices(module: ir.Module, text: Text) -> bool:
    """Turns the program of one device or process into one for all; returns whether it was one."""
    from .dialects.local import is_of_device, to_global
    from .dialects.messages import calls_to_global, has_calls

    if of_devices := may_have_shardings(text.data) and is_of_device(module):
        to_global(module)
    if of_processes := b"mpi." in text.data and has_calls(module):
        calls_to_global(module)
    return of_devices or of_processes


def replace_mesh(module: ir.Module, text: str, where: str = "") -> None:
    """Replaces the mesh of the module by that in ``text`` (``data=2,model=4``). Errors are at ``where``, or
    else at the option --mesh.

    A module with several meshes needs the name of one: ``name: data=2,model=4``. Quote names that are not
    words. The axes of a grid of MLIR's sharding dialects are sized by ``grid=2x3``.
    """
    where = where or f"--mesh '{text}'"
    if _set_sizes(module, text, where):
        return
    name, axes = _mesh_of(text, where)
    count = prod(size for _, size in axes)
    if count >= 1 << 31:
        raise ShardlogError(
            f"the mesh has {count:,} devices", where=where, hint="a mesh has at most 2,147,483,647"
        )
    attribute = mesh_attribute(Mesh("", axes))
    old = symbols(module, "sdy.mesh")
    if not old:
        sdy.MeshOp(name or "mesh", attribute, ip=ir.InsertionPoint.at_block_begin(module.body))
        return
    usual = usual_meshes(old)
    if name is None and len(usual) > 1:
        hint = f"name one, as in '{usual[0]}: {text.strip()}'; {closest('', usual)}"
        raise ShardlogError(f"the module has {len(usual)} meshes", where=where, hint=hint)
    if name is not None and name not in old:
        raise ShardlogError(f"the module has no mesh {symbol(name)}", where=where, hint=closest(name, old))
    before = old[name or usual[0]].attributes["mesh"]
    for op in [op for op in old.values() if op.attributes["mesh"] == before] if name is None else [old[name]]:
        op.attributes["mesh"] = attribute
        for label in (UNKNOWN, "stablehlo.mesh"):
            if label in op.attributes:
                del op.attributes[label]
    if "mhlo.num_partitions" in module.operation.attributes:
        devices = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
        module.operation.attributes["mhlo.num_partitions"] = devices
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        message, _ = explain(error, "")
        raise ShardlogError(
            f"the shardings of the module do not fit this mesh: {message}",
            where=where,
            hint="keep the names of the axes that the module uses",
        ) from None


def _mesh_of(text: str, where: str) -> tuple[str | None, tuple[tuple[str, int], ...]]:
    """The name of a mesh in a text, if it has one, and its axes with their sizes."""
    match = _MESH.fullmatch(text)
    try:
        text.encode()
        entries = re.findall(rf"({_NAME})\s*=\s*(\d+)", match["axes"] if match else "")
        axes = [(_unquoted(name), size) for name, size in entries]
    except UnicodeError:
        raise ShardlogError("names must be UTF-8", where=where) from None
    if not match:
        raise ShardlogError("not a mesh", where=where, hint="expected axes with sizes, as in data=2,model=4")
    names = [name for name, _ in axes]
    for name, size in axes:
        if names.count(name) > 1:
            raise ShardlogError(f"the axis {name} is listed twice", where=where, hint="name every axis once")
        if len(size) > 10 or not 0 < int(size) < 1 << 31:
            raise ShardlogError(
                f"the axis {name} has size {size}", where=where, hint="expected a number of devices"
            )
    return match["name"], tuple((name, int(size)) for name, size in axes)


def _set_sizes(module: ir.Module, text: str, where: str) -> bool:
    """Gives a mesh that was a grid sizes for its axes, as ``g=2x3`` says. Returns whether the text does."""
    match, meshes = _SIZES.fullmatch(text), symbols(module, "sdy.mesh")
    if match is None or SPELLING not in module.operation.attributes or match["name"] not in meshes:
        return False
    op = meshes[match["name"]]
    axes = [axis.name for axis in map(sdy.MeshAxisAttr, sdy.MeshAttr(op.attributes["mesh"]).axes)]
    sizes = match["sizes"].split("x")
    if len(sizes) != len(axes):
        message, hint = f"{len(sizes)} sizes for a grid of {len(axes)} axes", "give one for each axis"
        raise ShardlogError(message, where=where, hint=hint)
    pairs = ",".join(f"{axis}={size}" for axis, size in zip(axes, sizes, strict=True))
    replace_mesh(module, f"{match['name']}: {pairs}" if match["name"].isidentifier() else pairs)
    return True


def usual_meshes(meshes: Mapping[str, Any]) -> list[str]:
    """The candidates where no mesh is named: the meshes with axes, if there are any; of equal ones the first.

    JAX declares others for values on one device or none, and another equal one for ``jax.shard_map``.
    """
    first = dict[ir.Attribute, str]()
    for name, op in meshes.items():
        first.setdefault(op.attributes["mesh"], name)
    distinct = [*first.values()]
    return [name for name in distinct if sdy.MeshAttr(meshes[name].attributes["mesh"]).axes] or distinct


def _unquoted(name: str) -> str:
    """A name that is given as a word or as a string of MLIR (see ``quoted``)."""
    if not name.startswith('"'):
        return name

    def char(match: re.Match[bytes]) -> bytes:
        return bytes([int(match[1], 16)]) if len(match[1]) == 2 else match[1]

    return _ESCAPE.sub(char, name[1:-1].encode()).decode()


class Targets:
    """The tensors that can be annotated, by name: values of the main function as MLIR prints them, its
    arguments and results by JAX's paths, its results as ``result#0``. With the ``data`` that a module of
    MLIR's sharding dialects is read from, values have the names of that text."""

    def __init__(self, module: ir.Module, data: bytes = b"") -> None:
        declared = symbols(module, "func.func")
        functions = {name: op for name, op in declared.items() if op.regions[0].blocks}
        self._module, self._data = module, data
        self.main = main = functions[main_function(functions)]
        self.results: Sequence[ir.Type] = list(main.type.results)
        results = range(len(self.results))
        self._paths: dict[str, ir.Value[Any] | int] = {f"result#{i}": i for i in results}
        self._paths |= {path: i for i in results if (path := result_path(main, i))}
        self._paths |= {path: a for a in main.arguments if (path := argument_path(a.location))}

    @cached_property
    def _values(self) -> dict[str, ir.Value[Any]]:
        return _values(self._module, self.main, self._data)

    @cached_property
    def boundary(self) -> dict[str, list[ir.Attribute]]:
        """The attributes of the function's arguments and results, which are read once: there may be many."""
        return {label: boundary_attributes(self.main, label) for label in ("arg_attrs", "res_attrs")}

    def forget(self) -> None:
        """Reads the attributes of the boundary again when they are next asked for."""
        self.__dict__.pop("boundary", None)

    def find(self, name: str, where: str) -> ir.Value[Any] | int:
        """The value with a name, or the number of a result of the function.

        Raises ShardlogError if there is none.
        """
        if name in self._paths:
            return self._paths[name]
        if name in self._values:
            return self._values[name]
        names = self._values if name.startswith("%") else {**self._paths, **self._values}
        raise ShardlogError(f"there is no value {name}", where=where, hint=closest(name, names))

    def annotated(self, text: str) -> tuple[ir.Value[Any] | int, str]:
        """What an annotation is about (see ``find``), and the text of its sharding.

        Raises ShardlogError for a malformed text, and if there is no such value.
        """
        where = f"--annotate '{text}'"
        match = _ANNOTATION.fullmatch(text)
        if not match:
            hint = """expected a value and its sharding, as in %arg0=[{"data"}, {}] or %arg0=P('data')"""
            raise ShardlogError("not an annotation", where=where, hint=hint)
        return self.find(match["value"], where), match["sharding"]

    def meshes(self) -> list[tuple[tuple[str, int], ...]]:
        """The axes of the module's meshes, with their sizes."""
        meshes = [sdy.MeshAttr(op.attributes["mesh"]) for op in symbols(self._module, "sdy.mesh").values()]
        return [tuple((axis.name, axis.size) for axis in map(sdy.MeshAxisAttr, mesh.axes)) for mesh in meshes]

    def argument(self, number: int) -> str:
        """A name of an argument: its path, or as MLIR prints it."""
        value = self.main.arguments[number]
        path = argument_path(value.location)
        return path if self._paths.get(path) == value else value.get_name()

    def rank(self, name: str, where: str) -> int:
        """The rank of a value. Raises like ``find``, and for values that are not ranked tensors."""
        target = self.find(name, where)
        type_ = self.results[target] if isinstance(target, int) else target.type
        if not isinstance(type_, ir.RankedTensorType):
            raise ShardlogError(f"{name} is not a tensor but a {type_}", where=where)
        return type_.rank


def apply_annotations(module: ir.Module, annotations: Sequence[str], targets: Targets) -> None:
    """Annotates values of the main function: ``%name=[{"axis"}, {}]`` or ``%name=<@mesh, [{"axis"}, {}]>``.

    ``targets`` are those of the module.
    """
    undo = [_apply(module, targets, text) for text in annotations]
    try:
        module.operation.verify()
    except ir.MLIRError:
        # Which of them is wrong shows where they come one by one; this takes its time in large modules.
        for back in reversed(undo):
            back()
        targets.forget()
        for text in annotations:
            _apply(module, targets, text)
            _verify(module, f"--annotate '{text}'")


def _verify(module: ir.Module, where: str) -> None:
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        message, hint = explain(error, _declared(module))
        raise ShardlogError(message, where=where, hint=hint) from None


def _declared(module: ir.Module) -> str:
    """The meshes of a module as it declares them."""
    meshes = symbols(module, "sdy.mesh").items()
    return "\n".join(f"sdy.mesh {symbol(mesh)} = {op.attributes['mesh']}" for mesh, op in meshes)


def _apply(module: ir.Module, targets: Targets, text: str) -> Callable[[], None]:
    """Annotates a value as a text says; returns a function that undoes it."""
    where = f"--annotate '{text}'"
    target, sharding_text = targets.annotated(text)
    type_: Any = target.type if isinstance(target, ir.Value) else targets.results[target]
    rank = type_.rank if isinstance(type_, ir.RankedTensorType) else None
    sharding = parse_sharding(module, sharding_text, where, rank)
    return _annotate(targets, target, sharding, where)


def _values(module: ir.Module, main: FunctionOp, data: bytes) -> dict[str, ir.Value[Any]]:
    """The values of a function by name: as MLIR prints them, or as in the text whose normal form the module
    is."""
    state = ir.AsmState(module.operation)
    numbered = list[ir.Value[Any]]()

    def walk(region: ir.Region) -> None:
        for block in region.blocks:
            numbered.extend(block.arguments)
            for op in block.operations:
                numbered.extend(op.results)
                for inner in op.regions:
                    walk(inner)

    walk(main.regions[0])
    values = {value.get_name(state): value for value in numbered}  # regions may use a name again
    if not may_have_shardings(data):
        return values
    from .dialects.names import names_of

    if (named := names_of(data, module)(main)) is not None:
        values = dict(zip(named.of, numbered, strict=True))
        values |= {name: numbered[number] for name, number in named.also.items()}
    return values


def parse_sharding(module: ir.Module, sharding: str, where: str, rank: int | None = None) -> ir.Attribute:
    """The attribute that ``[{"data"}, {}]``, ``<@mesh, [{"data"}, {}]>`` or ``P('data', None)`` says, in the
    current context; of a ``P`` with fewer entries than the ``rank``, the other dimensions have no axes.

    Raises ShardlogError, with ``where`` for its place, where that is no sharding.
    """
    if is_spec(sharding):
        sharding = dimensions(sharding, where, rank)
    if sharding.startswith("["):
        meshes = usual_meshes(symbols(module, "sdy.mesh"))
        if not meshes:
            raise ShardlogError(
                "the module has no mesh", where=where, hint="give it one, as in --mesh data=2,model=4"
            )
        if len(meshes) > 1:
            hint = f"name one of them, as in <{symbol(meshes[0])}, [...]>; {closest('', meshes)}"
            raise ShardlogError(f"the module has {len(meshes)} meshes", where=where, hint=hint)
        sharding = f"<{symbol(meshes[0])}, {sharding}>"
    hint = """expected one {...} for each dimension, as in [{"data", ?}, {}]"""
    try:
        if fault := risk(sharding.encode()):
            raise ShardlogError("not a sharding", where=where, hint=fault[1])
        attribute = ir.Attribute.parse(whole := f"#sdy.sharding{sharding}")
    except UnicodeEncodeError:  # stand-ins for bytes that are not text
        raise ShardlogError("not a sharding: it is not UTF-8", where=where, hint=hint) from None
    except ir.MLIRError as error:
        message, more = explain(error, whole)
        raise ShardlogError(f"not a sharding: {message}", where=where, hint=more or hint) from None
    if not sdy.TensorShardingAttr.isinstance(attribute):
        raise ShardlogError("not a sharding", where=where, hint=hint)
    return _in_order(module, attribute)


def _in_order(module: ir.Module, attribute: ir.Attribute) -> ir.Attribute:
    """A sharding with its unreduced axes in the order of the mesh, which sdy asks for: they are a set."""
    sharding: Any = sdy.TensorShardingAttr(attribute)
    axes = [sdy.AxisRefAttr(axis) for axis in sharding.unreduced_axes]
    mesh = symbols(module, "sdy.mesh").get(getattr(sharding.mesh_or_ref, "value", ""))
    if len(axes) < 2 or mesh is None:
        return attribute
    order = [axis.name for axis in map(sdy.MeshAxisAttr, sdy.MeshAttr(mesh.attributes["mesh"]).axes)]
    places = {name: place for place, name in enumerate(order)}
    axes.sort(key=lambda axis: places.get(axis.name, -1))  # parts of an axis are not changed
    return changed(sharding, unreduced_axes=axes)


def valid_sharding(module: ir.Module, sharding: str, where: str, rank: int | None = None) -> ir.Attribute:
    """Like ``parse_sharding``; also raises ShardlogError for unknown meshes and axes, duplicate axes, and
    invalid sub-axes."""
    attribute = parse_sharding(module, sharding, where, rank)
    type_ = f"tensor<{'1x' * len(sdy.TensorShardingAttr(attribute).dimension_shardings)}f32>"
    declared = _declared(module)
    try:
        ir.Module.parse(f"{declared}\nfunc.func private @f({type_} {{sdy.sharding = {attribute}}})")
    except ir.MLIRError as error:
        message, hint = explain(error, declared)
        raise ShardlogError(message.removeprefix(_OF_ARGUMENT), where=where, hint=hint) from None
    return attribute


_OF_ARGUMENT = "argument 0 of func.func: "


def _annotate(
    targets: Targets, target: ir.Value[Any] | int, sharding: ir.Attribute, where: str
) -> Callable[[], None]:
    """Gives a value or a result of the function a sharding; returns a function that undoes it."""
    if isinstance(target, int):
        return _set(targets.main, "res_attrs", _entry(targets, "res_attrs", target, sharding))
    owner: Any = target.owner
    if isinstance(owner, ir.Block):
        if owner != targets.main.regions[0].blocks[0]:
            raise ShardlogError(
                "an argument of a region has no sharding of its own",
                where=where,
                hint="annotate the result of the op around it",
            )
        number = ir.BlockArgument(target).arg_number
        return _set(targets.main, "arg_attrs", _entry(targets, "arg_attrs", number, sharding))
    for label in RESULT_SHARDING:
        if owner.operation.name.startswith("sdy.") and label in owner.attributes:
            return _set(owner, label, sharding)
    return _set(owner, "sdy.sharding", _per_value(owner, ir.OpResult(target).result_number, sharding))


def _set(op: Operation, name: str, attribute: ir.Attribute) -> Callable[[], None]:
    before = op.attributes.get(name)
    op.attributes[name] = attribute

    def back() -> None:
        if before is None:
            del op.attributes[name]
        else:
            op.attributes[name] = before

    return back


def _entry(targets: Targets, name: str, number: int, sharding: ir.Attribute) -> ir.Attribute:
    """The attributes of a function's arguments or results with a sharding for one of them."""
    entries = targets.boundary[name]
    entries[number] = with_attributes(entries[number], {"sdy.sharding": sharding})
    array: ir.Attribute = ir.ArrayAttr.get(entries)
    return array


def _per_value(op: Operation, number: int, sharding: ir.Attribute) -> ir.Attribute:
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

"""Shardings as JAX has them, in the shape of a function's arguments and results."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ..errors import ShardlogError, from_extra
from ..importers.sources.jax import visible
from ..program.meshes import Mesh, SubAxis
from ..program.mlir.modules import boundary_attributes, main_function, symbols
from ..program.reductions import OF_EQUALS
from ..program.shardings import Sharding
from ..program.signature import text_of

if TYPE_CHECKING:
    from jax.sharding import NamedSharding

    from ..partition.device_program import DeviceProgram
    from .result import Result

_MEMORY = "mhlo.memory_kind"  # of an argument or a result: in which of a device's memories it is, as JAX says


def argument_shardings(result: Result) -> tuple[Any, dict[str, Any]]:
    """The shardings of the function's positional arguments, and of its keyword arguments.

    Where only a module is known, its arguments are positional. Raises ShardlogError for sub-axes, which JAX
    cannot name, and where JAX is not installed.
    """
    interface, main = result.source.interface, result.program.graph.main
    numbers = visible(main.function.op, "arg_attrs")
    places = [main.place + int(main.layout.place[v]) for v in main.function.arguments]
    shapes = _shapes(result, main.function.arguments)
    jax = _Jax(result)
    if interface.arguments is None:
        return tuple(jax.sharding(place, shape) for place, shape in zip(places, shapes, strict=True)), {}
    ranks = interface.ranks[0]
    leaves = [jax.replicated] * len(ranks)  # those that are dropped
    for i, n in zip(interface.kept, numbers, strict=True):
        leaves[i] = jax.sharding(places[n], shapes[n], ranks[i])
    args, kwargs = interface.arguments.unflatten(leaves)
    return args, kwargs


def result_shardings(result: Result) -> Any:
    """The shardings of the function's results, as a tree like them; as a tuple if only a module is known.

    Raises ShardlogError as ``argument_shardings``.
    """
    interface, graph = result.source.interface, result.program.graph
    function = graph.main.function
    shapes = _shapes(result, function.operands[function.terminator])
    places = [int(place) for place in graph.result_places]
    jax = _Jax(result)
    if interface.results is None:
        return tuple(jax.sharding(place, shape) for place, shape in zip(places, shapes, strict=True))
    numbers, ranks = visible(function.op, "res_attrs"), interface.ranks[1]
    # Arguments that the function changes in place are further results of the module.
    shown = zip(numbers, ranks, strict=False)
    return interface.results.unflatten([jax.sharding(places[n], shapes[n], rank) for n, rank in shown])


def device_shardings(
    result: Result, devices: Sequence[Any], program: DeviceProgram | None = None
) -> tuple[list[Any], list[Any]]:
    """The shardings of all arguments of the module, and of all its results, in order. ``devices`` are in
    the order of their numbers in meshes. If the ``program`` that each device runs is given, the shardings
    are its own. Values without a sharding are replicated. A sub-axis is an axis of its own there. Where a
    program says in which of a device's memories a tensor lies, the sharding says so, too.
    """
    functions = symbols(result.module, "func.func")
    main = functions[main_function(functions)]
    with result.module.context:
        entries = [boundary_attributes(main, label) for label in ("arg_attrs", "res_attrs")]
    ends = zip(_shardings_of_ends(result, devices, program), entries, strict=True)
    arguments, results = ([*map(_in_memory, shardings, entry)] for shardings, entry in ends)
    return arguments, results


def _in_memory(sharding: Any, attributes: Any) -> Any:
    """A sharding in the memory kind of an argument or a result, if the devices have it."""
    if _MEMORY not in attributes:
        return sharding
    kind = text_of(ir.StringAttr(attributes[_MEMORY]))
    kinds = {memory.kind for device in sharding.device_set for memory in device.addressable_memories()}
    return sharding.with_memory_kind(kind) if kind in kinds else sharding


def _shardings_of_ends(
    result: Result, devices: Sequence[Any], program: DeviceProgram | None
) -> tuple[list[Any], list[Any]]:
    """Those of arguments and results, wherever these lie."""
    meshes = result.program.shardings.meshes.meshes
    first = main_mesh(meshes)

    def placed(sharding: Sharding | None) -> Any:
        if sharding is None or device_count(meshes[sharding.mesh]) != device_count(first):
            return _on_devices(first, devices)  # on a mesh of fewer devices a tensor is whole
        return _on_devices(meshes[sharding.mesh], devices, sharding)

    if program is not None:
        shardings = program.axes.sharding
        held = [[placed(None if x.whole else shardings(x)) for x in layouts] for layouts in program.boundary]
        return held[0], held[1]

    def decided(place: Any, shape: tuple[int, ...]) -> Any:
        return placed(
            result.written.fitted(result.written.sharding(int(place), len(shape)), shape, entry=True)
        )

    graph, function = result.program.graph, result.program.graph.main.function
    places = [graph.main.place + int(graph.main.layout.place[v]) for v in function.arguments]
    shapes = _shapes(result, function.arguments), _shapes(result, function.operands[function.terminator])
    return list(map(decided, places, shapes[0])), list(map(decided, graph.result_places, shapes[1]))


def main_mesh(meshes: Sequence[Mesh]) -> Mesh:
    """The mesh in whose order a program's devices are numbered: the first of most devices."""
    return max((mesh for mesh in meshes if mesh.axes), key=device_count, default=Mesh("", ()))


def device_count(mesh: Mesh) -> int:
    """How many devices a mesh has."""
    return prod(size for _, size in mesh.axes)


def in_order(mesh: Mesh, devices: Sequence[Any]) -> list[Any]:
    """The devices in the order in which a mesh lists them."""
    return [devices[i] for i in mesh.device_ids] if mesh.device_ids else list(devices)


def _on_devices(mesh: Mesh, devices: Sequence[Any], sharding: Sharding | None = None) -> Any:
    import jax.sharding as js
    import numpy as np

    if not mesh.axes:
        return js.SingleDeviceSharding(devices[0])
    dimensions = [d.axes for d in sharding.dimensions] if sharding else []
    unreduced = sharding.unreduced if sharding else ()
    if sharding is not None and sharding.reduction in OF_EQUALS and not _says(sharding.reduction):
        unreduced = ()  # each device has the value as its part
    used = [axis for axes in (*dimensions, unreduced) for axis in axes]
    parts: dict[str, list[tuple[int, int]]] = {}  # of every axis, which sub-axes have or have not
    for name, size in mesh.axes:
        cuts = {1, size, *(end for x in used if x.name == name for end in (x.pre, x.pre * x.size))}
        parts[name] = list(pairwise(sorted(cuts))) or [(1, 1)]

    def names(axis: SubAxis) -> list[str]:
        whole = len(parts[axis.name]) == 1
        inside = [(a, b) for a, b in parts[axis.name] if axis.pre <= a and b <= axis.pre * axis.size]
        return [axis.name if whole else f"{axis.name}:({a}){b // a}" for a, b in inside]

    every = [SubAxis(name, 1, size) for name, size in mesh.axes]
    sizes = [b // a for axis in every for a, b in parts[axis.name]]
    kind = js.AxisType.Explicit if unreduced else js.AxisType.Auto  # JAX has nothing unreduced on others
    mesh_on_devices = js.Mesh(
        np.asarray(in_order(mesh, devices), object).reshape(sizes),
        [name for axis in every for name in names(axis)],
        axis_types=(kind,) * len(sizes),
    )
    entries = [_entry([name for axis in axes for name in names(axis)]) for axes in dimensions]
    whole = {name for axis in unreduced for name in names(axis)}
    return js.NamedSharding(mesh_on_devices, _spec(entries, whole, sharding.reduction if sharding else "sum"))


def _shapes(result: Result, values: Sequence[int]) -> list[tuple[int, ...]]:
    signatures, types = result.program.classes.signatures, result.program.graph.main.function.types
    return [signatures.shapes[types[v]] or () for v in values]


class _Jax:
    """The shardings of a run as JAX's, on JAX's own meshes where there are some."""

    def __init__(self, result: Result) -> None:
        with from_extra("jax", "JAX"):
            from jax.sharding import NamedSharding
        self._written = result.written
        self._known = result.source.interface.meshes
        self._meshes = result.program.shardings.meshes.meshes
        self._sharding = NamedSharding
        first = next((mesh for mesh in self._meshes if mesh.axes), None)
        # As JAX has it, an array that is not sharded is replicated over the mesh.
        self.replicated = None if first is None else NamedSharding(self._mesh(first), _spec((), (), "sum"))

    def sharding(self, place: int, shape: tuple[int, ...], rank: int | None = None) -> NamedSharding | None:
        """The sharding of the value at a place, or of its first ``rank`` dimensions; None where the program
        has no mesh."""
        written = self._written.fitted(self._written.sharding(place, len(shape)), shape, entry=True)
        if written is None or not self._meshes[written.mesh].axes:
            return self.replicated
        mesh = self._meshes[written.mesh]
        entries = [_entry([axis.name for axis in d.axes]) for d in written.dimensions]
        self._check(written, mesh)
        unreduced = {axis.name for axis in written.unreduced}
        spec = _spec(entries[:rank], unreduced, written.reduction)
        return self._sharding(_explicit(self._mesh(mesh), unreduced), spec)

    def _check(self, sharding: Sharding, mesh: Mesh) -> None:
        axes = (axis for dimension in sharding.dimensions for axis in dimension.axes)
        for axis in (*axes, *sharding.unreduced):
            if axis.size != mesh.sizes[axis.name]:
                raise ShardlogError(
                    f'sub-axis "{axis.name}":({axis.pre}){axis.size} has no name in JAX',
                    hint="split the mesh axis into two",
                )

    def _mesh(self, mesh: Mesh) -> Any:
        """The program's own mesh with these axes, concrete where it is concrete, or else an abstract one."""
        from jax.sharding import AbstractMesh, AxisType

        for given in self._known:
            if tuple(given.shape.items()) == mesh.axes:
                return given
        names, sizes = (name for name, _ in mesh.axes), (size for _, size in mesh.axes)
        return AbstractMesh(tuple(sizes), tuple(names), axis_types=(AxisType.Auto,) * len(mesh.axes))


def _explicit(mesh: Any, axes: Collection[str]) -> Any:
    """A mesh of JAX's whose ``axes`` are Explicit: on others it has nothing unreduced."""
    from jax.sharding import AxisType, Mesh

    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    changed = kinds | dict.fromkeys(axes, AxisType.Explicit)
    if changed == kinds:
        return mesh
    types = tuple(changed.values())
    if isinstance(mesh, Mesh):
        return Mesh(mesh.devices, mesh.axis_names, axis_types=types)
    return mesh.update(axis_types=types)


def _says(reduction: str) -> bool:
    """Whether the installed JAX has values that are unreduced by a reduction."""
    import jax.sharding as js

    return reduction == "sum" or hasattr(getattr(js, "UnreducedKind", None), reduction)


def _spec(entries: Sequence[Any], unreduced: Collection[str], reduction: str) -> Any:
    """The ``PartitionSpec`` with these entries and unreduced axes. Raises ShardlogError for a reduction that
    the installed JAX cannot say."""
    import jax.sharding as js

    fixed: dict[str, Any] = {"unreduced": set(unreduced)} if unreduced else {}
    if unreduced and reduction != "sum":
        if not _says(reduction):
            message = f"a {reduction} that is yet to be computed needs a newer JAX"
            raise ShardlogError(message, hint="install JAX 0.11 or later, or reduce it in the program")
        fixed["unreduced_kind"] = getattr(js, "UnreducedKind")[reduction]  # noqa: B009 - JAX 0.10 lacks it
    return js.PartitionSpec(*entries, **fixed)  # type: ignore[no-untyped-call]


def _entry(names: list[str]) -> Any:
    return names[0] if len(names) == 1 else tuple(names) or None

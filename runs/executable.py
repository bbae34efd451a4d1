"""What was decided, as a function that runs: the annotated module, compiled with shardings that bind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ..errors import ShardlogError
from ..exporters.bind import bind
from ..importers.compiling import load, refused
from ..importers.jax import visible
from ..program.modules import bytecode_of, main_function, symbols
from .jax import flat_shardings

if TYPE_CHECKING:
    from .result import Result


@dataclass(frozen=True)
class Executable:
    """A compiled program. It is called as the function that was lowered, with arrays or what becomes arrays,
    and returns ``jax.Array``s with the shardings that were decided. ``hlo`` is what runs on each device.

    Of a module alone, arguments and results are flat.
    """

    _loaded: Any
    _arguments: tuple[Any, ...]  # the shardings of the module's arguments
    _results: tuple[tuple[Any, tuple[int, ...]], ...]  # sharding and shape
    _interface: Any

    @property
    def hlo(self) -> str:
        """The optimised HLO."""
        return "\n".join(module.to_string() for module in self._loaded.hlo_modules())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import jax

        interface = self._interface
        if interface.arguments is None:
            leaves: Sequence[Any] = args
        else:
            given, tree = jax.tree.flatten((args, kwargs))
            if tree != interface.arguments:
                message = f"arguments like {tree}"
                hint = f"expected what was lowered: {interface.arguments}"
                raise ShardlogError(message, where="executable", hint=hint)
            leaves = [given[i] for i in interface.kept]
        if len(leaves) != len(self._arguments):
            message = f"{len(leaves)} arguments"
            raise ShardlogError(message, where="executable", hint=f"expected {len(self._arguments)}")
        placed = [jax.device_put(leaf, to) for leaf, to in zip(leaves, self._arguments, strict=True)]
        parts = self._loaded.execute_sharded(placed).disassemble_into_single_device_arrays()
        found = [
            jax.make_array_from_single_device_arrays(shape, sharding, list(arrays))
            for (sharding, shape), arrays in zip(self._results, parts, strict=True)
        ]
        return tuple(found) if interface.results is None else interface.results.unflatten(found)


def compiled(result: Result, devices: Sequence[Any] | None = None, module: Any = None) -> Executable:
    """Compiles what a run decided; see ``Result.compile``. ``module`` is the program if it is partitioned
    already."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

    shardings = flat_shardings(result)
    meshes = [s.mesh for part in shardings for s in part if s is not None]
    shape = dict(meshes[0].shape) if meshes else {}
    count = prod(shape.values())
    if devices is None:
        concrete = next((mesh for mesh in meshes if isinstance(mesh, Mesh)), None)
        devices = list(concrete.devices.flat) if concrete is not None else jax.devices()[:count]
    if len(devices) != count:
        hint = "give devices=, or start JAX with more: XLA_FLAGS=--xla_force_host_platform_device_count=8"
        raise ShardlogError(f"{len(devices)} devices for a mesh of {count}", where="compile", hint=hint)
    functions = symbols(result.module, "func.func")
    main = functions[main_function(functions)]
    for label, kind in (("arg_attrs", main.type.inputs), ("res_attrs", main.type.results)):
        if len(visible(main, label)) != len(kind):
            message = "the program has tokens, or constants that JAX hands to it"
            raise ShardlogError(message, where="compile", hint="give constants as arguments")
    mesh = Mesh(np.asarray(devices).reshape(tuple(shape.values())), tuple(shape)) if shape else None
    try:
        loaded = load(bytecode_of(bind(result.module) if module is None else module), devices)
    except Exception as error:  # XLA's, of many classes
        raise refused(error, result.source.name) from None

    def concrete_of(sharding: Any) -> Any:
        if mesh is None:
            return SingleDeviceSharding(devices[0])
        spec = PartitionSpec() if sharding is None else sharding.spec  # type: ignore[no-untyped-call]
        return NamedSharding(mesh, spec)

    shapes = [tuple(type_.shape) for type_ in main.type.results]
    return Executable(
        loaded,
        tuple(concrete_of(sharding) for sharding in shardings[0]),
        tuple((concrete_of(s), shape) for s, shape in zip(shardings[1], shapes, strict=True)),
        result.source.interface,
    )

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
from ..notations.frontend_attributes import calls_back
from ..program.function import location
from ..program.modules import main_function, ops_in, symbols
from .jax import flat_shardings

if TYPE_CHECKING:
    from ..partition.device_program import DeviceProgram
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
            leaves = [*interface.constants, *(given[i] for i in interface.kept)]
        if len(leaves) != len(self._arguments):
            message = f"{len(leaves)} arguments"
            raise ShardlogError(message, where="executable", hint=f"expected {len(self._arguments)}")
        keys = [jax.numpy.issubdtype(jax.typeof(leaf).dtype, jax.dtypes.prng_key) for leaf in leaves]
        leaves = [jax.random.key_data(leaf) if key else leaf for leaf, key in zip(leaves, keys, strict=True)]
        placed = [jax.device_put(leaf, to) for leaf, to in zip(leaves, self._arguments, strict=True)]
        parts = self._loaded.execute_sharded(placed).disassemble_into_single_device_arrays()
        found = [
            jax.make_array_from_single_device_arrays(shape, sharding, list(arrays))
            for (sharding, shape), arrays in zip(self._results, parts, strict=True)
        ]
        if interface.results is None:
            return tuple(found)
        kinds = zip(found, interface.keys, strict=True)
        return interface.results.unflatten(
            [jax.random.wrap_key_data(array, impl=key) if key else array for array, key in kinds]
        )


def compiled(
    result: Result, devices: Sequence[Any] | None = None, program: DeviceProgram | None = None
) -> Executable:
    """Compiles what a run decided; see ``Result.compile``. ``program`` is what each device runs, where it is
    partitioned already."""
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
    _check(result, main)
    mesh = Mesh(np.asarray(devices).reshape(tuple(shape.values())), tuple(shape)) if shape else None
    try:
        callbacks = result.source.interface.callbacks
        if program is None:
            loaded = load(bind(result.module), devices, callbacks)
        else:
            loaded = load(program.module, devices, callbacks, program.form)
    except Exception as error:  # XLA's, of many classes
        raise refused(error, result.source, result.module) from None

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


def _check(result: Result, main: Any) -> None:
    """Raises ShardlogError for programs that only JAX itself can call."""
    interface = result.source.interface
    hidden = len(main.type.inputs) - len(visible(main, "arg_attrs")) - len(interface.constants)
    if hidden or len(visible(main, "res_attrs")) != len(main.type.results):
        message = "the program hands on tokens, for effects in order, or constants of its own"
        hint = "leave out ordered=True, and compile what jax.jit(f).lower(...) gives"
        raise ShardlogError(message, where="compile", hint=hint)
    if interface.results is not None and interface.results.num_leaves != len(main.type.results):
        raise ShardlogError("the program changes its arguments in place", where="compile", hint="return them")
    if not interface.callbacks and (called := next(filter(calls_back, ops_in(result.module)), None)):
        message, hint = "the program calls back into Python", "compile what jax.jit(f).lower(...) gives"
        raise ShardlogError(message, where=result.source.line(location(called)), hint=hint)

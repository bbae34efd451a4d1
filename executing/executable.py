"""A run as a function: the annotated module, compiled with binding shardings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ShardlogError
from ..exporters.lowering.lowering import runnable
from ..exporters.lowering.writer import array_type
from ..exporters.tokens import is_token, without_tokens
from ..exporters.wide import wide
from ..importers.dialects.reaching import check_computations
from ..importers.sources.compiling import load, refused
from ..importers.sources.jax import visible
from ..notations.frontend_attributes import calls_back
from ..partition.finishing.unsupported import combine_bits
from ..partition.preparing.computations import lacking
from ..program.carried import LOCAL
from ..program.elements import dtype_of
from ..program.function import location
from ..program.mlir.modules import copy_of, main_function, ops_in, symbols
from ..program.mlir.places import argument_path
from ..program.mlir.types import FunctionOp
from ..runs.custom_partitioning import calls
from ..runs.jax import device_shardings
from .compiling import devices_for, module_for
from .partial import placed

if TYPE_CHECKING:
    import jax
    from jax import Device
    from jax.sharding import Sharding
    from jaxlib.mlir import ir

    from ..partition.device_program import DeviceProgram
    from ..runs.result import Result


@dataclass(frozen=True)
class Executable:
    """A compiled program, which is called like the function that was lowered.

    It takes arrays, or values that convert to arrays, and returns ``jax.Array``s with the decided shardings,
    also unreduced ones. Arguments and results are flat if only a module was given. A call raises
    ShardlogError for arguments of another tree, type or shape.
    """

    _loaded: Any
    _devices: tuple[Any, ...]  # in the order of the program's partitions
    _arguments: tuple[Any, ...]  # the shardings of the module's arguments
    _taken: tuple[tuple[str, str, tuple[int, ...], str], ...]  # their names, types, shapes and dtypes
    _results: tuple[tuple[Any, tuple[int, ...]], ...]  # sharding and shape
    _interface: Any

    @property
    def hlo(self) -> str:
        """The optimised HLO that each device runs, as text."""
        return "\n".join(module.to_string() for module in self._loaded.hlo_modules())

    def __call__(self, *args: object, **kwargs: object) -> Any:
        """Runs the program; see the class."""
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
        arrays = [placed(leaf, to) for leaf, to in zip(leaves, self._arguments, strict=True)]
        for array, taken in zip(arrays, self._taken, strict=bool(self._taken)):
            _check_argument(array, *taken)
        given = [_reordered(array, self._devices) for array in arrays]
        parts = self._loaded.execute_sharded(given).disassemble_into_single_device_arrays()
        outputs = [
            _array(shape, sharding, list(held))
            for (sharding, shape), held in zip(self._results, parts, strict=True)
        ]
        if interface.results is None:
            return tuple(outputs)
        kinds = zip(outputs, interface.keys, strict=True)
        return interface.results.unflatten(
            [jax.random.wrap_key_data(array, impl=key) if key else array for array, key in kinds]
        )


def _array(shape: tuple[int, ...], sharding: Sharding, parts: list[jax.Array]) -> jax.Array:
    """The array with these parts on devices."""
    import jax

    if 0 in shape:  # XLA drops the sharding of tensors without elements
        empty: jax.Array = jax.device_put(jax.numpy.empty(shape, parts[0].dtype), sharding)
        return empty
    return jax.make_array_from_single_device_arrays(shape, sharding, parts)


def compiled(
    result: Result,
    devices: Sequence[Device] | None = None,
    program: DeviceProgram | None = None,
    *,
    in_64_bits: bool = False,
) -> Executable:
    """Compiles the decisions of a run; see ``Session.compile``.

    ``program`` is the program of each device, if it is partitioned already; otherwise the module may be
    compiled ``in_64_bits``. Its tokens are left out.
    """
    devices = devices_for(result, devices)
    functions = symbols(result.module, "func.func")
    main = functions[main_function(functions)]
    with result.source.places():
        _check(result, main)
    arguments, results = device_shardings(result, devices, program)
    form: Any = {} if program is None else {"form": program.form}
    try:
        module = module_for(result, devices, program)
        with result.source.places():
            module = runnable(module, result.book)
            if program is None and LOCAL in module.operation.attributes:
                module = copy_of(module)
                combine_bits(module)
        module = wide(module, result.book.traits) if in_64_bits else module
        loaded = load(without_tokens(module), devices, result.source.interface.callbacks, **form)
    except ShardlogError:
        raise
    except Exception as error:  # XLA's, of many classes
        raise refused(error, result.source, result.module) from None

    inputs, given = main.type.inputs, zip(results, map(array_type, main.type.results), strict=True)
    taken = [sharding for sharding, kind in zip(arguments, inputs, strict=True) if not is_token(kind)]
    ends = tuple((sharding, tuple(kind.shape)) for sharding, kind in given if not is_token(kind))
    checked = () if in_64_bits else _taken(main)
    return Executable(loaded, tuple(devices), tuple(taken), checked, ends, result.source.interface)


def _taken(main: FunctionOp) -> tuple[tuple[str, str, tuple[int, ...], str], ...]:
    """The name, the type, the shape and the dtype of each argument."""
    types = (array_type(argument.type) for argument in main.arguments)
    return tuple(
        (argument_path(a.location) or f"%arg{i}", str(a.type), tuple(type_.shape), _dtype(type_))
        for i, (a, type_) in enumerate(zip(main.arguments, types, strict=True))
        if not is_token(type_)
    )


def _dtype(type_: ir.RankedTensorType) -> str:
    return dtype_of(str(type_.element_type)) or ""


def _check_argument(array: jax.Array, name: str, type_: str, shape: tuple[int, ...], dtype: str) -> None:
    """Raises ShardlogError for an array of another type than the compiled one, because XLA would crash."""
    if array.shape == shape and dtype in ("", str(array.dtype)):
        return
    wide = dtype.endswith("64") or dtype == "complex128"
    hint = "jax.config.update('jax_enable_x64', True)" if wide else "as it was lowered"
    given = f"{name} is {array.dtype}{list(array.shape)}, expected {type_}"
    raise ShardlogError(given, where="executable", hint=hint)


def _reordered(array: jax.Array, devices: Sequence[Device]) -> jax.Array:
    """An array with its parts in the order of the program's devices. Each device keeps its part."""
    import jax

    held: Any = array.sharding
    if getattr(held, "mesh", None) is None or list(held.mesh.devices.flat) == list(devices):
        return array
    mesh = jax.sharding.Mesh(
        np.asarray(devices, object).reshape(held.mesh.devices.shape),
        held.mesh.axis_names,
        axis_types=held.mesh.axis_types,
    )
    parts = [shard.data for shard in array.addressable_shards]
    sharding = jax.sharding.NamedSharding(mesh, held.spec, memory_kind=held.memory_kind)
    return jax.make_array_from_single_device_arrays(array.shape, sharding, parts)


def _check(result: Result, main: FunctionOp) -> None:
    """Raises ShardlogError for programs that only JAX itself can call, and for ops that XLA does not have."""
    interface = result.source.interface
    hidden = len(main.type.inputs) - len(visible(main, "arg_attrs")) - len(interface.constants)
    hidden += len(main.type.results) - len(visible(main, "res_attrs"))
    if interface.arguments is None:  # of a module alone, whose tokens are left out
        hidden = 0
    if hidden:
        message = "the program has tokens, for ordered effects, or constants of its own"
        hint = "leave out ordered=True, and compile the result of jax.jit(f).lower(...)"
        raise ShardlogError(message, where="compile", hint=hint)
    if interface.results is not None and interface.results.num_leaves != len(main.type.results):
        raise ShardlogError("the program changes its arguments in place", where="compile", hint="return them")
    if not interface.alive and (call := next(calls(result), None)):
        raise lacking(call[0])
    if LOCAL not in result.module.operation.attributes:  # which is checked where it is read
        with result.module.context:
            check_computations(result.module)
    if not interface.callbacks and (called := next(filter(calls_back, ops_in(result.module)), None)):
        message, hint = "the program calls back into Python", "compile the result of jax.jit(f).lower(...)"
        raise ShardlogError(message, where=result.source.line(location(called)), hint=hint)

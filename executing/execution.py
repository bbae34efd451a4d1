"""Running a partitioned program, and the program on one device."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir import ir

from ..errors import ShardlogError, from_extra
from ..exporters.lowering.lowering import runnable
from ..exporters.plain import plain
from ..exporters.tokens import without_tokens
from ..exporters.wide import wide
from ..importers.sources.compiling import load, refused
from .differences import Array
from .executable import Executable, compiled
from .partial import combined
from .replicas import worst
from .values import Arrays, BoundaryValue, boundary

if TYPE_CHECKING:
    from jax import Device

    from ..runs.result import Result

Alone = Callable[[Arrays], Arrays]  # the program on one device
_FLAG = "xla_force_host_platform_device_count"
_MOST_CPUS = 256  # devices: with more, threads wait for each other so long that XLA ends the process


def devices_for(count: int, wanted: int | None, where: str) -> list[Any]:
    """The devices to run on. Where JAX has not started yet, it is given ``wanted`` CPU devices, or as many
    as are needed. Raises ShardlogError where there are too few, and for more CPU devices than can run."""
    if wanted is not None and wanted < count:
        hint = f"the mesh of the program has {count}"
        raise ShardlogError(f"{wanted} devices for a mesh of {count}", where=where, hint=hint)
    with from_extra("jax", "JAX"):
        import jax

    if _FLAG not in os.environ.get("XLA_FLAGS", ""):
        with suppress(RuntimeError):  # it has started
            jax.config.update("jax_num_cpu_devices", min(wanted or count, _MOST_CPUS))  # type: ignore[no-untyped-call]
    devices = jax.devices()
    kind = devices[0].platform
    if kind == "cpu" and count > _MOST_CPUS:
        message = f"the mesh has {count:,} devices, but at most {_MOST_CPUS} CPU devices can run"
        hint = "give it a smaller mesh, as with --mesh data=2,model=4"
        raise ShardlogError(message, where=where, hint=hint)
    if len(devices) < count:
        hint = "JAX_PLATFORMS=cpu makes as many as needed" if kind != "cpu" else f"XLA_FLAGS has {_FLAG}"
        raise ShardlogError(f"{len(devices)} {kind} devices for a mesh of {count}", where=where, hint=hint)
    return devices[:count]


def run_partitioned(
    result: Result, executable: Executable, inputs: Arrays, expected: Arrays | None = None
) -> Arrays:
    """The results of the program that each device runs, as whole arrays; ``executable`` is the executable
    of the run's ``result``. All copies of a result count, so it is the copy that is furthest from the
    ``expected`` one.

    Raises ShardlogError where it fails.
    """
    import jax

    with failures_told(result), _types_kept(chain(*boundary(result))):
        outputs = [combined(array) for array in jax.tree.leaves(executable(*inputs))]
    with failures_told(result):  # some appear only when a result is awaited
        if expected is None:
            return list(map(np.asarray, outputs))
        return [worst(array, other) for array, other in zip(outputs, expected, strict=True)]


def run_alone(result: Result, alone: Alone, *inputs: Arrays) -> list[Arrays]:
    """The results of the program ``alone`` on a device, for each of several inputs. Raises ShardlogError
    where it fails."""
    with failures_told(result), _types_kept(chain(*boundary(result))):
        return [alone(arrays) for arrays in inputs]


@contextmanager
def failures_told(result: Result) -> Iterator[None]:
    """Raises ShardlogError with XLA's message if a program fails while it runs, as a custom call may."""
    import jax

    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        first = str(error).partition("\n")[0]
        raise ShardlogError(f"the program fails while it runs: {first}", where=result.source.name) from None


def _types_kept(values: Iterable[BoundaryValue]) -> AbstractContextManager[Any]:
    """A context in which JAX keeps the types of a program's arguments and results. By default it turns 64
    bits into 32."""
    import jax

    return jax.enable_x64(True) if any(map(_has_64_bits, values)) else nullcontext()


def _has_64_bits(value: BoundaryValue) -> bool:
    return bool(value.dtype.itemsize // (2 if value.dtype.kind == "c" else 1) == 8)


def alone_on(result: Result, devices: Sequence[Device]) -> Alone:
    """The program on the first of the devices, or, where it cannot run there, as XLA partitions it: one with
    manual computations, which are for several devices."""
    try:
        module = plain(result.module, result.book.traits)
    except ShardlogError:
        executable = compiled(result, devices)
        return lambda arrays: flat(executable(*arrays))
    return module_alone(result, module, devices)


def wide_on(result: Result, devices: Sequence[Device]) -> Alone | None:
    """As ``alone_on``, but in 64 bits (``exporters.wide``); None where XLA does not compile that."""
    try:
        module = plain(result.module, result.book.traits)
    except ShardlogError:
        module = None
    with suppress(ShardlogError):
        if module is not None:
            return in_64_bits(module_alone(result, wide(module, result.book.traits), devices))
        executable = compiled(result, devices, in_64_bits=True)
        return in_64_bits(lambda arrays: flat(executable(*arrays)))
    return None


def module_alone(result: Result, module: ir.Module, devices: Sequence[Device]) -> Alone:
    """A module without shardings on the first of the devices. Raises ShardlogError where XLA does not compile
    it."""
    try:
        with result.source.places():
            module = runnable(module, result.book)
        loaded = load(without_tokens(module), devices[:1], result.source.interface.callbacks)
    except ShardlogError:
        raise
    except Exception as error:  # XLA's, of many classes
        raise refused(error, result.source, result.module) from None
    return lambda arrays: _run_alone(loaded, devices[0], arrays)


def in_64_bits(alone: Alone) -> Alone:
    """A program in 64 bits as one that takes narrower arrays."""
    import jax

    def run(arrays: Arrays) -> Arrays:
        with jax.enable_x64(True):
            return alone([widened(array) for array in arrays])

    return run


def widened(array: Array) -> Array:
    """An array with elements of 64 bits where it has floating-point or complex ones."""
    import ml_dtypes

    kind = array.dtype.kind
    if kind == "c":
        return array.astype(np.complex128)
    exact = kind in "biu" or array.dtype in map(
        np.dtype, (ml_dtypes.int2, ml_dtypes.int4, ml_dtypes.uint2, ml_dtypes.uint4)
    )
    return array if exact else array.astype(np.float64)


def flat(results: object) -> Arrays:
    """The results of a program, as NumPy arrays."""
    import jax

    return [np.asarray(array) for array in jax.tree.leaves(results)]


def _run_alone(loaded: Any, device: Device, inputs: Arrays) -> Arrays:
    import jax

    placed = [jax.device_put(array, device) for array in inputs]
    parts = loaded.execute_sharded(placed).disassemble_into_single_device_arrays()
    return [np.asarray(array) for (array,) in parts]

"""Runs partitioned programs on eight CPU devices, and whole programs on one."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir
from shardlog.partition.device_program import DeviceProgram
from shardlog.partition.forms import Form
from shardlog.partition.layouts import Axes, Layout
from shardlog.program.mlir.modules import bytecode_of, main_function, symbols
from shardlog.session import Session

from ..support.lines_of_jax import quick

ENDED = "XLA ends the process"
Array = npt.NDArray[Any]


@cache
def devices() -> list[Any]:
    import jax

    return list(jax.devices("cpu"))


def load(module: ir.Module, count: int, form: Form = "replica") -> Any:
    """A compiled module, little optimised."""
    from jaxlib import _jax, xla_client

    options: Any = xla_client.CompileOptions()
    replicas = form == "replica"
    options.num_replicas, options.num_partitions = (count, 1) if replicas else (1, count)
    build = options.executable_build_options
    if not replicas:
        build.use_spmd_partitioning = True
        build.use_shardy_partitioner = form == "sdy-manual"
    build.debug_options.xla_backend_optimization_level = 0
    build.debug_options.xla_llvm_disable_expensive_passes = True
    options.env_option_overrides = [*quick().items()]
    numbers = np.arange(count)
    options.device_assignment = xla_client.DeviceAssignment.create(
        numbers[:, None] if replicas else numbers[None]
    )
    used = devices()[:count]
    return used[0].client.compile_and_load(bytecode_of(module), _jax.DeviceList(tuple(used)), options)


def parts_of(axes: Axes, array: Array, layout: Layout) -> list[Array]:
    """What each device holds of an array; what is past its end is full of noise."""
    noise = np.random.default_rng(0)
    found = []
    tiles = axes.local(array.shape, layout.dims)
    places = [axes.index(pieces) for pieces in layout.dims]
    for device in range(axes.count):
        starts = [int(place[device]) * tile for place, tile in zip(places, tiles, strict=True)]
        cut = array[tuple(slice(s, s + t) for s, t in zip(starts, tiles, strict=True))]
        if cut.shape != tiles:
            full = noise.integers(1, 100, tiles).astype(array.dtype)
            full[tuple(slice(0, n) for n in cut.shape)] = cut
            cut = full
        found.append(np.ascontiguousarray(cut).reshape(tiles))
    return found


def whole_of(
    axes: Axes,
    parts: Sequence[Array],
    layout: Layout,
    shape: Sequence[int],
    devices: Sequence[int] | None = None,
) -> Array:
    """The array of which ``devices``, or all, hold parts. Devices with the same part must hold the same."""
    tiles = axes.local(tuple(shape), layout.dims)
    places = [axes.index(pieces) for pieces in layout.dims]
    array = np.empty(tuple(shape), parts[0].dtype)
    seen: dict[tuple[int, ...], Array] = {}
    for device, part in zip(range(axes.count) if devices is None else devices, parts, strict=True):
        starts = tuple(int(place[device]) * tile for place, tile in zip(places, tiles, strict=True))
        sizes = [max(min(t, n - s), 0) for s, t, n in zip(starts, tiles, shape, strict=True)]
        cut = part[tuple(slice(0, n) for n in sizes)]
        array[tuple(slice(s, s + n) for s, n in zip(starts, sizes, strict=True))] = cut
        first = seen.setdefault(starts, cut)
        assert first.tobytes() == cut.tobytes(), f"devices differ in {starts}: {first} and {cut}"
    return array


def execute(loaded: Any, arguments: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """Results by result and device, from arguments by argument and device."""
    import jax

    with jax.enable_x64(True):
        return _execute(loaded, arguments)


def _execute(loaded: Any, arguments: Sequence[Sequence[Array]]) -> list[list[Array]]:
    import jax
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    count = len(loaded.local_devices())
    mesh = Mesh(np.asarray(devices()[:count]), ("device",))
    given = []
    for parts in arguments:
        shape = parts[0].shape
        spec = PartitionSpec("device") if shape else PartitionSpec()  # type: ignore[no-untyped-call]
        stacked = (shape[0] * count, *shape[1:]) if shape else ()
        arrays = [jax.device_put(p, d) for p, d in zip(parts, devices(), strict=False)]
        given.append(jax.make_array_from_single_device_arrays(stacked, NamedSharding(mesh, spec), arrays))
    results = loaded.execute_sharded(given).disassemble_into_single_device_arrays()
    return [[np.asarray(array) for array in arrays] for arrays in results]


def run_partitioned(result: Session, program: DeviceProgram, arrays: Sequence[Array]) -> list[Array]:
    """The whole results of a partitioned program."""
    axes, (inputs, outputs) = program.axes, program.boundary
    functions = symbols(result.module, "func.func")
    types = functions[main_function(functions)].type.results
    loaded = load(program.module, axes.count, program.form)
    given = [parts_of(axes, array, layout) for array, layout in zip(arrays, inputs, strict=True)]
    results = execute(loaded, given)
    return [
        whole_of(axes, parts, layout, type_.shape)
        for parts, layout, type_ in zip(results, outputs, types, strict=True)
    ]


def run_whole(module: ir.Module, arrays: Sequence[Array]) -> list[Array]:
    """The results of a program without shardings, on one device."""
    results = execute(load(module, 1), [[array] for array in arrays])
    return [parts[0] for parts in results]


def survive(module: str, numbers: Sequence[int], options: Sequence[str] = ()) -> Iterator[tuple[int, str]]:
    """What ``python -m module --here OPTIONS --from A --to B`` says of each number: lines ``NUMBER MESSAGE``.

    Where XLA ends the process, that is said of the number, and another process goes on.
    """
    first, last = numbers[0], numbers[-1] + 1
    while first < last:
        command = [sys.executable, "-m", module, "--here", *options, "--from", str(first), "--to"]
        command.append(str(min(last, first + 500)))
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as child:
            assert child.stdout is not None
            for line in child.stdout:
                number, _, message = line.strip().partition(" ")
                if number.isdigit():
                    first = int(number) + 1
                    yield int(number), message
        if child.returncode:
            yield first, ENDED
            first += 1

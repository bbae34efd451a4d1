"""Measures programs on a GPU, or on a CPU.

All are compiled first, several at once, for at most half of the seconds; then each runs on its own. The
output is the input of ``data``. For each program it has the text, the kernels and their microseconds, XLA's
optimised HLO, the bytes of temporary values, and times in microseconds: kernels busy on the GPU, by XLA's
profiler (``busy_us`` the median of several runs, ``least_us`` the least); from the start of the first kernel
to the end of the last (``span_us``); a call by the clock (``clock_us``); and one of twenty calls that do not
wait (``ahead_us``). On a CPU the time is the least for which processors are busy with a call: other work on
the machine does not count. Programs that do not compile or run are named and left out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import ShardlogError
from ..outputs import temporary_folder
from .data import read_programs, write

if TYPE_CHECKING:
    import jax

_THREADS = 12
_RUNS, _RUNS_OF_LONG, _LONG = 8, 2, 0.01
_AHEAD = 20
_KERNELS, _LETTERS = 60, 60_000  # that are kept of each
_CALLS, _CALLS_TAKE, _CALLS_AT_ONCE = (
    7,
    0.02,
    1000,
)  # on a CPU: measured so often, for so many seconds at least


Shapes = Sequence[tuple[tuple[int, ...], str]]  # of arguments, with the names of their elements


class _Program(Protocol):
    """An executable of XLA, with the members that are used here."""

    def execute_sharded(self, arguments: Sequence[jax.Array], /) -> Any:
        """Runs it."""

    def hlo_modules(self) -> Sequence[Any]:
        """The optimised modules."""

    def get_compiled_memory_stats(self) -> Any:
        """The memory that it needs."""


class Device:
    """The device that is measured: the first one, which has to be of a platform.

    Raises ShardlogError if it is not.
    """

    def __init__(self, platform: str = "gpu") -> None:
        import jax
        from jaxlib import _jax

        from ..importers.sources.compiling import compile_options

        (self.device,) = jax.devices()[:1]
        if self.device.platform != platform:
            hint = "install JAX's plugin for it, as in pip install 'shardlog[cuda]'"
            raise ShardlogError("measuring needs a GPU", where="run", hint=hint)
        self.client = self.device.client
        self.key = jax.random.key(0)
        self._devices = _jax.DeviceList((self.device,))
        self._options = compile_options((self.device,), "sdy-manual")

    def compiled(self, row: Mapping[str, str]) -> tuple[_Program, Shapes] | str:
        """A compiled program, and the types of its arguments; or the error."""
        from jaxlib.mlir import ir

        from ..importers.sources.text import make_context
        from ..program.mlir.modules import main_function, symbols

        try:
            with make_context():
                module = ir.Module.parse(row["text"])
                functions = symbols(module, "func.func")
                main = functions[main_function(functions)]
                function = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
                types = [ir.RankedTensorType(type_) for type_ in function.inputs]
                shapes = [(tuple(type_.shape), str(type_.element_type)) for type_ in types]
                return self.client.compile_and_load(module, self._devices, self._options), shapes
        except Exception as error:  # XLA's, of many classes
            return str(error).partition("\n")[0]

    def arguments(self, shapes: Shapes) -> list[jax.Array]:
        """Random arguments: small numbers, and places from 0 to 99."""
        import jax
        import numpy as np

        from ..program.elements import dtype_of

        arguments = []
        for shape, element in shapes:
            dtype = np.dtype(dtype_of(element))
            if dtype.kind in "iub":
                array = jax.random.randint(self.key, shape, 0, 2 if dtype.kind == "b" else 100).astype(dtype)
            else:
                array = (jax.random.normal(self.key, shape, np.float32) * 0.1).astype(dtype)
            arguments.append(jax.device_put(array, self.device))
        jax.block_until_ready(arguments)  # type: ignore[no-untyped-call]
        return arguments

    def measured(self, program: _Program, given: Sequence[jax.Array]) -> dict[str, Any]:
        """The times of a program, as an output of ``run`` has them."""
        _run(program, given)
        if self.device.platform == "cpu":
            return _on_cpu(program, given)
        _run(program, given)
        clocks = [_clock(program, given) for _ in range(5)]
        start = time.perf_counter()
        outputs = [program.execute_sharded(given) for _ in range(_AHEAD)]
        _wait(outputs[-1])
        ahead = (time.perf_counter() - start) / _AHEAD
        del outputs
        runs = _RUNS_OF_LONG if median(clocks) > _LONG else _RUNS
        events = _events(program, given, runs)
        each = len(events) // runs
        if not each or len(events) % runs:
            raise ValueError(f"{len(events)} kernels in {runs} runs")
        parts = [events[n * each : (n + 1) * each] for n in range(runs)]
        busy = [sum(took for _, took, _ in part) / 1e3 for part in parts]
        span = [(max(at + took for at, took, _ in part) - part[0][0]) / 1e3 for part in parts]
        names = [name[:90] for _, _, name in parts[0]]
        times = [round(median(part[n][1] for part in parts) / 1e3, 3) for n in range(each)]
        hlo = "\n".join(module.to_string() for module in program.hlo_modules())
        return {
            "busy_us": round(median(busy), 2),
            "least_us": round(min(busy), 2),
            "span_us": round(median(span), 2),
            "clock_us": round(median(clocks) * 1e6, 1),
            "ahead_us": round(ahead * 1e6, 1),
            "count": each,
            "kernels": [list(pair) for pair in zip(names, times, strict=True)][:_KERNELS],
            "hlo": hlo[:_LETTERS],
            "temp_bytes": program.get_compiled_memory_stats().temp_size_in_bytes,
        }


def _events(program: _Program, given: Sequence[jax.Array], runs: int) -> list[tuple[float, float, str]]:
    """The kernels and copies of some runs: when each begins, how long it takes, in nanoseconds, and its
    name."""
    import jax
    from jax.profiler import ProfileData

    with temporary_folder() as folder:
        with jax.profiler.trace(str(folder)):
            for _ in range(runs):
                _run(program, given)
        (path,) = folder.rglob("*.xplane.pb")
        planes = [plane for plane in ProfileData.from_file(str(path)).planes if "/device:GPU" in plane.name]
        lines = [line for plane in planes for line in plane.lines]
        return sorted((e.start_ns, e.duration_ns, e.name) for line in lines for e in line.events)


def _on_cpu(program: _Program, given: Sequence[jax.Array]) -> dict[str, Any]:
    """The times of a program on a CPU."""

    def seconds(calls: int) -> float:
        start = time.process_time()
        for _ in range(calls):
            _run(program, given)
        return (time.process_time() - start) / calls

    calls = min(max(round(_CALLS_TAKE / max(seconds(1), 1e-6)), 1), _CALLS_AT_ONCE)
    times = [1e6 * seconds(calls) for _ in range(_CALLS)]
    hlo = "\n".join(module.to_string() for module in program.hlo_modules())
    least, middle = round(min(times), 2), round(median(times), 2)
    return {"busy_us": least, "median_us": middle, "count": 0, "hlo": hlo[:_LETTERS]}


def _clock(program: _Program, given: Sequence[jax.Array]) -> float:
    start = time.perf_counter()
    _run(program, given)
    return time.perf_counter() - start


def _run(program: _Program, given: Sequence[jax.Array]) -> None:
    _wait(program.execute_sharded(given))


def _wait(result: Any) -> None:
    import jax

    jax.block_until_ready(result.disassemble_into_single_device_arrays())  # type: ignore[no-untyped-call]


def run(source: Path, out: Path, seconds: float, platform: str = "gpu") -> None:
    """Measures programs, and writes their times.

    Raises ShardlogError where there is no device of the platform, and for a file that has no programs.
    """
    import jax

    rows = read_programs(source)
    start, gpu, measured = time.monotonic(), Device(platform), list[dict[str, Any]]()
    with ThreadPoolExecutor(_THREADS) as pool:
        jobs = [pool.submit(gpu.compiled, row) for row in rows]
        while time.monotonic() - start < seconds / 2 and not all(job.done() for job in jobs):
            time.sleep(0.2)
        pool.shutdown(cancel_futures=True)
    for row, job in zip(rows, jobs, strict=True):
        if job.cancelled() or time.monotonic() - start > seconds:
            continue
        prepared = job.result()
        try:
            if isinstance(prepared, str):
                raise ValueError(prepared)
            program, shapes = prepared
            measured.append({**row, **gpu.measured(program, gpu.arguments(shapes))})
        except Exception as error:  # one program is not all
            print(f"{row['kind']} {row['name']}: {str(error)[:200]}", flush=True)
    write(out, {"device": gpu.device.device_kind, "jax": jax.__version__, "rows": measured})
    print(f"{len(measured)} of {len(rows)} programs measured")

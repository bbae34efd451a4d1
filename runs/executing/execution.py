"""Running a partitioned program, and comparing what it computes with the program on one device."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain
from math import isfinite, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir import ir

from ...errors import ShardlogError, closest, from_extra
from ...exporters.plain import plain
from ...importers.sources.compiling import load, refused
from ...program.elements import dtype_of
from ...program.mlir.modules import main_function, symbols
from ...program.mlir.places import argument_path, result_path
from ..table import plural
from .rounding import Roundings, eps_of

if TYPE_CHECKING:
    from ..result import Result
    from .executable import Executable

Arrays = list[Any]
Alone = Callable[[Arrays], Arrays]  # the program on one device
_NOISE = 4.0  # times what a result changes by where inputs change by the last bit
_BIAS = 32  # times what rounding explains of what is little else: it has a bias, which inputs do not change
_TELLING = 0.1  # of the largest element: where more may be off for no reason, values that are wrong pass
_SMALLER, _TIMES = 4, 2  # random inputs are divided by so much where results cannot be judged, so often
_NEAR_OVERFLOW = 2.0**-12  # of the largest number of a type: sums of such numbers may be infinite
_FLAG = "xla_force_host_platform_device_count"
_MOST_CPUS = 256  # devices: with more, threads wait for each other so long that XLA ends the process
_NUMPY = "biufc"  # kinds of its own types, which a file of arrays keeps


@dataclass(frozen=True)
class Comparison:
    """A result of the partitioned program beside that of the program on one device.

    ``off`` is the largest difference between two elements, and ``allowed`` the difference that sums in
    another order explain, both relative to the largest element; integers must be equal. ``off`` is infinite
    where only one of the two is finite, or they have infinities of opposite signs. Neither is known to be
    wrong in the elements that are ``unlike``, where one has a NaN and the other an infinity (compilers may
    pass over NaNs in maxima, as XLA does on CPUs), and in those that ``overflow``, of which one is infinite:
    where others are near the largest number there is, or if with inputs that are changed in their last bit
    other elements are finite. ``divided`` is by how much the random inputs were divided, so that it can be
    judged.
    """

    name: str
    type: str
    off: float
    allowed: float
    unlike: int = 0
    overflow: int = 0
    divided: int = 1

    @property
    def right(self) -> bool:
        """Whether the result is within what is allowed."""
        return self.off <= self.allowed

    @property
    def judged(self) -> bool:
        """Whether it is known to be right or wrong: not if values that are wrong would be allowed, too."""
        telling = self.off == 0 or self.allowed < _TELLING
        return not self.right or (telling and not self.unlike and not self.overflow)

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON, which has no infinities; null where it cannot be judged."""
        off = None if isinf(self.off) else self.off
        return {
            "name": self.name,
            "type": self.type,
            "off": off,
            "allowed": self.allowed,
            "inputs_divided_by": self.divided,
            "right": self.right if self.judged else None,
        }

    def __str__(self) -> str:
        named = f"{self.name} : {self.type}"
        if self.right and self.unlike:
            where = f"in {plural(self.unlike, 'element')} one has a NaN and the other an infinity"
            return f"{named} cannot be judged: {where}"
        if self.right and self.overflow:
            where = f"in {plural(self.overflow, 'element')} what is finite is as rounding decides"
            return f"{named} cannot be judged: {where}"
        if self.off == 0:
            return f"{named} is equal"
        limit = f"up to {self.allowed:.1e}" if self.allowed else "nothing"
        off = f"is off by {self.off:.1e} of the largest element"
        if not self.judged:
            return f"{named} cannot be judged: it {off}, and reordered sums explain {limit}"
        verdict = "as reordered sums explain" if self.right else "WRONG: reordered sums explain"
        inputs = f", with inputs divided by {self.divided}" if self.divided > 1 else ""
        return f"{named} {off}, {verdict} ({limit}){inputs}"


@dataclass(frozen=True)
class Value:
    """An argument or a result of a program: its name, its type as MLIR writes it, and those of NumPy."""

    name: str
    type: str
    element: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> Any:
        """The type of its elements."""
        import ml_dtypes  # noqa: F401 - makes them known to NumPy

        return np.dtype(dtype_of(self.element))

    @property
    def kept_as(self) -> Any:
        """The type of elements that a file of arrays has in its place, which has all of its values."""
        if self.dtype.kind in _NUMPY:
            return self.dtype
        return np.dtype(np.float32 if eps_of(self.element) else np.int8)


def boundary(result: Result) -> tuple[list[Value], list[Value]]:
    """The arguments and the results of a program. Raises ShardlogError for types that arrays do not have."""
    functions = symbols(result.module, "func.func")
    main = functions[main_function(functions)]
    arguments = [argument_path(a.location) or f"%arg{i}" for i, a in enumerate(main.arguments)]
    results = [result_path(main, i) or f"result#{i}" for i in range(len(main.type.results))]
    found = []
    for names, types in ((arguments, main.type.inputs), (results, main.type.results)):
        if len(set(names)) < len(names):
            names[:] = [f"{name}#{i}" for i, name in enumerate(names)]
        found.append([_value(result, name, type_) for name, type_ in zip(names, types, strict=True)])
    return found[0], found[1]


def _value(result: Result, name: str, type_: Any) -> Value:
    if isinstance(type_, ir.RankedTensorType):
        element = str(type_.element_type)
        with suppress(TypeError):
            value = Value(name, str(type_), element, tuple(type_.shape))
            if dtype_of(element) and value.dtype is not None:
                return value
    hint = "only programs that take and give arrays are run"
    raise ShardlogError(f"{name} is a {type_}, and no array", where=result.source.name, hint=hint)


# ---- Inputs --------------------------------------------------------------------------------------------


def random_inputs(values: Sequence[Value], seed: int) -> Arrays:
    """Random arrays: normally distributed, or integers from 0 to 9."""
    rng = np.random.default_rng(seed)

    def draw(value: Value) -> Any:
        if value.dtype.kind == "b":
            return rng.random(value.shape) < 0.5
        if not eps_of(value.element):
            return rng.integers(0, 10 if value.dtype.itemsize > 1 else 4, value.shape).astype(value.dtype)
        found = rng.standard_normal(value.shape)
        if value.dtype.kind == "c":
            found = found + 1j * rng.standard_normal(value.shape)
        return found.astype(value.dtype)

    return [draw(value) for value in values]


def read_inputs(file: Path | str, values: Sequence[Value]) -> Arrays:
    """The arguments in a file of ``numpy.savez``: by their names, or in order (``arr_0``, ``arr_1``).

    Raises ShardlogError where it cannot be read, or does not fit the program's arguments.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:
            held = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise ShardlogError(f"cannot read: {error.strerror or error}", where=str(file)) from None
    except Exception:  # of zipfile and NumPy, of many classes
        raise ShardlogError("not a file of arrays", where=str(file), hint="numpy.savez writes them") from None
    found = []
    for i, value in enumerate(values):
        names = [name for name in (value.name, f"arr_{i}", f"%arg{i}") if name in held]
        if not names:
            has = closest(value.name, held) if held else "it is empty"
            raise ShardlogError(f"no array for {value.name} : {value.type}", where=str(file), hint=has)
        found.append(_fitted(held.pop(names[0]), value, str(file)))
    if held:
        hint = f"the program takes {', '.join(value.name for value in values) or 'nothing'}"
        raise ShardlogError(f"no argument is called {next(iter(held))}", where=str(file), hint=hint)
    return found


def _fitted(array: Any, value: Value, where: str) -> Any:
    if array.shape != value.shape or array.dtype not in (value.dtype, value.kept_as):
        given = f"{value.name} is {array.dtype}{list(array.shape)}"
        hint = f"expected {value.kept_as}{list(value.shape)}, for {value.type}"
        raise ShardlogError(given, where=where, hint=hint)
    return array.astype(value.dtype)


def write_outputs(file: Path, values: Sequence[Value], arrays: Arrays) -> None:
    """Writes results as ``numpy.savez`` does, by their names; types that NumPy lacks as float32 or int8."""
    named = {value.name: array.astype(value.kept_as) for value, array in zip(values, arrays, strict=True)}
    with file.open("wb") as stream:
        np.savez(stream, **named)


# ---- Running -------------------------------------------------------------------------------------------


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
        message = f"a mesh of {count:,} devices, and at most {_MOST_CPUS} CPU devices can run"
        hint = "give it a smaller mesh, as with --mesh data=2,model=4"
        raise ShardlogError(message, where=where, hint=hint)
    if len(devices) < count:
        hint = "JAX_PLATFORMS=cpu makes as many as are needed" if kind != "cpu" else f"XLA_FLAGS has {_FLAG}"
        raise ShardlogError(f"{len(devices)} {kind} devices for a mesh of {count}", where=where, hint=hint)
    return devices[:count]


def run_partitioned(result: Result, executable: Executable, inputs: Arrays) -> Arrays:
    """The results of the program that each device runs, as whole arrays; ``executable`` is that of the run's
    ``result``.

    Raises ShardlogError where it fails.
    """
    with _failures_told(result), _types_kept(chain(*boundary(result))):
        return _flat(executable(*inputs))


def compare(result: Result, alone: Alone, inputs: Arrays, outputs: Arrays) -> tuple[Comparison, ...]:
    """The results of a partitioned program beside those of the program ``alone`` on a device.

    How far a result may be off follows from how much is summed up on the way to it, and from how much it
    changes where the inputs change by the last bit: by several times that, as what would be zero but for
    rounding is.
    """
    arguments, results = boundary(result)
    with _failures_told(result), _types_kept((*arguments, *results)):
        expected, nudged = alone(inputs), alone(_nudged(arguments, inputs))
    allowed = Roundings(result).results()
    found = []
    for value, rounding, mine, theirs, other in zip(results, allowed, outputs, expected, nudged, strict=True):
        eps, limit = eps_of(value.element), 0.0
        if eps and rounding:
            nudge = _difference(other, theirs)
            limit = rounding * min(max(1.0, nudge / eps), eps**-0.5)
            limit = max(limit, _NOISE * nudge) if isfinite(nudge) else limit
            limit *= _BIAS if limit >= _TELLING else 1
        off, unlike, overflow = _difference(mine, theirs), _unlike(mine, theirs), 0
        if eps and isinf(off) and _rounding_decides(mine, theirs, other):
            apart = _apart(_wide(mine), _wide(theirs))
            off, overflow = _difference(np.where(apart, theirs, mine), theirs), int(apart.sum())
        found.append(Comparison(value.name, value.type, off, limit, unlike, overflow))
    return tuple(found)


def with_smaller_inputs(
    result: Result, executable: Executable, alone: Alone, inputs: Arrays, found: tuple[Comparison, ...]
) -> tuple[Comparison, ...]:
    """What was ``found`` with random inputs; of results that cannot be judged, what is found with smaller
    ones, if they can then. Where values are large a softmax picks one of them, and sums cancel out: what is
    left is as rounding has it."""
    arguments, _ = boundary(result)
    for turn in range(1, _TIMES + 1):
        if all(comparison.judged for comparison in found):
            break
        divided = _SMALLER**turn
        smaller = [
            array / array.dtype.type(divided) if eps_of(value.element) else array
            for value, array in zip(arguments, inputs, strict=True)
        ]
        others = compare(result, alone, smaller, run_partitioned(result, executable, smaller))
        found = tuple(
            replace(other, divided=divided) if other.judged and not comparison.judged else comparison
            for comparison, other in zip(found, others, strict=True)
        )
    return found


@contextmanager
def _failures_told(result: Result) -> Iterator[None]:
    """Raises ShardlogError for what XLA says where a program fails while it runs, as a custom call may."""
    import jax

    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        first = str(error).partition("\n")[0]
        raise ShardlogError(f"the program fails while it runs: {first}", where=result.source.name) from None


def _types_kept(values: Iterable[Value]) -> AbstractContextManager[Any]:
    """Where JAX makes arrays of the types that a program takes and gives: of 64 bits it makes 32, unless it
    is told not to."""
    import jax

    return jax.enable_x64(True) if any(map(_has_64_bits, values)) else nullcontext()


def _has_64_bits(value: Value) -> bool:
    return bool(value.dtype.itemsize // (2 if value.dtype.kind == "c" else 1) == 8)


def alone_on(result: Result, devices: Sequence[Any]) -> Alone:
    """The program on the first of the devices, or, where it cannot run there, as XLA partitions it: one with
    manual computations, which are for several devices."""
    try:
        module = plain(result.module, result.book.traits)
    except ShardlogError:
        executable = result.compile(devices)
        return lambda arrays: _flat(executable(*arrays))
    try:
        loaded = load(module, devices[:1], result.source.interface.callbacks)
    except Exception as error:  # XLA's, of many classes
        raise refused(error, result.source, result.module) from None
    return lambda arrays: _run_alone(loaded, devices[0], arrays)


def _flat(results: Any) -> Arrays:
    import jax

    return [np.asarray(array) for array in jax.tree.leaves(results)]


def _run_alone(loaded: Any, device: Any, inputs: Arrays) -> Arrays:
    import jax

    placed = [jax.device_put(array, device) for array in inputs]
    parts = loaded.execute_sharded(placed).disassemble_into_single_device_arrays()
    return [np.asarray(array) for (array,) in parts]


def _nudged(values: Sequence[Value], inputs: Arrays) -> Arrays:
    """Inputs with every element changed in its last bit."""
    rng = np.random.default_rng(0)
    found = []
    for value, array in zip(values, inputs, strict=True):
        eps = eps_of(value.element)
        if eps:
            array = (_wide(array) * (1 + eps * rng.choice([-1, 1], array.shape))).astype(array.dtype)
        found.append(array)
    return found


def _difference(one: Any, other: Any) -> float:
    """The largest difference of two elements, as a part of the largest one; infinite where only one is
    finite, and for infinities that are not the same. Of integers it is 0 only where they are equal."""
    exact = one.dtype.kind in "biu"
    if np.array_equal(one, other, equal_nan=not exact):
        return 0.0
    mine, theirs = _wide(one), _wide(other)
    if _apart(mine, theirs).any():
        return float("inf")
    finite = np.isfinite(theirs)
    gap = float(np.max(np.abs(mine[finite] - theirs[finite]), initial=0.0))
    scale = float(np.max(np.abs(theirs[finite]), initial=0.0))
    lost = 1.0 if exact else 0.0  # of large integers the gap may be
    return (gap or lost) / (scale or 1.0)


def _unlike(one: Any, other: Any) -> int:
    """The elements that are no number on one side only, of those that are finite on neither."""
    mine, theirs = _wide(one), _wide(other)
    neither = ~(np.isfinite(mine) | np.isfinite(theirs))
    return int(np.sum(neither & (np.isnan(mine) != np.isnan(theirs))))


def _apart(mine: Any, theirs: Any) -> Any:
    """Which elements are finite on one side only, or infinities that are not the same."""
    infinite = np.isinf(mine) & np.isinf(theirs)
    return (np.isfinite(mine) != np.isfinite(theirs)) | (infinite & (mine != theirs))


def _rounding_decides(one: Any, other: Any, nudged: Any) -> bool:
    """Whether rounding decides which elements are finite: some are near the largest number there is, or with
    ``nudged`` inputs others are finite."""
    import ml_dtypes

    each = [_wide(array) for array in (one, other)]
    largest = max(float(np.max(np.abs(a[np.isfinite(a)]), initial=0.0)) for a in each)
    most = float(ml_dtypes.finfo(other.dtype).max)  # type: ignore[no-untyped-call]
    moves = not np.array_equal(np.isfinite(_wide(nudged)), np.isfinite(each[1]))
    return largest > _NEAR_OVERFLOW * most or moves


def _wide(array: Any) -> Any:
    """An array in the widest type of NumPy's that has its values."""
    return array.astype(np.complex128 if array.dtype.kind == "c" else np.float64)

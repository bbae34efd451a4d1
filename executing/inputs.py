"""The arguments that a program is run with: at random, from a file of arrays, or from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import ShardlogError, closest
from .differences import Array
from .domains import Asked, InputDomain
from .rounding import eps_of
from .values import Arrays, BoundaryValue

_COUNT = 10  # random integers are below, unless the program asks for others
_MATRICES = {"definite", "triangular"}


def random_inputs(values: Sequence[BoundaryValue], seed: int, asked: Sequence[Asked] = ()) -> Arrays:
    """Random arrays for arguments: normally distributed, integers from 0 to 9, or in the domain that the
    program requires (``domains``)."""
    rng = np.random.default_rng(seed)
    each = asked or [frozenset[InputDomain]()] * len(values)
    return [_drawn(rng, value, domains) for value, domains in zip(values, each, strict=True)]


def _drawn(rng: np.random.Generator, value: BoundaryValue, domains: Asked) -> Any:
    kinds, shape = {domain.kind for domain in domains}, value.shape
    if value.dtype.kind == "b":
        return rng.random(shape) < 0.5
    if below := min((domain.below for domain in domains if domain.kind == "index"), default=0):
        return rng.integers(0, min(below, _largest(value) + 1), shape).astype(value.dtype)
    if not eps_of(value.element):
        return _integers(rng, value, kinds)
    if kinds & _MATRICES and len(shape) > 1 and shape[-1] == shape[-2]:
        array = _matrices(rng, value, "definite" in kinds)
    elif "unit" in kinds:
        array = rng.uniform(0.05, 0.95, shape)
    elif kinds - {"bits"} or not _has_signs(value):
        array = np.exp(0.5 * rng.standard_normal(shape))
    else:
        array = _normal(rng, value, shape)
    return array.astype(value.dtype)


def _integers(rng: np.random.Generator, value: BoundaryValue, kinds: set[str]) -> Any:
    if "bits" in kinds:
        bits = rng.integers(0, 256, (*value.shape, value.dtype.itemsize), np.uint8)
        return bits.view(value.dtype).reshape(value.shape)
    least = int(bool(kinds))
    return rng.integers(least, min(_COUNT, _largest(value) + 1), value.shape).astype(value.dtype)


def _has_signs(value: BoundaryValue) -> bool:
    """Whether a floating-point type has negative numbers: types of scales have none."""
    return value.dtype.kind == "c" or not np.isnan(np.array(-1.0).astype(value.dtype).astype(np.float32))


def _largest(value: BoundaryValue) -> int:
    """The largest whole number that is drawn of a type: small types have few."""
    import ml_dtypes

    if eps_of(value.element):
        return int(2 / eps_of(value.element))
    return int(ml_dtypes.iinfo(value.dtype).max)  # type: ignore[no-untyped-call]


def _normal(rng: np.random.Generator, value: BoundaryValue, shape: tuple[int, ...]) -> Any:
    array = rng.standard_normal(shape)
    return array + 1j * rng.standard_normal(shape) if value.dtype.kind == "c" else array


def _matrices(rng: np.random.Generator, value: BoundaryValue, definite: bool) -> Any:
    """Matrices with which equations are solved well: definite, or with a large diagonal."""
    size = value.shape[-1] or 1
    matrices = _normal(rng, value, value.shape) / size
    if definite:
        matrices = size * matrices @ np.conj(np.swapaxes(matrices, -1, -2))
    return matrices + np.eye(value.shape[-1])


def checkpoint_inputs(
    directory: Path, values: Sequence[BoundaryValue], seed: int, asked: Sequence[Asked]
) -> tuple[Arrays, list[str]]:
    """Arrays for arguments: those of a checkpoint of orbax, and random ones for all others. Also the names
    of the others. Raises ShardlogError as ``read_checkpoint``, and for arrays of other shapes and types."""
    from .checkpoints import read_checkpoint

    stored = read_checkpoint(directory, values)
    drawn = random_inputs(values, seed, asked)
    arrays = [
        _fitted(stored[value.name], value, str(directory)) if value.name in stored else array
        for value, array in zip(values, drawn, strict=True)
    ]
    return arrays, [value.name for value in values if value.name not in stored]


def read_inputs(file: Path | str, values: Sequence[BoundaryValue]) -> Arrays:
    """The arguments in a file of ``numpy.savez``: by their names, or in order (``arr_0``, ``arr_1``).

    Raises ShardlogError where it cannot be read, or does not fit the program's arguments.
    """
    try:
        with np.load(file, allow_pickle=False) as archive:
            held = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise ShardlogError(f"cannot read: {error.strerror or error}", where=str(file)) from None
    except Exception:  # of zipfile and NumPy, of many classes
        raise ShardlogError(
            "not a file of arrays", where=str(file), hint="expected a .npz file, as numpy.savez writes"
        ) from None
    arrays = []
    for i, value in enumerate(values):
        names = [name for name in (value.name, f"arr_{i}", f"%arg{i}") if name in held]
        if not names:
            has = closest(value.name, held) if held else "it is empty"
            raise ShardlogError(f"no array for {value.name} : {value.type}", where=str(file), hint=has)
        arrays.append(_fitted(held.pop(names[0]), value, str(file)))
    if held:
        hint = f"the program takes {', '.join(value.name for value in values) or 'nothing'}"
        raise ShardlogError(f"no argument is called {next(iter(held))}", where=str(file), hint=hint)
    return arrays


def _fitted(array: Array, value: BoundaryValue, where: str) -> Array:
    if array.shape != value.shape or array.dtype not in (value.dtype, value.kept_as):
        given = f"{value.name} is {array.dtype}{list(array.shape)}"
        hint = f"expected {value.kept_as}{list(value.shape)}, for {value.type}"
        raise ShardlogError(given, where=where, hint=hint)
    return array.astype(value.dtype)


def write_outputs(file: Path, values: Sequence[BoundaryValue], arrays: Arrays) -> None:
    """Writes results as ``numpy.savez`` does, by their names; types that NumPy lacks as float32 or int8."""
    named: dict[str, Any] = {
        value.name: array.astype(value.kept_as) for value, array in zip(values, arrays, strict=True)
    }
    with file.open("wb") as stream:
        np.savez(stream, **named)

"""Shardings by named axes, as sdy has them, and by tiles and devices, as GSPMD has them.

In row-major order, the positions of a mesh are numbers in a mixed radix, whose digits are the mesh axes. An
axis of size n, whose minor neighbours have s positions together, is the digit (n, s) of stride s. A
sub-axis is part of such a digit. The list of devices of a tiled sharding is made of digits too, in another
order: going through the tiles, every dimension of the tiling counts up some of them. Reading a sharding
finds these digits and the axes that they stand for; writing one puts the digits of its axes in order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from ...errors import ShardlogError
from ...program.meshes import Mesh, SubAxis
from ...program.shardings import Dimension, Sharding
from .hlo_sharding import SUBGROUPS, HloSharding, Iota, flat

Digit = tuple[int, int]  # size and stride
Devices = npt.NDArray[np.int64]


# ---- Reading -----------------------------------------------------------------------------------------------


def common_mesh(places: Mapping[HloSharding, str]) -> Mesh:
    """The mesh with the fewest axes that can express all tiled shardings; its axes are "axis_0", ...

    ``places`` are the shardings with where they stand. Axes are split wherever some sharding splits them,
    as in XLA's importer; splits that do not divide one another are left to sub-axes. Devices are in their
    own order if possible, otherwise in the order of one of the shardings. Raises ShardlogError where there
    is no such mesh.
    """
    places = {sharding: where for sharding, where in places.items() if sharding.kind == "tiled"}
    if not places:
        return Mesh("mesh", ())
    first = next(iter(places))
    count = prod(first.tiles)
    for sharding, where in places.items():
        if prod(sharding.tiles) != count:
            message = f"{sharding} is on {prod(sharding.tiles)} devices, and {first} on {count}"
            raise ShardlogError(
                message, where=where, hint="all shardings of a module use the devices of its mesh"
            )
    orders = {flat_devices(s): s for s in places if dimension_digits(s, ()) is None}
    for devices, sharding in orders.items():
        if sorted(devices) != list(range(count)):
            message = f"the devices of {sharding} are not the numbers from 0 to {count - 1}"
            raise ShardlogError(message, where=places[sharding], hint="sdy's meshes have all devices")
    for order in sorted(orders, key=lambda devices: (_replicas(orders[devices]), devices)) or [()]:
        by_sharding = {sharding: dimension_digits(sharding, order) for sharding in places}
        if None not in by_sharding.values():
            digits = [digit for parts in by_sharding.values() for part in parts or () for digit in part]
            cuts = {1, count, *(cut for n, stride in digits for cut in (stride, n * stride))}
            kept = sorted(c for c in cuts if all(c % other == 0 or other % c == 0 for other in cuts))
            sizes = [major // minor for minor, major in pairwise(kept)][::-1]
            return Mesh("mesh", tuple((f"axis_{i}", size) for i, size in enumerate(sizes)), order)
    other = next(sharding for sharding, digits in by_sharding.items() if digits is None)
    message = f"no mesh has its devices in an order that suits {orders[order]} and {other}"
    hint = "sdy has one order of devices for each mesh"
    raise ShardlogError(message, where=places[other], hint=hint)


def _replicas(sharding: HloSharding) -> int:
    """Shardings with fewer replicas say more about the order of devices, which replicas do not have."""
    return sharding.tiles[-1] if "replicated" in sharding.subgroups else 1


def to_sharding(
    sharding: HloSharding, number: int, mesh: Mesh, rank: int, opened: Collection[int] = ()
) -> Sharding:
    """``sharding`` by the axes of ``mesh``, which has this number; dimensions are closed unless ``opened``.

    Manual axes are in no dimension, as inside of a manual computation. Raises ShardlogError where the axes or
    the rank do not fit.
    """
    if sharding.kind == "unknown":
        opened = range(rank)
    dimensions = [Dimension((), d not in opened) for d in range(rank)]
    if sharding.kind == "tiled":
        tiled = len(sharding.tiles) - len(sharding.subgroups)
        if tiled != rank:
            message = f"{sharding} is for rank {tiled}, the tensor has rank {rank}"
            raise ShardlogError(message, hint="expected one number of tiles for each dimension")
        parts = zip(dimensions, _digits(sharding, mesh), strict=False)
        dimensions = [replace(dimension, axes=_cut(part, sharding, mesh)) for dimension, part in parts]
    return Sharding(number, tuple(dimensions), (), subgroup_axes(sharding, "unreduced", mesh))


def subgroup_axes(sharding: HloSharding, kind: str, mesh: Mesh) -> tuple[SubAxis, ...]:
    """The axes of the last dimensions of this kind, in the order of the mesh."""
    if sharding.kind == kind:
        return tuple(SubAxis(name, 1, size) for name, size in mesh.axes if size > 1)
    if kind not in sharding.subgroups:
        return ()
    parts = zip(sharding.subgroups, _digits(sharding, mesh)[-len(sharding.subgroups) :], strict=True)
    digits = [digit for subgroup, part in parts for digit in part if subgroup == kind]
    return _cut(_merged(sorted(digits, key=lambda digit: -digit[1])), sharding, mesh)


def _digits(sharding: HloSharding, mesh: Mesh) -> list[list[Digit]]:
    """The digits of every dimension of the tiling."""
    tiles, count = prod(sharding.tiles), prod(size for _, size in mesh.axes)
    if tiles != count:
        message = f"{sharding} is on {tiles} devices, and the mesh {_shown(mesh)} has {count}"
        raise ShardlogError(message, hint="all shardings of a module use the devices of its mesh")
    digits = dimension_digits(sharding, mesh.device_ids)
    if digits is None:
        raise _unfit(sharding, mesh)
    return digits


def _cut(digits: Sequence[Digit], sharding: HloSharding, mesh: Mesh) -> tuple[SubAxis, ...]:
    """The axes that digits of ``sharding`` stand for."""
    axes: list[SubAxis] = []
    for size, stride in digits:
        end = prod(n for _, n in mesh.axes)
        for name, n in mesh.axes:
            start, stop = end // n, end
            low, high = max(stride, start), min(stride * size, stop)
            if low < high:
                if high % low or low % start or stop % high:
                    raise _unfit(sharding, mesh)
                axes.append(SubAxis(name, stop // high, high // low))
            end = start
    return tuple(axes)


def _unfit(sharding: HloSharding, mesh: Mesh) -> ShardlogError:
    message = f"the axes of the mesh {_shown(mesh)} cannot express {sharding}"
    return ShardlogError(message, hint="leave out the mesh, and shardlog finds one that fits")


def _shown(mesh: Mesh) -> str:
    return ",".join(f"{name}={size}" for name, size in mesh.axes) or "without axes"


def dimension_digits(sharding: HloSharding, order: Sequence[int]) -> list[list[Digit]] | None:
    """The digits of every dimension of a tiling, major to minor, where devices stand in this order (empty:
    their own); None where there are none."""
    if isinstance(sharding.devices, Iota) and not order:
        rest = _merged(_iota_digits(sharding.devices))
    else:
        positions = np.array(flat_devices(sharding), np.int64)
        if positions.max() >= len(positions):
            return None
        if order:
            positions = np.argsort(np.array(order))[positions]
        if sharding.subgroups[-1:] == ("replicated",):  # whose order means nothing
            positions = np.sort(positions.reshape(-1, sharding.tiles[-1])).ravel()
        listed = _list_digits(positions)
        if listed is None:
            return None
        rest = listed
    dimensions = []
    for tile in reversed(sharding.tiles):
        digits: list[Digit] = []
        while tile > 1:
            size, stride = rest.pop()
            taken = min(size, tile)
            if max(size, tile) % taken:
                return None
            if size > taken:
                rest.append((size // taken, stride * taken))
            digits.append((taken, stride))
            tile //= taken
        dimensions.append(_merged(digits[::-1]))
    return dimensions[::-1]


def flat_devices(sharding: HloSharding) -> tuple[int, ...]:
    """The devices of the tiles, row-major."""
    return flat(sharding.devices)


def _iota_digits(iota: Iota) -> list[Digit]:
    return [(iota.sizes[i], prod(iota.sizes[i + 1 :])) for i in iota.order]


def _list_digits(positions: Devices) -> list[Digit] | None:
    """The digits that a list of positions counts up, major to minor; None where it does not."""
    digits: list[Digit] = []
    block, count = 1, len(positions)
    while block < count:
        stride = int(positions[block])
        steps = positions.reshape(-1, block) - positions[:block]
        even = (steps == stride * np.arange(len(steps))[:, None]).all(axis=1)
        size = len(even) if even.all() else int(even.argmin())
        if size < 2 or count % (block * size):
            return None
        digits.append((size, stride))
        block *= size
    ends = 1
    for size, stride in sorted(digits, key=lambda digit: digit[1]):
        if stride != ends:
            return None
        ends *= size
    return digits[::-1] if positions[0] == 0 else None


def _merged(digits: Iterable[Digit]) -> list[Digit]:
    """The digits without those of size 1; contiguous neighbours are merged."""
    merged: list[Digit] = []
    for size, stride in digits:
        if size == 1:
            continue
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return merged


# ---- Writing -----------------------------------------------------------------------------------------------


def from_sharding(sharding: Sharding, mesh: Mesh, manual: Sequence[str] = ()) -> HloSharding:
    """``sharding`` by tiles and devices, in XLA's normal form; ``manual`` are the manual axes around it.

    Dimensions lose whether they are open, and their priorities. Raises ShardlogError for unreduced axes whose
    reduction is no sum.
    """
    if sharding.unreduced and sharding.reduction != "sum":
        message = f"GSPMD's notation has partial sums only, not a partial {sharding.reduction}"
        raise ShardlogError(message, hint="write sdy's notation, which names the reduction")
    if not mesh.axes:
        return HloSharding("maximal" if mesh.device_ids else "replicated", devices=mesh.device_ids)
    strides = _strides(mesh)

    def digits(axes: Iterable[SubAxis]) -> list[Digit]:
        return [_digit(axis, mesh, strides) for axis in axes if axis.size > 1]

    dimensions = [digits(dimension.axes) for dimension in sharding.dimensions]
    special = {
        "manual": digits(SubAxis(name, 1, mesh.sizes[name]) for name in manual),
        "unreduced": digits(sharding.unreduced),
    }
    used = [digit for part in (*dimensions, *special.values()) for digit in part]
    special["replicated"] = _rest(used, prod(size for _, size in mesh.axes))
    subgroups = tuple(kind for kind in SUBGROUPS if special[kind])
    if not any(dimensions) and len(subgroups) < 2:
        return HloSharding(subgroups[0] if subgroups else "replicated")
    parts = [*dimensions, *(special[kind] for kind in subgroups)]
    tiles = tuple(prod(size for size, _ in part) for part in parts)
    iota = _iota([digit for part in parts for digit in part])
    if not mesh.device_ids:
        return HloSharding("tiled", tiles, iota, subgroups)
    devices = np.array(mesh.device_ids)[list(flat_devices(HloSharding("tiled", tiles, iota)))]
    if subgroups[-1:] == ("replicated",):
        devices = np.sort(devices.reshape(-1, tiles[-1])).ravel()
    return HloSharding("tiled", tiles, tuple(devices.tolist()), subgroups)


def groups_along(mesh: Mesh, axes: Iterable[SubAxis]) -> Devices:
    """The devices of a mesh that differ only along some axes: a row per group, in the order of the axes."""
    strides, count = _strides(mesh), prod(size for _, size in mesh.axes)
    along = [_digit(axis, mesh, strides) for axis in axes]
    positions = np.array(flat(_iota([*_rest(along, count), *along]))).reshape(-1, prod(n for n, _ in along))
    return np.array(mesh.device_ids)[positions] if mesh.device_ids else positions


def _strides(mesh: Mesh) -> dict[str, int]:
    return {name: prod(n for _, n in mesh.axes[i + 1 :]) for i, (name, _) in enumerate(mesh.axes)}


def _digit(axis: SubAxis, mesh: Mesh, strides: Mapping[str, int]) -> Digit:
    return axis.size, strides[axis.name] * (mesh.sizes[axis.name] // (axis.pre * axis.size))


def _rest(used: Iterable[Digit], count: int) -> list[Digit]:
    """The digits that remain, major to minor, when some are used."""
    rest: list[Digit] = []
    end = count
    for size, stride in sorted([*used, (1, 1)], key=lambda digit: -digit[1]):
        if size * stride < end:
            rest.append((end // (size * stride), size * stride))
        end = stride
    return rest


def _iota(digits: Iterable[Digit]) -> Iota:
    merged = _merged(digits) or [(1, 1)]
    by_stride = sorted(merged, key=lambda digit: -digit[1])
    return Iota(tuple(size for size, _ in by_stride), tuple(by_stride.index(digit) for digit in merged))

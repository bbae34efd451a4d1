"""The possible meshes of a number of devices."""

from __future__ import annotations

from collections.abc import Iterator

MOST_AXES, USUAL_AXES = 3, 2  # axes of a searched mesh: at most, and at most where nobody says
NAMES = {1: ("data",), 2: ("data", "model"), 3: ("data", "model", "seq")}


def meshes_of(devices: int, most: int) -> list[str]:
    """The meshes of so many devices with at most so many axes, fewer axes first; the order of sizes counts,
    for the first axes go over the slowest links."""
    all_sizes = [sizes for axes in range(1, most + 1) for sizes in _factorisations(devices, axes)]
    return [mesh_of(sizes) for sizes in all_sizes] or [mesh_of((1,))]


def mesh_of(sizes: tuple[int, ...]) -> str:
    """The mesh with axes of these sizes, as in ``--mesh``."""
    return ",".join(f"{name}={size}" for name, size in zip(NAMES[len(sizes)], sizes, strict=True))


def _factorisations(number: int, axes: int) -> Iterator[tuple[int, ...]]:
    if axes == 1:
        if number > 1:
            yield (number,)
        return
    for size in range(2, number // 2 + 1):
        if number % size == 0:
            for rest in _factorisations(number // size, axes - 1):
                yield (size, *rest)

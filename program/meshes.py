"""Meshes, and their axes cut into atoms."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import isqrt

MOST_DEVICES = 100_000  # of a program, which lists every device
_BARE = re.compile(r"[A-Za-z_][\w$.]*", re.ASCII)  # symbols that need no quotes
_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')


@dataclass(frozen=True)
class SubAxis:
    """``"name":(pre)size``, a part of a mesh axis; a whole axis has ``pre`` 1 and the axis's size."""

    name: str
    pre: int
    size: int


@dataclass(frozen=True)
class AxisAtom:
    """A piece of a mesh axis between two consecutive divisors ``lo`` and ``hi`` of its size.

    A sub-axis ``"x":(pre)size`` is the run of atoms from ``lo == pre`` to ``hi == pre * size``; sub-axes
    overlap if and only if they share an atom. An axis of size 1 is one atom with ``lo == hi == 1``.
    """

    id: int
    mesh: int
    axis: str
    lo: int
    hi: int


@dataclass(frozen=True)
class Mesh:
    """A device mesh: named axes with their sizes, and the order of devices where it is not the default.

    A *maximal* mesh has no axes and one device.
    """

    name: str
    axes: tuple[tuple[str, int], ...]
    device_ids: tuple[int, ...] = ()

    @property
    def maximal(self) -> bool:
        return not self.axes and len(self.device_ids) == 1

    @cached_property
    def sizes(self) -> dict[str, int]:
        return dict(self.axes)


def quoted(name: str) -> str:
    """A name as a string of MLIR."""
    return '"' + _ESCAPED.sub(lambda c: "\\\\" if c[0] == "\\" else f"\\{ord(c[0]):02X}", name) + '"'


def symbol(name: str) -> str:
    """A name as a symbol of MLIR: ``@mesh``, ``@"my mesh"``."""
    return f"@{name if _BARE.fullmatch(name) else quoted(name)}"


def axis_text(axis: SubAxis, mesh: Mesh, name: str = "") -> str:
    """``x``, or ``x:(1)2`` for a sub-axis; ``name`` in place of the axis's, if given."""
    name = name or axis.name
    return name if axis.size == mesh.sizes[axis.name] else f"{name}:({axis.pre}){axis.size}"


def divisors(n: int) -> list[int]:
    """The divisors of a number, in order."""
    small = [d for d in range(1, isqrt(n) + 1) if n % d == 0]
    return sorted({*small, *(n // d for d in small)})


class Meshes:
    """The meshes of a module, numbered from 0, and the atoms of their axes, numbered over all meshes."""

    def __init__(self, meshes: Iterable[Mesh]) -> None:
        self.meshes: list[Mesh] = []
        self.same: list[int] = []  # mesh -> the first one that is equal but for its name
        self.atoms: list[AxisAtom] = []
        self._runs: dict[tuple[int, str], list[AxisAtom]] = {}
        for mesh in meshes:
            self.add(mesh)

    def add(self, mesh: Mesh, same: int = -1) -> int:
        """The number of ``mesh``, which is added to the others. ``same``: it is another name of that one."""
        number = len(self.meshes)
        self.meshes.append(mesh)
        self.same.append(number if same < 0 else same)
        if same >= 0:
            self._runs.update({(number, axis): self._runs[same, axis] for axis, _ in mesh.axes})
            return number
        for axis, size in mesh.axes:
            cuts = divisors(size) if size > 1 else [1, 1]
            run = [
                AxisAtom(len(self.atoms) + i, number, axis, lo, hi)
                for i, (lo, hi) in enumerate(pairwise(cuts))
            ]
            self.atoms.extend(run)
            self._runs[number, axis] = run
        return number

    def split(self, mesh: int, axis: SubAxis) -> list[int]:
        """The atoms of a sub-axis, major to minor."""
        end = axis.pre * axis.size
        return [atom.id for atom in self._runs[mesh, axis.name] if axis.pre <= atom.lo and atom.hi <= end]

    def merge(self, atoms: Sequence[int]) -> list[SubAxis]:
        """The sub-axes that a list of atoms makes up, adjacent atoms of an axis merged."""
        runs: list[tuple[str, int, int]] = []  # axis, where the run starts and ends
        for atom in (self.atoms[x] for x in atoms):
            if runs and runs[-1][0] == atom.axis and runs[-1][2] == atom.lo and atom.hi > atom.lo:
                runs[-1] = (atom.axis, runs[-1][1], atom.hi)
            else:
                runs.append((atom.axis, atom.lo, atom.hi))
        return [SubAxis(name, start, end // start) for name, start, end in runs]

    def text(self, atoms: Sequence[int], separator: str = ", ") -> str:
        """The sub-axes that a list of atoms makes up, as text: ``data, model:(1)2``."""
        return separator.join(
            axis_text(part, self.meshes[self.atoms[atoms[0]].mesh]) for part in self.merge(atoms)
        )

    def facts(self) -> dict[str, list[tuple[object, ...]]]:
        """``axis(x, m, name, lo, hi)`` and ``maximal(m)``, shared by every turn."""
        return {
            "axis": [(a.id, a.mesh, a.axis, a.lo, a.hi) for a in self.atoms],
            "maximal": [(m,) for m, mesh in enumerate(self.meshes) if mesh.maximal],
        }

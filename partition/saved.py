"""Plans in files. They name axes, and can only be read for the module that they were made for.

The file is JSON of version 1. ``module`` is the digest of the annotated module as text, and ``mesh`` its main
mesh, as in ``--mesh``. ``axes`` are the parts of mesh axes in the plan. ``cut`` says whether slices of
concatenations were read from their parts, because that changes the numbers of values. The other fields are
those of ``Plan``. A layout is a list of axes for each dimension. A layout of partial results has these as
``dims``, with ``partial`` and the op that combines them (``combine``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, cast, get_args

from jaxlib.mlir import ir

from ..errors import ShardlogError
from ..program.ids import Factor, Slot
from ..program.meshes import Meshes, SubAxis, axis_text
from ..program.mlir.diagnostics import explain
from ..program.shardings import Dimension, Sharding
from .choice.choosing import Way
from .forms import REMAKE, VERSION, PlanFile
from .layouts import Axes, Layout, PieceId, Pieces, numbered
from .plan import Plan, Reshard, Role
from .reshards import moves
from .reshards.moves import Step


def digest(module: ir.Module) -> str:
    """The digest of an annotated module, by which a plan recognises it."""
    return sha256(str(module).encode()).hexdigest()


@dataclass(frozen=True)
class SavedPlan:
    """A plan from a file, which names axes."""

    file: PlanFile

    @cached_property
    def _data(self) -> dict[str, Any]:
        return cast(dict[str, Any], json.loads(self.file.text))

    @property
    def cut(self) -> bool:
        """Whether slices of concatenations were read from their parts."""
        return bool(self._data.get("cut"))

    def check(self, module: ir.Module) -> None:
        """Raises ShardlogError if the plan belongs to another module."""
        if self._data.get("module") != digest(module):
            message = "a plan of another module, or of other shardings"
            raise ShardlogError(message, where=self.file.where, hint=REMAKE)

    def shardings(self, meshes: Meshes) -> list[Sharding]:
        """Shardings that use all axes with the cuts of the plan. Raises ShardlogError if the file is
        damaged."""
        with self.reading():
            sizes = [dict(mesh.axes) for mesh in meshes.meshes]
            read = []
            for mesh, axis, pre, size in self._data["axes"]:
                if sizes[mesh][axis] % (int(pre) * int(size)):
                    raise ValueError(f"the axis {axis} has no part ({pre}){size}")
                read.append(Sharding(mesh, (Dimension((SubAxis(axis, int(pre), int(size)),)),)))
            return read

    def plan(self, axes: Axes, values: int) -> Plan:
        """The plan itself, for a module with this many values. Raises ShardlogError if the file is
        damaged."""
        data = self._data
        if [[p.mesh, p.axis, p.pre, p.size] for p in axes.pieces] != data.get("axes"):
            raise ShardlogError("a plan of another mesh", where=self.file.where, hint=REMAKE)
        pieces = {_name(axes, p): p for p in numbered(range(len(axes.every)))}

        def of(names: Sequence[str]) -> Pieces:
            return tuple([pieces[name] for name in names])

        def layout(given: Any) -> Layout:
            if isinstance(given, list):
                return Layout(tuple(map(of, given)))
            return Layout(tuple(map(of, given["dims"])), of(given["partial"]), str(given["combine"]))

        def way(given: Sequence[Any]) -> Way:
            return tuple([(Factor(int(factor)), of(names)) for factor, names in given])

        def step(given: Mapping[str, Any]) -> Step:
            kind, dim, to = given["kind"], *(int(given.get(name, -1)) for name in ("dim", "to"))
            if kind not in get_args(moves.StepKind):
                raise ValueError(kind)
            return Step(kind, of(given["axes"]), layout(given["after"]), float(given["sends"]), dim, to)

        def reshard(given: Mapping[str, Any]) -> Reshard:
            op, slot, value = (int(given[name]) for name in ("op", "slot", "value"))
            if given["role"] not in get_args(Role):
                raise ValueError(given["role"])
            start = None if given["from"] is None else layout(given["from"])
            steps, anew = tuple(map(step, given["steps"])), given.get("way")
            goal = layout(given["to"])
            if steps and steps[-1].after != goal:
                raise ValueError(f"a reshard of value {value} that does not end where it is to")
            return Reshard(
                op, Slot(slot), given["role"], value, start, goal, steps, None if anew is None else way(anew)
            )

        def by_value(name: str, read: Callable[[Any], Any]) -> dict[int, Any]:
            values_read = {int(value): read(given) for value, given in data[name].items()}
            if unknown := [value for value in values_read if not 0 <= value < values]:
                raise ValueError(f"the module has no value {unknown[0]}")
            return values_read

        with self.reading():
            return Plan(
                by_value("homes", layout),
                by_value("ways", way),
                by_value("copies", layout),
                frozenset(map(int, data["pinned"])),
                bool(data["again"]),
                tuple(map(reshard, data["reshards"])),
            )

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turns errors in this context into an error about the file, which may be written by hand."""
        try:
            yield
        except ShardlogError:
            raise
        except Exception as error:
            reason = explain(error, "")[0] if isinstance(error, ir.MLIRError) else error
            message = f"a damaged plan ({type(error).__name__}: {reason})"
            raise ShardlogError(message, where=self.file.where, hint=REMAKE) from None


def saved(plan: Plan, axes: Axes, module: ir.Module, *, cut: bool) -> PlanFile:
    """The content of a file for a plan with decided reshards."""

    def names(pieces: Pieces) -> list[str]:
        return [_name(axes, p) for p in pieces]

    def layout(of: Layout) -> Any:
        dims = [names(pieces) for pieces in of.dims]
        if not of.partial:
            return dims
        return {"dims": dims, "partial": names(of.partial), "combine": of.combine}

    def way(of: Way) -> list[Any]:
        return [[factor, names(pieces)] for factor, pieces in of]

    def step(of: Step) -> dict[str, Any]:
        entry = {"kind": of.kind, "axes": names(of.pieces), "after": layout(of.after), "sends": of.price}
        return entry | {name: n for name, n in (("dim", of.dim), ("to", of.to)) if n >= 0}

    def reshard(of: Reshard) -> dict[str, Any]:
        entry: dict[str, Any] = {"op": of.op, "slot": of.slot, "role": of.role, "value": of.value}
        entry |= {"from": None if of.start is None else layout(of.start), "to": layout(of.goal)}
        entry["steps"] = [step(each) for each in of.steps]
        return entry if of.way is None else entry | {"way": way(of.way)}

    mesh = axes.mesh
    head = {
        "version": VERSION,
        "module": digest(module),
        "mesh": "" if mesh is None else ",".join(f"{name}={size}" for name, size in mesh.axes),
        "axes": [[p.mesh, p.axis, p.pre, p.size] for p in axes.pieces],
        "cut": cut,
        "again": plan.again,
        "pinned": sorted(plan.pinned),
    }
    entries: dict[str, Any] = {
        "homes": {str(value): layout(of) for value, of in sorted(plan.homes.items())},
        "copies": {str(value): layout(of) for value, of in sorted(plan.copies.items())},
        "ways": {str(value): way(of) for value, of in sorted(plan.ways.items())},
        "reshards": [reshard(of) for of in plan.reshards or ()],
    }
    lines = [f"{json.dumps(name)}: {json.dumps(value)}" for name, value in head.items()]
    for name, values in entries.items():
        lines.append(f"{json.dumps(name)}: {_in_lines(values)}")
    return PlanFile("{\n" + ",\n".join(lines) + "\n}\n")


def _in_lines(values: Mapping[str, Any] | Sequence[Any]) -> str:
    """An object or a list as JSON, one entry per line."""
    if isinstance(values, Mapping):
        entries, ends = [f"{json.dumps(key)}: {json.dumps(of)}" for key, of in values.items()], "{}"
    else:
        entries, ends = [json.dumps(of) for of in values], "[]"
    return ends[0] + "\n" + ",\n".join(entries) + "\n" + ends[1] if entries else ends


def _name(axes: Axes, piece: PieceId) -> str:
    """The name of a part of a mesh axis: ``data``, ``model:(1)2``. Meshes other than the main one are
    prefixed by number."""
    part = axes.every[piece]
    name = axis_text(SubAxis(part.axis, part.pre, part.size), axes.meshes.meshes[part.mesh])
    return name if axes.on_main(Layout(((piece,),))) else f"{part.mesh}/{name}"

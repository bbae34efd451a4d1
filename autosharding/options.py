"""The options of automatic sharding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any

from ..errors import ShardlogError, closest
from ..program.meshes import MOST_DEVICES
from ..runs.options import TOPOLOGY, memory_of
from .meshes import MOST_AXES

TIES = ("auto", "none")
METHODS = ("choose", "mutate")


@dataclass(frozen=True, kw_only=True)
class AutoOptions:
    """The options of a search.

    ``mesh`` is the mesh, as in "data=4,model=2". Without it the module's mesh counts; with ``devices`` the
    best mesh of so many devices, with at most so many ``axes``, or two. ``topology`` is the machine, and
    ``memory`` the most bytes that a device may need. ``keep`` are shardings that stay, as in "batch[0]=data".
    ``tie`` says which results are state that comes back as an argument: "auto", "none", or pairs such as
    "params=result[0]". With ``compare`` known strategies are costed too: data parallel, ZeRO, Megatron. The
    ``method`` "mutate" also tries other layouts for the arguments of the best plan, one by one.

    Raises ShardlogError for a malformed size or number of devices, and for options that exclude each other.
    """

    mesh: str | None = None
    devices: int | None = None
    axes: int | None = None
    topology: str = TOPOLOGY
    memory: int | None = None
    keep: tuple[str, ...] = ()
    tie: tuple[str, ...] = ("auto",)
    compare: bool = True
    method: str = METHODS[0]

    def __post_init__(self) -> None:
        if self.devices is not None and not _is_count(self.devices):
            message, hint = f"{self.devices!r} devices", "expected a number of devices, one or more"
            raise ShardlogError(message, where="--devices", hint=hint)
        if self.devices is not None and self.devices > MOST_DEVICES:
            message, hint = f"{self.devices:,} devices", f"expected at most {MOST_DEVICES:,}"
            raise ShardlogError(message, where="--devices", hint=hint)
        if "none" in self.tie and len(self.tie) > 1:
            hint = "leave one of them out"
            raise ShardlogError("none together with other ties", where="--tie", hint=hint)
        if self.method not in METHODS:
            hint = closest(self.method, METHODS)
            raise ShardlogError(f"there is no method {self.method!r}", where="--method", hint=hint)
        if self.axes is None:
            return
        if not (_is_count(self.axes) and self.axes <= MOST_AXES):
            message, hint = f"meshes of {self.axes!r} axes", f"expected 1 to {MOST_AXES}"
            raise ShardlogError(message, where="--axes", hint=hint)
        if self.devices is None or self.mesh is not None:
            message = "only meshes that auto makes have a number of axes"
            raise ShardlogError(message, where="--axes", hint="add --devices N, or leave --axes out")

    def on(self, mesh: str) -> AutoOptions:
        """The options on this mesh."""
        return replace(self, mesh=mesh, devices=None, axes=None)

    @staticmethod
    def of(**given: Any) -> AutoOptions:
        """The options from a user's values: a size may be a text, and several texts one text.

        Raises ShardlogError as ``AutoOptions`` does.
        """
        names = {option.name for option in fields(AutoOptions)}
        read = {name: value for name, value in given.items() if name in names and value is not None}
        if "memory" in read:
            try:
                read["memory"] = memory_of(read["memory"])
            except ValueError as error:
                raise ShardlogError(str(error), where="--memory") from None
        for name in ("keep", "tie"):
            if name in read:
                read[name] = _texts(read[name], f"--{name}")
        return AutoOptions(**read)


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1


def _texts(given: Any, where: str) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else None
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise ShardlogError(f"{given!r} is neither a text nor several", where=where, hint="give texts")
    return texts

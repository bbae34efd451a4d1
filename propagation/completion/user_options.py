"""Sharding options of ops, as in ``%4=[[], [], [], [0]]``: the axes of each loop."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError, closest
from ...importers.annotations import Targets
from ...program.carried import OPTION
from ...program.function import location
from ...program.meshes import SubAxis, symbol
from ...program.mlir.modules import operations_in
from ...program.shardings import Shardings
from ...program.signature import text_of
from .notes import Facts

_LOOPS = r"(?:@(?P<grid>[\w$.-]+)\s*)?(?P<lists>\[.*\])\s*"
_OF_OP = re.compile(_LOOPS, re.DOTALL)
_OPTION = re.compile(rf"\s*(?P<value>\S.*?)\s*=\s*{_LOOPS}", re.DOTALL)
_EXPECTED = "expected an op's result and the axes of each of its loops, as in %4=[[], [], [], [0]]"


@dataclass(frozen=True)
class UserOption:
    """The option that a user gives an op: on which grid, and which atoms of its axes split each loop.
    ``where`` is the place for messages."""

    where: str
    grid: int
    loops: tuple[tuple[int, ...], ...]

    @property
    def facts(self) -> Facts:
        """The option as the rules of completion read it."""
        split = [(loop, p, x) for loop, axes in enumerate(self.loops) for p, x in enumerate(axes)]
        return {"user_grid": [(self.grid,)], "user_splits": split}


def read_user_options(
    module: ir.Module, texts: Sequence[str], shardings: Shardings, data: bytes
) -> dict[ir.Operation, UserOption]:
    """The options that texts give ops of the main function, called as ``data`` calls their results, and those
    that other ops have in the module.

    Raises ShardlogError for a text that is none, a value that no op gives, axes that the grid does not have,
    and for two options of an op.
    """
    options: dict[ir.Operation, UserOption] = {}
    targets = Targets(module, data) if texts else None
    for text in texts:
        assert targets is not None
        where = f"--option '{text}'"
        match = _OPTION.fullmatch(text)
        if match is None:
            raise ShardlogError("not a sharding option", where=where, hint=_EXPECTED)
        value: Any = targets.find(match["value"], where)
        if not isinstance(value, ir.Value) or isinstance(value.owner, ir.Block):
            message = f"{match['value']} is not the result of an op, and has no loops"
            raise ShardlogError(message, where=where, hint="name the result of an op")
        op = value.owner.operation
        if op.name == "sdy.sharding_constraint":
            hint = f"name the value that it is of, {value.owner.operands[0].get_name()}"
            raise ShardlogError(f"{match['value']} is an annotation", where=where, hint=hint)
        if op in options:
            message = f"{match['value']} has two sharding options"
            raise ShardlogError(message, where=where, hint="give one for each op")
        options[op] = _read(match, shardings, where)
    for op in operations_in(module):
        if OPTION in op.attributes and op not in options:
            where = location(op)
            if (match := _OF_OP.fullmatch(text_of(op.attributes[OPTION]))) is None:
                raise ShardlogError(f"{OPTION} is not a sharding option", where=where, hint=_EXPECTED)
            options[op] = _read(match, shardings, where)
    return options


def _read(match: re.Match[str], shardings: Shardings, where: str) -> UserOption:
    grid, axes = _grid(match["grid"], shardings, where)
    try:
        lists = json.loads(match["lists"])
    except ValueError:
        lists = None
    if not isinstance(lists, list) or not all(isinstance(entry, list) for entry in lists):
        raise ShardlogError("not a sharding option", where=where, hint=_EXPECTED)
    named = [[_axis(axis, axes, where) for axis in entry] for entry in lists]
    names = [*chain.from_iterable(named)]
    for name in names:
        if names.count(name) > 1:
            message = f"axis {name} is listed twice"
            raise ShardlogError(message, where=where, hint="an axis splits one loop, once")
    loops = []
    for entry in named:
        whole = (SubAxis(name, 1, axes[name]) for name in entry)
        loops.append(tuple(x for axis in whole for x in shardings.meshes.split(grid, axis)))
    return UserOption(where, grid, tuple(loops))


def _grid(name: str | None, shardings: Shardings, where: str) -> tuple[int, dict[str, int]]:
    """The number and the axes of the grid with a name, or of the only one."""
    meshes = shardings.meshes.meshes
    grids = {symbol_: number for symbol_, number in shardings.names.items() if meshes[number].axes}
    if name is None:
        if len(grids) != 1:
            hint = f"name one, as in %4=@grid[[0]]; {closest('', grids)}" if grids else "declare a grid"
            raise ShardlogError(f"the module has {len(grids)} grids", where=where, hint=hint)
        (name,) = grids
    if name not in grids:
        raise ShardlogError(f"the module has no grid {symbol(name)}", where=where, hint=closest(name, grids))
    return grids[name], dict(meshes[grids[name]].axes)


def _axis(given: Any, axes: dict[str, int], where: str) -> str:
    """The name of an axis that is given by its name or number."""
    names = [*axes]
    if isinstance(given, str) and given in axes:
        return given
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(names):
        return names[given]
    numbers = f"its axes are 0 to {len(names) - 1}" if len(names) > 1 else "its only axis is 0"
    hint = f"{numbers}: {', '.join(names)}"
    raise ShardlogError(f"the grid has no axis {given}", where=where, hint=hint)

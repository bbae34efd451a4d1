"""Values as people name them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches

from ...errors import ShardlogError
from ...program.ids import Item, Place
from ...program.mlir.origins import at
from ...program.mlir.places import NameScope, wildcard
from ...runs.records.record import Op, RunRecord, TensorValue

_SOURCE = re.compile(r"(?P<file>[^:]+\.\w+):(?P<line>\d+)")


class Values:
    """The values and ops of a run by name, by place and by item."""

    def __init__(self, record: RunRecord) -> None:
        self._record = record

    def find(self, name: str) -> list[TensorValue]:
        """The values that ``name`` stands for: an SSA name, ``result#0``, a JAX path, ``file:line``, or a
        part of name stacks (``ResBlock_0/Conv_0``).

        The name of an op with several results (``%6``) stands for all of them, the name of a constant for
        its copies.

        Raises ShardlogError with the nearest names where there is none.
        """
        if not isinstance(name, str):
            hint = "as in 'result' or 'model.py:42'; partition().why(0) explains a collective"
            raise ShardlogError(f"{name!r} is not the name of a value", where=self._record.name, hint=hint)
        values = self._record.named(name) or self._parts(name)
        if values:
            return values
        match = _SOURCE.fullmatch(name)
        if match:
            return self._born_at(match["file"], int(match["line"]))
        if values := self._in_scope(name):
            return values
        if reason := self._record.absent(name):
            raise ShardlogError(f"{name} has no sharding: {reason}", where=self._record.name)
        names = self._record.names()
        in_main = name.rpartition(":")[2]  # whose values have no function in their names
        near = [in_main] if in_main in names else get_close_matches(name, names, n=3, cutoff=0.5)
        near = near or list(names)[:5]
        hint = f"the nearest are: {', '.join(near)}" if near else "the program has no tensors"
        raise ShardlogError(f"there is no value {name}", where=self._record.name, hint=hint)

    def _parts(self, name: str) -> list[TensorValue]:
        """The results of an op that ``name`` is the name of, or the copies of a constant."""
        if "%" not in name or self._record.named(name):
            return []
        numbers = [n for mark in ("#", "'") for n in self._record.numbered(f"{name}{mark}")]
        return [self._record.value(number) for number in numbers]

    def note(self, name: str) -> str:
        """A note on a name, to print first: the copies of a constant, each with its use and sharding; empty
        for other names."""
        copies = [value for value in self._parts(name) if value.name.startswith(f"{name}'")]
        if not copies:
            return ""
        users: dict[int, list[str]] = {value.number: [] for value in copies}
        for _, op in self._record.ops():
            for number, role in zip(op.values, op.roles, strict=True):
                if number in users and role.startswith("operand"):
                    users[number].append(f"{op.name}{at(op.where, op.stack)}")
        text = self._record.meshes.text
        lines = [f"{name} is constant: its uses have copies, and each is sharded as its use needs it"]
        for value in copies:
            dims = ", ".join(f"{{{text(atoms)}}}" for atoms in self._record.axes(value.number))
            lines.append(f"  {value.name} [{dims}] for {', '.join(users[value.number]) or 'nothing'}")
        return "\n".join(lines)

    def _in_scope(self, pattern: str) -> list[TensorValue]:
        """The values of the ops in a scope, as for lines."""
        return self._record.in_scope(NameScope(pattern)) if pattern.strip("/*") else []

    def _born_at(self, file: str, line: int) -> list[TensorValue]:
        values = self._record.from_line(file, line)
        if not values:
            near = sorted(sorted(self._record.lines(file), key=lambda n: abs(n - line))[:3])
            hint = (
                f"values come from lines {', '.join(map(str, near))} of {file}"
                if near
                else f"the module has no locations in {file}"
            )
            raise ShardlogError(f"no value comes from {file}:{line}", where=self._record.name, hint=hint)
        return values

    def matching(self, pattern: str) -> list[TensorValue]:
        """The values that a name stands for; ``*`` in it is any text without brackets. Raises as ``find``."""
        if "*" not in pattern:
            return self.find(pattern)
        wanted = wildcard(pattern)
        named = self._record.names()
        numbers = sorted({number for name, number in named.items() if wanted.fullmatch(name)})
        if not numbers and (values := self._in_scope(pattern)):
            return values
        if not numbers:
            hint = f"there are: {', '.join(list(named)[:5])}, ..."
            raise ShardlogError(f"no value is called {pattern}", where=self._record.name, hint=hint)
        return [self._record.value(number) for number in numbers]

    def all(self) -> list[TensorValue]:
        """Every tensor, in the order of the program."""
        return list(self._record.values())

    def names(self) -> Mapping[str, TensorValue]:
        """Every tensor by each of its names."""
        by_number = {value.number: value for value in self._record.values()}
        return {name: by_number[number] for name, number in self._record.names().items()}

    def value(self, place: Place) -> TensorValue:
        """The value that holds its sharding in a place."""
        return self._record.value(place)

    def name(self, place: Place) -> str:
        """The name of the value that holds its sharding in a place."""
        return self.value(place).name

    def source(self, place: Place) -> tuple[str, str]:
        """The source of a value: a line of the user's program or of the module, or a JAX path, and the name
        stack."""
        value = self.value(place)
        return value.where, value.stack

    def type(self, place: Place) -> str:
        """The type of the value that holds its sharding in a place."""
        return self.value(place).type

    def op(self, item: Item) -> Op:
        """The op, data-flow edge, function result or annotation that takes turns as ``item``."""
        return self._record.op(item)

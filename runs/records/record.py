"""The record of a run for explanations: one interface, for runs in memory (``live``) and saved ones
(``saved``).

Values have numbers: first the values of the program's instances, then the results of the main function. A
value whose sharding another one holds has that one's *place*; a place is the number of a value.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from posixpath import normpath
from typing import Any, NamedTuple

from ...engine import LoadedProgram
from ...engine.plan.plan import Source
from ...engine.provenance.proof import Proof
from ...program.ids import Cell, Content, Item, Place
from ...program.meshes import Meshes
from ...program.mlir.origins import Origin, at
from ...program.mlir.places import NameScope

Facts = dict[str, list[tuple[Any, ...]]]
Row = tuple[Any, ...]
_CALLED = re.compile(r"@([^:#]+)")  # what stands before the names of values in functions that are called
Key = tuple[int, ...]  # a neighbourhood: the number of the static facts, then the content of every slot


@dataclass(frozen=True)
class Stage:
    """The stage of a turn: user priority, op-priority level (None: no op priorities), strategy."""

    priority: int
    level: int | None
    strategy: str


@dataclass(frozen=True)
class Annotation:
    """A sharding that was given: the name of the value, where it was given, the cell that holds it, its text.

    ``by`` is "user", "completion", or a spec of a ``shard_map`` ("in_specs[0]"; ``where`` is then the
    ``shard_map``'s). It is "import" for an open sharding that a result has because another result of its op
    has one.
    """

    value: str
    where: str
    cell: Cell
    text: str
    by: str = "user"
    stack: str = ""

    @property
    def spec(self) -> bool:
        """Whether it is a spec of a ``shard_map``."""
        return self.by not in ("user", "import", "completion")

    def __str__(self) -> str:
        place = at(self.where, self.stack)
        whose = "completion's annotation" if self.by == "completion" else "the annotation"
        return f"{self.by} of the shard_map{place}" if self.spec else f"{whose} of {self.value}{place}"


class TensorValue(NamedTuple):
    """A tensor: its number and name, the place that holds its sharding, its type and dimensions.

    ``where`` is where the tensor comes from: a line of the user's program or of the module, or a JAX path;
    and ``stack`` the name stack there, see ``program/mlir/origins.py``.
    Inside of a ``shard_map`` a tensor is a device's own part along the manual axes: ``manual`` are these,
    each with the place of the ``shard_map``.
    """

    number: int
    name: str
    place: Place
    type: str
    shape: tuple[int, ...]
    where: str
    manual: tuple[tuple[str, str], ...] = ()
    stack: str = ""


class Op(NamedTuple):
    """An item of the agenda: its name, its source location with the name stack, and the values in its
    slots."""

    name: str
    where: str
    values: tuple[int, ...]
    slots: tuple[str, ...]  # their names
    roles: tuple[str, ...]  # "operand 0", "result"
    stack: str = ""


class Sketch(NamedTuple):
    """The key of a group of ops: the name of an op with the types of its values (``look``; ``RETURNED``
    of a result of the main function), its own origin, whether it has one result and no operand, and the
    function that it is in, if that is called."""

    look: tuple[str, ...]
    origin: Origin | None
    alone: bool
    called: str


RETURNED: tuple[str, ...] = ()


class Visited(NamedTuple):
    """A visit of completion, by its number, that annotated a slot of an op. It has the instance of the
    function, the item of the op, and the facts from which its sharding option was chosen."""

    number: int
    instance: int
    item: Item
    slot: int
    direction: int
    facts: Facts


class Change(NamedTuple):
    """An entry of the log: the turn of an item in a pass gave the cell of a slot new content."""

    turns: int  # the number of the pass
    item: Item
    slot: int
    cell: Cell
    old: Content
    new: Content


class Way(NamedTuple):
    """How an atom came to a dimension: ``changes`` with the dimensions that they gave it to, latest first,
    back to the annotated cell ``origin``. Ways with the same changes and origin have one ``number``.

    ``needs`` are all annotated cells that it rests on; None: they are not kept.
    """

    origin: Cell
    number: int
    changes: Sequence[tuple[int, int]]
    needs: frozenset[Cell] | None


class SlotColumns(NamedTuple):
    """The slots of all items, as arrays: the cells, items and slots in the order of cells and then of items;
    by item the ``offsets`` of its slots in ``by_item``, which has their cells, and its class; and the last
    content of each cell."""

    cells: Any
    items: Any
    slots: Any
    offsets: Any
    by_item: Any
    classes: Any
    last: Any


class RunRecord(ABC):
    """A run, as explanations read it. Nothing is read before it is asked for."""

    name: str  # of the module
    strategy: str
    meshes: Meshes
    stages: Sequence[Stage]
    statistics: Sequence[tuple[int, int, int]]  # of every stage: turns, distinct turns, changes
    unknown_ops: Sequence[Mapping[str, Any]]  # as in ``Result``
    stage_of: Sequence[int]  # pass -> stage
    end: int  # the number of changes
    items: int  # ops, data-flow edges and function results; the numbers of annotations follow

    # ---- Values and ops ---------------------------------------------------------------------------------

    @abstractmethod
    def named(self, name: str) -> list[TensorValue]:
        """The tensors with an SSA name (sibling regions may use a name twice), with a JAX path, or called
        ``result#0``."""

    def absent(self, name: str) -> str:
        """Why a value that the program has has no sharding, where that is known."""
        return ""

    @abstractmethod
    def names(self) -> Mapping[str, int]:
        """The numbers of tensors by name and by JAX path; of those with one name, the first."""

    @abstractmethod
    def numbered(self, start: str) -> list[int]:
        """The numbers of the tensors whose names are ``start`` and a number behind it, in the order of
        those."""

    @abstractmethod
    def value(self, number: int) -> TensorValue:
        """The value with a number."""

    @abstractmethod
    def type_of(self, number: int) -> str:
        """The type of the value with a number, as MLIR writes it."""

    @abstractmethod
    def values(self) -> Iterable[TensorValue]:
        """Every tensor, in the order of the program."""

    @abstractmethod
    def from_line(self, file: str, line: int) -> list[TensorValue]:
        """The values that come from a line, in any frame of their location."""

    @abstractmethod
    def lines(self, file: str) -> list[int]:
        """The lines of a file from which values come."""

    @abstractmethod
    def axes(self, number: int) -> tuple[tuple[int, ...], ...]:
        """The atoms of every dimension of a value, as its sharding is written in the end."""

    @abstractmethod
    def op(self, item: Item) -> Op:
        """The op, data-flow edge, function result or annotation that takes turns as ``item``."""

    @abstractmethod
    def ops(self) -> Iterator[tuple[Item, Op]]:
        """All ops, data-flow edges and function results that are still there, with their numbers."""

    def present(self) -> Iterable[Item]:
        """The numbers of ``ops``."""
        return (item for item, _ in self.ops())

    def values_of(self, item: Item) -> tuple[int, ...]:
        """The values in the slots of an item."""
        return self.op(item).values

    def sketches(self, items: Iterable[Item]) -> Iterator[Sketch]:
        """The sketches of some items."""
        type_of = cache(self.type_of)
        return (self._sketch(item, type_of) for item in items)

    def _sketch(self, item: Item, type_of: Callable[[int], str]) -> Sketch:
        op = self.op(item)
        if op.roles[-1:] == ("function result",):
            return Sketch(RETURNED, None, alone=False, called="")
        called = _CALLED.match(op.slots[-1]) if op.slots else None
        look = op.name, *map(type_of, op.values)
        return Sketch(look, self.origin(item), op.roles == ("result",), called[1] if called else "")

    @abstractmethod
    def in_scope(self, scope: NameScope) -> list[TensorValue]:
        """The values of ops whose paths are in a scope, in the order of the program."""

    @abstractmethod
    def origin(self, item: Item) -> Origin | None:
        """Where an op comes from, by its own location; None for other items."""

    @abstractmethod
    def order(self) -> Sequence[Item]:
        """The items that can take turns in program order, then the function results."""

    @abstractmethod
    def relation(self, name: str, among: Collection[str | int] | None = None) -> list[Row]:
        """A relation of the run, as in ``Result.facts``. Rows whose first column is none of ``among`` may be
        left out."""

    # ---- Completion -------------------------------------------------------------------------------------

    def visited(self, cell: Cell) -> Visited | None:
        """The visit of completion that annotated a cell; None where there was none, and of saved runs."""
        return None

    def saw(self, visited: Visited, slot: int) -> tuple[int, Visited | Cell]:
        """The value in a slot whose annotation a visit saw, and the visit that gave this, or the cell that
        the program annotates."""
        raise NotImplementedError

    # ---- The agenda -------------------------------------------------------------------------------------

    @abstractmethod
    def slots(self, item: Item) -> list[Place]:
        """The places of an item's slots."""

    @abstractmethod
    def turns(self, cell: Cell) -> list[tuple[Item, int]]:
        """The items that hold a cell, and in which slot, in order."""

    @abstractmethod
    def slot_columns(self) -> SlotColumns:
        """The slots of all items."""

    @abstractmethod
    def cell(self, place: Place) -> Cell:
        """The cell of a place."""

    @abstractmethod
    def contents(self, cell: Cell) -> tuple[Content, Content]:
        """The first and the final content of a cell."""

    @abstractmethod
    def facts(self, content: Content) -> Facts:
        """The facts of a content."""

    @abstractmethod
    def class_of(self, item: Item) -> int:
        """The number of an item's class: items of a class have the same static facts in every pass."""

    @abstractmethod
    def statics(self, class_: int) -> Mapping[int, int]:
        """The numbers of the static facts of a class by the passes in which it takes turns, in order."""

    def static(self, item: Item, turns: int) -> int:
        """The number of an item's static facts in a pass; -1: it takes no turns."""
        return self.statics(self.class_of(item)).get(turns, -1)

    @abstractmethod
    def given(self, static: int, slots: int) -> Facts:
        """The static facts with a number, of an item with so many slots."""

    @abstractmethod
    def op_facts(self, item: Item) -> Facts:
        """The answer of the op rules about an op, and its ``tensor``s; empty for other items. See
        docs/facts.md."""

    @abstractmethod
    def at_end(self) -> Iterator[tuple[Item, Key]]:
        """The neighbourhoods at the end of the items that take turns in the last pass, in order."""

    @abstractmethod
    def changes(self, cell: Cell) -> Sequence[int]:
        """The numbers of the changes of a cell, in order."""

    @abstractmethod
    def change(self, number: int) -> Change:
        """A change."""

    def way(self, cell: Cell, dim: int, atom: int) -> Way | None:
        """How an atom came to a dimension of a cell by the end; None: it is not kept."""
        return None

    @abstractmethod
    def annotation(self, cell: Cell) -> Annotation:
        """The annotation of a cell; its text is empty where the user gave none."""

    @abstractmethod
    def given_shardings(self) -> list[Annotation]:
        """All shardings that were given, in the order of their cells."""

    def annotations(self) -> list[Annotation]:
        """The annotations of the user, in the order of their cells."""
        return [annotation for annotation in self.given_shardings() if annotation.by == "user"]

    # ---- Turns ------------------------------------------------------------------------------------------

    @abstractmethod
    def rules(self) -> LoadedProgram:
        """The rules of a turn, and the rules of ``rules/propagation/blocked.dl``."""

    @abstractmethod
    def proofs(self, key: Key) -> Mapping[Row, Proof] | None:
        """Proofs of the changes of a turn, where they are kept, by rows of ``puts`` or
        ``becomes_sharded``."""

    @abstractmethod
    def lost(self, number: int) -> list[tuple[Row, Proof]] | None:
        """The rows of ``loses`` in the turn of a change, where they are kept, each with the step of its
        proof that gives the reason."""


def is_file(path: str, file: str) -> bool:
    """Whether a path ends with the name of a file."""
    return path == file or path.endswith(f"/{file}")


def rule_file(source: Source) -> str:
    """The file of a rule, from ``rules/`` on where it is there."""
    file = source.file.replace("\\", "/")
    at = file.rfind("/rules/")
    return normpath(file[at + 1 :]).replace("\\", "/") if at >= 0 else file

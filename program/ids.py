"""Numbers that must not be mixed up: each kind counts something else.

``engine/core`` counts with the same numbers: NumPy arrays hold them as plain integers, and what reads one
out of an array says which it is.
"""

from __future__ import annotations

from typing import NewType

Item = NewType("Item", int)  # an op, a data-flow edge, a function result or an annotation that takes turns
Place = NewType("Place", int)  # a value, as an item's slot refers to it
Cell = NewType("Cell", int)  # a sharding that one or more places share
Slot = NewType("Slot", int)  # of an op: its operands, then its results
Factor = NewType("Factor", int)  # a loop of an op, along which dimensions of its slots correspond
Content = NewType("Content", int)  # the facts that a cell holds, interned
NO_CELL = Cell(-1)


def first_place(cell: Cell) -> Place:
    """The first of the places that share a cell: the cell has its number."""
    return Place(cell)

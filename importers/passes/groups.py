"""Sharding groups whose members are annotated differently.

As in Shardy, each member then keeps its sharding, and an open constraint on it takes its place in the group.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from ...program.classes import Classes
from ...program.function import Function
from ...program.shardings import Sharding
from ...program.uses import Uses
from .constraints import create_constraint, take_over

Together = Callable[[Sequence[tuple[int, int]]], Mapping[int, Sequence[int]]]


@dataclass(frozen=True)
class Members:
    """The members of groups in a function: ``place`` maps targets of data-flow edges to the value that holds
    their sharding, ``edges`` are the values with an edge of their own."""

    function: Function
    uses: Uses
    place: Mapping[int, int]
    edges: Collection[int]

    def held(self, value: int) -> Sharding | None:
        """The sharding of a value, where it says anything."""
        sharding = self.function.annotations.get(self.place.get(value, value))
        return None if sharding is None or sharding.dimensions_empty else sharding


def separate_groups(functions: Sequence[Members], classes: Classes, together: Together) -> None:
    """Puts constraints on the members of groups that disagree, and warns of every such group.

    A group may have members in several functions. ``together`` says which values are in one group, from
    (value, group id) pairs.
    """
    grouped = [(f, value, group) for f in functions for value, group, _ in f.function.groups]
    numbers: dict[tuple[int, int], int] = {}
    values = [numbers.setdefault((id(f), value), len(numbers)) for f, value, _ in grouped]
    owners = dict(zip(values, ((f, value) for f, value, _ in grouped), strict=True))
    ids = dict(reversed([(n, group) for n, (_, _, group) in zip(values, grouped, strict=True)]))
    apart: dict[int, dict[int, Sharding]] = {}  # of a function: the members, with an open sharding for each
    pairs = [(n, group) for n, (_, _, group) in zip(values, grouped, strict=True)]
    for members in together(pairs).values() if pairs else ():
        shardings = [sharding for n in members if (sharding := owners[n][0].held(owners[n][1])) is not None]
        if all(sharding == shardings[0] for sharding in shardings):
            continue
        names = ", ".join(dict.fromkeys(f"@{owners[n][0].function.name}" for n in members))
        warnings.warn(
            f"the members of sharding group {ids[members[0]]} in {names} have different shardings; "
            "each keeps its own",
            stacklevel=2,
        )
        for n in members:
            function, value = owners[n]
            open_like = Sharding.open(shardings[0].mesh, len(shardings[0].dimensions))
            apart.setdefault(id(function), {})[value] = open_like
    for function in functions:
        _constrain(function, classes, apart.get(id(function), {}))


def _constrain(members: Members, classes: Classes, apart: Mapping[int, Sharding]) -> None:
    """Puts constraints on members that are kept apart, in whose place they are in the group."""
    function, uses = members.function, members.uses
    nodes = dict(reversed([(value, node) for value, _, node in function.groups]))
    # Without a data-flow edge, a constraint on an argument comes before the existing ones.
    free = set(function.arguments).difference(members.edges)
    instead: dict[int, int] = {}
    for value, open_like in apart.items():
        near, index = (nodes[value], 0) if nodes[value] >= 0 else uses.of(value)[0]
        node = create_constraint(function, classes, uses, near, index, open_like)
        take_over(function, uses, node, edge=value in members.edges)
        if value in free:
            uses.position[node] = -0.6 - len(function.moved) * 1e-9
        instead[value] = function.results[node][0]
    function.groups = [(instead.get(value, value), group, node) for value, group, node in function.groups]

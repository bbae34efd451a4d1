"""Sharding groups whose members are annotated differently.

As in Shardy, each member then keeps its sharding, and an open constraint on it takes its place in the group.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Mapping, Sequence

from ...program.classes import Classes
from ...program.function import Function
from ...program.shardings import Sharding
from ...program.uses import Uses
from .constraints import create_constraint, take_over

Together = Callable[[Sequence[tuple[int, int]]], Mapping[int, Sequence[int]]]


def separate_groups(
    function: Function,
    classes: Classes,
    uses: Uses,
    place: Mapping[int, int],
    edges: Collection[int],
    together: Together,
) -> None:
    """Puts constraints on the members of groups that disagree, and warns of every such group.

    ``place`` maps targets of data-flow edges to the value that holds their sharding, ``edges`` are the values
    with an edge of their own, and ``together`` says which values are in one group, from (value, group id)
    pairs.
    """
    if not function.groups:
        return
    nodes: dict[int, int] = {}
    ids: dict[int, int] = {}
    for value, group, node in function.groups:
        nodes.setdefault(value, node)
        ids.setdefault(value, group)
    # Without a data-flow edge, a constraint on an argument comes before those that are there already.
    free = set(function.arguments).difference(edges)
    instead: dict[int, int] = {}
    for members in together([(value, group) for value, group, _ in function.groups]).values():
        held = [function.annotations.get(place.get(value, value)) for value in members]
        said = [sharding for sharding in held if sharding is not None and not sharding.dimensions_empty]
        if all(sharding == said[0] for sharding in said):
            continue
        warnings.warn(
            f"the members of sharding group {ids[members[0]]} in @{function.name} have different shardings; "
            "each keeps its own",
            stacklevel=2,
        )
        open_like = Sharding.open(said[0].mesh, len(said[0].dimensions))
        for value in members:
            near, index = (nodes[value], 0) if nodes[value] >= 0 else uses.of(value)[0]
            node = create_constraint(function, classes, uses, near, index, open_like)
            take_over(function, uses, node)
            if value in free:
                uses.position[node] = -0.6 - len(function.moved) * 1e-9
            instead[value] = function.results[node][0]
    function.groups = [(instead.get(value, value), group, node) for value, group, node in function.groups]

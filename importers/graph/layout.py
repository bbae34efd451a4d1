"""The layout of a function for the agenda: its items, their slots, and the items that a changed value pushes.

Everything is numbered within the function. Connections across calls (sources of data-flow edges, and edges
that a use pushes) are listed with their places in the arrays, and filled in for each call (``graph.py``).

The order of a push follows Shardy: uses of the targets of a data-flow edge, the defining op, then the uses of
the value itself, newest use first. As in Shardy, a use by a call or by a computation with a body of its own
(``sdy.manual_computation``) does not push the edge of the argument. That edge takes its turn when its stage
starts, and when the argument changes inside. It comes first in the body, other edges after their op.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from ...engine.agenda.retirement import Retirement
from ...program.classes import Classes
from ...program.columns import Ints, among, numbers
from ...program.function import Function
from ...program.uses import Uses
from ..passes.structure import Structure, ordered_uses
from .edges import Edges, edges_of
from .retirement import retirement


@dataclass(frozen=True)
class GraphLayout:
    """Items are nodes first, then data-flow edges. The module's docstring says which parts are left open."""

    place: Ints  # value -> the value that holds its sharding
    classes: Ints  # by item
    slot_offsets: Ints
    slots: Ints
    order: list[Ints | int]  # items in program order; a number is a call node, whose callee's items go there
    neighbour_offsets: Ints
    neighbours: Ints
    argument_sources: list[tuple[int, int]]  # position in slots, argument
    retirement: Retirement | None
    result_items: dict[int, list[int]]  # call node -> the edge of each result
    result_sources: dict[int, list[tuple[int, int]]]  # call node -> position in slots, result
    return_uses: list[tuple[int, int]]  # position in neighbours, returned value


def lay_out(
    function: Function,
    structure: Structure,
    classes: Classes,
    *,
    cloned: bool,
) -> GraphLayout:
    """The layout of a prepared function.

    ``cloned``: this is a second copy of the function, whose uses are in program order again.
    """
    place = np.arange(len(function.types), dtype=np.int32)
    for target, owner in structure.place.items():
        place[target] = owner
    edges = edges_of(function, structure, classes, place)
    item_classes = np.concatenate(
        [_node_classes(function, structure, classes), np.asarray(edges.class_of, np.int32)]
    )
    # No sharding ever flows through ops of some classes. The last class is for removed nodes.
    sleeps = np.asarray([not answers.flows for answers in classes.by_class] + [True])[item_classes]
    sleeps[list(structure.dead)] = False  # they retire when their turn comes, even if they never do anything
    makers = numbers(function.definer)
    for value, edge in edges.of_owner.items():
        makers[value] = edge
    uses = ordered_uses(function, set(), callee=structure.callee) if cloned else structure.uses
    offsets, slots = _slots(function, uses, edges, place)
    neighbour_offsets, neighbours, return_uses = _neighbours(
        function, structure, uses, edges, place, makers, sleeps
    )
    return GraphLayout(
        place=place,
        classes=item_classes,
        slot_offsets=offsets,
        slots=np.maximum(slots, 0),
        order=_program_order(function, structure, edges, sleeps),
        neighbour_offsets=neighbour_offsets,
        neighbours=neighbours,
        retirement=retirement(function, structure, classes, item_classes, makers),
        argument_sources=[(int(offsets[edge]), k) for k, edge in enumerate(edges.arguments)],
        result_items=edges.results,
        result_sources={
            call: [(int(offsets[edge]), k) for k, edge in enumerate(result_edges)]
            for call, result_edges in edges.results.items()
        },
        return_uses=return_uses,
    )


def _node_classes(function: Function, structure: Structure, classes: Classes) -> Ints:
    """The class of every node; -1 for removed ones."""
    class_of = np.full(len(function.ops), -1, np.int32)
    order = numbers(function.order)
    kinds = (numbers(function.signature) * 2 + structure.multiple)[order]
    distinct_kinds = among(kinds)
    table = np.empty(max(distinct_kinds, default=0) + 1, np.int32)
    table[distinct_kinds] = [classes.number(k // 2, multiple_uses=bool(k & 1)) for k in distinct_kinds]
    class_of[order] = table[kinds]
    return class_of


def _slots(function: Function, uses: Uses, edges: Edges, place: Ints) -> tuple[Ints, Ints]:
    """The places of the slots of every item, operands then results; negative: on the other side of a call."""
    nodes = len(function.ops)
    definers = numbers(function.definer)
    defined = np.nonzero(definers >= 0)[0]
    operands = np.bincount(uses.node, minlength=nodes)
    results = numbers(function.results.counts)
    offsets = _offsets(np.concatenate([operands + results, [len(s) for s in edges.slots]]))
    slots = np.zeros(int(offsets[-1]), np.int32)
    slots[offsets[uses.node] + uses.index] = place[uses.value]
    # The results of an op have adjacent numbers.
    first = numbers(function.results.first)
    definer = definers[defined]
    slots[offsets[definer] + operands[definer] + defined - first[definer]] = place[defined]
    slots[int(offsets[nodes]) :] = list(chain.from_iterable(edges.slots))
    return offsets, slots


def _neighbours(
    function: Function,
    structure: Structure,
    uses: Uses,
    edges: Edges,
    place: Ints,
    makers: Ints,
    sleeps: npt.NDArray[np.bool_],
) -> tuple[Ints, Ints, list[tuple[int, int]]]:
    """The items that each place pushes, as offsets and items, and the ``return_uses`` of the layout.

    Every use and every definition is an entry: the place that changes, and the item that is pushed. Entries
    of a place are in the order of pushes: uses of the targets of an edge, the value's definition, its uses.
    """
    items, returned = _items_of_uses(function, structure, uses, edges)
    awake = ~sleeps[items]
    awake[list(returned)] = True
    used = awake.nonzero()[0]
    defined = ((makers >= 0) & (place == np.arange(len(place)))).nonzero()[0]
    defined = defined[~sleeps[makers[defined]]]
    ranks = np.full(len(place), len(structure.place) + 1)  # after the value's definition
    ranks[list(structure.place)] = np.arange(len(structure.place))
    values, count = uses.value[used], len(structure.place) + 2
    keys = np.concatenate([place[values] * np.int64(count) + ranks[values], defined * count + count - 2])
    order = np.lexsort((np.concatenate([-uses.age[used], np.zeros(len(defined))]), keys))
    offsets = _offsets(np.bincount(keys // count, minlength=len(place)))
    return_uses = []
    if returned:
        where = np.empty(len(order), np.int64)
        where[order] = np.arange(len(order))
        at = where[np.searchsorted(used, list(returned))].tolist()
        return_uses = sorted(zip(at, returned.values(), strict=True))
    return offsets, np.concatenate([items[used], makers[defined]])[order], return_uses


def _items_of_uses(
    function: Function, structure: Structure, uses: Uses, edges: Edges
) -> tuple[Ints, dict[int, int]]:
    """The item that each use pushes; and the uses that push one of the caller's, with the number of the
    returned value."""
    items, returned = uses.node.copy(), dict[int, int]()
    special = np.zeros(len(function.ops), bool)
    special[[node for node, _ in edges.of_use]] = True
    if structure.callee:
        special[function.terminator] = True
    for at in special[uses.node].nonzero()[0].tolist():
        node, index = int(uses.node[at]), int(uses.index[at])
        if (node, index) in edges.of_use:
            items[at] = edges.of_use[node, index]
        elif node == function.terminator and structure.callee:
            returned[at] = index
    return items, returned


def _offsets(lengths: npt.NDArray[np.int64]) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)]).astype(np.int32)


def _followers(function: Function, edges: Edges) -> dict[int, list[int]]:
    """Constraints that took over the uses of a value with a data-flow edge stand right after the edge."""
    followers: dict[int, list[int]] = {}
    for node in function.order if function.moved else ():
        if node in function.moved and (edge := edges.of_owner.get(function.operands[node][0])) is not None:
            followers.setdefault(edge, []).append(node)
    return followers


def _program_order(
    function: Function, structure: Structure, edges: Edges, sleeps: npt.NDArray[np.bool_]
) -> list[Ints | int]:
    """Items in program order, without items that never do anything. The edges of an op follow its regions,
    but the edges of a body's arguments come first in the body."""
    followers = _followers(function, edges)
    placed = [node for nodes in followers.values() for node in nodes]
    nodes = numbers(function.order)
    nodes = nodes[~np.isin(nodes, placed)] if placed else nodes
    index = np.zeros(len(function.ops), np.int64)
    index[nodes] = np.arange(len(nodes))

    def with_followers(numbers: list[int], *, of_calls: bool = False) -> list[int]:
        if of_calls and structure.constrained_first:  # the edges came behind the constraints, in their place
            return [*numbers, *(node for edge in numbers for node in followers.get(edge, ()))]
        return [item for edge in numbers for item in (edge, *followers.get(edge, ()))]

    # Where edges go: (position in `nodes`, inner ops first, edges, the call whose callee's items come before
    # them).
    stops = [
        (int(index[node]) + 1, -int(index[node]), edges_there, node)
        for node, edges_there in edges.results.items()
    ]
    stops += [
        (int(index[node]) + 1, -int(index[node]), edges_there, -1)
        for node, edges_there in edges.inside.items()
    ]
    for node, edges_there in edges.after.items():
        last = structure.uses.last(node)
        stops.append((int(index[last]) + 1, -int(index[node]), edges_there, -1))
    order: list[Ints | int] = []
    run: list[Ints] = [np.asarray(with_followers(edges.arguments, of_calls=True), np.int32)]

    def flush() -> None:
        items = np.concatenate(run).astype(np.int32)
        order.append(items[~sleeps[items]])
        run.clear()

    done = 0
    for at, _, edges_there, call in sorted(stops, key=lambda stop: stop[:2]):
        run.append(nodes[done:at])
        done = at
        if call >= 0:
            flush()
            order.append(call)
        run.append(np.asarray(with_followers(edges_there, of_calls=call >= 0), np.int32))
    run.append(nodes[done:])
    flush()
    return order

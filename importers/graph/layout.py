"""A function laid out for the agenda: its items, their slots, and who is pushed when a value changes.

Everything is numbered within the function; what crosses a call (the sources of data-flow edges, the edges
that a use pushes) is listed with its place in the arrays and filled in when the function is put to a call
(``graph.py``).

The order of a push follows Shardy: uses of the targets of a data-flow edge, the defining op, then the uses of
the value itself, newest use first. As in Shardy, a use by a call or by a computation with a body of its own
(``sdy.manual_computation``) does not push the edge of the argument: it takes its turn when its stage starts,
and when the argument changes inside. Such an edge stands at the front of the body, others after their op.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from ...engine.agenda.retirement import Retirement
from ...program.classes import Classes
from ...program.function import Function
from ..passes.structure import Structure, ordered_uses
from .retirement import retirement

Ints = npt.NDArray[np.int32]
_LOCAL = -1


@dataclass(frozen=True)
class Layout:
    """Items are nodes first, then data-flow edges. See the module's docstring for what is left open."""

    place: Ints  # value -> the value that holds its sharding
    classes: Ints  # by item
    slot_offsets: Ints
    slots: Ints
    order: list[Ints | int]  # items in program order; a number is a call node, whose callee's items go there
    neighbour_offsets: Ints
    neighbours: Ints
    argument_sources: list[tuple[int, int]]  # position in slots, argument
    retirement: Retirement
    result_items: dict[int, list[int]]  # call node -> the edge of each result
    result_sources: dict[int, list[tuple[int, int]]]  # call node -> position in slots, result
    return_uses: list[tuple[int, int]]  # position in neighbours, returned value


def lay_out(
    function: Function,
    structure: Structure,
    classes: Classes,
    *,
    cloned: bool,
) -> Layout:
    """The layout of a prepared function.

    ``cloned``: this is a second copy of the function, whose uses are in program order again.
    """
    nodes = len(function.ops)
    values = len(function.types)
    types = function.types
    order = function.order
    place = np.arange(values, dtype=np.int32)
    for target, owner in structure.place.items():
        place[target] = owner

    # Items: nodes, then edges of arguments, of ops, of call results.
    class_of = np.full(nodes, -1, np.int32)
    kind = np.asarray(function.signature, np.int64) * 2 + structure.multiple
    distinct, which = np.unique(kind[order], return_inverse=True)
    numbers = [classes.number(k // 2, multiple_uses=bool(k & 1)) for k in distinct.tolist()]
    class_of[order] = np.asarray(numbers, np.int32)[which]
    item = nodes
    edge_classes: list[int] = []
    edge_slots: list[tuple[int, ...]] = []
    inside: dict[int, list[int]] = {}  # node -> edges at the front of its body
    after: dict[int, list[int]] = {}  # node -> edges that stand right after it
    edge_of_use: dict[tuple[int, int], int] = {}
    owner_item: dict[int, int] = {}

    def add_edge(owner: int, sources: tuple[int, ...]) -> int:
        nonlocal item
        manual = function.manual.get(owner)
        inside = 0 if function.definer[owner] >= 0 else len(sources)  # the slot that lies in the computation
        more = manual.facts_of(inside) if manual else ()
        edge_classes.append(classes.identity("sdy.data_flow_edge", len(sources), types[owner], more))
        edge_slots.append((*sources, owner))
        owner_item[owner] = item
        item += 1
        return item - 1

    argument_items = (
        [add_edge(v, (-1 - k,)) for k, v in enumerate(function.arguments)] if structure.callee else []
    )
    for edge in structure.edges:
        sources = tuple(int(place[function.operands[node][index]]) for node, index in edge.sources)
        number = add_edge(edge.owner, sources)
        in_body = function.definer[edge.owner] < 0
        (inside if in_body else after).setdefault(edge.node, []).append(number)
        for source in edge.sources:
            if not (in_body and source[0] == edge.node):
                edge_of_use[source] = number
    result_items: dict[int, list[int]] = {}
    for node in order:
        if node in function.calls:
            result_items[node] = [add_edge(v, (-1 - k,)) for k, v in enumerate(function.results[node])]

    # Slots.
    uses = ordered_uses(function, set(), callee=structure.callee) if cloned else structure.uses
    definers = np.asarray(function.definer, np.int64)
    defined = np.nonzero(definers >= 0)[0]
    operands = np.bincount(uses.node, minlength=nodes)
    results = np.bincount(definers[defined], minlength=nodes)
    lengths = np.concatenate([operands + results, [len(s) for s in edge_slots]]).astype(np.int64)
    slot_offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    slots = np.zeros(int(slot_offsets[-1]), np.int64)
    slots[slot_offsets[uses.node] + uses.index] = place[uses.value]
    # The results of an op have adjacent numbers.
    first = np.asarray([r.start for r in function.results], np.int64)
    definer = definers[defined]
    slots[slot_offsets[definer] + operands[definer] + defined - first[definer]] = place[defined]
    edge_flat = np.asarray(list(chain.from_iterable(edge_slots)), np.int64)
    slots[int(slot_offsets[nodes]) :] = edge_flat
    argument_sources = [(int(slot_offsets[it]), k) for k, it in enumerate(argument_items)]
    result_sources = {
        n: [(int(slot_offsets[it]), k) for k, it in enumerate(its)] for n, its in result_items.items()
    }
    slots[slots < 0] = 0

    # Neighbours, one entry per use and per definition.
    item_of_use = uses.node.copy()
    open_end = np.full(len(uses.node), _LOCAL)  # number of the returned value where the item is the caller's
    special = np.zeros(nodes, bool)
    special[[node for node, _ in edge_of_use]] = True
    if structure.callee:
        special[function.terminator] = True
    for at in np.nonzero(special[uses.node])[0].tolist():
        node, index = int(uses.node[at]), int(uses.index[at])
        if (node, index) in edge_of_use:
            item_of_use[at] = edge_of_use[node, index]
        elif node == function.terminator and structure.callee:
            open_end[at] = index
    all_classes = np.concatenate([class_of, np.asarray(edge_classes, np.int32)])
    inert = np.asarray([classes.inert(c) for c in range(len(classes.known))] + [True])  # last: removed nodes
    sleeps = inert[all_classes]
    sleeps[list(structure.dead)] = False  # they retire when their turn comes, even if they never do anything
    use_place = place[uses.value].astype(np.int64)
    is_target = np.zeros(values, np.int64)
    for rank, target in enumerate(structure.place):
        is_target[target] = rank + 1
    target_rank = is_target[uses.value]
    group = np.where(target_rank > 0, 0, 2)
    owned = np.asarray(sorted(owner_item), np.int64)
    definers[owned] = [owner_item[v] for v in owned.tolist()]
    defined = np.nonzero((definers >= 0) & (place == np.arange(values)))[0]
    entry_place = np.concatenate([use_place, defined])
    entry_item = np.concatenate([item_of_use, definers[defined]])
    entry_open = np.concatenate([open_end, np.full(len(defined), _LOCAL)])
    entry_group = np.concatenate([group, np.ones(len(defined), np.int64)])
    entry_rank = np.concatenate([-uses.age, np.zeros(len(defined))])
    entry_target = np.concatenate([target_rank, np.zeros(len(defined), np.int64)])
    keep = ~sleeps[entry_item] | (entry_open != _LOCAL)
    by = np.lexsort((entry_rank[keep], entry_target[keep], entry_group[keep], entry_place[keep]))
    neighbours = entry_item[keep][by]
    neighbour_lengths = np.bincount(entry_place[keep], minlength=values)
    open_sorted = entry_open[keep][by]
    return_uses = [(at, int(open_sorted[at])) for at in np.nonzero(open_sorted != _LOCAL)[0].tolist()]

    return Layout(
        place=place,
        classes=all_classes.astype(np.int32),
        slot_offsets=slot_offsets.astype(np.int32),
        slots=slots.astype(np.int32),
        order=_program_order(
            function,
            structure,
            argument_items,
            inside,
            after,
            result_items,
            _followers(function, owner_item),
            sleeps,
        ),
        neighbour_offsets=np.concatenate([np.zeros(1, np.int64), np.cumsum(neighbour_lengths)]).astype(
            np.int32
        ),
        neighbours=neighbours.astype(np.int32),
        retirement=retirement(function, structure, classes, all_classes, definers),
        argument_sources=argument_sources,
        result_items=result_items,
        result_sources=result_sources,
        return_uses=return_uses,
    )


def _followers(function: Function, owner_item: Mapping[int, int]) -> dict[int, list[int]]:
    """Constraints that took over the uses of a value with a data-flow edge stand right after the edge."""
    followers: dict[int, list[int]] = {}
    for node in function.order:
        if node in function.moved and (edge := owner_item.get(function.operands[node][0])) is not None:
            followers.setdefault(edge, []).append(node)
    return followers


def _program_order(
    function: Function,
    structure: Structure,
    argument_items: list[int],
    inside: dict[int, list[int]],
    after: dict[int, list[int]],
    result_items: dict[int, list[int]],
    followers: dict[int, list[int]],
    sleeps: npt.NDArray[np.bool_],
) -> list[Ints | int]:
    """Items in program order without those that never do anything; the edges of an op follow its regions, but
    those of a body's arguments come first in the body."""
    placed = [node for nodes in followers.values() for node in nodes]
    nodes = np.asarray(function.order, np.int64)
    nodes = nodes[~np.isin(nodes, placed)] if placed else nodes
    index = np.zeros(len(function.ops), np.int64)
    index[nodes] = np.arange(len(nodes))

    def with_followers(edges: list[int]) -> list[int]:
        return [item for edge in edges for item in (edge, *followers.get(edge, ()))]

    # Where edges go: (position in `nodes`, inner ops first, edges, the call whose callee's items come before
    # them).
    stops = [(int(index[node]) + 1, -int(index[node]), edges, node) for node, edges in result_items.items()]
    stops += [(int(index[node]) + 1, -int(index[node]), edges, -1) for node, edges in inside.items()]
    for node, edges in after.items():
        last = structure.uses.last(node)
        stops.append((int(index[last]) + 1, -int(index[node]), edges, -1))
    order: list[Ints | int] = []
    run: list[npt.NDArray[np.int64]] = [np.asarray(with_followers(argument_items), np.int64)]

    def flush() -> None:
        items = np.concatenate(run).astype(np.int32)
        order.append(items[~sleeps[items]])
        run.clear()

    done = 0
    for at, _, edges, call in sorted(stops, key=lambda stop: stop[:2]):
        run.append(nodes[done:at])
        done = at
        if call >= 0:
            flush()
            order.append(call)
        run.append(np.asarray(with_followers(edges), np.int64))
    run.append(nodes[done:])
    flush()
    return order

"""Dead ops in the agenda: items that retire, see ``engine/agenda/retirement.py``.

Shardy erases a dead op when its turn comes. So ops that only dead ops use take turns until those are gone,
and only then do values that dead ops used too count as used once.
"""

from __future__ import annotations

import numpy as np

from ...engine.agenda.retirement import Retirement, lists, nobody
from ...program.classes import Classes
from ...program.columns import Ints, among
from ...program.function import Function
from ..passes.structure import Structure


def retirement(
    function: Function,
    structure: Structure,
    classes: Classes,
    item_classes: Ints,
    makers: Ints,
) -> Retirement | None:
    """The arrays by which the items of a function retire; None where none do. ``makers`` is the item that
    makes each value; -1: none."""
    dead, uses = structure.dead, structure.uses
    if not dead:
        return None
    never = nobody(item_classes)
    by_dead = np.nonzero(np.isin(uses.node, list(dead)))[0]
    listed = among(uses.value[by_dead])
    values = np.asarray(listed, np.int32)
    numbers = {value: number for number, value in enumerate(listed)}
    used = np.isin(uses.value, values)
    users = {v: dict[int, None]() for v in numbers}  # value -> the nodes that use it
    for value, node in zip(uses.value[used].tolist(), uses.node[used].tolist(), strict=True):
        users[value][node] = None
    keepers = never.keepers.copy()
    keepers[list(dead)] = 0
    for maker in makers[values].tolist():
        if maker in dead:
            keepers[maker] += 1
    inside: list[list[int]] = [[] for _ in item_classes]
    for node in sorted(dead, reverse=True):
        if function.parent[node] in dead:
            inside[function.parent[node]].append(node)
            keepers[node] += 1
    held: list[list[int]] = [[] for _ in item_classes]
    for node in dead:
        held[node] = [numbers[v] for v in dict.fromkeys(function.operands[node])]
    waits, later = never.waits.copy(), never.later.copy()
    for node in dict.fromkeys(node for nodes in users.values() for node in nodes):
        shared = [v for v in function.operands[node] if structure.counts[v] > 1]
        if shared and all(v in numbers and _alone(node, v, users[v], dead, function) for v in shared):
            waits[node] = len(shared)
            later[node] = classes.number(function.signature[node])
    return Retirement(
        keepers,
        lists(inside),
        lists(held),
        makers[values].astype(np.int32),
        lists([list(nodes) for nodes in users.values()]),
        waits,
        later,
    )


def _alone(node: int, value: int, users: dict[int, None], dead: frozenset[int], function: Function) -> bool:
    """Whether a node uses a value once, and only dead nodes use it besides."""
    grouped = any(v == value and n < 0 for v, _, n in function.groups)
    others = (other for other in users if other != node)
    return not grouped and function.operands[node].count(value) == 1 and all(n in dead for n in others)

"""The structure of a function, which layout needs: its data-flow edges, constraints and dead ops."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ...program.classes import Classes, End, SignatureAnswers
from ...program.columns import among, column, numbers
from ...program.function import Function
from ...program.uses import Uses
from .constraints import apply_constraints
from .groups import Members, Together, separate_groups
from .policy import Policy


@dataclass(frozen=True)
class DataFlow:
    """A data-flow edge of ``node``: the value that holds its sharding, the uses and the other values it
    ties."""

    node: int
    owner: int
    sources: tuple[tuple[int, int], ...]  # node, operand index
    targets: tuple[int, ...]


@dataclass
class Structure:
    """A prepared function."""

    callee: bool  # it is called: its arguments have data-flow edges
    edges: list[DataFlow]
    place: dict[int, int]  # target of an edge -> its owner
    uses: Uses
    multiple: npt.NDArray[np.bool_]  # by node: some operand that is no scalar is used again
    counts: npt.NDArray[np.int64]  # by value: how many uses it has; 0 for scalars
    dead: frozenset[int] = frozenset()  # nodes
    constrained_first: bool = False  # constraints were applied before calls were inlined


def prepare(
    functions: Mapping[str, Function],
    classes: Classes,
    together: Together | None = None,
    *,
    called: Collection[str],
    main: str = "",
    edges_as_read: bool = False,
    policy: Policy | None,
) -> dict[str, Structure]:
    """Finds the data-flow edges of functions whose constants are split, applies their sharding constraints as
    ``policy`` decides (None: leaves them) and finds their dead ops (``function.removed``).

    ``called`` are the names of the called functions, ``main`` the name of the main one. ``edges_as_read``:
    only edges that the functions themselves have. ``together`` (see ``groups.py``): members of sharding
    groups may disagree; otherwise that is an error, reported later.

    Shardy erases a dead op when its turn comes. So an op without uses never takes a turn. An op that only
    dead ops use does, until they are gone.
    """
    begun = [
        _constrained(
            function,
            classes,
            callee=name in called,
            uncalled=name not in called and name != main,
            edges_as_read=edges_as_read,
            policy=policy,
        )
        for name, function in functions.items()
    ]
    if together is not None:
        members = [Members(s.function, s.uses, s.place, s.owners) for s in begun]
        separate_groups(members, classes, together)
    return {name: _ordered(one, classes) for name, one in zip(functions, begun, strict=True)}


@dataclass
class _Begun:
    """A function whose constraints are applied."""

    function: Function
    callee: bool
    edges: list[DataFlow]
    place: dict[int, int]
    owners: set[int]  # values with an edge
    uses: Uses
    constrained_first: bool


def _constrained(
    function: Function,
    classes: Classes,
    *,
    callee: bool,
    uncalled: bool,
    edges_as_read: bool,
    policy: Policy | None,
) -> _Begun:
    edges = _edges(function, classes)
    place = {target: edge.owner for edge in edges for target in edge.targets}
    function.flows = {edge.owner for edge in edges} | set(place)
    if edges_as_read:
        edges = [edge for edge in edges if edge.owner in function.flow_edges.values()]
    owners = {edge.owner for edge in edges}
    first = policy is not None and policy.constrains_in_functions
    alone = edges_as_read or first
    uses = Uses(function) if alone else ordered_uses(function, owners, callee=callee)
    op_owners = frozenset(owners)
    owners.update(function.arguments if callee else ())
    owners.update(v for node in function.calls for v in function.results[node])
    for value, sharding in list(function.annotations.items()):
        if value in place:
            function.annotations.setdefault(place[value], sharding)
    if policy is not None:
        shapes = classes.signatures.shapes
        free = frozenset(v for v in function.arguments if uncalled and shapes[function.types[v]] is not None)
        flows_into = owners | set(place)
        if first:  # with edges at the boundary of functions meanwhile
            crossing = (owners - op_owners) | free
            uses.reverse(op_owners)
            uses.reverse(crossing)
        apply_constraints(function, classes, uses, place, flows_into, free, policy, callee=callee)
        if first:
            uses.reverse(crossing)
            put_in_place_of_calls(uses, function, callee=callee)
    return _Begun(function, callee, edges, place, owners, uses, first)


def _ordered(begun: _Begun, classes: Classes) -> Structure:
    function, uses, edges = begun.function, begun.uses, begun.edges
    if function.moved:
        function.order = column(sorted(function.order, key=uses.position.__getitem__))
    counts = _counts(function, classes, uses)
    multiple = np.zeros(len(function.ops), bool)
    multiple[uses.node[counts[uses.value] > 1]] = True
    grouped = [value for value, _, _ in function.groups]
    dead = _dead(function, classes, uses, begun.owners.union(grouped), {edge.node for edge in edges})
    function.removed |= dead
    return Structure(
        begun.callee, edges, begun.place, uses, multiple, counts, frozenset(dead), begun.constrained_first
    )


def ordered_uses(function: Function, owners: set[int], *, callee: bool) -> Uses:
    """The uses of a function in the order that MLIR has when Shardy propagates.

    An edge stands between its owner and the owner's uses, which reverses their order. ``owners`` are the
    owners that are results of ops.
    """
    uses = Uses(function)
    uses.reverse(owners)
    put_in_place_of_calls(uses, function, callee=callee)
    return uses


def put_in_place_of_calls(uses: Uses, function: Function, *, callee: bool) -> None:
    """A call becomes a computation in place: its operands and returned values are new uses, and its results
    take over the uses, whose order is reversed twice, because results have edges too. The uses of the
    arguments of a called function are reversed twice, too."""
    results = {v for node in function.calls for v in function.results[node]}
    uses.reverse(results)
    ends = [function.terminator] if callee else []
    uses.renew([*function.calls_in_order, *ends])
    uses.reverse(results.union(function.arguments if callee else ()))


def _edges(function: Function, classes: Classes) -> list[DataFlow]:
    with_edges = np.zeros(len(classes.signatures.examples), bool)
    with_edges[[s for s in among(numbers(function.signature)) if classes.of(s).edges]] = True
    order, flows = numbers(function.order), []
    for node in order[with_edges[numbers(function.signature)[order]]].tolist():
        for edge in classes.of(function.signature[node]).edges:
            owner = _value(function, node, edge.owner)
            if classes.signatures.shapes[function.types[owner]] is None:
                continue  # tokens have no sharding
            sources = tuple(_use(function, node, source) for source in edge.sources)
            targets = tuple(_value(function, node, target) for target in edge.targets)
            flows.append(DataFlow(node, owner, sources, targets))
    return flows


def _value(function: Function, node: int, end: End) -> int:
    end_kind, region, index = end
    return (
        function.results[node][index]
        if end_kind == "result"
        else function.regions[node][region].arguments[index]
    )


def _use(function: Function, node: int, end: End) -> tuple[int, int]:
    end_kind, region, index = end
    return (node, index) if end_kind == "operand" else (function.regions[node][region].nodes[-1], index)


def _dead(function: Function, classes: Classes, uses: Uses, keep: set[int], edged: set[int]) -> set[int]:
    """Pure ops whose results nothing uses, or only such ops use. A data-flow edge is not pure, so neither is
    an op with one inside; ``edged`` are the nodes with edges of their own."""
    used = np.bincount(uses.value, minlength=len(function.types))
    used[list(keep)] += 1
    needed = np.bincount(numbers(function.definer)[used > 0] + 1, minlength=len(function.ops) + 1)[1:] > 0
    answers = {s: classes.of(s) for s in among(numbers(function.signature))}
    may_die = np.zeros(len(classes.signatures.examples), bool)
    may_die[[s for s, answer in answers.items() if answer.pure or answer.pure_inside]] = True
    order = numbers(function.order)
    if not (may_die[numbers(function.signature)[order]] & ~needed[order]).any():
        return set()
    counts = used.tolist()
    pure = _pure_nodes(function, [answers[s] for s in function.signature], edged)
    dead: set[int] = set()
    for node in reversed(function.order):
        if node not in pure or any(counts[v] for v in function.results[node]):
            continue
        for gone in (node, *_inside(function, node)):
            if gone not in dead:
                for value in function.operands[gone]:
                    counts[value] -= 1
            dead.add(gone)
    return dead


def _inside(function: Function, node: int) -> list[int]:
    """The nodes in the regions of ``node``."""
    if node not in function.regions:
        return []
    direct = [n for region in function.regions[node] for n in region.nodes]
    direct += [n for n in function.created if function.parent[n] == node]
    return direct + [n for d in direct for n in _inside(function, d)]


def _pure_nodes(function: Function, answers: Sequence[SignatureAnswers], edged: set[int]) -> set[int]:
    """Nodes that have no side effects, in their regions either."""
    pure: set[int] = set()
    for node in reversed(function.order):
        if node in function.calls or node in edged:
            continue
        answer = answers[node]
        if answer.pure or (
            answer.pure_inside
            and all(n in pure or answers[n].computes_nothing for n in _inside(function, node))
        ):
            pure.add(node)
    return pure


def _counts(function: Function, classes: Classes, uses: Uses) -> npt.NDArray[np.int64]:
    counts = np.bincount(uses.value, minlength=len(function.types))
    for value, _, node in function.groups:
        counts[value] += node < 0  # a copy of a constant is in the groups of the constant
    shaped = np.asarray([shape != () for shape in classes.signatures.shapes], bool)
    return np.where(shaped[numbers(function.types)], counts, 0)

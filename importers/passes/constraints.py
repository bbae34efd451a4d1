"""Sharding constraints, applied before propagation as Shardy's ``sdy-apply-sharding-constraints`` does.

``rules/propagation/constraints.dl`` decides how each is applied; this module applies it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...program.boundaries import spec_name
from ...program.classes import Classes
from ...program.function import Function
from ...program.shardings import Sharding
from ...program.uses import Uses
from .policy import Policy


def apply_constraints(
    function: Function,
    classes: Classes,
    uses: Uses,
    place: dict[int, int],
    flows_into: set[int],
    uncalled: frozenset[int],
    policy: Policy,
    *,
    callee: bool,
) -> None:
    """Applies the constraints of ``function`` in program order.

    Changes its annotations, operands and order. ``place`` maps targets of data-flow edges to the value that
    holds their sharding. ``flows_into`` are the values with a data-flow edge of their own and the other
    targets. ``uncalled`` are the arguments of a function that nothing calls, unless it is main. The returned
    values of a ``callee`` are used at its calls.
    """
    if function.constraints or function.entering:
        _Constraints(function, classes, uses, place, flows_into, uncalled, policy, callee=callee).run()


class _Constraints:
    def __init__(
        self,
        function: Function,
        classes: Classes,
        uses: Uses,
        place: dict[int, int],
        flows_into: set[int],
        uncalled: frozenset[int],
        policy: Policy,
        *,
        callee: bool,
    ) -> None:
        self.callee = callee
        self.classes, self.policy, self.uncalled = classes, policy, uncalled
        self.function, self.uses, self.place, self.flows_into = function, uses, place, flows_into
        self.nodes = set(function.constraints)
        # The demands of nodes on their operands: constraints, and manual computations.
        own = {n: (function.annotations[function.results[n][0]],) for n in function.constraints}
        self.wanted_by = {n: s for n, s in (own | function.entering).items() if n not in function.removed}

    def run(self) -> None:
        for node in sorted(self.wanted_by, key=self.uses.end):
            if node not in self.function.entering:
                self.follow_chain(node)
            for index, sharding in enumerate(self.wanted_by[node]):
                self.apply(node, index, sharding)
        # Groups are uses too, which constraints take over.
        operands, groups = self.function.operands, self.function.groups
        self.function.groups = [(operands[n][0] if n >= 0 else v, group, n) for v, group, n in groups]

    # ---- Facts for the rules ----------------------------------------------------------------------------

    def demand(self, node: int, index: int, sharding: Sharding) -> dict[str, Any]:
        """The facts about a demand."""
        value = self.function.operands[node][index]
        others = [self.wanted_by[n][i] for n, i in self.uses.of(value) if n in self.wanted_by]
        facts: dict[str, Any] = {
            "demanded": [("computation" if node in self.function.entering else "constraint",)]
        }
        held = self.function.annotations.get(self.place.get(value, value))
        holds = {
            "has_open_dimension": not all(d.closed for d in sharding.dimensions),
            "has_unreduced_axes": bool(sharding.unreduced),
            "value_sharded": held is not None,
            "value_open": held is not None and held.plainly_open,
            "data_flows_in": value in self.flows_into,
            "uncalled_argument": value in self.uncalled,
            "also_demanded": len(others) > 1,
            "contradicted": any(other != sharding for other in others),
        }
        return facts | {name: [()] for name, is_so in holds.items() if is_so}

    def chain(self, head: int) -> int:
        """The last constraint of a chain, in which each is the only use of its predecessor."""
        tail = head
        while True:
            users = self.uses.of(self.function.results[tail][0])
            if len(users) != 1 or users[0][0] not in self.nodes:
                return tail
            tail = users[0][0]

    def use_place(self, node: int, tail: int) -> str:
        """The place of a use relative to the end of a chain."""
        function, position = self.function, self.uses.position
        if node == function.terminator and not self.callee:
            return "return"
        if function.region[node] != function.region[tail]:
            return "elsewhere"
        return "later" if position[tail] < position[node] else "earlier"

    # ---- Their answers are applied ----------------------------------------------------------------------

    def follow_chain(self, head: int) -> None:
        function, uses = self.function, self.uses
        tail = self.chain(head)
        if tail == head:
            return
        value, result = function.operands[head][0], function.results[tail][0]
        places = {use: self.use_place(use[0], tail) for use in uses.of(value) if use[0] != head}
        facts = self.demand(head, 0, self.wanted_by[head][0])
        facts |= {"chain": [()], "other_use": [(place,) for place in sorted({*places.values()})]}
        if function.definer[value] in self.nodes:
            facts["continues_chain"] = [()]
        if any(node in self.wanted_by for node, _ in uses.of(result)):
            facts["end_demanded"] = [()]
        taken = {place for (place,) in self.policy.constraint(facts)["chain_takes_over"]}
        for use, place in reversed(places.items()):
            if place in taken:
                uses.move(*use, result)

    def apply(self, node: int, index: int, sharding: Sharding) -> None:
        function, uses = self.function, self.uses
        value = function.operands[node][index]
        decided = self.policy.constraint(self.demand(node, index, sharding))
        place = self.place.get(value, value)
        spec = (node, spec_name("in_shardings", index)) if node in function.entering else None
        if decided["becomes_sharding"]:
            function.annotations[place] = sharding
            if spec:
                function.specs[place] = spec
            siblings = function.results[function.definer[value]] if function.definer[value] >= 0 else range(0)
            if len(siblings) > 1:  # later constraints find their shardings there
                self.policy.fill("constraint", function, siblings)
        if decided["stands_apart"]:
            node = create_constraint(function, self.classes, uses, node, index, sharding)
            if spec:
                function.specs[function.results[node][0]] = spec
            self.nodes.add(node)
            self.wanted_by[node] = (sharding,)
        if decided["leaves_unreduced"]:
            open_ = Sharding.open(sharding.mesh, len(sharding.dimensions))
            function.annotations[place] = replace(
                open_, unreduced=sharding.unreduced, reduction=sharding.reduction
            )
        if decided["takes_over"]:
            take_over(function, uses, node, edge=value not in self.place)


def create_constraint(
    function: Function, classes: Classes, uses: Uses, near: int, index: int, sharding: Sharding
) -> int:
    """A new constraint on operand ``index`` of ``near``, in the block of that value."""
    node, value = len(function.ops), function.operands[near][index]
    function.ops.append(None)
    function.names.append("sdy.sharding_constraint")
    function.signature.append(classes.add("sdy.sharding_constraint", function.types[value]))
    function.operands.append((value,))
    function.results.append(range(len(function.types), len(function.types) + 1))
    function.annotations[function.new_value(function.types[value], node)] = sharding
    parent, region = function.block(value)
    function.parent.append(parent)
    function.region.append(region)
    function.order.append(node)
    function.constraints.append(node)
    function.created[node] = (near, index)
    uses.add(node, value)
    return node


def take_over(function: Function, uses: Uses, node: int, *, edge: bool) -> None:
    """Puts the constraint ``node`` right after its operand, and makes it the only use; with ``edge`` after
    the operand's own data-flow edge."""
    value, result = function.operands[node][0], function.results[node][0]
    function.moved.add(node)
    uses.position[node] = uses.after(value, edge=edge) - len(function.moved) * 1e-9
    function.region[node], function.parent[node] = uses.home(value)
    for user, index in reversed(uses.of(value)):
        if user != node:
            uses.move(user, index, result)

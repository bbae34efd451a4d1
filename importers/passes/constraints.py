"""Sharding constraints, applied before propagation as Shardy's ``sdy-apply-sharding-constraints`` does.

A constraint on a value without a sharding becomes the value's own sharding, if it is fully closed and no
other constraint disagrees. A value that data flows into (a while's result, a function's argument) keeps its
sharding free: there the constraint takes over all uses instead. A chain of constraints takes over the later
uses of the value it starts from.
"""

from __future__ import annotations

from dataclasses import replace

from ...program.classes import Classes
from ...program.function import Function
from ...program.manual import spec_name
from ...program.shardings import Sharding
from ...program.uses import Uses


def apply_constraints(
    function: Function, classes: Classes, uses: Uses, place: dict[int, int], flows_into: set[int]
) -> None:
    """Applies the constraints of ``function`` in program order.

    Changes its annotations, operands and order. ``place`` maps targets of data-flow edges to the value that
    holds their sharding; ``flows_into`` are the values with a data-flow edge of their own and the other
    targets.
    """
    if function.constraints or function.entering:
        _Constraints(function, classes, uses, place, flows_into).run()


class _Constraints:
    def __init__(
        self, function: Function, classes: Classes, uses: Uses, place: dict[int, int], flows_into: set[int]
    ) -> None:
        self.classes = classes
        self.function, self.uses, self.place, self.flows_into = function, uses, place, flows_into
        self.nodes = set(function.constraints)
        # What nodes want of their operands: constraints, and manual computations.
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

    def sharding(self, value: int) -> Sharding | None:
        return self.function.annotations.get(self.place.get(value, value))

    def constrained(self, value: int, but: int = -1) -> bool:
        return any(node in self.wanted_by and node != but for node, _ in self.uses.of(value))

    def follow_chain(self, head: int) -> None:
        function, uses = self.function, self.uses
        value = function.operands[head][0]
        if (
            function.definer[value] in self.nodes
            or self.sharding(value) is not None
            or self.constrained(value, head)
        ):
            return
        tail = head
        while True:
            users = uses.of(function.results[tail][0])
            if len(users) != 1 or users[0][0] not in self.nodes:
                break
            tail = users[0][0]
        result = function.results[tail][0]
        if tail == head or self.constrained(result):
            return
        for node, index in reversed(uses.of(value)):
            later = (
                function.region[node] == function.region[tail] and uses.position[tail] < uses.position[node]
            )
            if node != head and node != function.terminator and later:
                uses.move(node, index, result)

    def apply(self, node: int, index: int, sharding: Sharding) -> None:
        function, uses = self.function, self.uses
        value = function.operands[node][index]
        if self.sharding(value) is not None or not all(d.closed for d in sharding.dimensions):
            return
        others = ((n, i) for n, i in uses.of(value) if n in self.wanted_by)
        if any(self.wanted_by[n][i] != sharding for n, i in others):
            return
        place = self.place.get(value, value)
        spec = (node, spec_name("in_shardings", index)) if node in function.entering else None
        if value not in self.flows_into:
            function.annotations[place] = sharding
            if spec:
                function.specs[place] = spec
            self.fill(value, sharding.mesh)
            return
        if spec:  # the computation cannot stand elsewhere: a constraint of its own does
            node = create_constraint(function, self.classes, uses, node, index, sharding)
            function.specs[function.results[node][0]] = spec
            self.nodes.add(node)
            self.wanted_by[node] = (sharding,)
        if sharding.unreduced:  # which does not propagate
            open_ = Sharding.open(sharding.mesh, len(sharding.dimensions))
            function.annotations[place] = replace(open_, unreduced=sharding.unreduced)
        take_over(function, uses, node)

    def fill(self, value: int, mesh: int) -> None:
        """The other results of the op get shardings too, open ones: later constraints find these there."""
        function, shapes = self.function, self.classes.signatures.shapes
        results = function.results[function.definer[value]] if function.definer[value] >= 0 else range(0)
        for other in results if len(results) > 1 else ():
            rank = len(shapes[function.types[other]] or ())
            function.annotations.setdefault(other, Sharding.open(mesh, rank))


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


def take_over(function: Function, uses: Uses, node: int) -> None:
    """Puts the constraint ``node`` right after its operand, of which it becomes the only use."""
    value, result = function.operands[node][0], function.results[node][0]
    function.moved.add(node)
    uses.position[node] = uses.after(value) - len(function.moved) * 1e-9
    function.region[node], function.parent[node] = uses.home(value)
    for user, index in reversed(uses.of(value)):
        if user != node:
            uses.move(user, index, result)

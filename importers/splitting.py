"""Constants are split, so that each use of one is free to have its own sharding.

Which ops are constant sub-computations is decided by ``rules/propagation/constants.dl``. Here they are copied: every use
by an op that is no constant gets a copy of the whole sub-computation of its own, as in Shardy's
``sdy-constant-or-scalar-splitter``. Scalars are never copied, for they cannot be sharded.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from .function import Function


def split_constants(function: Function, constants: set[int], scalar: Sequence[bool]) -> None:
    """Copies the sub-computations of ``constants`` (nodes) per use; ``scalar`` says which types are scalars.

    Copies stand right before the node they are copied from; a node that is left without uses is removed.
    """
    if not constants:
        return
    _Splitter(function, constants, scalar).run()


class _Splitter:
    def __init__(self, function: Function, constants: set[int], scalar: Sequence[bool]) -> None:
        self.function, self.constants, self.scalar = function, constants, scalar
        self.before: dict[int, list[int]] = {}  # node -> its copies, in order
        self.groups: dict[int, list[int]] = {}  # value -> ids of its sharding groups
        for value, group, _ in function.groups:
            self.groups.setdefault(value, []).append(group)
        self.group_nodes = {node for _, _, node in function.groups}

    def run(self) -> None:
        function, constants = self.function, self.constants
        types, scalar = function.types, self.scalar
        constant_values = {
            value
            for node in constants
            for value in function.results[node]
            if not scalar[types[value]]
        }
        users = [n for n in function.order if not constant_values.isdisjoint(function.operands[n])]
        for node in users:
            if node in constants or node in self.group_nodes:
                continue
            operands = function.operands[node]
            function.operands[node] = tuple([self.copy(v, {}) if v in constant_values else v for v in operands])
            function.rewired.setdefault(node, set()).update(i for i, v in enumerate(operands) if v in constant_values)
        self.remove_unused()
        order: list[int] = []
        for node in function.order:
            order.extend(self.before.get(node, ()))
            if node not in function.removed:
                order.append(node)
        function.order = order

    def copy(self, value: int, copies: dict[int, int]) -> int:
        """The copy of ``value``, with copies of all that it is computed from (``copies`` has those made already)."""
        function = self.function
        if value in copies:
            return copies[value]
        node = function.definer[value]
        if node < 0 or self.scalar[function.types[value]]:
            return value
        operands = tuple([self.copy(v, copies) for v in function.operands[node]])
        twin = len(function.ops)
        function.ops.append(function.ops[node])
        function.names.append(function.names[node])
        function.signature.append(function.signature[node])
        function.operands.append(operands)
        function.parent.append(function.parent[node])
        function.region.append(function.region[node])
        first = len(function.types)
        for result in function.results[node]:
            copies[result] = twin_value = function.new_value(function.types[result], twin)
            if result in function.annotations:
                function.annotations[twin_value] = function.annotations[result]
            for group in self.groups.get(result, ()):
                function.groups.append((twin_value, group, -1))
        function.results.append(range(first, len(function.types)))
        if node in function.calls:
            function.calls[twin] = function.calls[node]
        function.originals[twin] = node
        self.before.setdefault(node, []).append(twin)
        return copies[value]

    def remove_unused(self) -> None:
        """Removes constants without uses other than by sharding groups, users before what they use."""
        function = self.function
        defined = {value for node in self.constants for value in function.results[node]}
        uses = dict.fromkeys(defined, 0)
        for node in chain(function.order, function.originals):
            operands = function.operands[node]
            if node not in self.group_nodes and not defined.isdisjoint(operands):
                for value in defined.intersection(operands):
                    uses[value] += operands.count(value)
        for node in reversed(function.order):
            if node in self.constants and not any(uses[value] for value in function.results[node]):
                function.removed.add(node)
                for value in function.operands[node]:
                    if value in uses:
                        uses[value] -= 1
        gone = {value for node in function.removed for value in function.results[node]}
        for value, _, node in function.groups:
            if value in gone:
                function.removed.add(node)
        function.groups = [g for g in function.groups if g[0] not in gone]

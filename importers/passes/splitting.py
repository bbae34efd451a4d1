"""Splits constants, so that each use of one is free to have its own sharding.

Which ops are constant sub-computations is decided by ``rules/propagation/constants.dl``. Here they are
copied: every use by an op that is no constant gets a copy of the whole sub-computation of its own, as in
Shardy's ``sdy-constant-or-scalar-splitter``. Scalars are never copied, for they cannot be sharded.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from ...program.function import Function

_STEPS = 20


def leave_out(
    told: npt.NDArray[np.bool_],
    keeps: npt.NDArray[np.bool_],
    users: npt.NDArray[np.int64],
    makers: npt.NDArray[np.int64],
) -> None:
    """Takes nodes out of ``told``, which may be constants: those of ``keeps`` are if all that they use is, so
    not where something else makes it. ``users`` and ``makers`` are the nodes at the ends of every use (makers
    of arguments: -1).

    It saves the rules much work in most programs, and looks only some steps far.
    """
    for _ in range(_STEPS):
        out = users[((makers < 0) | ~told[makers]) & keeps[users] & told[users]]
        if not len(out):
            break
        told[out] = False


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
        self.groups: dict[int, list[int]] = {}  # value -> ids of its sharding groups
        for value, group, _ in function.groups:
            self.groups.setdefault(value, []).append(group)
        self.group_nodes = {node for _, _, node in function.groups}
        self.copied: list[int] = []  # the node behind each copy
        self.operands: list[tuple[int, ...]] = []  # of each copy
        self.first, self.next = len(function.ops), len(function.types)  # the first copy, the next value

    def run(self) -> None:
        function, constants = self.function, self.constants
        types, scalar = function.types, self.scalar
        self.values = {value for node in constants for value in function.results[node]}
        self.users = [n for n in function.order if not self.values.isdisjoint(function.operands[n])]
        shaped = {value for value in self.values if not scalar[types[value]]}
        for node in self.users:
            operands = function.operands[node]
            if node in constants or node in self.group_nodes or shaped.isdisjoint(operands):
                continue
            function.operands[node] = tuple([self.copy(v, {}) if v in shaped else v for v in operands])
            function.rewired[node] = {i for i, v in enumerate(operands) if v in shaped}
        self.add_copies()
        self.remove_unused()
        self.put_in_order()

    def put_in_order(self) -> None:
        """Copies stand before what they are copied from, in the order in which they were made."""
        function = self.function
        copies = np.asarray(list(function.originals), np.int64)
        kept = np.asarray([n for n in function.order if n not in function.removed], np.int64)
        place = np.concatenate([np.asarray(list(function.originals.values()), np.int64), kept])
        made = np.concatenate([np.arange(len(copies)), np.full(len(kept), len(copies))])
        function.order = np.concatenate([copies, kept])[np.lexsort((made, place))].tolist()

    def copy(self, value: int, copies: dict[int, int]) -> int:
        """The copy of ``value``, with copies of all that it is computed from (``copies`` has those made
        already)."""
        function = self.function
        if value in copies:
            return copies[value]
        node = function.definer[value]
        if node < 0 or self.scalar[function.types[value]]:
            return value
        inner = function.operands[node]
        operands = tuple([self.copy(v, copies) for v in inner]) if inner else ()
        self.copied.append(node)
        self.operands.append(operands)
        for result in function.results[node]:
            copies[result] = self.next
            self.next += 1
        return copies[value]

    def add_copies(self) -> None:
        """Adds the copies that were made to the function."""
        function, copied = self.function, self.copied
        columns: list[list[Any]] = [function.ops, function.names, function.signature]
        for column in (*columns, function.parent, function.region):
            column.extend([column[node] for node in copied])
        function.operands.extend(self.operands)
        function.originals.update(enumerate(copied, self.first))
        calls = [
            (twin, function.calls[node])
            for twin, node in function.originals.items()
            if node in function.calls
        ]
        function.calls.update(calls)
        for twin, node in function.originals.items():
            results, first = function.results[node], len(function.types)
            for result in results:
                value = function.new_value(function.types[result], twin)
                if result in function.annotations:
                    function.annotations[value] = function.annotations[result]
                if result in self.groups:
                    function.groups.extend([(value, group, -1) for group in self.groups[result]])
            function.results.append(range(first, first + len(results)))

    def remove_unused(self) -> None:
        """Removes constants without uses other than by sharding groups, users before what they use."""
        function = self.function
        nodes = [n for n in chain(self.users, function.originals) if n not in self.group_nodes]
        used = np.fromiter(chain.from_iterable([function.operands[n] for n in nodes]), np.int64)
        uses = np.bincount(used, minlength=len(function.types)).tolist()
        for node in sorted(self.constants, reverse=True):
            if not any(map(uses.__getitem__, function.results[node])):
                function.removed.add(node)
                for value in function.operands[node]:
                    uses[value] -= 1
        if not function.groups:
            return
        gone = {value for node in function.removed for value in function.results[node]}
        for value, _, node in function.groups:
            if value in gone:
                function.removed.add(node)
        function.groups = [g for g in function.groups if g[0] not in gone]

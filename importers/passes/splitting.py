"""Splits constants, so that each use of one is free to have its own sharding.

Which ops are constant sub-computations is decided by ``rules/propagation/constants.dl``. Here they are
copied: every use by an op that is no constant gets a copy of the whole sub-computation of its own, as in
Shardy's ``sdy-constant-or-scalar-splitter``. Scalars are never copied, for they cannot be sharded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from ...program.columns import Ints, Whole, column, numbers, spread, spread_ranges, starts, unique
from ...program.function import Function

_STEPS = 20  # uses that are followed, at most


def leave_out(
    may_be_constant: npt.NDArray[np.bool_],
    keeps: npt.NDArray[np.bool_],
    users: Whole,
    makers: Whole,
) -> None:
    """Removes nodes from ``may_be_constant`` that cannot be constants.

    A node in ``keeps`` is a constant only if all its operands are. ``users`` and ``makers`` are the nodes at
    the ends of every use (makers of arguments: -1).

    In most programs this saves the rules much work. It looks only a few steps ahead.
    """
    looked_at = keeps[users] & may_be_constant[users]
    for _ in range(_STEPS):
        users, makers = users[looked_at], makers[looked_at]
        out = (makers < 0) | ~may_be_constant[makers]
        if not out.any():
            break
        may_be_constant[users[out]] = False
        looked_at = may_be_constant[users]


def split_constants(function: Function, constants: Ints, scalar: Sequence[bool]) -> None:
    """Copies the sub-computations of ``constants`` (nodes) per use; ``scalar`` says which types are scalars.

    Copies stand right before the node they are copied from; a node that is left without uses is removed.
    """
    if len(constants):
        _Splitter(function, constants, scalar).run()


class _Splitter:
    def __init__(self, function: Function, constants: Ints, scalar: Sequence[bool]) -> None:
        self.function, self.constants = function, constants
        self.groups: dict[int, list[int]] = {}  # value -> ids of its sharding groups
        for value, group, _ in function.groups:
            self.groups.setdefault(value, []).append(group)
        self.definer, self.order = numbers(function.definer), numbers(function.order)
        self.operands, self.offsets = numbers(function.operands.values), numbers(function.operands.offsets)
        self.first_results, self.results = numbers(function.results.first), numbers(function.results.counts)
        scalars = np.asarray(scalar, bool)[numbers(function.types)]
        self.is_constant = np.zeros(len(function.ops), bool)
        self.is_constant[constants] = True
        # Values that are copied with their users. What an op fills with a scalar may be no constant.
        self.copied = (self.definer >= 0) & self.is_constant[self.definer] & ~scalars

    def run(self) -> None:
        """Gives operands copies. A copy has the number of the use and the number of the copied node."""
        function, nodes = self.function, len(self.results)
        stays = self.is_constant.copy()
        stays[[node for _, _, node in function.groups]] = True
        entries, rows = spread(self.offsets, self.order)
        cut = self.copied[self.operands[entries]] & ~stays[self.order][rows]
        uses = entries[cut]
        copies = self.copies(uses)
        sources = copies % nodes
        inside, _ = spread(self.offsets, sources)  # the operands of copied nodes
        removed = self.unused(entries[~cut], inside)
        # The last copy of a node without other uses is the node itself.
        own = self.takes(removed)[sources]
        last = np.empty(nodes, np.int32)
        last[sources] = np.arange(len(sources))
        own &= last[sources] == np.arange(len(sources))
        removed[sources[own]] = False
        function.removed.update(removed.nonzero()[0].tolist())
        function.split.update(sources[own].tolist())
        self.new = sources[~own]
        if len(self.new):
            self.use_copies(uses, copies, own)
            self.add_copies()
        self.remove_groups()
        self.put_in_order(removed)

    def use_copies(self, uses: Ints, copies: npt.NDArray[np.int64], own: npt.NDArray[np.bool_]) -> None:
        """Replaces values by their copies; copies that are nodes themselves are ``own``."""
        function, nodes = self.function, len(self.results)
        sources = copies % nodes
        inside, made_by = spread(self.offsets, sources)
        counts = self.results[sources]
        first = len(function.types) + starts(counts * ~own)[:-1]  # the first value that each copy makes
        first[own] = self.first_results[sources[own]]

        def copy_of(values: Ints, use: Whole) -> Ints:
            """The values that copies make for uses, in place of the originals."""
            makers = self.definer[values]
            at = np.searchsorted(copies, use * nodes + makers)
            return first[at] + values - self.first_results[makers]

        operands = self.operands[inside]
        within = self.copied[operands]
        operands[within] = copy_of(operands[within], (copies // nodes)[made_by[within]])
        self.operands[uses] = copy_of(self.operands[uses], np.arange(len(uses)))
        mine = own[made_by]
        self.operands[inside[mine]] = operands[mine]
        function.operands.values = column(self.operands)
        function.operands.extend(operands[~mine], np.diff(self.offsets)[self.new])

    def copies(self, uses: Ints) -> npt.NDArray[np.int64]:
        """The nodes to copy for uses, sorted: the number of a use times the number of nodes, plus the
        node."""
        nodes = len(self.results)
        wave = np.arange(len(uses)) * nodes + self.definer[self.operands[uses]]
        waves = [wave]
        while len(wave):  # the operands of the last ones
            entries, rows = spread(self.offsets, wave % nodes)
            used = self.operands[entries]
            inner = self.copied[used]
            wave = unique((wave // nodes)[rows[inner]] * nodes + self.definer[used[inner]])
            waves.append(wave)
        return unique(np.concatenate(waves))

    def unused(self, kept: Ints, copied: Ints) -> npt.NDArray[np.bool_]:
        """Which nodes are constants that at most sharding groups use.

        ``kept`` are the operands that get no copies, ``copied`` the operands of copied nodes.
        """
        count = len(self.definer)
        grouped = np.zeros(len(self.results), bool)
        grouped[[node for _, _, node in self.function.groups]] = True
        groups, _ = spread(self.offsets, np.nonzero(grouped)[0])
        uses = np.bincount(self.operands[kept], minlength=count)
        uses -= np.bincount(self.operands[groups], minlength=count)
        outside = self.operands[copied]
        uses += np.bincount(outside[~self.copied[outside]], minlength=count)
        removed, waiting = np.zeros(len(self.results), bool), self.constants
        while len(waiting):  # users before their operands
            values, which = spread_ranges(self.first_results[waiting], self.results[waiting])
            gone = waiting[np.bincount(which, uses[values], len(waiting)) == 0]
            if not len(gone):
                break
            removed[gone] = True
            entries, _ = spread(self.offsets, gone)
            used = self.operands[entries]
            np.subtract.at(uses, used, 1)
            makers = self.definer[used]
            waiting = unique(makers[(makers >= 0) & self.is_constant[makers]])
        return removed

    def takes(self, removed: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Whether nodes can be copies themselves. Calls cannot, because every copy has a copy of the
        function. Nor can values in sharding groups."""
        taken = removed.copy()
        taken[list(self.function.calls)] = False
        taken[[self.function.definer[value] for value in self.groups]] = False
        return taken

    def add_copies(self) -> None:
        """Adds the copies that are new to the function."""
        function, sources = self.function, self.new
        node, value = len(function.ops), len(function.types)
        results = self.results[sources]
        function.results.extend(value + starts(results)[:-1], results)
        for list_ in (function.ops, function.names):
            list_.extend([list_[source] for source in sources.tolist()])
        for numbers_ in (function.signature, function.parent, function.region):
            numbers_.extend(column(numbers(numbers_)[sources]))
        function.originals.update(enumerate(sources.tolist(), node))
        if function.calls:
            twins = [
                (twin, source) for twin, source in function.originals.items() if source in function.calls
            ]
            function.calls.update((twin, function.calls[source]) for twin, source in twins)
        copied, which = spread_ranges(self.first_results[sources], results)
        function.types.extend(column(numbers(function.types)[copied]))
        function.definer.extend(column(node + which))
        if function.annotations or self.groups:
            for twin, source in enumerate(copied.tolist(), value):
                if source in function.annotations:
                    function.annotations[twin] = function.annotations[source]
                function.groups.extend([(twin, group, -1) for group in self.groups.get(source, ())])

    def remove_groups(self) -> None:
        """Removes the groups of values that are gone."""
        function = self.function
        if function.groups:
            gone = {value for node in function.removed for value in function.results[node]}
            function.removed.update(node for value, _, node in function.groups if value in gone)
            function.groups = [g for g in function.groups if g[0] not in gone]

    def put_in_order(self, removed: npt.NDArray[np.bool_]) -> None:
        """Puts copies before their originals, in the order in which they were made."""
        function = self.function
        removed[[node for node in function.removed if node >= 0]] = True
        kept = self.order[~removed[self.order]]
        if not len(self.new):
            function.order = column(kept)
            return
        copies = np.arange(len(removed), len(function.ops), dtype=np.int32)
        place = np.concatenate([self.new, kept])
        ages = np.concatenate([np.arange(len(copies)), np.full(len(kept), len(copies))])
        function.order = column(np.concatenate([copies, kept])[np.lexsort((ages, place))])

"""The ops and values of modules as numbers, so that their properties are read from MLIR once."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from ..importers.listing import listing_of
from ..program.elements import size_of
from ..program.mlir.modules import called

_LARGEST = 64  # ops in regions, of what is compared


class TensorType(NamedTuple):
    """A type: its elements, their type, its bytes, and its shape; empty for types that are not tensors."""

    elements: int = 0
    element: str = ""
    bytes: int = 0
    shape: tuple[int, ...] = ()

    @property
    def rank(self) -> int:
        """The number of its dimensions."""
        return len(self.shape)

    @property
    def true_rank(self) -> int:
        """The number of its dimensions that are longer than one."""
        return sum(1 for size in self.shape if size > 1)


class OpGraph:
    """The ops of modules and the values that they make, by number. An op comes before those in its regions.

    By op: its kind (ops of one have equal names, attributes and types), its name as the rules have it
    (``names``) and as MLIR has it (``plain``), the region that it is in, the op around it, the op behind all
    that is inside of it (``ends``), the values that it takes and makes. By value: its type, the op that makes
    it (-1: it is an argument of a block), and its uses, each an op and the number of the operand. Values that
    an op without results uses, such as the end of a block, are ``returned``.
    """

    def __init__(self) -> None:
        self.ops: list[Any] = []
        self.kinds: list[int] = []
        self.names: list[str] = []
        self.plain: list[str] = []
        self.regions: list[int] = []
        self.parents: list[int] = []
        self.ends: list[int] = []
        self.operands: list[list[int]] = []
        self.results: list[range] = []
        self.types: list[TensorType] = []
        self.definers: list[int] = []
        self.uses: list[list[tuple[int, int]]] = []
        self.returned: set[int] = set()
        self._numbers: dict[Any, int] = {}
        self._numbered = 0  # ops whose values have numbers there
        self._users: dict[int, list[int]] = {}
        self._blocks: dict[int, list[int]] = {}

    def add(self, module: Any) -> range:
        """Takes down a module. Returns the numbers of its ops, itself the first."""
        listing = listing_of(module)
        first, values = len(self.ops), len(self.types)
        kinds, regions = (max(some, default=-1) + 1 for some in (self.kinds, self.regions))
        ops, starts = listing.ops, listing.operand_offsets.tolist()
        names = dict[int, tuple[str, str]]()
        for op, kind in zip(ops, listing.kinds.tolist(), strict=True):
            if kind not in names:
                names[kind] = called(op), op.name
            name, plain = names[kind]
            self.names.append(name)
            self.plain.append(plain)
            self.kinds.append(kinds + kind)
        self.ops += ops
        self.regions += [regions + region for region in listing.regions.tolist()]
        self.parents += [first + parent for parent in listing.parents.tolist()]
        self.ends += [first + end for end in listing.ends.tolist()]
        taken = [value + values if value >= 0 else -1 for value in listing.operands.tolist()]
        self.operands += [taken[a:b] for a, b in pairwise(starts)]
        numbers = zip(listing.first_results.tolist(), listing.results.tolist(), strict=True)
        self.results += [range(values + begin, values + begin + count) for begin, count in numbers]
        self.definers += [first + op if op >= 0 else -1 for op in listing.definers.tolist()]
        which, begins = np.unique(listing.types, return_index=True)
        tensors = [_tensor(listing.value(n).type) for n in begins.tolist()]
        types = dict(zip(which.tolist(), tensors, strict=True))
        self.types += [types[kind] for kind in listing.types.tolist()]
        self.uses += [[] for _ in listing.definers]
        for n in range(first, len(self.ops)):
            for number, value in enumerate(self.operands[n]):
                if value >= 0:
                    self.uses[value].append((n, number))
            if not self.results[n]:
                self.returned.update(self.operands[n])
        return range(first, len(self.ops))

    def value(self, value: Any) -> int:
        """The number of a value that an op makes; its module is taken down where it is not yet."""
        number = self._numbers.get(value)
        if number is not None:
            return number
        self._number()
        if value not in self._numbers:
            op = value.owner.operation
            while op.parent is not None:
                op = op.parent.operation
            self.add(op)
            self._number()
        return self._numbers[value]

    def _number(self) -> None:
        """Says which numbers the values have of modules that were added since."""
        for n in range(self._numbered, len(self.ops)):
            self._numbers.update(zip(self.ops[n].results, self.results[n], strict=True))
        self._numbered = len(self.ops)

    def block(self, op: int) -> list[int]:
        """The ops beside an op, and itself, in order."""
        region = self.regions[op]
        if region not in self._blocks:
            first, end = self.parents[op] + 1, self.ends[self.parents[op]]
            inside = [n for n in range(first, end) if self.regions[n] == region]
            self._blocks[region] = inside
        return self._blocks[region]

    def in_first_region(self, op: int) -> bool:
        """Whether an op is in the first region of the op around it, as the condition of a loop is."""
        return self.regions[op] == self.regions[self.parents[op] + 1]

    def alike(self, op: int) -> Hashable:
        """What ops share that are of one kind and do the same in their regions."""
        end = self.ends[op]
        if end == op + 1:
            return self.kinds[op]
        if end - op > _LARGEST:
            return -op
        first = self.results[op].start
        used = (value - first for inner in range(op + 1, end) for value in self.operands[inner])
        return (*self.kinds[op:end], -1, *used)

    def users(self, value: int) -> list[int]:
        """The ops that use a value, each once. An op next to the definer stands for users in its regions."""
        if value not in self._users:
            region, users = self.regions[self.definers[value]], dict[int, None]()
            for user, _ in self.uses[value]:
                while self.regions[user] != region:
                    user = self.parents[user]
                users[user] = None
            self._users[value] = list(users)
        return self._users[value]

    def used_once(self, value: int) -> bool:
        """Whether a value has one use."""
        return len(self.uses[value]) == 1

    def maker(self, op: int, operand: int = 0) -> int:
        """The op that makes an operand of an op; -1 of an argument, and where it takes none."""
        taken = self.operands[op]
        return self.definers[taken[operand]] if operand < len(taken) and taken[operand] >= 0 else -1


def _tensor(kind: ir.Type) -> TensorType:
    if not isinstance(kind, ir.RankedTensorType):
        return TensorType()
    shape = tuple(kind.shape)
    return TensorType(prod(shape), str(kind.element_type), size_of(str(kind)), shape)

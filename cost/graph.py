"""The ops and values of modules as numbers, so that their properties are read from MLIR once."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ..importers.listing import Listing, listing_of
from ..program.columns import told_apart
from ..program.elements import size_of
from ..program.mlir.modules import called

_LARGEST = 64  # ops in regions, of what is compared


class TensorType(NamedTuple):
    """A type: its elements, their type, its bytes, its shape, and its text. All but the text are empty for
    types that are not tensors."""

    elements: int = 0
    element: str = ""
    bytes: int = 0
    shape: tuple[int, ...] = ()
    text: str = ""

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

    By op: its kind (ops of one have equal names, attributes and types); its name for the rules (``names``)
    and in MLIR (``plain``); its region; its ``parents``, the op around it; its ``ends``, the op after all
    that is inside of it; and the values that it takes and makes. By value: its type, the op that makes it
    (-1: it is an argument of a block), and its uses, each an op and the number of the operand. Values that an
    op without results uses, such as the end of a block, are ``returned``. By region: the op that has it
    (``owners``), and the arguments of its first block.
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
        self.owners: list[int] = []
        self.arguments: list[range] = []
        self._inside: dict[int, list[int]] = {}  # the regions of ops
        self._entries: dict[int, tuple[int, int]] = {}  # of arguments: the region, and which one
        self._numbers: dict[Any, int] = {}
        self._numbered = 0  # ops whose values have numbers there
        self._users: dict[int, list[int]] = {}
        self._blocks: dict[int, list[int]] = {}
        self._needed: list[int] = []  # by op, a set of ops as bits
        self._needed_places: dict[int, int] = {}  # the bit of an op

    def add(self, module: Any, listing: Listing | None = None) -> range:
        """Takes down a module, whose ``listing`` may be known. Returns the numbers of its ops, itself the
        first."""
        listing = listing or listing_of(module)
        first, values = len(self.ops), len(self.types)
        kinds, regions = max(self.kinds, default=-1) + 1, len(self.owners)
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
        given = zip(listing.first_arguments.tolist(), listing.arguments.tolist(), strict=True)
        for region, (owner, (start, count)) in enumerate(zip(listing.owners.tolist(), given, strict=True)):
            self.owners.append(first + owner)
            self.arguments.append(range(values + start, values + start + count))
            self._inside.setdefault(first + owner, []).append(regions + region)
            self._entries |= {v: (regions + region, n) for n, v in enumerate(self.arguments[-1])}
        begins, which = told_apart(listing.types)
        tensors = [_tensor(listing.value(n).type) for n in begins.tolist()]
        self.types += map(tensors.__getitem__, which.tolist())
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

    def function(self, function: Any) -> int:
        """The number of a function; its module is taken down where it is not yet."""
        number = self._function(function)
        if number < 0:
            self.add(function.parent.operation)
            number = self._function(function)
        return number

    def _function(self, function: Any) -> int:
        named = (n for n, name in enumerate(self.plain) if name == "func.func")
        return next((n for n in named if self.ops[n] == function), -1)

    def block(self, op: int) -> list[int]:
        """The ops beside an op, and itself, in order."""
        return self.ops_of(self.regions[op])

    def ops_of(self, region: int) -> list[int]:
        """The ops of a region, in order, without those inside of them."""
        if region not in self._blocks:
            owner, regions = self.owners[region], self.regions
            self._blocks[region] = [n for n in range(owner + 1, self.ends[owner]) if regions[n] == region]
        return self._blocks[region]

    def regions_of(self, op: int) -> list[int]:
        """The regions of an op."""
        return self._inside.get(op, [])

    def entry(self, argument: int) -> tuple[int, int]:
        """The region that an argument belongs to, and which of its arguments it is."""
        return self._entries[argument]

    def region_of(self, value: int) -> int:
        """The region whose op or argument a value is."""
        definer = self.definers[value]
        return self.regions[definer] if definer >= 0 else self._entries[value][0]

    def around(self, op: int, region: int) -> int:
        """The op of a region that an op is inside of, or is itself; -1: it is elsewhere."""
        while op >= 0 and self.regions[op] != region:
            op = self.parents[op]
        return op

    def number_of(self, value: int) -> int:
        """Which of the results of its op, or of the arguments of its block, a value is."""
        definer = self.definers[value]
        return value - self.results[definer].start if definer >= 0 else self._entries[value][1]

    def held(self, value: int) -> Any:
        """The value with a number, as MLIR has it."""
        definer, number = self.definers[value], self.number_of(value)
        if definer >= 0:
            return self.ops[definer].results[number]
        region = self._entries[value][0]
        owner = self.owners[region]
        inside = self.ops[owner].regions[self._inside[owner].index(region)]
        return inside.blocks[0].arguments[number]

    def unchanged(self, loop: int, number: int) -> bool:
        """Whether a loop passes a carried value on unchanged."""
        body = self._inside[loop][1]
        return self.operands[self.ops_of(body)[-1]][number] == self.arguments[body][number]

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

    def needs(self, op: int, other: int) -> bool:
        """Whether an op needs another one, directly or not, itself or in its regions. Only ops with several
        operands and several uses count."""
        needed, places = self._needed, self._needed_places
        for n in range(len(needed), len(self.ops)):
            if len(self.operands[n]) > 1 and sum(len(self.uses[value]) for value in self.results[n]) > 1:
                places[n] = len(places)
            needed.append(0)
            for maker in {self.definers[value] for value in self.operands[n]} - {-1}:
                own = 1 << places[maker] if maker in places else 0
                needed[n] = _union(needed[n], _union(needed[maker], own))
            around = self.parents[n]
            while around >= 0:
                needed[around] = _union(needed[around], needed[n])
                around = self.parents[around]
        return other in places and bool(needed[op] >> places[other] & 1)

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
        return TensorType(text=str(kind))
    shape, text = tuple(kind.shape), str(kind)
    return TensorType(prod(shape), str(kind.element_type), size_of(text), shape, text)


def _union(first: int, second: int) -> int:
    """The union of two sets as bits. Where it is one of them it takes no more memory."""
    both = first | second
    return first if both == first else second if both == second else both

"""How ops become local, by the rules, which are asked once per signature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any
from weakref import WeakKeyDictionary

from jaxlib.mlir import ir

from ...program.ids import Factor, Slot
from ...program.mlir.types import Operation
from ...program.signature import RULE, DescribedParts, describe, looks_at
from ...program.signature import attributes as attributes_of
from ...rulebook.book import RuleBook
from ..layouts import PieceSet, Shape

Rows = list[tuple[Any, ...]]
_KNOWN = WeakKeyDictionary[RuleBook, dict[tuple[str, ...], dict[Any, "Knowledge"]]]()  # by modes
_MOST_KNOWN = 20_000  # signatures kept per book; a program has a few hundred
_WRITTEN = "stablehlo."  # partial results are combined by an op of this dialect
_OWN_RULE = ("rule_factor", "rule_maps", "rule_blocked")
_READING = ("reads_backwards", "accumulates", "reads_around", "reads_from_first")  # how windows are read
_ANNOTATIONS = frozenset({"sdy.sharding", "mhlo.frontend_attributes"})


@dataclass(frozen=True)
class Read:
    """The window of an operand's dimension that one element of another slot's dimension needs; the other slot
    is mostly a result. See ``needs_stretch`` in ``rules/partition/local.dl``."""

    slot: Slot
    dim: int
    part_slot: Slot
    part_dim: int
    stride: int
    low: int
    dilation: int
    extent: int
    backwards: bool
    accumulates: bool  # only the total of other parts is needed
    around: bool  # whole windows: all that reach into a part, from the first one on
    from_first: bool = False  # no row before the first one
    first: int = 0  # nothing before it
    last: int | None = None  # nothing from it on, if there is such a row
    then: str = ""  # the op that is applied to what is read; see bypasses.py


@dataclass(frozen=True, eq=False)
class Knowledge:
    """The answers of the op rules about one signature."""

    lowering: str
    refused: str  # the reason why it cannot run on each device
    roles: tuple[str, ...]
    shapes: tuple[Shape | None, ...]  # per slot; None: not a tensor of static shape
    widths: tuple[int, ...]  # bytes of an element, per slot
    element: str  # the element type of its first slot
    maps: tuple[tuple[tuple[Factor, ...], ...], ...]  # slot -> dimension -> factors, major to minor
    sizes: Mapping[Factor, int]
    splits: frozenset[Factor]
    partial: frozenset[Factor]  # factors along which results are partial
    evenly: frozenset[Factor]  # factors that need parts of equal size
    combine: str
    combined_by_itself: bool
    multiplies: bool
    fills: Mapping[tuple[Slot, Factor], str]  # (slot, factor) -> the value of padding
    local_sizes: tuple[tuple[str, int, Slot, int], ...]  # attribute, index, slot, dimension
    sized_by: tuple[Slot, ...]  # operands with the sizes of the first result
    counts: tuple[tuple[str, Factor], ...]  # by attribute
    reads: tuple[Read, ...]
    passes: Mapping[int, frozenset[Slot]]  # way -> the operands whose partial sums are passed on
    picks: Mapping[
        Factor, int
    ]  # factors along which devices can pick their elements instead of computing parts: at least this many
    names_functions: tuple[str, ...]  # the attributes that do
    starts: frozenset[tuple[Slot, Factor]]  # (slot, factor): one device starts from the operand
    looks_up: bool  # operand 0 is read at positions known only at run time
    expands: bool  # its operand, if that is a scalar
    gives_nothing: bool  # its results have no elements
    touches: str  # all slots; or "reads" or "writes" a part, see touches_part_op; or "nothing"
    facts: Mapping[str, Rows]
    signature: Mapping[str, Rows]  # the facts for the rules
    taken: PieceSet = frozenset()  # the axes of manual computations around it: a value for each device
    at_home: bool = False  # its operands exist only at home: copies are in another region

    def changed(self, how: Hashable, make: Callable[[], Knowledge]) -> Knowledge:
        """This knowledge with some changes: the same object for the same changes."""
        if how not in self._changed:
            self._changed[how] = make()
        return self._changed[how]

    @cached_property
    def _changed(self) -> dict[Hashable, Knowledge]:
        return {}

    @cached_property
    def deciding(self) -> Hashable:
        """Everything that decides how an op between given layouts is computed."""
        slots = self.roles, self.shapes, self.widths, self.maps
        factors = tuple(self.sizes.items()), self.splits, self.partial, self.evenly, self.starts
        combined = (
            self.combine,
            self.combined_by_itself,
            tuple(self.passes.items()),
            tuple(self.picks.items()),
        )
        which = self.multiplies, self.element, self.reads, self.touches, self.taken
        return slots, factors, combined, *which

    @cached_property
    def plain(self) -> bool:
        """Whether no dimension has several factors."""
        return all(len(factors) <= 1 for slot in self.maps for factors in slot)

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        """All slots: the operands, then the results."""
        return tuple(map(Slot, range(len(self.roles))))

    @cached_property
    def passing(self) -> frozenset[Slot]:
        """The slots whose partial sums the op passes on."""
        operands = frozenset[Slot]().union(*self.passes.values())
        results = (t for t, role in zip(self.slots, self.roles, strict=True) if role == "result")
        return operands.union(results) if operands else operands

    @cached_property
    def splitting(self) -> dict[str, Rows]:
        """The facts about how it can be computed in parts, as input of ``rules/partition/candidates.dl``."""
        return {
            "tensor": list(enumerate(self.roles)),
            "maps": [
                (t, d, position, factor)
                for t, slot in enumerate(self.maps)
                for d, factors in enumerate(slot)
                for position, factor in enumerate(factors)
            ],
            "factor": list(self.sizes.items()),
            "splits": [(factor,) for factor in sorted(self.splits)],
            "evenly": [(factor,) for factor in sorted(self.evenly)],
            "passes": [(way, t) for way, slots in self.passes.items() for t in sorted(slots)],
            "picks": [(factor,) for factor in sorted(self.picks)],
            "taken": [(axis,) for axis in sorted(self.taken)],
            "picks_of": sorted((factor, least) for factor, least in self.picks.items() if least),
            "product": [()] if self.multiplies else [],
        }

    @cached_property
    def touched(self) -> int:
        """The bytes that the op reads and writes."""
        if self.touches == "nothing":
            return 0
        sizes = [w * prod(s or ()) for w, s in zip(self.widths, self.shapes, strict=True)]
        if self.touches == "writes":
            sizes = [0, 2 * sizes[1], *sizes[2:-1], 0]
        elif self.touches == "reads":
            sizes[0] = min(sizes[0], sizes[-1])
        return sum(sizes)

    @cached_property
    def multiplications(self) -> int | None:
        """The number of multiplications of a contraction; None for other ops."""
        return self.multiplied(self.shapes)

    def multiplied(self, shapes: Sequence[Shape | None]) -> int | None:
        """The number of multiplications of a contraction if its slots have these shapes: for each element of
        the result, the elements of the second operand along dimensions that the result lacks, such as the
        window of a convolution. None for other ops."""
        if not self.multiplies:
            return None
        result = self.roles.index("result")
        kept = {factor for dim in self.maps[result] for factor in dim}
        shape, maps = shapes[1] or (), self.maps[1]
        inside = (n for n, factors in zip(shape, maps, strict=True) if not kept.intersection(factors))
        return prod(shapes[result] or ()) * prod(inside)


def handing_on(shape: Shape, width: int, at_home: bool) -> Knowledge:
    """Knowledge for passing a value on, as branches do: the layout stays, and so do partial sums."""
    slots, factors = ("operand", "result"), list(map(Factor, range(len(shape))))
    nothing: dict[Any, Any] = {}
    return Knowledge(
        lowering="pass",
        refused="",
        roles=slots,
        shapes=(shape,) * 2,
        widths=(width,) * 2,
        element="",
        maps=(tuple((factor,) for factor in factors),) * 2,
        sizes=dict(zip(factors, shape, strict=True)),
        splits=frozenset(factors),
        partial=frozenset(),
        evenly=frozenset(),
        combine="",
        combined_by_itself=False,
        multiplies=False,
        fills=nothing,
        local_sizes=(),
        sized_by=(),
        counts=(),
        reads=(),
        passes={0: frozenset({Slot(0)})},
        picks=nothing,
        names_functions=(),
        starts=frozenset(),
        looks_up=False,
        expands=False,
        gives_nothing=False,
        touches="nothing",
        facts=nothing,
        signature=nothing,
        at_home=at_home,
    )


def inside(knowledge: Knowledge, taken: PieceSet) -> Knowledge:
    """Knowledge of an op inside of manual computations over these axes."""
    return knowledge.changed(("inside", taken), lambda: replace(knowledge, taken=taken))


def only_read(knowledge: Knowledge) -> Read | None:
    """The window of an op that slices one dimension of its operand; None for other ops."""
    if knowledge.lowering != "slice" or len(knowledge.reads) != 1:
        return None
    (read,) = knowledge.reads
    return read if (read.stride, read.dilation, read.backwards) == (1, 1, False) else None


def joins(knowledge: Knowledge, slot: Slot, dim: int) -> bool:
    """Whether an op joins rows of an operand's dimension with others."""
    read = ((r.slot, r.dim) for r in knowledge.reads)
    return knowledge.lowering == "concatenate" and (slot, dim) in read


def reading_through(knowledge: Knowledge, cut: tuple[tuple[Knowledge, str] | None, ...]) -> Knowledge:
    """Knowledge of an op that joins rows and reads some slots from the sources that they are ``cut`` from,
    instead of from the slices. For each of these slots, ``cut`` has the knowledge of the slice, and the name
    of the op that is applied to it, if there is one."""
    return knowledge.changed(("through", cut), lambda: _reading_through(knowledge, cut))


def _reading_through(knowledge: Knowledge, cut: tuple[tuple[Knowledge, str] | None, ...]) -> Knowledge:
    shapes, reads = list(knowledge.shapes), list(knowledge.reads)
    for slot, skipped in enumerate(cut):
        source, then = skipped or (None, "")
        read = source and only_read(source)
        if source and read:
            (n,) = (n for n, r in enumerate(reads) if (r.slot, r.dim) == (slot, read.dim))
            first, size = -read.low, (source.shapes[read.slot + 1] or ())[read.dim]
            low = reads[n].low - first
            reads[n] = replace(reads[n], low=low, first=first, last=first + size, then=then)
            shapes[slot] = source.shapes[read.slot]
    return replace(knowledge, shapes=tuple(shapes), reads=tuple(reads))


def shifts(knowledge: Knowledge, padded: Knowledge) -> bool:
    """Whether an op slices off as much as was ``padded``: together they shift the rows."""
    plain = ((read.stride, read.dilation, read.backwards) for read in (*knowledge.reads, *padded.reads))
    return (
        knowledge.lowering == "slice"
        and knowledge.shapes[-1] == padded.shapes[0]
        and all(each == (1, 1, False) for each in plain)
    )


def shifting(knowledge: Knowledge, padded: Knowledge) -> Knowledge:
    """Knowledge of an op that slices off as much as was ``padded``, if it reads the unpadded operand."""
    return knowledge.changed(("shifting", padded), lambda: _shifting(knowledge, padded))


def _shifting(knowledge: Knowledge, padded: Knowledge) -> Knowledge:
    shape, lows = knowledge.shapes[-1] or (), Counter[int]()
    for read in (*knowledge.reads, *padded.reads):
        lows[read.dim] += read.low
    operand, result = knowledge.slots[:2]
    reads = [
        Read(operand, d, result, d, 1, low, 1, 1, False, False, False)
        for d, low in sorted(lows.items())
        if low
    ]
    sizes = {factor: n for n, factors in zip(shape, knowledge.maps[0], strict=True) for factor in factors}
    return replace(
        knowledge,
        lowering="shift",
        shapes=(shape, shape),
        sizes=sizes,
        reads=tuple(reads),
        picks={},
        passes={},
    )


class RuleReader:
    """Asks the op rules about ops."""

    def __init__(self, book: RuleBook, modes: Sequence[str] = ()) -> None:
        self.book, self.traits = book, book.traits
        self._looks_at = looks_at([*book.looks_at, *book.partition_looks_at])
        self._modes: dict[str, Rows] = {mode: [()] for mode in modes}
        self._told = DescribedParts()
        of_book = _KNOWN.setdefault(book, {})
        if len(of_book.get(tuple(modes), ())) > _MOST_KNOWN:
            del of_book[tuple(modes)]
        self._known: dict[Any, Knowledge] = of_book.setdefault(tuple(modes), {})
        self._alike: dict[Any, Knowledge] = {}
        self._handing_on: dict[tuple[Shape, int, bool], Knowledge] = {}

    def handing_on(self, shape: Shape, width: int, at_home: bool) -> Knowledge:
        """Knowledge for passing on a value of this shape, with elements of this many bytes."""
        key = shape, width, at_home
        if key not in self._handing_on:
            self._handing_on[key] = handing_on(*key)
        return self._handing_on[key]

    def looks_around(self, op: Operation) -> bool:
        """Whether the rules for an op may depend on the makers of its operands or the users of its
        results."""
        return any(side != "regions" for side in self._looks_at.get(op.name, ()))

    def knowledge(self, op: Operation) -> Knowledge:
        """The answers of the rules about an op. A sharding rule on the op itself counts only if they have
        none, because it says how shardings propagate, and not what is computed."""
        attributes = tuple([(a, v) for a, v in attributes_of(op) if a not in _ANNOTATIONS])
        alike = op.name, attributes, tuple(v.type for v in op.operands), tuple(op.results.types)
        around = op.name in self._looks_at or len(op.regions)
        if not around and alike in self._alike:
            return self._alike[alike]
        facts = describe(op, False, self._looks_at, self._told)
        key = tuple((name, tuple(rows)) for name, rows in facts.items())
        if key not in self._known:
            self._known[key] = self._ask(op, facts)
        if not around:
            self._alike[alike] = self._known[key]
        return self._known[key]

    def _ask(self, op: Operation, facts: Mapping[str, Rows]) -> Knowledge:
        plain = {name: rows for name, rows in facts.items() if name not in _OWN_RULE} | self._modes
        if len(plain) != len(facts) + len(self._modes):
            plain["attribute_number"] = [row for row in facts["attribute_number"] if row[0] != RULE]
        answers = self.book.localize(plain)
        if (not answers["known"] or answers["no_rule"]) and "rule_factor" in facts:
            plain = {**facts, **self._modes}
            answers = self.book.localize(plain)
        return self._read(op, plain, answers)

    @staticmethod
    def _read(op: Operation, facts: Mapping[str, Rows], answers: Mapping[str, Rows]) -> Knowledge:
        slots = facts.get("slot", [])
        ranks = [rank for *_, rank in slots]
        dims: list[list[int]] = [[0] * max(rank, 0) for rank in ranks]
        for t, d, size in facts.get("dim", ()):
            dims[t][d] = size
        bits = {t: width for t, _, width in facts.get("element", ())}
        maps: list[list[list[Factor]]] = [[[] for _ in range(max(rank, 0))] for rank in ranks]
        if not answers["no_rule"]:
            for t, d, _, factor in answers["maps"]:
                maps[t][d].append(factor)
            for t, d, factor in answers["maps_along"]:
                maps[t][d] = [factor]
        splits = (
            frozenset(factor for (factor,) in answers["splits"]) if not answers["no_rule"] else frozenset()
        )
        return Knowledge(
            lowering=answers["lowers"][0][0],
            refused=answers["refuses"][0][0] if answers["refuses"] else "",
            roles=tuple(role for _, role, *_ in slots),
            shapes=tuple(tuple(d) if r >= 0 else None for d, r in zip(dims, ranks, strict=True)),
            widths=tuple(-(-bits.get(t, 0) // 8) for t in range(len(slots))),
            element=min(facts.get("element", ()), default=(0, "", 0))[1],
            maps=tuple(tuple(map(tuple, slot)) for slot in maps),
            sizes=dict(answers["factor"]),
            splits=splits,
            partial=frozenset(factor for (factor,) in answers["leaves_partial"]) & splits,
            evenly=frozenset(factor for (factor,) in answers["evenly"]) & splits,
            combine=next((_WRITTEN + how.removeprefix(_WRITTEN) for (how,) in answers["combined_by"]), ""),
            combined_by_itself=bool(answers["combined_by_itself"]),
            multiplies=bool(answers["multiplies"]),
            fills={(t, factor): fill for t, factor, fill in answers["fills"]},
            local_sizes=tuple(answers["local_size"]),
            sized_by=tuple(sorted(slot for (slot,) in answers["sized_by"])),
            counts=tuple(answers["counts"]),
            reads=tuple(
                Read(*row, *(row[:2] in answers[how] for how in _READING))
                for row in sorted(answers["needs_stretch"])
            ),
            passes={
                way: frozenset(t for w, t in answers["passes_partial"] if w == way)
                for way in sorted({way for way, _ in answers["passes_partial"]})
            },
            picks={factor: 0 for (factor,) in answers["picks"]} | dict(answers["picks_of"]),
            names_functions=tuple(name for name, value in attributes_of(op) if _names_functions(value)),
            starts=frozenset(answers["starts"]),
            looks_up=bool(answers["looks_up"]),
            expands=bool(answers["expands_scalar"]),
            gives_nothing=bool(answers["gives_nothing"]),
            touches=answers["touches_part"][0][0] if answers["touches_part"] else "all",
            facts=answers,
            signature=facts,
        )


def _names_functions(attribute: Any) -> bool:
    listed = isinstance(attribute, ir.ArrayAttr) and len(attribute)
    return bool(listed) and isinstance(attribute[0], ir.FlatSymbolRefAttr)

"""How ops are computed: what the rules of ``rules/partition`` say, asked once for equal neighbourhoods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ..program.signature import RULE, describe, looks_at
from ..program.signature import attributes as attributes_of
from ..rulebook.book import RuleBook
from .exchange import Exchange, plan_exchange
from .layouts import Axes, Dims, Layout, Pieces, Shape, replicated
from .planning import Planner

Rows = list[tuple[Any, ...]]
SUM = "stablehlo.add"  # the combination of partial sums
_OWN_RULE = ("rule_factor", "rule_maps", "rule_blocked")
_ANNOTATIONS = frozenset({"sdy.sharding", "mhlo.frontend_attributes"})


@dataclass(frozen=True)
class Read:
    """What a dimension of a result reads of one of an operand; see ``reads`` in
    ``rules/partition/local.dl``."""

    slot: int
    dim: int
    result_dim: int
    stride: int
    low: int
    dilation: int
    extent: int
    backwards: bool


@dataclass(frozen=True)
class Stretch:
    """What a part of a result needs of an operand's dimension: an exchange of its rows. Between them
    others stand where ``dilation`` is more than 1; then the part begins at ``offsets`` in what is made
    so, with ``length``."""

    exchange: Exchange
    dilation: int
    offsets: tuple[int, ...]
    length: int


@cache
def stretch(read: Read, size: int, result_size: int, parts: int) -> Stretch:
    """The stretches that parts of a result dimension of ``result_size`` need of an operand's dimension of
    ``size``."""
    tile = -(-result_size // parts)
    length = (tile - 1) * read.stride + read.extent
    begins = [part * tile * read.stride - read.low for part in range(parts)]
    if read.backwards:
        begins = [size - (part + 1) * tile for part in range(parts)]
    starts = tuple(begin // read.dilation for begin in begins)
    rows = length if read.dilation == 1 else (length + read.dilation - 2) // read.dilation + 1
    offsets = tuple(b - s * read.dilation for b, s in zip(begins, starts, strict=True))
    return Stretch(plan_exchange(size, parts, starts, rows), read.dilation, offsets, length)


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What the rules say about ops of one signature."""

    lowering: str
    refused: str  # why it cannot run on each device
    roles: tuple[str, ...]
    shapes: tuple[Shape | None, ...]  # per slot; None: not a tensor of static shape
    widths: tuple[int, ...]  # bytes of an element, per slot
    maps: tuple[tuple[tuple[int, ...], ...], ...]  # slot -> dimension -> factors, major to minor
    sizes: Mapping[int, int]  # of factors
    splits: frozenset[int]
    partial: frozenset[int]  # factors along which results are partial
    combine: str
    combined_by_region: bool
    multiplies: bool
    fills: Mapping[tuple[int, int], str]  # (slot, factor) -> what must stand in the padding
    local_sizes: tuple[tuple[str, int, int, int], ...]  # attribute, index, slot, dimension
    counts: tuple[tuple[str, int], ...]  # attribute, factor
    reads: tuple[Read, ...]
    passes: Mapping[int, frozenset[int]]  # way -> the operands of which partial sums are passed on
    names_functions: tuple[str, ...]  # the attributes that do
    starts: frozenset[tuple[int, int]]  # (slot, factor): one device starts from the operand
    looks_up: bool  # operand 0 is read at places that are known only at run time
    facts: Mapping[str, Rows]
    signature: Mapping[str, Rows]  # what the rules were told


@dataclass(frozen=True)
class Candidate:
    """A way to compute an op: the pieces that each factor is split on, and the layout of each slot.

    ``sends`` are the bytes that a device sends for each slot.
    """

    factors: tuple[tuple[int, Pieces], ...]
    layouts: tuple[Layout, ...]
    sends: tuple[float, ...]

    def of(self, factor: int) -> Pieces:
        """The pieces of a factor."""
        return dict(self.factors).get(factor, ())


@dataclass(frozen=True)
class Choice:
    """How an op is computed: the candidate that is taken, all of them, and what each costs, in bytes.
    ``facts`` are what the rules of ``rules/partition/choice.dl`` were told."""

    taken: Candidate
    candidates: tuple[Candidate, ...]
    costs: tuple[float, ...]
    facts: Mapping[str, Rows] = field(default_factory=dict, compare=False)


class Chooser:
    """Asks the rules."""

    def __init__(self, book: RuleBook, axes: Axes, planner: Planner, modes: Sequence[str] = ()) -> None:
        self.book, self.axes, self.planner = book, axes, planner
        self._looks_at = looks_at([*book.looks_at, *book.partition_looks_at])
        self._modes: dict[str, Rows] = {mode: [()] for mode in modes}
        self._tensors: dict[Any, Any] = {}
        self._known: dict[Any, Knowledge] = {}
        self._alike: dict[Any, Knowledge] = {}
        rows = [(n, p.mesh, p.axis, p.pre, p.pre * p.size) for n, p in enumerate(axes.pieces)]
        self._candidates, self._choice = book.candidates({"axis": rows}), book.choice()
        self._choices: dict[Any, Choice] = {}

    # ---- Signatures -------------------------------------------------------------------------------------

    def knowledge(self, op: Any) -> Knowledge:
        """What the rules say about an op. One that carries a sharding rule is known by it only where the
        rules know nothing: the rule says how shardings propagate, and not what is computed."""
        attributes = tuple([(a, v) for a, v in attributes_of(op) if a not in _ANNOTATIONS])
        alike = op.name, attributes, tuple(v.type for v in op.operands), tuple(op.results.types)
        around = op.name in self._looks_at or len(op.regions)
        if not around and alike in self._alike:
            return self._alike[alike]
        facts = describe(op, False, self._looks_at, self._tensors)
        key = tuple((name, tuple(rows)) for name, rows in facts.items())
        if key not in self._known:
            self._known[key] = self._ask(op, facts)
        if not around:
            self._alike[alike] = self._known[key]
        return self._known[key]

    def _ask(self, op: Any, facts: Mapping[str, Rows]) -> Knowledge:
        plain = {name: rows for name, rows in facts.items() if name not in _OWN_RULE} | self._modes
        if len(plain) != len(facts) + len(self._modes):
            plain["attribute_number"] = [row for row in facts["attribute_number"] if row[0] != RULE]
        said = self.book.localize(plain)
        if (not said["known"] or said["no_rule"]) and "rule_factor" in facts:
            plain = {**facts, **self._modes}
            said = self.book.localize(plain)
        return self._read(op, plain, said)

    @staticmethod
    def _read(op: Any, facts: Mapping[str, Rows], said: Mapping[str, Rows]) -> Knowledge:
        slots = facts.get("slot", [])
        ranks = [rank for *_, rank in slots]
        dims: list[list[int]] = [[0] * max(rank, 0) for rank in ranks]
        for t, d, size in facts.get("dim", ()):
            dims[t][d] = size
        bits = {t: width for t, _, width in facts.get("element", ())}
        maps: list[list[list[int]]] = [[[] for _ in range(max(rank, 0))] for rank in ranks]
        if not said["no_rule"]:
            for t, d, _, factor in said["maps"]:
                maps[t][d].append(factor)
        splits = frozenset(factor for (factor,) in said["splits"]) if not said["no_rule"] else frozenset()
        return Knowledge(
            lowering=said["lowers"][0][0],
            refused=said["refuses"][0][0] if said["refuses"] else "",
            roles=tuple(role for _, role, *_ in slots),
            shapes=tuple(tuple(d) if r >= 0 else None for d, r in zip(dims, ranks, strict=True)),
            widths=tuple(-(-bits.get(t, 0) // 8) for t in range(len(slots))),
            maps=tuple(tuple(map(tuple, slot)) for slot in maps),
            sizes=dict(said["factor"]),
            splits=splits,
            partial=frozenset(factor for (factor,) in said["leaves_partial"]) & splits,
            combine=said["combined_by"][0][0] if said["combined_by"] else "",
            combined_by_region=bool(said["combined_by_region"]),
            multiplies=bool(said["multiplies"]),
            fills={(t, factor): what for t, factor, what in said["fills"]},
            local_sizes=tuple(said["local_size"]),
            counts=tuple(said["counts"]),
            reads=tuple(Read(*(*row, row[:2] in said["reads_backwards"])) for row in sorted(said["reads"])),
            passes={
                way: frozenset(t for w, t in said["passes_partial"] if w == way)
                for way in sorted({way for way, _ in said["passes_partial"]})
            },
            names_functions=tuple(name for name, value in attributes_of(op) if _names_functions(value)),
            starts=frozenset(said["starts"]),
            looks_up=bool(said["looks_up"]),
            facts=said,
            signature=facts,
        )

    # ---- Choices ----------------------------------------------------------------------------------------

    def choose(self, known: Knowledge, held: tuple[Layout, ...], free: frozenset[int]) -> Choice:
        """How an op is computed whose slots have these layouts; the operands in ``free`` can be computed
        in any layout."""
        key = known, held, free
        if key not in self._choices:
            self._choices[key] = self._choose(known, held, free)
        return self._choices[key]

    def _choose(self, known: Knowledge, held: tuple[Layout, ...], free: frozenset[int]) -> Choice:
        ways, parts_if_stays = self.ways(known, held)
        candidates = [self._candidate(known, held, free, way) for way in ways]
        return self._cheapest(known, [c for c, _ in candidates], [n for _, n in candidates], parts_if_stays)

    def ways(self, known: Knowledge, held: tuple[Layout, ...]) -> tuple[list[dict[int, Pieces]], int]:
        """The ways to compute an op whose slots have these layouts: the pieces that each factor is split
        on. And in how many parts it would be computed if every tensor stayed as it is."""
        sharded = [
            (t, d, position, piece)
            for t, layout in enumerate(held)
            for d, pieces in enumerate(layout.dims)
            for position, piece in enumerate(pieces)
        ]
        hollow = any(0 in (shape or ()) for shape in known.shapes)  # there is nothing to split
        held_partial = [
            (t, position, piece)
            for t, layout in enumerate(held)
            if layout.combine == SUM
            for position, piece in enumerate(layout.partial)
        ]
        if hollow or not ((sharded and known.splits) or (held_partial and known.passes)):
            return [{}], 1
        facts: dict[str, Rows] = {
            "tensor": list(enumerate(known.roles)),
            "maps": [
                (t, d, position, factor)
                for t, slot in enumerate(known.maps)
                for d, factors in enumerate(slot)
                for position, factor in enumerate(factors)
            ],
            "factor": list(known.sizes.items()),
            "splits": [(factor,) for factor in sorted(known.splits)],
            "sharded": sharded,
            "passes": [(way, t) for way, slots in known.passes.items() for t in sorted(slots)],
            "held_partial": held_partial,
        }
        found = self._candidates.solve(facts)
        axes: dict[tuple[int, int], list[int]] = {}
        for factor, option, _, piece in found["option_axis"]:
            axes.setdefault((factor, option), []).append(piece)
        ways = [_factors(choice, axes) for (choice,) in found["candidate"]] or [{}]
        return ways, self.axes.product(piece for _, _, piece in found["stays"])

    def layouts(
        self, known: Knowledge, held: tuple[Layout, ...], free: frozenset[int], way: dict[int, Pieces]
    ) -> list[Layout]:
        """The layouts in which a way to compute an op needs its operands and gives its results."""
        loose = tuple(sorted(chain.from_iterable(p for f, p in way.items() if f in known.partial)))
        passed: Pieces = ()
        passing = frozenset[int]()
        for number, slots in known.passes.items():
            if pieces := way.get(-1 - number):
                passed, passing = pieces, slots
        found = list[Layout]()
        for t, (role, shape, has) in enumerate(zip(known.roles, known.shapes, held, strict=True)):
            if shape is None:
                found.append(replicated(0))
                continue
            dims: Dims = tuple(
                tuple(chain.from_iterable(way.get(f, ()) for f in factors)) for factors in known.maps[t]
            )
            if role == "operand":
                # A stretch of what is whole is cut out, and of what is made anywhere.
                whole = {r.dim for r in known.reads if r.slot == t and (t in free or not has.dims[r.dim])}
                dims = tuple(() if d in whole else pieces for d, pieces in enumerate(dims))
            partial = loose if role == "result" else self._started(known, t, way)
            combine = (known.combine or "region") if partial else ""
            if passed and (role == "result" or t in passing):
                partial, combine = tuple(sorted((*partial, *passed))), SUM
            found.append(Layout(dims, partial, combine))
        return found

    def _candidate(
        self, known: Knowledge, held: tuple[Layout, ...], free: frozenset[int], way: dict[int, Pieces]
    ) -> tuple[Candidate, int]:
        """A candidate, and how many collectives it takes."""
        layouts, sends, count = self.layouts(known, held, free, way), list[float](), 0
        for t, (role, shape, has) in enumerate(zip(known.roles, known.shapes, held, strict=True)):
            layout = layouts[t]
            sends.append(0.0)
            if shape is None or t in free:
                continue
            ends = (layout, has) if role == "result" else (has, layout)
            if role == "result" and layout.partial and known.combined_by_region:
                ends = (layout.complete, has)  # combined by the lowering itself
                sends[-1] += 2.0 * prod(self.axes.local(shape, layout.dims)) * known.widths[t]
                count += 1
            if role == "operand":
                rows, rounds = self._exchanged(known, t, layout.dims)
                sends[-1] += rows * known.widths[t]
                count += rounds
            plan = self.planner.plan(shape, *ends)
            sends[-1] += plan.price * known.widths[t]
            count += sum(step.price > 0 for step in plan.steps)
        factors = tuple(sorted((f, p) for f, p in way.items() if p))
        return Candidate(factors, tuple(layouts), tuple(sends)), count

    def exchanged(self, known: Knowledge, slot: int, layout: Layout) -> float:
        """The elements that a device sends so that others have the stretches they need of an operand."""
        return float(self._exchanged(known, slot, layout.dims)[0])

    def excess(
        self, known: Knowledge, held: tuple[Layout, ...], ways: Sequence[dict[int, Pieces]]
    ) -> npt.NDArray[np.float64]:
        """What the work that others do as well costs, in bytes, for each way to compute an op."""
        facts = self._facts(known, ways, self.ways(known, held)[1])
        excess: dict[int, float] = dict(self._choice.solve(facts, ["excess"])["excess"])
        return np.asarray([excess[n] for n in range(len(ways))])

    def _exchanged(self, known: Knowledge, slot: int, dims: Dims) -> tuple[int, int]:
        """The elements that a device sends so that others have the stretches they need, and how often it
        does."""
        if not known.reads:
            return 0, 0
        shape, result = known.shapes[slot], known.shapes[known.roles.index("result")]
        assert shape is not None and result is not None
        local, sent, rounds = list(self.axes.local(shape, dims)), 0, 0
        for read in known.reads:
            if read.slot == slot and dims[read.dim]:
                count = self.axes.product(dims[read.dim])
                found = stretch(read, shape[read.dim], result[read.result_dim], count).exchange
                sent += found.rows * prod(n for d, n in enumerate(local) if d != read.dim)
                rounds += len(found.rounds)
                local[read.dim] = found.length
        return sent, rounds

    @staticmethod
    def _started(known: Knowledge, slot: int, way: dict[int, Pieces]) -> Pieces:
        pieces = (way.get(factor, ()) for t, factor in known.starts if t == slot)
        return tuple(sorted(chain.from_iterable(pieces)))

    def _cheapest(
        self, known: Knowledge, candidates: list[Candidate], counts: list[int], parts_if_stays: int
    ) -> Choice:
        if len(candidates) == 1:
            return Choice(candidates[0], tuple(candidates), (sum(candidates[0].sends),))
        numbers = range(len(candidates))
        facts = self._facts(known, [dict(candidate.factors) for candidate in candidates], parts_if_stays)
        facts["sends"] = [(n, t, cost) for n in numbers for t, cost in enumerate(candidates[n].sends)]
        facts["collectives"] = [(n, counts[n]) for n in numbers]
        found = self._choice.solve(facts)
        (number,) = found["cheapest"][0]
        costs: dict[int, float] = dict(found["costs"])
        return Choice(candidates[number], tuple(candidates), tuple(costs[n] for n in numbers), facts)

    def _facts(
        self, known: Knowledge, ways: Sequence[dict[int, Pieces]], parts_if_stays: int
    ) -> dict[str, Rows]:
        """What ``rules/partition/choice.dl`` is told of the work of ways to compute an op."""
        touched = sum(w * prod(s or ()) for w, s in zip(known.widths, known.shapes, strict=True))
        return {
            "parts": [
                (n, self.axes.product(chain(*(p for f, p in way.items() if f >= 0))))
                for n, way in enumerate(ways)
            ],
            "parts_if_stays": [(parts_if_stays,)],
            "touched": [(float(touched),)],
            "multiplied": [(float(prod(known.sizes.values())),)] if known.multiplies else [],
        }


def _names_functions(attribute: Any) -> bool:
    listed = isinstance(attribute, ir.ArrayAttr) and len(attribute)
    return bool(listed) and isinstance(attribute[0], ir.FlatSymbolRefAttr)


def _factors(choice: Any, axes: Mapping[tuple[int, int], list[int]]) -> dict[int, Pieces]:
    """The pieces of each factor by a choice as the rules write it: [factor, option, before]."""
    found: dict[int, Pieces] = {}
    while choice is not None:
        factor, option, choice = choice
        if option:
            found[factor] = tuple(axes[factor, option])
    return found

"""The blocks of a module that have collectives: their ops, and the ops that each needs."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir

from ....importers.listing import Listing, listing_of
from ....program.columns import told_apart, unique
from ....program.mlir.modules import children
from ....program.mlir.types import Operation
from ....rulebook.traits import OpTraits
from ...executions import has_effect
from ..collectives import KINDS

NUMBER = "shardlog.number"  # the attribute with the number of a collective in a program
OWN = frozenset({"channel_handle", NUMBER})  # attributes of a collective that do not change its result


@dataclass(frozen=True)
class CollectiveBlock:
    """The ops of a block, with the numbers of the ops that each needs: the makers of its operands, of values
    that ops in its regions use, and the previous op with an effect. Also whether all of its operands have
    other users, and their names. ``collectives`` are those of the block by number, each with its look: what
    those share whose types and regions are equal."""

    operations: list[Any]
    needs: list[list[int]]
    shares: npt.NDArray[np.bool_]
    names: list[str]
    collectives: dict[int, tuple[Any, Hashable]]
    listing: Listing
    numbers: list[int]

    def takes(self, n: int) -> list[int]:
        """The operands of an op, by their numbers."""
        begin, end = self.listing.operand_offsets[self.numbers[n] : self.numbers[n] + 2]
        return cast(list[int], self.listing.operands[begin:end].tolist())

    def gives(self, n: int) -> range:
        """The results of an op, by their numbers."""
        first = int(self.listing.first_results[self.numbers[n]])
        return range(first, first + int(self.listing.results[self.numbers[n]]))


def blocks_of(module: ir.Module, traits: OpTraits, listing: Listing | None = None) -> list[CollectiveBlock]:
    """The blocks of a module that contain collectives."""
    listing, blocks = listing or listing_of(module), []
    firsts, which = told_apart(listing.kinds)
    called = [listing.ops[n].name for n in firsts.tolist()]  # by kind
    sends, effects = (
        np.asarray([each(name) for name in called], bool)[which]
        for each in (KINDS.__contains__, lambda name: has_effect(name, traits))
    )
    definers, operands = listing.definers[listing.operands], listing.operand_offsets
    definers[listing.operands < 0] = -1
    taken = listing.operands[listing.operands >= 0]
    alone = (listing.operands >= 0) & (np.bincount(taken, minlength=1)[listing.operands] < 2)
    before = np.append(0, np.cumsum(alone))
    shares = before[operands[1:]] == before[operands[:-1]]
    for region in dict.fromkeys(listing.regions[sends].tolist()):
        block = np.nonzero(listing.regions == region)[0]
        count = len(block)
        place = np.full(len(listing.ops) + 1, -1, np.int64)  # the last one is for block arguments
        place[block] = np.arange(count)
        # Pairs of an op and one that it needs: users in regions count for the op around them.
        many = operands[listing.ends[block]] - operands[block]
        makers = place[definers[operands[block[0]] : operands[listing.ends[block[-1]]]]]
        users, ordered = np.repeat(np.arange(count), many)[makers >= 0], np.flatnonzero(effects[block])
        pairs = np.concatenate([users * count + makers[makers >= 0], ordered[1:] * count + ordered[:-1]])
        needers, needed = np.divmod(unique(pairs), count)
        bounds, flat = np.searchsorted(needers, np.arange(count + 1)).tolist(), needed.tolist()
        numbers = block.tolist()
        ops = [listing.ops[number] for number in numbers]
        collectives = {n: (ops[n], _look(listing, numbers[n])) for n in np.flatnonzero(sends[block]).tolist()}
        names = [called[kind] for kind in which[block].tolist()]
        needs = [flat[a:b] for a, b in pairwise(bounds)]
        blocks.append(CollectiveBlock(ops, needs, shares[block], names, collectives, listing, numbers))
    return blocks


def _look(listing: Listing, number: int) -> Hashable:
    """Equal for ops with equal types, and equal ops in their regions."""
    end, offsets = int(listing.ends[number]), listing.operand_offsets
    first = int(listing.first_results[number])
    inside = listing.operands[offsets[number + 1] : offsets[end]] - first
    values = [*range(first, first + int(listing.results[number]))]
    values += listing.operands[offsets[number] : offsets[number + 1]].tolist()
    types = listing.types[values].tolist()
    return *types, -1, *listing.kinds[number + 1 : end].tolist(), -1, *inside.tolist()


def combination(op: Operation) -> Hashable:
    """Equal for regions that combine two values by the same op, and for ops without regions."""
    if not len(op.regions):
        return ""
    combining, *rest = children(op) if len(op.regions) == 1 else (op,)
    given = [v.arg_number if isinstance(v, ir.BlockArgument) else -1 for v in combining.operands]
    plain = given == [0, 1] and len(rest) == 1 and not len(combining.attributes)
    same = plain and list(rest[0].operands) == list(combining.results)
    return str(combining.name) if same else id(op)  # unlike any other

"""Collectives that send the same as an earlier one. They are erased, as compilers erase them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ....importers.listing import Listing
from ....program.mlir.types import Operation
from ....rulebook.traits import OpTraits
from ...executions import has_effect
from ...writing.building import Sent
from ..collectives import KINDS
from .blocks import OWN, CollectiveBlock, blocks_of, combination


def sent_once(module: ir.Module, traits: OpTraits, sent: Sequence[Sent] = ()) -> list[Sent]:
    """The collectives of a module without duplicates, which are erased, as compilers do."""
    with module.context:
        repeats = _repeats(module, traits)
        gone = {block.operations[n] for block, instead in repeats for n in instead}
        left = [each for each in sent if each.op not in gone]  # before they are
        _erase(repeats)
    return left


def erase_repeats(module: ir.Module, traits: OpTraits, listing: Listing) -> bool:
    """Erases the duplicate collectives of a module with this listing. Returns whether there are any."""
    with module.context:
        repeats = _repeats(module, traits, listing)
        _erase(repeats)
    return any(instead for _, instead in repeats)


def _repeats(
    module: ir.Module, traits: OpTraits, listing: Listing | None = None
) -> list[tuple[CollectiveBlock, dict[int, int]]]:
    return [(block, repeats_of(block, traits, ())) for block in blocks_of(module, traits, listing)]


def _erase(repeats: Iterable[tuple[CollectiveBlock, Mapping[int, int]]]) -> None:
    for block, instead in repeats:
        without(block, instead)


def repeats_of(block: CollectiveBlock, traits: OpTraits, apart: Collection[Operation]) -> dict[int, int]:
    """The duplicate collectives of a block, each with the first one, by number. XLA would find these, but not
    after they are combined."""
    operations = block.operations
    return {
        n: first
        for n, first in _equal(block, traits).items()
        if block.names[n] in KINDS and operations[n] not in apart
    }


def without(
    block: CollectiveBlock, instead: Mapping[int, int]
) -> tuple[list[Any], list[list[int]], Mapping[int, int]]:
    """The ops of a block and their needs, with erased ops replaced by the ones ``instead``; and the new
    numbers of the others."""
    operations, needs = block.operations, block.needs
    if not instead:
        return operations, needs, dict(enumerate(range(len(operations))))
    for n, first in instead.items():
        operations[n].results[0].replace_all_uses_with(operations[first].results[0])
    kept = [n for n in range(len(operations)) if n not in instead]
    place = {n: i for i, n in enumerate(kept)}
    fewer = [sorted({place[instead.get(m, m)] for m in needs[n]}) for n in kept]
    for n in instead:
        operations[n].erase()
    return [operations[n] for n in kept], fewer, place


def _equal(block: CollectiveBlock, traits: OpTraits) -> dict[int, int]:
    """The ops of a block that compute the same as an earlier one, with the first of these. Equal ops have
    equal operands, so only ops whose operands all have other users are compared, and users of equal ops."""
    operations, names = block.operations, block.names
    candidates = np.flatnonzero(block.shares).tolist()
    if not _some_equal(block, candidates, traits):  # which is quick to find, and so in most blocks
        return {}
    same: dict[int, int] = {}  # for values that are computed again, the first equal one
    firsts, compared = dict[int, int](), set[int]()
    takes: dict[
        Hashable, tuple[int, dict[Hashable, int]]
    ] = {}  # the same: the first op, and what each computes
    users = list[list[int]]([] for _ in operations)

    def look(n: int) -> None:
        compared.add(n)
        key = names[n], *[same.get(value, value) for value in block.takes(n)]
        first, does = takes.setdefault(key, (n, {}))
        if first == n:  # reading attributes is slower than reading operands
            return
        for m in (n,) if does else (first, n):
            what = _what_it_does(operations[m], traits)
            other = does.setdefault(m if what is None else what, m)
        if other != n:
            firsts[n] = other
            same.update(zip(block.gives(n), block.gives(other), strict=True))

    shares = block.shares.tolist()
    for n, needed in enumerate(block.needs):
        for m in needed:
            if m in firsts:
                before, users[firsts[m]] = users[firsts[m]], []
                for user in before:
                    if user not in compared:
                        look(user)
        if shares[n] or not firsts.keys().isdisjoint(needed):
            look(n)
        for m in needed:
            users[firsts.get(m, m)].append(n)
    return firsts


def _some_equal(block: CollectiveBlock, candidates: Sequence[int], traits: OpTraits) -> bool:
    """Whether two of some ops compute the same from the same operands."""
    takes: dict[Hashable, list[int]] = {}
    for n in candidates:
        takes.setdefault((block.names[n], *block.takes(n)), []).append(n)
    for some in takes.values():
        if len(some) > 1:
            does = [_what_it_does(block.operations[n], traits) for n in some]
            computations = [computation for computation in does if computation is not None]
            if len(set(computations)) < len(computations):
                return True
    return False


def _what_it_does(op: Operation, traits: OpTraits) -> Hashable | None:
    """Equal for ops of one name that compute equal results from equal operands; None for an op like no
    other."""
    if (
        has_effect(op.name, traits) or traits.lowering(op.name) == "pass"
    ):  # values that are passed on may be kept apart
        return None
    try:
        attributes = tuple([(a, v) for a, v in op.attributes.items() if a not in OWN])
    except TypeError:  # MLIR's bindings do not read constants of complex numbers
        return None
    return attributes, combination(op), tuple(r.type for r in op.results)

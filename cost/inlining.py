"""A program without calls, as compilers see it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from ..importers.listing import Listing, listing_of
from ..partition.finishing.combining.blocks import NUMBER, combination
from ..partition.finishing.combining.duplicates import erase_repeats
from ..partition.finishing.loops import put_before_loops
from ..program.columns import distinct
from ..program.mlir.modules import (
    copy_of,
    is_used,
    main_function,
    operations_in,
    put_in_place_of,
    symbols,
)
from ..rulebook.traits import OpTraits
from .storing import stores


def inlined(module: ir.Module, traits: OpTraits) -> ir.Module:
    """A copy of a module whose main function calls no other. Duplicate ops and collectives, and selections
    among equal values, are gone, and loop-invariant ops are before their loops."""
    return inlined_and_listed(module, traits)[0]


def inlined_and_listed(module: ir.Module, traits: OpTraits) -> tuple[ir.Module, Listing]:
    """The same, with its ops as arrays."""
    copy = without_calls(module)
    with copy.context:
        name, listing = main_function(symbols(copy, "func.func")), listing_of(copy)
        if erase_repeats(copy, traits, listing):  # those of several calls; compilers put them before loops
            listing = listing_of(copy)
        names, changed = _simplified(copy, listing, name, traits)
        if changed:
            listing = listing_of(copy)
        listing = replace(listing, ops=[])  # Python must hold no ops while others are erased
        ops = _without_equal(copy, names, len(listing.kinds), traits)
        if len(ops) < len(listing.kinds):
            return copy, listing_of(copy, ops=ops[1:])
        return copy, replace(listing, ops=ops)


def _simplified(module: ir.Module, listing: Listing, main: str, traits: OpTraits) -> tuple[set[str], bool]:
    """Puts loop-invariant ops before their loops, and erases selections among equal values. Returns the names
    of the ops of the main function, and whether it has changed."""
    rules, start = stores(traits), listing.functions[main]
    kinds = listing.kinds[start + 1 : listing.ends[start]]
    which, firsts, _ = distinct(kinds)
    by_kind = [listing.ops[start + 1 + first].name for first in firsts.tolist()]
    loops = any(traits.lowering(name) == "loop" for name in by_kind)
    if loops:
        put_before_loops(module, traits, lambda op: rules.say("worth_moving", op.name))
    picks = [kind for kind, name in zip(which, by_kind, strict=True) if rules.say("picks", name)]
    gone = 0
    for number in np.flatnonzero(np.isin(kinds, picks)).tolist():
        op = listing.ops[start + 1 + number]
        if len(set(op.operands[1:])) == 1:
            op.results[0].replace_all_uses_with(op.operands[1])
            op.erase()
            gone += 1
    return {*by_kind}, loops or gone > 0


def without_calls(module: ir.Module) -> ir.Module:
    """A copy of a module in which the main function calls no other."""
    copy = copy_of(module)
    with copy.context:
        functions = symbols(copy, "func.func")
        main = functions[main_function(functions)]
        while len(functions) > 1 and (calls := [op for op in operations_in(main) if op.name == "func.call"]):
            for call in calls:
                callee = ir.FlatSymbolRefAttr(call.attributes["callee"]).value
                put_in_place_of(call, functions[callee])
    return copy


def _without_equal(module: ir.Module, names: Set[str], count: int, traits: OpTraits) -> list[Any]:
    """Removes duplicate ops, as compilers do, and unused ones. For ops of dialects that MLIR does not know,
    the rules say which have no effect. The main function has ops of these names, the module this many ops.
    Returns those that are left, the module the first."""
    context, pure = module.context, traits.family("pure_op") | traits.family("pure_inside_op")
    alone = {name: traits.computed_as(name) or name for name in names & pure}
    registered, before = all(map(context.is_registered_operation, alone)), -1
    merge = PassManager.parse("builtin.module(cse)", context)
    merge.enable_verifier(False)
    ops = list[Any]()
    while count != before:  # ops that only erased ops needed go next
        ops.clear()
        merge.run(module.operation)
        if not registered:
            functions = symbols(module, "func.func")
            _merge(functions[main_function(functions)].regions[0].blocks[0], {}, alone)
        ops += [module.operation, *operations_in(module)]
        count, before = len(ops), count
    return ops


def _merge(block: Any, before: Mapping[Hashable, Any], pure: Mapping[str, str]) -> None:
    """Merges equal ``pure`` ops of a block and the blocks inside, also with those before the block, and
    erases unused ones. ``pure`` maps the names of ops to the computation, because ops of several dialects may
    be equal."""
    earlier, gone = dict(before), list[Any]()
    for op in [each.operation for each in block.operations]:
        for each in (each for region in op.regions for each in region.blocks):
            _merge(each, earlier, pure)
        how = combination(op)
        if op.name not in pure or not isinstance(how, str):
            continue
        try:
            attributes = tuple(op.attributes.items())
        except TypeError:  # MLIR's bindings cannot read complex constants
            continue
        key = pure[op.name], pure.get(how, how), tuple(op.operands), attributes, tuple(op.results.types)
        first = earlier.setdefault(key, op)
        if first is not op:
            for result, same in zip(op.results, first.results, strict=True):
                result.replace_all_uses_with(same)
        if not is_used(op):
            gone.append(op)
    for op in reversed(gone):
        op.erase()


def numbered(module: ir.Module, collectives: Sequence[Any]) -> ir.Module:
    """A copy of a module whose ``collectives`` have their number as an attribute."""
    with module.context:
        integers = ir.IntegerType.get_signless(64)
        try:
            for number, op in enumerate(collectives):
                op.attributes[NUMBER] = ir.IntegerAttr.get(integers, number)
            return copy_of(module)
        finally:
            for op in collectives:
                if NUMBER in op.attributes:
                    del op.attributes[NUMBER]

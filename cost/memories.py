"""The memory of values, the device's or its host's, by ``rules/cost/memories.dl``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from jaxlib.mlir import ir

from ..program.mlir.modules import called, operations_in
from ..program.signature import text_of
from ..rulebook.shipped import shipped
from ..rulebook.traits import OpTraits
from .storing import stores

_FRONTEND = "mhlo.frontend_attributes"


def on_host(
    op: Any, block: Any, entries: Sequence[Any], examples: Sequence[Any], traits: OpTraits, platform: str
) -> frozenset[Any]:
    """The values in an op that are in the host's memory. ``entries`` are the attributes of the arguments of
    the ``block`` that is the program, ``examples`` an op of each kind in it.

    An annotation of a value also holds for its slices, and for values that it is written into, through loops
    and branches, until another annotation says otherwise.
    """
    says, moves = _rules(traits, platform)
    memory_of = dict[Any, str]()
    for argument, entry in zip(block.arguments, entries, strict=True):
        for memory in _named_memories(entry, says):
            memory_of[argument] = memory

    def named(each: Any) -> list[str]:
        """The memories that an op says its results are in."""
        held = each.attributes
        memories = [*_named_memories(held[_FRONTEND], says)] if _FRONTEND in held else []
        return memories + [moves[target] for target in (called(each).removeprefix("@"),) if target in moves]

    if not (memory_of or any(map(named, examples))):
        return frozenset()
    ops = operations_in(op)
    for each in ops:
        memories = named(each)
        for value in each.results if memories else ():
            memory_of[value] = memories[0]
    left = [value for value, memory in memory_of.items() if memory == "host"]
    if not left:
        return frozenset()
    goes_to = defaultdict[Any, list[Any]](list)
    for each in ops:
        for source, target in _edges(each, traits):
            goes_to[source].append(target)
    host = set(left)
    while left:
        for target in goes_to[left.pop()]:
            if target not in memory_of and target not in host:
                host.add(target)
                left.append(target)
    return frozenset(host)


def _named_memories(entry: Any, says: dict[tuple[str, str], str]) -> Iterator[str]:
    """The memories that attributes name."""
    for attribute, value in says:
        if attribute in entry:
            given = entry[attribute]
            if isinstance(given, ir.StringAttr) and text_of(given) == value:
                yield says[attribute, value]


def _edges(op: Any, traits: OpTraits) -> Iterator[tuple[Any, Any]]:
    """Values, and other values in the same memory."""
    name = called(op)
    how = traits.lowering(name)
    if how in ("loop", "branches"):
        blocks = [block for region in op.regions for block in region]
        if how == "loop":
            test, body = blocks
            for i, result in enumerate(op.results):
                around = (body.arguments[i], test.arguments[i], result)
                given = op.operands[i], body.operations[-1].operands[i]
                yield from ((source, target) for source in given for target in around)
                if not isinstance(given[0].owner, ir.Block) and stores(traits).say(
                    "broadcasts", given[0].owner.operation.name
                ):
                    yield result, given[0]  # the buffer that a loop fills is in the same memory
            return
        for block in blocks:
            yield from zip(block.operations[-1].operands, op.results, strict=True)
    elif how == "pass":
        yield from zip(op.operands, op.results, strict=True)
    elif name in traits.family("keeps_memory_op"):
        yield op.operands[0], op.results[0]
        if traits.touches(name) == "writes":
            yield op.operands[1], op.results[0]
    elif name.removeprefix("@") in traits.family("annotates_target"):
        yield from zip(op.operands, op.results, strict=False)


@lru_cache(maxsize=8)
def _rules(traits: OpTraits, platform: str) -> tuple[dict[tuple[str, str], str], dict[str, str]]:
    """The memories that attributes and calls name, by the rules."""
    program = shipped("cost/memories")
    answers = program.evaluate({**traits.given_to(program), "on": [(platform,)]})
    says = {(str(attribute), str(value)): str(memory) for attribute, value, memory in answers["says"]}
    return says, {str(name): str(memory) for name, memory in answers["moves"]}

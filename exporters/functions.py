"""The functions of the annotated module: one for each function and distinct shardings of its arguments and
results.

Every call was propagated on its own; calls whose arguments and results ended with equal shardings share a
function again, as after Shardy's ``sdy-unflatten-call-graph``. Names and order are Shardy's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..importers.graph.graph import Graph, Instance
from ..program.shardings import Sharding
from ..program.signature import text_of
from .shardings import FinalShardings

COPIED = "sdy.original_func_name"  # what Shardy writes on functions while some are copies


@dataclass(frozen=True)
class Signature:
    """The shardings at the boundary of an instance; empty where there are none at all, and for a root, which
    nothing calls."""

    arguments: tuple[Sharding, ...] = ()
    results: tuple[Sharding, ...] = ()


@dataclass
class Version:
    """A function of the annotated module."""

    name: str
    instance: Instance
    signature: Signature
    callees: dict[int, Version]  # call node -> function


def boundary(instance: Instance, written: FinalShardings, shapes: list[tuple[int, ...] | None]) -> Signature:
    """The shardings of an instance's arguments and returned values."""

    def of(values: list[int] | tuple[int, ...], *, returned: bool = False) -> tuple[Sharding, ...]:
        rank = [len(shapes[instance.function.types[v]] or ()) for v in values]
        shardings = written.held(instance, values, rank)
        if returned:
            shardings = [written.result(None, one) for one in shardings]
        return tuple(written.filled(shardings, rank, "call") or ())

    function = instance.function
    return Signature(of(function.arguments), of(function.operands[function.terminator], returned=True))


def boundaries(
    instances: list[Instance], written: FinalShardings, shapes: list[tuple[int, ...] | None]
) -> dict[int, Signature]:
    """The boundaries of instances, by number. Instances of a function with the same contents are looked at
    once."""
    by_instance: dict[int, Signature] = {}
    by_content: dict[tuple[str, bytes], Signature] = {}
    for instance in instances:
        function = instance.function
        values = [*function.arguments, *function.operands[function.terminator]]
        key = (function.name, written.contents[instance.place + instance.layout.place[values]].tobytes())
        if written.unchanged or key not in by_content:
            by_content[key] = boundary(instance, written, shapes)
        by_instance[instance.number] = by_content[key]
    return by_instance


def choose_versions(
    graph: Graph, written: FinalShardings, shapes: list[tuple[int, ...] | None], taken: set[str]
) -> list[Version]:
    """The functions to write, roots first, in the order in which they stand in the module.

    ``taken`` are the names of other symbols.
    """
    roots = graph.roots
    names: dict[int, str] = {root.number: root.function.name for root in roots}
    taken = taken | {*names.values()}
    suffix = 0
    in_order = [*roots, *(instance for root in roots for instance in _inner_first(root))]
    for instance in in_order[len(roots) :]:
        name = original = _original(instance)
        while name in taken:
            name, suffix = f"{original}_{suffix}", suffix + 1
        taken.add(name)
        names[instance.number] = name
    signatures = boundaries(in_order[len(roots) :], written, shapes)
    first: dict[tuple[str, Signature], Instance] = {}
    for caller in in_order:
        for child in caller.children.values():
            first.setdefault((_original(child), signatures[child.number]), child)

    def callee(child: Instance) -> Instance:
        return first[_original(child), signatures[child.number]]

    versions: dict[int, Version] = {}
    pending = [*roots]
    while pending:
        instance = pending.pop()
        if instance.number not in versions:
            signature = signatures.get(instance.number, Signature())
            versions[instance.number] = Version(names[instance.number], instance, signature, {})
            pending += map(callee, instance.children.values())
    for version in versions.values():
        for node, child in version.instance.children.items():
            version.callees[node] = versions[callee(child).number]
    return [versions[i.number] for i in in_order if i.number in versions]


def _original(instance: Instance) -> str:
    """The name of an instance's function; for a copy, the name of its original."""
    function = instance.function
    held = function.op.attributes
    return text_of(held[COPIED]) if COPIED in held else function.name


def _inner_first(root: Instance) -> Iterator[Instance]:
    """The instances below ``root``, callees before callers."""
    around = [(root, iter(root.children.values()))]
    while around:
        instance, children = around[-1]
        if (child := next(children, None)) is not None:
            around.append((child, iter(child.children.values())))
        else:
            around.pop()
            if instance is not root:
                yield instance

"""Writes the final shardings into the module it was read from."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..importers.graph.graph import Graph
from ..program.classes import Classes
from ..program.columns import Ints, first_alike, numbers, spread, spread_ranges
from ..program.mlir.modules import named_in
from ..program.mlir.types import FunctionOp, Operation
from ..program.shardings import Sharding
from ..program.signature import text_of
from .attributes import Context, ShardingAttributes
from .functions import COPIED, Version, choose_versions
from .meshes import write_meshes
from .shardings import FinalShardings

# The attributes that a called function keeps; others are lost, as with Shardy.
_OF_CALLED = {"sym_name", "function_type", "sym_visibility", "arg_attrs", "res_attrs", "execution_thread"}


def annotate(
    module: ir.Module, graph: Graph, classes: Classes, written: FinalShardings
) -> tuple[FunctionWriter, ...]:
    """Annotates ``module`` in place: every value that has a sharding gets it as an attribute.

    Constants that were split are there once per distinct sharding, functions once per distinct shardings of
    their arguments and results; sharding groups, data-flow edges and dead ops are gone. Returned are the
    functions that are there.
    """
    with module.context, ir.Location.unknown():
        write_meshes(module, written.shardings, classes.signatures.examples)
        return _Module(module, graph, classes, written).run()


def _named(symbols: dict[str, FunctionOp], roots: set[str], written: set[str]) -> set[str]:
    """The symbols that ``roots`` refer to, directly or through others. Calls in ``written`` functions do not
    count: live callees are among the roots."""
    reached, waiting = set[str](), sorted(roots)
    while waiting:
        name = waiting.pop()
        new = named_in(symbols[name], calls=name not in written) - reached - roots
        waiting += sorted(new & set(symbols))
        reached |= new
    return reached


class _Module(Context):
    def __init__(self, module: ir.Module, graph: Graph, classes: Classes, written: FinalShardings) -> None:
        super().__init__(graph, classes, written)
        self.module = module

    def run(self) -> tuple[FunctionWriter, ...]:
        functions = {i.function.name: i.function.op for i in self.graph.instances}
        symbols: dict[str, Any] = {}
        for op in self.module.body.operations:
            if "sym_name" in op.attributes:
                symbols[text_of(op.attributes["sym_name"])] = op
        private = {
            name
            for name, op in symbols.items()
            if op.operation.name == "func.func"
            and getattr(op.attributes.get("sym_visibility"), "value", "") == "private"
        }
        taken = set(symbols) - set(functions) - private
        versions = choose_versions(self.graph, self.written, self.shapes, taken)
        # Copies are made before anything is written; the first version of a function is the function itself.
        bodies: list[tuple[Version, Any, list[Any]]] = []
        used: set[str] = set()
        for version in versions:
            function = version.instance.function
            name = function.name
            if name in used:
                copy = function.op.operation.clone(ir.InsertionPoint(self.module.body))
                bodies.append((version, copy.opview, _ops(copy)))
            else:
                bodies.append((version, function.op, function.ops))
            used.add(name)
        unused = private - used
        for name in unused - _named(symbols, set(symbols) - unused, used) if unused else ():
            symbols[name].operation.erase()
        written = []
        for version, func, ops in bodies:
            body = FunctionWriter(self, version, func, ops)
            body.write()
            written.append(body)
            func.attributes["sym_name"] = ir.StringAttr.get(version.name)
            for label in [*func.attributes]:
                if label == COPIED or (version.instance not in self.graph.roots and label not in _OF_CALLED):
                    del func.attributes[label]
        last = list(self.module.body.operations)[-1].operation
        for _, func, _ in bodies[1:]:
            if last != func.operation:
                func.operation.move_after(last)
            last = func.operation
        return tuple(written)


def _ops(func: FunctionOp) -> list[Any]:
    """All ops of a function, in the order in which the importer numbers them."""
    ops: list[Any] = []

    def walk(region: ir.Region) -> None:
        for op in region.blocks[0].operations:
            ops.append(op)
            for inner in op.regions:
                walk(inner)

    walk(func.regions[0])
    return ops


class FunctionWriter:
    """Writes one function.

    Attributes: ``instance``, its source; ``alive``, its final ops, by node.
    """

    attributes = ShardingAttributes

    def __init__(self, module: Context, version: Version, func: FunctionOp, ops: list[Operation]) -> None:
        self.module, self.written = module, module.written
        self.version, self.instance, self.func = version, version.instance, func
        self.function = version.instance.function
        # Copies of constants share the op of the node they are copied from until they get one of their own.
        self.ops: list[Any] = [*ops, *[None] * (len(self.function.ops) - len(ops))]
        for copy in self.function.originals:
            self.ops[copy] = None
        self.same: dict[int, int] = {}  # node that is merged -> the node it is merged with
        self.values: dict[int, Any] = {}  # MLIR's, by number
        self.homes: dict[int, int] = {}  # copy -> the node it is copied from, whose op it takes

    def write(self) -> None:
        self.merge_constants()
        self.place_copies()
        self.rewire()
        self.erase()
        self.move_constraints()
        self.attributes(self.module, self.version, self.func, self.ops, [*self.erased]).write()

    @cached_property
    def alive(self) -> dict[int, Any]:
        """The ops that are there in the end. Others must not be touched: MLIR has freed them, with
        all that was inside of them."""
        function, alive = self.function, dict[int, Any]()
        gone = self.erased.union(self.homes.values(), function.removed.difference(function.originals))
        for node in sorted(range(len(self.ops)), key=lambda n: (n in function.originals, n)):
            around = node
            while around >= 0 and around not in gone:
                around = function.parent[around]
            if around < 0 and self.ops[node] is not None:
                alive[node] = self.ops[node]
        return alive

    def held(self, contents: Mapping[int, int]) -> Iterator[tuple[Any, Sharding]]:
        """The values of the module, but for the arguments of the main function, whose places have a content
        among these that has axes, and the sharding that it is."""
        function, entry = self.function, self.instance is self.module.graph.main
        places = self.instance.place + self.instance.layout.place
        for value in np.flatnonzero(np.isin(places, [*contents])).tolist():
            if value in self.argument_numbers:
                there = not entry
            else:
                node = function.definer[value]
                there = (node if node >= 0 else self.region_arguments[value][0]) in self.alive
            rank = int(self.module.ranks[function.types[value]])
            sharding = self.written.of(contents[int(places[value])], rank)
            if there and sharding is not None and any(d.axes for d in sharding.dimensions):
                yield self.ir_value(value), sharding

    def merge_constants(self) -> None:
        """Equal constants with equal shardings become one, the first."""
        function, signature = self.function, numbers(self.function.signature)
        nodes = numbers(function.order)
        nodes = nodes[self.module.merges[signature[nodes]]]
        if len(nodes) < 2:
            return
        makers, offsets = numbers(function.results.first), numbers(function.operands.offsets)
        data = np.full(len(function.ops), -1, np.int32)
        data[: len(function.data)] = function.data
        data[list(function.originals)] = data[[*function.originals.values()]]
        held = self.instance.layout.place[makers[nodes]]
        alike = first_alike(
            (
                signature[nodes],
                data[nodes],
                numbers(function.region)[nodes],
                self.written.contents[self.instance.place + held],
            )
        )
        # Constants without operands are equal; others are if their operands are, which are merged first.
        starts, ends, others = offsets[nodes], offsets[nodes + 1], nodes[alike]
        merged = (starts == ends) & (others != nodes)
        self.same = dict(zip(nodes[merged].tolist(), others[merged].tolist(), strict=True))
        gone, instead = makers[nodes[merged]], makers[others[merged]]
        values, which = spread_ranges(gone, numbers(function.results.counts)[nodes[merged]])
        stands = np.arange(len(function.types), dtype=np.int32)
        stands[values] += (instead - gone)[which]
        stand: list[int] = stands.tolist()  # for a value: that of the node with which its own is merged
        first: dict[Hashable, int] = {}
        operands = function.operands.values.tolist()
        rest, counts = starts < ends, numbers(function.results.counts)[nodes]
        columns = (column[rest].tolist() for column in (nodes, alike, starts, ends, makers[nodes], counts))
        for node, key, start, end, result, count in zip(*columns, strict=True):
            uses = operands[start:end]
            used = stand[uses[0]] if len(uses) == 1 else tuple([stand[value] for value in uses])
            other = first.setdefault((key, used), node)
            if other != node:
                self.same[node] = other
                instead = function.results.first[other]
                for index in range(count):
                    stand[result + index] = instead + index

    def place_copies(self) -> None:
        """Remaining copies get ops, in order. The last copy takes the node's own op if that is not needed, or
        the op that the node is merged with. Constraints that are not in the module get ops too, which may
        stand before copies."""
        function = self.function
        copies: dict[int, list[int]] = {}
        for node, source in function.originals.items():
            if node not in self.same and node not in function.removed:
                copies.setdefault(source, []).append(node)
        for source, nodes in copies.items():
            heir = nodes[-1] if source in function.removed else self.same.get(source)
            taken = self.ops[source].operation
            anchor = ir.InsertionPoint(taken)
            for node in nodes:
                if node != heir:
                    self.ops[node] = taken.clone(anchor)
            if heir in nodes:
                if behind := nodes[nodes.index(heir) + 1 :]:
                    taken.move_before(self.ops[behind[0]].operation)
                self.ops[heir] = self.ops[source]
                self.homes[heir] = source
                if source in self.same:
                    self.ops[source] = None
        for node, (near, index) in function.created.items():
            operation = self.ops[self.same.get(near, near)].operation
            attribute = self.written.attribute(function.annotations[function.results[node][0]])
            point = ir.InsertionPoint(operation)
            value = operation.operands[index]
            self.ops[node] = sdy.ShardingConstraintOp(value, attribute, loc=operation.location, ip=point)

    def rewire(self) -> None:
        for node, index, value in self.changed():
            self.ops[node].operands[index] = self.ir_value(value)
        others: dict[int, list[Any]] = {}
        ops = self.ops
        for node, other in self.same.items():
            if (op := ops[node]) is not None:
                if other not in others:
                    others[other] = list(ops[other].results)
                if len(results := others[other]) == 1:
                    op.result.replace_all_uses_with(results[0])
                    continue
                for result, instead in zip(op.results, results, strict=True):
                    result.replace_all_uses_with(instead)

    def changed(self) -> Iterator[tuple[int, int, int]]:
        """The operands that ops do not have already: nodes, indices, and values after merging."""
        function = self.function
        if not function.originals and function.operands.values == function.given:
            return iter(())  # all uses of what is merged are replaced at last
        first, definer, order = map(numbers, (function.results.first, function.definer, function.order))
        values, offsets = numbers(function.operands.values), numbers(function.operands.offsets)
        given, nodes = numbers(function.given), np.arange(len(function.ops), dtype=np.int32)
        same = np.fromiter(self.same, np.int32, len(self.same))

        def instead(values: Ints, other: Mapping[int, int]) -> Ints:
            """The values where some nodes are others."""
            node = nodes.copy()
            node[np.fromiter(other, np.int32, len(other))] = np.fromiter(other.values(), np.int32, len(other))
            makers = definer[values]
            return np.where(makers < 0, values, first[node[makers]] + values - first[makers])

        # The value of the module that is in place of each value in the end, or a copy.
        stand = instead(np.arange(len(definer), dtype=np.int32), self.same)
        final = instead(stand, self.homes)
        # The replacements of operands. All uses of merged values are replaced at the end.
        used = np.arange(len(definer), dtype=np.int32)
        replaced = np.zeros(len(nodes), bool)
        replaced[same] = True
        replaced[[node for node in function.originals if self.ops[node] is None]] = False
        replaced[[node for node in self.homes.values() if self.ops[node] is None]] = False
        used = np.where((definer >= 0) & replaced[definer], final, used)
        # Copies have the operands of their originals.
        source, merged = nodes.copy(), np.zeros(len(nodes), bool)
        source[list(function.originals)] = [*function.originals.values()]
        merged[same] = True
        order = order[~merged[order]]
        entries, rows = spread(offsets, order)
        before = offsets[source[order]][rows] + entries - offsets[order][rows]
        existing = before < len(given)
        stands = np.zeros(len(entries), bool)
        stands[existing] = used[given[before[existing]]] == final[values[entries[existing]]]
        new = np.nonzero(~stands)[0]
        node = order[rows[new]]
        wanted = stand[values[entries[new]]]
        return zip(node.tolist(), (entries[new] - offsets[node]).tolist(), wanted.tolist(), strict=True)

    def ir_value(self, value: int) -> Any:
        """The value of MLIR for one that is not merged."""
        if value not in self.values:
            self.values[value] = self.ir_value_of(value)
        return self.values[value]

    def ir_value_of(self, value: int) -> Any:
        function = self.function
        node = function.definer[value]
        if node >= 0:
            return self.ops[node].results[value - function.results[node][0]]
        if value in self.argument_numbers:
            return self.func.regions[0].blocks[0].arguments[self.argument_numbers[value]]
        parent, region, index = self.region_arguments[value]
        return self.ops[parent].regions[region].blocks[0].arguments[index]

    @cached_property
    def argument_numbers(self) -> dict[int, int]:
        return {value: index for index, value in enumerate(self.function.arguments)}

    @cached_property
    def region_arguments(self) -> dict[int, tuple[int, int, int]]:
        return {
            value: (node, number, index)
            for node, regions in self.function.regions.items()
            for number, region in enumerate(regions)
            for index, value in enumerate(region.arguments)
        }

    def erase(self) -> None:
        """Erases ops that are merged or not needed, users first, and annotations that have been read."""
        function = self.function
        reused = {*self.homes.values()}
        gone = [n for n in sorted(function.removed, reverse=True) if n not in function.originals]
        gone = [n for n in gone if n not in reused and function.parent[n] not in function.removed]
        edges = list(function.flow_edges)
        for node in edges:
            self.ops[node].results[0].replace_all_uses_with(self.ops[node].operands[0])
        groups = [node for _, _, node in function.groups if node >= 0]
        for node in (*edges, *groups):
            self.ops[node].operation.erase()
        self.erased = {*edges, *groups, *gone, *self.same}
        for node in sorted(self.same, reverse=True):
            if (op := self.ops[node]) is not None:
                op.operation.erase()
        for node in gone:
            if node not in groups:
                self.ops[node].operation.erase()

    def move_constraints(self) -> None:
        """Constraints that took over the uses of a value stand right after it."""
        function = self.function
        if not function.moved:
            return
        last: dict[int, int] = {}  # region -> the node before
        stays = [
            n for n in function.order if n not in function.moved and n not in self.erased and self.ops[n]
        ]
        first = {function.region[n]: n for n in reversed(stays)}
        for node in function.order:
            if node in self.erased or self.ops[node] is None:
                continue
            region = function.region[node]
            if node in function.moved:
                op = self.ops[node].operation
                if region in last:
                    op.move_after(self.ops[last[region]].operation)
                else:
                    op.move_before(self.ops[first[region]].operation)
            last[region] = node

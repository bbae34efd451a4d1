"""Writes the final shardings of a function as attributes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..importers.graph.graph import Graph
from ..program.boundaries import boundary_axes
from ..program.carried import HALO, OFFSETS, SPELLING, UNEVEN
from ..program.classes import Classes
from ..program.columns import among, numbers
from ..program.function import RESULT_SHARDING, location
from ..program.mlir.modules import boundary_attributes, entries_of
from ..program.mlir.types import Attributes, FunctionOp, Operation
from ..program.shardings import Dimension, Sharding, manual_axes
from .functions import Version
from .shardings import FinalShardings


class Context:
    """Everything that writing a function needs."""

    def __init__(self, graph: Graph, classes: Classes, written: FinalShardings) -> None:
        signatures = classes.signatures
        self.graph, self.classes, self.written = graph, classes, written
        self.shapes = signatures.shapes
        self.ranks = np.asarray([len(shape or ()) for shape in self.shapes], np.int32)
        # By signature:
        self.of_sdy = np.asarray([name.startswith("sdy.") for name in signatures.names], bool)
        self.merges = np.asarray([classes.of(s).merges for s in range(len(self.of_sdy))], bool)


class ShardingAttributes:
    """The attributes of one function. ``ops`` are its final ops, by node, without those that are ``gone``."""

    def __init__(
        self,
        module: Context,
        version: Version,
        func: FunctionOp,
        ops: Sequence[Operation],
        gone: Sequence[int],
    ) -> None:
        self.written, self.graph, self.of_sdy = module.written, module.graph, module.of_sdy
        self.classes = module.classes
        self.shapes, self.rank_of = module.shapes, module.ranks
        self.version, self.instance, self.func = version, version.instance, func
        self.function, self.ops, self.gone = version.instance.function, ops, gone
        self.root = version.instance in module.graph.roots
        self.entry = version.instance is module.graph.main

    def write(self) -> None:
        self.set_shardings()
        self.set_boundary()

    def set_shardings(self) -> None:
        function, place = self.function, self.instance.layout.place
        order, definers = np.asarray(function.order, np.int64), np.asarray(function.definer, np.int64)
        results = np.bincount(definers[definers >= 0], minlength=len(function.ops))
        own, gone = [*function.constraints, *function.boundaries], np.asarray(self.gone, np.int64)
        alone = [*self.of_sdy[numbers(function.signature)].nonzero()[0].tolist(), *function.calls]
        if self.written.unchanged:
            unchanged = np.isin(place, np.asarray([*self.written.unchanged]) - self.instance.place)
            alone += definers[unchanged & (definers >= 0)].tolist()
        plain, others = np.zeros((2, len(function.ops)), bool)
        plain[order] = results[order] == 1
        plain[alone] = False
        others[order] = results[order] > 0
        others[own] = True
        plain[gone] = others[gone] = False
        self.set_plain(np.nonzero((definers >= 0) & plain[definers])[0], definers)
        for node in order[(others & ~plain)[order]].tolist():
            if node in function.calls:
                self.set_call(node)
            elif node in function.boundaries:
                self.set_boundaries(node)
            else:
                self.set_results(node)

    def set_plain(self, values: npt.NDArray[np.int64], makers: npt.NDArray[np.int64]) -> None:
        """The shardings of values that are the only result of their op, in ``makers``."""
        count = int(self.rank_of.max(initial=0)) + 1
        held = self.written.contents[self.instance.place + self.instance.layout.place[values]]
        keys = held * count + self.rank_of[numbers(self.function.types)[values]]
        attributes: dict[int, ir.Attribute] = {}
        has_one = np.zeros(keys.max(initial=0) + 1, bool)
        for key in among(keys):
            content, rank = divmod(key, count)
            attribute = self.written.per_value([self.written.of(content, rank)], [rank])
            if attribute is not None:
                attributes[key], has_one[key] = attribute, True
        written = has_one[keys]
        ops = map(self.ops.__getitem__, makers[values[written]].tolist())
        for op, attribute in zip(ops, map(attributes.__getitem__, keys[written].tolist()), strict=True):
            op.attributes["sdy.sharding"] = attribute

    def set_results(self, node: int) -> None:
        """The shardings of the results of an op."""
        values, written = self.function.results[node], self.written
        shardings, ranks = self.held(values), self.ranks(values)
        attribute = written.per_value(shardings, ranks)
        if attribute is None:
            return
        attributes = self.ops[node].attributes
        label = _result_sharding(attributes) if self.function.names[node].startswith("sdy.") else None
        if label is None:
            attributes["sdy.sharding"] = attribute
        elif shardings[0] is not None:
            attributes[label] = written.attribute(shardings[0])

    def set_boundaries(self, node: int) -> None:
        """The shardings of values that enter and leave a computation with a body."""
        function, written, attributes = self.function, self.written, self.ops[node].attributes
        body = function.regions[node][0].arguments
        for label, values in (("in_shardings", body), ("out_shardings", function.results[node])):
            shapes = [self.shapes[function.types[v]] or () for v in values]
            held = [self.instance.place + int(self.instance.layout.place[v]) for v in values]
            shardings: list[Sharding | None] = []
            for value, place, shape in zip(values, held, shapes, strict=True):
                sharding = written.fitted(written.sharding(place, len(shape)), shape, entry=False)
                if sharding is not None and value in function.manual:
                    manual = function.manual[value]
                    if values is body:
                        sharding = manual.around(sharding)
                    else:
                        manual.check(sharding, boundary_axes(self.ops[node]), location(self.ops[node]))
                shardings.append(sharding)
            attribute = written.per_value(shardings, [len(shape) for shape in shapes])
            if attribute is not None:
                attributes[label] = attribute
        if node in function.manual_axes:
            attributes["manual_axes"] = manual_axes(function.manual_axes[node])

    def set_call(self, node: int) -> None:
        """A call has the shardings that its function returns. If other ones are needed, its results are
        resharded."""
        function, written = self.function, self.written
        callee = self.version.callees[node]
        op = self.ops[node]
        op.attributes["callee"] = ir.FlatSymbolRefAttr.get(callee.name)
        shapes = [self.shapes[function.types[v]] or () for v in function.results[node]]
        wanted = [
            written.sharding(self.instance.place + int(self.instance.layout.place[v]), len(shape))
            for v, shape in zip(function.results[node], shapes, strict=True)
        ]
        given = list(callee.signature.results)
        if not given:
            filled = written.filled(wanted, [len(s) for s in shapes])
            if filled is None:
                return
            given = [_replicated(sharding) for sharding in filled]
        for index, (gives, wants) in enumerate(zip(given, wanted, strict=True)):
            resharded, kept = written.crossed(gives, wants)
            wants = wants or _replicated(gives)
            if resharded:
                self.reshard(op, index, wants)
            elif kept:
                given[index] = wants
        fitted = [written.fitted(s, shape, entry=False) for s, shape in zip(given, shapes, strict=True)]
        op.attributes["sdy.sharding"] = written.per_value(fitted, [len(s) for s in shapes])

    def reshard(self, call: Any, index: int, sharding: Sharding) -> None:
        result = call.results[index]
        reshard = sdy.ReshardOp(
            result, self.written.attribute(sharding), loc=call.location, ip=ir.InsertionPoint.after(call)
        )
        result.replace_all_uses_except(reshard.results[0], reshard.operation)

    def set_boundary(self) -> None:
        function, written = self.function, self.written
        returned = function.operands[function.terminator]
        arguments: list[Sharding | None] = list(self.version.signature.arguments)
        if self.root:
            arguments = self.held(function.arguments)
        own: list[Sharding | None] = [None] * len(returned)
        if self.entry:
            own = written.all(self.graph.result_places, self.ranks(returned))
        results = [
            written.result(one, other, entry=self.entry, token_of_flow=self.flows_as_token(value))
            for one, other, value in zip(own, self.held(returned), returned, strict=True)
        ]
        self.set_values("arg_attrs", function.arguments, arguments)
        self.set_values("res_attrs", returned, results)
        if not self.root:
            self.func.attributes["sym_visibility"] = ir.StringAttr.get("private")

    def flows_as_token(self, value: int) -> bool:
        """Whether a value is a token of an op with data-flow edges: it has no sharding. Computations of sdy
        describe their own results."""
        node, type_ = self.function.definer[value], self.function.types[value]
        if self.shapes[type_] is not None or node < 0:
            return False
        signature = self.function.signature[node]
        return bool(self.classes.of(signature).edges) and not self.of_sdy[signature]

    def held(self, values: Sequence[int]) -> list[Sharding | None]:
        """The shardings of values of the function."""
        return self.written.held(self.instance, values, self.ranks(values))

    def ranks(self, values: Sequence[int]) -> list[int]:
        """The rank of each value; 0 for values that are not tensors."""
        return [len(self.shapes[self.function.types[v]] or ()) for v in values]

    def set_values(self, label: str, values: Any, shardings: list[Sharding | None]) -> None:
        attributes, old = self.func.attributes, boundary_attributes(self.func, label)
        shardings = shardings or [None] * len(values)
        fitted: dict[tuple[int, int, bool], dict[str, Any]] = {}  # by a sharding's identity, and a type
        entries: dict[tuple[Any, int], Any] = {}  # by an entry, and the identity of what is added
        spelled = self.root and SPELLING in self.func.operation.parent.attributes
        new = []
        for value, entry, sharding in zip(values, old, shardings, strict=True):
            uneven = HALO in entry or OFFSETS in entry
            key = (id(sharding), self.function.types[value], uneven)
            if key not in fitted:
                fitting, shape = sharding, self.shapes[key[1]] or ()
                if not uneven:
                    fitting = self.written.fitted(sharding, shape, entry=self.entry)
                fitted[key] = {} if fitting is None else {"sdy.sharding": self.written.attribute(fitting)}
                if spelled and sharding is not None and fitting != sharding and not _is_even(sharding, shape):
                    fitted[key][UNEVEN] = ir.StringAttr.get(str(self.written.attribute(sharding)))
            added = fitted[key]
            one = (entry, id(added))
            extended = entries.get(one)
            if extended is None:
                extended = entries[one] = self.entry_with(entry, added)
            new.append(extended)
        if any(len(entry) for entry in new):
            attributes[label] = ir.ArrayAttr.get(new)
        elif label in attributes:
            del attributes[label]

    def entry_with(self, entry: Any, added: dict[str, ir.Attribute]) -> Any:
        """The attributes of an argument or a result, with a sharding or without one."""
        kept = entries_of(entry) if self.root else {}
        before, attribute = kept.pop("sdy.sharding", None), added.get("sdy.sharding")
        if self.root and (before is attribute or (before and attribute and before == attribute)):
            return entry
        kept.pop(UNEVEN, None)
        return ir.DictAttr.get(kept | added)


def _result_sharding(attributes: Attributes) -> str | None:
    return next((label for label in RESULT_SHARDING if label in attributes), None)


def _is_even(sharding: Sharding, shape: Sequence[int]) -> bool:
    """Whether the axes of each dimension divide it."""
    each = zip(sharding.dimensions, shape, strict=True)
    return all(size % prod(axis.size for axis in dimension.axes) == 0 for dimension, size in each)


def _replicated(sharding: Sharding) -> Sharding:
    return Sharding(sharding.mesh, (Dimension(closed=True),) * len(sharding.dimensions))

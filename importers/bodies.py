"""Function bodies, from the listing of a module.

Attributes are read off one op of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError
from ..program.carried import INSERTED
from ..program.columns import Ints, Operands, Results, column, distinct
from ..program.function import RESULT_SHARDING, Elements, Function, Region, Signatures, location, sharding_of
from ..program.mlir.modules import boundary_attributes, entries_of
from ..program.mlir.types import Operation
from ..program.shardy import newer
from ..program.signature import RULE, attributes, surroundings
from .listing import Listing

# The attributes with the shardings of values that enter and leave a computation with a body.
_BOUNDARIES = ("in_shardings", "out_shardings")
_OF_SDY = {"sdy.sharding", RULE, "sdy.original_func_name", "sdy.func_manual_axes"}  # on ops of any dialect
_EDGES = ("sdy.data_flow_edge", "sdy.func_data_flow_edge")
_DEEPEST = 100  # levels of regions; walks over them recurse
_ANNOTATIONS = frozenset({*RESULT_SHARDING, "group_id"})


@dataclass
class _OpKind:
    """The facts that ops of a kind share. ``key`` is the key of their signature, without their
    surroundings."""

    name: str
    key: list[Hashable]
    data: tuple[Hashable, ...] = ()  # facts beyond their signature
    shardings: tuple[ir.Attribute, ...] = ()  # of their results
    sharding: ir.Attribute | None = None  # of their only result
    group: int | None = None
    callee: str = ""
    bounded: bool = False  # they name the shardings of values that enter and leave
    looks_at: Sequence[str] = ()  # around them

    @property
    def special(self) -> bool:
        """Whether there is more to take down for each of them than data."""
        of_sdy = self.name == "sdy.sharding_constraint" or self.group is not None
        return bool(of_sdy or self.shardings or self.sharding is not None or self.callee)


@dataclass
class FunctionReader:
    """Reads the functions of a listing."""

    listing: Listing
    signatures: Signatures
    _kinds: dict[int, _OpKind] = field(default_factory=dict)
    _types: dict[int, int] = field(default_factory=dict)  # of the listing -> of the signatures

    def read(self, name: str) -> Function:
        """The body of a function.

        Raises ShardlogError for dynamic shapes, tuples, regions of several blocks and functions that do not
        end in a return.
        """
        op = self.listing.functions[name]
        function = Function(name, self.listing.ops[op].opview)
        _FunctionBody(self, function, op).read()
        return function

    def type(self, number: int, value: int) -> int:
        """The type of the listing's values with this type; ``value`` is the first of them."""
        if number not in self._types:
            self._types[number] = self.signatures.type(*self.listing.type_of(value))
        return self._types[number]


class _FunctionBody:
    """Reads a function. Its ops, values and regions are numbered from 0; ``op``, ``first_value`` and
    ``first_region`` are the first ones in the listing."""

    def __init__(self, bodies: FunctionReader, function: Function, op: int) -> None:
        self.bodies, self.function = bodies, function
        self.listing = listing = bodies.listing
        self.op, self.end = op + 1, int(listing.ends[op])
        self.first_value, self.first_region = int(listing.first_results[op]), int(listing.regions[op + 1])
        ends = (*listing.first_results[self.end : self.end + 1].tolist(), len(listing.types))
        self.values = slice(self.first_value, ends[0])
        count = int(np.count_nonzero(listing.owners[self.first_region :] < self.end))
        self.regions = slice(self.first_region, self.first_region + count)
        self.kinds = listing.kinds[self.op : self.end]
        self.offsets = listing.operand_offsets[self.op : self.end + 1]
        inner_first = listing.inner_first[op - 1 :][: len(self.kinds)]  # the module and this function wait
        self.inner_first = inner_first - np.int32(self.op)

    def read(self) -> None:
        function, listing, op = self.function, self.listing, self.op
        self.check_regions()
        function.ops = listing.ops[op : self.end]
        definers = listing.definers[self.values]
        function.definer = column(np.where(definers >= 0, definers - op, -1))
        function.types = column(self.types())
        function.parent = column(np.maximum(listing.parents[op : self.end] - op, -1))
        function.region = column(listing.regions[op : self.end] - self.first_region)
        first = listing.first_results[op : self.end] - self.first_value
        function.results = Results(first, listing.results[op : self.end])
        flat = listing.operands[self.offsets[0] : self.offsets[-1]] - self.first_value
        self.check_operands(flat)
        function.operands = Operands(flat, self.offsets - self.offsets[0])
        self.read_regions()
        kinds = self.read_kinds()
        self.read_edges(kinds, flat)
        self.read_special(kinds)
        self.read_boundary()

    def check_regions(self) -> None:
        """Raises ShardlogError for regions that have several blocks, or nest too deeply."""
        listing = self.listing
        for region in (np.nonzero(listing.blocks[self.regions] != 1)[0] + self.first_region).tolist():
            around = listing.ops[listing.owners[region]]
            raise ShardlogError(
                f"a region of {around.name} has {listing.blocks[region]} blocks",
                where=location(around),
                hint="only structured control flow (stablehlo.while, stablehlo.case) is supported",
            )
        depths = [0]
        for owner in listing.owners[self.regions][1:].tolist():
            depths.append(depths[listing.regions[owner] - self.first_region] + 1)
            if depths[-1] > _DEEPEST:
                hint = f"at most {_DEEPEST} levels are supported; move the inner ones into a function"
                where = location(listing.ops[owner])
                raise ShardlogError("regions nest too deeply", where=where, hint=hint)

    def check_operands(self, flat: Ints) -> None:
        """Raises ShardlogError for an op that uses a later value, as is possible inside of ops that MLIR does
        not know."""
        for at in np.nonzero(flat < 0)[0][:1].tolist():
            node = int(np.searchsorted(self.offsets - self.offsets[0], at, side="right")) - 1
            op, hint = self.function.ops[node], "put it after the ops whose results it uses"
            raise ShardlogError(
                f"{op.name} uses a value that is defined later", where=location(op), hint=hint
            )

    def types(self) -> Ints:
        """The types of the values."""
        listed = self.listing.types[self.values]
        if not len(listed):
            return listed
        present, first, _ = distinct(listed)
        numbers = np.empty(int(present.max()) + 1, np.int32)
        values = (first + self.first_value).tolist()
        numbers[present] = [self.bodies.type(*pair) for pair in zip(present.tolist(), values, strict=True)]
        types: Ints = numbers[listed]
        return types

    def read_regions(self) -> None:
        """The regions of nodes, those inside of others first."""
        function, listing = self.function, self.listing
        region_of = np.asarray(function.region, np.int32)
        inside = np.nonzero(region_of)[0]
        inside = inside[np.argsort(region_of[inside], kind="stable")]
        count = self.regions.stop - self.regions.start
        bounds = np.searchsorted(region_of[inside], np.arange(1, count + 1)).tolist()
        nodes = inside.tolist()
        first = (listing.first_arguments[self.regions] - self.first_value).tolist()
        behind = (np.asarray(first) + listing.arguments[self.regions]).tolist()
        function.arguments = list(range(first[0], behind[0]))
        owners = (listing.owners[self.regions] - self.op).tolist()
        by_owner: dict[int, tuple[Region, ...]] = {}
        for r in range(1, count):
            region = Region(tuple(range(first[r], behind[r])), tuple(nodes[bounds[r - 1] : bounds[r]]))
            by_owner[owners[r]] = (*by_owner.get(owners[r], ()), region)
        if by_owner:
            with_regions = np.zeros(len(function.ops), bool)
            with_regions[list(by_owner)] = True
            inner_first = self.inner_first[with_regions[self.inner_first]]
            function.regions = {node: by_owner[node] for node in inner_first.tolist()}

    def read_kinds(self) -> dict[int, _OpKind]:
        """Gives the nodes signatures, in the order of ``inner_first``. Returns the kinds of the listing that
        there are here."""
        function, signatures, all_kinds = self.function, self.bodies.signatures, self.bodies._kinds
        ordered = self.kinds[self.inner_first]
        kinds, first, counts = distinct(ordered)
        by_number, looking = dict[int, _OpKind](), list[int]()
        of_kind = np.full(int(kinds.max()) + 1, -1, np.int32)
        names = np.empty(len(of_kind), object)
        groups = list(zip(first.tolist(), kinds.tolist(), counts.tolist(), strict=True))
        for at, number, _ in groups:
            if number not in all_kinds:
                all_kinds[number] = self.kind(int(self.inner_first[at]))
            by_number[number] = all_kinds[number]
            names[number] = all_kinds[number].name
            if all_kinds[number].looks_at:
                looking.append(number)
        waiting = [(at, number, count) for at, number, count in groups if number not in looking]
        for number in looking:
            waiting += [(at, number, 1) for at in np.nonzero(ordered == number)[0].tolist()]
        alone: dict[int, int] = {}
        for at, number, count in sorted(waiting):
            kind, node = by_number[number], int(self.inner_first[at])
            op = function.ops[node]
            if kind.looks_at:
                key = (*kind.key, repr(surroundings(op, kind.looks_at)))
                alone[node] = signatures.number(key, op, 1)
            else:
                of_kind[number] = signatures.number(tuple(kind.key), op, count)
        function.names = names[self.kinds].tolist()
        function.signature = column(of_kind[self.kinds])
        for node, signature in alone.items():
            function.signature[node] = signature
        return by_number

    def kind(self, node: int) -> _OpKind:
        """The kind of a node."""
        function, signatures = self.function, self.bodies.signatures
        types, op = function.types, function.ops[node]
        name, first = op.name, function.results.first[node]
        held = types[first : first + function.results.counts[node]]
        operands = [types[value] for value in function.operands[node]]
        kind = _OpKind(name, [name, *operands, -1, *held], looks_at=signatures.looks_at.get(name, ()))
        of_sdy = name.startswith("sdy.")
        pairs = attributes(op)
        for label, attribute in pairs:
            if of_sdy and label in _ANNOTATIONS:
                continue
            _check_known([label], op)
            content = signatures.attribute(attribute)
            if label == "sdy.sharding":
                # An op without results may still have one sharding, a maximal one, which is kept.
                kind.shardings = tuple(sdy.TensorShardingPerValueAttr(attribute).shardings)
            elif "." in label and label != RULE:  # notes of other tools
                kind.data = (*kind.data, label, content)
            elif isinstance(content, Elements) and not operands and content.type in held:
                kind.data = (*kind.data, label, content)
                kind.key += [label, content.type]
            else:
                kind.key += [label, content.number if isinstance(content, Elements) else content]
        if len(pairs) != len(op.attributes):  # complex elements, which MLIR's bindings cannot hold
            kind.data = (*kind.data, "text", str(op))
        if node in function.regions:
            ends = function.operands
            regions = function.regions[node]
            kind.key.append(
                tuple((len(r.arguments), len(ends[r.nodes[-1]]) if r.nodes else 0) for r in regions)
            )
        if name == "func.call":
            callee: Any = op.attributes["callee"]
            kind.callee = callee.value
        elif of_sdy:
            _read_sdy(kind, op)
        return kind

    def read_edges(self, kinds: dict[int, _OpKind], flat: Ints) -> None:
        """The result of a data-flow edge is another name for the value that owns the edge."""
        function = self.function
        edges = self.nodes(kinds, lambda kind: kind.name in _EDGES)
        if edges:
            names = np.arange(len(function.types), dtype=np.int32)
            for node in edges:
                (result,) = function.results[node]
                names[result] = names[function.operands[node][0]]
                function.flow_edges[node] = int(names[result])
            function.operands = Operands(names[flat], self.offsets - self.offsets[0])
        function.given = function.operands.values[:]
        ordered = np.ones(len(function.ops), bool)
        ordered[edges] = False
        function.order = column(np.nonzero(ordered)[0])

    def read_special(self, kinds: dict[int, _OpKind]) -> None:
        """The facts about nodes beyond their signatures."""
        function = self.function
        data = np.empty(max(kinds) + 1, np.int32)
        data[list(kinds)] = [self.bodies.signatures.data(kind.data) for kind in kinds.values()]
        function.data = column(data[self.kinds])
        for node in self.nodes(kinds, lambda kind: kind.special):
            kind, results = kinds[int(self.kinds[node])], function.results[node]
            function.attributes.update(zip(results, kind.shardings, strict=False))
            if kind.sharding is not None:
                function.attributes[function.flow_edges.get(node, results.start)] = kind.sharding
            if kind.callee:
                function.calls[node] = kind.callee
            if kind.group is not None:
                function.groups.append((function.operands[node][0], kind.group, node))
            if kind.name == "sdy.sharding_constraint":
                function.constraints.append(node)
                if INSERTED in kind.data:
                    function.inserted.append(node)
        bounded = {*self.nodes(kinds, lambda kind: kind.bounded)}
        if bounded:
            function.boundaries = [node for node in self.inner_first.tolist() if node in bounded]

    def nodes(self, kinds: dict[int, _OpKind], wanted: Callable[[_OpKind], bool]) -> list[int]:
        """The nodes of certain kinds."""
        fitting = [number for number, kind in kinds.items() if wanted(kind)]
        if not fitting:
            return []
        chosen = np.zeros(max(kinds) + 1, bool)
        chosen[fitting] = True
        nodes: list[int] = chosen[self.kinds].nonzero()[0].tolist()
        return nodes

    def read_boundary(self) -> None:
        """The facts about a function's arguments and results."""
        function, held = self.function, self.function.op.attributes
        function.terminator = int(np.nonzero(self.listing.parents[self.op : self.end] == self.op - 1)[0][-1])
        end, returned = function.ops[function.terminator], function.operands[function.terminator]
        numbers, types = self.bodies.signatures.types, function.types
        if end.name != "func.return" and (  # MLIR lets unknown ops end a block
            [types[v] for v in returned] != [numbers.get(t) for t in function.op.type.results]
        ):
            message = f"function @{function.name} ends in {end.name}"
            hint = "expected func.return with its results"
            raise ShardlogError(message, where=location(end), hint=hint)
        _check_known(held, function.op)
        for label in ("arg_attrs", "res_attrs"):
            for entry in boundary_attributes(function.op, label):
                _check_known(entries_of(entry), function.op)
        entries: Any = held.get("arg_attrs", [])
        for value, entry in zip(function.arguments, entries, strict=False):
            if (sharding := sharding_of(entry)) is not None:
                function.attributes[value] = sharding
        entries = held["res_attrs"] if "res_attrs" in held else [{}] * len(returned)
        function.result_attributes = [sharding_of(entry) for entry in entries]


def _check_known(labels: Iterable[str], op: Operation) -> None:
    """Raises ShardlogError for an unknown attribute of sdy."""
    for label in labels:
        if label.startswith("sdy.") and label not in _OF_SDY:
            raise ShardlogError(f"attribute {label} is not known", where=location(op), hint=newer())


def _read_sdy(kind: _OpKind, op: ir.Operation) -> None:
    held: Any = op.attributes
    if op.name == "sdy.sharding_group":
        kind.group = held["group_id"].value
        return
    for label in RESULT_SHARDING:
        if label in held and len(op.results) == 1:
            kind.sharding = held[label]
    kind.bounded = op.name == "sdy.named_computation" or any(label in held for label in _BOUNDARIES)

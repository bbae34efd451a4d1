"""One function of a module as columns and lists: values, nodes (operations), uses and annotations.

Values and nodes are numbered from 0 within the function. Nothing here knows the meaning of ops. The rules'
answers about signatures are looked up later.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxlib.mlir import ir

from ..errors import ShardlogError
from .columns import Operands, Results, column, numbers
from .mlir.origins import location_text, origin
from .mlir.types import Attributes, Operation
from .shardings import Sharding
from .signature import LooksAt

if TYPE_CHECKING:
    from .manual import Manual

# The attributes that hold the sharding of an op's only result.
RESULT_SHARDING = ("sharding", "out_sharding")


@dataclass(frozen=True)
class Elements:
    """The elements of a tensor. They are data, which no rule reads, where the op has no operands and a result
    of the same type: it is a constant."""

    type: int
    number: int


@dataclass(frozen=True)
class Region:
    """A region of a node: its block arguments (values), the node that ends it, and its nodes in order."""

    arguments: tuple[int, ...]
    nodes: tuple[int, ...]


@dataclass
class Signatures:
    """Distinct ops: equal name, types and attributes; with one op each that stands for all.

    ``looks_at`` says of which ops (by name) the surroundings are part of the signature, see ``signature.py``.
    ``dynamic``: tensors of dynamic shape have no sharding; otherwise they are an error.
    """

    looks_at: LooksAt = field(default_factory=dict)
    dynamic: bool = False
    types: dict[ir.Type, int] = field(default_factory=dict)
    shapes: list[tuple[int, ...] | None] = field(default_factory=list)  # per type; None: not a tensor
    examples: list[Any] = field(default_factory=list)  # an op per signature
    counts: list[int] = field(default_factory=list)
    _numbers: dict[Hashable, int] = field(default_factory=dict)
    _keys: list[tuple[Hashable, ...]] = field(default_factory=list)
    _data: dict[tuple[Hashable, ...], int] = field(default_factory=dict)
    _words: dict[int, str | None] = field(default_factory=dict)  # types and attributes that text says wholly
    attribute_keys: dict[ir.Attribute, Any] = field(default_factory=dict)

    def type(self, type_: ir.Type, where: Operation) -> int:
        number = self.types.get(type_)
        if number is None:
            number = self.types[type_] = len(self.shapes)
            self.shapes.append(_shape(type_, where, self.dynamic))
            self._words[number] = str(type_)
        return number

    def attribute(self, attribute: ir.Attribute) -> Any:
        """A key that identifies an attribute: a number below those of types. For the elements of a tensor
        it is an ``Elements`` with such a number."""
        key = self.attribute_keys.get(attribute)
        if key is None:
            elements = isinstance(attribute, (ir.DenseElementsAttr, ir.DenseResourceElementsAttr))
            number = len(self.attribute_keys)
            key = Elements(self.types.get(attribute.type, -2), -3 - number) if elements else -3 - number
            self.attribute_keys[attribute] = key
            self._words[-3 - number] = None if elements else str(attribute)
        return key

    def data(self, contents: tuple[Hashable, ...]) -> int:
        """A number for the data of ops beyond their signatures."""
        return self._data.setdefault(contents, len(self._data))

    def number(self, key: tuple[Hashable, ...], op: Operation | None, count: int = 1) -> int:
        """The signature with a key that ``count`` more ops have, of which ``op`` is one."""
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.examples)
            self.examples.append(op)
            self.counts.append(0)
            self._keys.append(key)
        self.counts[number] += count
        return number

    @property
    def names(self) -> list[str]:
        """The names of the ops, by signature."""
        return [str(name) for name, *_ in self._keys]

    def wording(self, number: int) -> tuple[Hashable, ...] | None:
        """The facts of a signature, in words that are the same in all modules; None where there are
        none."""
        name, *rest = self._keys[number]
        words = [self._words.get(part, part) if isinstance(part, int) else part for part in rest]
        return None if None in words or str(name).startswith("sdy.") else (name, *words)


def _shape(type_: ir.Type, where: Operation, dynamic: bool) -> tuple[int, ...] | None:
    if isinstance(type_, ir.RankedTensorType):
        if not type_.has_static_shape:
            if dynamic:
                return None
            raise ShardlogError(
                f"dynamic shape {type_}", where=location(where), hint="lower the program with static shapes"
            )
        return tuple(type_.shape)
    if isinstance(type_, ir.TupleType):
        raise ShardlogError(
            f"tuple type {type_}", where=location(where), hint="return the parts as separate results"
        )
    if isinstance(type_, ir.UnrankedTensorType):
        raise ShardlogError(
            f"unranked tensor {type_}", where=location(where), hint="give the tensor a static shape"
        )
    if isinstance(type_, ir.ShapedType):
        hint = "expected tensors; partition the program before it has buffers and vectors"
        raise ShardlogError(f"{type_} is not a tensor", where=location(where), hint=hint)
    return None


def location(op: Operation) -> str:
    """The place of an op in the source, for messages: with its column, where that is all of its location."""
    text = location_text(op)
    place = origin(text)
    if len(place.frames) == 1 and not place.names:
        return text.replace('"', "")
    return place.line or place.path or f"op {op.operation.name}"


@dataclass
class Function:
    """A function body. Columns are indexed by value (``types``, ``definer``) or by node (the rest)."""

    name: str
    op: Any
    types: array[int] = field(default_factory=column)
    definer: array[int] = field(default_factory=column)  # the node a value is a result of; -1: block argument
    arguments: list[int] = field(default_factory=list)
    terminator: int = -1
    ops: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    data: array[int] = field(default_factory=column)  # the data of an op beyond its signature
    signature: array[int] = field(default_factory=column)
    operands: Operands = field(default_factory=Operands)
    results: Results = field(default_factory=Results)
    parent: array[int] = field(default_factory=column)  # the node around a node; -1: the function
    region: array[int] = field(default_factory=column)  # the region of a node, numbered over the function
    regions: dict[int, tuple[Region, ...]] = field(default_factory=dict)
    order: array[int] = field(default_factory=column)  # nodes in program order, outer before inner
    calls: dict[int, str] = field(default_factory=dict)
    attributes: dict[int, ir.Attribute] = field(default_factory=dict)  # value -> its #sdy.sharding
    result_attributes: list[ir.Attribute | None] = field(default_factory=list)
    annotations: dict[int, Sharding] = field(default_factory=dict)  # the same, read
    result_annotations: list[Sharding | None] = field(default_factory=list)
    groups: list[tuple[int, int, int]] = field(default_factory=list)  # value, group id, node
    constraints: list[int] = field(default_factory=list)
    inserted: list[int] = field(default_factory=list)  # those that completion has put in
    flow_edges: dict[int, int] = field(default_factory=dict)  # a node that is a data-flow edge -> its owner
    # Nodes that name the shardings of what enters and leaves; of manual computations: the axes of what does,
    # what they want of their operands, and their axes in order.
    boundaries: list[int] = field(default_factory=list)
    manual: dict[int, Manual] = field(default_factory=dict)
    entering: dict[int, tuple[Sharding, ...]] = field(default_factory=dict)
    manual_axes: dict[int, list[str]] = field(default_factory=dict)
    # Annotations that are specs of a manual computation, by value: its node, and which spec: "in_specs[0]".
    specs: dict[int, tuple[int, str]] = field(default_factory=dict)
    originals: dict[int, int] = field(default_factory=dict)  # copy of a constant's node -> the node
    split: set[int] = field(default_factory=set)  # nodes of constants that are the last copy themselves
    flows: set[int] = field(default_factory=set)  # values whose sharding is that of a data-flow edge
    removed: set[int] = field(default_factory=set)
    given: array[int] = field(default_factory=column)  # the operands of the module, one node after the other
    moved: set[int] = field(default_factory=set)  # constraints that stand elsewhere than in the module
    # Constraints that are not in the module: whose operand they constrain, and its index.
    created: dict[int, tuple[int, int]] = field(default_factory=dict)

    def source(self, node: int) -> int:
        """The node of the module behind a node: the original of a copy; for a constraint that import
        created, the node that it was created for."""
        while node in self.originals or node in self.created:
            node = self.originals[node] if node in self.originals else self.created[node][0]
        return node

    @property
    def calls_in_order(self) -> list[int]:
        """The nodes that are calls, in program order."""
        if not self.calls:
            return []
        order, called = numbers(self.order), np.zeros(len(self.ops), bool)
        called[list(self.calls)] = True
        calls: list[int] = order[called[order]].tolist()
        return calls

    def manual_around(self, value: int) -> int:
        """The innermost manual computation that a value is inside of; -1: none."""
        node, _ = self.block(value)
        while node >= 0 and node not in self.entering:
            node = self.parent[node]
        return node

    def block(self, value: int) -> tuple[int, int]:
        """The node around ``value`` (-1: the function) and the number of its region."""
        if self.definer[value] >= 0:
            return self.parent[self.definer[value]], self.region[self.definer[value]]
        for parent, regions in self.regions.items():
            for region in regions:
                if value in region.arguments:
                    return parent, self.region[region.nodes[0]]
        return -1, 0

    def new_value(self, type_: int, definer: int) -> int:
        self.types.append(type_)
        self.definer.append(definer)
        return len(self.types) - 1


def sharding_of(entry: Attributes) -> ir.Attribute | None:
    """The sharding in the attributes of a function argument or result."""
    sharding: ir.Attribute | None = None
    if "sdy.sharding" in entry:
        sharding = entry["sdy.sharding"]
    return sharding

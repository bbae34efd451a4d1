"""One function of a module as plain lists: values, nodes (operations), uses and annotations.

Values and nodes are numbered from 0 within the function. Nothing here knows what an op does; what the rules
say about its signature is looked up later.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ..errors import ShardlogError
from .shardings import Sharding
from .signature import LooksAt, attributes, surroundings

if TYPE_CHECKING:
    from .manual import Manual

_RULE = "sdy.sharding_rule"
# The attributes that hold the sharding of an op's only result.
RESULT_SHARDING = ("sharding", "out_sharding")
# ... and those of what enters a computation with a body and leaves it.
_BOUNDARIES = ("in_shardings", "out_shardings")
_EDGES = ("sdy.data_flow_edge", "sdy.func_data_flow_edge")
_DEEPEST = 100  # levels of regions; what walks over them recurses
_ANNOTATIONS = frozenset({*RESULT_SHARDING, "group_id"})


@dataclass(frozen=True)
class _Elements:
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
    attribute_keys: dict[ir.Attribute, Any] = field(default_factory=dict)

    def type(self, type_: ir.Type, where: Any) -> int:
        number = self.types.get(type_)
        if number is None:
            number = self.types[type_] = len(self.shapes)
            self.shapes.append(_shape(type_, where, self.dynamic))
        return number

    def attribute(self, attribute: ir.Attribute) -> Any:
        """A key that identifies an attribute: a number below those of types, or for the elements of a
        tensor an ``_Elements`` with such a number."""
        key = self.attribute_keys.get(attribute)
        if key is None:
            elements = isinstance(attribute, (ir.DenseElementsAttr, ir.DenseResourceElementsAttr))
            number = len(self.attribute_keys)
            key = _Elements(self.types.get(attribute.type, -2), -3 - number) if elements else -3 - number
            self.attribute_keys[attribute] = key
        return key

    def number(self, key: Hashable, op: Any) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.examples)
            self.examples.append(op)
            self.counts.append(0)
        self.counts[number] += 1
        return number


def _shape(type_: ir.Type, where: Any, dynamic: bool) -> tuple[int, ...] | None:
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
    return None


def location(op: Any) -> str:
    """The source location of an op, as MLIR prints it."""
    text = str(op.location)
    return (
        text.removeprefix("loc(").removesuffix(")").replace('"', "")
        if text != "loc(unknown)"
        else f"op {op.operation.name}"
    )


@dataclass
class Function:
    """A function body. Lists are indexed by value (``types``, ``definer``) or by node (the rest)."""

    name: str
    op: Any
    types: list[int] = field(default_factory=list)
    definer: list[int] = field(
        default_factory=list
    )  # the node that a value is a result of; -1: block argument
    arguments: list[int] = field(default_factory=list)
    terminator: int = -1
    ops: list[Any] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    data: dict[int, tuple[Hashable, ...]] = field(default_factory=dict)  # what an op has beyond its signature
    signature: list[int] = field(default_factory=list)
    operands: list[tuple[int, ...]] = field(default_factory=list)
    results: list[range] = field(default_factory=list)
    parent: list[int] = field(default_factory=list)  # the node around a node; -1: the function
    region: list[int] = field(default_factory=list)  # the region of a node, numbered over the function
    regions: dict[int, tuple[Region, ...]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)  # nodes in program order, outer before inner
    calls: dict[int, str] = field(default_factory=dict)
    attributes: dict[int, ir.Attribute] = field(default_factory=dict)  # value -> its #sdy.sharding
    result_attributes: list[ir.Attribute | None] = field(default_factory=list)
    annotations: dict[int, Sharding] = field(default_factory=dict)  # the same, read
    result_annotations: list[Sharding | None] = field(default_factory=list)
    groups: list[tuple[int, int, int]] = field(default_factory=list)  # value, group id, node
    constraints: list[int] = field(default_factory=list)
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
    flows: set[int] = field(default_factory=set)  # values whose sharding is that of a data-flow edge
    removed: set[int] = field(default_factory=set)
    rewired: dict[int, set[int]] = field(
        default_factory=dict
    )  # operands (by node) that are not the module's any more
    moved: set[int] = field(default_factory=set)  # constraints that stand elsewhere than in the module
    # Constraints that are not in the module: whose operand they constrain, and its index.
    created: dict[int, tuple[int, int]] = field(default_factory=dict)

    def source(self, node: int) -> int:
        """The node of the module behind a node: the original of a copy; for a constraint that import
        created, the node that it was created for."""
        while node in self.originals or node in self.created:
            node = self.originals[node] if node in self.originals else self.created[node][0]
        return node

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


def sharding_of(entry: Any) -> ir.Attribute | None:
    """The sharding in the attributes of a function argument or result."""
    found: ir.Attribute | None = None
    if "sdy.sharding" in entry:
        found = entry["sdy.sharding"]
    return found


def read_function(func: Any, signatures: Signatures) -> Function:
    """The body of a ``func.func``. Raises ShardlogError for dynamic shapes, tuples, regions of several
    blocks and functions that do not end in a return."""
    function = Function(func.sym_name.value, func)
    reader = _Reader(function, signatures)
    region = reader.read_region(func.regions[0], -1, func)
    function.order = [n for n in range(len(function.ops)) if n not in function.flow_edges]
    function.arguments = list(region.arguments)
    function.terminator = region.nodes[-1]
    end = function.ops[function.terminator]
    if [value.type for value in end.operands] != list(func.type.results):  # MLIR lets unknown ops end a block
        message = f"function @{function.name} ends in {function.names[function.terminator]}"
        raise ShardlogError(message, where=location(end), hint="it ends in func.return, of what it returns")
    attributes = func.attributes
    if "arg_attrs" in attributes:
        for value, entry in zip(function.arguments, attributes["arg_attrs"], strict=True):
            if "sdy.sharding" in entry:
                function.attributes[value] = entry["sdy.sharding"]
    returned = function.operands[function.terminator]
    entries: Any = attributes["res_attrs"] if "res_attrs" in attributes else [{}] * len(returned)
    function.result_attributes = [sharding_of(entry) for entry in entries]
    return function


def _without_annotations(key: list[Hashable]) -> list[Hashable]:
    """A key without the attributes by which sdy ops annotate values; attributes are in it as label and
    key."""
    found: list[Hashable] = []
    skip = False
    for part in key:
        if not skip and part not in _ANNOTATIONS:
            found.append(part)
        skip = not skip and part in _ANNOTATIONS
    return found


class _Reader:
    def __init__(self, function: Function, signatures: Signatures) -> None:
        self.function, self.signatures = function, signatures
        self.numbers: dict[Any, int] = {}  # by ir.Value
        self.regions = self.depth = 0

    def read_region(self, region: Any, parent: int, around: Any) -> Region:
        function, signatures, numbers = self.function, self.signatures, self.numbers
        number = self.regions
        self.regions += 1
        block, arguments = self._read_block(region, around)
        nodes: list[int] = []
        # Names of the hot loop: it runs once per op of the program.
        types, ops, signature = function.types, function.ops, function.signature
        add_node, add_op, add_signature = nodes.append, ops.append, signature.append
        add_parent, add_region, add_name = (
            function.parent.append,
            function.region.append,
            function.names.append,
        )
        add_operands, add_results = function.operands.append, function.results.append
        add_type, add_definer = types.append, function.definer.append
        type_number, number_of, looks_at = signatures.types, signatures.number, signatures.looks_at
        read_attributes = self._read_attributes
        for op in block.operations:
            node = len(ops)
            add_node(node)
            add_op(op)
            add_signature(-1)
            add_parent(parent)
            add_region(number)
            operands = tuple([numbers[value] for value in op.operands])
            add_operands(operands)
            first = len(types)
            for result in op.results:
                type_ = result.type
                kind = type_number.get(type_)
                numbers[result] = len(types)
                add_type(signatures.type(type_, op) if kind is None else kind)
                add_definer(node)
            add_results(range(first, len(types)))
            name = op.name
            if name.__class__ is not str:  # some ops have an attribute called name
                name = op.operation.name
            add_name(name)
            key: list[Hashable] = [name, *[types[value] for value in operands], -1, *types[first:]]
            read_attributes(op, node, key, () if operands else types[first:])
            inner = op.regions
            if len(inner):
                key.append(self._read_regions(inner, node, op))
            if name in looks_at:
                key.append(repr(surroundings(op, looks_at[name])))
            if name.startswith("sdy."):
                self._read_sdy(node, op)
                key = _without_annotations(key)
            elif name == "func.call":
                function.calls[node] = op.attributes["callee"].value
            signature[node] = number_of(tuple(key), op)
        return Region(arguments, tuple(nodes))

    def _read_block(self, region: Any, around: Any) -> tuple[Any, tuple[int, ...]]:
        """The only block of a region, and its arguments, which become values."""
        blocks = list(region.blocks)
        if len(blocks) != 1:
            raise ShardlogError(
                f"a region of {around.operation.name} has {len(blocks)} blocks",
                where=location(around),
                hint="only structured control flow (stablehlo.while, stablehlo.case) is supported",
            )
        arguments = []
        for argument in blocks[0].arguments:
            value = self.function.new_value(self.signatures.type(argument.type, around), -1)
            self.numbers[argument] = value
            arguments.append(value)
        return blocks[0], tuple(arguments)

    def _read_attributes(self, op: Any, node: int, key: list[Hashable], held: Sequence[int]) -> None:
        """Adds the attributes of an op to its key; ``held`` are the types of the results of an op without
        operands, whose elements tell constants apart and not signatures."""
        key_of, data = self.signatures.attribute_keys, self.function.data
        pairs = attributes(op)
        for label, attribute in pairs:
            told = key_of.get(attribute)
            if told is None:
                told = self.signatures.attribute(attribute)
            if "." in label and label != _RULE:  # annotations of values, and notes of other tools
                if label == "sdy.sharding":
                    self._annotate(node, attribute)
                else:
                    data[node] = (*data.get(node, ()), label, told)
                continue
            if told.__class__ is _Elements:
                if told.type in held:
                    data[node] = (*data.get(node, ()), label, told)
                    told = told.type
                else:
                    told = told.number
            key.append(label)
            key.append(told)
        if len(pairs) != len(op.attributes):  # complex elements, which MLIR's bindings cannot hold
            data[node] = (*data.get(node, ()), "text", str(op.operation))

    def _read_regions(self, regions: Any, node: int, op: Any) -> Hashable:
        function = self.function
        self.depth += 1
        if self.depth > _DEEPEST:
            hint = f"at most {_DEEPEST} levels; put what is inside into a function, and call it"
            raise ShardlogError("regions nest too deeply", where=location(op), hint=hint)
        read = tuple([self.read_region(region, node, op) for region in regions])
        self.depth -= 1
        function.regions[node] = read
        return tuple((len(r.arguments), len(function.operands[r.nodes[-1]]) if r.nodes else 0) for r in read)

    def _annotate(self, node: int, attribute: ir.Attribute) -> None:
        from jaxlib.mlir.dialects import sdy

        # An op without results may have one sharding all the same, a maximal one: it stays as it is.
        shardings = sdy.TensorShardingPerValueAttr(attribute).shardings
        self.function.attributes.update(zip(self.function.results[node], shardings, strict=False))

    def _read_sdy(self, node: int, op: Any) -> None:
        function, name = self.function, op.operation.name
        if name == "sdy.sharding_group":
            function.groups.append((function.operands[node][0], op.attributes["group_id"].value, node))
            return
        if name in _EDGES:  # its result is another name for the value that owns the edge
            function.flow_edges[node] = self.numbers[op.results[0]] = function.operands[node][0]
        for label in RESULT_SHARDING:
            if label in op.attributes and len(function.results[node]) == 1:
                function.attributes[self.numbers[op.results[0]]] = op.attributes[label]
        if name == "sdy.named_computation" or any(label in op.attributes for label in _BOUNDARIES):
            function.boundaries.append(node)
        if name == "sdy.sharding_constraint":
            function.constraints.append(node)

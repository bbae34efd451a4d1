"""The signature of an op: the part of it that op rules see, as facts.

A signature is the op's name, types, attributes and the shapes of its regions; for ops whose rules ask for
it (``looks_at`` in ``rules/ops``) also the ops around it. Annotations (shardings, frontend attributes) and
the values of constants are no part of it. The facts belong to the relations of ``rules/ops/schema.dl``,
without the key.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _stablehlo as stablehlo  # without the classes of ops
from jaxlib.mlir.dialects import sdy

from .affine import linear
from .elements import bits_of
from .factors import MARKED, PASS_THROUGH
from .mlir.types import Operation

Rows = list[tuple[Any, ...]]
Facts = dict[str, Rows]
StaticFacts = tuple[tuple[str, tuple[tuple[Any, ...], ...]], ...]  # by name, unchanging
Tensor = tuple[int, tuple[tuple[int, int], ...], tuple[Any, ...]]  # rank, (dimension, size), (element, bits)
LooksAt = Mapping[str, Sequence[str]]  # op name -> "operands", "users", "regions"

RULE = "sdy.sharding_rule"
_LARGEST_LIST = 1024  # longer lists and strings are data, which no rule reads
_MOST_PARTS = 100_000  # of an attribute: aliases make a few lines of text as many as one likes
_ELEMENTS = (ir.DenseElementsAttr, ir.DenseResourceElementsAttr)
_NUMBERS = (ir.FloatAttr, ir.IntegerAttr)
_LISTS = (
    ir.DenseI64ArrayAttr,
    ir.DenseI32ArrayAttr,
    ir.DenseI16ArrayAttr,
    ir.DenseI8ArrayAttr,
    ir.DenseBoolArrayAttr,
)
_SHARDINGS = (sdy.TensorShardingAttr, sdy.TensorShardingPerValueAttr, sdy.ManualAxesAttr)
_FIELD = re.compile(
    r"(\w+) = \[(-?\d{1,18}(?:, -?\d{1,18})*)\]"
)  # as in #chlo.ragged_dot<lhs_ragged_dimensions = [0]>
_FIELDS: dict[Any, tuple[str, ...]] = {
    stablehlo.DotDimensionNumbers: (
        "lhs_batching_dimensions",
        "rhs_batching_dimensions",
        "lhs_contracting_dimensions",
        "rhs_contracting_dimensions",
    ),
    stablehlo.GatherDimensionNumbers: (
        "offset_dims",
        "collapsed_slice_dims",
        "operand_batching_dims",
        "start_indices_batching_dims",
        "start_index_map",
        "index_vector_dim",
    ),
    stablehlo.ScatterDimensionNumbers: (
        "update_window_dims",
        "inserted_window_dims",
        "input_batching_dims",
        "scatter_indices_batching_dims",
        "scattered_dims_to_operand_dims",
        "index_vector_dim",
    ),
    stablehlo.ConvDimensionNumbers: (
        "input_batch_dimension",
        "input_feature_dimension",
        "input_spatial_dimensions",
        "kernel_input_feature_dimension",
        "kernel_output_feature_dimension",
        "kernel_spatial_dimensions",
        "output_batch_dimension",
        "output_feature_dimension",
        "output_spatial_dimensions",
    ),
}


def looks_at(rows: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """The relation ``looks_at`` of the op rules by op name: which of its surroundings belong to an op's
    signature."""
    by_name: dict[str, tuple[str, ...]] = {}
    for name, surrounding in sorted(rows):
        by_name[name] = (*by_name.get(name, ()), surrounding)
    return by_name


@dataclass(frozen=True)
class DescribedParts:
    """The facts of types and attributes, for ops of the same context."""

    tensors: dict[ir.Type, Tensor] = field(default_factory=dict)
    attributes: dict[tuple[str, ir.Attribute], Facts] = field(default_factory=dict)

    def tensor(self, kind: ir.Type) -> Tensor:
        """The facts of a type."""
        facts = self.tensors.get(kind)
        if facts is None:
            facts = self.tensors[kind] = _tensor(kind)
        return facts

    def attribute(self, label: str, attribute: ir.Attribute) -> Facts:
        """The facts of an attribute."""
        facts = self.attributes.get((label, attribute))
        if facts is None:
            facts = self.attributes[label, attribute] = {}
            _add_attribute(facts, label, attribute)
        return facts


def describe(
    op: Operation, multiple_uses: bool, looks_at: LooksAt, parts: DescribedParts | None = None
) -> Facts:
    """The facts of the op's signature: relation -> tuples without the key, where there are any.

    ``parts`` remembers the facts of types and attributes, for calls with ops of the same context.
    """
    op = op.operation  # whose attributes never hide its name
    results = op.results.types
    parts = parts or DescribedParts()
    held = [parts.tensor(v.type) for v in op.operands]
    count = len(held)
    held += map(parts.tensor, results)
    facts: Facts = {"op": [(op.name,)]}
    if held:
        facts["slot"] = [
            (t, "operand", t, rank) if t < count else (t, "result", t - count, rank)
            for t, (rank, _, _) in enumerate(held)
        ]
    if dims := [(t, d, size) for t, (_, shape, _) in enumerate(held) for d, size in shape]:
        facts["dim"] = dims
    if elements := [(t, *element) for t, (_, _, element) in enumerate(held) if element]:
        facts["element"] = elements
    for label, attribute in attributes(op):
        if label == RULE:
            _add_rule(facts, sdy.OpShardingRuleAttr(attribute))
        elif "." not in label and not (_is_value(attribute, results) and not count):
            for name, rows in parts.attribute(label, attribute).items():
                facts.setdefault(name, []).extend(rows)
    for row in _regions(op):
        _add(facts, "region", row)
    if multiple_uses:
        _add(facts, "multiple_uses", ())
    facts.update(surroundings(op, looks_at.get(op.name, ())))
    return facts


def attributes(op: Operation) -> Sequence[tuple[str, ir.Attribute]]:
    """The op's attributes by name, without those that MLIR's bindings cannot hold (complex elements)."""
    try:
        pairs: Sequence[tuple[str, ir.Attribute]] = op.attributes.items()
        return pairs
    except TypeError:
        entries = []
        for label in op.attributes:
            with suppress(TypeError):
                entries.append((label, op.attributes[label]))
        return entries


def surroundings(op: Operation, which: Sequence[str]) -> Facts:
    """Facts about the op's surroundings: the definers of its operands, its users, the ops in its regions
    (``which`` has "operands", "users" or "regions")."""
    facts: Facts = {}
    if "operands" in which:
        numbers: dict[Any, int] = {}
        for t, value in enumerate(op.operands):
            _add(facts, "operand_value", (t, numbers.setdefault(value, len(numbers))))
            definer = value.owner
            if not isinstance(definer, ir.Block):
                _add(facts, "defined_by", (t, definer.operation.name))
                for source in list(definer.operands)[:1]:
                    _add(facts, "defined_from", (t, numbers.setdefault(source, len(numbers))))
    if "users" in which:
        users = {use.owner.operation.name for result in op.results for use in result.uses}
        facts["used_by"] = [(name,) for name in sorted(users)]
    if "regions" in which:
        for r, region in enumerate(op.regions):
            for block in list(region.blocks)[:1]:
                _add_returned(facts, r, block)
                _add_inside(facts, r, block)
    return facts


def text_of(attribute: ir.Attribute) -> str:
    """The value of a string attribute; bytes that are not UTF-8 are escaped. MLIR's own ``value`` ends in an
    error of its bindings there, so that nobody else asks for it."""
    return ir.StringAttr(attribute).value_bytes.decode(errors="backslashreplace")


def _is_value(attribute: ir.Attribute, results: Sequence[ir.Type]) -> bool:
    """The elements of a result: the value of a constant, which no rule reads."""
    return isinstance(attribute, _ELEMENTS) and attribute.type in results


def value_of(op: Operation) -> tuple[str, ir.Attribute] | None:
    """The elements of a constant, or its only one: the attribute that has the type of the result, behind its
    name. None where there is none, or where MLIR's bindings cannot hold it."""
    types = op.results.types
    for name, attribute in attributes(op):
        if (isinstance(attribute, _NUMBERS) and attribute.type in types) or _is_value(attribute, types):
            return name, attribute
    return None


def _add(facts: Facts, relation: str, row: tuple[Any, ...]) -> None:
    facts.setdefault(relation, []).append(row)


def _tensor(kind: ir.Type) -> Tensor:
    if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
        return -1, (), ()
    element = kind.element_type
    return kind.rank, tuple(enumerate(kind.shape)), (str(element), bits_of(str(element)))


def _regions(op: Operation) -> Rows:
    rows: Rows = []
    for r, region in enumerate(op.regions):
        for block in list(region.blocks)[:1]:
            operations = block.operations
            returns = len(operations[len(operations) - 1].operands) if len(operations) else 0
            rows.append((r, len(block.arguments), returns))
    return rows


def _add_returned(facts: Facts, r: int, block: ir.Block) -> None:
    arguments: dict[Any, int] = {argument: a for a, argument in enumerate(block.arguments)}
    operations = block.operations
    if not len(operations):
        return
    for i, value in enumerate(operations[len(operations) - 1].operands):
        if isinstance(value.owner, ir.Block):
            continue
        kind = value.type
        element = str(kind.element_type) if isinstance(kind, ir.RankedTensorType) else str(kind)
        _add(facts, "returned_by", (r, i, value.owner.operation.name, element))
        _add(facts, "returned_uses", (r, i, len(list(value.uses))))
        for j, operand in enumerate(value.owner.operands):
            if operand in arguments:
                _add(facts, "returned_from", (r, i, j, arguments[operand]))


def _add_inside(facts: Facts, r: int, block: ir.Block) -> None:
    for a, argument in enumerate(block.arguments):
        _add(facts, "argument_uses", (r, a, len(list(argument.uses))))
    rows = dict[tuple[Any, ...], None]()
    for op in block.operations:
        for label, attribute in attributes(op.operation):
            if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr):
                rows[r, op.operation.name, label, int(attribute.value)] = None
    facts.setdefault("inside_number", []).extend(rows)


def _add_list(facts: Facts, name: str, values: Sequence[int]) -> None:
    _add(facts, "attribute_size", (name, len(values)))
    if len(values) <= _LARGEST_LIST:
        facts.setdefault("attribute_item", []).extend((name, i, int(v)) for i, v in enumerate(values))


def _add_attribute(facts: Facts, name: str, attribute: ir.Attribute) -> None:
    """The facts of an attribute and of those in it."""
    waiting = [(name, attribute)]
    for _ in range(_MOST_PARTS):
        if not waiting:
            return
        waiting.extend(reversed(_add_part(facts, *waiting.pop())))


def _add_part(facts: Facts, name: str, attribute: ir.Attribute) -> list[tuple[str, Any]]:
    """The facts of an attribute. The attributes inside it are returned by name, without their facts."""
    if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr):
        _add(facts, "attribute_number", (name, int(attribute.value)))
    elif isinstance(attribute, ir.UnitAttr):
        _add(facts, "attribute_number", (name, 1))
    elif isinstance(attribute, ir.StringAttr):
        if len(attribute.value_bytes) <= _LARGEST_LIST:
            _add(facts, "attribute_symbol", (name, text_of(attribute)))
    elif isinstance(attribute, ir.FlatSymbolRefAttr):
        _add(facts, "attribute_symbol", (name, attribute.value))
    elif isinstance(attribute, ir.AffineMapAttr):
        _add_maps(facts, name, [attribute])
    elif isinstance(attribute, ir.DenseIntElementsAttr):
        _add_elements(facts, name, attribute)
    elif isinstance(attribute, ir.ArrayAttr):
        entries: list[Any] = list(attribute)
        if all(isinstance(entry, ir.IntegerAttr) for entry in entries):
            _add_list(facts, name, [entry.value for entry in entries])
        elif all(isinstance(entry, ir.AffineMapAttr) for entry in entries):
            _add_maps(facts, name, entries)
        else:
            _add(facts, "attribute_size", (name, len(entries)))
            return [(f"{name}.{i}", entry) for i, entry in enumerate(entries[:_LARGEST_LIST])]
    elif isinstance(attribute, ir.DictAttr):
        entries = [attribute[i] for i in range(len(attribute))]
        return [(f"{name}.{entry.name}", entry.attr) for entry in entries]
    elif isinstance(attribute, _LISTS):
        _add_list(facts, name, list(attribute))
    elif not isinstance(attribute, _ELEMENTS) and not any(kind.isinstance(attribute) for kind in _SHARDINGS):
        _add_structured(facts, name, attribute)
    return []


def _add_maps(facts: Facts, name: str, attributes: Sequence[Any]) -> None:
    """The affine maps of an attribute: of each result that is a sum of multiples of dimensions, these."""
    _add(facts, "attribute_size", (name, len(attributes)))
    for m, attribute in enumerate(attributes[:_LARGEST_LIST]):
        affine_map = attribute.value
        _add(facts, "attribute_map", (name, m, affine_map.n_dims, len(affine_map.results)))
        for r, expression in enumerate(affine_map.results):
            terms = linear(expression)
            if terms is not None:
                _add(facts, "attribute_map_result", (name, m, r, terms.constant))
                rows = [(name, m, r, *multiple) for multiple in sorted(terms.multiples.items())]
                facts.setdefault("attribute_map_multiple", []).extend(rows)


def _add_elements(facts: Facts, name: str, attribute: Any) -> None:
    shape = ir.ShapedType(attribute.type).shape  # of a tensor or a vector
    if len(shape) > 2:
        return
    if len(attribute) > _LARGEST_LIST:
        _add(facts, "attribute_size", (name, len(attribute)))
        return
    values = [int(v) for v in attribute]
    values = [v - (1 << 64) if v >= 1 << 63 else v for v in values]  # MLIR's bindings read indices unsigned
    _add_list(facts, name, values)
    if len(shape) == 2:
        rows = [(name, *divmod(i, shape[1]), v) for i, v in enumerate(values)]
        facts.setdefault("attribute_row", []).extend(rows)


def _add_structured(facts: Facts, name: str, attribute: ir.Attribute) -> None:
    for kind, fields in _FIELDS.items():
        if kind.isinstance(attribute):
            for field in fields:
                value = getattr(kind(attribute), field)
                if isinstance(value, int):
                    _add(facts, "attribute_number", (f"{name}.{field}", value))
                else:
                    _add_list(facts, f"{name}.{field}", list(value))
            return
    text = str(attribute)
    for field, items in re.findall(_FIELD, text):
        _add_list(facts, f"{name}.{field}", [int(item) for item in items.split(",")])
    # e.g. #stablehlo<comparison_direction LT>, #linalg.iterator_type<parallel>
    enum = re.fullmatch(r"#\w+(?:<\w+ |\.\w+<)(\w+)>", text)
    _add(facts, "attribute_symbol", (name, enum[1] if enum else text[:_LARGEST_LIST]))


def _add_rule(facts: Facts, rule: sdy.OpShardingRuleAttr) -> None:
    _add(facts, "attribute_number", (RULE, 1))
    kinds = {f: kind for kind in MARKED for f in getattr(rule, f"{kind}_factors")}
    for f, size in enumerate(rule.factor_sizes):
        _add(facts, "rule_factor", (f, size, kinds.get(f, PASS_THROUGH)))
    for t, mapping in enumerate([*rule.operand_mappings, *rule.result_mappings]):
        for d, dim in enumerate(sdy.TensorMappingAttr(mapping).dim_mappings):
            for j, f in enumerate(sdy.DimMappingAttr(dim).factor_indices):
                _add(facts, "rule_maps", (t, d, j, f))
    for f in rule.blocked_propagation_factors:
        _add(facts, "rule_blocked", (f,))

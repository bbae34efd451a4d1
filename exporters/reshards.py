"""Explicit reshards: ops whose operands and results do not agree along some factor get reshards around them.

They are those that Shardy's ``sdy-insert-explicit-reshards`` inserts before a program is partitioned. Which
ops are looked at is said by the op rules (``rules/ops/reshards.dl``); along which axes the factors of an op
are sharded then, by ``agreeing.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..program.boundaries import boundary_axes, boundary_shardings, without_manual
from ..program.function import RESULT_SHARDING, sharding_of
from ..program.meshes import axis_text, quoted
from ..program.mlir.modules import boundary_attributes, symbols
from ..program.shardings import Dimension, Sharding, Shardings
from ..program.signature import RULE, describe, looks_at
from ..rulebook.book import RuleBook
from .agreeing import Agreement, Axes, Projection, Rule, is_strict_prefix, less, ordered

_CALL = "func.call"


def write_reshards(
    module: ir.Module, shardings: Shardings, book: RuleBook, modes: Sequence[str] = (), *, full: bool = False
) -> None:
    """Inserts explicit reshards into an annotated module, in place; constraints become reshards first.

    ``full``: around all ops; otherwise around those that Shardy looks at by default. ``modes`` are those of
    the run.
    """
    with module.context, ir.Location.unknown():
        functions = symbols(module, "func.func")
        for function in functions.values():
            _Function(function, functions, shardings, book, modes, full=full).run()


@dataclass
class _Function:
    func: Any
    functions: Mapping[str, Any]
    shardings: Shardings
    book: RuleBook
    modes: Sequence[str]
    full: bool
    rules: dict[Any, Rule | None] = field(default_factory=dict)  # of results of what was a constraint
    _said: dict[Any, Mapping[str, Any]] = field(default_factory=dict)

    def run(self) -> None:
        for op in [*_inner_first(self.func)]:
            if op.name == "sdy.sharding_constraint":
                self.reshard_instead(op)
        for op in [*_inner_first(self.func)]:
            self.visit(op)
        end = self.func.regions[0].blocks[0].operations[-1] if len(self.func.regions[0].blocks) else None
        if end is not None:
            for index, wanted in enumerate(boundary_shardings(self.func, "res_attrs", self.shardings)):
                self.meet(end.operation, index, wanted, ir.InsertionPoint(end), full=self.full)

    def reshard_instead(self, op: ir.Operation) -> None:
        """A constraint becomes a reshard, which keeps its rule and its attributes."""
        made = sdy.ReshardOp(
            op.operands[0], op.attributes["sharding"], loc=op.location, ip=ir.InsertionPoint(op)
        ).operation
        for name in op.attributes:
            made.attributes[name] = op.attributes[name]
        self.rules[made.results[0]] = self.rule(op)
        op.results[0].replace_all_uses_with(made.results[0])
        op.erase()

    # ---- What values have

    def sharding(self, value: Any) -> Sharding | None:
        """The sharding of a value of the module."""
        attribute = self.attribute(value)
        if attribute is None:
            return None
        found = self.shardings.read(attribute)
        owner = value.owner
        if isinstance(owner, ir.Block) and "manual_axes" in owner.owner.attributes:
            return without_manual(found, boundary_axes(owner.owner))
        return found

    def attribute(self, value: Any) -> Any:
        owner = value.owner
        if isinstance(owner, ir.Block):
            around, index = owner.owner, value.arg_number
            if around.operation.name == "func.func":
                return sharding_of(boundary_attributes(around, "arg_attrs")[index])
            if "in_shardings" in around.attributes:
                return sdy.TensorShardingPerValueAttr(around.attributes["in_shardings"]).shardings[index]
            edge = self.edge_of(around.operation, owner, index)
            return None if edge is None else self.attribute(edge)
        index = value.result_number
        attributes = owner.attributes
        if label := next((label for label in RESULT_SHARDING if label in attributes), None):
            return attributes[label]
        label = "out_shardings" if "out_shardings" in attributes else "sdy.sharding"
        if label not in attributes:
            return None
        entries = sdy.TensorShardingPerValueAttr(attributes[label]).shardings
        return entries[index] if index < len(entries) else None

    def edge_of(self, op: ir.Operation, block: Any, index: int) -> Any:
        """The result that has the sharding of an argument of a region; None where there is none."""
        regions = [region.blocks[0] for region in op.regions]
        end = ("argument", regions.index(block), index)
        owners = {e: found for e, *found in self.said(op)["edge_owner"]}
        for e, *target in self.said(op)["edge_target"]:
            if tuple(target) == end and owners[e][0] == "result":
                return op.results[owners[e][2]]
        return None

    def set_sharding(self, result: Any, sharding: Sharding) -> None:
        op = result.owner.operation
        if label := next((label for label in RESULT_SHARDING if label in op.attributes), None):
            op.attributes[label] = self.written(sharding)
            return
        attributes = [self.attribute(other) for other in op.results]
        ranks = [_rank(other) for other in op.results]
        made = [
            self.written(sharding if i == result.result_number else Sharding.open(sharding.mesh, ranks[i]))
            if attribute is None or i == result.result_number
            else attribute
            for i, attribute in enumerate(attributes)
        ]
        op.attributes["sdy.sharding"] = sdy.TensorShardingPerValueAttr.get(made)

    def written(self, sharding: Sharding) -> Any:
        return self.shardings.attribute(sharding, closed=False)

    def ids(self, sharding: Sharding) -> tuple[int, ...]:
        return self.shardings.meshes.meshes[sharding.mesh].device_ids

    # ---- What ops want

    def said(self, op: ir.Operation) -> Mapping[str, Any]:
        """What the op rules say of an op; asked once of ops that look alike."""
        around = looks_at([*self.book.looks_at, *self.book.partition_looks_at])
        kept = tuple((name, op.attributes[name]) for name in op.attributes if name != "sdy.sharding")
        types = (tuple(v.type for v in op.operands), tuple(v.type for v in op.results))
        key: Any = op if op.name in around or len(op.regions) else (op.name, types, kept)
        if key not in self._said:
            facts = {**describe(op, False, around), **{mode: [()] for mode in self.modes}}
            self._said[key] = {**self.book.classify(facts), **self.book.reshards(facts)}
        return self._said[key]

    def rule(self, op: ir.Operation) -> Rule | None:
        """The factors of an op; None where it has no rule, or one that is its own."""
        if RULE in op.attributes and sdy.OpShardingRuleAttr(op.attributes[RULE]).is_custom:
            return None
        values = [*op.operands, *op.results]
        if op.name == "sdy.reshard":
            return self.rules.get(op.results[0])
        said = self.said(op)
        if not said["known"] or said["no_rule"] or said["edge"]:
            return None
        maps: list[list[list[int]]] = [[[] for _ in range(_rank(value))] for value in values]
        for t, d, _, f in sorted(said["maps"]):
            maps[t][d].append(f)
        kinds = dict(said["kind"])
        return Rule([size for _, size in sorted(said["factor"])], kinds, maps, len(op.operands))

    def looked_at(self, op: ir.Operation) -> bool:
        """Whether all reshards are inserted around an op."""
        if self.full or op.name in self.book.traits.family("reshards_op"):
            return True
        if op.name not in self.book.traits.family("reshards_unlike_op"):
            return False
        return len({self.attribute(value) for value in (*op.operands, op.results[0])}) > 1

    # ---- What is done to one

    def visit(self, op: ir.Operation) -> None:
        if op.name == _CALL:
            self.call(op)
        elif self.flows(op):
            self.edges(op)
        elif op.name == "sdy.reshard":
            self.unreduce_instead(op)
        elif op != _last(op):
            self.reduce_operands(op)
            self.agree(op)

    def unreduce_instead(self, op: ir.Operation) -> None:
        """A reshard to what is unreduced along more axes becomes the collectives that make it so."""
        if self.unreduced(op, 0, self.shardings.read(op.attributes["sharding"]), ir.InsertionPoint(op)):
            op.results[0].replace_all_uses_with(op.operands[0])
            self.rules.pop(op.results[0], None)
            op.erase()
        else:
            self.reduce_operands(op)
            self.agree(op)

    def flows(self, op: ir.Operation) -> bool:
        carries = len(op.regions) or op.name in self.book.traits.family("carries_op")
        return bool(carries and self.said(op)["edge"])

    def edges(self, op: ir.Operation) -> None:
        """Sources of a data-flow edge have the sharding of its owner."""
        blocks = [region.blocks[0] for region in op.regions]
        said = self.said(op)
        owners = sorted((what != "result", r, i, e) for e, what, r, i in said["edge_owner"])
        for is_argument, r, i, e in owners:
            owner = blocks[r].arguments[i] if is_argument else op.results[i]
            attribute = self.attribute(owner)
            wanted = None if attribute is None else self.shardings.read(attribute)
            if wanted is not None and not is_argument and "manual_axes" in op.attributes:
                wanted = without_manual(wanted, boundary_axes(op))
            sources = [(what, r, i) for edge, what, r, i in said["edge_source"] if edge == e]
            for what, region, index in sorted(sources):
                user = op if what == "operand" else list(blocks[region].operations)[-1].operation
                self.meet(user, index, wanted, None, full=self.full)

    def call(self, op: ir.Operation) -> None:
        callee = self.functions[ir.FlatSymbolRefAttr(op.attributes["callee"]).value]
        entries = boundary_shardings(callee, "arg_attrs", self.shardings)
        mesh = next((one.mesh for one in entries if one is not None), None)
        if mesh is None:
            given = (self.sharding(value) for value in op.operands)
            mesh = next((s.mesh for s in given if s is not None and self._has_axes(s.mesh)), None)
            if mesh is None:
                return
            entries = [_replicated(mesh, _rank(value)) for value in op.operands]
        for index, wanted in enumerate(entries):
            rank = _rank(op.operands[index])
            self.meet(op, index, wanted or Sharding.open(mesh, rank), None, full=True)

    def _has_axes(self, mesh: int) -> bool:
        return bool(self.shardings.meshes.meshes[mesh].axes)

    def meet(
        self,
        user: ir.Operation,
        index: int,
        wanted: Sharding | None,
        at: ir.InsertionPoint | None,
        *,
        full: bool,
    ) -> None:
        """Has an operand of ``user`` as it is ``wanted``; what that takes stands right after its definition,
        or ``at`` a place."""
        value = user.operands[index]
        at = at or _after(value)
        held = self.reduced(user, index, wanted, at)
        held = self.unreduced(user, index, wanted, at) or held
        if full and not self.equivalent(held, wanted):
            target = wanted or _replicated_like(held)
            value = user.operands[index]
            user.operands[index] = sdy.ReshardOp(value, self.written(target), ip=at).result

    def reduced(
        self, user: ir.Operation, index: int, wanted: Sharding | None, at: ir.InsertionPoint
    ) -> Sharding | None:
        """Reduces an operand along the axes along which it is unreduced, and is not to be; returns the
        sharding that it has then."""
        value = user.operands[index]
        held = self.sharding(value)
        if held is None or not held.unreduced:
            return held
        axes = less(held.unreduced, wanted.unreduced if wanted is not None else ())
        if not axes:
            return held
        found = replace(held, unreduced=less(held.unreduced, axes))
        user.operands[index] = self.all_reduce(value, axes, found, held.reduction, at)
        return found

    def unreduced(
        self, user: ir.Operation, index: int, wanted: Sharding | None, at: ir.InsertionPoint
    ) -> Sharding | None:
        """Has an operand unreduced along the axes along which it is to be, from what it is sharded or
        replicated along; returns the sharding that it has then, or None where that takes nothing."""
        value = user.operands[index]
        held = self.sharding(value)
        if held is None or wanted is None:
            return None
        more = less(wanted.unreduced, held.unreduced)
        if not more:
            return None
        sizes = self.shardings.meshes.meshes[held.mesh].sizes
        cut: list[Axes] = []
        dimensions: list[Dimension] = []
        resharded = False
        for own, out in zip(held.dimensions, wanted.dimensions, strict=True):
            rest: Axes = ()
            if is_strict_prefix(out.axes, own.axes):
                rest = less(own.axes, out.axes)
            kept = bool(rest) and not less(rest, more)
            resharded |= not kept and own.axes != out.axes
            cut.append(rest if kept else ())
            dimensions.append(own if kept else out)
        if resharded:
            found = replace(held, dimensions=tuple(dimensions))
            value = sdy.ReshardOp(value, self.written(found), ip=at).result
        replicated = less(more, tuple(axis for axes in cut for axis in axes))
        if replicated:
            both = ordered((*held.unreduced, *replicated), sizes)
            found = replace(wanted, mesh=held.mesh, dimensions=tuple(dimensions), unreduced=both)
            value = self.collective(
                "replicated_to_unreduced", value, self.listed(replicated, held.mesh), found, at
            )
        if any(cut):
            lists = ", ".join(f"{{{self.names(axes, held.mesh)}}}" for axes in cut)
            axes = ir.Attribute.parse(f"#sdy<list_of_axis_ref_lists[{lists}]>")
            value = self.collective("sharded_to_unreduced", value, {"axes": axes}, wanted, at)
        user.operands[index] = value
        return wanted

    def names(self, axes: Axes, mesh: int) -> str:
        return ", ".join(
            axis_text(axis, self.shardings.meshes.meshes[mesh], quoted(axis.name)) for axis in axes
        )

    def listed(self, axes: Axes, mesh: int, label: str = "axes") -> dict[str, Any]:
        return {label: ir.Attribute.parse(f"#sdy<axis_ref_list{{{self.names(axes, mesh)}}}>")}

    def collective(
        self, name: str, value: Any, attributes: dict[str, Any], sharding: Sharding, at: ir.InsertionPoint
    ) -> Any:
        return ir.Operation.create(
            f"sdy.{name}",
            results=[value.type],
            operands=[value],
            attributes={**attributes, "out_sharding": self.written(sharding)},
            ip=at,
        ).results[0]

    def all_reduce(
        self, value: Any, axes: Axes, sharding: Sharding, reduction: str, at: ir.InsertionPoint
    ) -> Any:
        attributes = self.listed(axes, sharding.mesh, "reduction_axes")
        if reduction != "sum":
            kinds = {"max": 1, "min": 2}
            attributes["reduction_op"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), kinds[reduction])
        return self.collective("all_reduce", value, attributes, sharding, at)

    def equivalent(self, held: Sharding | None, wanted: Sharding | None) -> bool:
        """Whether a value with a sharding has the one that is wanted. What is unreduced has it otherwise than
        what is whole; only where a value has no sharding nothing is asked about that."""
        if held is None:
            return wanted is None or not _axes_of(wanted)
        if not _axes_of(held) and not held.unreduced:
            return wanted is None or not (_axes_of(wanted) or wanted.unreduced)
        return (
            wanted is not None
            and held.mesh == wanted.mesh
            and [d.axes for d in held.dimensions] == [d.axes for d in wanted.dimensions]
            and held.unreduced == wanted.unreduced
        )

    def reduce_operands(self, op: ir.Operation) -> None:
        if not op.results:
            return
        wanted = self.sharding(op.results[0])
        for index in range(len(op.operands)):
            self.reduced(op, index, wanted, ir.InsertionPoint(op))

    def agree(self, op: ir.Operation) -> None:
        """Inserts reshards of the operands and results of an op: they are sharded alike then."""
        full = self.looked_at(op)
        product = op.name in self.book.traits.family("product_op")
        unreduced = op.results and (own := self.sharding(op.results[0])) is not None and own.unreduced
        if not (full or product or unreduced):
            return
        values = [*op.operands, *op.results]
        held = [self.sharding(_past_barriers(value)) for value in values]
        mesh = self.common_mesh(held)
        if mesh is None or (rule := self.rule(op)) is None:
            return
        agreement = Agreement(rule, [_size(value) for value in values])
        projections = [Projection.of(rule, t, sharding) for t, sharding in enumerate(held)]
        common: list[Axes] = []
        if full:
            common = self.agreed(op, agreement, projections)
            behind = ir.InsertionPoint.after(op)
            for t, (value, projection, one) in enumerate(zip(values, projections, held, strict=True)):
                wanted = self.joined(rule, t, projection, one, mesh)
                elsewhere = one is not None and _axes_of(one) and self.ids(one) != self.mesh_ids(mesh)
                if elsewhere or projection.changed:
                    self.reshard(op, t, value, wanted, behind)
        elif product:
            self.reshard_product(op, agreement, projections, held, mesh)
        self.reduce_results(op, rule, projections, common, full=full)

    def agreed(self, op: ir.Operation, agreement: Agreement, projections: list[Projection]) -> list[Axes]:
        """The axes of each factor, which the projections have then."""
        if op.name in self.book.traits.family("redistributes_op") and any(p.spill for p in projections):
            return agreement.redistributed(projections)
        common = agreement.common_axes(projections)
        for projection in projections:
            projection.update(common)
        return common

    def mesh_ids(self, mesh: int) -> tuple[int, ...]:
        return self.shardings.meshes.meshes[mesh].device_ids

    def common_mesh(self, held: Sequence[Sharding | None]) -> int | None:
        """The mesh that most shardings are on that have axes; None where meshes differ in more than the order
        of their devices."""
        meshes, found = self.shardings.meshes.meshes, None
        for sharding in held:
            if sharding is None:
                continue
            if found is None or (not meshes[found].axes and not meshes[found].device_ids):
                found = sharding.mesh
            elif meshes[sharding.mesh].axes or meshes[sharding.mesh].device_ids:
                if meshes[sharding.mesh].axes != meshes[found].axes:
                    return None
                if not meshes[sharding.mesh].device_ids:
                    found = sharding.mesh
        if found is None or meshes[found].maximal:
            return None
        counts: dict[int, int] = {}
        most = 0
        for sharding in held:
            if sharding is not None and (_axes_of(sharding) or sharding.unreduced):
                counts[sharding.mesh] = counts.get(sharding.mesh, 0) + 1
                if counts[sharding.mesh] > most:
                    most, found = counts[sharding.mesh], sharding.mesh
        return found

    def joined(
        self, rule: Rule, t: int, projection: Projection, held: Sharding | None, mesh: int
    ) -> Sharding:
        """The sharding of a slot that a projection stands for."""
        closed = [d.closed for d in held.dimensions] if held is not None else [True] * len(rule.maps[t])
        dimensions = tuple(
            Dimension(axes, shut) for axes, shut in zip(projection.joined(rule, t), closed, strict=True)
        )
        if held is None:
            return Sharding(mesh, dimensions)
        return replace(held, mesh=mesh, dimensions=dimensions)

    def reshard(
        self, op: ir.Operation, t: int, value: Any, sharding: Sharding, behind: ir.InsertionPoint
    ) -> None:
        """Reshards slot ``t`` of an op, which has ``sharding`` then."""
        if t < len(op.operands):
            made = sdy.ReshardOp(value, self.written(sharding), ip=ir.InsertionPoint(op))
            op.operands[t] = made.result
            return
        own = self.sharding(value) or _replicated(sharding.mesh, _rank(value))
        _replace(value, sdy.ReshardOp(value, self.written(own), ip=behind).result)
        self.set_sharding(value, sharding)

    def reduce_results(
        self, op: ir.Operation, rule: Rule, projections: list[Projection], common: list[Axes], *, full: bool
    ) -> None:
        """All-reduces the results of an op along the axes of its reductions, but for those along which they
        are unreduced."""
        if not op.results or self.said(op)["reshard_leaves"]:
            return
        own = self.sharding(op.results[0])
        kept = own.unreduced if own is not None else ()
        reductions = [f for f in range(len(rule.sizes)) if rule.kinds[f] == "reduction"]
        if full:
            axes = [axis for f in reductions for axis in common[f]]
        elif kept:
            axes = [axis for f in reductions for axis in Agreement.alike(projections, f) or ()]
        else:
            return
        left = ordered(less(tuple(axes), kept), self.shardings.meshes.meshes[own.mesh if own else 0].sizes)
        if not left:
            return
        mesh = own.mesh if own is not None else self.common_mesh([self.sharding(v) for v in op.operands])
        assert mesh is not None
        kind = next((kind for (kind,) in self.said(op)["reshard_combines"]), "")
        behind = ir.InsertionPoint.after(op)
        for value in op.results:
            sharding = self.sharding(value) or _replicated(mesh, _rank(value))
            _replace(value, self.all_reduce(value, left, sharding, kind or sharding.reduction, behind))

    def reshard_product(
        self,
        op: ir.Operation,
        agreement: Agreement,
        projections: list[Projection],
        held: list[Sharding | None],
        mesh: int,
    ) -> None:
        """Reshards the result of a product, and not an operand, where that moves less."""
        found = agreement.product(projections)
        if found is None or held[2] is None:
            return
        factor, axes = found
        result, out = op.results[0], self.written(held[2])
        projections[2].axes[factor] = axes
        self.set_sharding(result, self.joined(agreement.rule, 2, projections[2], held[2], mesh))
        _replace(result, sdy.ReshardOp(result, out, ip=_after(result)).result)


def _inner_first(op: Any) -> Iterator[ir.Operation]:
    """The ops inside of an op, each after those inside of it."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _inner_first(inner)
                yield inner.operation


def _last(op: ir.Operation) -> ir.Operation:
    """The op that ends the block of an op."""
    return op.block.operations[len(op.block.operations) - 1].operation


def _after(value: Any) -> ir.InsertionPoint:
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner)


def _replace(value: Any, made: Any) -> None:
    """Has all that uses a value use what is made of it."""
    value.replace_all_uses_except(made, made.owner.operation)


def _past_barriers(value: Any) -> Any:
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name == "sdy.propagation_barrier":
        value = value.owner.operands[0]
    return value


def _rank(value: Any) -> int:
    return len(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else 0


def _size(value: Any) -> int:
    return prod(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else 0


def _axes_of(sharding: Sharding) -> bool:
    return any(d.axes for d in sharding.dimensions)


def _replicated(mesh: int, rank: int) -> Sharding:
    return Sharding(mesh, (Dimension(closed=True),) * rank)


def _replicated_like(sharding: Sharding | None) -> Sharding:
    assert sharding is not None
    return _replicated(sharding.mesh, len(sharding.dimensions))

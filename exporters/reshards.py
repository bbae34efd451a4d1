"""Explicit reshards: ops whose operands and results do not agree along some factor get reshards around them.

Shardy's ``sdy-insert-explicit-reshards`` inserts the same ones before a program is partitioned. The op rules
(``rules/ops/reshards.dl``) say which ops get reshards; ``agreeing.py`` finds the axes of each factor of an
op.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..errors import ShardlogError
from ..program.boundaries import boundary_axes, without_manual
from ..program.function import RESULT_SHARDING, location
from ..program.meshes import axis_text, quoted
from ..program.mlir.types import Operation, Value
from ..program.shardings import Dimension, Sharding, Shardings, check_writable
from ..program.signature import RULE
from ..rulebook.book import RuleBook
from .agreeing import Agreement, Axes, FactorRule, Projection, is_strict_prefix, less, ordered
from .values import ValueShardings, result_label

_CALL = "func.call"


def write_reshards(
    module: ir.Module,
    shardings: Shardings,
    book: RuleBook,
    modes: Sequence[str] = (),
    *,
    full: bool = False,
    mark: bool = False,
) -> None:
    """Inserts explicit reshards into an annotated module, in place; constraints become reshards first.

    ``full``: around all ops; otherwise around those that Shardy looks at by default. ``mark``: all-reduced
    results are marked as unreduced before. ``modes`` are the modes of the run. Raises ShardlogError if the
    chosen version of Shardy does not mark results.
    """
    with module.context, ir.Location.unknown():
        values = ValueShardings(module, shardings, book, modes)
        for function in values.functions.values():
            _Function(function, values, full, mark).run()


@dataclass
class _Function:
    func: Any
    values: ValueShardings
    full: bool
    mark: bool
    rules: dict[Any, FactorRule | None] = field(default_factory=dict)  # of results of what was a constraint

    def __post_init__(self) -> None:
        self.book, self.shardings = self.values.book, self.values.shardings
        self.meshes = self.shardings.meshes.meshes
        self.sharding, self.answers = self.values.of, self.values.answers
        self.everywhere = next((m for m, mesh in enumerate(self.meshes) if mesh.axes), None)

    def run(self) -> None:
        for op in [*_inner_first(self.func)]:
            if op.name == "sdy.sharding_constraint":
                self.reshard_instead(op)
        for op in [*_inner_first(self.func)]:
            self.visit(op)
        end = self.func.regions[0].blocks[0].operations[-1] if len(self.func.regions[0].blocks) else None
        if end is not None:
            for index, wanted in enumerate(self.values.boundary(self.func, "res_attrs")):
                self.meet(end.operation, index, wanted, ir.InsertionPoint(end), full=self.full)

    def reshard_instead(self, op: ir.Operation) -> None:
        """A constraint becomes a reshard, which keeps its rule and its attributes."""
        reshard = sdy.ReshardOp(
            op.operands[0], op.attributes["sharding"], loc=op.location, ip=ir.InsertionPoint(op)
        ).operation
        for name in op.attributes:
            reshard.attributes[name] = op.attributes[name]
        self.rules[reshard.results[0]] = self.rule(op)
        op.results[0].replace_all_uses_with(reshard.results[0])
        op.erase()

    def set_sharding(self, result: Value, sharding: Sharding) -> None:
        op = result.owner.operation
        label = result_label(op)
        if label in RESULT_SHARDING:
            op.attributes[label] = self.written(sharding)
            return
        attributes = [self.values.attribute(other) for other in op.results]
        shardings = [
            self.written(sharding if other == result else Sharding.open(sharding.mesh, _rank(other)))
            if attribute is None or other == result
            else attribute
            for other, attribute in zip(op.results, attributes, strict=True)
        ]
        op.attributes[label] = sdy.TensorShardingPerValueAttr.get(shardings)

    def written(self, sharding: Sharding) -> Any:
        return self.shardings.attribute(sharding, closed=False)

    # ---- What ops want

    def rule(self, op: ir.Operation) -> FactorRule | None:
        """The factors of an op; None where it has no rule, or one that is its own."""
        if RULE in op.attributes and sdy.OpShardingRuleAttr(op.attributes[RULE]).is_custom:
            return None
        values = [*op.operands, *op.results]
        if op.name == "sdy.reshard":
            return self.rules.get(op.results[0])
        answers = self.answers(op)
        if not answers["known"] or answers["no_rule"] or answers["edge"]:
            return None
        maps: list[list[list[int]]] = [[[] for _ in range(_rank(value))] for value in values]
        for t, d, _, f in sorted(answers["maps"]):
            maps[t][d].append(f)
        kinds = dict(answers["kind"])
        return FactorRule([size for _, size in sorted(answers["factor"])], kinds, maps, len(op.operands))

    def looked_at(self, op: ir.Operation) -> bool:
        """Whether all reshards are inserted around an op."""
        if self.full or op.name in self.book.traits.family("reshards_op"):
            return True
        if op.name not in self.book.traits.family("reshards_unlike_op"):
            return False
        return len({self.values.attribute(value) for value in (*op.operands, op.results[0])}) > 1

    # ---- What is done to one

    def visit(self, op: ir.Operation) -> None:
        if op.name == _CALL:
            self.call(op)
        elif self.values.flows(op):
            self.edges(op)
        elif op.name == "sdy.reshard":
            self.unreduce_instead(op)
        elif op != op.block.operations[-1].operation:
            self.compute(op)

    def compute(self, op: ir.Operation) -> None:
        """Reshards for an op that computes its results from its operands."""
        self.reduce_operands(op)
        held = [self.sharding(_past_barriers(value)) for value in op.results]
        devices = [s.mesh for s in held if s is not None and self.meshes[s.mesh].maximal]
        if devices and self.answers(op)["reshard_alone"]:
            self.move(op, devices[-1], held)
        else:
            self.agree(op)

    def move(self, op: ir.Operation, device: int, held: Sequence[Sharding | None]) -> None:
        """Moves the operands of an op to the single device of the mesh ``device``, and its results back
        to all devices; ``held`` are the shardings of the results."""
        if self.everywhere is None:
            return
        alone = _replicated(device, 0)
        for index, value in enumerate(op.operands):
            if not isinstance(value.type, ir.RankedTensorType):
                continue
            whole = _replicated(self.everywhere, _rank(value))
            own = self.sharding(value) or whole
            if own.mesh == device and self.equivalent(own, alone):
                continue
            if _axes_of(own) or own.mesh != self.everywhere:
                value = sdy.ReshardOp(value, self.written(whole), ip=ir.InsertionPoint(op)).result
            op.operands[index] = sdy.ReshardOp(value, self.written(alone), ip=ir.InsertionPoint(op)).result
        last = op
        for result, made_as in zip(op.results, held, strict=True):
            if not isinstance(result.type, ir.RankedTensorType):
                self.set_sharding(result, _replicated(self.everywhere, 0))
                continue
            whole = _replicated(self.everywhere, _rank(result))
            steps = [whole]
            if made_as is not None and not self.meshes[made_as.mesh].maximal and made_as != whole:
                steps.append(made_as)
            value = result
            for step in steps:
                reshard = sdy.ReshardOp(value, self.written(step), ip=ir.InsertionPoint.after(last))
                _replace(value, reshard.result)
                value, last = reshard.result, reshard.operation
            self.set_sharding(result, alone)

    def unreduce_instead(self, op: ir.Operation) -> None:
        """Replaces a reshard to more unreduced axes by collectives."""
        if self.unreduced(op, 0, self.shardings.read(op.attributes["sharding"]), ir.InsertionPoint(op)):
            op.results[0].replace_all_uses_with(op.operands[0])
            self.rules.pop(op.results[0], None)
            op.erase()
        else:
            self.compute(op)

    def edges(self, op: ir.Operation) -> None:
        """Sources of a data-flow edge have the sharding of its owner."""
        blocks = [region.blocks[0] for region in op.regions]
        answers = self.answers(op)
        owners = sorted((end != "result", r, i, e) for e, end, r, i in answers["edge_owner"])
        for is_argument, r, i, e in owners:
            owner = blocks[r].arguments[i] if is_argument else op.results[i]
            attribute = self.values.attribute(owner)
            wanted = None if attribute is None else self.shardings.read(attribute)
            if wanted is not None and not is_argument and "manual_axes" in op.attributes:
                wanted = without_manual(wanted, boundary_axes(op))
            sources = [(end, r, i) for edge, end, r, i in answers["edge_source"] if edge == e]
            for end, region, index in sorted(sources):
                user = op if end == "operand" else list(blocks[region].operations)[-1].operation
                self.meet(user, index, wanted, None, full=self.full)

    def call(self, op: ir.Operation) -> None:
        """Operands of a call have the shardings of the arguments of the function."""
        entries = self.values.boundary(self.values.called(op), "arg_attrs")
        mesh = self._tiled(entries)
        if mesh is None:
            mesh = self._tiled(self.sharding(value) for value in op.operands)
            if mesh is None:
                return
            entries = [_replicated(mesh, _rank(value)) for value in op.operands]
        for index, wanted in enumerate(entries):
            rank = _rank(op.operands[index])
            self.meet(op, index, wanted or Sharding.open(mesh, rank), None, full=True)

    def _tiled(self, shardings: Iterable[Sharding | None]) -> int | None:
        """The mesh of the first sharding that is not on a single device."""
        tiled = (one.mesh for one in shardings if one is not None and not self.meshes[one.mesh].maximal)
        return next(tiled, None)

    def meet(
        self,
        user: ir.Operation,
        index: int,
        wanted: Sharding | None,
        at: ir.InsertionPoint | None,
        *,
        full: bool,
    ) -> None:
        """Gives an operand of ``user`` the ``wanted`` sharding, by reshards right after its definition, or
        ``at`` a place."""
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
        reduced = replace(held, unreduced=less(held.unreduced, axes))
        user.operands[index] = self.all_reduce(value, axes, reduced, held.reduction, at)
        return reduced

    def unreduced(
        self, user: ir.Operation, index: int, wanted: Sharding | None, at: ir.InsertionPoint
    ) -> Sharding | None:
        """Makes an operand unreduced along the wanted axes, along which it is sharded or replicated before.
        Returns its new sharding; None if nothing changes."""
        value = user.operands[index]
        held = self.sharding(value)
        if held is None or wanted is None:
            return None
        more = less(wanted.unreduced, held.unreduced)
        if not more:
            return None
        sizes = self.meshes[held.mesh].sizes
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
            target = replace(held, dimensions=tuple(dimensions))
            value = sdy.ReshardOp(value, self.written(target), ip=at).result
        replicated = less(more, tuple(axis for axes in cut for axis in axes))
        if replicated:
            both = ordered((*held.unreduced, *replicated), sizes)
            target = replace(wanted, mesh=held.mesh, dimensions=tuple(dimensions), unreduced=both)
            value = self.collective(
                "replicated_to_unreduced", value, self.listed(replicated, held.mesh), target, at
            )
        if any(cut):
            lists = ", ".join(f"{{{self.names(axes, held.mesh)}}}" for axes in cut)
            axes = ir.Attribute.parse(f"#sdy<list_of_axis_ref_lists[{lists}]>")
            value = self.collective("sharded_to_unreduced", value, {"axes": axes}, wanted, at)
        user.operands[index] = value
        return wanted

    def names(self, axes: Axes, mesh: int) -> str:
        return ", ".join(axis_text(axis, self.meshes[mesh], quoted(axis.name)) for axis in axes)

    def listed(self, axes: Axes, mesh: int, label: str = "axes") -> dict[str, Any]:
        return {label: ir.Attribute.parse(f"#sdy<axis_ref_list{{{self.names(axes, mesh)}}}>")}

    def collective(
        self,
        name: str,
        value: Any,
        attributes: dict[str, ir.Attribute],
        sharding: Sharding,
        at: ir.InsertionPoint,
    ) -> Any:
        return ir.Operation.create(
            f"sdy.{name}",
            results=[value.type],
            operands=[value],
            attributes={**attributes, "out_sharding": self.written(sharding)},
            ip=at,
        ).results[0]

    def all_reduce(
        self, value: Value, axes: Axes, sharding: Sharding, reduction: str, at: ir.InsertionPoint
    ) -> Any:
        attributes = self.listed(axes, sharding.mesh, "reduction_axes")
        check_writable(reduction)
        if reduction != "sum":
            kinds = {"max": 1, "min": 2}
            attributes["reduction_op"] = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), kinds[reduction])
        return self.collective("all_reduce", value, attributes, sharding, at)

    def equivalent(self, held: Sharding | None, wanted: Sharding | None) -> bool:
        """Whether the sharding of a value is equivalent to the wanted one. Unreduced axes must be equal too,
        unless the value has no sharding."""
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
                elsewhere = one is not None and _axes_of(one) and self.ids(one.mesh) != self.ids(mesh)
                if elsewhere or projection.changed:
                    self.reshard(op, t, value, wanted, behind)
        elif product:
            self.reshard_product(op, agreement, projections, held, mesh)
        self.reduce_results(op, rule, projections, common, mesh, full=full)

    def agreed(self, op: ir.Operation, agreement: Agreement, projections: list[Projection]) -> list[Axes]:
        """The axes of each factor, which the projections have then."""
        if op.name in self.book.traits.family("redistributes_op") and any(p.spill for p in projections):
            return agreement.redistributed(projections)
        common = agreement.common_axes(projections)
        for projection in projections:
            projection.update(common)
        return common

    def ids(self, mesh: int) -> tuple[int, ...]:
        return self.meshes[mesh].device_ids

    def common_mesh(self, held: Sequence[Sharding | None]) -> int | None:
        """The mesh that most shardings are on that have axes; None where meshes differ in more than the order
        of their devices."""
        meshes, common = self.meshes, None
        for sharding in held:
            if sharding is None:
                continue
            if common is None or (not meshes[common].axes and not meshes[common].device_ids):
                common = sharding.mesh
            elif meshes[sharding.mesh].axes or meshes[sharding.mesh].device_ids:
                if meshes[sharding.mesh].axes != meshes[common].axes:
                    return None
                if not meshes[sharding.mesh].device_ids:
                    common = sharding.mesh
        if common is None or meshes[common].maximal:
            return None
        counts: dict[int, int] = {}
        most = 0
        for sharding in held:
            if sharding is not None and _axes_of(sharding):
                counts[sharding.mesh] = counts.get(sharding.mesh, 0) + 1
                if counts[sharding.mesh] > most:
                    most, common = counts[sharding.mesh], sharding.mesh
        return common

    def joined(
        self, rule: FactorRule, t: int, projection: Projection, held: Sharding | None, mesh: int
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
            resharded = sdy.ReshardOp(value, self.written(sharding), ip=ir.InsertionPoint(op))
            op.operands[t] = resharded.result
            return
        own = self.sharding(value) or _replicated(sharding.mesh, _rank(value))
        _replace(value, sdy.ReshardOp(value, self.written(own), ip=behind).result)
        self.set_sharding(value, sharding)

    def reduce_results(
        self,
        op: ir.Operation,
        rule: FactorRule,
        projections: list[Projection],
        common: list[Axes],
        mesh: int,
        *,
        full: bool,
    ) -> None:
        """All-reduces the results of an op along the axes of its reductions, but for those along which they
        are unreduced."""
        if not op.results or self.answers(op)["reshard_leaves"]:
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
        left = ordered(less(tuple(axes), kept), self.meshes[mesh].sizes)
        if not left:
            return
        if self.mark and not self.answers(op)["may_mark"]:
            hint = "mean a later one, as by --shardy 0.11, or leave out --mark-partial-results"
            message = "only Shardy 0.11 and later mark partial results"
            raise ShardlogError(message, where=location(op), hint=hint)
        kind = next((kind for (kind,) in self.answers(op)["reshard_combines"]), "")
        behind = ir.InsertionPoint.after(op)
        for value in op.results:
            sharding = self.sharding(value) or _replicated(mesh, _rank(value))
            reduction = kind or sharding.reduction
            _replace(value, self.all_reduce(value, left, sharding, reduction, behind))
            if self.mark and self.answers(op)["reshard_marks"]:
                both = ordered((*sharding.unreduced, *left), self.meshes[mesh].sizes)
                self.set_sharding(value, replace(sharding, unreduced=both, reduction=reduction))

    def reshard_product(
        self,
        op: ir.Operation,
        agreement: Agreement,
        projections: list[Projection],
        held: list[Sharding | None],
        mesh: int,
    ) -> None:
        """Reshards the result of a product, and not an operand, where that moves less."""
        choice = agreement.product(projections)
        if choice is None or held[2] is None:
            return
        factor, axes = choice
        result, out = op.results[0], self.written(held[2])
        projections[2].axes[factor] = axes
        self.set_sharding(result, self.joined(agreement.rule, 2, projections[2], held[2], mesh))
        _replace(result, sdy.ReshardOp(result, out, ip=_after(result)).result)


def _inner_first(op: Operation) -> Iterator[ir.Operation]:
    """The ops inside of an op, each after those inside of it."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield from _inner_first(inner)
                yield inner.operation


def _after(value: Value) -> ir.InsertionPoint:
    if isinstance(value.owner, ir.Block):
        return ir.InsertionPoint.at_block_begin(value.owner)
    return ir.InsertionPoint.after(value.owner)


def _replace(value: Any, replacement: Value) -> None:
    """Makes all users of a value use its replacement, except the replacement itself."""
    value.replace_all_uses_except(replacement, replacement.owner.operation)


def _past_barriers(value: Value) -> Any:
    while not isinstance(value.owner, ir.Block) and value.owner.operation.name == "sdy.propagation_barrier":
        value = value.owner.operands[0]
    return value


def _rank(value: Value) -> int:
    return len(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else 0


def _size(value: Value) -> int:
    return prod(value.type.shape) if isinstance(value.type, ir.RankedTensorType) else 0


def _axes_of(sharding: Sharding) -> bool:
    return any(d.axes for d in sharding.dimensions)


def _replicated(mesh: int, rank: int) -> Sharding:
    return Sharding(mesh, (Dimension(closed=True),) * rank)


def _replicated_like(sharding: Sharding | None) -> Sharding:
    assert sharding is not None
    return _replicated(sharding.mesh, len(sharding.dimensions))

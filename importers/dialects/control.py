"""Loops and branches of scf, affine and tosa that give tensors become those of StableHLO: shardings pass
through them.

Scalars that they carry become tensors of rank 0. Loops without results, parallel ones, and those whose
condition computes what they hand on, stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy


def to_stablehlo_control(ops: Sequence[Any]) -> None:
    """Replaces loops and branches among the ops of a module, in place."""
    for op in reversed(ops):  # inner ones first
        if op.name in CONTROL and any(isinstance(result.type, ir.RankedTensorType) for result in op.results):
            CONTROL[op.name](_Replacement(op))


class _Replacement:
    """An op, and what is written in its place."""

    def __init__(self, op: Any) -> None:
        self.op, self.place = op, ir.InsertionPoint(op)
        self.beside = ir.Location.name("carried", op.location)  # which no value of the text is called by

    def create(
        self,
        name: str,
        types: Sequence[Any],
        operands: Sequence[Any],
        place: ir.InsertionPoint | None = None,
        attributes: dict[str, Any] | None = None,
        regions: int = 0,
    ) -> Any:
        """Writes an op, here or at a place."""
        return ir.Operation.create(
            name,
            results=list(types),
            operands=list(operands),
            attributes=attributes or {},
            regions=regions,
            loc=self.op.location if regions else self.beside,
            ip=place or self.place,
        )

    def tensor(self, value: Any, place: ir.InsertionPoint | None = None) -> Any:
        """A value as a tensor."""
        type_ = value.type
        if not _is_scalar(type_):
            return value
        maker = None if isinstance(value.owner, ir.Block) else value.owner.operation
        if maker is not None and maker.name == "arith.constant":
            return self.constant(str(maker.attributes["value"]).partition(" : ")[0], _tensor_of(type_), place)
        if isinstance(type_, ir.IndexType):
            value = self.create("arith.index_cast", [_i64()], [value], place).results[0]
        return self.create("tensor.from_elements", [_tensor_of(type_)], [value], place).results[0]

    def scalar(self, value: Any, type_: Any, place: ir.InsertionPoint) -> Any:
        """A tensor as a value of a type."""
        if not _is_scalar(type_):
            return value
        is_index = isinstance(type_, ir.IndexType)
        value = self.create("tensor.extract", [_i64() if is_index else type_], [value], place).results[0]
        return self.create("arith.index_cast", [type_], [value], place).results[0] if is_index else value

    def constant(self, text: str, type_: Any, place: ir.InsertionPoint | None = None) -> Any:
        """A constant that fills a tensor."""
        value = {"value": ir.Attribute.parse(f"dense<{text}> : {type_}")}
        return self.create("stablehlo.constant", [type_], [], place, value).results[0]

    def block(
        self, region: Any, arguments: Sequence[Any], given: Sequence[Any], before: Sequence[Any]
    ) -> Any:
        """A block with ``arguments`` tensors, and the ops of ``given``, whose arguments are ``before``. Its
        terminator is not among them. Returns the block; the old terminator is the last op of ``given``."""
        block = ir.Block.create_at_start(region, [value.type for value in arguments])
        end = self.create("stablehlo.return", [], [], ir.InsertionPoint(block))
        for old, new in zip(before, list(block.arguments)[-len(before) :] if before else (), strict=True):
            if any(True for _ in old.uses):
                old.replace_all_uses_with(self.scalar(new, old.type, ir.InsertionPoint(end)))
        for inner in list(given)[:-1]:
            inner.operation.move_before(end)
        return block

    def returns(self, block: Any, values: Sequence[Any]) -> None:
        """Ends a block with values."""
        end = list(block.operations)[-1].operation
        place = ir.InsertionPoint(end)
        self.create("stablehlo.return", [], [self.tensor(value, place) for value in values], place)
        end.erase()

    def done(self, results: Sequence[Any]) -> None:
        """Replaces the results of the op, and erases it."""
        for old, new in zip(self.op.results, results, strict=True):
            old.replace_all_uses_with(self.scalar(new, old.type, self.place))
        for label in self.op.attributes:
            if label.startswith(("sdy.", "shard.")):
                new.owner.attributes[label] = self.op.attributes[label]
        if "sdy.sharding" in self.op.attributes and (more := len(new.owner.results) - len(results)):
            given = list(sdy.TensorShardingPerValueAttr(self.op.attributes["sdy.sharding"]).shardings)
            counter = sdy.TensorShardingAttr.get(sdy.TensorShardingAttr(given[0]).mesh_or_ref, [])
            every = sdy.TensorShardingPerValueAttr.get([counter] * more + given)
            new.owner.attributes["sdy.sharding"] = every
        self.op.erase()


def _for(site: _Replacement) -> None:
    op = site.op
    if op.name == "affine.for":
        bounds = [_constant_of(op.attributes[name]) for name in ("lowerBoundMap", "upperBoundMap")]
        if None in bounds:
            return
        step: Any = op.attributes["step"]
        number = _tensor_of(ir.IndexType.get())
        start, stop, step = (site.constant(str(each), number) for each in (*bounds, step.value))
        carried = list(op.operands)
    else:
        start, stop, step = (site.tensor(value) for value in list(op.operands)[:3])
        carried = list(op.operands)[3:]
    values = [start, *(site.tensor(value) for value in carried)]
    loop = site.create("stablehlo.while", [value.type for value in values], values, regions=2)
    condition = ir.Block.create_at_start(loop.regions[0], [value.type for value in values])
    place = ir.InsertionPoint(condition)
    goes_on = _compared(site, condition.arguments[0], stop, "LT", place)
    site.create("stablehlo.return", [], [goes_on], place)
    inner = op.regions[0].blocks[0]
    handed = _handed(inner)
    body = site.block(loop.regions[1], values, inner.operations, list(inner.arguments))
    end = ir.InsertionPoint(list(body.operations)[-1])
    later = site.create("stablehlo.add", [start.type], [body.arguments[0], step], end).results[0]
    handed = [_through(inner, body, value) for value in handed]
    site.returns(body, [later, *handed])
    site.done(list(loop.results)[1:])


def _while(site: _Replacement) -> None:
    before = site.op.regions[0].blocks[0]
    goes_on, *passed = _handed(before)
    if passed == list(before.arguments):
        _loop(site, goes_on)


def _loop(site: _Replacement, goes_on: Any) -> None:
    """A loop whose condition is a value of the first region."""
    op = site.op
    before, after = (region.blocks[0] for region in op.regions)
    values = [site.tensor(value) for value in op.operands]
    loop = site.create("stablehlo.while", [value.type for value in values], values, regions=2)
    condition = site.block(loop.regions[0], values, before.operations, list(before.arguments))
    site.returns(condition, [_through(before, condition, goes_on)])
    handed = _handed(after)
    body = site.block(loop.regions[1], values, after.operations, list(after.arguments))
    site.returns(body, [_through(after, body, value) for value in handed])
    site.done(list(loop.results))


def _if(site: _Replacement) -> None:
    i32 = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    flag = site.tensor(site.op.operands[0])
    if ir.RankedTensorType(flag.type).rank:  # tosa may have one element
        bit = ir.RankedTensorType.get([], ir.RankedTensorType(flag.type).element_type)
        flag = site.create("stablehlo.reshape", [bit], [flag]).results[0]
    which = site.create("stablehlo.convert", [i32], [flag]).results[0]
    _case(site, which, list(reversed(list(site.op.regions))))


def _tosa_while(site: _Replacement) -> None:
    """The condition hands on nothing else."""
    _loop(site, _handed(site.op.regions[0].blocks[0])[0])


def _switch(site: _Replacement) -> None:
    """The last branch is the default."""
    cases = list(ir.DenseI64ArrayAttr(site.op.attributes["cases"]))
    i32 = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
    value = site.tensor(site.op.operands[0])
    which = site.constant(str(len(cases)), i32)
    for branch, number in enumerate(cases):
        same = _compared(site, value, site.constant(str(number), value.type), "EQ", site.place)
        which = site.create(
            "stablehlo.select", [i32], [same, site.constant(str(branch), i32), which]
        ).results[0]
    first, *others = site.op.regions
    _case(site, which, [*others, first])


def _case(site: _Replacement, which: Any, branches: Sequence[Any]) -> None:
    types = [_tensor_of(result.type) for result in site.op.results]
    case = site.create("stablehlo.case", types, [which], regions=len(branches))
    for region, branch in zip(case.regions, branches, strict=True):
        inner = branch.blocks[0]
        for argument, value in zip(inner.arguments, list(site.op.operands)[1:], strict=True):
            argument.replace_all_uses_with(value)
        handed = _handed(inner)
        site.returns(site.block(region, [], inner.operations, []), handed)
    site.done(list(case.results))


CONTROL: dict[str, Callable[[_Replacement], None]] = {
    "scf.for": _for,
    "affine.for": _for,
    "scf.while": _while,
    "scf.if": _if,
    "scf.index_switch": _switch,
    "tosa.cond_if": _if,
    "tosa.while_loop": _tosa_while,
}


def _handed(block: Any) -> list[Any]:
    """The values that the end of a block hands on."""
    return list(list(block.operations)[-1].operation.operands)


def _through(old: Any, new: Any, value: Any) -> Any:
    """A value that a block hands on, which may be one of the old block's arguments."""
    if isinstance(value.owner, ir.Block) and value.owner == old:
        number = ir.BlockArgument(value).arg_number
        return new.arguments[number + len(new.arguments) - len(old.arguments)]
    return value


def _compared(site: _Replacement, one: Any, other: Any, how: str, place: ir.InsertionPoint) -> Any:
    attributes = {
        "comparison_direction": ir.Attribute.parse(f"#stablehlo<comparison_direction {how}>"),
        "compare_type": ir.Attribute.parse("#stablehlo<comparison_type SIGNED>"),
    }
    flag = ir.RankedTensorType.get([], ir.IntegerType.get_signless(1))
    return site.create("stablehlo.compare", [flag], [one, other], place, attributes).results[0]


def _constant_of(attribute: Any) -> int | None:
    """The number that an affine map always gives; None for other maps."""
    results = list(attribute.value.results)
    constant = len(results) == 1 and isinstance(results[0], ir.AffineConstantExpr)
    return int(results[0].value) if constant else None


def _is_scalar(type_: Any) -> bool:
    return isinstance(type_, ir.FloatType | ir.IntegerType | ir.IndexType)


def _i64() -> Any:
    return ir.IntegerType.get_signless(64)


def _tensor_of(type_: Any) -> Any:
    """The type of a value as a tensor."""
    if isinstance(type_, ir.IndexType):
        return ir.RankedTensorType.get([], _i64())
    return ir.RankedTensorType.get([], type_) if _is_scalar(type_) else type_

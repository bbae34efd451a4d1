"""Simplifies collectives, by ``rules/dialects/simplify.dl``."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import cache
from typing import Any

from jaxlib.mlir import ir

from ...engine import Solver
from ...errors import ShardlogError, closest
from ...importers.dialects.grids import kind_of
from ...program.carried import grids_of_collectives, note_device
from ...program.mlir.modules import copy_of, entries_of, is_used, operations_in
from ...program.mlir.types import Operation, Value
from ...program.signature import describe
from ...rulebook.book import RuleBook
from ...rulebook.shipped import shipped

Facts = dict[str, list[tuple[Any, ...]]]


def rewrites() -> list[str]:
    """The names of the rewrites, in the order in which they are tried."""
    return [*_words().does]


@dataclass(frozen=True)
class _Words:
    """The facts of ``rules/dialects/simplify.dl`` about rewrites and collectives, by name."""

    does: dict[str, str]  # what each rewrite does, in the order in which they are tried
    erased: frozenset[str]
    shares: frozenset[str]
    dimension: dict[str, str]


@cache
def _words() -> _Words:
    answers = _solver().solve({}, ["rewrite", "erased", "shares", "dimension_in"])
    return _Words(
        {name: does for _, name, does in sorted(answers["rewrite"])},
        frozenset(name for (name,) in answers["erased"]),
        frozenset(name for (name,) in answers["shares"]),
        dict(answers["dimension_in"]),
    )


def simplify(
    module: ir.Module, book: RuleBook, only: Collection[str] = (), *, same_arguments: bool = False
) -> dict[str, int]:
    """Rewrites the collectives of a module, in place, until no rewrite applies.

    ``only`` names the rewrites to apply, by default all. With ``same_arguments`` all devices have the same
    arguments, as LLVM assumes where it folds a gather of slices. Returns how often each was applied. Raises
    ShardlogError for an unknown rewrite.
    """
    all_rewrites = rewrites()
    for name in only:
        if name not in all_rewrites:
            raise ShardlogError(f"there is no rewrite {name!r}", hint=closest(name, all_rewrites))
    names = [name for name in all_rewrites if not only or name in only]
    grids = grids_of_collectives(module)
    with module.context, ir.Location.unknown():
        kept = _unevenly(module, book, names, same_arguments)
        done = _Rewriting(module, book, names, kept, same_arguments).run()
    note_device(module, grids)
    return done


def _unevenly(module: ir.Module, book: RuleBook, names: list[str], same_arguments: bool) -> frozenset[int]:
    """The ops with several regions that would have the same collectives in each before, and not afterwards,
    by their number among all such ops. Devices that take different branches would wait for each other."""
    kept: frozenset[int] = frozenset()
    even = {number for number, lists in _branches(module).items() if _are_even(lists)}
    while even - kept:
        tried = copy_of(module)
        _Rewriting(tried, book, names, kept, same_arguments).run()
        lists = _branches(tried)
        uneven = frozenset(number for number in even - kept if not _are_even(lists[number]))
        if not uneven:
            break
        kept |= uneven
    return kept


def _branches(module: ir.Module) -> dict[int, list[list[tuple[str, str]]]]:
    """The collectives in each region of the ops with several regions, in order."""
    several = [op for op in operations_in(module) if len(op.regions) > 1]
    return {number: [_collectives(region) for region in op.regions] for number, op in enumerate(several)}


def _are_even(lists: list[list[tuple[str, str]]]) -> bool:
    """Whether regions have collectives, all of them the same."""
    return bool(lists[0]) and all(each == lists[0] for each in lists)


def _collectives(region: ir.Region) -> list[tuple[str, str]]:
    ops = [op.operation for block in region.blocks for op in block.operations]
    inside = [each for op in ops for each in (op, *operations_in(op))]
    return [(op.name, str(entries_of(op.attributes))) for op in inside if "grid_axes" in op.attributes]


def _solver() -> Solver:
    return shipped("dialects/simplify").solver({})


class _Rewriting:
    def __init__(
        self, module: ir.Module, book: RuleBook, names: list[str], kept: Collection[int], same_arguments: bool
    ) -> None:
        self.module, self.book, self.names = module, book, names
        self.same_arguments = same_arguments
        self.solver = _solver()
        several = [op for op in operations_in(module) if len(op.regions) > 1]
        self.kept = {inner for number in kept for inner in operations_in(several[number])}
        self.done: dict[str, int] = {}
        self._answers: dict[Any, list[str]] = {}

    def run(self) -> dict[str, int]:
        """Rewrites until nothing applies: first what only removes, which a reduce_scatter would hide."""
        does = _words().does
        for names in ([name for name in self.names if does[name] in ("operand", "skip")], self.names):
            while self.sweep(names):
                pass
        return {name: self.done[name] for name in self.names if name in self.done}

    def sweep(self, names: Collection[str]) -> bool:
        """Rewrites ops in order by some rewrites. Returns whether any changed."""
        changed = False
        for op in operations_in(self.module):  # a rewrite erases this op and ops before it alone
            if len(op.results) != 1 or not len(op.operands) or op in self.kept:
                continue
            if (name := self.choose(op, names)) is not None:
                _DONE[_words().does[name]](self, op)
                self.done[name] = self.done.get(name, 0) + 1
                changed = True
        return changed

    def choose(self, op: Operation, names: Collection[str]) -> str | None:
        """The first of some rewrites that applies to an op."""
        makers = [self.maker(value) for value in op.operands]
        if not any(each is not None and each.name.startswith("shard.") for each in (op, *makers)):
            return None
        facts = self.facts(op, makers)
        key = tuple((name, tuple(rows)) for name, rows in sorted(facts.items()))
        if key not in self._answers:
            applying = {name for (name,) in self.solver.solve(facts, ["applies"])["applies"]}
            self._answers[key] = [name for name in self.names if name in applying]
        return next((name for name in self._answers[key] if name in names), None)

    @staticmethod
    def maker(value: Value) -> Any:
        """The op that makes a value; None for an argument."""
        return None if isinstance(value.owner, ir.Block) else value.owner.operation

    def facts(self, op: Operation, makers: list[Any]) -> Facts:
        """The facts about a step for the rules."""
        facts: Facts = {"operands": [(len(op.operands),)]}
        for place, each in enumerate([op, *makers]):
            if each is None:
                continue
            if len(each.results) != 1 or (place and each.operation.block != op.operation.block):
                continue  # ops outside of a branch may have other users
            self.add(facts, "op", (place, each.name))
            self.add(facts, "used", (place, sum(1 for _ in each.results[0].uses)))
            self.add(facts, "element", (place, _element(each.results[0])))
            if len(each.operands):
                self.add(facts, "taken", (place, _element(each.operands[0])))
            if "grid_axes" not in each.attributes:
                continue
            axes = _axes(each)
            self.add(facts, "grid", (place, ir.FlatSymbolRefAttr(each.attributes["grid"]).value))
            self.add(facts, "axes", (place, ", ".join(map(str, axes))))
            for axis in axes:
                self.add(facts, "axis", (place, axis))
                if self.is_shared(each.operands[0], axis):
                    self.add(facts, "shared", (place, axis))
            label = _words().dimension.get(each.name)
            if label is not None and label in each.attributes:
                self.add(facts, "dimension", (place, ir.IntegerAttr(each.attributes[label]).value))
            if "reduction" in each.attributes:
                self.add(facts, "reduced_by", (place, kind_of(each.attributes["reduction"])))
        if not op.name.startswith("shard.") and not len(op.regions):
            answers = self.book.unchecked(describe(op, False, {}))
            if answers["elementwise"]:
                facts["elementwise"] = [()]
            shapes = {_shape(value) for value in (*op.operands, op.results[0])}
            if len(shapes) == 1 and None not in shapes:
                facts["one_shape"] = [()]
        return facts

    @staticmethod
    def add(facts: Facts, relation: str, row: tuple[Any, ...]) -> None:
        facts.setdefault(relation, []).append(row)

    def is_shared(self, value: Value, axis: int) -> bool:
        """Whether devices along an axis are known to have the same value."""
        maker = self.maker(value)
        if maker is None:
            function: Any = value.owner.owner
            return self.same_arguments and function.operation.name == "func.func"
        if maker.name in _words().shares:
            return axis in _axes(maker)
        if maker.name.startswith("shard.") or len(maker.regions):
            return False
        answers = self.book.unchecked(describe(maker, False, {}))
        if answers["constant"]:
            return True
        pure = bool(answers["pure"]) and len(maker.operands) > 0
        return pure and all(self.is_shared(operand, axis) for operand in maker.operands)

    # ---- The rewrites --------------------------------------------------------------------------------------

    def replace(self, op: Operation, value: Value) -> None:
        """Replaces the result of an op by a value, and erases what becomes unused."""
        op.results[0].replace_all_uses_with(value)
        self.erase(op)

    def erase(self, op: Operation) -> None:
        makers = {maker for value in op.operands if (maker := self.maker(value)) is not None}
        op.erase()
        for maker in makers:
            if maker.name in _words().erased and not is_used(maker):
                self.erase(maker)

    def operand(self, op: Operation) -> None:
        self.replace(op, op.operands[0])

    def skip(self, op: Operation) -> None:
        """The operand of the collective that makes a value."""
        self.replace(op, op.operands[0].owner.operation.operands[0])

    def fold(self, op: Operation) -> None:
        inner = op.operands[0].owner.operation
        folded = self.like(inner, [inner.operands[0]], op.results[0].type, before=op)
        folded.attributes["grid_axes"] = ir.DenseI16ArrayAttr.get([*_axes(inner), *_axes(op)])
        self.replace(op, folded.results[0])

    def scatter(self, op: Operation) -> None:
        self.replace(op, self.scattered(op))

    def scatter_first(self, op: Operation) -> None:
        inner = op.operands[0].owner.operation
        reduced = self.like(inner, [self.scattered(op)], op.results[0].type, before=op)
        left = [axis for axis in _axes(inner) if axis not in _axes(op)]
        reduced.attributes["grid_axes"] = ir.DenseI16ArrayAttr.get(left)
        self.replace(op, reduced.results[0])

    def scattered(self, op: Operation) -> Any:
        """The part that a device has of a sum over the axes of a slice, before that slice."""
        inner = op.operands[0].owner.operation
        attributes = {label: inner.attributes[label] for label in ("grid", "reduction")}
        attributes["grid_axes"] = op.attributes["grid_axes"]  # in the order of the parts
        attributes["scatter_dim"] = op.attributes["slice_axis"]
        scattered = ir.Operation.create(
            "shard.reduce_scatter",
            results=[op.results[0].type],
            operands=[inner.operands[0]],
            attributes=attributes,
            loc=op.location,
            ip=ir.InsertionPoint(op.operation),
        )
        return scattered.results[0]

    def move_down(self, op: Operation) -> None:
        """Applies an op to the operands of collectives, and one collective to its result."""
        collective = op.operands[0].owner.operation
        operands = [value.owner.operation.operands[0] for value in op.operands]
        element = ir.RankedTensorType(op.results[0].type).element_type
        type_ = ir.RankedTensorType.get(list(ir.RankedTensorType(operands[0].type).shape), element)
        computed = self.like(op, operands, type_, before=op)
        moved = self.like(collective, computed.results, op.results[0].type, before=op)
        self.replace(op, moved.results[0])

    @staticmethod
    def like(op: Operation, operands: Any, type_: Any, before: Any) -> Any:
        """An op like another one, on other operands."""
        return ir.Operation.create(
            op.name,
            results=[type_],
            operands=list(operands),
            attributes=entries_of(op.attributes),
            loc=before.location,
            ip=ir.InsertionPoint(before),
        )


_DONE: dict[str, Callable[[_Rewriting, Any], None]] = {
    "operand": _Rewriting.operand,
    "skip": _Rewriting.skip,
    "fold": _Rewriting.fold,
    "scatter": _Rewriting.scatter,
    "scatter_first": _Rewriting.scatter_first,
    "move_down": _Rewriting.move_down,
}


def _axes(op: Operation) -> list[int]:
    return list(ir.DenseI16ArrayAttr(op.attributes["grid_axes"]))


def _element(value: Value) -> str:
    type_ = value.type
    return str(ir.RankedTensorType(type_).element_type if isinstance(type_, ir.RankedTensorType) else type_)


def _shape(value: Value) -> tuple[int, ...] | None:
    type_ = value.type
    if not isinstance(type_, ir.RankedTensorType) or not type_.has_static_shape:
        return None
    return tuple(type_.shape)

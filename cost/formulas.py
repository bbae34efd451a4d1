"""The communication of a completed program with unknown sizes of its grid: formulas in these sizes.

In comes a run whose module has a mesh with axes of unknown size. Out come the shapes of a device's tensors
and the bytes that it receives for each reshard, in the stages of the device mesh RFC
(``rules/partition/order.dl``). Devices have no numbers there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import takewhile
from math import gcd, prod
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..program.carried import UNKNOWN, with_partial
from ..program.columns import numbers
from ..program.elements import bits_of
from ..program.meshes import SubAxis
from ..program.mlir.modules import boundary_attributes, operations_in, symbols
from ..program.mlir.origins import location_text
from ..program.shardings import Sharding
from ..runs.result import Result
from ..runs.table import table

_SHARDED = "out_sharding"  # of a collective of sdy
Known = tuple[int, tuple[str, ...]]  # a product: of a number, and of unknown sizes


@dataclass(frozen=True)
class Received:
    """A collective: its kind, its axes, the place of the reshard, and the bytes that a device receives."""

    kind: str
    axes: tuple[str, ...]
    place: str
    bytes: str


@dataclass(frozen=True)
class Formulas:
    """The shapes of a device's arguments and results, and the bytes that it receives."""

    arguments: tuple[str, ...]
    results: tuple[str, ...]
    received: tuple[Received, ...]

    def __str__(self) -> str:
        lines = [f"argument {i}: {shape}" for i, shape in enumerate(self.arguments)]
        lines += [f"result {i}: {shape}" for i, shape in enumerate(self.results)]
        rows = [(each.kind, ", ".join(each.axes), each.bytes, each.place) for each in self.received]
        heads = ("collective", "axes", "bytes received by a device", "place")
        return "\n".join([*lines, "", table(heads, rows) if rows else "nothing is sent"])

    def as_json(self) -> dict[str, Any]:
        """The same as a JSON document."""
        return asdict(self)


def formulas(result: Result) -> Formulas:
    """The formulas of a run."""
    return _Formulas(result).all()


class _Formulas:
    def __init__(self, result: Result) -> None:
        self.result, self.module = result, result.module
        self.shardings = result.program.shardings
        self.symbols: dict[tuple[int, str], str] = {}
        unknown = []
        for name, op in symbols(self.module, "sdy.mesh").items():
            number = self.shardings.names[name]
            axes = self.shardings.meshes.meshes[number].axes
            if UNKNOWN in op.attributes:
                unknown += [(number, axes[i][0]) for i in ir.DenseI64ArrayAttr(op.attributes[UNKNOWN])]
        for number, axis in unknown:
            self.symbols[number, axis] = "n" if len(unknown) == 1 else f"n{axis}"

    def all(self) -> Formulas:
        functions = symbols(self.module, "func.func")
        main = next((f for name, f in functions.items() if name == "main"), next(iter(functions.values())))
        type_ = main.type
        with self.module.context:
            arguments = self.boundary(main, "arg_attrs", type_.inputs)
            results = self.boundary(main, "res_attrs", type_.results)
            received = tuple(self.received())
        return Formulas(arguments, results, received)

    def boundary(self, function: Any, label: str, types: Sequence[Any]) -> tuple[str, ...]:
        entries = boundary_attributes(function, label)
        shapes = []
        for entry, type_ in zip(entries, types, strict=True):
            held = self.shardings.read(entry["sdy.sharding"]) if "sdy.sharding" in entry else None
            shapes.append(self.shape(type_, held))
        return tuple(shapes)

    def shape(self, type_: Any, sharding: Sharding | None) -> str:
        """The shape of a device's part, as 2x5x6/n."""
        sizes = list(ir.RankedTensorType(type_).shape)
        if sharding is None:
            return "x".join(map(str, sizes))
        parts = [self.product(sharding.mesh, dimension.axes) for dimension in sharding.dimensions]
        return "x".join(_quotient((size, ()), part) for size, part in zip(sizes, parts, strict=True))

    def product(self, mesh: int, axes: Sequence[SubAxis]) -> Known:
        """The number of parts that axes make."""
        sizes = [axis.size for axis in axes if (mesh, axis.name) not in self.symbols]
        return prod(sizes), tuple(self.symbols[k] for a in axes if (k := (mesh, a.name)) in self.symbols)

    def received(self) -> Iterator[Received]:
        reduced = self.reduced()
        for op in operations_in(self.module):
            if op.name == "sdy.sharding_constraint" or _SHARDED in op.attributes:
                goal = self.of(op.results[0])
                assert goal is not None
                start = self.of(op.operands[0]) or Sharding.open(goal.mesh, len(goal.dimensions))
                yield from self.reshard(op, start, goal)
            elif op in reduced:
                for result in op.results:
                    held = self.of(result)
                    if held is not None and (loose := self.loose(op, reduced[op], held)):
                        yield from self.reshard(op, replace(held, unreduced=loose), held, result)

    def reduced(self) -> dict[Any, set[tuple[int, int]]]:
        """The dimensions of operands that each op reduces: its operand and the dimension."""
        program, book = self.result.program, self.result.book
        by_signature: dict[int, set[tuple[int, int]]] = {}
        reduced: dict[Any, set[tuple[int, int]]] = {}
        for body in self.result.bodies:
            for node, signature in enumerate(numbers(body.function.signature).tolist()):
                if signature not in by_signature:
                    answers = book.classify(program.classes.facts(signature))
                    reduces = {factor for factor, kind in answers["kind"] if kind == "reduction"}
                    by_signature[signature] = {(t, d) for t, d, _, f in answers["maps"] if f in reduces}
                if by_signature[signature]:
                    reduced[body.ops[node].operation] = by_signature[signature]
        return reduced

    def loose(self, op: Any, reduced: set[tuple[int, int]], goal: Sharding) -> tuple[SubAxis, ...]:
        """The axes along which an op reduces a split dimension, and on which its result is not partial."""
        axes: dict[SubAxis, None] = {}
        for slot, d in sorted(reduced):
            held = self.of(op.operands[slot]) if slot < len(op.operands) else None
            if held is not None and held.mesh == goal.mesh:
                axes.update(dict.fromkeys(held.dimensions[d].axes))
        split = {axis for dimension in goal.dimensions for axis in dimension.axes}
        return tuple(axis for axis in axes if axis not in split and axis not in goal.unreduced)

    def of(self, value: Any) -> Sharding | None:
        """The sharding of a value."""
        if isinstance(value.owner, ir.Block):
            function: Any = value.owner.owner
            entry = boundary_attributes(function, "arg_attrs")[ir.BlockArgument(value).arg_number]
            return self.shardings.read(entry["sdy.sharding"]) if "sdy.sharding" in entry else None
        op = value.owner.operation
        if op.name == "sdy.sharding_constraint":
            attribute = op.attributes["sharding"]
        elif _SHARDED in op.attributes:
            attribute = op.attributes[_SHARDED]
        elif "sdy.sharding" in op.attributes:
            each = sdy.TensorShardingPerValueAttr(op.attributes["sdy.sharding"]).shardings
            attribute = each[ir.OpResult(value).result_number]
        else:
            return None
        return with_partial(self.shardings.read(attribute), op.attributes, self.shardings)

    def reshard(self, op: Any, start: Sharding, goal: Sharding, value: Any = None) -> Iterator[Received]:
        """The collectives of a reshard of an op's operand, or of a ``value``: all-reduces, all-gathers, and
        reduce-scatters as local splits."""
        type_ = ir.RankedTensorType((op.operands[0] if value is None else value).type)
        size = prod(type_.shape) * bits_of(str(type_.element_type)) // 8
        place = self.result.source.line(location_text(op))
        split = {axis for dimension in goal.dimensions for axis in dimension.axes}
        held = [list(dimension.axes) for dimension in start.dimensions]
        wanted = [list(dimension.axes) for dimension in goal.dimensions]
        loose = [axis for axis in start.unreduced if axis not in goal.unreduced]

        def received(kind: str, axes: Sequence[SubAxis], times: int, *, gathers: bool = False) -> Received:
            parts = self.product(start.mesh, [axis for dimension in held for axis in dimension])
            group = self.product(start.mesh, axes)
            below = parts if gathers else (parts[0] * group[0], parts[1] + group[1])
            names = tuple(axis.name for axis in axes)
            return Received(kind, names, place, _formula(times * size, group, below))

        whole = [axis for axis in loose if axis not in split]
        if whole:
            yield received("all-reduce", whole, 2)
        for d, (before, after) in enumerate(zip(held, wanted, strict=True)):
            pairs = zip(before, after, strict=False)
            kept = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
            if moved := before[kept:]:
                yield received("all-gather", moved, 1, gathers=True)
                held[d] = before[:kept]
        for d, after in enumerate(wanted):
            new = after[len(held[d]) :]
            if scattered := [axis for axis in new if axis in loose]:
                yield received("reduce-scatter", scattered, 1)
            held[d] = after


def _formula(size: int, group: Known, below: Known) -> str:
    """``size * (group - 1) / below`` as text, with numbers evaluated."""
    number, names = below
    common = gcd(size, number)
    size, number = size // common, number // common
    if not group[1]:
        return _quotient((size * (group[0] - 1), ()), (number, names))
    parts = " * ".join([*([str(group[0])] if group[0] != 1 else []), *group[1]])
    return _over(f"{size} * ({parts} - 1)", (number, names), " / ")


def _quotient(above: Known, below: Known) -> str:
    """A number divided by a product, as 6/n."""
    size, number = above[0], below[0]
    common = gcd(size, number)
    return _over(str(size // common), (number // common, below[1]), "/")


def _over(above: str, below: Known, sign: str) -> str:
    number, names = below
    factors = [*([str(number)] if number != 1 else []), *names]
    if not factors:
        return above
    return f"{above}{sign}{factors[0] if len(factors) == 1 else '(' + ' * '.join(factors) + ')'}"

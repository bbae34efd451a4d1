"""Which values the arguments of a program take after, so that random ones make sense.

A walk from the results of a program back to its arguments. Each op may require a domain of its operands,
always or if its results need one, as the op rules say (``rules/ops/domains.dl``). Values in loops and
branches follow their data-flow edges. A function is walked for the domains that each call needs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ..exporters.tokens import is_token
from ..program.mlir.modules import main_function, symbols
from ..program.mlir.types import FunctionOp
from ..program.signature import DescribedParts, Facts, describe, looks_at

if TYPE_CHECKING:
    from ..runs.result import Result

_CALLED = {"call": "callee", "composite": "decomposition"}  # how ops are lowered that have a function do it


@dataclass(frozen=True, order=True)
class InputDomain:
    """The domain of a value: a word of ``domain_id``, and for an "index" its upper bound."""

    kind: str
    below: int = 0


Asked = frozenset[InputDomain]
_Wanted = defaultdict[Any, set[InputDomain]]  # by value


def domains(result: Result) -> list[Asked]:
    """The domain that the program requires of each argument that is an array."""
    functions = symbols(result.module, "func.func")
    with result.module.context:
        main = functions[main_function(functions)]
        domains_asked = _DomainWalk(result, functions).function(main, [frozenset()] * len(main.type.results))
        kinds = zip(domains_asked, main.type.inputs, strict=True)
        return [domain for domain, kind in kinds if not is_token(kind)]


class _DomainWalk:
    def __init__(self, result: Result, functions: dict[str, FunctionOp]) -> None:
        self._book, self._functions = result.book, functions
        self._looks_at = looks_at({*self._book.looks_at, *self._book.domains_look_at})
        self._told, self._traits = DescribedParts(), result.book.traits
        self._said: dict[Any, dict[str, list[tuple[Any, ...]]]] = {}
        self._called: dict[Any, list[Asked]] = {}

    def function(self, function: FunctionOp, wanted: Sequence[Asked]) -> list[Asked]:
        """The domains that a function requires of its arguments, given the domains of its results."""
        block, asked_of = function.regions[0].blocks[0], _Wanted(set)
        for value, domains in zip(_returned(block), wanted, strict=True):
            asked_of[value] |= domains
        self._block(block, asked_of)
        return [frozenset(asked_of[value]) for value in block.arguments]

    def _block(self, block: ir.Block, domains: _Wanted) -> None:
        for op in reversed([each.operation for each in block.operations]):
            self._op(op, domains)

    def _op(self, op: ir.Operation, domains: _Wanted) -> None:
        if (label := _CALLED.get(self._traits.lowering(op.name))) is not None:
            domains_within = self._call(
                op.attributes[label], [frozenset(domains[value]) for value in op.results]
            )
            for value, more in zip(op.operands, domains_within, strict=True):
                domains[value] |= more
            return
        answers = self._rules(op)
        for slot, kind, below in answers["asks"]:
            domains[op.operands[slot]].add(InputDomain(kind, below))
        for index, slot in answers["hands"]:
            domains[op.operands[slot]] |= domains[op.results[index]]
        for wanted, slot, kind in answers["asks_for"]:
            for domain in [each for each in domains[op.results[0]] if each.kind == wanted]:
                domains[op.operands[slot]].add(InputDomain(kind, domain.below))
        if len(op.regions) and answers["edge_source"]:
            self._regions(op, answers, domains)
        else:
            self._edges(op, answers, domains)

    def _regions(self, op: ir.Operation, answers: Facts, domains: _Wanted) -> None:
        """Repeats until the domains of carried values hold for all their sources."""
        while self._edges(op, answers, domains) or not answers.get("walked"):
            answers = {**answers, "walked": [()]}
            for region in op.regions:
                for block in region.blocks:
                    self._block(block, domains)

    def _edges(self, op: ir.Operation, answers: Facts, domains: _Wanted) -> bool:
        """Gives the sources of edges the domains of their targets. Returns whether one of these is new."""
        wanted: dict[int, set[InputDomain]] = defaultdict(set)
        for edge, *end in answers["edge_target"]:
            wanted[edge] |= domains[_end(op, *end)]
        news = False
        for edge, *end in answers["edge_source"]:
            held = domains[_end(op, *end)]
            news = news or not wanted[edge] <= held
            held |= wanted[edge]
        return news

    def _call(self, name: ir.Attribute, wanted: list[Asked]) -> list[Asked]:
        key = ir.FlatSymbolRefAttr(name).value, tuple(wanted)
        if key not in self._called:
            self._called[key] = self.function(self._functions[key[0]], wanted)
        return self._called[key]

    def _rules(self, op: ir.Operation) -> dict[str, list[tuple[Any, ...]]]:
        facts = describe(op, False, self._looks_at, self._told)
        key = tuple((name, tuple(rows)) for name, rows in facts.items())
        if key not in self._said:
            self._said[key] = self._book.domains(facts)
        return self._said[key]


def _end(op: ir.Operation, end: str, region: int, index: int) -> Any:
    """The value at an end of a data-flow edge."""
    if end == "operand":
        return op.operands[index]
    if end == "result":
        return op.results[index]
    block = op.regions[region].blocks[0]
    return block.arguments[index] if end == "argument" else _returned(block)[index]


def _returned(block: ir.Block) -> Sequence[Any]:
    operations = block.operations
    operands: Sequence[Any] = operations[len(operations) - 1].operands
    return operands

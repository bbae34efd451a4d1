"""Subsumption clauses that erase one another's tuples: of two tuples each makes the other superfluous.

Then neither is left, or the round that finds them decides which one is. The check covers clauses whose
conditions compare variables and constants. It reports a pair of clauses if the conditions of both, of the
second with the tuples exchanged, can hold for two different tuples.
"""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement, product

from ..language.diagnostics import Reporter
from ..language.syntax import Atom, Clause, Comparison, Constant, Literal, Module, Term, Variable
from .scopes import resolve

_Node = tuple[str, object]  # the side and the name of a variable, or a constant


def warn_of_erasing(module: Module, reporter: Reporter) -> None:
    """Report subsumption clauses of one relation that erase one another's tuples."""
    clauses: dict[str, list[Clause]] = {}
    for clause in module.clauses:
        if clause.subsumes:
            clauses.setdefault(clause.head.name, []).append(clause)
    for name, own in clauses.items():
        for first, second in combinations_with_replacement(own, 2):
            if _erase(resolve(first), resolve(second)):
                line = reporter.place(first.text.start).line
                also = "" if first is second else f" and that of line {line}"
                message = f"two tuples of `{name}` may delete each other by this rule{also}"
                hint = "let the conditions put tuples in an order"
                reporter.warning("W0406", second.text.start, message, hint)


def _erase(first: Clause, second: Clause) -> bool:
    """Whether a tuple can be superfluous beside another by one clause, and the other by the second."""
    one, other = _columns(first.body[0], "first"), _columns(first.body[1], "first")
    swapped = [_columns(second.body[1], "second"), _columns(second.body[0], "second")]
    conditions = _Conditions()
    for ours, theirs in zip((one, other), swapped, strict=True):
        if None in ours or None in theirs or len(ours) != len(theirs):
            return False
        for a, b in zip(ours, theirs, strict=True):
            conditions.compare("=", a, b)
    for clause, side in ((first, "first"), (second, "second")):
        for literal in clause.body[2:]:
            if not isinstance(literal, Comparison):
                return False
            left, right = _node(literal.left, side), _node(literal.right, side)
            if not conditions.compare(literal.operator, left, right):
                return False
    return conditions.hold_for_unequal(one, other)


def _columns(literal: Literal, side: str) -> list[_Node | None]:
    assert isinstance(literal, Atom)
    return [_node(term, side) for term in literal.args]


def _node(term: Term, side: str) -> _Node | None:
    """A variable or a constant; None where a value is computed."""
    if isinstance(term, Variable):
        return side, term.name
    return ("constant", term.value) if isinstance(term, Constant) else None


class _Conditions:
    """Facts about the order of values."""

    def __init__(self) -> None:
        self.below: dict[tuple[_Node, _Node], bool] = {}  # a <= b; true: a < b
        self.unequal: list[tuple[_Node, _Node]] = []

    def compare(self, operator: str, a: _Node | None, b: _Node | None) -> bool:
        """Take a comparison; False for one that is not understood."""
        if a is None or b is None or operator not in ("=", "!=", "<", "<=", ">", ">="):
            return False
        if operator == "!=":
            self.unequal.append((a, b))
        if operator in ("<", "<=", "="):
            self._order(a, b, strict=operator == "<")
        if operator in (">", ">=", "="):
            self._order(b, a, strict=operator == ">")
        return True

    def hold_for_unequal(self, one: list[_Node | None], other: list[_Node | None]) -> bool:
        """Whether the conditions can hold where two tuples differ."""
        nodes = list(dict.fromkeys(node for pair in (*self.below, *self.unequal) for node in pair))
        constants = [node for node in nodes if node[0] == "constant"]
        self.unequal += combinations(constants, 2)
        numbers = sorted((node for node in constants if not isinstance(node[1], str)), key=_number)
        for a, b in combinations(numbers, 2):
            self._order(a, b, strict=True)
        for middle, a, b in product(nodes, repeat=3):
            if (a, middle) in self.below and (middle, b) in self.below:
                self._order(a, b, strict=self.below[a, middle] or self.below[middle, b])
        impossible = any(self.below.get((node, node)) for node in nodes)
        if impossible or any(self._same(a, b) for a, b in self.unequal):
            return False
        return not all(self._same(a, b) for a, b in zip(one, other, strict=True))

    def _order(self, a: _Node, b: _Node, *, strict: bool) -> None:
        self.below[a, b] = self.below.get((a, b), False) or strict

    def _same(self, a: _Node | None, b: _Node | None) -> bool:
        return a == b or ((a, b) in self.below and (b, a) in self.below)


def _number(node: _Node) -> float:
    return float(str(node[1]))

"""Clauses: recursive descent without backtracking."""

from __future__ import annotations

from itertools import chain, product
from math import prod
from typing import NoReturn

from .syntax import (
    Atom,
    Clause,
    Comparison,
    JoinOrder,
    Literal,
    Negation,
    RuleText,
    Truth,
    Variable,
    Wildcard,
)
from .terms import CASTS, DEEPEST, STRENGTH, TermParser
from .walk import parts, terms

_COMPARISONS = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}  # and their negations
MOST_ALTERNATIVES = 10_000  # of the body of a rule
MOST_LITERALS = 1_000  # of a rule: a rule that runs is as many calls deep
_MOST_COMBINED = 200_000  # literals of all alternatives of a rule
_MOST_IN_ALL = 500_000  # of all rules of a text that have alternatives, or several heads


class ClauseParser(TermParser):
    """The tokens of one text, and a parser of facts and rules."""

    combined = 0  # literals of the rules that have alternatives or several heads

    def clause(self) -> None:
        sentence = self.sentences.get(self.i, "")
        self.nested, self.depth = False, 0
        first, start = self.i, self.places[self.i]
        heads = [self.atom()]
        while self.accept(","):
            heads.append(self.atom())
        bodies: list[list[Literal]] = [[]]
        subsumes = len(heads) == 1 and self.accept("<=")
        if subsumes:
            heads[0] = _named(heads[0])
            before: list[Literal] = [heads[0], _named(self.atom())]
            self.take(":-", "`:-` and when the tuple before `<=` is superfluous")
            bodies = [before + body for body in self.disjunction()]
            self.take(".", "`,` or `.` after the literal")
        elif self.accept(":-"):
            bodies = self.disjunction()
            self.take(".", "`,` or `.` after the literal")
        else:
            self.take(".", "`:-` or `.` after the head")
        if len(bodies) > 1 and len(heads) * len(bodies) > MOST_ALTERNATIVES:
            self.too_many_alternatives(start)
        if self.i - first > DEEPEST:
            self.check_size(heads, bodies, start)
        if len(heads) * len(bodies) > 1:
            self.combined += len(heads) * sum(map(len, bodies))
            if self.combined > _MOST_IN_ALL:
                what = (
                    f"rules with disjunctions or several heads, up to this one, have more than {_MOST_IN_ALL}"
                )
                self.error("E0107", start, f"{what} literals", "give some of these a relation of their own")
        text = RuleText(start, self.places[self.i - 1] + 1, sentence)
        plans = self.query_plan() if self.kinds[self.i] == ".plan" else ()
        for head, body in product(heads, bodies):
            self.module.clauses.append(Clause(head, tuple(body), text, self.nested, subsumes, plans))

    def query_plan(self) -> tuple[JoinOrder, ...]:
        """``.plan`` gives orders of the atoms for versions of a rule. They are checked, and not followed."""
        orders: list[JoinOrder] = []
        while True:
            self.i += 1
            at = self.places[self.i]
            version = int(self.take("number", "the number of a version of the rule")[:9])
            self.take(":", "`:` and an order of the atoms")
            self.take("(", "`(`")
            order: list[int] = []
            while not self.accept(")"):
                if order:
                    self.take(",", "`,` or `)`")
                order.append(int(self.take("number", "the number of an atom")[:9]))
            orders.append(JoinOrder(version, tuple(order), at))
            if self.kinds[self.i] != ",":
                return tuple(orders)

    def check_size(self, heads: list[Atom], bodies: list[list[Literal]], at: int) -> None:
        """Report a clause that is too long or too deep for later stages."""
        if max(map(len, bodies)) > MOST_LITERALS:
            what = f"this rule has more than {MOST_LITERALS} literals"
            self.error("E0107", at, what, "give parts of it a relation")
        literals = {id(literal): literal for literal in chain(heads, *bodies)}
        terms_left = [(term, 1) for literal in literals.values() for term in terms(literal)]
        while terms_left:
            term, depth = terms_left.pop()
            if depth > DEEPEST:
                self.too_deep(at)
            terms_left += [(part, depth + 1) for part in parts(term)]

    def too_many_alternatives(self, at: int) -> NoReturn:
        what = f"the disjunctions of this rule have more than {MOST_ALTERNATIVES} combinations"
        self.error("E0107", at, what, "give some of them a relation of their own")

    def disjunction(self) -> list[list[Literal]]:
        self.deeper()
        bodies = self.conjunction()
        while self.accept(";"):
            bodies += self.conjunction()
            if len(bodies) > MOST_ALTERNATIVES:
                self.too_many_alternatives(self.places[self.i])
        self.depth -= 1
        return bodies

    def conjunction(self) -> list[list[Literal]]:
        bodies = self.term()
        while self.accept(","):
            more = self.term()
            if len(bodies) == 1 == len(more):
                bodies[0] += more[0]
            else:
                size = sum(map(len, bodies)) * len(more) + sum(map(len, more)) * len(bodies)
                self.check_combined(len(bodies) * len(more), size, self.places[self.i])
                if len(more) == 1:
                    for body in bodies:
                        body += more[0]
                else:
                    bodies = [a + b for a in bodies for b in more]
        return bodies

    def check_combined(self, alternatives: int, size: int, at: int) -> None:
        """Report alternatives of a body that are too many, or have too many literals."""
        if alternatives > MOST_ALTERNATIVES:
            self.too_many_alternatives(at)
        if size > _MOST_COMBINED:
            what = f"the combinations of this rule's disjunctions have more than {_MOST_COMBINED} literals"
            self.error("E0107", at, what, "give some of them a relation of their own")

    def term(self) -> list[list[Literal]]:
        kind = self.kinds[self.i]
        if kind == "identifier" and self.kinds[self.i + 1] == "(" and self.texts[self.i] not in CASTS:
            return [[self.atom()]]
        at = self.places[self.i]
        if kind == "!":
            self.i += 1
            if self.kinds[self.i] == "identifier" and self.kinds[self.i + 1] == "(":
                return [[Negation(self.atom(), at)]]
            self.deeper()
            bodies = self.term()
            ways = prod(map(len, bodies))
            self.check_combined(ways, ways * len(bodies) if ways > 1 else 0, at)
            self.depth -= 1
            return negated(bodies)
        if kind == "(" and not self.parenthesis_is_expression():
            self.i += 1
            bodies = self.disjunction()
            self.take(")", "`,` `;` or `)`")
            return bodies
        if kind == "true" or kind == "false":
            self.i += 1
            return [[Truth(kind == "true", at)]]
        if kind == "match" or kind == "contains":
            self.i += 1
            self.take("(", "`(`")
            left = self.expression()
            self.take(",", "`,`")
            right = self.expression()
            self.take(")", "`)`")
            return [[Comparison(kind, left, right, at)]]
        left = self.expression()
        operator = self.kinds[self.i]
        if isinstance(left, Variable) and self.qualifies():
            self.i -= 1
            return [[self.atom()]]
        if operator not in _COMPARISONS:
            if isinstance(left, Variable) and left.at == self.places[self.i - 1]:
                self.expected(f"a comparison after the variable `{left.name}`")
            self.expected("a comparison: = != < <= > >=")
        at = self.places[self.i]
        self.i += 1
        return [[Comparison(operator, left, self.expression(), at)]]

    def parenthesis_is_expression(self) -> bool:
        """Whether the parenthesis here is part of an expression, as in ``(x + 1) * 2 = y``."""
        after = self.kinds[self.closing(self.i) + 1]
        return after in _COMPARISONS or after in STRENGTH

    def atom(self) -> Atom:
        if self.kinds[self.i] == "identifier" and self.kinds[self.i + 1] == "(":
            name, at = self.texts[self.i], self.places[self.i]
            self.i += 1
        else:
            name, at = self.qualified("an atom")
        self.take("(", f"`(` after the relation `{name}`")
        return Atom(name, self.arguments(")"), at)


def _named(atom: Atom) -> Atom:
    """The atom with names for its unnamed variables."""
    args = (Variable(f"_{t.at}@", t.at) if isinstance(t, Wildcard) else t for t in atom.args)
    return atom._replace(args=tuple(args))


def negated(bodies: list[list[Literal]]) -> list[list[Literal]]:
    """The negation of a disjunction of conjunctions, as one (De Morgan)."""
    return [list(choice) for choice in product(*([_negation(x) for x in body] for body in bodies))]


def _negation(literal: Literal) -> Literal:
    if isinstance(literal, Atom):
        return Negation(literal, literal.at)
    if isinstance(literal, Negation):
        return literal.atom
    if isinstance(literal, Truth):
        return Truth(not literal.value, literal.at)
    operator = _COMPARISONS.get(literal.operator) or (
        literal.operator[1:] if literal.operator[0] == "!" else f"!{literal.operator}"
    )
    return Comparison(operator, literal.left, literal.right, literal.at)

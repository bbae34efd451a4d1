"""Clauses and their terms: recursive descent, precedence climbing for expressions, no backtracking."""

from __future__ import annotations

from itertools import chain, product
from math import prod
from typing import NoReturn

from ..analysis.scopes import parts, terms
from .diagnostics import Reporter, did_you_mean
from .lexer import KEYWORDS, tokenize, unescape
from .syntax import (
    Aggregate,
    Atom,
    Branch,
    Call,
    Cast,
    Clause,
    Comparison,
    Constant,
    Counter,
    Literal,
    Module,
    Negation,
    Nil,
    Record,
    Term,
    Text,
    Truth,
    Variable,
    Wildcard,
)

# Binding strength of infix functors; all but ^ group to the left.
_STRENGTH = {
    "lor": 1, "lxor": 2, "land": 3, "bor": 4, "bxor": 5, "band": 6, "bshl": 7, "bshr": 7, "bshru": 7,
    "+": 8, "-": 8, "*": 9, "/": 9, "%": 9, "^": 11,
}  # fmt: skip
_PREFIX = {"-": "neg", "bnot": "bnot", "lnot": "lnot"}
_PREFIX_STRENGTH = 10
_COMPARISONS = {"=": "!=", "!=": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}  # and their negations
_FUNCTORS = frozenset(
    ["cat", "ord", "range", "strlen", "substr", "to_float", "to_number", "to_string", "to_unsigned"]
)
_CASTS = {
    "ftoi": "to_number", "utoi": "to_number", "itou": "to_unsigned", "ftou": "to_unsigned",
    "itof": "to_float", "utof": "to_float",
}  # fmt: skip
_AGGREGATES = frozenset(["count", "sum", "min", "max", "mean"])
_MOST_ALTERNATIVES = 10_000
_MOST_LITERALS = 1_000  # of a rule: a rule that runs is as many calls deep
DEEPEST = 100  # levels of a term or of a body: what works on them is recursive


class ReportedError(Exception):
    """A syntax error that has been reported: go on with the next statement."""


class ClauseParser:
    """The tokens of one text, and what stands in facts and rules."""

    def __init__(self, text: str, start: int, module: Module, reporter: Reporter) -> None:
        tokens = tokenize(text, start, reporter)
        self.text = text
        self.start = start
        self.kinds = tokens.kinds
        self.texts = tokens.texts
        self.places = tokens.places
        self.sentences = tokens.sentences
        self.comments = tokens.comments
        self.module = module
        self.reporter = reporter
        self.i = 0
        self.nested = False  # whether the clause has an aggregate
        self.depth = 0  # of the parentheses around the token
        self.pairs: dict[int, int] = {}  # opening parentheses, by index: the closing ones

    # ---- Clauses ----------------------------------------------------------------------------------------

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
        if len(bodies) > 1 and len(heads) * len(bodies) > _MOST_ALTERNATIVES:
            self.too_many_alternatives(start)
        if self.i - first > DEEPEST:
            self.check_size(heads, bodies, start)
        text = Text(start, self.places[self.i - 1] + 1, sentence)
        plans = self.query_plan(bodies) if self.kinds[self.i] == ".plan" else ()
        for head, body in product(heads, bodies):
            self.module.clauses.append(Clause(head, tuple(body), text, self.nested, subsumes, plans))

    def query_plan(self, bodies: list[list[Literal]]) -> tuple[tuple[int, int], ...]:
        """``.plan`` gives orders of the atoms for versions of a rule. They are checked, and not followed."""
        found: list[tuple[int, int]] = []
        while True:
            self.i += 1
            at = self.places[self.i]
            found.append((int(self.take("number", "the number of a version of the rule")[:9]), at))
            self.take(":", "`:` and an order of the atoms")
            self.take("(", "`(`")
            order: list[int] = []
            while not self.accept(")"):
                if order:
                    self.take(",", "`,` or `)`")
                order.append(int(self.take("number", "the number of an atom")[:9]))
            for body in bodies:
                atoms = sum(isinstance(literal, Atom) for literal in body)
                if sorted(order) != list(range(1, atoms + 1)):
                    hint = f"it has {atoms}, which are numbered from 1 on"
                    self.reporter.error("E0102", at, "this is no order of the rule's atoms", hint)
            if self.kinds[self.i] != ",":
                return tuple(found)

    def check_size(self, heads: list[Atom], bodies: list[list[Literal]], at: int) -> None:
        """Report a clause that is too long or too deep for what works on it."""
        if max(map(len, bodies)) > _MOST_LITERALS or len(bodies) * len(bodies[0]) > 10 * _MOST_ALTERNATIVES:
            self.error(
                "E0107",
                at,
                f"this rule has more than {_MOST_LITERALS} literals",
                "give parts of it a relation",
            )
        found = {id(literal): literal for literal in chain(heads, *bodies)}
        terms_left = [(term, 1) for literal in found.values() for term in terms(literal)]
        while terms_left:
            term, depth = terms_left.pop()
            if depth > DEEPEST:
                self.too_deep(at)
            terms_left += [(part, depth + 1) for part in parts(term)]

    def too_deep(self, at: int) -> NoReturn:
        hint = "give parts of it a relation of their own"
        self.error("E0107", at, f"this rule is nested more than {DEEPEST} levels deep", hint)

    def too_many_alternatives(self, at: int) -> NoReturn:
        what = f"the disjunctions of this rule have more than {_MOST_ALTERNATIVES} combinations"
        self.error("E0107", at, what, "give some of them a relation of their own")

    def disjunction(self) -> list[list[Literal]]:
        self.deeper()
        bodies = self.conjunction()
        while self.accept(";"):
            bodies += self.conjunction()
            if len(bodies) > _MOST_ALTERNATIVES:
                self.too_many_alternatives(self.places[self.i])
        self.depth -= 1
        return bodies

    def deeper(self) -> None:
        """Go a level down. (A clause starts at the top again, also after an error.)"""
        self.depth += 1
        if self.depth > DEEPEST:
            self.too_deep(self.places[self.i])

    def conjunction(self) -> list[list[Literal]]:
        bodies = self.term()
        while self.accept(","):
            more = self.term()
            if len(bodies) == 1 == len(more):
                bodies[0] += more[0]
            else:
                if len(bodies) * len(more) > _MOST_ALTERNATIVES:
                    self.too_many_alternatives(self.places[self.i])
                bodies = [a + b for a in bodies for b in more]
        return bodies

    def term(self) -> list[list[Literal]]:
        kind = self.kinds[self.i]
        if kind == "identifier" and self.kinds[self.i + 1] == "(" and self.texts[self.i] not in _CASTS:
            return [[self.atom()]]
        at = self.places[self.i]
        if kind == "!":
            self.i += 1
            if self.kinds[self.i] == "identifier" and self.kinds[self.i + 1] == "(":
                return [[Negation(self.atom(), at)]]
            self.deeper()
            bodies = self.term()
            if prod(map(len, bodies)) > _MOST_ALTERNATIVES:
                self.too_many_alternatives(at)
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
        return after in _COMPARISONS or after in _STRENGTH

    def closing(self, opening: int) -> int:
        """The index of the parenthesis that closes this one, or of the end."""
        if opening not in self.pairs:
            # All that are opened from here on, up to where this one closes: each is looked for once.
            kinds, open_, i = self.kinds, [opening], opening
            while open_ and kinds[i] != "end":
                i += 1
                if kinds[i] in ("(", "[", "{"):
                    open_.append(i)
                elif kinds[i] in (")", "]", "}"):
                    self.pairs[open_.pop()] = i
            self.pairs.update(dict.fromkeys(open_, len(kinds) - 2))
        return self.pairs[opening]

    def atom(self) -> Atom:
        if self.kinds[self.i] == "identifier" and self.kinds[self.i + 1] == "(":
            name, at = self.texts[self.i], self.places[self.i]
            self.i += 1
        else:
            name, at = self.qualified("an atom")
        self.take("(", f"`(` after the relation `{name}`")
        return Atom(name, self.arguments(")"), at)

    # ---- Terms ------------------------------------------------------------------------------------------

    def arguments(self, closing: str) -> tuple[Term, ...]:
        """Terms separated by commas, and the closing parenthesis; the opening one has been read."""
        kinds = self.kinds
        args: list[Term] = []
        if kinds[self.i] == closing:
            self.i += 1
            return ()
        while True:
            i = self.i
            kind, after = kinds[i], kinds[i + 1]
            if (kind == "identifier" or kind == "_") and (after == "," or after == closing):
                # Nearly all arguments are plain variables.
                place = self.places[i]
                args.append(Variable(self.texts[i], place) if kind == "identifier" else Wildcard(place))
                self.i = i + 2
                if after == closing:
                    return tuple(args)
                continue
            args.append(self.expression())
            if kinds[self.i] == closing:
                self.i += 1
                return tuple(args)
            self.take(",", f"`,` or `{closing}`")

    def expression(self, strength: int = 0) -> Term:
        self.deeper()
        left = self.operand()
        while (bind := _STRENGTH.get(self.kinds[self.i], 0)) > strength:
            operator, at = self.kinds[self.i], self.places[self.i]
            self.i += 1
            right = self.expression(bind - 1 if operator == "^" else bind)
            left = Call(operator, (left, right), at)
        self.depth -= 1
        return left

    def operand(self) -> Term:
        kind, text, at = self.kinds[self.i], self.texts[self.i], self.places[self.i]
        self.i += 1
        if kind == "identifier":
            if text in _CASTS:
                self.take("(", f"`(` after `{text}`")
                return Call(_CASTS[text], self.arguments(")"), at)
            if self.kinds[self.i] == "(":
                self.error("E0102", at, f"`{text}` is not a functor", did_you_mean(text, _FUNCTORS))
            return Variable(text, at)
        if kind == "_":
            return Wildcard(at)
        if kind == "number":
            return Constant(self.integer(text, at, -(1 << 63), (1 << 64) - 1), "integer", at)
        if kind == "unsigned":
            return Constant(self.integer(text[:-1], at, 0, (1 << 64) - 1), "unsigned", at)
        if kind == "float":
            return Constant(float(text), "float", at)
        if kind == "address":
            return Constant(self.address(text, at), "integer", at)
        if kind == "string":
            return Constant(unescape(text, at, self.reporter), "symbol", at)
        if kind in _PREFIX:
            value = self.expression(_PREFIX_STRENGTH)
            if kind == "-" and isinstance(value, Constant) and value.kind in ("integer", "float"):
                assert not isinstance(value.value, str)
                return Constant(-value.value, value.kind, at)
            return Call(_PREFIX[kind], (value,), at)
        if kind == "(":
            value = self.expression()
            self.take(")", "`)`")
            return value
        if kind == "[":
            return Record(self.arguments("]"), at)
        if kind == "nil":
            return Nil(at)
        if kind == "$":
            if self.kinds[self.i] != "identifier":
                self.reporter.warning("W0103", at, "`$` as a counter is out of use", "write autoinc()")
                return Counter(at)
            name = self.qualified("the name of a branch")[0]
            return Branch(name, self.arguments(")") if self.accept("(") else (), at)
        if kind == "autoinc":
            self.take("(", "`(` after `autoinc`")
            self.take(")", "`)`: `autoinc` takes nothing")
            return Counter(at)
        if kind in _FUNCTORS:
            self.take("(", f"`(` after `{kind}`")
            return Call(kind, self.arguments(")"), at)
        if kind == "as":
            self.take("(", "`(` after `as`")
            value = self.expression()
            self.take(",", "`,` and a type")
            type_name = self.qualified("a type")[0]
            self.take(")", "`)`")
            return Cast(value, type_name, at)
        if kind in _AGGREGATES:
            return self.aggregate(kind, at)
        self.i -= 1
        return self.not_a_term(kind, at)

    def not_a_term(self, kind: str, at: int) -> NoReturn:
        if kind == "recursive_iteration_cnt":
            hint = "answers never depend on the rounds of evaluation"
            self.error("E0105", at, "the counter of iterations is not supported", hint)
        if kind == "@":
            self.error("E0105", at, "user functors are not supported", "a rule file never runs code")
        self.expected("a term")

    def integer(self, text: str, at: int, low: int, high: int) -> int:
        base = {"0b": 2, "0x": 16}.get(text[:2], 10)
        digits = (text if base == 10 else text[2:]).lstrip("0") or "0"
        # A number of many digits takes long, and Python may refuse it.
        value = high + 1 if len(digits) > 64 else int(digits, base)
        if not low <= value <= high:
            self.reporter.error("E0103", at, f"{text} does not fit into 64 bits")
            return 0
        return value

    def address(self, text: str, at: int) -> int:
        """The number of an address such as 10.0.0.1, as a ``number`` of 32 bits."""
        number = 0
        for part in text.split("."):
            value = int(part[:10])
            if value > 255 or len(part) > 10:
                self.reporter.error("E0103", at, f"{text} is no address: its parts go up to 255")
                return 0
            number = number << 8 | value
        return number - (number >> 31 << 32)

    def aggregate(self, function: str, at: int) -> Term:
        if function in ("min", "max") and self.kinds[self.i] == "(" and self.several_arguments():
            self.i += 1
            return Call(function, self.arguments(")"), at)
        self.nested = True
        target = None
        if function != "count":
            target = self.expression()
        self.take(":", "`:` and the body of the aggregate")
        if self.accept("{"):
            bodies = self.disjunction()
            self.take("}", "`,` or `}`")
            if len(bodies) > 1:
                self.later(at, "disjunctions in aggregates")
            return Aggregate(function, target, tuple(bodies[0]), at)
        return Aggregate(function, target, (self.atom(),), at)

    def several_arguments(self) -> bool:
        """Whether the parenthesis here holds ``x, y``, as in ``max(x, y)``: in ``max (x + 1) : { ... }`` it
        starts the target of an aggregate."""
        i, closing = self.i + 1, self.closing(self.i)
        while i < closing:
            if self.kinds[i] == ",":
                return True
            i = 1 + (self.closing(i) if self.kinds[i] in ("(", "[", "{") else i)
        return False

    # ---- Tokens -----------------------------------------------------------------------------------------

    def accept(self, kind: str) -> bool:
        if self.kinds[self.i] == kind:
            self.i += 1
            return True
        return False

    def take(self, kind: str, what: str) -> str:
        if self.kinds[self.i] != kind:
            self.expected(what)
        self.i += 1
        return self.texts[self.i - 1]

    def qualified(self, what: str) -> tuple[str, int]:
        at = self.places[self.i]
        name = self.take("identifier", what)
        while self.qualifies():
            name += "." + self.texts[self.i + 1]
            self.i += 2
        return name, at

    def qualifies(self) -> bool:
        """Whether a dot and a name follow the last token without a space between them."""
        i, places = self.i, self.places
        return (
            self.kinds[i] == "."
            and self.kinds[i + 1] == "identifier"
            and places[i] == places[i - 1] + len(self.texts[i - 1])
            and places[i + 1] == places[i] + 1
        )

    def expected(self, what: str) -> NoReturn:
        kind, text = self.kinds[self.i], self.texts[self.i]
        found = "the end of the file" if kind == "end" else f"`{text}`"
        hint = f"`{text}` is a reserved word" if kind in KEYWORDS and kind != "_" else ""
        at, end = self.places[self.i], self.end_of_previous()
        self.error("E0102", end or at, f"expected {what}, found {found}", hint)

    def end_of_previous(self) -> int | None:
        """The end of the previous token, if that is on an earlier line: something missing belongs there."""
        if self.i == 0:
            return None
        place, text = self.places[self.i - 1], self.texts[self.i - 1]
        gap = self.text[place - self.start : self.places[self.i] - self.start]
        return place + len(text) if "\n" in gap else None

    def later(self, at: int, what: str) -> NoReturn:
        self.error("E0104", at, f"{what} are not supported yet")

    def error(self, code: str, at: int, message: str, hint: str = "") -> NoReturn:
        self.reporter.error(code, at, message, hint)
        raise ReportedError


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

"""Terms: recursive descent, with precedence climbing for expressions."""

from __future__ import annotations

from typing import NoReturn

from .diagnostics import Reporter, did_you_mean
from .lexer import unescape
from .syntax import (
    Aggregate,
    Atom,
    Branch,
    Call,
    Cast,
    Constant,
    Counter,
    IterationCount,
    Literal,
    Module,
    Nil,
    Record,
    Term,
    Variable,
    Wildcard,
)
from .tokens import ReportedError, TokenReader

# Binding strength of infix functors; all but ^ group to the left.
STRENGTH = {
    "lor": 1, "lxor": 2, "land": 3, "bor": 4, "bxor": 5, "band": 6, "bshl": 7, "bshr": 7, "bshru": 7,
    "+": 8, "-": 8, "*": 9, "/": 9, "%": 9, "^": 11,
}  # fmt: skip
_PREFIX = {"-": "neg", "bnot": "bnot", "lnot": "lnot"}
_PREFIX_STRENGTH = 10  # binding strength of prefix operators, above all binary ones but power
NO_CODE = "a rule file never runs code; in Python Program(functors={...}) names functions"
_FUNCTORS = frozenset(
    ["cat", "ord", "range", "strlen", "substr", "to_float", "to_number", "to_string", "to_unsigned"]
)
CASTS = {
    "ftoi": "to_number", "utoi": "to_number", "itou": "to_unsigned", "ftou": "to_unsigned",
    "itof": "to_float", "utof": "to_float",
}  # fmt: skip
_CONSTANTS = frozenset(["number", "unsigned", "float", "address", "string"])
_AGGREGATES = frozenset(["count", "sum", "min", "max", "mean"])
DEEPEST = 100  # levels of a term or of a body, which functions on them recurse through


class TermParser(TokenReader):
    """The tokens of one text, and the terms that stand in clauses."""

    def __init__(self, text: str, start: int, module: Module, reporter: Reporter) -> None:
        super().__init__(text, start, reporter)
        self.module = module
        self.nested = False  # whether the clause has an aggregate
        self.depth = 0  # of the parentheses around the token

    def atom(self) -> Atom:
        """An atom, as in an aggregate."""
        raise NotImplementedError

    def disjunction(self) -> list[list[Literal]]:
        """The body of an aggregate."""
        raise NotImplementedError

    def deeper(self) -> None:
        """Go a level down. (A clause starts at the top again, also after an error.)"""
        self.depth += 1
        if self.depth > DEEPEST:
            self.too_deep(self.places[self.i])

    def too_deep(self, at: int) -> NoReturn:
        hint = "give parts of it a relation of their own"
        self.error("E0107", at, f"this rule is nested more than {DEEPEST} levels deep", hint)

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
        while (bind := STRENGTH.get(self.kinds[self.i], 0)) > strength:
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
            if text in CASTS:
                self.take("(", f"`(` after `{text}`")
                return Call(CASTS[text], self.arguments(")"), at)
            if self.kinds[self.i] == "(":
                self.error("E0102", at, f"`{text}` is not a functor", did_you_mean(text, _FUNCTORS))
            return Variable(text, at)
        if kind == "_":
            return Wildcard(at)
        if kind in _CONSTANTS:
            return self.constant(kind, text, at)
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
        return self.call(kind, at)

    def constant(self, kind: str, text: str, at: int) -> Constant:
        """A token of one of the kinds ``_CONSTANTS``."""
        if kind == "number":
            return Constant(self.integer(text, at, -(1 << 63), (1 << 64) - 1), "integer", at)
        if kind == "unsigned":
            return Constant(self.integer(text[:-1], at, 0, (1 << 64) - 1), "unsigned", at)
        if kind == "float":
            return Constant(float(text), "float", at)
        if kind == "address":
            return Constant(self.address(text, at), "integer", at)
        symbol = unescape(text, at, self.reporter)
        self.module.symbols.setdefault(symbol)
        return Constant(symbol, "symbol", at)

    def call(self, kind: str, at: int) -> Term:
        """A call or an aggregate, whose name has been read. Reports all other tokens."""
        if kind == "autoinc":
            self.take("(", "`(` after `autoinc`")
            self.take(")", "`)`: `autoinc` takes nothing")
            return Counter(at)
        if kind == "recursive_iteration_cnt":
            self.take("(", "`(` after `recursive_iteration_cnt`")
            self.take(")", "`)`: `recursive_iteration_cnt` takes nothing")
            return IterationCount(at)
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
        if kind == "@" and self.texts[self.i] in self.module.callable:
            name = f"@{self.texts[self.i]}"
            self.i += 1
            self.take("(", f"`(` after `{name}`")
            return Call(name, self.arguments(")"), at)
        self.i -= 1
        return self.not_a_term(kind, at)

    def not_a_term(self, kind: str, at: int) -> NoReturn:
        if kind == "@":
            if self.texts[self.i + 1] in self.module.functors:  # as was said at its declaration
                raise ReportedError
            self.error("E0105", at, "user functors are not supported", NO_CODE)
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
                self.reporter.error("E0103", at, f"{text} is not an address: its parts are at most 255")
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

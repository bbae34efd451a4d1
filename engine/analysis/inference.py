"""The kinds of the terms and variables of a clause."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..language.diagnostics import Reporter, counted, did_you_mean
from ..language.syntax import (
    Aggregate,
    Atom,
    Branch,
    Call,
    Cast,
    Clause,
    Comparison,
    Constant,
    Counter,
    IterationCount,
    Negation,
    Nil,
    Record,
    Term,
    Variable,
    Wildcard,
)
from ..language.walk import literals
from .scopes import own_name
from .types import PRIMITIVES, Types

_NUMERIC = frozenset(["number", "unsigned", "float"])
_INTEGRAL = frozenset(["number", "unsigned"])
_ORDERED = frozenset(PRIMITIVES)

# Functors whose arguments and result have one kind, and the kinds that it may be.
_UNIFORM = {
    **dict.fromkeys(["-", "*", "/", "^", "neg", "range"], _NUMERIC),
    **dict.fromkeys(["%", "band", "bor", "bxor", "bnot", "bshl", "bshr", "bshru"], _INTEGRAL),
    **dict.fromkeys(["land", "lor", "lxor", "lnot"], _INTEGRAL),
    **dict.fromkeys(["+", "min", "max"], _ORDERED),
    "cat": frozenset(["symbol"]),
}
# Functors whose arguments and result differ: the kinds of the arguments (None: any primitive), the result.
_MIXED: dict[str, tuple[tuple[str | None, ...], str]] = {
    "strlen": (("symbol",), "number"),
    "substr": (("symbol", "number", "number"), "symbol"),
    "ord": ((None,), "number"),  # also of a record
    "to_number": ((None,), "number"),
    "to_unsigned": ((None,), "unsigned"),
    "to_float": ((None,), "float"),
    "to_string": ((None,), "symbol"),
}
_ARITIES = {
    **dict.fromkeys(["neg", "bnot", "lnot", "ord", "strlen"], (1, 1)),
    **dict.fromkeys(["to_number", "to_unsigned", "to_float", "to_string"], (1, 1)),
    "substr": (3, 3),
    "range": (2, 3),
    **dict.fromkeys(["min", "max", "cat"], (1, 99)),
}


def kind_of(term: Term, kinds: Mapping[str, str], types: Types) -> str | None:
    """The kind of a term, given the kinds of variables; None if it depends on its use."""
    if isinstance(term, Variable):
        return kinds.get(term.name)
    if isinstance(term, Constant):
        return None if term.kind == "integer" else term.kind
    if isinstance(term, Cast):
        return types.kinds[term.type_name]
    if isinstance(term, Branch):
        return types.branches[term.name].type_name
    if isinstance(term, Counter):
        return "number"
    if isinstance(term, IterationCount):
        return "unsigned"
    if isinstance(term, Aggregate):
        if term.target is None:
            return "number"
        return "float" if term.function == "mean" else kind_of(term.target, kinds, types)
    if isinstance(term, Call):
        if term.name in _MIXED:
            return _MIXED[term.name][1]
        return next((k for arg in term.args if (k := kind_of(arg, kinds, types))), None)
    return None


def cast_kind(term: Cast, kinds: Mapping[str, str], types: Types) -> str:
    """The kind of the operand of a cast. A term of constants is a number; a constant has the kind that it is
    cast to."""
    is_computed = isinstance(term.value, Call | Aggregate)
    default = "number" if is_computed else types.kinds[term.type_name]
    return kind_of(term.value, kinds, types) or default


def cast_functor(term: Cast, kinds: Mapping[str, str], types: Types) -> str | None:
    """The functor that converts the bits of a cast number to another type; None if the bits are the same."""
    inside, kind = cast_kind(term, kinds, types), types.kinds[term.type_name]
    return f"as_{kind}" if kind in _NUMERIC and inside != kind else None


def argument_kinds(term: Call | Record, kind: str, kinds: Mapping[str, str], types: Types) -> tuple[str, ...]:
    """The kinds of the arguments of a term of a kind. The clause must be checked."""
    if isinstance(term, Record):
        return types.fields[kind]
    if term.name in _MIXED:
        wanted = zip(term.args, _MIXED[term.name][0], strict=True)
        return tuple(k or kind_of(arg, kinds, types) or "number" for arg, k in wanted)
    return (kind_of(term, kinds, types) or kind,) * len(term.args)


class Inference:
    """The kinds of the variables of one clause, from the columns they stand in and the functors around them.

    Works to a fixpoint: every term is visited with the kind that its place expects until nothing new is
    learned; then overloads that are still open become "number"; then mismatches are reported.
    """

    def __init__(self, types: Types, columns: Mapping[str, tuple[str, ...]], reporter: Reporter) -> None:
        self._types = types
        self._columns = columns  # relation -> kinds of its columns
        self._reporter = reporter
        self.kinds: dict[str, str] = {}
        self._learned = False
        self._final = False
        self._default = False

    def clause(self, clause: Clause) -> dict[str, str]:
        """The kind of every variable; reports E03xx where kinds do not agree."""
        kinds: dict[str, str] = {}
        self.kinds = kinds
        rest: list[tuple[Term, str]] = []  # terms other than plain variables, with the expected kind
        comparisons: list[Comparison] = []
        head, *others = literals(clause)
        for literal in (*others, head):  # a head that does not fit its body is reported at the head
            atom = literal.atom if isinstance(literal, Negation) else literal
            if isinstance(atom, Atom):
                for arg, kind in zip(atom.args, self._columns[atom.name], strict=True):
                    if type(arg) is Variable:
                        if kinds.setdefault(arg.name, kind) != kind:
                            self._mismatch(arg.at, f"`{own_name(arg)}`", kinds[arg.name], kind)
                    elif type(arg) is not Wildcard:
                        rest.append((arg, kind))
            elif isinstance(atom, Comparison):
                comparisons.append(atom)
        if rest or comparisons:
            self._solve(rest, comparisons)
        return kinds

    def _solve(self, rest: list[tuple[Term, str]], comparisons: list[Comparison]) -> None:
        self._final = self._default = False
        while True:
            self._learned = False
            self._visit_all(rest, comparisons)
            if self._learned:
                continue
            if self._default:
                break
            self._default = True
        self._final = True
        self._visit_all(rest, comparisons)

    def _visit_all(self, rest: list[tuple[Term, str]], comparisons: list[Comparison]) -> None:
        for term, kind in rest:
            self._visit(term, kind)
        for comparison in comparisons:
            if comparison.operator.endswith(("match", "contains")):
                self._visit(comparison.left, "symbol")
                self._visit(comparison.right, "symbol")
            else:
                self._together((comparison.left, comparison.right), None)

    def _together(self, terms: tuple[Term, ...], expected: str | None) -> str | None:
        """Visit terms that must have one kind; returns it, None if it is not known yet."""
        kind = expected
        for term in sorted(terms, key=lambda term: isinstance(term, Record)):  # known by the others
            kind = kind or self._visit(term, None)
        if kind is None and self._default and any(map(_is_numeric, terms)):
            kind = "number"
        if kind is not None:
            for term in terms:
                self._visit(term, kind)
        return kind

    def _visit(self, term: Term, expected: str | None) -> str | None:
        """Learn from a term in a place that expects a kind; returns the term's kind, None: not known."""
        if isinstance(term, Variable):
            kind = self.kinds.get(term.name)
            if kind is None and expected is not None:
                self.kinds[term.name] = expected
                self._learned = True
            return self._agree(term.at, f"`{own_name(term)}`", kind, expected)
        if isinstance(term, Constant):
            if term.kind == "integer":
                if expected is None or expected in _NUMERIC:
                    if self._final and expected is not None:
                        self._fits(term, expected)
                    return expected
                return self._agree(term.at, f"`{term.value}`", "number", expected)
            shown = f'"{term.value}"' if term.kind == "symbol" else str(term.value)
            return self._agree(term.at, f"`{shown}`", term.kind, expected)
        if isinstance(term, Wildcard):
            return expected
        if isinstance(term, Nil):
            if expected in PRIMITIVES:
                self._agree(term.at, "`nil`", "record", expected)
            return expected
        if isinstance(term, Record):
            return self._visit_record(term, expected)
        if isinstance(term, Cast):
            return self._visit_cast(term, expected)
        if isinstance(term, Aggregate):
            return self._visit_aggregate(term, expected)
        if isinstance(term, Branch):
            return self._visit_branch(term, expected)
        if isinstance(term, Counter):
            return self._agree(term.at, "a counter", "number", expected)
        if isinstance(term, IterationCount):
            return self._agree(term.at, "`recursive_iteration_cnt()`", "unsigned", expected)
        return self._visit_call(term, expected)

    def _visit_cast(self, term: Cast, expected: str | None) -> str | None:
        kind = self._types.kinds.get(term.type_name)
        # A constant has the type that it is taken as.
        inside = self._visit(term.value, kind if isinstance(term.value, Constant) else None)
        if kind is None:
            hint = partial(did_you_mean, term.type_name, self._types.kinds)
            self._reporter.error("E0201", term.at, f"unknown type `{term.type_name}`", hint)
            return expected
        has_bits = inside in PRIMITIVES and kind in _NUMERIC
        if self._final and not (inside in (None, kind) or has_bits or isinstance(term.value, Constant)):
            self._reporter.error("E0301", term.at, f"{_a(inside)} cannot be used as {_a(kind)}")
        return self._agree(term.at, f"`as(..., {term.type_name})`", kind, expected)

    def _visit_branch(self, term: Branch, expected: str | None) -> str | None:
        branch = self._types.branches.get(term.name)
        if branch is None:
            for arg in term.args:
                self._visit(arg, None)
            if self._final:
                hint = partial(did_you_mean, term.name, self._types.branches)
                self._reporter.error("E0201", term.at, f"unknown branch `{term.name}`", hint)
            return expected
        if len(branch.columns) != len(term.args):
            if self._final:
                wanted = counted(len(branch.columns), "field")
                message = f"the branch `{term.name}` has {wanted}, not {len(term.args)}"
                self._reporter.error("E0302", term.at, message)
            return branch.type_name
        for arg, column in zip(term.args, branch.columns, strict=True):
            self._visit(arg, self._types.kinds.get(column.type_name, "number"))
        return self._agree(term.at, f"`${term.name}`", branch.type_name, expected)

    def _visit_record(self, term: Record, expected: str | None) -> str | None:
        fields = self._types.fields.get(expected or "")
        if fields is None:
            for arg in term.args:
                self._visit(arg, None)
            if expected is not None:
                self._agree(term.at, "this record", "record", expected)
            elif self._final:
                self._reporter.error(
                    "E0305", term.at, "the type of this record is not known", "name it with as([...], type)"
                )
            return expected
        if len(fields) != len(term.args):
            if self._final:
                message = (
                    f"a record of type `{expected}` has {counted(len(fields), 'field')}, not {len(term.args)}"
                )
                self._reporter.error("E0302", term.at, message)
            return expected
        for arg, kind in zip(term.args, fields, strict=True):
            self._visit(arg, kind)
        return expected

    def _visit_aggregate(self, term: Aggregate, expected: str | None) -> str | None:
        if term.target is None:
            return self._agree(term.at, "`count`", "number", expected)
        kind = "float" if term.function == "mean" else expected
        kind = self._together((term.target,), kind)
        self._allowed(term.at, term.function, kind, _NUMERIC)
        return self._agree(term.at, f"`{term.function}`", kind, expected)

    def _visit_call(self, term: Call, expected: str | None) -> str | None:
        low, high = _ARITIES.get(term.name, (2, 2))
        if not low <= len(term.args) <= high:
            if self._final:
                wanted = (
                    counted(low, "argument")
                    if low == high
                    else f"{low} {'or' if high == low + 1 else 'to'} {high} arguments"
                )
                self._reporter.error("E0302", term.at, f"`{term.name}` takes {wanted}, not {len(term.args)}")
            return expected
        kind: str | None
        if term.name in _UNIFORM:
            allowed = _UNIFORM[term.name]
            if len(allowed) == 1:
                kind = next(iter(allowed))
                for arg in term.args:
                    self._visit(arg, kind)
                return self._agree(term.at, f"`{term.name}`", kind, expected)
            kind = self._together(term.args, expected if expected in allowed else None)
            if kind is None and self._default:
                kind = self._together(term.args, "number")
            self._allowed(term.at, term.name, kind, allowed)
            return self._agree(term.at, f"`{term.name}`", kind, expected)
        kinds, result = _MIXED[term.name]
        for arg, wanted_kind in zip(term.args, kinds, strict=True):
            kind = self._visit(arg, wanted_kind)
            if wanted_kind is None:
                kind = kind or (self._together((arg,), "number") if self._default else None)
                if term.name != "ord":
                    self._allowed(term.at, term.name, kind, _ORDERED)
        return self._agree(term.at, f"`{term.name}`", result, expected)

    def _agree(self, at: int, what: str, kind: str | None, expected: str | None) -> str | None:
        if kind is None or expected is None or kind == expected:
            return kind or expected
        if self._final:
            self._mismatch(at, what, kind, expected)
        return kind

    def _mismatch(self, at: int, what: str, kind: str, expected: str) -> None:
        self._reporter.error("E0301", at, f"{what} is {_a(kind)}, but {_a(expected)} is expected here")

    def _fits(self, term: Constant, kind: str) -> None:
        assert isinstance(term.value, int)
        if (kind == "number" and term.value >= 1 << 63) or (kind == "unsigned" and term.value < 0):
            self._reporter.error("E0103", term.at, f"{term.value} does not fit into {_a(kind)}")

    def _allowed(self, at: int, name: str, kind: str | None, allowed: frozenset[str]) -> None:
        if self._final and kind is not None and kind not in allowed:
            choices = ", ".join(k for k in PRIMITIVES if k in allowed)
            self._reporter.error("E0303", at, f"`{name}` does not take {_a(kind)}", f"it takes: {choices}")


def _is_numeric(term: Term) -> bool:
    """Whether a term of unknown kind can only be a number: an integer constant or arithmetic."""
    if isinstance(term, Constant):
        return term.kind == "integer"
    return isinstance(term, Call) or (isinstance(term, Aggregate) and term.target is not None)


def _a(kind: str) -> str:
    if kind not in (*PRIMITIVES, "record"):
        return f"a record of type `{kind}`"
    return f"an {kind}" if kind == "unsigned" else f"a {kind}"

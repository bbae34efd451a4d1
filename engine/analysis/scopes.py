"""The scopes of aggregates: which variables belong to the rule, and which to an aggregate alone.

A variable of an aggregate that also occurs outside of it belongs to the rule, with two exceptions: if it
occurs in the target, or if only this aggregate binds it, as ``x`` in ``x = max y : { r(x), y = x }``. All
other variables are the aggregate's own. They get unique names here, so that later stages can treat a clause
as one flat scope.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

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
    Literal,
    Record,
    Term,
    Variable,
    Wildcard,
)
from ..language.walk import map_literal, terms


def resolve(clause: Clause) -> Clause:
    """The clause with its aggregates' own variables renamed and ``Aggregate.outer`` filled in."""
    head, body = clause.head, clause.body
    if not clause.nested:
        return clause
    numbers = count(1)
    visible = direct_names((head, *body))

    def renamed(literal: Literal, hidden: set[str]) -> Literal:
        return map_literal(literal, lambda term: _rewrite(term, {}, visible - hidden, numbers))

    new_head = renamed(head, set())
    assert isinstance(new_head, Atom)
    return clause._replace(
        head=new_head, body=tuple(renamed(literal, _given(literal, body)) for literal in body)
    )


def _given(literal: Literal, body: Iterable[Literal]) -> set[str]:
    """The variable that has a value from an aggregate in this literal, and from nothing else in the body."""
    if not isinstance(literal, Comparison) or literal.operator != "=":
        return set()
    for term, value in ((literal.left, literal.right), (literal.right, literal.left)):
        if isinstance(term, Variable) and isinstance(value, Aggregate):
            others = (other for other in body if other is not literal)
            return set() if any(term.name in _may_give(other) for other in others) else {term.name}
    return set()


def _may_give(literal: Literal) -> set[str]:
    """The variables that a literal may bind."""
    gives = isinstance(literal, Atom) or (isinstance(literal, Comparison) and literal.operator == "=")
    return direct_names((literal,)) if gives else set()


def variables(term: Term) -> set[str]:
    """The variables of the scope around ``term`` that it uses. Scopes must be resolved."""
    names: set[str] = set()
    _collect(term, names)
    return names


def own_name(variable: Variable) -> str:
    """The name of a variable in the source."""
    return variable.name.partition("@")[0]


def holds_wildcard(term: Term) -> bool:
    """Whether a term is an unnamed variable, or a record pattern that holds one."""
    return isinstance(term, Wildcard) or (
        isinstance(term, Record | Branch) and any(map(holds_wildcard, term.args))
    )


def holds_generator(term: Term) -> bool:
    """Whether a term holds an aggregate or a range, which have to be computed before it."""
    if isinstance(term, Call | Record | Branch):
        return (isinstance(term, Call) and term.name == "range") or any(map(holds_generator, term.args))
    return isinstance(term, Aggregate) or (isinstance(term, Cast) and holds_generator(term.value))


def _collect(term: Term, names: set[str]) -> None:
    if isinstance(term, Variable):
        names.add(term.name)
    elif isinstance(term, Call | Record | Branch):
        for arg in term.args:
            _collect(arg, names)
    elif isinstance(term, Cast):
        _collect(term.value, names)
    elif isinstance(term, Aggregate):
        names.update(term.outer)


def direct_names(body: Iterable[Literal]) -> set[str]:
    """The variables that stand in a body outside of its aggregates."""
    names: set[str] = set()
    for literal in body:
        for term in terms(literal):
            _collect(term, names)  # an unresolved aggregate has no `outer` yet
    return names


def _rewrite(term: Term, names: dict[str, str], visible: set[str], numbers: count[int]) -> Term:
    """``term`` with renamed variables. ``visible`` has the variables (old names) of the scopes around it."""
    if isinstance(term, Variable):
        new = names.get(term.name)
        return Variable(new, term.at) if new else term
    if isinstance(term, Call | Record | Branch):
        return term._replace(args=tuple(_rewrite(arg, names, visible, numbers) for arg in term.args))
    if isinstance(term, Cast):
        return term._replace(value=_rewrite(term.value, names, visible, numbers))
    if not isinstance(term, Aggregate):
        return term
    own = direct_names(term.body) - visible
    if term.target is not None:
        _collect(term.target, own)
    number = next(numbers)
    inner = {**names, **{name: f"{name}@{number}" for name in own}}

    def rename(inside: Term) -> Term:
        return _rewrite(inside, inner, visible | own, numbers)

    body = tuple(map_literal(literal, rename) for literal in term.body)
    target = None if term.target is None else rename(term.target)
    used = direct_names(body)
    if target is not None:
        _collect(target, used)
    outer = used - {inner[name] for name in own}
    return Aggregate(term.function, target, body, term.at, tuple(sorted(outer)))


def can_fail(term: Term) -> bool:
    """Whether a term has no value for some values of its variables, or another one each time."""
    if isinstance(term, Counter):
        return True
    if isinstance(term, Call):
        if term.name in ("/", "%"):
            divisor = term.args[1]
            if not isinstance(divisor, Constant) or divisor.value == 0:
                return True
        return term.name in ("to_number", "to_unsigned", "to_float") or any(map(can_fail, term.args))
    if isinstance(term, Record):
        return any(map(can_fail, term.args))
    return isinstance(term, Cast) and can_fail(term.value)


def count_uses(term: Term, occurrences: dict[str, int]) -> None:
    """Count how often each variable stands in a term; an aggregate uses each of its outer ones."""
    if isinstance(term, Variable):
        occurrences[term.name] = occurrences.get(term.name, 0) + 1
    elif isinstance(term, Call | Record):
        for arg in term.args:
            count_uses(arg, occurrences)
    elif isinstance(term, Cast):
        count_uses(term.value, occurrences)
    elif isinstance(term, Aggregate):
        for name in term.outer:
            occurrences[name] = occurrences.get(name, 0) + 1

"""Subtypes: values of a type fit where a type above it is expected, and not where an unrelated one is.

The type of a variable is the common part of the columns that bind it. Results of functors and constants fit
every type of their kind, as in Soufflé.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..language.diagnostics import Reporter
from ..language.syntax import VALUES, Aggregate, Atom, Cast, Clause, Comparison, Term, Variable
from ..language.walk import literals
from .scopes import own_name
from .types import Types


def check_subtypes(
    clause: Clause,
    columns: Mapping[str, tuple[str, ...]],
    types: Types,
    reporter: Reporter,
    exact: Collection[str | None] | None = None,
) -> dict[str, str]:
    """Report E0306 for unrelated types; ``columns``: the declared types of each relation.

    With ``exact``, a column declared as a plain ``number`` or ``symbol`` fits any type of its kind except
    these.

    Returns the type of each variable that has one: the widest type that all of its columns allow.
    """
    held = _Held({}, {})
    _meet_in_atoms(clause, columns, types, held, reporter)
    _meet_in_comparisons(clause, held, reporter)
    for term, type_name in zip(clause.head.args, columns[clause.head.name], strict=True):
        if isinstance(term, Cast) and not types.below[term.type_name] <= types.below[type_name]:
            given = term.type_name
            reporter.error("E0306", term.at, f"this is a `{given}`, but a `{type_name}` is expected here")
        variable = _variable(term)
        if variable is not None and not held.common.get(variable.name, frozenset()) <= types.below[type_name]:
            plain = held.common[variable.name] == types.below.get(types.kinds[type_name])
            if plain and exact is not None and type_name not in exact:
                continue
            name, given = own_name(variable), held.shown[variable.name]
            reporter.error(
                "E0306",
                term.at,
                f"`{name}` is a `{given}`, but a `{type_name}` is expected here",
                f"if it is one, say so: as({name}, {type_name})",
            )
    widest = {members: name for name, members in types.below.items()}
    shown = held.shown
    return {
        name: shown[name] if types.below.get(shown[name]) == members else widest.get(members, shown[name])
        for name, members in held.common.items()
        if members
    }


@dataclass(frozen=True)
class _Held:
    """The types that each variable of a clause may have, and the first type that it got."""

    common: dict[str, frozenset[str]]
    shown: dict[str, str]


def _meet_in_atoms(
    clause: Clause, columns: Mapping[str, tuple[str, ...]], types: Types, held: _Held, reporter: Reporter
) -> None:
    for literal in literals(clause):
        if not isinstance(literal, Atom) or literal is clause.head:
            continue
        bound = len(literal.args) - literal.name.endswith(VALUES)
        for term, type_name in zip(literal.args[:bound], columns[literal.name], strict=False):
            if type(term) is not Variable:
                continue
            name, possible = term.name, held.common.get(term.name)
            if possible is None:
                held.common[name] = types.below[type_name]
                held.shown[name] = type_name
            elif possible is not types.below[type_name]:
                held.common[name] = possible & types.below[type_name]
                if possible and not held.common[name]:
                    _report(term, held.shown[name], type_name, reporter)


def _meet_in_comparisons(clause: Clause, held: _Held, reporter: Reporter) -> None:
    common, shown = held.common, held.shown
    for comparison in literals(clause):
        if not isinstance(comparison, Comparison):
            continue
        left, right = _variable(comparison.left), _variable(comparison.right)
        if left is None or right is None:
            continue
        a, b = common.get(left.name), common.get(right.name)
        both = (a or b or frozenset()) if a is None or b is None else a & b
        if a and b and not both:
            _report(right, shown[left.name], shown[right.name], reporter)
        elif comparison.operator == "=" and (a or b):
            common[left.name] = common[right.name] = both
            shown.setdefault(left.name, shown.get(right.name, ""))
            shown.setdefault(right.name, shown[left.name])


def _variable(term: Term) -> Variable | None:
    """The variable whose type a term has."""
    if isinstance(term, Aggregate) and term.target is not None:
        return _variable(term.target)
    return term if isinstance(term, Variable) else None


def _report(term: Variable, first: str, second: str, reporter: Reporter) -> None:
    reporter.error(
        "E0306", term.at, f"`{own_name(term)}` meets `{first}` and `{second}`, which have no value in common"
    )

"""Subtypes: values of a type may go where one above it is expected, and not where an unrelated one is.

A variable may hold what all of the columns that give it a value have in common. The result of arithmetic and
constants fit every type of their kind, as in Soufflé.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..language.diagnostics import Reporter
from ..language.syntax import Aggregate, Atom, Clause, Comparison, Term, Variable
from .scopes import literals, own_name
from .types import Types


def check_subtypes(
    clause: Clause,
    columns: Mapping[str, tuple[str, ...]],
    types: Types,
    reporter: Reporter,
    exact: Collection[str | None] | None = None,
) -> dict[str, str]:
    """Report E0306 where unrelated types meet; ``columns``: the declared types of each relation.

    Where ``exact`` is given, what is declared as a plain ``number`` or ``symbol`` may go where any type of
    its kind is expected but these.

    Returns the type of each variable that has one: the widest that all columns which hold it allow.
    """
    common: dict[str, frozenset[str]] = {}  # variable -> the types that it may have
    shown: dict[str, str] = {}  # variable -> the type that it got first
    comparisons: list[Comparison] = []
    for literal in literals(clause):
        if isinstance(literal, Comparison):
            comparisons.append(literal)
        if not isinstance(literal, Atom) or literal is clause.head:
            continue
        for term, type_name in zip(literal.args, columns[literal.name], strict=True):
            if type(term) is not Variable:
                continue
            name, known = term.name, common.get(term.name)
            if known is None:
                common[name] = types.below[type_name]
                shown[name] = type_name
            elif known is not types.below[type_name]:
                common[name] = known & types.below[type_name]
                if known and not common[name]:
                    _report(term, shown[name], type_name, reporter)

    for comparison in comparisons:
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

    for term, type_name in zip(clause.head.args, columns[clause.head.name], strict=True):
        variable = _variable(term)
        if variable is not None and not common.get(variable.name, frozenset()) <= types.below[type_name]:
            plain = common[variable.name] == types.below.get(types.kinds[type_name])
            if plain and exact is not None and type_name not in exact:
                continue
            name, given = own_name(variable), shown[variable.name]
            reporter.error(
                "E0306",
                term.at,
                f"`{name}` is a `{given}`, but a `{type_name}` is expected here",
                f"if it is one, say so: as({name}, {type_name})",
            )
    widest = {members: name for name, members in types.below.items()}
    return {
        name: shown[name] if types.below.get(shown[name]) == members else widest.get(members, shown[name])
        for name, members in common.items()
        if members
    }


def _variable(term: Term) -> Variable | None:
    """The variable whose type a term has."""
    if isinstance(term, Aggregate) and term.target is not None:
        return _variable(term.target)
    return term if isinstance(term, Variable) else None


def _report(term: Variable, first: str, second: str, reporter: Reporter) -> None:
    reporter.error(
        "E0306", term.at, f"`{own_name(term)}` meets `{first}` and `{second}`, which have no value in common"
    )

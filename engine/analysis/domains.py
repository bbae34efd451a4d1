"""Domains: the values of a type, where a program lists them.

A program that has a relation ``domain(type: symbol, value: symbol)`` lists in it, by facts, the values of
some of its types:

    .type colour <: symbol
    domain("colour", "red").  domain("colour", "green").

A constant that stands for such a type must be one of its values, in atoms and in comparisons with a variable
of that type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..language.diagnostics import Reporter, did_you_mean
from ..language.syntax import Atom, Clause, Comparison, Constant, Negation, Term, Variable
from ..language.walk import literals

RELATION = "domain"
Domains = Mapping[str, Mapping[str, None]]  # type -> its values, in the order of the program


def declared_domains(clauses: Iterable[Clause]) -> Domains:
    """The values of the types that facts of ``domain`` list."""
    domains: dict[str, dict[str, None]] = {}
    for clause in clauses:
        if clause.head.name == RELATION and not clause.body and len(clause.head.args) == 2:
            name, value = clause.head.args
            if isinstance(name, Constant) and isinstance(value, Constant):
                domains.setdefault(str(name.value), {})[str(value.value)] = None
    return domains


def check_domains(
    clause: Clause, columns: Mapping[str, tuple[str, ...]], domains: Domains, reporter: Reporter
) -> None:
    """Report E0307 for constants that are no values of the type they stand for; ``columns``: the declared
    types of each relation."""
    if not domains:
        return
    variables: dict[str, str] = {}
    comparisons: list[Comparison] = []
    for literal in literals(clause):
        if isinstance(literal, Comparison):
            comparisons.append(literal)
        atom = literal.atom if isinstance(literal, Negation) else literal
        if not isinstance(atom, Atom):
            continue
        for term, type_name in zip(atom.args, columns[atom.name], strict=True):
            if type_name in domains:
                _check(term, type_name, domains, reporter)
                if isinstance(term, Variable):
                    variables.setdefault(term.name, type_name)
    for comparison in comparisons:
        if comparison.operator in ("=", "!="):
            for side, other in (
                (comparison.left, comparison.right),
                (comparison.right, comparison.left),
            ):
                if isinstance(side, Variable) and side.name in variables:
                    _check(other, variables[side.name], domains, reporter)


def _check(term: Term, type_name: str, domains: Domains, reporter: Reporter) -> None:
    values = domains[type_name]
    if isinstance(term, Constant) and term.kind == "symbol" and term.value not in values:
        listed = ", ".join(f'"{value}"' for value in values)
        near = did_you_mean(str(term.value), values)
        hint = f"{near} There are: {listed}" if near else f"there are: {listed}"
        reporter.error("E0307", term.at, f'"{str(term.value)[:60]}" is not a `{type_name}`', hint)

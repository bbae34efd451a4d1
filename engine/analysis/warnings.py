"""Warnings: valid but rarely intended code. The same as Soufflé's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..language.diagnostics import Reporter
from ..language.syntax import Clause, Literal, Module, Term, Variable
from ..language.walk import parts, terms
from .erasing import warn_of_erasing
from .scopes import own_name, resolve


def warn(module: Module, reporter: Reporter) -> None:
    """Report code that is probably not intended, in a module without components."""
    _warn_of_relations(module, reporter)
    warn_of_erasing(module, reporter)
    rules: dict[int, list[Clause]] = {}
    for clause in module.clauses:
        if clause.body:
            rules.setdefault(clause.text.start, []).append(resolve(clause))
    for rule in rules.values():
        _warn_of_variables(rule, reporter)


def _warn_of_relations(module: Module, reporter: Reporter) -> None:
    """Report relations that stay empty, and relations prepared for deletions without any."""
    pragmas = dict(module.pragmas)
    quiet = set(pragmas.get("suppress-warnings", "").split(","))
    filled = {clause.head.name for clause in module.clauses}
    filled |= {directive.name for directive in module.directives if directive.kind == "input"}
    subsumed = {clause.head.name for clause in module.clauses if clause.subsumes}
    for relation in module.relations:
        name = relation.name
        if name not in filled and not quiet & {"*", name}:
            hint = f"if they are in a file, write: .input {name}"
            reporter.warning("W0401", relation.at, f"`{name}` has no rules and no facts", hint)
        if "btree_delete" in relation.qualifiers and name not in subsumed:
            message = f"`{name}` is btree_delete, but no rule deletes from it"
            reporter.warning("W0402", relation.at, message)


def _warn_of_variables(rule: list[Clause], reporter: Reporter) -> None:
    """Report the variables of a rule that stand in one place, and those in two that say they do not.

    ``rule`` has a clause for each head and each alternative: a variable stands alone if it does in each, and
    the rule's sentence does not name it.
    """
    named = {variable.name for clause in rule for variable in _variables_of(clause.head)}
    named.update(rule[0].text.named)
    alone: dict[str, Variable] = {}
    several: dict[str, Variable] = {}  # whose names say that any value will do
    for clause in rule:
        all_variables = [variable for literal in clause.body for variable in _variables_of(literal)]
        times = Counter(variable.name for variable in all_variables)
        for variable in all_variables:
            name = variable.name
            if times[name] + (name in named) > 1:
                if name[0] == "_" and not clause.subsumes:
                    several[name] = variable
                named.add(name)
            elif name[0] != "_" and (name not in alone or variable.at < alone[name].at):
                alone[name] = variable
    for name, variable in alone.items():
        if name not in named:
            shown = own_name(variable)
            message = f"the variable `{shown}` occurs only here"
            reporter.warning("W0403", variable.at, message, f"if any value will do, write _ or _{shown}")
    for variable in several.values():
        message = f"`{own_name(variable)}` is used in several places, but its name means any value"
        reporter.warning("W0404", variable.at, message, "give it a name that starts with a letter")


def _variables_of(literal: Literal) -> Iterator[Variable]:
    """The variables of a literal, including aggregates, in the order of the text."""
    left: list[Term] = list(reversed(terms(literal)))
    while left:
        term = left.pop()
        if isinstance(term, Variable):
            yield term
        else:
            left += reversed(parts(term))

"""Functors of the user: a call becomes an atom of a relation that has the values of the function.

``p(@f(x)) :- q(x), r(x, y), s(y)`` becomes

    p(v) :- q(x), r(x, y), s(y), f=(x, v).       the values that are known
    f=1(x) :- q(x), r(x, y), s(y).               the arguments of this call
    f=1!(x) :- f=1(x), !f=(x, _).                those without a value

and whoever evaluates the program gives ``f=`` the values of the last relation until that is empty. Its rules
add no dependency that the program does not have, so a program that has strata keeps them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..analysis.checks import grounded_by
from ..analysis.scopes import direct_names, variables
from ..language.diagnostics import Reporter, did_you_mean
from ..language.syntax import (
    VALUES,
    Aggregate,
    Atom,
    Call,
    Clause,
    Comparison,
    Counter,
    IterationCount,
    Literal,
    Module,
    Negation,
    RelationDeclaration,
    Term,
    Variable,
    Wildcard,
)
from ..language.walk import all_terms, rewrite_clause

MISSING = "!"


def is_helper(name: str) -> bool:
    """Whether a relation is one that calls of functors need."""
    return VALUES in name


def call_sites(names: Mapping[str, object] | list[str]) -> list[tuple[str, str, str]]:
    """The functor of each call, the relation of its values, and that of the arguments without a value."""
    missing = [name for name in names if name.endswith(MISSING) and is_helper(name)]
    return [(name.partition(VALUES)[0], name.partition(VALUES)[0] + VALUES, name) for name in missing]


def lower_functors(module: Module, reporter: Reporter) -> None:
    """Replaces the calls of the functors that the module declares and the caller has functions for."""
    lowering = _Lowering(module, reporter)
    module.clauses[:] = [clause for written in module.clauses for clause in lowering.clause(written)]
    declared = [functor for functor in module.functors.values() if functor is not None]
    module.relations += [functor._replace(name=functor.name + VALUES) for functor in declared]


class _Lowering:
    def __init__(self, module: Module, reporter: Reporter) -> None:
        self._module = module
        self._reporter = reporter
        self._sites = 0

    def clause(self, clause: Clause) -> list[Clause]:
        """The clause without calls, and the rules for the arguments of its calls."""
        if not self._module.functors or not any(map(_calls, (clause.head, *clause.body))):
            return [clause]
        if clause.subsumes or any(_in_aggregate(x) for x in (clause.head, *clause.body)):
            message = "functors of the user are allowed in rules, but not in aggregates or subsumptions"
            self._reporter.error("E0105", clause.text.start, message, "give the value a relation of its own")
            return []
        calls: list[Atom] = []

        def change(term: Term) -> Term:
            if not isinstance(term, Call) or term.name[0] != "@" or not self._fits(term):
                return term
            value = Variable(f"{term.name[1:]}@{len(calls)}", term.at)
            calls.append(Atom(term.name[1:] + VALUES, (*term.args, value), term.at))
            return value

        plain = rewrite_clause(clause, change)
        if not len(self._reporter):
            asked = [rule for call, body in _staged(calls, plain) for rule in self._asking(call, body, plain)]
            return [plain._replace(body=(*plain.body, *calls), plans=()), *asked]
        return []

    def _fits(self, call: Call) -> bool:
        """Whether a functor is declared and takes so many arguments."""
        declared = self._module.functors.get(call.name[1:])
        if declared is None:
            hint = did_you_mean(call.name[1:], self._module.functors) or "declare it: .functor"
            self._reporter.error("E0201", call.at, f"unknown functor `{call.name}`", hint)
        elif len(declared.columns) - 1 != len(call.args):
            given = f"`{call.name}` takes {len(declared.columns) - 1} values, not {len(call.args)}"
            self._reporter.error("E0302", call.at, given)
        else:
            return True
        return False

    def _asking(self, call: Atom, body: list[Literal], clause: Clause) -> tuple[Clause, Clause]:
        """The rules for the arguments of a call, and for those of them without a value."""
        self._sites += 1
        name, args = f"{call.name}{self._sites}", call.args[:-1]
        functor = self._module.functors[call.name.removesuffix(VALUES)]
        assert functor is not None
        for new in (name, name + MISSING):
            columns = functor.columns[:-1]
            self._module.relations.append(RelationDeclaration(new, columns, frozenset(), functor.at))
        asks = Clause(Atom(name, args, call.at), tuple(_about(args, body)), clause.text, clause.nested)
        own = tuple(Variable(f"x{i}", call.at) for i in range(len(args)))
        has_value = Negation(Atom(call.name, (*own, Wildcard(call.at)), call.at), call.at)
        missing = Clause(
            Atom(name + MISSING, own, call.at), (Atom(name, own, call.at), has_value), clause.text
        )
        return asks, missing


def _staged(calls: list[Atom], clause: Clause) -> Iterator[tuple[Atom, list[Literal]]]:
    """Each call with the literals that can be decided before it: those without the values of calls whose
    arguments need its own, or are known no earlier than its own."""
    decided: list[Atom] = []
    waiting = list(calls)
    while waiting:
        unknown = {_name(call.args[-1]) for call in waiting}
        body = [*(x for x in clause.body if unknown.isdisjoint(direct_names((x,)))), *decided]
        grounded = grounded_by(body, set())
        ready = [call for call in waiting if all(variables(arg) <= grounded for arg in call.args[:-1])]
        ready = ready or waiting  # with an error: a variable has no value
        yield from ((call, body) for call in ready)
        decided += ready
        waiting = [call for call in waiting if call not in ready]


def _about(args: tuple[Term, ...], body: list[Literal]) -> list[Literal]:
    """The literals that decide about arguments: those that share variables with them, directly or by way of
    others, and those without variables. Conditions on other variables are left out, so that more may be
    asked for than is needed."""
    names = {name for arg in args for name in variables(arg)}
    kept: list[Literal] = []
    left = [x for x in body if not any(isinstance(t, Counter | IterationCount) for t in all_terms(x))]
    while near := [x for x in left if not (own := direct_names((x,))) or own & names]:
        kept += near
        names |= direct_names(near)
        left = [x for x in left if x not in near]
    grounded = grounded_by(kept, set())
    return [x for x in body if x in kept and (isinstance(x, Atom) or direct_names((x,)) <= grounded)]


def _calls(literal: Literal) -> bool:
    return any(isinstance(term, Call) and term.name[0] == "@" for term in all_terms(literal))


def _in_aggregate(literal: Literal) -> bool:
    return any(
        isinstance(term, Aggregate)
        and (any(map(_calls, term.body)) or (term.target is not None and _calls(_target(term.target))))
        for term in all_terms(literal)
    )


def _target(term: Term) -> Comparison:
    return Comparison("=", term, term, 0)


def _name(term: Term) -> str:
    assert isinstance(term, Variable)
    return term.name

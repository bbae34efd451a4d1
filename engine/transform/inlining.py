"""Inlined relations: their atoms are replaced by the bodies of their rules.

Rules such as ``next(x, y) :- y = x + 1.`` have no tuples of their own: the relations that have them are
nothing but their rules. Others keep their tuples too, for aggregates count tuples.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from itertools import count
from math import prod
from typing import NoReturn

from ..analysis.checks import grounded_by
from ..analysis.scopes import resolve, variables
from ..analysis.strata import clause_uses, components
from ..language.clauses import MOST_LITERALS, negated
from ..language.diagnostics import Reporter
from ..language.syntax import (
    Aggregate,
    Atom,
    Branch,
    Call,
    Clause,
    Comparison,
    Literal,
    Module,
    Negation,
    Record,
    Term,
    Variable,
    Wildcard,
)
from ..language.terms import DEEPEST
from ..language.walk import all_terms, literals, parts, rewrite_clause, rewrite_literal, rewrite_term, terms

MOST_RULES = 10_000  # rules that one rule becomes
_MOST_IN_ALL = 1_000_000  # literals and terms that are put into rules, about

Body = list[Literal]


def inline(module: Module, reporter: Reporter) -> bool:
    """Replace the atoms of inlined relations whose rules cannot stand alone. False where that is not
    possible."""
    wanted = {r.name for r in module.relations if {"inline", "no_inline"} & r.qualifiers == {"inline"}}
    excluded = {n for key, names in module.pragmas if key == "inline-exclude" for n in names.split(",")}
    wanted -= excluded
    if not wanted:
        return True
    rules: dict[str, list[Clause]] = {name: [] for name in wanted}
    for clause in module.clauses:
        if clause.head.name in wanted:
            rules[clause.head.name].append(clause)
    errors = len(reporter)
    if _check(module, rules, reporter):
        with suppress(_TooMuchError):
            _Inliner(rules, _dependent(rules), reporter).run(module)
    return len(reporter) == errors


def _check(module: Module, rules: dict[str, list[Clause]], reporter: Reporter) -> bool:
    """Whether these relations can be inlined; reports where not."""
    errors = len(reporter)
    places = {r.name: r.at for r in reversed(module.relations)}
    for directive in module.directives:
        if directive.name in rules:
            message = f"`{directive.name}` is inlined, so that it is neither read nor written"
            hint = f"`.{directive.kind}` or `inline`, not both"
            reporter.error("E0206", places[directive.name], message, hint)
    graph = {
        name: list(
            dict.fromkeys(u.relation for c in rules[name] for u in clause_uses(c) if u.relation in rules)
        )
        for name in sorted(rules, key=places.__getitem__)
    }
    for group in components(graph):
        if len(group) > 1 or group[0] in graph[group[0]]:
            message = f"these relations are inlined into one another: {', '.join(group)}"
            reporter.error("E0206", places[group[0]], message, "let one of them not be `inline`")
    for clause in module.clauses:
        for literal in clause.body:
            if isinstance(literal, Negation) and literal.atom.name in rules:
                _check_negation(literal, rules[literal.atom.name], reporter)
    return len(reporter) == errors


def _check_negation(literal: Negation, rules: Iterable[Clause], reporter: Reporter) -> None:
    name = literal.atom.name
    if any(isinstance(term, Wildcard) for term in literal.atom.args):
        message = f"`{name}` is inlined: where it is negated its arguments have names"
        reporter.error("E0206", literal.at, message)
    for rule in rules:
        rule = resolve(rule)
        bound = set().union(*map(variables, rule.head.args))
        own = set().union(*(variables(t) for x in rule.body for t in terms(x))) - bound
        if own - grounded_by([x for x in rule.body if isinstance(x, Comparison)], bound):
            message = f"`{name}` is inlined, and a rule of it has more variables than its head: no negation"
            reporter.error("E0206", literal.at, message, f"let `{name}` not be `inline`")


def _dependent(rules: dict[str, list[Clause]]) -> set[str]:
    """The relations that have rules which cannot stand alone."""
    dependent: set[str] = set()
    while True:
        more = {
            name
            for name in rules
            if name not in dependent and any(_is_open(c, dependent) for c in rules[name])
        }
        if not more:
            return dependent
        dependent |= more


def _is_open(clause: Clause, without: set[str]) -> bool:
    """Whether a clause leaves variables open, where atoms of these relations give none a value."""
    clause = resolve(clause)
    body = [x for x in clause.body if not (isinstance(x, Atom) and x.name in without)]
    used = set().union(*map(variables, (*clause.head.args, *(t for x in body for t in terms(x)))))
    wild = any(isinstance(term, Wildcard) for term in clause.head.args)
    uses = any(isinstance(x, Negation) and x.atom.name in without for x in literals(clause))
    return wild or uses or bool(used - grounded_by(body, set()))


class _TooMuchError(Exception):
    """Inlining makes the program too large; it has been reported."""


class _Inliner:
    """Replaces atoms of the relations in ``rules``; in aggregates only ``dependent`` ones, because they count
    tuples."""

    def __init__(self, rules: dict[str, list[Clause]], dependent: set[str], reporter: Reporter) -> None:
        self._rules, self._dependent, self._reporter = rules, dependent, reporter
        self._numbers = count(1)
        self._at = self._put = 0

    def run(self, module: Module) -> None:
        """Change the clauses of a module. Raises _TooMuchError."""
        module.relations = [r for r in module.relations if r.name not in self._dependent]
        old, module.clauses = module.clauses, []
        for clause in old:
            if clause.head.name in self._dependent:
                continue
            self._at = clause.head.at
            waiting = [clause]
            expanded = 0
            while waiting:
                clause = waiting.pop()
                changed = self._step(clause)
                if changed is None:
                    module.clauses.append(clause)
                    expanded += 1
                else:
                    waiting += reversed(changed)
                if expanded + len(waiting) > MOST_RULES:
                    self._stop(f"inlining makes more than {MOST_RULES} rules of this one")

    def _stop(self, message: str) -> NoReturn:
        self._reporter.error("E0206", self._at, message, "let some of the relations not be `inline`")
        raise _TooMuchError

    def _count(self, number: int) -> None:
        self._put += number
        if self._put > _MOST_IN_ALL:
            self._stop(f"inlining, up to this rule, makes more than {_MOST_IN_ALL} literals and terms")

    def _count_terms(self, terms: Iterable[Term]) -> None:
        """Count terms with all that is in them, and check how deep they are."""
        waiting = [(term, 1) for term in terms]
        while waiting:
            term, depth = waiting.pop()
            self._count(1)
            if depth > DEEPEST:
                self._stop(f"inlining nests this rule more than {DEEPEST} levels deep")
            waiting += [(part, depth + 1) for part in parts(term)]

    def _step(self, clause: Clause) -> list[Clause] | None:
        """The clause with one atom inlined; None without one."""
        for place, literal in enumerate(clause.body):
            ways = self._ways(literal)
            if ways is not None:
                before, after = clause.body[:place], clause.body[place + 1 :]
                if len(clause.body) + max(map(len, ways), default=0) > MOST_LITERALS:
                    self._stop(f"inlining makes a rule of more than {MOST_LITERALS} literals of this one")
                self._count(len(ways) * len(clause.body))
                nested = clause.nested or any(_nested(x) for way in ways for x in way)
                return [clause._replace(body=(*before, *way, *after), nested=nested) for way in ways]
        if not clause.nested:
            return None
        changed = False

        def change(term: Term) -> Term:
            nonlocal changed
            new = self._aggregate(term) if isinstance(term, Aggregate) else None
            changed = changed or new is not None
            return new or term

        new = rewrite_clause(clause, change)
        if not changed:
            return None
        self._count_terms(term for literal in (new.head, *new.body) for term in terms(literal))
        return [new]

    def _ways(self, literal: Literal) -> list[Body] | None:
        """The bodies that a literal stands for; None where it stands for itself."""
        atom = literal.atom if isinstance(literal, Negation) else literal
        if not isinstance(atom, Atom) or atom.name not in self._rules:
            return None
        bodies = [self._body(rule, atom) for rule in self._rules[atom.name]]
        if not isinstance(literal, Negation):
            return bodies
        number = prod(map(len, bodies))
        if number > MOST_RULES:
            self._stop(f"inlining makes more than {MOST_RULES} rules of this one")
        self._count(number * len(bodies))
        return negated(bodies)

    def _aggregate(self, term: Aggregate) -> Term | None:
        for place, literal in enumerate(term.body):
            atom = literal.atom if isinstance(literal, Negation) else literal
            if not isinstance(atom, Atom) or atom.name not in self._dependent:
                continue
            ways = self._ways(literal) or []
            before, after = term.body[:place], term.body[place + 1 :]
            new: list[Term] = [term._replace(body=(*before, *way, *after)) for way in ways]
            if len(new) == 1:
                return new[0]
            if term.function in ("count", "sum") and new:
                result = new[0]
                for more in new[1:]:
                    result = Call("+", (result, more), term.at)
                return result
            hint = "let it not be `inline`"
            self._reporter.error(
                "E0206", literal.at, f"an inlined relation in `{term.function}` has one rule", hint
            )
            return term._replace(body=(*before, *after))
        return None

    def _body(self, rule: Clause, atom: Atom) -> Body:
        """The body of a rule for the arguments of an atom."""
        number = next(self._numbers)
        given: dict[str, Term] = {}
        equations: list[tuple[Term, Term]] = []
        named = (_without_wildcards(arg, number) for arg in atom.args)
        for head, arg in zip(rule.head.args, named, strict=False):
            if isinstance(head, Variable) and head.name not in given and not isinstance(arg, Wildcard):
                given[head.name] = arg
            else:
                equations.append((arg, head))

        def change(term: Term) -> Term:
            if not isinstance(term, Variable):
                return term
            return given.get(term.name) or Variable(f"{term.name}@in{number}", term.at)

        body: Body = []
        for arg, head in equations:
            if not isinstance(arg, Wildcard):
                head = rewrite_literal(Comparison("=", head, head, atom.at), change).left  # type: ignore[union-attr]
                body += _equal(arg, head, atom.at)
        body += [rewrite_literal(literal, change) for literal in rule.body]
        self._count_terms(term for literal in body for term in terms(literal))
        return body


def _without_wildcards(term: Term, number: int) -> Term:
    """A record with names for the unnamed variables in it."""

    def change(part: Term) -> Term:
        return Variable(f"_{part.at}@in{number}", part.at) if isinstance(part, Wildcard) else part

    return rewrite_term(term, change) if isinstance(term, Record | Branch) else term


def _equal(left: Term, right: Term, at: int) -> Body:
    """Equations for two terms; records are taken apart."""
    if isinstance(left, Wildcard) or isinstance(right, Wildcard):
        return []
    if isinstance(left, Record) and isinstance(right, Record) and len(left.args) == len(right.args):
        return [x for a, b in zip(left.args, right.args, strict=True) for x in _equal(a, b, at)]
    return [Comparison("=", left, right, at)]


def _nested(literal: Literal) -> bool:
    return any(isinstance(term, Aggregate) for term in all_terms(literal))

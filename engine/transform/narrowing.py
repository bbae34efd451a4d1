"""Narrowed relations: tuples that no reader takes are not derived.

A recursive relation may be large where its readers want little of it:

    skip(from, to) :- next(from, to).
    skip(from, to) :- next(from, via), blank(via), skip(via, to).
    visible(from, to) :- skip(from, to), shown(to).

The recursion passes ``to`` on unchanged, and every reader asks for ``shown(to)``. So the rules that do not
recurse ask for it first:

    skip(from, to) :- next(from, to), shown(to).

The selection goes before the recursion, as in Aho and Ullman (Universality of data retrieval languages,
1979). Readers keep their conditions, so that a tuple that is still derived, or given as a fact, changes
nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ..analysis.scopes import variables
from ..analysis.strata import clause_uses, components
from ..language.syntax import (
    Atom,
    Clause,
    Comparison,
    Constant,
    Literal,
    Negation,
    RelationDeclaration,
    Term,
    Variable,
    Wildcard,
)
from ..language.walk import map_literal, terms
from .numbers import depends

Clauses = list[tuple[Clause, dict[str, str]]]
_READ = Variable("@read", 0)  # stands for the column in a condition


def narrow(clauses: Clauses, declared: Mapping[str, RelationDeclaration], whole: Collection[str]) -> Clauses:
    """The clauses that give the same relations ``whole``, and of others perhaps fewer tuples."""
    graph = {name: dict[str, None]() for name in declared}
    rules: dict[str, list[Clause]] = {}
    readers: dict[str, list[Clause]] = {}
    for clause, _ in clauses:
        name = clause.head.name
        rules.setdefault(name, []).append(clause)
        for use in clause_uses(clause):
            graph[name][use.relation] = None
            if use.relation != name:
                readers.setdefault(use.relation, []).append(clause)
    groups = components({name: list(used) for name, used in graph.items()})
    earlier: set[str] = set()
    conditions: dict[str, list[tuple[int, list[Literal]]]] = {}  # of a relation: by column
    for group in groups:
        name = group[0]
        alone = len(group) == 1 and name in graph[name] and name in readers and name not in whole
        if alone and _is_plain(declared[name], rules[name]):
            for column in range(len(declared[name].columns)):
                if _is_passed_on(name, column, rules[name]):
                    shared = _shared(name, column, readers[name], earlier)
                    if shared:
                        conditions.setdefault(name, []).append((column, shared))
        earlier.update(group)
    return [(_narrowed(clause, conditions.get(clause.head.name, ())), kinds) for clause, kinds in clauses]


def _is_plain(declaration: RelationDeclaration, rules: Sequence[Clause]) -> bool:
    """Whether a relation has nothing to it but the tuples that its rules derive, each by itself."""
    return (
        "eqrel" not in declaration.qualifiers
        and not declaration.choices
        and not any(column.lattice for column in declaration.columns)
        and not any(rule.subsumes or rule.notes or rule.joins for rule in rules)
        and not any(map(depends, (literal for rule in rules for literal in (rule.head, *rule.body))))
    )


def _atoms(name: str, clause: Clause) -> list[Atom] | None:
    """The atoms of a relation in a body; None where it stands under a negation or in an aggregate."""
    atoms = [literal for literal in clause.body if isinstance(literal, Atom) and literal.name == name]
    return atoms if len(atoms) == sum(use.relation == name for use in clause_uses(clause)) else None


def _is_passed_on(name: str, column: int, rules: Iterable[Clause]) -> bool:
    """Whether recursive rules pass a column on unchanged."""
    for rule in rules:
        given, atoms = rule.head.args[column], _atoms(name, rule)
        if atoms is None:
            return False
        for atom in atoms:
            taken = atom.args[column]
            if not (isinstance(given, Variable) and isinstance(taken, Variable) and given.name == taken.name):
                return False
    return True


def _shared(name: str, column: int, readers: Iterable[Clause], earlier: Collection[str]) -> list[Literal]:
    """The conditions on a column that all readers have, for ``_READ`` in its place. Their relations are
    ``earlier`` ones."""
    shared: dict[Literal, Literal] | None = None
    for reader in readers:
        atoms = _atoms(name, reader)
        if atoms is None:
            return []
        for atom in atoms:
            variable = atom.args[column]
            if not isinstance(variable, Variable):
                return []
            own = {
                _unplaced(condition): condition
                for literal in reader.body
                if literal is not atom and (condition := _condition(literal, variable.name, earlier))
            }
            shared = own if shared is None else {key: own[key] for key in shared if key in own}
    return list((shared or {}).values())


def _condition(literal: Literal, variable: str, earlier: Collection[str]) -> Literal | None:
    """The literal for ``_READ``, where it tests this variable alone."""
    atom = literal.atom if isinstance(literal, Negation) else literal
    if isinstance(atom, Atom):
        if atom.name not in earlier:
            return None
    elif not isinstance(atom, Comparison):
        return None
    if not all(isinstance(term, Variable | Constant | Wildcard) for term in terms(literal)):
        return None
    if set().union(*map(variables, terms(literal))) != {variable}:
        return None
    return _placed(literal, _READ)


def _placed(literal: Literal, value: Term) -> Literal:
    """The literal with a term in place of its variables."""
    return map_literal(literal, lambda term: value if isinstance(term, Variable) else term)


def _unplaced(literal: Literal) -> Literal:
    """The literal without its places in the text, to be compared."""
    unplaced = map_literal(literal, lambda term: term._replace(at=0))
    if isinstance(unplaced, Negation):
        unplaced = unplaced._replace(atom=unplaced.atom._replace(at=0))
    return unplaced if not isinstance(unplaced, Atom | Negation | Comparison) else unplaced._replace(at=0)


def _narrowed(clause: Clause, conditions: Iterable[tuple[int, list[Literal]]]) -> Clause:
    """The clause with the conditions on columns of its head, unless it recurses or states its joins."""
    if clause.plans or any(use.relation == clause.head.name for use in clause_uses(clause)):
        return clause
    given = [(clause.head.args[column], literals) for column, literals in conditions]
    more = [
        _placed(literal, value)
        for value, literals in given
        for literal in literals
        # Two constants do not say as what they are compared: 1 and 2 are numbers of any kind.
        if isinstance(value, Variable)
        or (isinstance(value, Constant) and not isinstance(literal, Comparison))
    ]
    return clause._replace(body=(*clause.body, *more))

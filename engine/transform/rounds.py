"""Relations that note rounds: ``.decl d = debug_delta(r)`` has the tuples of ``r``, each with the round that
found it.

That is a rule that runs after each round, over the new tuples: ``d(x, recursive_iteration_cnt()) :- r(x).``
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ..language.diagnostics import Reporter, did_you_mean
from ..language.syntax import (
    Atom,
    Clause,
    ColumnDeclaration,
    IterationCount,
    Module,
    RelationDeclaration,
    Variable,
)

_COLUMN = "<iteration>"  # as Soufflé calls it


def note_rounds(module: Module, reporter: Reporter) -> bool:
    """Complete the relations of a module that note rounds, and their rules. False after errors."""
    errors = len(reporter)
    declared = {relation.name: relation for relation in reversed(module.relations)}
    noting = [clause for clause in module.clauses if clause.notes]
    noted = {clause.head.name: _noted(clause) for clause in noting}
    for clause in noting:
        atom = _noted(clause)
        _check(clause.head.name, atom, module, declared, reporter)
        if atom.name in noted:
            reporter.error(
                "E0303", atom.at, f"`{atom.name}` records the rounds of another relation, and has no rules"
            )
    if len(reporter) > errors:
        return False
    module.clauses = [_completed(c, declared) if c.notes else c for c in module.clauses]
    module.relations = [
        r._replace(columns=_columns(declared[noted[r.name].name])) if r.name in noted else r
        for r in module.relations
    ]
    return True


def _noted(clause: Clause) -> Atom:
    """The atom of a clause that notes rounds."""
    (atom,) = clause.body
    assert isinstance(atom, Atom)
    return atom


def _check(
    name: str, noted: Atom, module: Module, declared: Mapping[str, RelationDeclaration], reporter: Reporter
) -> None:
    """Report relations without rounds, and rules and facts of the relation that records rounds."""
    if noted.name not in declared:
        hint = partial(did_you_mean, noted.name, declared)
        reporter.error("E0201", noted.at, f"unknown relation `{noted.name}`", hint)
    elif "inline" in declared[noted.name].qualifiers:
        reporter.error("E0206", noted.at, f"`{noted.name}` is inlined, so it has no rounds")
    heads = [clause.head for clause in module.clauses if clause.head.name == name and not clause.notes]
    inputs = [each for each in module.directives if each.name == name and each.kind == "input"]
    for at in [each.at for each in heads] + [each.at for each in inputs]:
        reporter.error("E0303", at, f"`{name}` has the tuples of `{noted.name}`, and no others")


def _completed(clause: Clause, declared: Mapping[str, RelationDeclaration]) -> Clause:
    """The rule of a relation that notes rounds, with its arguments."""
    noted = _noted(clause)
    args = tuple(Variable(column.name, noted.at) for column in declared[noted.name].columns)
    head = clause.head._replace(args=(*args, IterationCount(noted.at)))
    return clause._replace(head=head, body=(noted._replace(args=args),))


def _columns(noted: RelationDeclaration) -> tuple[ColumnDeclaration, ...]:
    """The columns of the relation that notes the rounds of another one."""
    plain = (column._replace(lattice=False) for column in noted.columns)
    return (*plain, ColumnDeclaration(_COLUMN, "unsigned", noted.at))

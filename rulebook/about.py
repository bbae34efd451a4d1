"""The ops that a user's rules are about; shardlog's own rules keep their say on all others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..engine.language.syntax import Atom, Clause, Constant, Module, Variable
from .naming import Names, Naming


def names(module: Module, naming: Naming) -> Names:
    """The ops and targets that rules apply to.

    A rule applies to the ops that a positive atom of its body names, or that facts name which it joins with
    the name of the op. None if a rule names no ops.
    """
    if module.broken:
        return None  # there are more rules in other files
    own: dict[str, Names] = {declaration.name: frozenset() for declaration in module.relations}
    clauses: dict[str, list[Clause]] = {}
    for clause in module.clauses:
        clauses.setdefault(clause.head.name, []).append(clause)
    keyed = {d.name for d in module.relations if d.columns and d.columns[0].type_name == "sig"}
    while True:
        grown = {
            name: _union([_about(c, own, keyed, naming) for c in clauses[name]] if name in clauses else [])
            for name in own
        }
        if grown == own:
            break
        own = grown
    return _union(
        _about(c, own, keyed, naming) for name in clauses.keys() - own.keys() for c in clauses[name]
    )


def _union(names_of_each: Iterable[Names]) -> Names:
    every = list(names_of_each)
    sets = [names for names in every if names is not None]
    return frozenset().union(*sets) if len(sets) == len(every) else None


def _about(clause: Clause, own: Mapping[str, Names], keyed: set[str], naming: Naming) -> Names:
    """The ops that a clause applies to, by its first atom that names ops."""
    if not clause.body:
        is_named = clause.head.name in own or clause.head.name in naming.names
        return _texts(clause.head) if is_named else None
    atoms = [literal for literal in clause.body if isinstance(literal, Atom)]
    named = {a.args[1].name for a in atoms if a.name in naming.calls and isinstance(a.args[1], Variable)}
    if clause.head.name in naming.names:
        named |= {a.name for a in clause.head.args if isinstance(a, Variable)}
    for atom in atoms:
        joined = any(isinstance(a, Variable) and a.name in named for a in atom.args)
        if atom.name in naming.calls and isinstance(atom.args[1], Constant):
            return _texts(atom)
        if atom.name in keyed or (atom.name in own and joined):
            return own[atom.name]
    return None


def _texts(atom: Atom) -> frozenset[str]:
    return frozenset(str(a.value).removeprefix("@") for a in atom.args if isinstance(a, Constant))

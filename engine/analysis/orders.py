"""Orders of joins that a program states: ``.plan`` entries are checked, and not followed.

As in Soufflé 2.5, they are checked against a rule after inlining.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..language.diagnostics import Reporter
from ..language.syntax import Atom, Clause


def check_orders(clauses: Iterable[Clause], groups: Iterable[Collection[str]], reporter: Reporter) -> None:
    """Report orders that do not name each atom of their rule once, and orders for versions that the rule does
    not have: it has one for each atom of a relation that is computed with its own. ``groups`` are the
    relations that are computed together."""
    group_of = {name: group for group in groups for name in group}
    for clause in clauses:
        if not clause.plans:
            continue
        atoms = [literal for literal in clause.body if isinstance(literal, Atom)]
        versions = sum(atom.name in group_of[clause.head.name] for atom in atoms)
        for plan in clause.plans:
            if sorted(plan.atoms) != [*range(1, len(atoms) + 1)]:
                hint = f"once relations are inlined it has {len(atoms)}, which are numbered from 1 on"
                reporter.error("E0102", plan.at, "this is not an order of the rule's atoms", hint)
            if plan.version >= max(versions, 1) or (not versions and not clause.subsumes):
                has = f"{versions}, from 0 on" if versions else "none, for it is not recursive"
                message = f"this rule has no version {plan.version} to plan: it has {has}"
                reporter.error("E0102", plan.at, message)

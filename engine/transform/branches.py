"""Algebraic data types as records: the number of the branch, and slots for the fields of all branches.

``BranchType`` says which slot a field has. A slot that its branch does not use holds 0, "" or nil, so that
equal values are equal records.
"""

from __future__ import annotations

from ..analysis.types import Types
from ..language.syntax import Branch, Clause, Constant, Nil, Record, Term
from ..language.walk import rewrite_clause

_NOTHING = {
    "number": ("integer", 0),
    "unsigned": ("integer", 0),
    "float": ("float", 0.0),
    "symbol": ("symbol", ""),
}


def lower_branches(clause: Clause, types: Types) -> Clause:
    """The clause with records in place of branches. The clause must be checked."""
    if not types.branches:
        return clause

    def change(term: Term) -> Term:
        if not isinstance(term, Branch):
            return term
        branch = types.branches[term.name]
        fields: list[Term] = [_nothing(kind, term.at) for kind in types.fields[branch.type_name]]
        fields[0] = Constant(branch.number, "integer", term.at)
        for place, arg in zip(branch.slots, term.args, strict=True):
            fields[place] = arg
        return Record(tuple(fields), term.at, term.name, branch.slots)

    return rewrite_clause(clause, change)


def _nothing(kind: str, at: int) -> Term:
    if kind not in _NOTHING:
        return Nil(at)
    name, value = _NOTHING[kind]
    return Constant(value, name, at)  # type: ignore[arg-type]

"""The meaning of a type declaration: its kind, its fields, the types below it.

A *kind* is the root of a type: "number", "unsigned", "float", "symbol", or the name of a record type. Kinds
decide the meaning of a word and the overload of a functor. Types below a root only guard against mistakes.
"""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from ..language.diagnostics import Reporter, did_you_mean
from ..language.syntax import ColumnDeclaration, TypeDeclaration
from ..plan.plan import Type

PRIMITIVES = ("number", "unsigned", "float", "symbol")
_DEEPEST = 100  # names that stand for one another


@dataclass(frozen=True)
class BranchType:
    """A branch of an algebraic data type: the type, which of its branches in order, and the branch's fields.

    A value is a record: the number of its branch, and slots for the fields of all branches. ``slots`` has for
    each field the place of its slot; the other slots hold nothing of interest.
    """

    type_name: str
    number: int
    columns: tuple[ColumnDeclaration, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Types:
    """The declared types: the kind of each, the fields of records, and the types that each is below."""

    kinds: Mapping[str, str]
    columns: Mapping[str, tuple[ColumnDeclaration, ...]]  # record kind -> its fields
    fields: Mapping[str, tuple[str, ...]]  # record kind -> kinds of its fields
    below: Mapping[str, frozenset[str]]  # type -> itself and its subtypes; of a union those of its members
    branches: Mapping[str, BranchType] = field(default_factory=dict)  # by name
    broken: frozenset[str] = frozenset()  # types that count as numbers, because their declaration is in error

    def is_known(self, type_name: str) -> bool:
        """Whether a type is known."""
        return type_name in self.kinds and type_name not in self.broken

    def root(self, type_name: str) -> Type:
        """The root of a type as the plan has it. Types that are not known count as numbers."""
        return plan_type(self.kinds.get(type_name, "number"))


def plan_type(kind: str) -> Type:
    """The type of a kind in a plan: all records are "record"."""
    return kind if kind in PRIMITIVES else "record"  # type: ignore[return-value]


def declared_types(declarations: Iterable[TypeDeclaration], reporter: Reporter) -> Types:
    """Resolve the type declarations of a program, in any order."""
    errors = len(reporter)
    by_name: dict[str, TypeDeclaration] = {}
    for declaration in declarations:
        if declaration.name in by_name or declaration.name in PRIMITIVES:
            reporter.error("E0202", declaration.at, f"the type `{declaration.name}` is declared twice")
        else:
            by_name[declaration.name] = declaration

    resolved = _Kinds(by_name, reporter)
    for name in by_name:
        resolved.kind_of(name, ())
    kinds = resolved.kinds
    broken = frozenset(by_name.keys() - kinds.keys())
    kinds.update(dict.fromkeys(broken, "number"))
    columns = {name: d.columns for name, d in by_name.items() if d.form == "record"}
    inside = [b.columns for d in by_name.values() for b in d.branches]
    for column in (column for record in (*columns.values(), *inside) for column in record):
        if column.type_name not in by_name and column.type_name not in PRIMITIVES:
            resolved.unknown(column.type_name, column.at)
    fields = {
        name: tuple(kinds.get(c.type_name, "number") for c in record) for name, record in columns.items()
    }
    branches = _branches(by_name, kinds, columns, fields, reporter)
    if len(reporter) > errors:  # types below an unknown one
        return Types(kinds, columns, fields, dict.fromkeys(kinds, frozenset(kinds)), branches, broken)
    return Types(kinds, columns, fields, _below(by_name, kinds), branches)


def _branches(
    by_name: Mapping[str, TypeDeclaration],
    kinds: Mapping[str, str],
    columns: dict[str, tuple[ColumnDeclaration, ...]],
    fields: dict[str, tuple[str, ...]],
    reporter: Reporter,
) -> dict[str, BranchType]:
    """The branches of all types; ``columns`` and ``fields`` get the records that stand for them.

    Fields of one kind share slots where they are in different branches.
    """
    branches: dict[str, BranchType] = {}
    for name, declaration in by_name.items():
        if declaration.form != "branches":
            continue
        slots: dict[tuple[str, int], int] = {}  # kind, and which of that kind in its branch -> slot
        for number, branch in enumerate(sorted(declaration.branches, key=lambda b: b.name)):
            if branch.name in branches:
                reporter.error("E0202", branch.at, f"the branch `{branch.name}` is declared twice")
                continue
            used: Tally[str] = Tally()
            places = []
            for column in branch.columns:
                kind = kinds.get(column.type_name, "number")
                places.append(slots.setdefault((kind, used[kind]), len(slots) + 1))
                used[kind] += 1
            branches[branch.name] = BranchType(name, number, branch.columns, tuple(places))
        fields[name] = ("number", *(kind for kind, _ in slots))
        numbered = [("branch", "number"), *((f"slot{i}", kind) for (kind, _), i in slots.items())]
        columns[name] = tuple(ColumnDeclaration(c, kind, declaration.at) for c, kind in numbered)
    return branches


class _Kinds:
    """The kinds of types, resolved on demand."""

    def __init__(self, by_name: Mapping[str, TypeDeclaration], reporter: Reporter) -> None:
        self._by_name, self._reporter = by_name, reporter
        self.kinds: dict[str, str] = {name: name for name in PRIMITIVES}
        for name, declaration in by_name.items():
            if declaration.form in ("record", "branches"):
                self.kinds[name] = name

    def unknown(self, name: str, at: int) -> None:
        """Report a type that is not declared."""
        hint = partial(did_you_mean, name, (*PRIMITIVES, *self._by_name))
        self._reporter.error("E0201", at, f"unknown type `{name}`", hint)

    def kind_of(self, name: str, path: tuple[str, ...]) -> str | None:
        """The kind of a type; None where it cannot be known (reported)."""
        kinds, by_name, error = self.kinds, self._by_name, self._reporter.error
        if name in kinds or name not in by_name:
            return kinds.get(name)
        declaration = by_name[name]
        members: dict[str, str] = {}
        for member, at in declaration.names:
            if len(path) >= _DEEPEST:
                message = f"the type `{name}` is defined by other types, {_DEEPEST} levels deep"
                error("E0304", declaration.at, message)
                return None
            if member in (*path, name):
                error("E0304", declaration.at, f"the type `{name}` is defined by itself")
                return None
            if member not in by_name and member not in PRIMITIVES:
                self.unknown(member, at)
                return None
            kind = self.kind_of(member, (*path, name))
            if kind is None:
                return None
            members.setdefault(kind, member)
        base = declaration.names[0][0]
        if declaration.form == "subtype" and base in by_name and not by_name[base].names:
            error("E0304", declaration.at, f"the record type `{base}` has no subtypes", f"write: = {base}")
        if len(members) > 1:
            mixed = " and ".join(f"`{member}` (a {kind})" for kind, member in members.items())
            error("E0304", declaration.at, f"the type `{name}` mixes {mixed}")
            return None
        kinds[name] = next(iter(members))
        return kinds[name]


def _below(by_name: Mapping[str, TypeDeclaration], kinds: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """For every type the types below it: along `<:`, from unions to members, and both ways for aliases. A
    union is no more than its members: it is below every type that all of them are below."""
    unions = {name for name, d in by_name.items() if d.form == "union" and len(d.names) > 1}
    up: dict[str, set[str]] = {name: {kind} for name, kind in kinds.items()}
    for name, declaration in by_name.items():
        for other, _ in declaration.names:
            if name in up and other in up:
                if declaration.form == "subtype" or len(declaration.names) == 1:
                    up[name].add(other)
                if declaration.form == "union":
                    up[other].add(name)
    below: dict[str, set[str]] = {name: set() for name in up}
    for name in up:
        reached, todo = {name}, [name]
        while todo:
            new = up[todo.pop()] - reached
            reached |= new
            todo += new
        for other in reached:
            below[other].add(name)
    return {name: frozenset(members - unions) for name, members in below.items()}

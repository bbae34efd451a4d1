"""The syntax tree. Nodes are tuples, cheap to make; ``at`` is a position in ``Sources``.

A rule with several heads or with disjunctions becomes one clause per head and disjunct, as in Soufflé;
its clauses share a ``RuleText``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

# ---- Terms ---------------------------------------------------------------------------------------------


class Variable(NamedTuple):
    name: str
    at: int


class Wildcard(NamedTuple):
    at: int


class Constant(NamedTuple):
    """``kind`` is "symbol", "float", "unsigned", or "integer": a number whose type depends on its use."""

    value: int | float | str
    kind: str
    at: int


class Nil(NamedTuple):
    at: int


class Counter(NamedTuple):
    """``autoinc()`` or ``$``: the next number, from 0 on."""

    at: int


class IterationCount(NamedTuple):
    """``recursive_iteration_cnt()``: the number of the round; 0 before recursion and outside of it."""

    at: int


class Call(NamedTuple):
    """A functor: an operator ("+", "neg"), a name ("cat", "range"), or one of the user ("@f")."""

    name: str
    args: tuple[Term, ...]
    at: int


class Record(NamedTuple):
    """``[args]``; or a branch after lowering: ``branch`` is its name, ``slots`` are its arguments."""

    args: tuple[Term, ...]
    at: int
    branch: str = ""
    slots: tuple[int, ...] = ()


class Branch(NamedTuple):
    """``$Name(args)``: a value of an algebraic data type."""

    name: str
    args: tuple[Term, ...]
    at: int


class Cast(NamedTuple):
    """``as(value, type)``."""

    value: Term
    type_name: str
    at: int


class Aggregate(NamedTuple):
    """``function target : { body }``. ``outer`` names the variables of the rule around it that it uses."""

    function: str
    target: Term | None
    body: tuple[Literal, ...]
    at: int
    outer: tuple[str, ...] = ()


Term: TypeAlias = (
    Variable
    | Wildcard
    | Constant
    | Nil
    | Counter
    | IterationCount
    | Call
    | Record
    | Branch
    | Cast
    | Aggregate
)

# ---- Literals -------------------------------------------------------------------------------------------


class Atom(NamedTuple):
    name: str
    args: tuple[Term, ...]
    at: int


class Negation(NamedTuple):
    atom: Atom
    at: int


class Comparison(NamedTuple):
    """``operator`` is one of = != < <= > >= contains match, or !contains, !match."""

    operator: str
    left: Term
    right: Term
    at: int


class Truth(NamedTuple):
    value: bool
    at: int


Literal: TypeAlias = Atom | Negation | Comparison | Truth

# Behind the name of a functor of the user: the relation of its arguments and values.
VALUES = "="

# ---- Declarations and clauses ---------------------------------------------------------------------------


class RuleText(NamedTuple):
    """A rule as written: from ``start`` up to ``end``; ``sentence`` is its doc comment.

    ``instance`` is the path of the component's instance that it was copied into.
    """

    start: int
    end: int
    sentence: str
    instance: str = ""

    @property
    def named(self) -> list[str]:
        """The variables that the sentence names in braces."""
        return re.findall(r"\{(\w+)\}", self.sentence)


class JoinOrder(NamedTuple):
    """An entry of ``.plan``: the order in which a version of a rule joins its atoms, numbered from 1 on."""

    version: int
    atoms: tuple[int, ...]
    at: int


class Clause(NamedTuple):
    """``nested``: an aggregate stands somewhere in it, so that there are literals below its own.

    A clause that ``subsumes`` deletes its head, which is also the first literal of its body, where another
    tuple of the relation, the second literal, makes it superfluous. One that ``notes`` gives its head the
    tuples of its only literal, each with its round; as it is read, neither has arguments. One that ``joins``
    gives the least upper bound of two tuples of a relation with lattices.
    """

    head: Atom
    body: tuple[Literal, ...]
    text: RuleText
    nested: bool = False
    subsumes: bool = False
    plans: tuple[JoinOrder, ...] = ()  # the content of `.plan`
    notes: bool = False
    joins: bool = False


class ColumnDeclaration(NamedTuple):
    """``lattice``: tuples that differ in such columns only become one, which has their least upper bound."""

    name: str
    type_name: str
    at: int
    lattice: bool = False


class BranchDeclaration(NamedTuple):
    name: str
    columns: tuple[ColumnDeclaration, ...]
    at: int


class TypeDeclaration(NamedTuple):
    """``form`` is "subtype" (``names`` has its base), "union" (its members; one: an alias), "record" or
    "branches"."""

    name: str
    form: str
    names: tuple[tuple[str, int], ...]
    columns: tuple[ColumnDeclaration, ...]
    at: int
    branches: tuple[BranchDeclaration, ...] = ()


class Lattice(NamedTuple):
    """``.lattice name<> { Lub -> term, ... }``: the operators with their terms and places."""

    name: str
    operators: tuple[tuple[str, Term, int], ...]
    at: int
    text: RuleText


class RelationDeclaration(NamedTuple):
    """``choices``: groups of columns, each with its place, on which no two tuples may agree."""

    name: str
    columns: tuple[ColumnDeclaration, ...]
    qualifiers: frozenset[str]
    at: int
    choices: tuple[tuple[tuple[str, ...], int], ...] = ()


class Directive(NamedTuple):
    """``.input``, ``.output``, ``.printsize`` or ``.limitsize`` of one relation; ``kind`` is without the dot.

    ``parameters`` are as written: numbers, names and truth values are texts too.
    """

    kind: str
    name: str
    at: int
    parameters: tuple[tuple[str, str], ...] = ()


class ComponentType(NamedTuple):
    """A component with the arguments in angle brackets."""

    name: str
    parameters: tuple[str, ...]
    at: int


class ComponentInstance(NamedTuple):
    """``.init name = type``."""

    name: str
    type: ComponentType
    at: int


@dataclass
class Component:
    """``.comp type : bases { body }``; ``overrides`` are relations whose rules in bases do not count."""

    type: ComponentType
    bases: tuple[ComponentType, ...]
    body: Module
    overrides: dict[str, int] = field(default_factory=dict)


@dataclass
class Module:
    """All declarations and clauses of a program, or of a component, in the order of its texts.

    ``broken`` names the relations whose declaration has a syntax error, so that their uses are no errors.
    """

    types: list[TypeDeclaration] = field(default_factory=list)
    lattices: list[Lattice] = field(default_factory=list)
    relations: list[RelationDeclaration] = field(default_factory=list)
    directives: list[Directive] = field(default_factory=list)
    clauses: list[Clause] = field(default_factory=list)
    components: list[Component] = field(default_factory=list)
    instances: list[ComponentInstance] = field(default_factory=list)
    pragmas: list[tuple[str, str]] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    # Declared ones, as the relations of their arguments and values; None for those that no rule can use.
    functors: dict[str, RelationDeclaration | None] = field(default_factory=dict)
    callable: frozenset[str] = frozenset()  # the functors that the caller has functions for
    unread: bool = False  # whether a statement could not be read
    symbols: dict[str, None] = field(default_factory=dict)  # in the order of the texts

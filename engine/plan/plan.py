"""The plan: the interface between the front end and an evaluator.

A plan is a small relational algebra: relations, strata in evaluation order, and rules as nested loops. Both
evaluators (``core`` in Rust, ``reference`` in Python) run exactly this, so a plan holds everything that an
answer depends on: the order of joins, the version of a relation that each scan reads, the type of every
operation. ``QueryPlan.to_json`` is the form that ``core`` reads.

Values. A column holds one machine word. ``number`` is a signed and ``unsigned`` an unsigned 64-bit integer
(both wrap around), ``float`` an IEEE double, ``symbol`` and records are interned. In a plan a constant is
a Python ``int``, ``float`` or ``str``; its type stands beside it.

Semi-naive evaluation. In a recursive stratum every relation has three parts: ``old`` (known before the last
round), ``delta`` (new in the last round) and the tuples found in this round, which no scan sees. A scan's
``version`` is ``all`` (old and delta), ``delta`` or ``old``. A recursive rule with n recursive atoms stands
in the plan n times: the i-th variant reads ``delta`` for the i-th recursive atom, ``old`` for those before it
and ``all`` for those after it. Relations of earlier strata are always read as ``all``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

Type = Literal["number", "unsigned", "float", "symbol", "record"]
Version = Literal["all", "delta", "old"]

# ---- Expressions: nested tuples ----------------------------------------------------------------------------
# ("reg", i)                      the value of register i
# ("const", type, value)          a constant; nil is ("const", "record", None)
# ("call", name, type, args...)   an intrinsic functor; `type` is the type of its first argument
# ("record", args...)             a record (interned)
Expression = tuple[object, ...]

# ---- Steps of a rule body, each a loop or a test around the steps that follow --------------------------
# ("scan", relation, version, bound, free)
#     for every tuple of the relation whose column c equals e for all (c, e) in `bound`: register r := column
#     c for all (c, r) in `free`. A column in neither list is not looked at. Where `free` is empty the step is
#     a test (at most one pass through what follows).
# ("absent", relation, bound)
#     go on if no tuple of the relation matches `bound`
# ("test", operator, type, left, right)
#     go on if left operator right: = != < <= > >= contains match !contains !match
# ("let", register, expression)
#     register := expression
# ("unpack", expression, registers)
#     the fields of a record that is not nil; fails on nil. A register of -1 is not looked at
# ("range", register, type, from, to, step)
#     register := from, from+step, ... up to, not including, to; without a step (None) it is 1, or -1 where to
# is #     less than from
# ("aggregate", register, function, type, target, steps)
#     register := count | sum | min | max | mean over the solutions of `steps` of `target` (None for count);
#     min, max and mean of nothing fail; count and sum of nothing are 0; mean is a float
# ("next", register)
#     register := the next number of the evaluation, from 0 on
# ("round", register)
#     register := the number of the stratum's round: 0 where its rules run once, then from 1 on
PlanStep = tuple[object, ...]


@dataclass(frozen=True)
class Column:
    """A column of a relation: its name and the root of its type."""

    name: str
    type: Type
    type_name: str  # as declared, e.g. a subtype


@dataclass(frozen=True)
class BranchFields:
    """The fields of a branch of an algebraic data type, and the column of the record for each."""

    columns: tuple[Column, ...]
    slots: tuple[int, ...]


@dataclass(frozen=True)
class Relation:
    """A relation. ``eqrel`` relations are closed under equivalence by the evaluator.

    ``sorted``: once its stratum is computed, scans read its tuples in order. ``choices`` are groups of
    columns on which no two tuples agree. The rules then derive candidates in another relation. After each
    round the candidates are taken one by one, in order, if they agree with no tuple so far. ``gives`` names
    the relation that a relation of candidates, or of tuples to delete, belongs to. A stratum takes no more
    rounds once a relation of it has ``most`` tuples.
    """

    name: str
    columns: tuple[Column, ...]
    eqrel: bool = False
    input: bool = False
    output: bool = False
    keyed: bool = False  # in a keyed program: the first column was the key and has been dropped
    sorted: bool = False
    choices: tuple[tuple[int, ...], ...] = ()
    gives: int | None = None
    most: int | None = None


@dataclass(frozen=True)
class Rule:
    """A rule (or one semi-naive variant of it): ``head(args) :- steps``.

    ``orders`` are the same rule with its joins in other orders. An evaluator may run one of them instead,
    each time the one that reads the fewest tuples.
    """

    head: int  # index of the relation
    args: tuple[Expression, ...]
    steps: tuple[PlanStep, ...]
    registers: int  # how many registers the rule uses
    source: int  # index into Plan.sources: variants of a rule share it
    orders: tuple[Rule, ...] = ()


@dataclass(frozen=True)
class Source:
    """The place of a rule, its text, and its sentence for explanations (from its ``///`` comment).

    ``types`` has the variables that the sentence names, each with its type, where that is a subtype.
    """

    file: str
    line: int
    text: str
    sentence: str = ""
    types: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class PlanDirective:
    """An input or output of a program: ``.input``, ``.output``, ``.printsize`` or ``.limitsize`` (``kind``)
    of a relation, with its parameters as written. Evaluators ignore it."""

    kind: str
    relation: str
    parameters: dict[str, str]
    file: str
    line: int
    column: int


@dataclass(frozen=True)
class Stratum:
    """Relations that are computed together. ``rules`` run once, then ``recursive`` until nothing is new.

    ``updates`` continue an evaluation after facts were added: all rules, with a variant for each atom of
    their bodies that reads its delta; None if the stratum is computed anew.

    In each round the ``candidates`` become tuples of the relations that they are for. After it the rules
    ``after`` run, with the new tuples as the delta. Their tuples in ``superfluous`` are deleted. Their other
    relations note rounds, and no rule of the stratum reads these.
    """

    relations: tuple[int, ...]
    rules: tuple[int, ...]
    recursive: tuple[int, ...] = ()
    updates: tuple[int, ...] | None = None
    after: tuple[int, ...] = ()
    candidates: tuple[int, ...] = ()
    superfluous: tuple[int, ...] = ()


@dataclass(frozen=True)
class QueryPlan:
    """A checked program, ready to be evaluated.

    In a keyed program (``key`` is the name of the key's type) the key column has been removed from every
    keyed relation: the program stands for one key. ``shared`` strata use no keyed relation; they are
    evaluated once and their relations serve every key. They come before all other strata.
    """

    relations: tuple[Relation, ...]
    rules: tuple[Rule, ...]
    strata: tuple[Stratum, ...]
    sources: tuple[Source, ...]
    key: str | None = None
    shared: int = 0  # the first `shared` strata are evaluated once
    facts: tuple[tuple[int, tuple[Expression, ...]], ...] = field(default=())  # facts in the program text
    records: dict[str, tuple[Column, ...]] = field(default_factory=dict)  # record type_name -> its fields
    directives: tuple[PlanDirective, ...] = ()  # in the order of the text
    texts: tuple[str, ...] = ()  # the symbols in the text of a program without a key, in order
    # Algebraic data type -> branch -> its fields and their slots, in the order of the numbers of branches: a
    # value is a record of the number and the slots.
    branches: dict[str, dict[str, BranchFields]] = field(default_factory=dict)

    def index(self, name: str) -> int:
        """The index of the relation with a name. Raises KeyError if there is none."""
        for i, relation in enumerate(self.relations):
            if relation.name == name:
                return i
        raise KeyError(name)

    def to_json(self) -> str:
        """The plan as JSON: dataclasses as objects, tuples as arrays."""
        return json.dumps(self, default=vars, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> QueryPlan:
        """The plan that ``to_json`` wrote."""
        plan = json.loads(text)
        return QueryPlan(
            tuple(
                Relation(**{**r, "columns": _columns(r["columns"]), "choices": _tuples(r.get("choices", []))})
                for r in plan["relations"]
            ),
            tuple(map(_rule, plan["rules"])),
            tuple(Stratum(**{name: _tuples(numbers) for name, numbers in s.items()}) for s in plan["strata"]),
            tuple(Source(**{**s, "types": _tuples(s["types"])}) for s in plan["sources"]),
            plan["key"],
            plan["shared"],
            _tuples(plan["facts"]),
            {name: _columns(fields) for name, fields in plan["records"].items()},
            tuple(PlanDirective(**directive) for directive in plan.get("directives", ())),
            tuple(plan.get("texts", ())),
            {
                name: {
                    b: BranchFields(_columns(f["columns"]), tuple(f["slots"])) for b, f in branches.items()
                }
                for name, branches in plan.get("branches", {}).items()
            },
        )


def _rule(rule: dict[str, Any]) -> Rule:
    orders = tuple(map(_rule, rule.get("orders", ())))
    return Rule(**{**rule, "args": _tuples(rule["args"]), "steps": _tuples(rule["steps"]), "orders": orders})


def _columns(columns: list[dict[str, Any]]) -> tuple[Column, ...]:
    return tuple(Column(**column) for column in columns)


def _tuples(value: Any) -> Any:
    """Arrays as tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value

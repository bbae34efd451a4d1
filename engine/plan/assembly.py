"""Checked clauses to the rules, facts and strata of a plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from ..analysis.strata import clause_uses
from ..analysis.types import Types
from ..language.diagnostics import Reporter
from ..language.syntax import Atom, Clause, ColumnDeclaration, RelationDeclaration, RuleText
from ..transform.numbers import uncounted
from .plan import BranchFields, Column, Expression, Relation, Rule, Source, Stratum
from .planner import Schema, constant_arguments, plan_clause, plan_losses

# Helper relations: candidates of a choice, and tuples to delete.
CANDIDATES, SUPERFLUOUS = "candidates", "superfluous"
LOST = "lost"  # tuples that a relation has no more
Clauses = Iterable[tuple[Clause, dict[str, str]]]
_LITERALS = 500_000  # literals of all variants of rules, one for each recursive atom


def helper(name: str, what: str) -> str:
    """The name of the relation that has the candidates or the superfluous tuples of another one."""
    return f"{name}@{what}"


class Assembly:
    """The parts of a plan that groups of relations add: rules, facts, strata, and places in the text.

    ``source`` gives the place of a rule. With ``updates`` strata say how they continue after facts were
    added.
    """

    def __init__(
        self,
        relations: Sequence[Relation],
        schema: Schema,
        source: Callable[[RuleText], Source],
        updates: bool,
        reporter: Reporter,
    ) -> None:
        self._relations = relations
        self._schema = schema
        self._source = source
        self._updates = updates
        self._reporter = reporter
        self._literals = 0  # of the versions of rules
        self._numbers: dict[RuleText, int] = {}  # of sources
        self._taken = _Taken()
        self.sources: list[Source] = []
        self.rules: list[Rule] = []
        self.facts: list[tuple[int, tuple[Expression, ...]]] = []
        self.strata: list[Stratum] = []

    def add(self, group: Sequence[str], clauses: Mapping[str, Clauses]) -> bool:
        """Adds relations that are computed together. ``clauses`` has the clauses of each relation, with the
        kinds of their variables. Returns whether they need a stratum: facts alone do not."""
        once: list[int] = []
        again: list[int] = []
        more: list[int] = []
        after: list[int] = []
        grows = self._updates
        index, members = self._schema.index, frozenset(group)
        for name in group:
            for clause, kinds in clauses.get(name, ()):
                constants = constant_arguments(clause, self._schema)
                if constants is not None and not clause.subsumes:
                    if self._taken.take(self._relations[index[name]], constants):
                        self.facts.append((index[name], constants))
                    continue
                recursive = any(use.relation in members for use in clause_uses(clause))
                gathers = helper(name, SUPERFLUOUS if clause.subsumes else CANDIDATES)
                if gathers in index:
                    clause = clause._replace(head=clause.head._replace(name=gathers))
                ends = clause.subsumes or clause.notes
                kind = after if ends else again if recursive else once
                kind += self._planned(clause, kinds, members)
                grows = grows and not ends and uncounted(clause) is clause
                if grows:
                    more += self._planned(clause, kinds, index)
        if once or again or after:
            self.strata.append(self._stratum(group, once, again, more if grows else None, after))
        return bool(once or again or after)

    def _planned(self, clause: Clause, kinds: dict[str, str], recursive: Collection[str]) -> range:
        """The numbers of the rules that a clause becomes, with a variant for each atom of the relations that
        are recursive. Raises DatalogError where there are too many."""
        versions = sum(isinstance(literal, Atom) and literal.name in recursive for literal in clause.body)
        self._literals += versions * len(clause.body)
        if self._literals > _LITERALS:
            what = f"the versions of recursive rules, up to this one, have more than {_LITERALS} literals"
            hint = (
                "a rule has one for each of its recursive atoms: give some of these a relation of their own"
            )
            self._reporter.error("E0107", clause.text.start, what, hint)
            self._reporter.finish()
        if clause.text not in self._numbers:
            self._numbers[clause.text] = len(self.sources)
            self.sources.append(self._source(clause.text))
        first = len(self.rules)
        self.rules += plan_clause(clause, kinds, self._schema, recursive, self._numbers[clause.text])
        return range(first, len(self.rules))

    def find_losses(
        self, groups: Sequence[Sequence[str]], clauses: Mapping[str, Clauses]
    ) -> tuple[Relation, ...]:
        """Has strata that find which tuples no longer follow, in place of those that compute ``groups``.

        Their ``rules`` find proofs of given tuples, and their ``updates`` what may be lost with lost tuples;
        None where the relations have to be computed anew. Returns the relations with those that have the lost
        tuples, or the given ones, which are behind them.
        """
        count, names = len(self._relations), list(self._schema.index)
        lost = {helper(name, LOST): count + i for i, name in enumerate(names)}
        kinds = {helper(name, LOST): kinds for name, kinds in self._schema.kinds.items()}
        schema = replace(
            self._schema, index={**self._schema.index, **lost}, kinds={**self._schema.kinds, **kinds}
        )
        self.rules, self.facts = [], []
        self.strata = [self._losses(group, clauses, schema) for group in groups]
        more = (Relation(name, self._relations[i - count].columns) for name, i in lost.items())
        return (*self._relations, *more)

    def _losses(self, group: Sequence[str], clauses: Mapping[str, Clauses], schema: Schema) -> Stratum:
        proving: list[int] = []
        losing: list[int] = []
        anew = Stratum(tuple(schema.index[name] for name in group), ())
        for name in group:
            relation = self._relations[schema.index[name]]
            special = relation.eqrel or relation.choices or relation.sorted or relation.most is not None
            if special or not relation.columns or "@" in name or helper(name, SUPERFLUOUS) in schema.index:
                return anew
            for clause, kinds in clauses.get(name, ()):
                if constant_arguments(clause, schema) is not None:
                    continue
                counts = clause.subsumes or clause.notes or uncounted(clause) is not clause
                source = self._numbers[clause.text]
                losses = None if counts else plan_losses(clause, kinds, schema, _lost, source)
                if losses is None:
                    return anew
                for rules, numbers in ((losses[0], losing), ([losses[1]], proving)):
                    numbers += range(len(self.rules), len(self.rules) + len(rules))
                    self.rules += rules
        return replace(anew, rules=tuple(proving), updates=tuple(losing))

    def _stratum(
        self,
        group: Sequence[str],
        once: list[int],
        again: list[int],
        more: list[int] | None,
        after: list[int],
    ) -> Stratum:
        index = self._schema.index
        helpers = [
            tuple(index[n] for name in group if (n := helper(name, what)) in index)
            for what in (CANDIDATES, SUPERFLUOUS)
        ]
        # Choices, deletions and numbers depend on all tuples.
        grows = not any(helpers) and not any("@" in name for name in group)
        return Stratum(
            tuple(index[name] for name in group),
            tuple(once),
            tuple(again),
            tuple(more) if more is not None and grows else None,
            tuple(after),
            *helpers,
        )


def _lost(name: str) -> str:
    return helper(name, LOST)


class _Taken:
    """The values of facts in the choice columns of relations."""

    def __init__(self) -> None:
        self._seen: set[object] = set()

    def take(self, relation: Relation, row: Sequence[Expression]) -> bool:
        """Whether a fact agrees with none before it."""
        parts = {(relation.name, columns, tuple(row[c] for c in columns)) for columns in relation.choices}
        free = parts.isdisjoint(self._seen)
        if free:
            self._seen |= parts
        return free


def columns_of(declared: Iterable[ColumnDeclaration], types: Types) -> tuple[Column, ...]:
    """Columns as plans have them."""
    return tuple(Column(c.name, types.root(c.type_name), c.type_name) for c in declared)


def choices_of(relation: RelationDeclaration, keyed: bool) -> tuple[tuple[int, ...], ...]:
    """The columns of each group of a choice, without the key's."""
    places = {column.name: i - keyed for i, column in enumerate(relation.columns)}
    return tuple(tuple(places[n] for n in names if places[n] >= 0) for names, _ in relation.choices)


def records_of(types: Types) -> dict[str, tuple[Column, ...]]:
    """The fields of every type that is a record, by all of its names."""
    return {
        name: columns_of(types.columns[kind], types)
        for name, kind in sorted(types.kinds.items())
        if kind in types.columns
    }


def branches_of(types: Types) -> dict[str, dict[str, BranchFields]]:
    """The branches of every algebraic data type, by all names of the type."""
    branches: dict[str, dict[str, BranchFields]] = {}
    for name, branch in sorted(types.branches.items(), key=lambda pair: pair[1].number):
        fields = BranchFields(columns_of(branch.columns, types), branch.slots)
        branches.setdefault(branch.type_name, {})[name] = fields
    return {name: branches[kind] for name, kind in sorted(types.kinds.items()) if kind in branches}

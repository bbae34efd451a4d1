"""Stores: a program with facts that are added incrementally, and the results, column by column."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from ..language.diagnostics import EngineError
from ..plan.needs import needed
from ..plan.plan import Column, QueryPlan, Relation
from .branches import Branches
from .facts import Rows, tuples
from .limits import UNLIMITED, Limits

if TYPE_CHECKING:
    import numpy as np

    from .reference import Evaluation

# The type of a column's words, if they are not numbers of symbols or records.
NUMERIC = {"number": "int64", "unsigned": "uint64", "float": "float64"}
Words: TypeAlias = "np.ndarray[Any, np.dtype[np.int64]]"
# One application of a rule: the numbers of its source, stratum and round, seconds, and the number of new
# tuples.
Noted = tuple[int, int, int, float, int]
# The number of a rule in the plan and of its order of joins (0 is its own), the number of applications,
# seconds, the number of new tuples, and the rows after each step: those expected, and those that there were.
Counted = tuple[int, int, int, float, int, list[float], list[int]]
# The columns of a relation and the first tuple of each round but the first: see ``Store.found``.
Found: TypeAlias = "tuple[list[Words], Words]"
# The name of a relation in another program, and here.
Shared = Sequence[tuple[str, str]]
# Numbers (unsigned ones as their bits), floats, texts, or numbers of texts and these texts.
FactColumn: TypeAlias = "np.ndarray[Any, Any] | list[str] | tuple[Words, list[str]]"


class Batch(Protocol):
    """Facts of a relation that come piece by piece; the store does other things between two of them."""

    def extend(self, rows: Rows, memory: int | None = None) -> None:
        """Take more tuples. Raises EngineError for one that does not fit, and where all take more memory."""
        ...

    def add(self, memory: int | None = None) -> None:
        """Add them to the store, as ``Store.add``."""
        ...


class Store(Protocol):
    """Either all facts are added or none. Relations must be in the program. Facts that do not fit raise
    EngineError, and so do those with which all facts take more than ``memory`` bytes."""

    def add(self, relation: str, rows: Rows, memory: int | None = None) -> None:
        """Add tuples."""
        ...

    def batch(self, relation: str) -> Batch:
        """Facts that come piece by piece."""
        ...

    def remove(self, relation: str, rows: Rows) -> None:
        """Take facts away that were added; others are ignored, and facts in the program's text stay."""
        ...

    def plan_losses(self, plan: str) -> None:
        """Take the plan that finds what no longer follows after facts were removed (``compile_losses``).
        Without it everything is computed anew that depends on them."""
        ...

    def add_columns(self, relation: str, columns: Sequence[FactColumn], memory: int | None = None) -> None:
        """Add tuples by column; there are as many columns as the relation has, all of one length, none of
        records."""
        ...

    def add_lines(
        self,
        relation: str,
        delimiter: str,
        quoted: bool,
        pieces: Iterable[bytes],
        size: int | None = None,
        memory: int | None = None,
    ) -> bool:
        """Add facts as lines of fields, which may be ``quoted``; each piece has whole lines, and all have
        ``size`` bytes, if that is known. False if not all lines are known to fit; then none are added."""
        ...

    def lines(self, relation: str, delimiter: str, quoted: bool) -> Iterable[bytes] | None:
        """The sorted tuples of a relation as lines of fields, piece by piece, symbols ``quoted`` or not;
        None if the caller has to write them."""
        ...

    def evaluate(self, outputs: Sequence[str], limits: Limits = UNLIMITED) -> None:
        """Compute these relations and their dependencies, and update earlier results."""
        ...

    def complete(self) -> list[str]:
        """The relations whose tuples are all known."""
        ...

    def ask(self, plan: str, shared: Shared, limits: Limits = UNLIMITED) -> dict[str, list[Any]]:
        """The sorted tuples of the outputs of another program, given by its plan, over relations of this one,
        which are not copied."""
        ...

    def ask_found(self, plan: str, shared: Shared, limits: Limits = UNLIMITED) -> dict[str, Found]:
        """As ``ask``, but each output as ``found`` gives it."""
        ...

    def profile(self, outputs: Sequence[str], limits: Limits = UNLIMITED) -> list[Noted]:
        """Like ``evaluate``; returns the time of each rule that ran, in order of time."""
        ...

    def analyze(self, outputs: Sequence[str], limits: Limits = UNLIMITED) -> list[Counted]:
        """Like ``evaluate``, on one thread; returns what the steps of each rule that ran take."""
        ...

    def count(self, relation: str) -> int:
        """How many tuples a relation has."""
        ...

    def rows(self, relation: str) -> list[tuple[Any, ...]]:
        """The sorted tuples of a relation."""
        ...

    def columns(self, relation: str) -> list[Words]:
        """The columns of a relation with sorted tuples: numbers, the bits of unsigned numbers and floats, and
        the numbers of symbols and records, which ``symbols`` and ``values`` resolve. Raises EngineError for
        records that nest too deeply for ``values``."""
        ...

    def found(self, relation: str) -> Found:
        """The columns of a relation like ``columns``, but in the order of derivation, with 32-bit words if
        all fit; and the number of the first tuple of each round after the first. A tuple follows from those
        of earlier strata and earlier rounds, except for pairs that an eqrel adds."""
        ...

    def rounds(self, relation: str) -> Words | None:
        """The number of the first tuple of each round after the first, as ``found`` has it. None if ``words``
        and ``with_words`` do not read the relation."""
        ...

    def words(self, relation: str, column: int, rows: Words) -> Words:
        """The words of some tuples, by their numbers in the order of derivation, in a column."""
        ...

    def with_words(self, relation: str, words: Sequence[tuple[int, int]], most: int) -> Words:
        """The numbers of the first tuples, at most so many, that have these words, given with their
        columns."""
        ...

    def facts(self, relation: str) -> list[tuple[Any, ...]]:
        """The facts of a relation: added facts, and facts in the program."""
        ...

    def symbols(self, start: int) -> list[str]:
        """The symbols by number, from number ``start`` on."""
        ...

    def values(self, relation: str, column: int, words: Words) -> list[Any]:
        """The values of the words of a column."""
        ...

    def ordinal(self, text: str) -> int:
        """The number of a symbol for the facts that there are."""
        ...

    def word(self, relation: str, column: int, value: Any) -> int | None:
        """The word of a value in a column of symbols or records; None or any other where no tuple has it."""
        ...

    def trace(self, tables: Sequence[Any]) -> Any:
        """A search for proofs over arrays, for ``provenance.trace``; None if there is none."""
        ...


class ReferenceStore:
    """A store that evaluates everything anew, where something was added."""

    def __init__(self, plan: QueryPlan) -> None:
        from .ordinals import Ordinals

        self._plan = plan
        self._ordinals = Ordinals(plan)
        self._facts: dict[str, list[tuple[Any, ...]]] = {}
        self._evaluation: Evaluation | None = None
        self._done: set[str] = set()
        self._symbols: dict[str, int] = {}
        self._values: dict[Any, int] = {}
        self.taken = 0  # bytes, about

    def add(self, relation: str, rows: Rows, memory: int | None = None) -> None:
        batch = self.batch(relation)
        batch.extend(rows, memory)
        batch.add(memory)

    def batch(self, relation: str) -> Batch:
        return _ReferenceBatch(self, self._plan.relations[self._plan.index(relation)], self._plan.records)

    def keep(self, relation: Relation, checked: list[tuple[Any, ...]], taken: int) -> None:
        """Add tuples that fit, which take so many bytes."""
        self._facts.setdefault(relation.name, []).extend(checked)
        self._ordinals.note(relation, checked)
        self._evaluation = None
        self.taken += taken

    def remove(self, relation: str, rows: Rows) -> None:
        taken = set(tuples(self._plan.relations[self._plan.index(relation)], rows, self._plan.records))
        self._facts[relation] = [row for row in self._facts.get(relation, ()) if row not in taken]
        self._evaluation = None

    def plan_losses(self, plan: str) -> None:
        """Everything is computed anew."""

    def add_columns(self, relation: str, columns: Sequence[FactColumn], memory: int | None = None) -> None:
        declared = self._plan.relations[self._plan.index(relation)].columns
        parts = [_listed(c.type, column) for c, column in zip(declared, columns, strict=True)]
        self.add(relation, list(zip(*parts, strict=True)), memory)

    def add_lines(
        self,
        relation: str,
        delimiter: str,
        quoted: bool,
        pieces: Iterable[bytes],
        size: int | None = None,
        memory: int | None = None,
    ) -> bool:
        return False

    def lines(self, relation: str, delimiter: str, quoted: bool) -> Iterable[bytes] | None:
        return None

    def evaluate(self, outputs: Sequence[str], limits: Limits = UNLIMITED) -> None:
        if self._evaluation is None or not self._done.issuperset(outputs):
            wanted = self._done.union(outputs)
            self._evaluated(wanted, limits)
            self._done = wanted

    def complete(self) -> list[str]:
        plan = self._plan
        waiting = {i for stratum in plan.strata for i in stratum.relations}
        if self._evaluation is not None:
            for stratum in needed(plan, plan.strata, [plan.index(name) for name in self._done]):
                waiting -= set(stratum.relations)
        return [relation.name for i, relation in enumerate(plan.relations) if i not in waiting]

    def ask(self, plan: str, shared: Shared, limits: Limits = UNLIMITED) -> dict[str, list[Any]]:
        asked, evaluation, outputs = self._asked(plan, shared, limits)
        return {asked.relations[i].name: evaluation.rows(i) for i in outputs}

    def ask_found(self, plan: str, shared: Shared, limits: Limits = UNLIMITED) -> dict[str, Found]:
        asked, evaluation, outputs = self._asked(plan, shared, limits)
        return {
            asked.relations[i].name: self._as_found(asked.relations[i], evaluation.found(i)) for i in outputs
        }

    def _asked(self, text: str, shared: Shared, limits: Limits) -> tuple[QueryPlan, Evaluation, list[int]]:
        """Another program, its evaluation, and its outputs."""
        from .reference import Evaluation

        plan = QueryPlan.from_json(text)
        evaluation = Evaluation(plan, limits=limits, ordinals=self._ordinals)
        for its, mine in shared:
            evaluation.insert(plan.index(its), self.rows(mine))
        unread = {relation.name for relation in plan.relations}.difference(its for its, _ in shared)
        for name in unread.intersection(self._facts):
            evaluation.insert(plan.index(name), self._facts[name])
        outputs = [i for i, relation in enumerate(plan.relations) if relation.output]
        evaluation.run(plan.strata, outputs)
        return plan, evaluation, outputs

    def profile(self, outputs: Sequence[str], limits: Limits = UNLIMITED) -> list[Noted]:
        before = self._evaluation
        self.evaluate(outputs, limits)
        evaluation = self._evaluation
        return [] if evaluation is None or evaluation is before else evaluation.applied

    def analyze(self, outputs: Sequence[str], limits: Limits = UNLIMITED) -> list[Counted]:
        raise EngineError("only the compiled evaluator counts the rows of steps, and it is not in use")

    def _evaluated(self, wanted: Iterable[str], limits: Limits) -> None:
        from .reference import Evaluation

        plan = self._plan
        evaluation = Evaluation(plan, limits=limits, ordinals=self._ordinals)
        for name, rows in self._facts.items():
            evaluation.insert(plan.index(name), rows)
        evaluation.run(plan.strata, [plan.index(name) for name in wanted])
        self._evaluation = evaluation

    def count(self, relation: str) -> int:
        return len(self.rows(relation))

    def rows(self, relation: str) -> list[tuple[Any, ...]]:
        if self._evaluation is None:
            self._evaluated((), UNLIMITED)
            self._done = set()
        assert self._evaluation is not None
        return self._evaluation.rows(self._plan.index(relation))

    def columns(self, relation: str) -> list[Words]:
        return self._as_columns(self._plan.relations[self._plan.index(relation)], self.rows(relation))

    def _as_columns(self, relation: Relation, rows: list[tuple[Any, ...]]) -> list[Words]:
        return [self._words(c.type, [row[i] for row in rows]) for i, c in enumerate(relation.columns)]

    def found(self, relation: str) -> Found:
        self.rows(relation)
        assert self._evaluation is not None
        index = self._plan.index(relation)
        rows, rounds = self._evaluation.found(index)
        return self._as_found(self._plan.relations[index], (rows, [0, *rounds]))

    def _as_found(self, relation: Relation, answer: tuple[list[tuple[Any, ...]], list[int]]) -> Found:
        import numpy as np

        return self._as_columns(relation, answer[0]), np.array(answer[1], np.int64)

    def rounds(self, relation: str) -> Words | None:
        return None

    def words(self, relation: str, column: int, rows: Words) -> Words:
        raise NotImplementedError

    def with_words(self, relation: str, words: Sequence[tuple[int, int]], most: int) -> Words:
        raise NotImplementedError

    def facts(self, relation: str) -> list[tuple[Any, ...]]:
        from .functors import evaluate

        stated = [values for number, values in self._plan.facts if number == self._plan.index(relation)]
        rows = [tuple(evaluate(value, []) for value in values) for values in stated]
        return [*rows, *self._facts.get(relation, ())]

    def ordinal(self, text: str) -> int:
        return self._ordinals[text]

    def word(self, relation: str, column: int, value: Any) -> int | None:
        kind = self._plan.relations[self._plan.index(relation)].columns[column].type
        return self._known(kind).get(value)

    def trace(self, tables: Sequence[Any]) -> Any:
        return None

    def _words(self, kind: str, values: list[Any]) -> Words:
        import numpy as np

        if kind in NUMERIC:
            return np.array(values, NUMERIC[kind]).view(np.int64)
        numbers = self._known(kind)
        return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)

    def _known(self, kind: str) -> dict[Any, int]:
        """The symbols or the records by their numbers."""
        return cast("dict[Any, int]", self._symbols) if kind == "symbol" else self._values

    def symbols(self, start: int) -> list[str]:
        return list(self._symbols)[start:]

    def values(self, relation: str, column: int, words: Words) -> list[Any]:
        by_word = list(self._known(self._plan.relations[self._plan.index(relation)].columns[column].type))
        return [by_word[word] for word in words]


class _ReferenceBatch:
    """Facts that come piece by piece. What they take is estimated as ``Budget`` estimates it."""

    def __init__(
        self, store: ReferenceStore, relation: Relation, records: Mapping[str, tuple[Column, ...]]
    ) -> None:
        self._store, self._relation, self._records = store, relation, records
        self._rows: list[tuple[Any, ...]] = []
        self._taken = 0

    def extend(self, rows: Rows, memory: int | None = None) -> None:
        checked = tuples(self._relation, rows, self._records, len(self._rows))
        self._rows.extend(checked)
        self._taken += sum(sys.getsizeof(row) + sum(map(sys.getsizeof, row)) for row in checked)
        self._fit(memory)

    def add(self, memory: int | None = None) -> None:
        self._fit(memory)
        self._store.keep(self._relation, self._rows, self._taken)

    def _fit(self, memory: int | None) -> None:
        taken = self._store.taken + self._taken
        if memory is not None and taken > memory:
            all_of_them, most = (-(-size // (1 << 20)) for size in (taken, memory))
            raise EngineError(
                f"the facts take at least {all_of_them} MiB of memory, and the limit is {most}; "
                "raise the limit, or give fewer facts"
            )


def _listed(kind: str, column: FactColumn) -> list[Any]:
    if isinstance(column, tuple):
        return [column[1][code] for code in column[0]]
    if isinstance(column, list):
        return column
    return list((column.view("uint64") if kind == "unsigned" else column).tolist())


class BranchStore:
    """A store whose values of algebraic data types are as users see them."""

    def __init__(self, inside: Store, plan: QueryPlan) -> None:
        self._inside, self._branches = inside, Branches(plan)
        self._relations = {relation.name: relation for relation in plan.relations}
        # Everything without records is the same.
        self.add_columns, self.evaluate, self.count = inside.add_columns, inside.evaluate, inside.count
        self.add_lines, self.lines = inside.add_lines, inside.lines
        self.complete, self.ask, self.ask_found = inside.complete, inside.ask, inside.ask_found
        self.profile, self.trace, self.ordinal = inside.profile, inside.trace, inside.ordinal
        self.analyze, self.plan_losses = inside.analyze, inside.plan_losses
        self.word, self.rounds = inside.word, inside.rounds
        self.words, self.with_words = inside.words, inside.with_words
        self.columns, self.found, self.symbols = inside.columns, inside.found, inside.symbols

    def add(self, relation: str, rows: Rows, memory: int | None = None) -> None:
        self._inside.add(relation, list(self._branches.inward(self._relations[relation], rows)), memory)

    def batch(self, relation: str) -> Batch:
        inward = partial(self._branches.inward, self._relations[relation])
        return _BranchBatch(self._inside.batch(relation), inward)

    def remove(self, relation: str, rows: Rows) -> None:
        self._inside.remove(relation, list(self._branches.inward(self._relations[relation], rows)))

    def rows(self, relation: str) -> list[tuple[Any, ...]]:
        return self._outward(relation, self._inside.rows(relation))

    def facts(self, relation: str) -> list[tuple[Any, ...]]:
        return self._outward(relation, self._inside.facts(relation))

    def _outward(self, relation: str, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        return list(self._branches.outward(self._relations[relation], rows))

    def values(self, relation: str, column: int, words: Words) -> list[Any]:
        declared = self._relations[relation].columns[column]
        values = self._inside.values(relation, column, words)
        return [self._branches.outside(declared, value) for value in values]


class _BranchBatch:
    """A batch whose values of algebraic data types are as users see them."""

    def __init__(self, inside: Batch, inward: Callable[[Rows], Iterable[Any]]) -> None:
        self._inside, self._inward = inside, inward
        self.add = inside.add

    def extend(self, rows: Rows, memory: int | None = None) -> None:
        self._inside.extend(list(self._inward(rows)), memory)

"""``Program``: Datalog from Python."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from pathlib import Path
from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar, cast

from ..engine import Diagnostic, Limits, Relation, load
from ..engine.evaluate.branches import Branches
from ..engine.evaluate.program import Backend, Row
from ..engine.evaluate.store import Batch, BranchStore, Store
from ..engine.language.diagnostics import EngineError, unknown_relation
from ..engine.plan.cache import Request
from ..engine.plan.needs import needed_relations
from . import directives
from .readers import read
from .values import Texts, fact_of
from .writers import write

# Imported where it is used: NumPy takes longer to import than a small program to run.
if TYPE_CHECKING:
    import numpy as np
    import pyarrow

    from ..engine.plan.compiler import CheckedClauses
    from ..engine.provenance.search import ProofSearch
    from .explanations import Explanation, WhyNot
    from .plans import Plan
    from .profile import Profile

P = ParamSpec("P")
T = TypeVar("T")
Array: TypeAlias = "np.ndarray[Any, Any]"
LEVELS = 32  # of a proof, unless more are asked for
TEXT = "program"  # the name of a program that is given as text, in messages


def _in_turn(method: Callable[Concatenate[Program, P], T]) -> Callable[Concatenate[Program, P], T]:
    """The method with one call at a time: other threads wait.

    Raises EngineError for a call within a call, as from a signal handler, which could wait for ever.
    """

    @wraps(method)
    def called(self: Program, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._turn:
            if self._busy:
                raise EngineError("the program is in the middle of another call of the same thread")
            try:
                self._busy = True
                return method(self, *args, **kwargs)
            finally:
                self._busy = False

    return called


class Program:
    """A Datalog program with facts, and their consequences.

    ``source`` is a Path, the name of a file that ends in ".dl", or the text of a program. Files may include
    files of their folder or of one of ``include_from``. ``limits`` hold for each evaluation. ``backend`` is
    "core", "reference" (in Python, slow), or "auto": the core if it is installed. With ``magic`` a program
    computes only what its outputs need: a recursive relation has only the tuples that pass what all its
    readers ask for, and magic sets are used where ``.pragma`` says so. Other relations are then incomplete,
    and have no proofs. ``macros`` are defined before the program is read, and ``pragmas`` replace those of
    the program. ``functors`` has a Python function for each functor that the program declares (``.functor``)
    and calls (``@f``). It takes an array for each argument, and returns as many values as these are long; it
    has the same value each time. Several threads may use a program: their calls take turns.

    Raises DatalogError with all errors of the program, and EngineError for functors that it does not declare.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        include_from: Sequence[str | Path] = (),
        limits: Limits | None = None,
        backend: Backend = "auto",
        magic: bool = False,
        macros: Mapping[str, str] | None = None,
        pragmas: Mapping[str, str] | None = None,
        functors: Mapping[str, Callable[..., Any]] | None = None,
    ) -> None:
        is_file = isinstance(source, Path) or ("\n" not in source and source.endswith(".dl"))
        paths, texts = ([source], {}) if is_file else ([], {TEXT: str(source)})
        self.limits = limits or Limits()
        macros, pragmas, functors = macros or {}, pragmas or {}, functors or {}
        if magic and functors:
            raise EngineError("a program that calls functions computes no magic sets: leave out `magic`")
        keywords: dict[str, Any] = {
            "texts": texts,
            "include_from": include_from,
            "updates": True,
            "macros": macros,
            "pragmas": pragmas,
            "functors": tuple(functors),
        }
        self._request = Request(paths, **keywords)
        self._program = load(paths, magic=magic, **keywords)
        self._inside = self._program.store(backend)
        plan = self._program.plan
        self._store: Store = BranchStore(self._inside, plan) if plan.branches else self._inside
        if functors:
            from .functors import FunctorStore

            self._store = cast("Store", FunctorStore(self._store, plan, functors))
        self._turn, self._busy = RLock(), False
        self._stated = frozenset(self._store.complete())  # relations without rules
        self._computed = self._stated  # by the last run
        self._given: set[str] = set()  # relations to which facts were added
        self._symbols: Array | None = None
        self._written: CheckedClauses | None = None
        self._proofs: ProofSearch | None = None  # over the last run
        self._runs = 0
        self._losses_planned = magic or bool(functors)  # without a plan, removals recompute

    @property
    def relations(self) -> dict[str, Relation]:
        """The relations of the program by name, in the order of declaration."""
        declared = self._program.relations.items()
        return {name: relation for name, relation in declared if not {"(", "@", "="} & set(name)}

    @_in_turn
    def _repr_html_(self) -> str:
        """The relations, their columns, and how many tuples each has as of the last run."""
        from ..markup import html_table

        complete, rows = set(self._store.complete()), list[tuple[str, str, str]]()
        for name, relation in self.relations.items():
            columns = ", ".join(f"{column.name}: {column.type_name}" for column in relation.columns)
            count = f"{self._store.count(name):,}" if name in complete else "not computed"
            rows.append((name, columns, count))
        return html_table(("relation", "columns", "tuples"), rows, len(rows))

    @property
    def outputs(self) -> list[str]:
        """The relations of ``.output`` and ``.printsize``, in the order of declaration."""
        return self._program.outputs

    def add(self, relation: str, facts: object) -> None:
        """Adds facts: all of them, or none if one does not fit or there is no room for them.

        Facts are tuples, a NumPy array (structured, or of shape (tuples, columns)), a DataFrame, or an Arrow
        table or an object that exports one; columns count by their order. A column of symbols may be of
        texts, fixed-width, categorical or dictionary-encoded. Records are tuples, nil is None. Of tuples that
        are no list, few are held as objects at once. Raises EngineError for facts that do not fit, and for
        those with which all facts take more than ``limits.memory``. The program keeps the symbols and records
        of refused facts, and counts their memory.
        """
        from .columns import adding, tuples_of

        declared = self.relation_named(relation)
        add = adding(declared, facts)
        if add is None:
            batch = self._batch(relation)
            for rows in tuples_of(declared, facts):  # between its turns: their source may query the program
                self._gather(batch, rows)
            self._add(relation, lambda _, memory: batch.add(memory))
        else:
            self._add(relation, add)

    @_in_turn
    def _batch(self, relation: str) -> Batch:
        return self._store.batch(relation)

    @_in_turn
    def _gather(self, batch: Batch, rows: list[Any]) -> None:
        batch.extend(rows, self.limits.memory)

    @_in_turn
    def _add(self, relation: str, add: Callable[[Store, int | None], None]) -> None:
        add(self._store, self.limits.memory)
        self._given.add(relation)

    def remove(self, relation: str, facts: object) -> None:
        """Removes facts that were added, given in any form that ``add`` takes.

        All of them are removed, or none if one does not fit, which raises EngineError. Those that are not
        there are ignored, and facts in the program's text stay. The next run finds what no longer follows, or
        recomputes the relations that depend on them.
        """
        from .columns import rows_of

        declared = self.relation_named(relation)
        self._remove(declared.name, rows_of(declared, facts))

    @_in_turn
    def _remove(self, relation: str, rows: list[Any]) -> None:
        if not self._losses_planned:
            from ..engine.plan.compiler import compile_losses

            self._store.plan_losses(compile_losses(self._request).to_json())
            self._losses_planned = True
        self._store.remove(relation, rows)
        self._proofs, self._computed = None, frozenset(self._store.complete())

    @_in_turn
    def run(self, *relations: str, limits: Limits | None = None) -> None:
        """Computes all relations, or these ones and their dependencies.

        After more facts it continues from the last run. It recomputes only relations that depend on a
        negation of changed ones, or on an aggregate over them. Raises EngineError for errors at run time,
        such as a limit. Other threads run meanwhile, and Ctrl-C stops it.
        """
        names = self._begin(relations)
        self._store.evaluate(names, limits or self.limits)
        self._computed = frozenset(self._store.complete())

    def _begin(self, relations: Sequence[str]) -> list[str]:
        """The relations that a run computes. The results of the last run are no longer valid."""
        names = [self.relation_named(name).name for name in relations] or list(self.relations)
        self._proofs, self._runs, self._computed = None, self._runs + 1, self._stated
        return names

    @_in_turn
    def profile(self, *relations: str, limits: Limits | None = None) -> Profile:
        """Like ``run``; returns the time of each rule in each round."""
        from .profile import profile_of

        names = self._begin(relations)
        start = perf_counter()
        noted = self._store.profile(names, limits or self.limits)
        self._computed = frozenset(self._store.complete())
        return profile_of(noted, self._program.plan, perf_counter() - start)

    @_in_turn
    def plan(self, *relations: str, limits: Limits | None = None) -> Plan:
        """Like ``run``, on one thread; returns the steps of each rule that ran, with their numbers of rows.

        Raises EngineError without the compiled evaluator, and for errors at run time.
        """
        from .plans import plan_of

        names = self._begin(relations)
        counted = self._store.analyze(names, limits or self.limits)
        self._computed = frozenset(self._store.complete())
        return plan_of(counted, self._program.plan)

    @_in_turn
    def write_duckdb(self, path: str | Path) -> None:
        """Writes the relations of the last run, and the relations of facts, to a DuckDB database.

        It keeps its other tables. Needs duckdb and pyarrow. Raises ShardlogError if it cannot be written.
        """
        from .databases import write_duckdb

        complete = set(self._store.complete())
        relations = [relation for name, relation in self.relations.items() if name in complete]

        def table(relation: Relation) -> pyarrow.Table | bool:
            return self._table(relation) if relation.columns else self._store.count(relation.name) > 0

        write_duckdb(Path(path), relations, table)

    def warnings(self) -> list[Diagnostic]:
        """Valid but rarely intended code: the first warnings of each file, in textual order."""
        return sorted([*self._program.warnings, *directives.unknown_parameters(self._program.plan)])

    @_in_turn
    def read_inputs(self, folder: str | Path = ".", needed_by: Collection[str] | None = None) -> None:
        """Adds the facts that ``.input`` asks for, by default from RELATION.facts in ``folder``.

        With ``needed_by`` it adds only facts that these relations depend on. Raises ShardlogError if a
        file cannot be read.
        """
        plan = self._program.plan
        wanted = None if needed_by is None else needed_relations(plan, needed_by)
        for transfer in directives.inputs(plan, Path(folder)):
            if wanted is None or transfer.relation.name in wanted:
                read(self._store, transfer, plan, self.limits.memory)
                self._given.add(transfer.relation.name)

    def run_outputs(self) -> None:
        """Computes the relations of ``.output`` and ``.printsize`` and what they depend on, as ``run``."""
        if self._program.outputs:
            self.run(*self._program.outputs)

    @_in_turn
    def write_outputs(self, folder: str | Path | None = ".") -> None:
        """Writes what ``.output`` and ``.printsize`` ask for, by default to RELATION.csv.

        Files are in ``folder``; where that is None, standard output has them. Either all files are written or
        none. Raises ShardlogError if one cannot be written.
        """
        plan = self._program.plan
        transfers = directives.outputs(plan, None if folder is None else Path(folder))
        write(transfers, self._store, self._all_symbols, plan)

    @_in_turn
    def relation(self, name: str) -> Array:
        """The tuples of a relation as of the last run, sorted, as a structured array.

        It has a field per column, of type int64, uint64, float64, or object for texts and records (tuples and
        None).
        """
        from .tables import structured

        relation = self.relation_named(name)
        return structured(relation, self._store, self._all_symbols)

    @_in_turn
    def table(self, name: str) -> pyarrow.Table:
        """The tuples of a relation as of the last run, as an Arrow table.

        Symbols are dictionary-encoded texts, and so are records, written as in a program. Needs pyarrow.
        """
        return self._table(self.relation_named(name))

    def _table(self, relation: Relation) -> pyarrow.Table:
        from .tables import arrow

        return arrow(relation, self._store, self._all_symbols, self._program.plan)

    @_in_turn
    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The tuples of a relation as of the last run, sorted, as a list."""
        return self._store.rows(self.relation_named(name).name)

    @_in_turn
    def count(self, name: str) -> int:
        """The number of tuples of a relation as of the last run."""
        return self._store.count(self.relation_named(name).name)

    @_in_turn
    def query(self, body: str, limits: Limits | None = None) -> Array:
        """The solutions of the body of a rule, as in ``query("path(1, x), !blocked(x)")``.

        Returns a structured array with a field for each variable, sorted. Relations that are not computed yet
        are computed for the query alone, as far as it needs them; facts and computed relations are not
        copied. Raises DatalogError for a query with errors, in a file called "query".
        """
        from ..engine.plan.querying import compile_query
        from .tables import from_rows

        if self._request.functors:  # which only a run calls
            self._proofs = None
            self._store.evaluate(list(self.relations), limits or self.limits)
        names = self._program.relations
        plan, shared = compile_query(self._request, body, names, self._store.complete(), self._given)
        ((_, rows),) = self._store.ask(plan.to_json(), shared, limits or self.limits).items()
        (answer,) = (relation for relation in plan.relations if relation.output)
        return from_rows(answer, list(Branches(plan).outward(answer, rows)) if plan.branches else rows)

    @_in_turn
    def explain(self, fact: str, depth: int | None = LEVELS) -> Explanation:
        """A proof of least height for a tuple of the last run: ``explain("path(1, 5)")``.

        Steps more than ``depth`` rules away are left open: explain these to continue. None leaves none open.
        Raises EngineError for text that is not a tuple of the program, and for a tuple that does not hold.
        """
        from .explanations import Explanation

        if depth is not None and not 0 <= depth <= sys.maxsize:
            raise EngineError(f"the depth is {depth}; expected a number from 0 on, or None")
        relation, row = self._computed_fact(fact)
        proof = self._search.proof(relation.name, row, depth)
        if proof is None:
            text = Texts(self._program.plan).fact(relation.name, row)
            raise EngineError(f"{text} does not hold: explain_not (--explain-not) says why")
        height = self._search.height(relation.name, row)
        return Explanation(proof, height, self._search.rules, Texts(self._program.plan))

    @_in_turn
    def explain_not(self, fact: str) -> WhyNot:
        """Why a tuple does not hold after the last run: how far each rule gets.

        Raises EngineError for text that is not a tuple of the program, and for a tuple that holds.
        """
        from .explanations import WhyNot

        relation, row = self._computed_fact(fact)
        if self._search.extents.holds(relation.name, row):
            text = Texts(self._program.plan).fact(relation.name, row)
            raise EngineError(f"{text} holds: explain (--explain) says why")
        attempts = tuple(self._search.attempts(relation.name, row))
        return WhyNot(relation.name, row, attempts, self._search.rules, Texts(self._program.plan))

    def relation_of(self, fact: str) -> str:
        """The relation of a fact. Raises EngineError for text that is not a tuple of the program."""
        return self._fact(fact)[0].name

    def _fact(self, text: str) -> tuple[Relation, Row]:
        """The relation and the tuple that a text names, as the evaluators have it."""
        plan = self._program.plan
        relation, row = fact_of(text, plan)
        (inside,) = Branches(plan).inward(relation, [row]) if plan.branches else [row]
        return relation, inside

    def _computed_fact(self, text: str) -> tuple[Relation, Row]:
        """As ``_fact``, of a relation that the last run has computed."""
        relation, row = self._fact(text)
        if relation.name not in self._computed:
            raise EngineError(f"`{relation.name}` is not computed: run it first")
        return relation, row

    @property
    def _search(self) -> ProofSearch:
        """The search for proofs over the last run."""
        if self._proofs is None:
            from ..engine.plan.compiler import written_clauses
            from ..engine.provenance.search import ProofSearch

            self._written = self._written or written_clauses(self._request)
            self._proofs = ProofSearch(
                self._program.plan,
                self._request,
                self._written,
                self._inside,
                at_once=self._runs == 1 and not self._request.functors,
                limits=self.limits,
            )
        return self._proofs

    def _all_symbols(self) -> Array:
        """The symbols by number."""
        import numpy as np

        from .tables import objects

        if self._symbols is None:
            self._symbols = objects([])
        if more := self._store.symbols(len(self._symbols)):
            self._symbols = np.concatenate([self._symbols, objects(more)])
        return self._symbols

    def relation_named(self, name: str) -> Relation:
        """The declaration of a relation. Raises EngineError if there is none."""
        relations = self.relations
        if name not in relations:
            raise unknown_relation(name, relations)
        return relations[name]

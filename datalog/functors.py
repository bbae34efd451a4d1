"""Functors of a program, computed by Python functions, each for many arguments at once.

What a call asks for is a relation: see ``engine.transform.functors``. An evaluation alternates with the
functions until they have given all values. The calls are taken in the order of their strata, so that nothing
is asked for that follows from incomplete relations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..engine import EngineError, QueryPlan, Relation
from ..engine.evaluate.limits import UNLIMITED, Limits
from ..engine.evaluate.store import NUMERIC, Counted, Noted, Store
from ..engine.language.diagnostics import counted, did_you_mean
from ..engine.language.syntax import VALUES
from ..engine.plan.needs import needed_relations
from ..engine.transform.functors import call_sites
from .columns import adding

Function = Callable[..., Any]


class FunctorStore:
    """A store that calls functions for the functors of its program."""

    def __init__(self, inside: Store, plan: QueryPlan, functions: Mapping[str, Function]) -> None:
        self._inside, self._plan, self._functions = inside, plan, functions
        self._relations = {relation.name: relation for relation in plan.relations}
        stratum_of = {i: number for number, each in enumerate(plan.strata) for i in each.relations}
        sites = call_sites(list(self._relations))
        self._sites = sorted(sites, key=lambda site: stratum_of.get(plan.index(site[2]), -1))
        declared = [name.removesuffix(VALUES) for name in self._relations if name.endswith(VALUES)]
        for name in functions:
            if name not in declared:
                hint = did_you_mean(name, declared) or f"declare it: .functor {name}(...): ..."
                raise EngineError(f"the program declares no functor `{name}`; {hint}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inside, name)

    def evaluate(self, outputs: Sequence[str], limits: Limits = UNLIMITED) -> None:
        """Compute these relations, after the functions have given all values that they need."""
        self._answer(outputs, limits)
        self._inside.evaluate(outputs, limits)

    def profile(self, outputs: Sequence[str], limits: Limits = UNLIMITED) -> list[Noted]:
        """Like ``evaluate``; the time of each rule once all values are given."""
        self._answer(outputs, limits)
        return self._inside.profile(outputs, limits)

    def analyze(self, outputs: Sequence[str], limits: Limits = UNLIMITED) -> list[Counted]:
        """Like ``evaluate``; what the steps of rules take once all values are given."""
        self._answer(outputs, limits)
        return self._inside.analyze(outputs, limits)

    def _answer(self, outputs: Sequence[str], limits: Limits) -> None:
        sites = self._needed(outputs)
        while any(self._answered(*site, limits) for site in sites):
            pass

    def _needed(self, outputs: Sequence[str]) -> list[tuple[str, str, str]]:
        """The calls whose values relations depend on, in the order of their strata."""
        needed, size = needed_relations(self._plan, outputs), -1
        while len(needed) != size:
            size = len(needed)
            missing_relations = [missing for _, values, missing in self._sites if values in needed]
            needed |= needed_relations(self._plan, missing_relations)
        return [site for site in self._sites if site[2] in needed]

    def _answered(self, functor: str, values: str, missing: str, limits: Limits) -> bool:
        """Give values to the arguments of a call that have none. Returns whether there were any."""
        self._inside.evaluate([missing], limits)
        count = self._inside.count(missing)
        if not count:
            return False
        words = self._inside.columns(missing)
        columns = [self._column(missing, column, words[column]) for column in range(len(words))]
        result = self._functions[functor](*columns)
        table = self._table(self._relations[values], columns, _results(functor, result, count))
        try:
            add = adding(self._relations[values], table)
            assert add is not None  # it is a table
            add(self._inside, limits.memory)
        except EngineError as error:
            raise EngineError(f"the values of the functor `{functor}` do not fit: {error}") from None
        return True

    def _column(self, relation: str, column: int, words: Any) -> Any:
        kind = self._relations[relation].columns[column].type
        if kind in NUMERIC:
            return words.view(NUMERIC[kind])
        return _objects(self._inside.values(relation, column, words))

    @staticmethod
    def _table(relation: Relation, columns: list[Any], result: Any) -> Any:
        """The arguments and the values as a structured array."""
        parts = [*columns, result]
        names = [f"c{i}" for i in range(len(parts))]
        table = np.empty(len(result), [(name, part.dtype) for name, part in zip(names, parts, strict=True)])
        for name, part in zip(names, parts, strict=True):
            table[name] = part
        return table


def _results(functor: str, result: object, count: int) -> Any:
    """The values that a function returned, as an array. Raises EngineError unless there are so many."""
    if isinstance(result, str | bytes) or not hasattr(result, "__len__"):
        raise EngineError(f"the functor `{functor}` returned {result!r}; expected {counted(count, 'value')}")
    if len(result) != count:
        raise EngineError(
            f"the functor `{functor}` returned {counted(len(result), 'value')} for {count} arguments"
        )
    if (isinstance(result, np.ndarray) and result.ndim == 1) or not isinstance(result, list | tuple):
        return np.asarray(result)
    return _objects(result)


def _objects(values: Sequence[Any]) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array

"""Programs: what ``load`` returns, and how they are evaluated."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np

from .compiler import compile_program
from .diagnostics import EngineError, did_you_mean
from .plan import Plan, Relation
from .reference import Evaluation

Row: TypeAlias = tuple[Any, ...]
Facts: TypeAlias = Mapping[str, "Iterable[Sequence[Any]] | np.ndarray[Any, Any]"]
Answers: TypeAlias = dict[str, list[Row]]
Backend: TypeAlias = Literal["auto", "core", "reference"]


def load(
    paths: Sequence[Path | str] = (), *, key: str | None = None, texts: Mapping[str, str] | None = None
) -> Program:
    """Read Datalog files as one program, check and plan it.

    ``texts`` are further sources by a name that stands for their file; an ``.include`` may name them. With
    ``key``, the name of a type, the relations whose first column has that type are keyed and the program
    stands for one key: see ``Program.solver``.

    Raises DatalogError with every error found.
    """
    return Program(compile_program(paths, texts or {}, key))


class Solver(Protocol):
    """A keyed program with its shared relations: solves one key at a time."""

    def solve(self, facts: Facts, outputs: Sequence[str] | None = None) -> Answers:
        """The sorted tuples of ``outputs`` for the facts of one key; neither has the key's column."""
        ...


@dataclass(frozen=True)
class Program:
    """A checked and planned program."""

    plan: Plan

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """The relations by name; in a keyed program keyed ones have lost their first column."""
        return {relation.name: relation for relation in self.plan.relations}

    @cached_property
    def outputs(self) -> list[str]:
        """The names of the relations that are ``.output`` or ``.printsize``, in the order of declaration."""
        return [relation.name for relation in self.plan.relations if relation.output]

    def evaluate(
        self, facts: Facts, outputs: Sequence[str] | None = None, backend: Backend = "auto"
    ) -> Answers:
        """The sorted tuples of the relations ``outputs`` (default: all outputs of the program).

        Facts are tuples of int, float, str, and tuple or None for records, or an int64 array of shape
        (tuples, columns). Raises EngineError for facts that do not fit and for what goes wrong while running.
        """
        if self.plan.key is not None:
            raise EngineError(f"the program is keyed by `{self.plan.key}`: use solver(...).solve(...)")
        return self._start({}, backend).solve(facts, outputs)

    def solver(self, shared: Facts, backend: Backend = "auto") -> Solver:
        """A solver for single keys; ``shared`` are the facts of relations that are not keyed."""
        return self._start(shared, backend)

    def _start(self, shared: Facts, backend: Backend) -> Solver:
        core = None if backend == "reference" else _core(required=backend == "core")
        if core is None:
            return _ReferenceSolver(self, shared)
        return _CoreSolver(self, core, shared)

    def checked_facts(self, facts: Facts) -> dict[str, list[Row]]:
        """Facts as lists of tuples with the right arity and types. Raises EngineError."""
        return {name: _checked(self._relation(name), rows) for name, rows in facts.items()}

    def checked_outputs(self, outputs: Sequence[str] | None) -> list[str]:
        """The relations to return. Raises EngineError for unknown ones."""
        return self.outputs if outputs is None else [self._relation(name).name for name in outputs]

    def _relation(self, name: str) -> Relation:
        if name not in self.relations:
            hint = did_you_mean(name, self.relations)
            raise EngineError(f"unknown relation `{name}`" + (f"; {hint}" if hint else ""))
        return self.relations[name]


class _ReferenceSolver:
    def __init__(self, program: Program, shared: Facts) -> None:
        self._program = program
        plan = program.plan
        self._shared = Evaluation(plan)
        for name, rows in program.checked_facts(shared).items():
            self._shared.insert(plan.index(name), rows)
        self._shared.run(plan.strata[: plan.shared])

    def solve(self, facts: Facts, outputs: Sequence[str] | None = None) -> Answers:
        program, plan = self._program, self._program.plan
        names = program.checked_outputs(outputs)
        evaluation = Evaluation(plan)
        if plan.key is not None:
            evaluation.share(self._shared)
        for name, rows in program.checked_facts(facts).items():
            evaluation.insert(plan.index(name), rows)
        evaluation.run(plan.strata[plan.shared :])
        return {name: evaluation.rows(plan.index(name)) for name in names}


class _CoreSolver:
    def __init__(self, program: Program, core: Any, shared: Facts) -> None:
        self._program = program
        self._core = core.Program(program.plan.to_json())
        self._solver = None
        if program.plan.key is not None:
            self._solver = self._core.solver(program.checked_facts(shared))

    def solve(self, facts: Facts, outputs: Sequence[str] | None = None) -> Answers:
        names = self._program.checked_outputs(outputs)
        rows = self._program.checked_facts(facts)
        if self._solver is not None:
            return cast(Answers, self._solver.solve(rows, names))
        return cast(Answers, self._core.evaluate(rows, names))


def _core(required: bool) -> Any:
    """The compiled evaluator, None (with one warning) where it is not installed."""
    try:
        return importlib.import_module("._core", __package__)
    except ImportError as error:
        if required:
            raise EngineError(f"the compiled evaluator is not installed: {error}") from None
        warnings.warn(
            "the compiled evaluator is not installed; using the slow one", RuntimeWarning, stacklevel=4
        )
        return None


_PYTHON_TYPES = {"number": int, "unsigned": int, "float": float, "symbol": str}


def _checked(relation: Relation, rows: Any) -> list[Row]:
    width = len(relation.columns)
    result: list[Row] = rows.tolist() if isinstance(rows, np.ndarray) else list(rows)
    wanted = [_PYTHON_TYPES.get(column.type) for column in relation.columns]
    for i, row in enumerate(result):
        if len(row) != width:
            raise EngineError(f"`{relation.name}` has {width} columns, but fact {i} has {len(row)}: {row!r}")
        result[i] = tuple(row)
        for column, kind, value in zip(relation.columns, wanted, row, strict=True):
            if kind is not None and type(value) is not kind:
                raise EngineError(
                    f"`{relation.name}`, fact {i}: column `{column.name}` is a {column.type}, not {value!r}"
                )
    return result

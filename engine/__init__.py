"""A small general Datalog engine: Soufflé's dialect, two evaluators over one plan, and an agenda."""

from __future__ import annotations

from .diagnostics import DatalogError, Diagnostic, EngineError
from .limits import Limits
from .plan import Plan, Relation
from .program import Program, Solver, load
from .query import load_query

__all__ = [
    "DatalogError",
    "Diagnostic",
    "EngineError",
    "Limits",
    "Plan",
    "Program",
    "Relation",
    "Solver",
    "load",
    "load_query",
]

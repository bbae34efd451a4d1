"""A small general Datalog engine: Soufflé's dialect, two evaluators over one plan, and an agenda."""

from __future__ import annotations

from .evaluate.limits import Limits
from .evaluate.program import LoadedProgram, Solver, load
from .language.diagnostics import DatalogError, Diagnostic, EngineError
from .plan.plan import PlanDirective, QueryPlan, Relation

__all__ = [
    "DatalogError",
    "Diagnostic",
    "EngineError",
    "Limits",
    "LoadedProgram",
    "PlanDirective",
    "QueryPlan",
    "Relation",
    "Solver",
    "load",
]

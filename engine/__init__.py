"""A small general Datalog engine: Soufflé's dialect, two evaluators over one plan, and an agenda."""

from __future__ import annotations

from .diagnostics import DatalogError, Diagnostic, EngineError
from .plan import Plan, Relation
from .program import Program, Solver, load

__all__ = ["DatalogError", "Diagnostic", "EngineError", "Plan", "Program", "Relation", "Solver", "load"]

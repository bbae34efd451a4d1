"""Datalog in its own right: programs with facts from arrays, tables and files, and results as such.

In: programs in Soufflé's dialect, and facts. Out: relations, and files as Soufflé writes them. Nothing here
knows of sharding.

    from shardlog.datalog import Program
    program = Program("paths.dl")
    program.add("edge", array)
    program.run()
    program.relation("path")
"""

from __future__ import annotations

from ..engine import DatalogError, Diagnostic, EngineError, Limits
from .program import Program
from .pydatalog import give_to_pydatalog, take_from_pydatalog

__all__ = [
    "DatalogError",
    "Diagnostic",
    "EngineError",
    "Limits",
    "Program",
    "give_to_pydatalog",
    "take_from_pydatalog",
]

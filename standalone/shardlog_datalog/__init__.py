"""Datalog in Python: programs in Soufflé's dialect, facts from arrays, tables and files, and proofs.

    from shardlog_datalog import Program
    program = Program("paths.dl")
    program.add("edge", array)
    program.run()
    program.relation("path")

It is ``shardlog.datalog`` without the rest of shardlog.
"""

from __future__ import annotations

from importlib.metadata import version

from .datalog import (
    DatalogError,
    Diagnostic,
    EngineError,
    Limits,
    Program,
    give_to_pydatalog,
    take_from_pydatalog,
)

__version__ = version("shardlog-datalog")
__all__ = [
    "DatalogError",
    "Diagnostic",
    "EngineError",
    "Limits",
    "Program",
    "__version__",
    "give_to_pydatalog",
    "take_from_pydatalog",
]

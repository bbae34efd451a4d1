"""Relations to and from pyDatalog's memory."""

from __future__ import annotations

import re
from typing import Any

from ..errors import ShardlogError, from_extra
from .program import Program


def give_to_pydatalog(program: Program, *relations: str) -> None:
    """Hands relations, as of the last run, to pyDatalog as facts of predicates of their names. Raises
    ShardlogError where it is not installed, or cannot have a relation."""
    engine = _pydatalog()
    for name in relations:
        rows = program.rows(_predicate(program, name))
        for row in rows:
            engine.assert_fact(name, *row)


def take_from_pydatalog(program: Program, *relations: str) -> None:
    """Adds pyDatalog's facts and derived tuples of a predicate to the relation of the same name. Raises
    ShardlogError, and EngineError for tuples that do not fit."""
    engine = _pydatalog()
    for name in relations:
        places = ", ".join(f"X{i}" for i in range(len(program.relations[_predicate(program, name)].columns)))
        try:
            answer = engine.ask(f"{name}({places})")
        except AttributeError:  # an unknown predicate
            answer = None
        if answer is not None:
            program.add(name, [tuple(row) for row in answer.answers])


def _pydatalog() -> Any:
    with from_extra("pydatalog", "pyDatalog"):
        from pyDatalog import pyDatalog
    return pyDatalog


def _predicate(program: Program, name: str) -> str:
    """A relation that pyDatalog can have: its name is no variable, and it has columns, none of records."""
    columns = program.relation_named(name).columns
    if not re.fullmatch(r"[a-z]\w*", name) or not columns or any(c.type == "record" for c in columns):
        hint = "its name begins with a small letter, it has columns, and none is of records"
        raise ShardlogError(f"pyDatalog cannot have the relation {name}", hint=f"expected of it: {hint}")
    return name

"""The Python API: ``run``, ``open`` and ``explain``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

from .errors import ShardlogError, check_options
from .explanations.answers.visualize import visualize
from .importers.sources.jax import lowered
from .propagation.schedules.tactics import Tactic
from .runs.choice import ProgramChoice
from .runs.options import NAMES, Options, described, listed
from .runs.result import Result
from .runs.running import run_with
from .session import Explained, Session

__all__ = [
    "Options",
    "Result",
    "Session",
    "ShardlogError",
    "Tactic",
    "explain",
    "open",
    "run",
    "visualize",
]


def run(
    source: Any,
    *args: Any,
    options: Options | None = None,
    progress: Callable[[str, float], None] | None = None,
    **keywords: Any,
) -> Session:
    """Propagates the shardings of a program to every value, and returns a ``Session`` about the run.

    ``source`` is a function, jitted or not, with its arguments (arrays or ``jax.ShapeDtypeStruct``s) after it
    and among the keywords; or a ``jax.stages.Lowered`` or ``Traced``, a ``jax.export.Exported``, a path, MLIR
    text or bytecode, HLO, or an ``ir.Module``, which is not changed. Keywords override ``options``.
    ``progress`` is called now and then with the present step and the part of the run that is done, 0 to 1.
    ``docs/propagation.md`` describes the method, which is Shardy's.

    Raises ShardlogError for bad input, ``engine.DatalogError`` for errors in a rule file and
    ``engine.EngineError`` where rules fail while they run, as at a limit.
    """
    run_options = {name: keywords.pop(name) for name in NAMES if name in keywords}
    _check_keywords(source, keywords)
    options = replace(options or Options(), **run_options)
    return Session(run_with(lowered(source, args, keywords), options, progress))


def open(path: str | Path) -> Session:  # noqa: A001 - as a file is opened
    """Opens a saved run, which answers questions without running again.

    Raises ShardlogError for a file that is not a saved run, is damaged, or is from another version.
    """
    from .runs.records.saved import open_saved

    return Session(saved=open_saved(path))


def _check_keywords(source: object, keywords: dict[str, Any]) -> None:
    """Raises ShardlogError for keywords that are neither options nor arguments of the function."""
    if callable(source) and any(p.kind is p.VAR_KEYWORD for p in signature(source).parameters.values()):
        return
    parameters = signature(source).parameters if callable(source) else {}
    check_options(keywords, [*parameters, *NAMES], "run")  # those of NAMES were taken out


# The options are described in one place, and ``help(shardlog.run)`` has them too.
run.__signature__ = described(signature(run))  # type: ignore[attr-defined]
run.__doc__ = f"{run.__doc__}\n    Options:\n\n{listed(indent=8)}"


def explain(function: Any, *args: Any, value: str | None = None, **keywords: Any) -> Explained:
    """Runs a function and returns a session about the run, which shows itself in notebooks.

    ``function``, ``args`` and ``keywords`` are those of ``shardlog.run``, options among them. A ``Session``
    is explained as it is. With ``value``, the answer is why that value is sharded as it is. Keywords of
    ``Session.partition`` choose the program whose collectives are counted; keywords that the
    function takes are its own.

    Raises ShardlogError as ``shardlog.run`` does, for a value that does not exist, and for arguments beside a
    run.
    """
    own = signature(function).parameters if callable(function) else {}
    named = (option.name for option in fields(ProgramChoice))
    program = ProgramChoice(**{n: keywords.pop(n) for n in named if n in keywords and n not in own})
    if isinstance(function, Session):
        if args or keywords:
            given = f"a {type(function).__name__} takes no arguments"
            raise ShardlogError(given, where="explain", hint="it has been run already")
        return Explained(function, value, program)
    return Explained(run(function, *args, **keywords), value, program)

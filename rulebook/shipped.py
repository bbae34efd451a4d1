"""The programs that shardlog comes with. Their plans are made when a wheel is built; in a checkout they are
compiled when they are first used, and kept in a cache."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import cache
from pathlib import Path

from ..engine import LoadedProgram, Solver, load
from ..engine.plan.cache import PlanCache, Request

RULES = Path(__file__).parents[1] / "rules"

# The programs, by the name of their file without its ending, and the type of each one's key.
KEYS = {
    "ops/main": "sig",
    "propagation/turn": "item",
    "propagation/blocked": "item",
    "propagation/boundary": "value",
    "propagation/constraints": "demand",
    "propagation/siblings": "attribute",
    "propagation/tactics": "request",
    "propagation/unreduced": "step",
    "propagation/completion": "visit",
    "propagation/constants": None,
    "propagation/groups": None,
    "propagation/schedule": None,
    "partition/candidates": "item",
    "partition/choice": "item",
    "partition/order": None,
    "dialects/simplify": "step",
    "dialects/alike": None,
    "cost/cost": "event",
    "cost/fusing": "op_id",
    "cost/kernels": "kernel",
    "cost/storing": "value_id",
    "cost/memories": None,
    "cost/layouts": "op_id",
    "cost/beside": "window",
    "dialects/statements": None,
    "autosharding/strategies": None,
}


@cache
def shipped(name: str) -> LoadedProgram:
    """One of the programs ``KEYS``, loaded once per process."""
    return load([_file(name)], key=KEYS[name], include_from=[RULES], files=False, cache=plan_cache())


@cache
def unbound_ops() -> Solver:
    """A solver of the op rules that does not know which Shardy is meant."""
    return shipped("ops/main").solver({})


def plan_cache() -> PlanCache:
    """Where the plans of rules are kept."""
    here = Path(__file__).parent
    return PlanCache(RULES, here / "plans", cache_folder(), (here, here / "notations"))


def compile_ahead(folder: Path) -> None:
    """Write the plans of all programs into a folder: the one that ``plan_cache`` looks in, of an
    installation."""
    from ..engine.plan.compiler import compile_program

    cache = replace(plan_cache(), shipped=folder, folder=None)
    folder.mkdir(parents=True, exist_ok=True)
    for name, key in KEYS.items():
        request = Request([_file(name)], key, include_from=[RULES], files=False)
        plan, sources, _ = compile_program(request)
        cache.ship(request, plan, sources)


def _file(name: str) -> Path:
    return RULES / f"{name}.dl"


def cache_folder() -> Path | None:
    """The folder of the cache: ``SHARDLOG_CACHE`` (None where that is empty), or where caches are."""
    given = os.environ.get("SHARDLOG_CACHE")
    if given is not None:
        return Path(given) if given else None
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        return (base if base.is_absolute() else Path.home() / ".cache") / "shardlog"
    except RuntimeError:  # there is no home
        return None

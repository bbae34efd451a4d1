"""The plan for a program on a mesh, or on the best mesh of a number of devices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from math import inf
from typing import Any

from ..cost.machine import machine
from ..errors import ShardlogError
from ..explanations.partitioned import Partitioned
from ..partition.improving import TooLargeError
from ..runs.options import Options
from ..runs.running import run_with
from ..session import Session
from .meshes import USUAL_AXES, meshes_of
from .options import AutoOptions
from .plan import AutoPlan, Tried, front
from .searching import Costed, Search, prices_of_memory

_DEVICES = "--devices"
_COSTED = 2  # meshes whose programs are written and costed; more, if no program fits into memory
_APART = 0.1  # the part of the least sum by which that of a mesh may be larger for its programs to be written
_RIVALS = 4  # known strategies that are written and costed, at most; all, if nothing else fits
_SLOWER = 0.005  # the part of the least time by which a plan may be slower that needs less memory
_SQUARED = 2  # 1 % of time is worth this many percent of memory


def plan(source: Any, options: AutoOptions, progress: Callable[[str, float], None] | None = None) -> AutoPlan:
    """The best plan found for a program, which is any input of ``shardlog.run``.

    The same program and options give the same plan.

    Raises ShardlogError for bad input, and if no plan was found within the limit on memory.
    """
    tell = progress or (lambda stage, done: None)
    machine(options.topology)  # errors in it are reported before anything runs
    searches = _searches(source, options, tell)
    refused = list[ShardlogError]()
    costed = list[tuple[Search, Costed]]()
    for n, search in enumerate(searches):
        if costed and (n >= _COSTED or search.least > _limit(costed)):
            break
        plans = list[Costed]()
        try:
            plans += search.costed() or (search.strategies() if options.compare else ())
        except ShardlogError as error:
            refused.append(error)
        costed += [(search, each) for each in plans]
    if not costed:
        too_large = [least for search in searches if (least := search.too_large())]
        raise min(too_large, key=lambda each: each.least) if too_large else refused[0]
    if options.compare:
        costed += islice(_rivals(costed), _RIVALS)
    search, best = _best(costed)
    if options.method == "mutate":
        start = next((each for of, each in costed if of is search and each.opened), best)
        for changed in search.mutated(start):
            costed.append((search, changed))
            best = min(best, changed, key=lambda each: each.cost.seconds)
    tried = [each for search in searches for each in search.tried([c for s, c in costed if s is search])]
    if options.compare:
        for each in dict.fromkeys(of for of, _ in costed):
            tried += each.estimated([plan for of, plan in costed if of is each])
    return search.plan_of(best, sorted(tried, key=lambda each: each.seconds))


def _best(costed: Sequence[tuple[Search, Costed]]) -> tuple[Search, Costed]:
    """The plan to take, of those that are hardly slower than the fastest.

    It needs no more memory than the fastest known strategy among them. Its memory times the square of its
    time is least.
    """
    fastest = min(each.cost.seconds for _, each in costed)
    near = [(of, each) for of, each in costed if each.cost.seconds <= fastest * (1 + _SLOWER)]
    known = [each.cost for _, each in near if each.opened is None]
    most = min(known, key=lambda cost: cost.seconds).peak if known else inf
    return min(
        ((of, each) for of, each in near if each.cost.peak <= most),
        key=lambda pair: pair[1].cost.seconds ** _SQUARED * pair[1].cost.peak,
    )


def _rivals(costed: Sequence[tuple[Search, Costed]]) -> Iterator[tuple[Search, Costed]]:
    """The known strategies that may be as good as the best of these plans, by increasing sum.

    They are on all meshes on which a choice fits. On others all were costed before.
    """
    best = min((each.cost for _, each in costed), key=lambda cost: cost.seconds)
    searches = [*dict.fromkeys(of for of, each in costed if each.opened)]
    least = min((search.sum for search in searches), default=0.0)
    rivals = [(sum_, n, each) for n, of in enumerate(searches) for sum_, each in of.rivals(best, least)]
    for _, n, each in sorted(rivals, key=lambda rival: rival[:2]):
        yield from ((searches[n], fits) for fits in searches[n].fitting([each]))


def _limit(costed: Sequence[tuple[Search, Costed]]) -> float:
    """The sum, in seconds, from which on a mesh is too far from the fastest plan to be costed."""
    search, best = min(costed, key=lambda each: each[1].cost.seconds)
    return search.sum_of(best.candidate) * (1 + _APART)


def pareto(
    source: Any, options: AutoOptions, progress: Callable[[str, float], None] | None = None
) -> tuple[AutoPlan, ...]:
    """The plans on the best mesh that are not both slower and larger than another, the fastest first.

    Raises ShardlogError as ``plan`` does.
    """
    search = _searches(source, options, progress or (lambda stage, done: None))[0]
    costed = list[Costed]()
    for price in prices_of_memory():
        with suppress(TooLargeError):
            costed.append(search.at(price))
    best = front(costed, lambda each: (each.cost.seconds, each.cost.peak))
    return tuple(search.plan_of(each) for each in best)


def costed_known(
    source: Any, plan: AutoPlan, options: AutoOptions, progress: Callable[[str, float], None] | None = None
) -> AutoPlan:
    """A plan with the costs of all known strategies on its meshes in place of estimates.

    Raises ShardlogError as ``plan`` does.
    """
    strategies = list[Tried]()
    for mesh in dict.fromkeys(each.mesh for each in plan.tried if not each.written):
        search = Search(source, mesh, options.on(mesh), progress or (lambda stage, done: None))
        strategies += search.tried([*search.strategies()])
    costed = {(each.mesh, each.name) for each in strategies}
    others = [each for each in plan.tried if each.written and (each.mesh, each.name) not in costed]
    return replace(plan, tried=tuple(sorted([*others, *strategies], key=lambda each: each.seconds)))


def _searches(source: Any, options: AutoOptions, tell: Callable[[str, float], None]) -> list[Search]:
    """The searches on all meshes, by increasing least sum.

    On meshes whose axes have the same links the sum is the same, so only one of them is searched. Of meshes
    that cannot be near the best one only a lower bound is found.
    """
    searches, refused, seen_links = list[Search](), list[ShardlogError](), set[Hashable]()
    tries = options.devices is not None and options.mesh is None  # meshes that nobody gave
    for mesh in _meshes(options):
        try:
            like = searches[0] if searches else None
            search = Search(source, mesh, options, tell, _DEVICES if tries else "", like)
        except ShardlogError as error:  # a topology that this mesh does not fit
            if not tries:
                raise
            refused.append(error)
            continue
        if search.links not in seen_links:
            seen_links.add(search.links)
            searches.append(search)
    if not searches:
        last = refused[-1]  # of most axes
        if last.where == _DEVICES:
            last = ShardlogError(
                f"no mesh of {options.devices} devices fits: {last.message}",
                where=_DEVICES,
                hint="leave it out to plan on the mesh of the module, or give a mesh with these axes",
            )
        raise last
    if len(searches) > 1:
        least = inf
        # Axes of sizes that differ least are often the best, so few others are searched in full.
        for search in sorted(searches, key=lambda search: max(size for _, size in search.axes)):
            least = min(least, search.look(least * (1 + _APART)))
    return sorted(searches, key=lambda search: search.least)


def session_of(source: Any, plan: AutoPlan) -> Session:
    """The run of a program with the shardings of its plan. Raises ShardlogError for another program."""
    return Session(run_with(source, Options(mesh=plan.mesh, annotate=plan.annotations)))


def program(source: Any, plan: AutoPlan) -> Partitioned:
    """The program that each device runs by a plan.

    Raises ShardlogError if the plan belongs to another program.
    """
    return session_of(source, plan).partition(topology=plan.topology, memory=plan.memory)


def _meshes(options: AutoOptions) -> Sequence[str | None]:
    if options.devices is None or options.mesh is not None:
        return [options.mesh]
    return meshes_of(options.devices, options.axes or USUAL_AXES)

"""The search on one mesh: boundaries of least sum are written as programs, and the cheapest program wins."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, zip_longest
from math import ceil, inf, prod, sqrt
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ..cost.cost import Cost, cost
from ..cost.exchange import prices
from ..cost.machine import Machine, machine
from ..errors import ShardlogError
from ..executing.partitioning import Partitioning
from ..importers.annotations import replace_mesh, to_sdy, usual_meshes
from ..importers.asked import axes_text
from ..importers.sources.text import Text
from ..importers.sources.views import view_of
from ..partition.choice.problem import Free
from ..partition.improving import Aim, TooLargeError
from ..partition.opening import Dims, Opened, Opening
from ..partition.preparing.preparing import Preparing
from ..program.elements import bytes_text, exact_text
from ..program.meshes import MOST_DEVICES, Mesh, Meshes
from ..program.mlir.modules import symbols
from ..program.shardings import Sharding, Shardings, read_mesh
from ..runs.choice import ProgramChoice
from ..runs.options import Options
from ..runs.partitioned import PartitionedRun
from ..runs.result import Result
from ..runs.running import run_with
from .ends import End, ends_of
from .kept import kept, spec_in
from .options import AutoOptions
from .plan import AutoPlan, Other, Placed, Spec, Tried, axes_of, spec_of
from .strategies import strategies

Progress = Callable[[str, float], None]
TRIFLE = 1 / 1024  # bytes sent for a byte held: what costs the same is divided
PRICES = (TRIFLE, 1 / 64)  # of memory, of the plans that are costed wherever they fit
_LARGEST = 3  # arguments that a message about memory names
_NEAR = 0.03  # the part of the least sum by which that of a plan is larger that is written as well
MISJUDGED = 1.5  # a program that takes so many times its sum says that the sum misjudges this model
_EQUAL = 0.002  # the same for a plan that is written in place of another one
MUTATIONS = 24  # of a plan, at most: each is costed
_DEARER, _DEAREST = 8.0, 1e3  # from one price to the next, where memory is short


def prices_of_memory() -> Iterator[float]:
    """The prices of memory that are tried, in bytes sent for a byte held."""
    yield from PRICES
    price = PRICES[-1] * _DEARER
    while price < _DEAREST:
        yield price
        price *= _DEARER


@dataclass(frozen=True)
class SpecCandidate:
    """Specs for all arguments and results, and a name."""

    name: str
    arguments: tuple[Spec, ...]
    results: tuple[Spec | None, ...]  # None: as propagation has it


@dataclass(frozen=True)
class Costed:
    """A candidate and the cost of its program."""

    candidate: SpecCandidate
    cost: Cost
    opened: Opened | None = None  # the choice that it is, if it is one


class Search:
    """The search on one mesh; on the module's own if ``mesh`` is None.

    Raises ShardlogError for bad input. Errors in the mesh are at ``where``, or else at the option --mesh.
    """

    def __init__(
        self,
        source: Any,
        mesh: str | None,
        options: AutoOptions,
        tell: Progress,
        where: str = "",
        like: Search | None = None,
    ) -> None:
        """``like`` is a search for the same program and options on another mesh. If nothing in it
        ``names_axes``, the program is not read again."""
        self.options, self._tell = options, tell
        self._source, self._of_run = source, Options(mesh=mesh)
        self._like = None if like is None or like.names_axes else like
        if self._like is None:
            tell("reading", 0.0)
            text, module = view_of(source, "lowered")
            with text.places(), module.context, ir.Location.unknown():
                to_sdy(module, text, mesh, where)
                ends, own = ends_of(module, options.tie), _main_mesh(module, text)
            self.ends, self._kept = kept(options.keep, ends, dict(own.axes))
        else:
            own = _mesh_of(mesh or "", self._like.base)
            self.ends, self._kept = self._like.ends, self._like._kept
        self.axes, axes = own.axes, dict(own.axes)
        self.mesh = axes_text(own.axes)
        self._check(prod(axes.values()), where or f"--mesh {self.mesh}")
        self.base: Result
        if self._like is None:
            self.base = run_with(source, replace(self._of_run, annotate=self._kept))
            self._prepare = Preparing(self.base.module, self.base.book.traits)
            self._shardings = self.base.program.shardings
        else:
            self.base, self._prepare = self._like.base, self._like._prepare
            self._shardings = Shardings(Meshes([own]), self.base.program.shardings.names)
        self.machine: Machine = machine(options.topology, list(axes), prod(axes.values()))
        self._costs: dict[Any, Cost | TooLargeError] = {}
        self._freely: dict[Any, Cost] = {}  # whatever memory is needed
        self._tight: dict[Any, Partitioning] = {}  # the runs whose fastest program does not fit
        self._given: dict[Any, tuple[Spec, ...]] = {}
        self._sums: dict[float, Opened] = {}
        self.least = 0.0

    def _check(self, devices: int, where: str) -> None:
        """Refuses a mesh of another number of devices, one that divides nothing, and a limit that the
        arguments alone exceed. The mesh is from ``where``."""
        if self.options.devices not in (None, devices):
            message = f"a mesh of {devices:,} devices, and --devices {self.options.devices:,}"
            raise ShardlogError(message, where=where, hint="leave one of them out")
        if devices > MOST_DEVICES:
            message, hint = f"a mesh of {devices:,} devices", f"expected at most {MOST_DEVICES:,}"
            raise ShardlogError(message, where=where, hint=hint)
        sides = (*self.ends.arguments, *self.ends.results)
        sizes = {size for end in sides if _is_free(end) for size in end.shape or ()}
        kept_axes = any('"' in end.fixed for end in sides)
        divides = any(size % n == 0 for size in sizes for _, n in self.axes if n > 1)
        if devices > 1 and sizes and not (divides or kept_axes):
            message = f"no dimension of an argument or a result is divided evenly by an axis of {self.mesh}"
            raise ShardlogError(message, where="auto", hint="give another number of devices, or other sizes")
        memory = self.options.memory
        least = sum(end.bytes for end in self.ends.arguments) / devices
        if memory is not None and least > memory:
            large = sorted(self.ends.arguments, key=lambda end: -end.bytes)[:_LARGEST]
            named = "; ".join(f"{end.name} : {end.type}, {bytes_text(end.bytes)}" for end in large)
            message = (
                f"the arguments alone need at least {exact_text(ceil(least))} on each of {devices} devices"
            )
            limit = f"--memory {exact_text(memory)} on {self.mesh}"
            raise ShardlogError(message, where=limit, hint=f"the largest: {named}")

    @property
    def links(self) -> Hashable:
        """The sizes of the axes, and the links along each and along several of them: on meshes that are alike
        in them everything costs the same."""
        numbers = np.arange(prod(size for _, size in self.axes)).reshape([size for _, size in self.axes])
        links = []
        for count in range(1, len(self.axes) + 1):
            for some in combinations(range(len(self.axes)), count):
                sizes = [self.axes[n][1] for n in some]
                groups = np.moveaxis(numbers, some, range(-count, 0)).reshape(-1, prod(sizes)).tolist()
                link = self.machine.link_of([self.axes[n][0] for n in some], groups)
                links.append((sorted(sizes), link))
        return tuple(sorted(map(repr, links)))

    # ---- The sum ----------------------------------------------------------------------------------------

    def _opening(self) -> Opening:
        result, ends = self.base, self.ends
        arguments = {n for n, end in enumerate(ends.arguments) if _is_free(end)}
        results = {n: ends.state.get(n) for n, end in enumerate(ends.results) if _is_free(end)}
        aim = Aim(True, prices(self.machine, result.book.traits))
        free = Free(frozenset(arguments), results)
        like = self._like._open if self._like else None
        modes = result.options.modes
        return Opening(self._prepare, self._shardings, result.book, modes, aim, free, like)

    @cached_property
    def _open(self) -> Opening:
        return self._opening()

    @property
    def names_axes(self) -> bool:
        """Whether anything in the program, or that is kept, names axes of the mesh."""
        return bool(self._kept) or self._open.names_axes

    def opened(self, price: float) -> Opened:
        """The boundary by which the sum is least where memory has a price, in bytes sent for a byte held."""
        if price not in self._sums:
            self._tell(f"choosing on {self.mesh}", 0.3)
            self._sums[price] = self._open.find(price)
        return self._sums[price]

    @property
    def sum(self) -> float:
        """The least sum, in seconds."""
        return self.opened(TRIFLE).cost / self.machine.link.bandwidth

    def look(self, limit: float) -> float:
        """Finds the least sum, in seconds; or only a lower bound of it, if that is above a limit. Returns it,
        which is ``least`` from then on."""
        self._tell(f"choosing on {self.mesh}", 0.2)
        unit = self.machine.link.bandwidth
        bound = 0.0 if limit == inf else self._open.bound_soon(TRIFLE, limit * unit) / unit
        self.least = bound if bound > limit else self.sum
        return self.least

    def sum_of(self, candidate: SpecCandidate) -> float:
        """The least sum found with a candidate's boundary, in seconds."""
        return self._sum_of(candidate)[0] / self.machine.link.bandwidth

    def candidate(self, name: str, opened: Opened) -> SpecCandidate:
        """The candidate for a choice of the boundary."""

        def specs(ends: Sequence[End], chosen: Mapping[int, Sharding]) -> tuple[Spec, ...]:
            return tuple(_spec_of(chosen[n]) if n in chosen else _stays(end) for n, end in enumerate(ends))

        return SpecCandidate(
            name, specs(self.ends.arguments, opened.arguments), specs(self.ends.results, opened.results)
        )

    def candidate_of(
        self, name: str, given: Mapping[int, Spec], results: Mapping[int, Spec] | None = None
    ) -> SpecCandidate:
        """The candidate with these specs of arguments, and of results that are no state, by number. Kept
        shardings stay, other arguments are whole, and other results are as propagation has them."""
        ends, others = self.ends, results or {}
        arguments = tuple(
            given.get(n, _stays(end)) if _is_free(end) else _stays(end)
            for n, end in enumerate(ends.arguments)
        )

        def of_result(n: int, end: End) -> Spec | None:
            if not _is_free(end):
                return _stays(end)
            return arguments[ends.state[n]] if n in ends.state else others.get(n)

        return SpecCandidate(name, arguments, tuple(of_result(n, end) for n, end in enumerate(ends.results)))

    # ---- Truth ------------------------------------------------------------------------------------------

    def run(self, candidate: SpecCandidate) -> Result:
        """The run with a candidate's shardings at the boundary."""
        return run_with(self._source, replace(self._of_run, annotate=self.annotations(candidate)))

    def annotations(self, candidate: SpecCandidate) -> tuple[str, ...]:
        """A candidate as annotations of a run, kept ones first."""
        named: list[tuple[str, Sequence[End], Sequence[Spec | None]]] = [
            ("%arg", self.ends.arguments, candidate.arguments),
            ("result#", self.ends.results, candidate.results),
        ]
        free = (
            f"{label}{n}={Placed('', spec).text}"
            for label, ends, specs in named
            for n, (end, spec) in enumerate(zip(ends, specs, strict=True))
            if _is_free(end) and spec is not None
        )
        return (*self._kept, *free)

    def cost(self, candidate: SpecCandidate) -> Cost:
        """The cost of a candidate's program. Raises TooLargeError if it does not fit into memory."""
        key = candidate.arguments, candidate.results
        if key not in self._costs:
            free, most = self._free(candidate), self._most
            try:
                fits = most is None or free.peak <= most
                self._costs[key] = free if fits else self._cost_of(self._tight.pop(key), bounded=True)
            except TooLargeError as error:
                self._costs[key] = error
        outcome = self._costs[key]
        if isinstance(outcome, TooLargeError):
            raise outcome
        return outcome

    @property
    def _most(self) -> int | None:
        """The memory that a program may need, in bytes; None if any."""
        return self.machine.memory if self.options.memory is None else self.options.memory

    def _fits(self, candidate: SpecCandidate) -> bool:
        """Whether a candidate's fastest program fits into memory. Another one with the same boundary, which
        takes much longer to find, may need less."""
        return self._most is None or self._free(candidate).peak <= self._most

    def _free(self, candidate: SpecCandidate) -> Cost:
        """The cost of a candidate's fastest program, whatever memory that needs."""
        key = candidate.arguments, candidate.results
        if key not in self._freely:
            partitioning = Partitioning(self.run(candidate))
            self._given[key] = _given(candidate, partitioning.result)
            free = self._freely[key] = self._cost_of(partitioning, bounded=False)
            if self._most is not None and free.peak > self._most:
                self._tight[key] = partitioning
        return self._freely[key]

    def _cost_of(self, partitioning: Partitioning, *, bounded: bool) -> Cost:
        choice = ProgramChoice(topology=self.options.topology, memory=self.options.memory)
        program, besides = partitioning.program(choice, {}, refuse=False, bounded=bounded)
        return cost(PartitionedRun(partitioning.result, program, choice, besides), self.machine)

    def at(self, price: float) -> Costed:
        """The candidate where memory has a price. Raises TooLargeError where it does not fit."""
        candidate = self._at(price)
        self._tell(f"costing {candidate.name} on {self.mesh}", 0.6)
        return Costed(candidate, self.cost(candidate), self.opened(price))

    def _at(self, price: float) -> SpecCandidate:
        return self.candidate(f"memory at {price:.2g}", self.opened(price))

    def _is_near(self, sum_: float, near: float = _NEAR) -> bool:
        """Whether a sum, in bytes, is so near the least that the program may be as good."""
        return sum_ <= self.opened(TRIFLE).cost * (1 + near)

    def mutated(self, best: Costed) -> Iterator[Costed]:
        """Plans, each better than the one before. Each changes the layout of arguments that are laid out
        alike. Changes that add least to the sum are tried first, and each is costed."""
        if best.opened is None:
            return
        for tried, (group, spec) in enumerate(self._mutations(best.opened)[:MUTATIONS]):
            self._tell(f"mutating the plan on {self.mesh}", 0.7 + 0.3 * tried / MUTATIONS)
            candidate = self._changed(best.candidate, group, spec)
            with suppress(TooLargeError):
                cost = self.cost(candidate)
                if cost.seconds < best.cost.seconds:
                    best = Costed(candidate, cost, best.opened)
                    yield best

    def _mutations(self, opened: Opened) -> list[tuple[list[int], Spec]]:
        """Other layouts of arguments that are laid out alike, by increasing sum."""
        groups: dict[int, list[int]] = {}
        for argument, number in opened.alike.items():
            groups.setdefault(number, []).append(argument)
        moves = [
            (other.more, group, _spec_of(other.sharding))
            for group in groups.values()
            for other in opened.others.get(group[0], ())
        ]
        return [(group, spec) for _, group, spec in sorted(moves, key=lambda each: each[0])]

    def _changed(self, candidate: SpecCandidate, group: Sequence[int], spec: Spec) -> SpecCandidate:
        """A candidate with another spec for some arguments, and for the results that become them."""
        arguments = tuple(spec if n in group else old for n, old in enumerate(candidate.arguments))
        results = tuple(
            spec if self.ends.state.get(n) in group else old for n, old in enumerate(candidate.results)
        )
        return SpecCandidate("mutated", arguments, results)

    def costed(self) -> list[Costed]:
        """The candidates that fit, the best first."""
        fitting, tight = list[Costed](), list[float]()
        high = 0.0
        sums = [self._sum_of(self._at(price))[0] for price in PRICES]
        for price, then in zip_longest(prices_of_memory(), sums[1:]):
            if fitting and (price not in PRICES or not self._is_near(sums[PRICES.index(price)])):
                break
            if then is not None and self._is_near(then, _EQUAL):
                continue  # the next one needs no more memory, and its sum is as good
            candidate = self._at(price)
            self._tell(f"costing {candidate.name} on {self.mesh}", 0.6)
            if self._fits(candidate):
                fitting.append(self.at(price))
                high = high or price
            else:
                tight.append(price)
        if tight and high:  # the least price that fits is between them
            between = sqrt(tight[-1] * high)
            if self._fits(self._at(between)):
                fitting.append(self.at(between))
        # Programs in which values within need less memory: those with the smallest boundaries first.
        for price in sorted(tight, key=lambda price: self._free(self._at(price)).peak):
            try:
                smaller = self.at(price)
            except TooLargeError:  # others seldom fit then
                break
            slower = any(each.cost.seconds <= smaller.cost.seconds for each in fitting)
            fitting.append(smaller)
            if slower:
                break
        return sorted(fitting, key=lambda each: each.cost.seconds)

    def strategies(self) -> Iterator[Costed]:
        """The known strategies that fit and keep the kept shardings: those that fit as they are by increasing
        sum, and others by increasing memory, until one does not fit in any way."""
        candidates = [candidate for candidate, _ in self._strategies]
        yield from self.fitting(candidates)
        tight = [candidate for candidate in candidates if not self._fits(candidate)]
        with suppress(TooLargeError):
            for candidate in sorted(tight, key=lambda each: self._free(each).peak):
                yield Costed(candidate, self.cost(candidate))

    def rivals(self, best: Cost, least: float) -> list[tuple[float, SpecCandidate]]:
        """The known strategies that may be as good as the best plan so far, with their sums in seconds.
        ``least`` is the least sum of all meshes, in seconds. If the sum misjudged that plan, they are all
        whose sum is less than its cost."""
        most = max(least * (1 + _NEAR), best.seconds if best.seconds > self.sum * MISJUDGED else 0.0)
        sums = ((sum_ / self.machine.link.bandwidth, each) for each, (sum_, _) in self._strategies)
        return [(sum_, each) for sum_, each in sums if sum_ <= most]

    def fitting(self, candidates: Iterable[SpecCandidate]) -> Iterator[Costed]:
        """The candidates that fit as they are, and their costs."""
        for candidate in candidates:
            self._tell(f"costing {candidate.name} on {self.mesh}", 0.8)
            if self._fits(candidate):
                yield Costed(candidate, self.cost(candidate))

    def estimated(self, costed: Sequence[Costed]) -> Iterator[Tried]:
        """The known strategies that were not costed, with estimates. Their time and memory are the best
        plan's, scaled by the ratio of the sums and of the estimated memory."""
        fastest = min(costed, key=lambda each: each.cost.seconds)
        best, (least, least_held) = fastest.cost, self._sum_of(fastest.candidate)
        names, unit = {each.candidate.name for each in costed}, self.machine.link.bandwidth
        for candidate, (sum_, held) in self._strategies:
            cost = self._costs.get((candidate.arguments, candidate.results))
            seconds = best.seconds * max(sum_ / least, 1.0) if least else best.seconds + sum_ / unit
            peak = round(best.peak * (held / least_held if least_held else 1.0))
            if candidate.name in names or isinstance(cost, TooLargeError):
                continue
            if cost is not None:
                yield Tried(candidate.name, self.mesh, cost.seconds, cost.peak)
            elif peak <= (self.options.memory or inf):
                yield Tried(candidate.name, self.mesh, seconds, peak, written=False)

    @cached_property
    def _strategies(self) -> list[tuple[SpecCandidate, tuple[float, float]]]:
        """The known strategies with their least sums, in bytes, and estimates of their memory."""
        candidates = [
            self.candidate_of(name, specs) for name, specs in strategies(self.ends, self.axes).items()
        ]
        return sorted(((each, self._sum_of(each)) for each in candidates), key=lambda each: each[1][0])

    def _sum_of(self, candidate: SpecCandidate) -> tuple[float, float]:
        """The least sum found with a candidate's boundary, in bytes, and an estimate of the memory."""
        self.opened(TRIFLE)
        return self._open.with_boundary(TRIFLE, *self._boundary(candidate))

    def _boundary(self, candidate: SpecCandidate) -> tuple[dict[int, Dims], dict[int, Dims]]:
        """The axes of each dimension of free arguments and results, by number."""
        ends, state = self.ends, self.ends.state
        arguments: dict[int, Dims] = {
            n: axes_of(candidate.arguments[n]) for n, end in enumerate(ends.arguments) if _is_free(end)
        }
        results: dict[int, Dims] = {
            n: axes_of(spec)
            for n, (end, spec) in enumerate(zip(ends.results, candidate.results, strict=True))
            if _is_free(end) and n not in state and spec is not None
        }
        return arguments, results

    @cached_property
    def bound(self) -> float:
        """A lower bound of the sum, in seconds."""
        least = self.opened(TRIFLE).cost
        self._tell(f"proving a bound on {self.mesh}", 0.9)
        return self._open.bound(TRIFLE, least) / self.machine.link.bandwidth

    def plan_of(self, costed: Costed, tried: Sequence[Tried] = ()) -> AutoPlan:
        """A candidate as a plan."""
        unit, least = self.machine.link.bandwidth, self.opened(TRIFLE).cost
        candidate, opened = costed.candidate, costed.opened
        if opened is None or self.candidate(candidate.name, opened) != candidate:
            opened = self._open.beside(TRIFLE, *self._boundary(candidate))
        others = tuple(self._others(candidate, opened, n) for n in range(len(self.ends.arguments)))
        return replace(
            self.unsearched(costed), sum=least / unit, bound=self.bound, tried=tuple(tried), others=others
        )

    def unsearched(self, costed: Costed, notes: Sequence[str] = ()) -> AutoPlan:
        """A candidate as a plan with its cost alone."""
        candidate = costed.candidate
        return AutoPlan(
            self.mesh,
            self.options.topology,
            costed.cost.seconds,
            costed.cost.peak,
            None,
            None,
            _placed(self.ends.arguments, candidate.arguments),
            _placed(self.ends.results, self._given[candidate.arguments, candidate.results]),
            self.ends.state,
            self.options.memory,
            tuple(self.tried([costed])),
            notes=tuple(notes),
        )

    def _others(self, candidate: SpecCandidate, opened: Opened, argument: int) -> tuple[Other, ...]:
        """Other specs of an argument. The sum has no prices beside a spec that is none of its choices."""
        if argument not in opened.arguments:
            return ()
        chosen = candidate.arguments[argument] == _spec_of(opened.arguments[argument])
        others = opened.others.get(argument, ()) if chosen else ()
        unit, line = self.machine.link.bandwidth, self.base.source.line
        return tuple(
            Other(_spec_of(other.sharding), other.more / unit, other.op, line(other.where))
            for other in others
        )

    def tried(self, costed: Sequence[Costed]) -> list[Tried]:
        """The costs of candidates, computed once for equal ones."""
        chosen = {(c.candidate.arguments, c.candidate.results): c for c in reversed(costed) if c.opened}
        unique = [
            c for c in costed if c.opened is None or chosen[c.candidate.arguments, c.candidate.results] is c
        ]
        return [Tried(c.candidate.name, self.mesh, c.cost.seconds, c.cost.peak) for c in unique]

    def too_large(self) -> TooLargeError | None:
        """The error that says the least memory of all that did not fit, if anything did not."""
        errors = (each for each in self._costs.values() if isinstance(each, TooLargeError))
        least = min(errors, key=lambda error: error.least, default=None)
        if least is None:
            return None
        memory = exact_text(self.options.memory or 0)
        message = f"no plan was found that needs at most {memory}; the least has {exact_text(least.least)}"
        error = TooLargeError(message, where=f"--memory on {self.mesh}", hint=least.hint)
        error.least = least.least
        return error


def _placed(ends: Sequence[End], specs: Sequence[Spec]) -> tuple[Placed, ...]:
    return tuple(Placed(end.name, spec) for end, spec in zip(ends, specs, strict=True))


def _is_free(end: End) -> bool:
    return bool(end.shape) and not end.fixed


def _stays(end: End) -> Spec:
    return spec_of(spec_in(end.fixed) if end.fixed else ((),) * len(end.shape or ()))


def _spec_of(sharding: Sharding) -> Spec:
    return spec_of(tuple(tuple(axis.name for axis in dim.axes) for dim in sharding.dimensions))


def _given(candidate: SpecCandidate, result: Result) -> tuple[Spec, ...]:
    """The specs of all results of a candidate's run, including those that propagation decided."""
    with result.module.context:
        ends = ends_of(result.module, ("none",))
    return tuple(
        _stays(end) if spec is None else spec
        for end, spec in zip(ends.results, candidate.results, strict=True)
    )


def _mesh_of(text: str, base: Result) -> Mesh:
    """The mesh in a text, for the module of a run."""
    with base.module.context, ir.Location.unknown():
        module = ir.Module.create()
        replace_mesh(module, text)
        return _main_mesh(module, base.source)


def _main_mesh(module: ir.Module, text: Text) -> Mesh:
    """The mesh of a module. Raises ShardlogError if it has none, or several."""
    ops = symbols(module, "sdy.mesh")
    usual = [read_mesh(name, ops[name].attributes["mesh"]) for name in usual_meshes(ops)]
    meshes = [mesh for mesh in usual if mesh.axes]
    if len(meshes) != 1:
        meshes_text = "no mesh" if not meshes else f"{len(meshes)} meshes"
        hint = "give it one, as in --mesh data=4,model=2, or --devices 8" if not meshes else "use one mesh"
        raise ShardlogError(f"the module has {meshes_text}", where=text.name, hint=hint)
    return meshes[0]

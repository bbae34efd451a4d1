"""The search on one mesh: boundaries of least sum are written as programs, and the one of least cost is
taken."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

from jaxlib.mlir import ir

from ..cost.cost import Cost
from ..cost.exchange import prices
from ..cost.machine import Machine, machine
from ..errors import ShardlogError
from ..importers.annotations import to_sdy
from ..importers.sources.text import Text
from ..importers.sources.views import view_of
from ..partition.improving import Aim, TooLargeError
from ..partition.opening import Opened, Opening
from ..partition.preparing.preparing import Preparing
from ..partition.problem import Free
from ..program.elements import exact_text
from ..program.meshes import Mesh
from ..program.mlir.modules import symbols
from ..program.shardings import Sharding, read_mesh
from ..runs.options import Options
from ..runs.running import run_with
from ..session import Session
from .ends import End, ends_of
from .kept import kept, spec_in
from .options import AutoOptions
from .plan import AutoPlan, Placed, Spec, Tried, spec_of

Progress = Callable[[str, float], None]
_TRIFLE = 1 / 1024  # bytes sent per byte held: of equal costs, the one with smaller parts
_PRICES = (_TRIFLE, 1 / 64)  # prices of memory, of plans whose cost is computed
_DEARER, _DEAREST = 8.0, 1e3  # from one price to the next, if memory is short


@dataclass(frozen=True)
class Candidate:
    """Specs for all arguments and results, and a name."""

    name: str
    arguments: tuple[Spec, ...]
    results: tuple[Spec, ...]


@dataclass(frozen=True)
class Costed:
    """A candidate and the cost of its program."""

    candidate: Candidate
    cost: Cost


class Search:
    """The search on one mesh, that of the module if ``mesh`` is None.

    Raises ShardlogError for bad input.
    """

    def __init__(self, source: Any, mesh: str | None, options: AutoOptions, tell: Progress) -> None:
        self.options, self._tell = options, tell
        tell("reading", 0.0)
        text, module = view_of(source, "lowered")
        with text.places(), module.context, ir.Location.unknown():
            to_sdy(module, text, mesh)
            ends, own = ends_of(module, options.tie), _main_mesh(module, text)
        axes = dict(own.axes)
        self.mesh = ",".join(f"{name}={size}" for name, size in own.axes)
        self.ends, self._kept = kept(options.keep, ends, axes)
        self._source, self._of_run = source, Options(mesh=mesh)
        self.base = run_with(source, replace(self._of_run, annotate=self._kept))
        self.machine: Machine = machine(options.topology, list(axes), prod(axes.values()))
        self._costs: dict[tuple[tuple[Spec, ...], tuple[Spec, ...]], Cost | TooLargeError] = {}
        self._sums: dict[float, Opened] = {}

    # ---- The sum ----------------------------------------------------------------------------------------

    def _opening(self) -> Opening:
        result, ends = self.base, self.ends
        arguments = {n for n, end in enumerate(ends.arguments) if _is_free(end)}
        results = {n: ends.state.get(n) for n, end in enumerate(ends.results) if _is_free(end)}
        read = self.machine.memory_bandwidth / self.machine.link.bandwidth
        aim = Aim(True, replace(prices(self.machine, result.book.traits), product_touched=read))
        free = Free(frozenset(arguments), results)
        prepare = Preparing(result.module, result.book.traits)
        return Opening(prepare, result.program.shardings, result.book, result.options.modes, aim, free)

    def found(self) -> Iterator[tuple[float, Opened]]:
        """Boundaries of least sum, each with its price of memory, which rises."""
        opening, price = self._opening(), _TRIFLE
        yield price, opening.find(price, bound=True)
        for price in _PRICES[1:]:
            yield price, opening.find(price)
        while self.options.memory is not None and price < _DEAREST:
            price *= _DEARER
            yield price, opening.find(price)

    def candidate(self, name: str, opened: Opened) -> Candidate:
        """The candidate for a choice of the boundary."""

        def specs(ends: Sequence[End], chosen: Mapping[int, Sharding]) -> tuple[Spec, ...]:
            return tuple(_spec_of(chosen[n]) if n in chosen else _stays(end) for n, end in enumerate(ends))

        return Candidate(
            name, specs(self.ends.arguments, opened.arguments), specs(self.ends.results, opened.results)
        )

    # ---- Truth ------------------------------------------------------------------------------------------

    def session(self, candidate: Candidate) -> Session:
        """The run with a candidate's shardings at the boundary."""
        return Session(run_with(self._source, replace(self._of_run, annotate=self.annotations(candidate))))

    def annotations(self, candidate: Candidate) -> tuple[str, ...]:
        """A candidate as annotations of a run, kept ones first."""
        named = [("%arg", self.ends.arguments, candidate.arguments)]
        named += [("result#", self.ends.results, candidate.results)]
        free = (
            f"{label}{n}={Placed('', spec).text}"
            for label, ends, specs in named
            for n, (end, spec) in enumerate(zip(ends, specs, strict=True))
            if _is_free(end)
        )
        return (*self._kept, *free)

    def cost(self, candidate: Candidate) -> Cost:
        """The cost of a candidate's program. Raises TooLargeError if it does not fit into memory."""
        key = candidate.arguments, candidate.results
        if key not in self._costs:
            session = self.session(candidate)
            try:
                cost = session.cost(topology=self.options.topology, memory=self.options.memory)
                self._costs[key] = cost
            except TooLargeError as error:
                self._costs[key] = error
        found = self._costs[key]
        if isinstance(found, TooLargeError):
            raise found
        return found

    def best(self) -> AutoPlan:
        """The best plan. Raises ShardlogError if none was found within the limit on memory."""
        costed, refused = list[Costed](), list[TooLargeError]()
        first: Opened | None = None
        for number, (price, opened) in enumerate(self.found()):
            first = first or opened
            if number >= len(_PRICES) and costed:
                break
            candidate = self.candidate(f"memory at {price:g}", opened)
            self._tell(f"costing plan {number + 1} on {self.mesh}", 0.5 + 0.1 * min(number, 4))
            try:
                costed.append(Costed(candidate, self.cost(candidate)))
            except TooLargeError as error:
                refused.append(error)
        if not costed:
            raise self._too_large(min(refused, key=lambda error: error.least))
        assert first is not None
        costed.sort(key=lambda each: each.cost.seconds)
        best, unit = costed[0], self.machine.link.bandwidth
        unique = {(each.candidate.arguments, each.candidate.results): each for each in reversed(costed)}
        tried = [Tried(c.candidate.name, self.mesh, c.cost.seconds, c.cost.peak) for c in unique.values()]
        return AutoPlan(
            self.mesh,
            self.options.topology,
            best.cost.seconds,
            best.cost.peak,
            first.cost / unit,
            first.bound / unit,
            _placed(self.ends.arguments, best.candidate.arguments),
            _placed(self.ends.results, best.candidate.results),
            self.ends.state,
            self.options.memory,
            tuple(sorted(tried, key=lambda each: each.seconds)),
        )

    def _too_large(self, least: TooLargeError) -> ShardlogError:
        memory = exact_text(self.options.memory or 0)
        message = f"no plan was found that needs at most {memory}; the least has {exact_text(least.least)}"
        return ShardlogError(message, where=f"--memory on {self.mesh}", hint=least.hint)


def _placed(ends: Sequence[End], specs: Sequence[Spec]) -> tuple[Placed, ...]:
    return tuple(Placed(end.name, spec) for end, spec in zip(ends, specs, strict=True))


def _is_free(end: End) -> bool:
    return bool(end.shape) and not end.fixed


def _stays(end: End) -> Spec:
    return spec_of(spec_in(end.fixed) if end.fixed else ((),) * len(end.shape or ()))


def _spec_of(sharding: Sharding) -> Spec:
    return spec_of(tuple(tuple(axis.name for axis in dim.axes) for dim in sharding.dimensions))


def _main_mesh(module: ir.Module, text: Text) -> Mesh:
    """The mesh of a module. Raises ShardlogError if it has none, or several."""
    ops = symbols(module, "sdy.mesh").items()
    found = [mesh for name, op in ops if (mesh := read_mesh(name, op.attributes["mesh"])).axes]
    if len(found) != 1:
        said = "no mesh" if not found else f"{len(found)} meshes"
        hint = "give it one, as in --mesh data=4,model=2, or --devices 8" if not found else "use one mesh"
        raise ShardlogError(f"the module has {said}", where=text.name, hint=hint)
    return found[0]

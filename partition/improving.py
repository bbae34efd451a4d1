"""The best program whose values may have other layouts than propagation chose: by bytes or by time, and
within a bound on memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from time import monotonic
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ..collector import no_collections
from ..errors import ShardlogError
from ..program.elements import bytes_text, exact_text
from ..program.function import location
from ..program.shardings import Sharding
from .choice import tuning
from .choice.homes import NOTHING, FoundHomes, Homes
from .choice.problem import Runs, homes_of, often, tasks_of, times, variables_of
from .device_program import DeviceProgram, Planned, Written
from .executions import Executions
from .facts.annotated import Annotated
from .facts.flow import facts_of
from .facts.made import is_ordered, may_repeat
from .facts.recording import Decided, Facts
from .finishing.combining.combining import combined_sizes
from .finishing.passes import FINISHED, Draft
from .layouts import Pieces
from .plan import Plan
from .reshards.prices import Prices, TaskId
from .writing.building import Sent, bytes_of, element_of, pairs_of
from .writing.writer import Writer

_LARGEST = 3  # values that a message about memory names


class TooLargeError(ShardlogError):
    """No program was found within the bound on memory. ``least`` is the memory of the smallest one found, in
    bytes."""

    least = 0


@dataclass(frozen=True)
class Aim:
    """The goal of the search for a program. With ``move``, values that no constraint binds may get other
    layouts than propagation chose, if that costs less by the ``prices``. ``memory`` is the memory that a
    device may need, in bytes, and ``peak`` computes the memory of a program. With ``bound`` it is a hard
    limit; otherwise it may be exceeded if no program seems to meet it. A ``modest`` aim weighs bytes sent
    against memory beyond that of propagation's shardings. After ``seconds`` the best layouts so far are
    taken. ``pins`` are layouts that results of ops, or values that loops carry, must have. ``begins`` are
    layouts of values before the search, if they differ from those of the annotated module. ``order`` names an
    order of the steps of reshards (``rules/partition/order.dl``), in place of the cheapest steps."""

    move: bool = False
    prices: Prices = field(default_factory=Prices)
    memory: int | None = None
    bound: bool = True
    modest: bool = False
    peak: Callable[[DeviceProgram], int] | None = None
    seconds: float | None = None
    pins: Mapping[Any, Sharding] = field(default_factory=dict)
    begins: Mapping[Any, Sharding] = field(default_factory=dict)
    order: str | None = None


def within(aim: Aim, make: Callable[[Aim], DeviceProgram]) -> DeviceProgram:
    """The program for an aim. If the program of least time is too large, the one of least bytes may fit."""
    try:
        return make(aim)
    except TooLargeError as error:
        if aim.prices.collective is None:
            raise
        try:
            return make(replace(aim, prices=Prices()))
        except TooLargeError as other:
            raise min(error, other, key=lambda each: each.least) from None


class PricedCollective(NamedTuple):
    """A collective of a program: its kind, the pieces of axes that it runs over, the bytes that a device
    sends each time, and the number of executions. If a machine's compiler combines several, ``begun`` is its
    share of the combined one."""

    kind: str
    pieces: Pieces
    bytes: int
    times: float
    begun: float


@dataclass(frozen=True)
class PlannedProgram:
    """A device program by its plan, which is part of the ``facts``. It is written when it is needed. Its
    collectives are known before, except for permutations that may be merged, and collectives that may be the
    same. ``found`` is the result of the search for layouts. ``tasks`` are known of some ops, by number."""

    facts: Facts
    annotated: Annotated
    write: Callable[[Decided], Writer]
    found: FoundHomes | None = None
    tasks: Mapping[int, TaskId] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        """The plan, with its reshards."""
        return self.facts.decided.plan

    @cached_property
    def written(self) -> tuple[Writer, Draft]:
        """The writer, and the program before any pass."""
        writer = self.write(self.facts.decided)
        return writer, writer.run()

    @property
    def module(self) -> ir.Module:
        """The module that each device runs."""
        return self.written[1].module

    @cached_property
    def finished(self) -> DeviceProgram:
        """The finished program. The passes change the program that was written, so its cost must be asked
        before that is."""
        # None sends what it needs itself: the same as an earlier one, if each needs the one before.
        annotated, repeats = self.annotated, not self.facts.in_turn and may_repeat(self.facts.sent)

        def write() -> Written:
            with no_collections(), annotated.module.context, ir.Location.unknown():
                writer, draft = self.written
                draft.repeats = repeats
                draft.after(FINISHED).module.operation.verify()
            return Written(draft.module, draft.sent, writer.boundary)

        sends = self.facts.sends if is_ordered(self.facts.sent) and not repeats else None
        main = annotated.functions[annotated.main].regions[0].blocks[0]
        in_turn = self.facts.in_turn and self.facts.are_in(main)
        planned = Planned(self.plan, annotated.prepared, sends, write, in_turn)
        program = DeviceProgram(planned, annotated.chooser.reader.traits, annotated.axes, annotated.form)
        program.found = self.found
        return program

    @cached_property
    def sending(self) -> list[PricedCollective]:
        """Its collectives."""
        combined, sends = self.annotated.planner.prices.combined, self.facts.sends
        if sends is not None and (self.facts.in_turn or not combined):  # none is combined then
            return [
                PricedCollective(
                    each.kind, each.pieces, each.bytes, times(each.executions, each.repeats), 1.0
                )
                for each in sends
            ]
        draft = self.written[1]
        counts, sizes = Executions(draft.module, draft.traits), dict[Any, int]()
        if combined:
            sizes = combined_sizes(draft.module, draft.traits, combined)
        return [
            PricedCollective(
                each.kind, self._along(each), each.bytes, often(counts, each.op), 1 / sizes.get(each.op, 1)
            )
            for each in draft.sent
        ]

    def _along(self, sent: Sent) -> Pieces:
        """The pieces along which devices send."""
        if sent.pieces or not sent.permutes:
            return sent.pieces
        return self.annotated.axes.between(pairs_of(sent.op))

    @property
    def bytes(self) -> float:
        """The bytes that a device sends."""
        return sum(each.bytes * each.times for each in self.sending)

    @cached_property
    def cost(self) -> float:
        """The price of its collectives and products, or with a machine of all work: bytes, or time as
        bytes."""
        planner, total = self.annotated.planner, 0.0
        for each in self.sending:
            price = planner.price(each.kind, each.pieces)
            once = price.once * each.begun + planner.prices.once
            total += (price.byte * each.bytes + once) * each.times
        if computed := self.facts.computed_as:
            chooser, runs, tasks = self.annotated.chooser, Runs(self.annotated), self.annotated.tasks
            for number, how in computed:
                knowledge, taken = how.knowledge, how.choice.taken
                if tasks is None:
                    work = chooser.work(knowledge, taken.factors)
                else:
                    task = self.tasks.get(number)
                    task = tasks(number) if task is None else task
                    work = chooser.takes(task, knowledge, taken.layouts)
                total += work * runs.of(number)
        return total


class Improving:
    """Searches for a better program than that of a plan. The plan follows propagation, except for pinned
    values and arguments of functions, which have the layouts of their calls."""

    def __init__(
        self,
        annotated: Annotated,
        write: Callable[[Decided], Writer],
        aim: Aim,
        plan: Plan,
        *,
        refuses: bool = True,
    ) -> None:
        self.annotated, self.write, self.aim, self._refuses = annotated, write, aim, refuses
        self._until = None if aim.seconds is None else monotonic() + aim.seconds
        facts = facts_of(annotated, plan, refuses=refuses, asked=aim.move or bool(plan.pinned))
        self._check_pins(facts, plan)
        self.first = PlannedProgram(facts, annotated, write)
        self._peaks: dict[ir.Module, int] = {}

    def _check_pins(self, facts: Facts, plan: Plan) -> None:
        """Raises ShardlogError for pins of values whose layout cannot be chosen."""
        if not plan.pinned:
            return
        chosen = {
            value
            for _, spot in facts.spots
            for value, role in zip(spot.values, spot.knowledge.roles, strict=True)
            if role == "result"
        }
        for number in sorted(plan.pinned):
            if number not in chosen:
                value = self.annotated.kinds.listing.value(number)
                message = f"how the result of {value.owner.operation.name} is sharded is not chosen"
                hint = "it is made where it is needed, or passed on unchanged: pin the result of an op"
                raise ShardlogError(message, where=location(value.owner), hint=hint)

    def best(self) -> PlannedProgram:
        """The best program. Raises ShardlogError if no program was found within the bound on memory."""
        aim, homes = self.aim, None
        if aim.move:
            bound = aim.seconds is not None
            facts, pinned = self.first.facts, self.first.plan.pinned
            variables = variables_of(self.annotated, facts, pinned, bound=bound)
            self.first = replace(self.first, tasks=tasks_of(facts, variables))
            self._weigh_collectives()
            homes = homes_of(self.annotated, variables)
            homes_found, best = homes.find(bound=bound, stop=self._late), self.first
            other = self._with(homes_found) if homes_found is not NOTHING else best
            best = other if self._is_better(other, best) else replace(best, found=homes_found)
            if (
                aim.modest
                and aim.seconds is None
                and other is best
                and _is_more(*homes_found.held, tuning.NOTED)
            ):
                return self._modest(best, homes)
        else:
            best = self.first
        if aim.memory is None or self._peak(best) <= aim.memory:
            return best
        tried = [best, self.first]
        if not aim.bound:
            homes_found = NOTHING if homes is None else homes.find(memory=tuning.DEAREST, stop=self._late)
            tried.append(self._with(homes_found, again=True))
            if all(self._peak(program) > aim.memory for program in tried):
                best.finished.exceeds = self._peak(best)
                return best
        for program in self._smaller(best, homes, aim.memory, tuning.PRICES):
            tried.append(program)
        fitting = [program for program in tried if self._peak(program) <= aim.memory]
        if not fitting:
            raise self._too_large(min(tried, key=self._peak))
        return min(fitting, key=lambda program: program.cost)

    def _is_better(self, other: PlannedProgram, than: PlannedProgram) -> bool:
        """Whether a program costs less. Without a machine, which compares times, it must not send more
        either."""
        timed = self.aim.prices.collective is not None
        return other.cost < than.cost and (timed or other.bytes <= than.bytes)

    def _weigh_collectives(self) -> None:
        """Sets the fixed cost of each collective to a part of the mean bytes that one sends, as propagation
        decided. With a machine, collectives that are combined share their fixed cost."""
        planner = self.annotated.planner
        counted, begun = defaultdict[str, float](float), defaultdict[str, float](float)
        for each in self.first.sending:
            if each.bytes:
                counted[each.kind] += each.times
                begun[each.kind] += each.times * each.begun
        planner.weigh_combined({kind: begun[kind] / count for kind, count in counted.items()})
        if count := sum(counted.values()):
            planner.weigh_collectives(self.first.bytes / count / tuning.COLLECTIVES)

    def _late(self) -> bool:
        return self._until is not None and monotonic() > self._until

    def _with(self, homes: FoundHomes, *, again: bool = False) -> PlannedProgram:
        """The program with these layouts. ``again``: a gathered value is gathered again for users far
        apart."""
        plan = self.first.plan.changed_to(homes.plan, again=again)
        facts = facts_of(self.annotated, plan, refuses=self._refuses, asked=False)
        return PlannedProgram(facts, self.annotated, self.write, homes, self.first.tasks)

    # ---- Memory -----------------------------------------------------------------------------------------

    def _modest(self, best: PlannedProgram, homes: Homes) -> PlannedProgram:
        """The best program; or if it needs much more memory than propagation's shardings, one that costs
        hardly more and needs less."""
        first = replace(self.first, found=best.found)  # before it is changed to save memory
        if not _is_more(self._peak(best), self._peak(first), tuning.GROWTH):
            return best
        most = tuning.GROWTH * self._peak(first)
        tried = [best, first, *self._smaller(best, homes, most, tuning.FEW_PRICES)]
        return min(tried, key=lambda each: each.cost * max(self._peak(each) / most, 1.0) ** tuning.DEAR)

    def _smaller(
        self, best: PlannedProgram, homes: Homes | None, memory: float, steps: int
    ) -> Iterator[PlannedProgram]:
        """Programs that need less memory. Bytes that a device holds get a price: the lowest one that meets
        the bound, found by bisection. Then the same with gathered values gathered again."""
        homes_at = dict[float, FoundHomes]()
        yield (program := self._with(best.found or NOTHING, again=True))
        if homes is None:
            return
        for again in (False,) if self._peak(program) <= memory else (False, True):
            low, price, high = 0.0, 1.0 / 64, 0.0
            for _ in range(steps):
                if price not in homes_at:
                    homes_at[price] = homes.find(memory=price, near=True, stop=self._late)
                yield (program := self._with(homes_at[price], again=again))
                fits = self._peak(program) <= memory
                low, high = (low, price) if fits else (price, high)
                price = (low + high) / 2 if high else price * 8
                if self._late():
                    return
                if (not high and price > tuning.DEAREST) or (high and high < low * 1.2):
                    break

    def _peak(self, program: PlannedProgram) -> int:
        assert self.aim.peak is not None
        if program.module not in self._peaks:
            _ = program.cost  # of all collectives, before some are removed
            self._peaks[program.module] = self.aim.peak(program.finished)
        return self._peaks[program.module]

    def _too_large(self, program: PlannedProgram) -> TooLargeError:
        """The error if no program fits; ``program`` is the smallest one."""
        walk, memory = program.written[0], self.aim.memory or 0
        sizes = []
        for number, tensor in walk.tensors.items():
            if tensor.shape and not tensor.dataless:
                value = walk.kinds.listing.value(number)
                local = prod(walk.axes.local(tensor.shape, tensor.home.dims))
                sizes.append((local * bytes_of(element_of(value)), value))
        sizes.sort(key=lambda pair: -pair[0])
        named = [f"{value.get_name()} : {value.type}, {bytes_text(size)}" for size, value in sizes[:_LARGEST]]
        message = f"no program was found that needs at most {exact_text(memory)} on a device"
        message = f"{message}; the least that was found is {exact_text(self._peak(program))}"
        error = TooLargeError(message, hint=f"the largest values, on a device: {'; '.join(named)}")
        error.least = self._peak(program)
        return error


def _is_more(held: float, decided: float, times: float) -> bool:
    """Whether memory exceeds that of propagation's shardings by this factor, and by more than a trifle."""
    return held > max(times * decided, decided + tuning.TRIFLE)

"""The best program among those whose values live elsewhere than propagation said: by bytes or time, and
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

from ..errors import ShardlogError
from ..program.elements import bytes_text, exact_text
from ..program.function import location
from ..program.shardings import Sharding
from .choice.homes import NOTHING, Found, Homes
from .device_program import DeviceProgram
from .executions import Executions
from .facts.annotated import Annotated
from .facts.flow import facts_of
from .facts.made import may_repeat
from .facts.recording import Decided, Facts
from .finishing.combining import combined_sizes
from .finishing.passes import FINISHED, Draft
from .layouts import Pieces
from .plan import Plan
from .problem import homes_of, often, times
from .reshards.prices import Prices
from .writing.building import bytes_of, element_of
from .writing.writer import Writer

_COLLECTIVES = 8  # of them count, without what they send, as much as what one sends in the mean
_STEPS = 8  # of looking for the price of memory
_FEWER = 4  # where no bound is given
_GROWTH = 1.25  # times the memory that propagation's shardings need: more is for what sends much less
_NOTED = 1.15  # times that memory, by estimate, from which on it is found how much it is: that takes longer
_TRIFLE = 16384  # bytes more that never matter: four tiles of a TPU, whatever a tensor has, it takes one
_DEAR = 16  # what needs n times as much as it may is as good as what sends n to this times as much
_DEAREST = 1e3  # bytes sent for a byte held
_LARGEST = 3  # values that a message about memory names


class TooLargeError(ShardlogError):
    """No program was found that needs as little memory as it may; ``least`` is what the smallest one that was
    found needs, in bytes."""

    least = 0


@dataclass(frozen=True)
class Aim:
    """What a program is to be like. With ``move``, values that no constraint binds may get other homes than
    propagation chose, if it costs less by the ``prices``. ``memory`` are the bytes that a device may need at
    most, as ``peak`` finds them for a program; ``bound`` says that it must not be more; else it may be, where
    it seems to be more whatever is done. If it is ``modest``, what is sent is weighed against memory that
    propagation's shardings do not need. After so many ``seconds`` the best homes so far are taken. ``pins``
    are homes that ops' results, or what loops carry, have whatever that costs. ``begins`` are the homes that
    values have before any is moved, where the annotated module does not say them. ``order`` is that of the
    steps of reshards (``rules/partition/order.dl``), in place of the cheapest steps."""

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
    """The program that is made with an aim. Where none by which time is least is small enough, one by which
    least is sent may be."""
    try:
        return make(aim)
    except TooLargeError as error:
        if aim.prices.collective is None:
            raise
        try:
            return make(replace(aim, prices=Prices()))
        except TooLargeError as other:
            raise min(error, other, key=lambda each: each.least) from None


class Sends(NamedTuple):
    """A collective of a program: its kind, the pieces of axes it goes over, the bytes that a device sends
    each time, how often it does, and the part that it is of the one that a machine's compiler makes of
    several."""

    kind: str
    pieces: Pieces
    bytes: int
    times: float
    begun: float


@dataclass(frozen=True)
class Program:
    """A device program by its plan, which is among the ``facts``. It is written when somebody asks for that;
    what it sends is known before, but for permutations that may become one. ``found``: what the choice of
    homes found."""

    facts: Facts
    annotated: Annotated
    write: Callable[[Decided], Writer]
    found: Found | None = None

    @property
    def plan(self) -> Plan:
        """The plan, its reshards decided."""
        return self.facts.decided.plan

    @cached_property
    def written(self) -> tuple[Writer, Draft]:
        """What wrote it, and the program as it was written."""
        writer = self.write(self.facts.decided)
        return writer, writer.run()

    @property
    def module(self) -> ir.Module:
        """The module that each device runs."""
        return self.written[1].module

    @cached_property
    def made(self) -> DeviceProgram:
        """The program as it is handed out, after passes that change the one that was written: what it costs
        is to be asked before."""
        writer, draft = self.written
        draft.repeats = may_repeat(self.facts.sent)
        draft.after(FINISHED)
        made = DeviceProgram(draft.module, draft.sent, draft.traits, draft.axes, draft.form, writer.boundary)
        made.decided = self.plan
        return made

    @cached_property
    def sending(self) -> list[Sends]:
        """Its collectives."""
        combined, sends = self.annotated.planner.prices.combined, self.facts.sends
        if sends is not None and not combined:
            return [
                Sends(each.kind, each.pieces, each.bytes, times(each.known, each.often), 1.0)
                for each in sends
            ]
        draft = self.written[1]
        counts, sizes = Executions(draft.module, draft.traits), dict[Any, int]()
        if combined:
            sizes = combined_sizes(draft.module, draft.traits, combined)
        return [
            Sends(each.kind, each.pieces, each.bytes, often(counts, each.op), 1.0 / sizes.get(each.op, 1))
            for each in draft.sent
        ]

    @property
    def bytes(self) -> float:
        """The bytes that a device sends."""
        return sum(each.bytes * each.times for each in self.sending)

    @cached_property
    def cost(self) -> float:
        """The price of its collectives and products, and with a machine of all work: bytes, or time in
        bytes."""
        planner, total = self.annotated.planner, 0.0
        for each in self.sending:
            price = planner.price(each.kind, each.pieces)
            once = price.once * each.begun + planner.prices.once
            total += (price.byte * each.bytes + once) * each.times
        chooser, kinds = self.annotated.chooser, self.annotated.kinds
        if computed := self.facts.computed_as:
            counts = Executions(self.annotated.module, chooser.reader.traits)
            for number, known, factors in computed:
                total += chooser.work(known, factors) * often(counts, kinds.ops[number])
        return total


class Improving:
    """Looks for a better program than that of a plan, by which all is as propagation decided but for values
    that are pinned, and those that functions are given as their calls have them."""

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
        self.first = Program(facts, annotated, write)
        self._peaks: dict[ir.Module, int] = {}

    def _check_pins(self, facts: Facts, plan: Plan) -> None:
        """Raises ShardlogError for pins of values that are not chosen."""
        if not plan.pinned:
            return
        chosen = {
            value
            for _, spot in facts.spots
            for value, role in zip(spot.values, spot.known.roles, strict=True)
            if role == "result"
        }
        for number in sorted(plan.pinned):
            if number not in chosen:
                value = self.annotated.kinds.listing.value(number)
                message = f"how the result of {value.owner.operation.name} is sharded is not chosen"
                hint = "it is made where it is needed, or handed on as it is: pin what an op computes"
                raise ShardlogError(message, where=location(value.owner), hint=hint)

    def best(self) -> Program:
        """The best program; raises ShardlogError where none was found that the bound on memory admits."""
        aim, best = self.aim, self.first
        homes: Homes | None = None
        if aim.move:
            self._weigh_collectives()
            homes = homes_of(self.annotated, self.first.facts, self.first.plan.pinned)
            found = homes.find(bound=aim.seconds is not None, stop=self._late)
            other = self._with(found) if found is not NOTHING else best
            best = other if self._is_better(other, best) else replace(best, found=found)
            if aim.modest and aim.seconds is None and other is best and _is_more(*found.held, _NOTED):
                return self._modest(best, homes)
        if aim.memory is None or self._peak(best) <= aim.memory:
            return best
        tried = [best, self.first]
        if not aim.bound:
            found = NOTHING if homes is None else homes.find(memory=_DEAREST, stop=self._late)
            tried.append(self._with(found, again=True))
            if all(self._peak(program) > aim.memory for program in tried):
                best.made.exceeds = self._peak(best)
                return best
        for program in self._smaller(best, homes, aim.memory):
            tried.append(program)
        fitting = [program for program in tried if self._peak(program) <= aim.memory]
        if not fitting:
            raise self._too_large(min(tried, key=self._peak))
        return min(fitting, key=lambda program: program.cost)

    def _is_better(self, other: Program, than: Program) -> bool:
        """Whether a program costs less; without a machine, by which time counts, it sends no more either."""
        timed = self.aim.prices.collective is not None
        return other.cost < than.cost and (timed or other.bytes <= than.bytes)

    def _weigh_collectives(self) -> None:
        """Has each collective count for a part of what one sends in the mean, as propagation decided; with a
        machine, for the part of one that those of its kind are in the mean, where some are combined."""
        planner = self.annotated.planner
        counted, begun = defaultdict[str, float](float), defaultdict[str, float](float)
        for each in self.first.sending:
            if each.bytes:
                counted[each.kind] += each.times
                begun[each.kind] += each.times * each.begun
        planner.weigh_combined({kind: begun[kind] / count for kind, count in counted.items()})
        if count := sum(counted.values()):
            planner.weigh_collectives(self.first.bytes / count / _COLLECTIVES)

    def _late(self) -> bool:
        return self._until is not None and monotonic() > self._until

    def _with(self, found: Found, *, again: bool = False) -> Program:
        """The program whose values have these homes; ``again``: what was gathered is gathered again where it
        is used much later."""
        plan = self.first.plan.changed_to(found.plan, again=again)
        facts = facts_of(self.annotated, plan, refuses=self._refuses, asked=False)
        return Program(facts, self.annotated, self.write, found)

    # ---- Memory -----------------------------------------------------------------------------------------

    def _modest(self, best: Program, homes: Homes) -> Program:
        """The best program, or one that costs hardly more and needs less memory, if that is much more than
        propagation's shardings need."""
        first = replace(self.first, found=best.found)  # before it is rewritten, for its memory
        if not _is_more(self._peak(best), self._peak(first), _GROWTH):
            return best
        most = _GROWTH * self._peak(first)
        tried = [best, first, *self._smaller(best, homes, most, _FEWER)]
        return min(tried, key=lambda each: each.cost * max(self._peak(each) / most, 1.0) ** _DEAR)

    def _smaller(
        self, best: Program, homes: Homes | None, memory: float, steps: int = _STEPS
    ) -> Iterator[Program]:
        """Programs that need less memory: bytes that devices hold have a price, the lowest by which the bound
        holds (bisected); and so where what is gathered is not kept."""
        known = dict[float, Found]()
        yield (program := self._with(best.found or NOTHING, again=True))
        if homes is None:
            return
        for again in (False,) if self._peak(program) <= memory else (False, True):
            low, price, high = 0.0, 1.0 / 64, 0.0
            for _ in range(steps):
                if price not in known:
                    known[price] = homes.find(memory=price, stop=self._late)
                yield (program := self._with(known[price], again=again))
                fits = self._peak(program) <= memory
                low, high = (low, price) if fits else (price, high)
                price = (low + high) / 2 if high else price * 8
                if self._late():
                    return
                if (not high and price > _DEAREST) or (high and high < low * 1.2):
                    break

    def _peak(self, program: Program) -> int:
        assert self.aim.peak is not None
        if program.module not in self._peaks:
            _ = program.cost  # of all that is sent, before some of it is not
            self._peaks[program.module] = self.aim.peak(program.made)
        return self._peaks[program.module]

    def _too_large(self, program: Program) -> TooLargeError:
        """The error where no program was found that is small enough; ``program`` is the smallest."""
        walk, memory = program.written[0], self.aim.memory or 0
        sizes = []
        for number, tensor in walk.tensors.items():
            if tensor.shape and not tensor.made:
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
    """Whether memory is more than so many times that which propagation's shardings need, and no trifle."""
    return held > max(times * decided, decided + _TRIFLE)

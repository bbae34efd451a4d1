"""Takes down what the ops of a module need, and what a plan sends, without writing a program.

The walk is the writer's (``walk.py``), but a local value is only a ``Made``: what it is made of, and how many
use it. What few ways to compute an op send by themselves (halos of windows, rows that are gathered and
reduced once more) is found by writing one such op apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ...program.elements import bits_of
from ...program.function import RESULT_SHARDING
from ...program.signature import text_of
from ..choice.choosing import Way
from ..choice.purposes import Computed, Purpose
from ..choice.variables import Need, Spot
from ..executions import Executions, has_effect
from ..layouts import Layout, Pieces, replicated
from ..plan import AS_DECIDED, Plan
from ..preparing.computations import lacking
from ..reshards import moves
from ..walk import Walk
from ..writing.building import PAIRS, Builder, Scope, sends_of
from ..writing.local.local import Site
from ..writing.local.lowerings import LOWERINGS, SENDING
from ..writing.steps import pairs_of_step
from .annotated import Annotated
from .kinds import Kind
from .knowledge import Knowledge, inside
from .reading import static_shape
from .recipes import Recipe


class Sending(NamedTuple):
    """A collective of a plan: its kind, the pieces of axes it goes over (none for a permutation of parts),
    the devices of a group, and the bytes that a device sends each time; and how often it does, None where a
    loop does not say how many turns it takes, and if such take one turn."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    known: int | None
    often: int


@dataclass(frozen=True)
class Facts:
    """What the ops of a module need, as propagation decided it, by op: each op that is computed, and each
    value that is handed on (``spots``); each value that is needed in a layout at a boundary or where control
    flows (``needs``); the values that loops carry, and the loops (``carried``); and the ops that multiply,
    with the ways in which they are computed (``computed_as``). ``sends`` are the collectives; None where how
    much is sent is known only once it is written: several permutations may become one."""

    spots: tuple[tuple[int, Spot], ...]
    needs: tuple[tuple[int, Need], ...]
    carried: Mapping[int, int]
    computed_as: tuple[tuple[int, Knowledge, Way], ...]
    sends: tuple[Sending, ...] | None


def facts_of(annotated: Annotated, plan: Plan = AS_DECIDED, *, refuses: bool = True) -> Facts:
    """The facts about a module, and what a plan for it sends. Raises RefusedError for ops that cannot run on
    each device, if it ``refuses`` them."""
    return _Recorder(annotated, plan, refuses=refuses).run()


@dataclass(slots=True, eq=False)
class Made:
    """What stands for local values: what makes them ``takes`` others, and has so many ``uses``; ``depth``
    says in how many of the loops around it they change from turn to turn. What is ``pure`` goes with its last
    use. ``sent``: the collective that makes them."""

    takes: Sequence[Made] = ()
    depth: int = 0
    pure: bool = True
    sent: _Sent | None = None
    uses: int = 0


class _Place(NamedTuple):
    """A block: whether it is the body of a loop, in how many such it is, and the block around it."""

    block: Any
    turns: bool
    depth: int
    outer: _Place | None


@dataclass(slots=True, eq=False)
class _Sent:
    """A collective, before it is known how often it runs."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    permutes: bool
    place: _Place


class _Inner(NamedTuple):
    """A collective within the way to compute an op: which result it is; -1 for one that the op uses
    itself."""

    kind: str
    pieces: Pieces
    group: int
    bytes: int
    permutes: bool
    result: int


class _Template(NamedTuple):
    """What a way to compute an op does: how often it uses each operand, what it sends, and whether all else
    in it goes with its last use."""

    uses: tuple[int, ...]
    sends: tuple[_Inner, ...]
    pure: bool


# What ops have in common that are computed by a recipe: what is known of them, how their slots lie, in which
# way
# they are computed, whether that sends something, whether they go with their last use, and have an effect.
_About = tuple[Knowledge, tuple[Layout, ...], Way, bool, bool, bool]


class _Ends(NamedTuple):
    """How a function is called: the layouts of its arguments, the values that it returns, and their
    layouts."""

    arguments: range
    takes: list[Layout]
    returned: list[int]
    gives: list[Layout]


class _Recorder(Walk):
    """Walks over a module and takes down what its ops need."""

    def __init__(self, annotated: Annotated, plan: Plan, *, refuses: bool) -> None:
        traits = annotated.chooser.reader.traits
        builder = Builder(annotated.axes, annotated.form, 0, traits)
        super().__init__(annotated, plan, builder, refuses=refuses)
        self.spots: list[tuple[int, Spot]] = []
        self.needs: list[tuple[int, Need]] = []
        self.carried: dict[int, int] = {}
        self.computed_as: list[tuple[int, Knowledge, Way]] = []
        self.sent: list[Made] = []
        self.ends: dict[str, _Ends] = {}
        self.place = _Place(None, False, 0, None)
        self.recipe: Recipe  # the last one that was taken
        self._pure, self._scope = traits.family("pure_op"), Scope(None)
        self._recipes: dict[Recipe, _About] = {}
        self._narrow: dict[int, bool] = {}  # elements of a few bits, by the numbers of types
        self._templates: dict[Any, _Template] = {}
        self._apart = ir.Module.create(ir.Location.unknown(self.old.context))  # ops that are written apart

    def run(self) -> Facts:
        """What is found."""
        func = self.functions[self.main]
        arguments, results = self.reading.boundary(func)
        if self.form == "sdy-manual" and self.axes.count > 1:
            arguments, results = self.entering_whole(arguments), self.entering_whole(results)
        ops = self._body_of(func)
        with self._in(_Place(func.regions[0].blocks[0], False, 0, None)):
            self._define_all(self.kinds.arguments(ops), arguments, [Made(pure=False) for _ in arguments])
            self.block(ops, results)
        carried, computed_as = dict(self.carried), tuple(self.computed_as)
        return Facts(tuple(self.spots), tuple(self.needs), carried, computed_as, self._sends())

    def _sends(self) -> tuple[Sending, ...] | None:
        """The collectives that are used, as ``finishing.passes.erase_unused`` leaves them."""
        used = list[_Sent]()
        for made in reversed(self.sent):
            if made.uses and made.sent:
                used.append(made.sent)
                continue
            waiting = [made]
            while waiting:
                gone = waiting.pop()
                for source in gone.takes:
                    source.uses -= 1
                for source in gone.takes:
                    if source.pure and not source.uses and source not in waiting:
                        waiting.append(source)
        if sum(each.permutes for each in used) > 1:
            return None
        counts, times = Executions(self.old, self.traits), dict[Any, tuple[int | None, int]]()
        found = list[Sending]()
        for each in reversed(used):
            if id(each.place) not in times:
                times[id(each.place)] = counts.times(each.place.block)
            found.append(Sending(each.kind, each.pieces, each.group, each.bytes, *times[id(each.place)]))
        return tuple(found)

    # ---- What becomes of what is decided ----------------------------------------------------------------

    @property
    def scope(self) -> Scope:
        """The local values that are there now."""
        return self._scope

    @property
    def flows(self) -> Mapping[str, Callable[[Any, int, Knowledge], bool | None]]:
        """What takes ops that hand values on, or make some of no data."""
        return _FLOWS

    def spread(self, number: int) -> bool:
        """Has what broadcasts a scalar made wherever it is used; whether that is done."""
        op, operands = self.kinds.ops[number], self.kinds.operands(number)
        if len(operands) != 1:
            return False
        (result,), shape = self.kinds.results(number), static_shape(op.results[0].type)
        if shape is None or static_shape(op.operands[0].type) != ():
            return False
        (home,) = self.reading.homes(op)
        self.define_made(result, shape, home, lambda layout: self._of([self.get(operands[0], replicated(0))]))
        return True

    def empty(self, number: int) -> bool:
        """Has results without elements made wherever they are used; they are no copies of the op's."""
        op = self.kinds.ops[number]
        ends = zip(self.kinds.results(number), op.results.types, self.homes(number), strict=True)
        for result, type_, home in ends:
            self.define_made(result, static_shape(type_) or (), home, _anew)
        return False

    def carry(
        self, value: int, held: Any, start: Layout, plan: moves.Plan, purpose: Purpose | None, *, stale: bool
    ) -> Any:
        """What stands for a value after the steps of a plan."""
        shape, made = self.tensors[value].shape, held
        if 0 in shape and plan.steps:  # nothing is sent of what has no elements
            return Made()
        for step in plan.steps:
            made = self._stepped(value, made, start, step)
            start = step.after
        return made

    def _stepped(self, value: int, made: Made, start: Layout, step: moves.Step) -> Made:
        """What stands for a value after a step, as ``writing/steps.py`` writes it."""
        shape, axes = self.tensors[value].shape, self.axes
        if step.kind in ("slice", "mask"):
            return self._of([made])
        group, permutes = axes.product(step.pieces), step.kind == "collective_permute"
        if permutes:
            pairs = pairs_of_step(axes, start, step.after, self.reading.manual[-1])
            if pairs is None:
                return made
            group = len(pairs)
        before, after = axes.local(shape, start.dims), axes.local(shape, step.after.dims)
        narrow = self._is_narrow(value)
        padded = step.kind == "reduce_scatter" and before[step.dim] != after[step.dim] * group
        if step.kind == "all_to_all":
            padded = before[step.to] != after[step.to] * group
        if padded or narrow:
            made = self._of([made])
        size = round(step.price * self.width(value))
        made = self._send([made], _Sent(step.kind, step.pieces, group, size, permutes, self.place))
        gathered = step.kind in ("all_gather", "all_to_all")
        cut = gathered and after[step.dim] != before[step.dim] * group
        return self._of([made]) if cut or narrow else made

    def _is_narrow(self, value: int) -> bool:
        """Whether elements of a value are sent in wider ones, for XLA packs them."""
        type_ = int(self.kinds.listing.types[value])
        if type_ not in self._narrow:
            element = ir.ShapedType(self.kinds.listing.value(value).type).element_type
            few = bits_of(str(element)) in (2, 4)
            self._narrow[type_] = few and isinstance(element, ir.IntegerType)
        return self._narrow[type_]

    def _of(self, takes: Sequence[Made], *, pure: bool = True, effect: bool = False) -> Made:
        """What stands for what is made of others; with an ``effect`` it may be something else in each
        turn."""
        depth = self.place.depth if effect else 0
        for each in takes:
            each.uses += 1
            depth = max(depth, each.depth)
        return Made(takes, depth, pure)

    def _send(self, takes: Sequence[Made], sent: _Sent) -> Made:
        made = self._of(takes, pure=False)
        while sent.place.turns and made.depth < sent.place.depth:  # it is the same in all turns
            assert sent.place.outer is not None
            sent.place = sent.place.outer
        made.sent = sent
        self.sent.append(made)
        return made

    def take(self, number: int, kind: Kind, recipe: Recipe, operands: Sequence[int]) -> bool:
        """Takes down an op that is computed, how its slots lie, and in which way it is computed."""
        known, held, factors, sends, pure, effect = self._about(number, recipe)
        results, locals_ = self.kinds.results(number), self.locals
        self.spots.append((number, Spot(known, (*operands, *results), held, recipe.free, sends)))
        self.recipe = recipe
        if known.multiplies or self.planner.prices.all_work:
            self.computed_as.append((number, known, factors))
        takes = list[Made]()
        for slot, layout, home in recipe.takes:
            value = operands[slot]
            made = locals_.get(value) if home else None
            takes.append(self.get(value, layout) if made is None else made)
        if known.lowering == "shift":
            takes.append(self.bypasses.filling(number, lambda _, of: self._of(of), self.get))
        if not recipe.kept:
            every = self.lower(self.kinds.ops[number], recipe.computed, takes)
            self.give(number, recipe, every, lambda i: None)
            return False
        made = self._of(takes, pure=pure, effect=effect)
        if recipe.at_home:
            for value, tensor in zip(results, recipe.tensors, strict=True):
                self.tensors[value], locals_[value] = tensor, made
        else:
            self.give(number, recipe, [made] * len(results), lambda i: None)
        return True

    def _about(self, number: int, recipe: Recipe) -> _About:
        """What ops have in common that are computed by a recipe."""
        if recipe not in self._recipes:
            computed, name = recipe.computed, self.kinds.ops[number].name
            taken, pure = computed.choice.taken, name in self._pure
            about = computed.known, computed.held, taken.factors, any(taken.sends), pure
            self._recipes[recipe] = (*about, has_effect(name, self.traits))
        return self._recipes[recipe]

    def keep_named(self, op: Any) -> None:
        """Functions that an op names or its regions call send nothing."""

    # ---- Ops that send something by themselves ----------------------------------------------------------

    def lower(self, op: Any, computed: Computed, values: list[Any]) -> Sequence[Any]:
        """What stands for the results of an op that is no copy."""
        sends, captured = computed.known.lowering in SENDING, list[Made]()
        if len(op.regions) or (sends and computed not in self._templates):
            self._templates[computed] = self._written(op, computed, len(values), captured)
        template = self._templates.get(computed)
        uses = [value for n, value in enumerate(values) for _ in range(template.uses[n] if template else 1)]
        takes = [*uses, *captured]
        pure = template.pure if template else op.name in self._pure
        effect = has_effect(op.name, self.traits)
        each, count = list[Made](), len(op.results)
        for sent in template.sends if template else ():
            if sent.result < 0:
                each.append(self._send(takes, _Sent(*sent[:5], self.place)))
        made = self._of([*takes, *each], pure=pure, effect=effect)
        found = [made] * count
        for sent in template.sends if template else ():
            if sent.result >= 0:
                found[sent.result] = self._send([made], _Sent(*sent[:5], self.place))
        return found

    def _written(self, op: Any, computed: Computed, operands: int, captured: list[Made]) -> _Template:
        """What a way to compute an op does, found by writing it apart."""
        builder, count = self.builder, len(op.operands)
        layouts, types = computed.choice.taken.layouts, [value.type for value in op.operands]
        locals_ = []
        for n in range(operands):
            layout = layouts[n] if n < count else replicated(0)
            shape = computed.known.shapes[n] if n < count else ()
            type_ = types[n] if n < count else builder.tensor((), ir.ShapedType(types[0]).element_type)
            if shape is not None:
                element = ir.ShapedType(type_).element_type
                type_ = builder.tensor(self.axes.local(shape, layout.dims), element)
            locals_.append(type_)
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get("apart"),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(locals_, [])),
            },
            regions=1,
            loc=op.location,
            ip=ir.InsertionPoint(self._apart.body),
        )
        block = function.regions[0].blocks.append(*locals_, arg_locs=[op.location] * len(locals_))

        def capture(value: Any) -> Any:
            made = self.captured(value)
            if made is None:
                return None
            captured.append(made)
            return block.add_argument(value.type, op.location)

        outer, before = builder.scope, len(builder.sent)
        builder.scope, builder.loc = Scope(block), op.location
        results = list(
            LOWERINGS[computed.known.lowering](Site(builder, op, computed, capture), list(block.arguments))
        )
        builder.scope = outer
        collectives = builder.sent[before:]
        del builder.sent[before:]
        sends = tuple(
            _Inner(
                *(each.kind, each.pieces, each.group, each.bytes, each.permutes),
                next((n for n, made in enumerate(results) if made == each.op.results[0]), -1),
            )
            for each in collectives
        )
        sent = {each.op for each in collectives}
        others = (inner.operation for inner in block.operations)
        pure = all(inner.name in self._pure for inner in others if inner not in sent)
        return _Template(tuple(len(list(block.arguments[n].uses)) for n in range(operands)), sends, pure)

    # ---- Blocks -----------------------------------------------------------------------------------------

    @contextmanager
    def _in(self, place: _Place) -> Iterator[None]:
        """What comes is in another block meanwhile."""
        outer = self.place, self._scope
        self.place, self._scope = place, Scope(None, None if place.outer is None else self._scope)
        yield
        self.place, self._scope = outer

    def block(
        self,
        ops: Sequence[int],
        results: Sequence[Layout] | None = None,
        to: Sequence[int] = (),
        slots: Sequence[int] | None = None,
    ) -> list[Made]:
        """Takes down the ops of a block, and returns what stands for the operands of its terminator, as
        ``Writer.block``."""
        *computed, last = ops
        for number in computed:
            self.op(number)
        if results is None:
            returned = [self.get(value, self.tensors[value].home) for value in self.kinds.operands(last)]
        else:
            returned = self.entering(last, results, to, chosen=bool(to), slots=slots)
        for each in returned:
            each.uses += 1
        return returned

    def entering(
        self,
        number: int,
        layouts: Sequence[Layout],
        to: Sequence[int] = (),
        *,
        chosen: bool = False,
        slots: Sequence[int] | None = None,
    ) -> list[Made]:
        """The operands of an op in the given layouts, as ``Writer.entering``."""
        operands, found = self.kinds.operands(number), list[Made]()
        for i in range(len(operands)) if slots is None else slots:
            self._record(number, operands[i], operands[i], layouts[i], to=to[i] if to else -1, chosen=chosen)
            found.append(self.get(operands[i], layouts[i]))
        return found

    def received(
        self,
        number: int,
        values: Sequence[int],
        given: tuple[Sequence[int], Sequence[Made], Sequence[Layout]],
        homes: Sequence[Layout],
        beside: int | None = None,
    ) -> None:
        """Takes values that an op hands on to their homes, as ``Writer.received``."""
        homes = self.settled(values, homes)
        for value, home, source, local, layout in zip(values, homes, *given, strict=True):
            self._define(value, layout, local, home)
            self._record(number, source, value, home, start=layout, to=value, chosen=True, beside=beside)
            self.get(value, home)
            if layout != home and value in self.plan.pinned:
                self.forget(value, layout)

    def _record(
        self,
        number: int,
        of: int,
        value: int,
        layout: Layout,
        *,
        start: Layout | None = None,
        to: int = -1,
        chosen: bool = False,
        beside: int | None = None,
    ) -> None:
        """Takes down that a value is needed in a layout for an op, or that one is handed on to another
        (``of``, ``to``), as propagated in this one."""
        tensor = self.tensors[value]
        if not (chosen and tensor.shape):
            self.needs.append((number, Need(of, layout)))
            return
        received = start is not None  # out of another region, of which only the value itself is known
        known = self.chooser.reader.handing_on(tensor.shape, self.width(of), received)
        known = inside(known, self.reading.manual[-1])
        free = frozenset([0] if value in self.makes else [])
        held = start or tensor.home, layout
        spot = Spot(known, (of, to), held, free, held[0] != layout and not free)
        self.spots.append((number if beside is None else beside, spot))

    def _define(self, value: int, layout: Layout, local: Made, home: Layout | None = None) -> None:
        self.define(value, self.kinds.listing.value(value).type, layout, local, home, kept=False)

    def _define_all(self, values: Sequence[int], layouts: Sequence[Layout], locals_: Sequence[Made]) -> None:
        for value, layout, local in zip(values, layouts, locals_, strict=True):
            self._define(value, layout, local)

    def _body_of(self, func: Any) -> list[int]:
        """The ops of a function."""
        (ops,) = self.kinds.blocks(self.kinds.listing.functions[text_of(func.attributes["sym_name"])])
        return ops

    def function(self, func: Any) -> _Ends:
        """The ends of a function, whose ops are taken down when it is first asked for."""
        name = text_of(func.attributes["sym_name"])
        if name not in self.ends:
            ops = self._body_of(func)
            self.enter(self.in_bodies.get(name, frozenset()))
            values = self.kinds.arguments(ops)
            arguments = self.settled(values, self.reading.boundary(func)[0])
            with self._in(_Place(func.regions[0].blocks[0], False, 0, None)):
                self._define_all(values, arguments, [Made(pure=False) for _ in values])
                self.block(ops)
            self.leave()
            returned = self.kinds.operands(ops[-1])
            gives = [self.tensors[value].home for value in returned]
            self.ends[name] = _Ends(values, arguments, returned, gives)
        return self.ends[name]


def _anew(layout: Layout) -> Made:
    """What stands for what is made of nothing."""
    return Made()


# ---- Ops that make values of no data, or hand some on ----------------------------------------------------


def _made(walk: _Recorder, number: int, known: Knowledge) -> None:
    op, (result,) = walk.kinds.ops[number], walk.kinds.results(number)
    walk.define_made(result, static_shape(op.results[0].type) or (), walk.reading.homes(op)[0], _anew)


def _identity(walk: _Recorder, number: int, known: Knowledge) -> None:
    op, (value,), (result,) = (
        walk.kinds.ops[number],
        walk.kinds.operands(number),
        walk.kinds.results(number),
    )
    (home,) = walk.reading.homes(op)
    if "sdy.sharding" not in op.attributes and not any(label in op.attributes for label in RESULT_SHARDING):
        home = walk.tensors[value].home
    if walk.tensors[value].made:
        walk.define_made(result, walk.tensors[value].shape, home, partial(walk.get, value))
        return
    walk._record(number, value, value, home, to=result)
    walk._define(result, home, walk.get(value, home))


def _nothing(walk: _Recorder, number: int, known: Knowledge) -> None:
    """For ops that matter to propagation alone."""


def _pass(walk: _Recorder, number: int, known: Knowledge) -> None:
    homes, results = walk.homes(number), walk.kinds.results(number)
    values = walk.entering(number, homes, results, chosen=True)
    name = walk.kinds.ops[number].name
    made = walk._of(values, pure=name in walk._pure, effect=has_effect(name, walk.traits))
    walk._define_all(results, homes, [made] * len(results))


def _loop(walk: _Recorder, number: int, known: Knowledge) -> None:
    op, kinds = walk.kinds.ops[number], walk.kinds
    test, body = kinds.blocks(number)
    ends = kinds.arguments(test), kinds.arguments(body), kinds.results(number)
    carried, propagated = ends[1], walk.reading.homes(op)
    homes, around, last = walk.settled(carried, propagated), list[int](), kinds.operands(body[-1])
    for slot, value in enumerate(kinds.operands(number)):
        if last[slot] != carried[slot] or not walk.tensors[value].made:
            around.append(slot)
            continue
        for numbers in ends:
            make, shape = partial(walk.get, value), walk.tensors[value].shape
            walk.define_made(numbers[slot], shape, propagated[slot], make)
    walk.carried.update((carried[slot], number) for slot in around)
    values = walk.entering(number, homes, carried, chosen=True, slots=around)
    loop = walk._of(values, pure=False, effect=True)
    some, as_propagated = ([each[slot] for slot in around] for each in (homes, propagated))
    sources = [carried[slot] for slot in around]

    def receive(numbers: range, given: Sequence[Made], beside: int | None = None) -> None:
        """Takes what the loop hands on, to its turns and to what is behind it, from where it carries it."""
        there = [numbers[slot] for slot in around]
        walk.received(number, there, (sources, given, some), as_propagated, beside)

    depth, blocks = walk.place.depth + 1, [region.blocks[0] for region in op.regions]
    with walk._in(_Place(blocks[0], False, depth, walk.place)):
        receive(ends[0], [Made(depth=depth, pure=False) for _ in around], test[-1])
        walk.block(test, [replicated(0)])
    with walk._in(_Place(blocks[1], True, depth, walk.place)):
        for slot, made in zip(around, values, strict=True):
            varies = made.depth if last[slot] == carried[slot] else depth
            walk._define(carried[slot], homes[slot], Made(depth=varies, pure=False))
        walk.block(body, homes, carried, around)
    receive(ends[2], [loop] * len(around))


def _branches(walk: _Recorder, number: int, known: Knowledge) -> None:
    op, homes, results = walk.kinds.ops[number], walk.homes(number), walk.kinds.results(number)
    which = walk.kinds.operands(number)[0]
    walk._record(number, which, which, replicated(0))
    index = walk.get(which, replicated(0))
    for region, ops in zip(op.regions, walk.kinds.blocks(number), strict=True):
        with walk._in(_Place(region.blocks[0], False, walk.place.depth, walk.place)):
            walk.block(ops, homes, results)
    made = walk._of([index], pure=False, effect=True)
    walk._define_all(results, homes, [made] * len(results))


def _call(walk: _Recorder, number: int, known: Knowledge) -> None:
    _calls(walk, number, "callee")


def _composite(walk: _Recorder, number: int, known: Knowledge) -> None:
    _calls(walk, number, "decomposition")


def _calls(walk: _Recorder, number: int, label: str) -> None:
    op, before, results = walk.kinds.ops[number], len(walk.spots), walk.kinds.results(number)
    ends = walk.function(walk.functions[ir.FlatSymbolRefAttr(op.attributes[label]).value])
    within = walk.spots[before:]
    del walk.spots[before:]
    values = walk.entering(number, ends.takes, ends.arguments, chosen=True)
    walk.spots += within  # what it does comes behind what it is given
    made = walk._of(values, pure=False, effect=True)
    homes = walk.reading.homes(op) if "sdy.sharding" in op.attributes else ends.gives
    given = ends.returned, [made] * len(results), ends.gives
    walk.received(number, results, given, homes)


def _body(walk: _Recorder, number: int, known: Knowledge) -> None:
    op, kinds = walk.kinds.ops[number], walk.kinds
    cut, entering, leaving = walk.reading.around(op)
    values = walk.entering(number, entering)
    (ops,) = kinds.blocks(number)
    walk.enter(cut)
    walk._define_all(kinds.arguments(ops), [layout.without(cut) for layout in entering], values)
    returned = walk.block(ops, [layout.without(cut) for layout in leaving])
    walk.leave()
    for each in returned:  # the body is in place of the op, and nothing ends it
        each.uses -= 1
    walk._define_all(kinds.results(number), leaving, returned)


def _collective(walk: _Recorder, number: int, known: Knowledge) -> bool:
    """A collective inside of a manual computation."""
    op, results = walk.kinds.ops[number], walk.kinds.results(number)
    kept = walk.computed(number, known)
    groups, paired = walk.reading.groups(op), PAIRS in op.attributes
    pieces = walk.axes.between(groups) if paired else walk.axes.along(groups)
    kind, known = op.name.partition(".")[2], walk.recipe.computed.known
    sizes = [
        prod(walk.axes.local(known.shapes[slot] or (), layout.dims)) * known.widths[slot]
        for slot, layout, _ in walk.recipe.takes
    ]
    sends, group = sends_of(kind, sum(sizes), groups, paired=paired)
    first = walk.find(results[0], walk.known_layouts(results[0])[0])
    sent = _Sent(kind, pieces, group, round(sends), paired, walk.place)
    while sent.place.turns and first.depth < sent.place.depth and sent.place.outer:
        sent.place = sent.place.outer
    first.sent = sent
    first.pure = False
    walk.sent.append(first)
    return kept


def _callback(walk: _Recorder, number: int, known: Knowledge) -> None:
    raise lacking(walk.kinds.ops[number])


def _device(walk: _Recorder, number: int, known: Knowledge) -> None:
    walk._define_all(walk.kinds.results(number), [replicated(0)], [Made(pure=False)])


_FLOWS: dict[str, Callable[[_Recorder, int, Knowledge], bool | None]] = {
    "constant": _made,
    "iota": _made,
    "identity": _identity,
    "nothing": _nothing,
    "pass": _pass,
    "loop": _loop,
    "branches": _branches,
    "call": _call,
    "composite": _composite,
    "body": _body,
    "collective": _collective,
    "device": _device,
    "callback": _callback,
}

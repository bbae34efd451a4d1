"""Records what the ops of a module need, and decides each reshard of a plan, without writing a program.

The walk is the writer's (``walk.py``), but a local value is only a ``Made``: its operands and its number of
users. A few ways to compute an op send data inside (halos of windows, rows that are gathered and reduced once
more). For these, one such op is written on its own, to see what it sends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...program.elements import bits_of
from ...program.function import location
from ...program.ids import Slot
from ...program.mlir.types import FunctionOp, Operation, Value
from ...program.signature import text_of
from ..choice.choosing import Choice, Way
from ..choice.purposes import Computed, Purpose, Use, purpose_of
from ..choice.variables import Need, Spot
from ..executions import Executions, has_effect
from ..layouts import Layout, replicated
from ..plan import Plan, Reshard, Role
from ..reshards import moves
from ..walk import RefusedError, Walk, purpose_of_reshard
from ..writing.building import Builder, Scope, bytes_of
from ..writing.local.local import LocalSite
from ..writing.local.lowerings import LOWERINGS, SENDING
from ..writing.steps import pairs_of_step
from .annotated import Annotated
from .bypasses import Bypasses
from .knowledge import Knowledge, inside
from .made import Inner, Made, Nesting, Sending, SentOnce, Template, anew, sendings
from .reading import Reading, static_shape
from .recipes import Chosen, Recipe, Recipes


@dataclass(frozen=True, eq=False)
class Decided:
    """A plan with everything that the writer needs: the ``plan`` with its reshards; and ``ops``, the recipe
    of each op, by number. An op that passes values on, or needs no data, has knowledge instead. An op that
    others skip has None. ``within`` are the recipes of ops that do both, and ``reads`` the operands of ops
    that skip others. ``repeated`` are, in order, the ops that are computed once more in place of a reshard.
    ``reading``, ``bypasses`` and ``recipes`` are those of the decision."""

    plan: Plan
    ops: Sequence[Recipe | Knowledge | None]
    within: Mapping[int, Recipe]
    reads: Mapping[int, Sequence[int]]
    repeated: Sequence[Computed]
    reading: Reading
    bypasses: Bypasses
    recipes: Recipes


@dataclass(frozen=True)
class Facts:
    """The needs of the ops of a module under a plan. ``spots`` are the ops that are computed, and values that
    are passed on. ``needs`` are values that are needed in a layout, at a boundary or by control flow.
    ``carried`` are the values that loops carry, and their loops. ``computed_as`` are contractions, or with a
    machine all ops, and how they are computed. ``sends`` are the collectives of the plan, or None if that is
    unknown before the program is written, because permutations may be merged. ``sent`` are the same with
    their operands; if they are ``in_turn``, none is a permutation, and each needs the one before and is
    beside it. ``decided`` is the plan with its
    reshards."""

    spots: tuple[tuple[int, Spot], ...]
    needs: tuple[tuple[int, Need], ...]
    carried: Mapping[int, int]
    computed_as: tuple[tuple[int, Computed], ...]
    sends: tuple[Sending, ...] | None
    sent: Sequence[Made] = field(repr=False)
    in_turn: bool
    decided: Decided

    def are_in(self, block: ir.Block) -> bool:
        """Whether all collectives are in a block."""
        return all(each.sent is not None and each.sent.place.block == block for each in self.sent)


# The common facts of ops that are computed by a recipe: the rules' knowledge, the layouts of slots, the way,
# whether it sends something, whether it disappears with its last use, whether it has an effect, and its name.
_About = tuple[Knowledge, tuple[Layout, ...], Way, bool, bool, bool, str]


class _Effect(NamedTuple):
    """The effect of a step of a reshard: the devices of a group (-1: it is no collective), the bytes that a
    device sends, and whether ops come before and behind the collective."""

    group: int = -1
    bytes: int = 0
    before: bool = False
    behind: bool = False


class RecordedEnds(NamedTuple):
    """The ends of a function: the layouts of its arguments, the values that it returns, and their layouts."""

    arguments: range
    takes: list[Layout]
    returned: list[int]
    gives: list[Layout]


class Recorder(Walk):
    """Walks over a module and records what its ops need.

    ``flows`` process ops that pass values on, by their lowering (``flow.py``). Ops that cannot run on each
    device raise RefusedError, if it ``refuses`` them. ``asked``: the needs of ops are recorded.
    """

    def __init__(
        self,
        annotated: Annotated,
        plan: Plan,
        flows: Mapping[str, Callable[[Recorder, int, Knowledge], bool | None]],
        *,
        refuses: bool,
        asked: bool = True,
    ) -> None:
        traits = annotated.chooser.reader.traits
        builder = Builder(annotated.axes, annotated.form, 0, traits)
        reading = Reading(annotated.shardings, annotated.axes)
        kinds, chooser = annotated.kinds, annotated.chooser
        bypasses = Bypasses(kinds, chooser.reader, annotated.functions, reading)
        recipes = Recipes(chooser, reading, builder)
        super().__init__(annotated, plan, builder, reading, bypasses, recipes)
        self.refuses, self.asked, self._flows = refuses, asked, flows
        self.spots: list[tuple[int, Spot]] = []
        self.needs: list[tuple[int, Need]] = []
        self.carried: dict[int, int] = {}
        self.computed_as: list[tuple[int, Computed]] = []
        self.sent: list[Made] = []
        self.in_turn = True
        self.ends: dict[str, RecordedEnds] = {}
        self.place = Nesting(None, False, 0, None)
        self.recipe: Recipe  # the last one that was processed
        self.pure, self._scope = traits.family("pure_op"), Scope(None)
        self._ops: list[Recipe | Knowledge | None] = [None] * len(kinds.ops)
        self._within: dict[int, Recipe] = {}
        self._ways: dict[int, Way] = {}
        self._reads: dict[int, Sequence[int]] = {}
        self._reshards: list[Reshard] = []
        self._given = None if plan.reshards is None else iter(plan.reshards)
        self._repeated: list[Computed] = []
        self._widths: dict[int, int] = {}  # of elements, by the numbers of types
        self._recipes: dict[Recipe, _About] = {}
        self._narrow: dict[int, bool] = {}  # elements of a few bits, by the numbers of types
        self._templates: dict[Any, Template] = {}
        self._routes: dict[Any, tuple[moves.Route, Layout]] = {}  # the cheapest, of equal reshards once
        self._effects: dict[Any, tuple[moves.Step, _Effect | None]] = {}  # which keep the steps
        self._apart = ir.Module.create(
            ir.Location.unknown(self.old.context)
        )  # ops that are written on their own

    def run(self) -> Facts:
        """The facts."""
        func = self.functions[self.main]
        arguments, results = self.reading.boundary(func)
        if self.form == "sdy-manual" and self.axes.count > 1:
            arguments, results = self.entering_whole(arguments), self.entering_whole(results)
        ops = self._body_of(func)
        with self.inside(Nesting(func.regions[0].blocks[0], False, 0, None)):
            self.define_all(self.kinds.arguments(ops), arguments, [Made(pure=False) for _ in arguments])
            self.block(ops, results)
        if self._given is not None and next(self._given, None) is not None:
            raise _unfit("it has reshards that no op asks for")
        counts = Executions(self.old, self.traits)
        return Facts(
            tuple(self.spots),
            tuple(self.needs),
            dict(self.carried),
            tuple(self.computed_as),
            sendings(self.sent, counts.times),
            self.sent,
            self.in_turn,
            Decided(
                self.plan.decided(tuple(self._reshards), self._ways),
                self._ops,
                self._within,
                self._reads,
                self._repeated,
                self.reading,
                self.bypasses,
                self.recipes,
            ),
        )

    @property
    def scope(self) -> Scope:
        """The local values that exist now."""
        return self._scope

    # ---- Reshards ---------------------------------------------------------------------------------------

    def reshard(self, value: int, layout: Layout, use: Use | None, *, stale: bool) -> Reshard:
        """How a value gets to a layout: from the cheapest layout in which it exists here, or by making it
        again; or as the plan says, if it has reshards."""
        if self._given is not None:
            decided = next(self._given, None)
            if decided is None or (decided.value, decided.goal) != (value, layout):
                raise _unfit("an op asks for a reshard that it does not have")
            if decided.start is None:
                self._repeated.append(self._computed_once_more(decided))
        else:
            decided = self._decided(value, layout, use, stale)
        self._reshards.append(decided)
        return decided

    def _decided(self, value: int, layout: Layout, use: Use | None, stale: bool) -> Reshard:
        starts = [
            other
            for other in self.known_layouts(value)
            if not (stale and other == layout) and self.find(value, other) is not None
        ]
        width, first = self._width(value), self.copied_first.get(value)
        if first is not None and first != layout and first not in starts:
            starts.append(first)
        plan, start = self._cheapest(value, starts, layout, width)
        op, slot, role = self._served(value, use)
        if plan.price:
            computed = self._cheaper_anew(value, layout, self.planner.with_steps(plan, width))
            if computed is not None:
                self._repeated.append(computed)
                return Reshard(op, slot, role, value, None, layout, way=computed.choice.taken.factors)
        return Reshard(op, slot, role, value, start, layout, plan.steps)

    def _served(self, value: int, use: Use | None) -> tuple[int, Slot, Role]:
        """The op and the slot that a reshard serves, and its role there."""
        if use is None:
            definer = max(self.kinds.definer(value), 0)
            return definer, Slot(len(self.kinds.operands(definer))), "shared"
        if use.computed is not None:
            return (
                use.op,
                use.slot,
                "result" if use.computed.knowledge.roles[use.slot] == "result" else "operand",
            )
        return use.op, use.slot, "handed on" if use.to >= 0 else "needed"

    def _width(self, value: int) -> int:
        """The bytes of an element of a value."""
        type_ = int(self.kinds.listing.types[value])
        if type_ not in self._widths:
            held: Any = self.kinds.listing.value(value).type
            self._widths[type_] = bytes_of(getattr(held, "element_type", held))
        return self._widths[type_]

    def _cheapest(
        self, value: int, starts: Sequence[Layout], layout: Layout, width: int
    ) -> tuple[moves.Route, Layout]:
        """The cheapest way from one of several layouts to another, and the layout that it starts from."""
        shape, taken = self.tensors[value].shape, self.reading.manual[-1]
        key = shape, width, taken, layout, *starts
        best = self._routes.get(key)
        if best is None:
            planner = self.planner
            routes = ((planner.route(shape, start, layout, taken), start) for start in starts)
            ways = ((planner.best(route, width), start) for route, start in routes)
            best = self._routes[key] = min(ways, key=lambda pair: planner.with_steps(pair[0], width))
        return best

    def _cheaper_anew(self, value: int, layout: Layout, price: float) -> Computed | None:
        """How an op that repeats a smaller value is computed once more, if sending the result costs more."""
        number = self.kinds.definer(value)
        if (
            layout.partial
            or number < 0
            or self.kinds.ops[number].name not in self.traits.family("broadcast_op")
        ):
            return None
        operands = self.kinds.operands(number)
        if len(operands) != 1 or operands[0] not in self.tensors or self.tensors[operands[0]].dataless:
            return None
        computed = self._computed_at(number, layout)
        needed, given = computed.choice.taken.layouts
        if given != layout:
            return None
        width = self._width(operands[0])
        here = [each for each in self.known_layouts(operands[0]) if self.find(operands[0], each) is not None]
        plan, _ = self._cheapest(operands[0], here, needed, width)
        return computed if self.planner.with_steps(plan, width) < price else None

    def _computed_at(self, number: int, layout: Layout, way: Way | None = None) -> Computed:
        """How an op with one operand and one result is computed for a layout of the result."""
        knowledge = self.chooser.reader.knowledge(self.kinds.ops[number])
        if self.reading.manual[-1]:
            knowledge = inside(knowledge, self.reading.manual[-1])
        held = self.tensors[self.kinds.operands(number)[0]].home, layout
        choice: Choice = self.chooser.choose(knowledge, held, frozenset())
        if way is not None and choice.taken.factors != way:
            choice = self.chooser.choose(knowledge, held, frozenset(), way)
        return Computed(knowledge, held, choice)

    def _computed_once_more(self, reshard: Reshard) -> Computed:
        """How an op is computed once more, as the plan says."""
        number = self.kinds.definer(reshard.value)
        operands = self.kinds.operands(number) if number >= 0 else []
        if len(operands) != 1 or operands[0] not in self.tensors:
            raise _unfit("it makes a value once more that no op repeats")
        return self._computed_at(number, reshard.goal, reshard.way)

    def repeated(self, reshard: Reshard) -> Computed:
        """How the op that makes a value is computed once more."""
        return self._repeated[-1]

    def carry(self, held: Any, reshard: Reshard, use: Use | None, *, stale: bool) -> Any:
        """The stand-in for a value after the steps of a reshard."""
        stand_in, start, value = held, reshard.start, reshard.value
        assert start is not None
        if 0 in self.tensors[value].shape and reshard.steps:  # a value without elements is never sent
            return Made()
        purpose = partial(purpose_of_reshard, self.kinds, reshard, use)
        for step in reshard.steps:
            stand_in = self._stepped(value, stand_in, start, step, purpose)
            start = step.after
        return stand_in

    def _stepped(
        self, value: int, stand_in: Made, start: Layout, step: moves.Step, purpose: Callable[[], Purpose]
    ) -> Made:
        """The stand-in for a value after a step, as ``writing/steps.py`` writes it."""
        key = int(self.kinds.listing.types[value]), self.reading.manual[-1], start, id(step)
        _, effect = self._effects.get(key) or self._effects.setdefault(
            key, (step, self._effect(value, start, step))
        )
        if effect is None:
            return stand_in
        if effect.group < 0:
            return self.made_of([stand_in], what=step.kind)
        if effect.before:
            stand_in = self.made_of([stand_in])
        sent = SentOnce(
            *(step.kind, step.pieces, effect.group, effect.bytes, step.kind == "collective_permute"),
            *(self.place, purpose),
        )
        stand_in = self._send([stand_in], sent)
        return self.made_of([stand_in]) if effect.behind else stand_in

    def _effect(self, value: int, start: Layout, step: moves.Step) -> _Effect | None:
        """The effect of a step on values like this one; None if it changes nothing."""
        shape, axes = self.tensors[value].shape, self.axes
        if step.kind in ("slice", "mask"):
            return _Effect()
        group = axes.product(step.pieces)
        if step.kind == "collective_permute":
            pairs = pairs_of_step(axes, start, step.after, self.reading.manual[-1])
            if pairs is None:
                return None
            group = len(pairs)
        before, after = axes.local(shape, start.dims), axes.local(shape, step.after.dims)
        narrow = self._is_narrow(value)
        padded = step.kind == "reduce_scatter" and before[step.dim] != after[step.dim] * group
        if step.kind == "all_to_all":
            padded = before[step.to] != after[step.to] * group
        gathered = step.kind in ("all_gather", "all_to_all")
        cut = gathered and after[step.dim] != before[step.dim] * group
        return _Effect(group, round(step.price * self._width(value)), padded or narrow, cut or narrow)

    def _is_narrow(self, value: int) -> bool:
        """Whether a value is widened before it is sent, because XLA packs its elements."""
        type_ = int(self.kinds.listing.types[value])
        if type_ not in self._narrow:
            element = ir.ShapedType(self.kinds.listing.value(value).type).element_type
            few = bits_of(str(element)) in (2, 4)
            self._narrow[type_] = few and isinstance(element, ir.IntegerType)
        return self._narrow[type_]

    def made_of(
        self, takes: Sequence[Made], *, pure: bool = True, effect: bool = False, what: str = ""
    ) -> Made:
        """The stand-in for a value made from others. With an ``effect`` it may differ in each iteration."""
        depth, last = self.place.depth if effect else 0, -1
        for each in takes:
            each.uses += 1
            if each.depth > depth:
                depth = each.depth
            if each.last > last:
                last = each.last
        return Made(takes, depth, pure, what, last=last)

    def _send(self, takes: Sequence[Made], sent: SentOnce) -> Made:
        stand_in = self.made_of(takes, pure=False, what=sent.kind)
        sent.put_before_loops(stand_in.depth)
        stand_in.sent, number = sent, len(self.sent)
        before = self.sent[-1].sent if self.sent else None
        beside = before is None or before.place is sent.place
        in_turn = beside and sent.put < 0 and stand_in.last == number - 1
        self.in_turn = self.in_turn and in_turn and not sent.permutes
        stand_in.last = number
        self.sent.append(stand_in)
        return stand_in

    # ---- Ops --------------------------------------------------------------------------------------------

    def op(self, number: int) -> bool:
        """Processes an op. Returns whether its op in the device program is the copy of it."""
        self.clock += 1
        kinds, reader = self.kinds, self.chooser.reader
        kind = kinds.of(number, reader)
        knowledge = kind.knowledge or reader.knowledge(kinds.ops[number])
        if self.reading.manual[-1]:
            knowledge = inside(knowledge, self.reading.manual[-1])
        operands = kinds.operands(number)
        reads = knowledge.reads or knowledge.lowering == "call" or self.bypasses.touch(kinds.results(number))
        if reads and self.bypasses.take(number, knowledge):
            return False
        if self.bypasses.touch(operands):
            knowledge, operands = self.bypasses.reading(number, knowledge)
            self._reads[number] = operands
        flow = self._flows.get(knowledge.lowering)
        if flow is None:
            recipe = self.recipes.find(kind, knowledge, map(self.tensors.get, operands), self._chosen(number))
            if recipe is not None:
                return self.take(number, recipe, operands)
        op = kinds.ops[number]
        if knowledge.refused and self.refuses:
            hint = f"{op.name} cannot be partitioned: {knowledge.refused}"
            raise RefusedError(f"{op.name} cannot run on each device", where=location(op), hint=hint)
        self.builder.loc = op.location
        if flow is None:
            return self.computed(number, knowledge, operands)
        kept = bool(flow(self, number, knowledge))
        if isinstance(within := self._ops[number], Recipe):
            self._within[number] = within
        self._ops[number] = knowledge
        return kept

    def computed(self, number: int, knowledge: Knowledge, operands: list[int] | None = None) -> bool:
        """Processes an op that is computed, in the cheapest way. Returns whether its op is the copy of it."""
        if (knowledge.expands and self._spread(number)) or knowledge.gives_nothing:
            self._ops[number] = knowledge
            if knowledge.gives_nothing:
                self._empty(number)
            return False
        kind, op = self.kinds.of(number, self.chooser.reader), self.kinds.ops[number]
        operands = self.kinds.operands(number) if operands is None else operands
        tensors = [self.tensors[value] for value in operands]
        recipe = self.recipes.of(op, kind, knowledge, tensors, self._chosen(number))
        return self.take(number, recipe, operands)

    def _chosen(self, number: int) -> Chosen:
        """The choice for an op among all ops."""
        homes, ways = self.plan.homes, self.plan.ways
        if not homes and not ways:
            return None
        results = self.kinds.results(number)
        if len(results) == 1:  # most have one
            return (homes.get(results.start),), ways.get(results.start)
        return tuple([homes.get(value) for value in results]), ways.get(results[0]) if results else None

    def _spread(self, number: int) -> bool:
        """Has the broadcast of a scalar made wherever it is used. Returns whether it does."""
        op, operands = self.kinds.ops[number], self.kinds.operands(number)
        if len(operands) != 1:
            return False
        (result,), shape = self.kinds.results(number), static_shape(op.results[0].type)
        if shape is None or static_shape(op.operands[0].type) != ():
            return False
        (home,) = self.reading.homes(op)
        self.define_made(
            result, shape, home, lambda layout: self.made_of([self.get(operands[0], replicated(0))])
        )
        return True

    def _empty(self, number: int) -> None:
        """Has results without elements made wherever they are used. They are not copies of the op's."""
        op = self.kinds.ops[number]
        ends = zip(self.kinds.results(number), op.results.types, self.homes(number), strict=True)
        for result, type_, home in ends:
            self.define_made(result, static_shape(type_) or (), home, anew)

    def take(self, number: int, recipe: Recipe, operands: Sequence[int]) -> bool:
        """Records an op that is computed, the layouts of its slots, and its way."""
        about = self._recipes.get(recipe) or self._about(number, recipe)
        knowledge, held, factors, sends, pure, effect, name = about
        results, locals_ = self.kinds.results(number), self.locals
        self._ops[number] = self.recipe = recipe
        if results:
            self._ways[results.start] = factors
        if self.asked:
            self.spots.append((number, Spot(knowledge, (*operands, *results), held, recipe.free, sends)))
        if knowledge.multiplies or self.planner.prices.all_work:
            self.computed_as.append((number, recipe.computed))
        takes, known_here = list[Made](), self._scope.find
        for slot, layout, home in recipe.takes:
            value = operands[slot]
            operand = locals_.get(value) if home else None
            if operand is None and ((operand := known_here((value, layout))) is None or self.plan.again):
                operand = self.get(value, layout, Use(number, slot, value, recipe.computed))
            takes.append(operand)
        if knowledge.lowering == "shift":
            takes.append(self.bypasses.filling(number, lambda _, of: self.made_of(of), self.get))
        if not recipe.kept:
            every = self.lower(self.kinds.ops[number], recipe.computed, takes)
            self.give(number, recipe, every, len(operands))
            return False
        operand = self.made_of(takes, pure=pure, effect=effect, what=name)
        if recipe.at_home:
            for value, tensor in zip(results, recipe.tensors, strict=True):
                self.tensors[value], locals_[value] = tensor, operand
        else:
            self.give(number, recipe, [operand] * len(results), len(operands))
        return True

    def _about(self, number: int, recipe: Recipe) -> _About:
        """The common facts of ops that are computed by a recipe."""
        computed, name = recipe.computed, self.kinds.ops[number].name
        taken, pure = computed.choice.taken, name in self.pure
        about = computed.knowledge, computed.held, taken.factors, any(taken.sends), pure
        about_all = self._recipes[recipe] = (*about, has_effect(name, self.traits), name)
        return about_all

    # ---- Ops that send data inside ----------------------------------------------------------------------

    def lower(self, op: Operation, computed: Computed, values: list[Any]) -> Sequence[Any]:
        """The stand-ins for the results of an op that is not a copy."""
        sends, captured = computed.knowledge.lowering in SENDING, list[Made]()
        if len(op.regions) or (sends and computed not in self._templates):
            self._templates[computed] = self._written(op, computed, len(values), captured)
        template = self._templates.get(computed)
        uses = [value for n, value in enumerate(values) for _ in range(template.uses[n] if template else 1)]
        takes = [*uses, *captured]
        pure = template.pure if template else op.name in self.pure
        effect = has_effect(op.name, self.traits)
        each, count, inner = list[Made](), len(op.results), template.sends if template else ()
        slots = {sent.slot for sent in inner}
        serves = {slot: partial(purpose_of, op, computed, slot) for slot in slots}
        for sent in inner:
            if sent.result < 0:
                each.append(self._send(takes, SentOnce(*sent[:5], self.place, serves[sent.slot])))
        result = self.made_of([*takes, *each], pure=pure, effect=effect, what=op.name)
        result.last = -1  # its ops may need some operands alone
        self.in_turn = self.in_turn and not inner
        results = [result] * count
        for sent in inner:
            if sent.result >= 0:
                once = SentOnce(*sent[:5], self.place, serves[sent.slot])
                results[sent.result] = self._send([result], once)
        return results

    def _written(self, op: Operation, computed: Computed, operands: int, captured: list[Made]) -> Template:
        """The effects of computing an op in a way, found by writing it on its own."""
        builder, count = self.builder, len(op.operands)
        layouts, types = computed.choice.taken.layouts, [value.type for value in op.operands]
        locals_ = []
        for n in range(operands):
            layout = layouts[n] if n < count else replicated(0)
            shape = computed.knowledge.shapes[n] if n < count else ()
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

        def capture(value: Value) -> Any:
            captured_value = self.captured(value)
            if captured_value is None:
                return None
            captured.append(captured_value)
            return block.add_argument(value.type, op.location)

        outer, before = builder.scope, len(builder.sent)
        builder.scope, builder.loc = Scope(block), op.location
        results = list(
            LOWERINGS[computed.knowledge.lowering](
                LocalSite(builder, op, computed, capture), list(block.arguments)
            )
        )
        builder.scope = outer
        collectives = builder.sent[before:]
        del builder.sent[before:]
        sends = tuple(
            Inner(
                *(each.kind, each.pieces, each.group, each.bytes, each.permutes),
                each.purpose.slot if each.purposes else Slot(count),
                next((n for n, result in enumerate(results) if result == each.op.results[0]), -1),
            )
            for each in collectives
        )
        sent = {each.op for each in collectives}
        others = (inner.operation for inner in block.operations)
        pure = all(inner.name in self.pure for inner in others if inner not in sent)
        return Template(tuple(len(list(block.arguments[n].uses)) for n in range(operands)), sends, pure)

    # ---- Blocks -----------------------------------------------------------------------------------------

    @contextmanager
    def inside(self, place: Nesting) -> Iterator[None]:
        """From here on, ops are in another block."""
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
        """Processes the ops of a block. Returns the stand-ins for the operands of its terminator, like
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

    def note(self, use: Use, value: int, layout: Layout, *, start: Layout | None = None) -> None:
        """Records that an op needs a value in a layout, or that a value is passed on to another one, which
        propagation gave this layout."""
        if not self.asked:
            return
        tensor = self.tensors[value]
        if not (use.chosen and tensor.shape):
            self.needs.append((use.op, Need(use.value, layout)))
            return
        received = start is not None  # from another region, where only its home exists
        knowledge = self.chooser.reader.handing_on(tensor.shape, self._width(use.value), received)
        knowledge = inside(knowledge, self.reading.manual[-1])
        free = frozenset([Slot(0)] if value in self.makes else [])
        held = start or tensor.home, layout
        spot = Spot(knowledge, (use.value, use.to), held, free, held[0] != layout and not free)
        self.spots.append((use.op if use.beside < 0 else use.beside, spot))

    def _body_of(self, func: Operation) -> list[int]:
        """The ops of a function."""
        (ops,) = self.kinds.blocks(self.kinds.listing.functions[text_of(func.attributes["sym_name"])])
        return ops

    def function(self, func: FunctionOp) -> RecordedEnds:
        """The ends of a function. Its ops are processed at the first request."""
        name = text_of(func.attributes["sym_name"])
        if name not in self.ends:
            ops = self._body_of(func)
            self.enter(self.in_bodies.get(name, frozenset()))
            values = self.kinds.arguments(ops)
            arguments = self.settled(values, self.reading.boundary(func)[0])
            with self.inside(Nesting(func.regions[0].blocks[0], False, 0, None)):
                self.define_all(values, arguments, [Made(pure=False) for _ in values])
                self.block(ops)
            self.leave()
            returned = self.kinds.operands(ops[-1])
            gives = [self.tensors[value].home for value in returned]
            self.ends[name] = RecordedEnds(values, arguments, returned, gives)
        return self.ends[name]


def _unfit(why: str) -> ShardlogError:
    """The error for a plan whose reshards do not fit the module."""
    hint = "make the plan anew for this module"
    return ShardlogError(f"the plan does not fit the module: {why}", where="plan", hint=hint)

"""Ops that need no data, and ops that pass values on, as the recorder sees them: what stands for their
results. ``writing/local/flow.py`` writes these ops, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod

from jaxlib.mlir import ir

from ...program.function import RESULT_SHARDING
from ...program.ids import Slot
from ..choice.purposes import Purpose, Use
from ..executions import has_effect
from ..layouts import replicated
from ..plan import AS_DECIDED, Plan
from ..preparing.computations import lacking
from ..writing.building import PAIRS, sends_of
from .annotated import Annotated
from .knowledge import Knowledge
from .made import Made, Nesting, SentOnce, anew, results_of
from .reading import static_shape
from .recording import Facts, Recorder


def _made(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    op, (result,) = walk.kinds.ops[number], walk.kinds.results(number)
    walk.define_made(result, static_shape(op.results[0].type) or (), walk.reading.homes(op)[0], anew)


def _identity(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    op, (value,), (result,) = (
        walk.kinds.ops[number],
        walk.kinds.operands(number),
        walk.kinds.results(number),
    )
    (home,) = walk.reading.homes(op)
    if "sdy.sharding" not in op.attributes and not any(label in op.attributes for label in RESULT_SHARDING):
        home = walk.tensors[value].home
    if walk.tensors[value].dataless:
        walk.define_made(result, walk.tensors[value].shape, home, partial(walk.get, value))
        return
    use = Use(number, Slot(0), value, to=result)
    walk.note(use, value, home)
    walk.define(result, home, walk.get(value, home, use))


def _nothing(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    """Ops that matter only to propagation."""


def _pass(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    homes, results = walk.homes(number), walk.kinds.results(number)
    values = walk.entering(number, homes, results, chosen=True)
    name = walk.kinds.ops[number].name
    given_on = walk.made_of(values, pure=name in walk.pure, effect=has_effect(name, walk.traits))
    walk.define_all(results, homes, [given_on] * len(results))


def _loop(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    op, kinds = walk.kinds.ops[number], walk.kinds
    test, body = kinds.blocks(number)
    ends = kinds.arguments(test), kinds.arguments(body), kinds.results(number)
    carried, propagated = ends[1], walk.reading.homes(op)
    homes, around, last = walk.settled(carried, propagated), list[int](), kinds.operands(body[-1])
    for slot, value in enumerate(kinds.operands(number)):
        if last[slot] != carried[slot] or not walk.tensors[value].dataless:
            around.append(slot)
            continue
        for numbers in ends:
            make, shape = partial(walk.get, value), walk.tensors[value].shape
            walk.define_made(numbers[slot], shape, propagated[slot], make)
    walk.carried.update((carried[slot], number) for slot in around)
    values = walk.entering(number, homes, carried, chosen=True, slots=around)
    loop = walk.made_of(values, pure=False, effect=True)
    some, as_propagated = ([each[slot] for slot in around] for each in (homes, propagated))
    sources = [carried[slot] for slot in around]

    def receive(numbers: range, given: Sequence[Made], beside: int = -1) -> None:
        """Takes values that a loop passes on, to its iterations and to later ops, from the layout in which it
        carries them."""
        there = [numbers[slot] for slot in around]
        walk.received(number, there, (sources, given, some), as_propagated, beside)

    depth, blocks = walk.place.depth + 1, [region.blocks[0] for region in op.regions]
    before = len(walk.sent)
    with walk.inside(Nesting(blocks[0], False, depth, walk.place, before)):
        receive(ends[0], [Made(depth=depth, pure=False) for _ in around], test[-1])
        walk.block(test, [replicated(0)])
    with walk.inside(Nesting(blocks[1], True, depth, walk.place, before)):
        for slot, next_value in zip(around, values, strict=True):
            same = next_value if last[slot] == carried[slot] else None
            argument = Made(depth=same.depth if same else depth, pure=False, same=same)
            walk.define(carried[slot], homes[slot], argument)
        walk.block(body, homes, carried, around)
    receive(ends[2], results_of(loop, len(around)))


def _branches(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    op, homes, results = walk.kinds.ops[number], walk.homes(number), walk.kinds.results(number)
    which = walk.kinds.operands(number)[0]
    use = Use(number, Slot(0), which)
    walk.note(use, which, replicated(0))
    index = walk.get(which, replicated(0), use)
    for value, several in walk.of_several(number):
        walk.get(value, walk.copied_first[value], several)
    for region, ops in zip(op.regions, walk.kinds.blocks(number), strict=True):
        with walk.inside(Nesting(region.blocks[0], False, walk.place.depth, walk.place)):
            walk.block(ops, homes, results)
    result = walk.made_of([index], pure=False, effect=True)
    walk.define_all(results, homes, results_of(result, len(results)))


def _call(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    _calls(walk, number, "callee")


def _composite(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    _calls(walk, number, "decomposition")


def _calls(walk: Recorder, number: int, label: str) -> None:
    op, before, results = walk.kinds.ops[number], len(walk.spots), walk.kinds.results(number)
    ends = walk.function(walk.functions[ir.FlatSymbolRefAttr(op.attributes[label]).value])
    within = walk.spots[before:]
    del walk.spots[before:]
    values = walk.entering(number, ends.takes, ends.arguments, chosen=True)
    walk.spots += within  # its body comes after its operands
    result = walk.made_of(values, pure=False, effect=True)
    homes = walk.reading.homes(op) if "sdy.sharding" in op.attributes else ends.gives
    given = ends.returned, results_of(result, len(results)), ends.gives
    walk.received(number, results, given, homes)


def _body(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    op, kinds = walk.kinds.ops[number], walk.kinds
    cut, entering, leaving = walk.reading.around(op)
    values = walk.entering(number, entering)
    (ops,) = kinds.blocks(number)
    walk.enter(cut)
    walk.define_all(kinds.arguments(ops), [layout.without(cut) for layout in entering], values)
    returned = walk.block(ops, [layout.without(cut) for layout in leaving])
    walk.leave()
    for each in returned:  # the body replaces the op, without a terminator
        each.uses -= 1
    walk.define_all(kinds.results(number), leaving, returned)


def _collective(walk: Recorder, number: int, knowledge: Knowledge) -> bool:
    """A collective inside of a manual computation."""
    op, results = walk.kinds.ops[number], walk.kinds.results(number)
    kept = walk.computed(number, knowledge)
    groups, paired = walk.reading.groups(op), PAIRS in op.attributes
    pieces = walk.axes.between(groups) if paired else walk.axes.along(groups)
    kind, knowledge = op.name.partition(".")[2], walk.recipe.computed.knowledge
    sizes = [
        prod(walk.axes.local(knowledge.shapes[slot] or (), layout.dims)) * knowledge.widths[slot]
        for slot, layout, _ in walk.recipe.takes
    ]
    sends, group = sends_of(kind, sum(sizes), groups, paired=paired)
    first = walk.find(results[0], walk.known_layouts(results[0])[0])
    purpose = partial(Purpose, op, Slot(0), op.operands[0])
    sent = SentOnce(kind, pieces, group, round(sends), paired, walk.place, purpose)
    sent.put_before_loops(first.depth)
    first.sent = sent
    first.pure = False
    walk.sent.append(first)
    return kept


def _callback(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    raise lacking(walk.kinds.ops[number])


def _device(walk: Recorder, number: int, knowledge: Knowledge) -> None:
    walk.define_all(walk.kinds.results(number), [replicated(0)], [Made(pure=False)])


FLOWS: dict[str, Callable[[Recorder, int, Knowledge], bool | None]] = {
    "constant": _made,
    "empty": _made,
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


def facts_of(
    annotated: Annotated, plan: Plan = AS_DECIDED, *, refuses: bool = True, asked: bool = True
) -> Facts:
    """The collectives of a plan for a module, and if ``asked`` also the needs of its ops.

    Raises RefusedError for ops that cannot run on each device, if it ``refuses`` them. Raises ShardlogError
    if the plan has reshards that do not fit the module.
    """
    return Recorder(annotated, plan, FLOWS, refuses=refuses, asked=asked).run()

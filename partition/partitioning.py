"""From an annotated module to the program that each device runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..collector import no_collections
from ..errors import ShardlogError
from ..program.carried import PARTIAL, check_carried, with_partial
from ..program.function import RESULT_SHARDING
from ..program.meshes import MOST_DEVICES
from ..program.mlir.modules import boundary_attributes
from ..program.mlir.types import Value
from ..program.shardings import Sharding, Shardings
from ..rulebook.book import RuleBook
from .choice.choosing import Chooser
from .device_program import DeviceProgram
from .facts.annotated import Annotated
from .facts.kinds import Kinds
from .facts.reading import static_shape
from .facts.recording import Decided
from .forms import Form
from .improving import Aim, Improving
from .layouts import Axes, Layout
from .plan import Plan
from .preparing.calls import Unshared
from .preparing.preparing import Preparing
from .reshards.ordered import InOrder
from .reshards.planning import Planner
from .saved import SavedPlan
from .writing.building import channel_of
from .writing.local.flow import hand_on
from .writing.writer import Writer

_OF_VALUES = ("sdy.sharding", "in_shardings", "out_shardings")


@no_collections()
def partition(
    prepare: Preparing,
    shardings: Shardings,
    book: RuleBook,
    modes: Sequence[str] = (),
    form: Form = "sdy-manual",
    aim: Aim | None = None,
    *,
    refuse: bool = True,
    given: SavedPlan | None = None,
) -> DeviceProgram:
    """Partitions an annotated module: as its shardings say, for an ``aim``, or by a ``given`` plan. ``modes``
    are those of the run.

    Raises ShardlogError for ops that cannot run on each device, unless ``refuse`` is false: then the program
    is only good for questions about what it moves. Raises it also if no program fits into the memory of the
    aim, or if the plan belongs to another module.
    """
    aim, module = Aim() if aim is None or given is not None else aim, prepare.module
    check_carried(module, "partitioning")
    with module.context, ir.Location.unknown():
        more = [*aim.pins.values(), *aim.begins.values()]
        if given is not None:
            given.check(module)
            more = [*given.shardings(shardings.meshes), *more]
        cut = given.cut if given else aim.move and not aim.pins
        own, annotated = annotated_of(prepare, shardings, book, modes, form, aim, more, cut=cut)
        kinds, axes = own.kinds, annotated.axes
        channel = max(map(channel_of, kinds.examples()), default=0)

        def laid_out(given: Mapping[Value, Sharding]) -> dict[Any, Layout]:
            copies = ((copy, sharding) for value, sharding in given.items() for copy in own.copies(value))
            shapes = ((copy, sharding, static_shape(copy.type)) for copy, sharding in copies)
            return {copy: axes.layout(sharding, shape) for copy, sharding, shape in shapes if shape}

        def numbered(homes: Mapping[Value, Layout]) -> dict[int, Layout]:
            numbers = ((kinds.value(value), home) for value, home in homes.items())
            return {number: home for number, home in numbers if number is not None}

        begins, pins = laid_out(aim.begins), numbered(laid_out(aim.pins))
        first = Plan({**numbered(begins), **pins}, pinned=frozenset(pins))
        if given is not None:
            first = given.plan(axes, len(kinds.listing.definers))

        def write(decided: Decided) -> Writer:
            return Writer(annotated, decided, hand_on, channel)

        with given.reading() if given else nullcontext():
            program = Improving(annotated, write, aim, first, refuses=refuse).best().finished
            if given is not None:  # which is checked by this
                _ = program.written
        program.cut = cut
    return program


def annotated_of(
    prepare: Preparing,
    shardings: Shardings,
    book: RuleBook,
    modes: Sequence[str],
    form: Form,
    aim: Aim,
    more: Sequence[Sharding] = (),
    *,
    cut: bool,
) -> tuple[Unshared, Annotated]:
    """The inputs of a walk over a module; axes are cut as its shardings, and ``more``, use them. Raises
    ShardlogError for more devices than a program can have."""
    used = _used(prepare.kinds, shardings)
    for each in prepare.computations.values():
        used += map(shardings.read, (*each.takes, *each.gives))
    axes = Axes(shardings.meshes, [*used, *more])
    if axes.count > MOST_DEVICES:
        message, hint = f"a mesh of {axes.count:,} devices", f"expected at most {MOST_DEVICES:,}"
        raise ShardlogError(f"{message} is not partitioned for", where="partition", hint=hint)
    own = prepare.unshared(cut=cut)
    planner = Planner(axes, aim.prices) if aim.order is None else InOrder(axes, aim.order, aim.prices)
    chooser = Chooser(book, axes, planner, modes)
    return own, Annotated(own, shardings, axes, chooser, planner, form)


def names_axes(prepare: Preparing, shardings: Shardings) -> bool:
    """Whether anything in a module names axes of a mesh."""
    manual = any(op.name == "sdy.manual_computation" for op in prepare.kinds.examples())
    return manual or bool(prepare.computations) or any(map(_has_axes, _used(prepare.kinds, shardings)))


def _has_axes(sharding: Sharding) -> bool:
    dims = (dim.axes for dim in sharding.dimensions)
    return any((*dims, sharding.replicated, sharding.unreduced))


def _used(kinds: Kinds, shardings: Shardings) -> list[Sharding]:
    """All shardings of a module, in order."""
    by_attribute: dict[Any, Sharding] = {}

    def read(attribute: ir.Attribute, beside: Any = None) -> None:
        if attribute not in by_attribute:
            by_attribute[attribute] = shardings.read(attribute)
        if beside is not None and PARTIAL in beside:
            partial = with_partial(by_attribute[attribute], beside, shardings)
            by_attribute[attribute, beside[PARTIAL]] = partial

    for op in kinds.examples():
        attributes = op.attributes
        for label in _OF_VALUES:
            if label in attributes:
                for sharding in sdy.TensorShardingPerValueAttr(attributes[label]).shardings:
                    read(sharding, attributes)
        if op.name.startswith("sdy."):
            for label in RESULT_SHARDING:
                if label in attributes:
                    read(attributes[label], attributes)
        elif op.name == "func.func":
            for label in ("arg_attrs", "res_attrs"):
                for entry in boundary_attributes(op.opview, label):
                    if "sdy.sharding" in entry:
                        read(entry["sdy.sharding"], entry)
    return list(by_attribute.values())

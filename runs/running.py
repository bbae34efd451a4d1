"""Running a program: it is read, annotated, propagated to the fixpoint, and written."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir

from ..collector import no_collections
from ..errors import ShardlogError
from ..exporters.module import annotate as write_module
from ..exporters.shardings import FinalShardings
from ..exporters.single_devices import check_single_devices
from ..exporters.unreduced import check_unreduced
from ..importers.annotations import Targets, apply_annotations, to_sdy
from ..importers.asked import annotation_texts, mesh_text, meshes_of
from ..importers.given import Given, Several
from ..importers.program import ImportedModule, import_program
from ..importers.sources.text import Text
from ..importers.sources.views import view_of
from ..program.carried import has_unknown_sizes
from ..program.function import Function, location
from ..program.ids import Cell
from ..program.mlir.modules import symbols
from ..program.mlir.origins import location_text, origin
from ..program.shardings import Sharding
from ..propagation.fixpoint import Fixpoint, propagate
from ..propagation.schedules.schedule import Applied, Held, apply_schedule, last_priority
from ..rulebook.book import RuleBook
from .data import UnknownOp
from .options import Options
from .result import Result

if TYPE_CHECKING:
    from ..exporters.relations import FunctionNames
    from ..propagation.completion.completing import Completion


@no_collections()
def run_with(
    source: object,
    options: Options,
    progress: Callable[[str, float], None] | None = None,
    dropped: Collection[Cell] = (),
    *,
    names: bool = False,
) -> Result:
    """``run`` with the options of a run, and without the annotations of some cells.

    ``names``: the names of values will be asked for, so they are read before the module is written.
    """
    tell = progress or (lambda stage, done: None)
    tell("reading", 0.0)
    read = _read(source, options, tell, dropped, names)
    program, book, options = read.program, read.book, read.options
    unknown_ops = _unknown_ops(program, read.text)
    op_names = set(program.classes.signatures.names)  # a created constraint has no op
    for message in book.unknown_priorities(program.classes.signatures.examples):
        warnings.warn(message, stacklevel=3)
    fixpoint = propagate(
        program, book, options.strategy, lambda done: tell("propagating", 0.5 + 0.25 * done), last=read.last
    )
    shardings = shardings_of(program, book, fixpoint, closed=options.closed)
    tell("writing", 0.75)
    with read.text.places():
        bodies = write_module(read.module, program.graph, program.classes, shardings)
        with read.module.context:
            if read.completion is None:  # MLIR's dialects reshard where Shardy's export refuses
                check_unreduced(read.module, program.shardings, book, op_names)
            check_single_devices(read.module, program.shardings, book)
    _attach(read.module, program, book, options)
    return Result(
        read.module,
        fixpoint.stages,
        unknown_ops,
        read.tactics,
        read.text,
        book,
        program,
        fixpoint,
        shardings,
        bodies,
        options,
        read.completion,
        read.names,
    )


@dataclass(frozen=True)
class _ReadProgram:
    """A program before propagation, with the rules and the options of its run. ``last`` is the last user
    priority that propagates. ``names`` are those of values, where they were asked for."""

    module: ir.Module
    text: Text
    options: Options
    book: RuleBook
    program: ImportedModule
    tactics: tuple[Applied, ...]
    last: int | None
    completion: Completion | None
    names: dict[str, FunctionNames] | None


def _read(
    source: object,
    options: Options,
    tell: Callable[[str, float], None],
    dropped: Collection[Cell],
    names: bool,
) -> _ReadProgram:
    """Reads a source, annotates it as the options say, and imports it without the annotations of the cells
    ``dropped``."""
    module, text, options, changed = _annotated(source, options)
    with text.places():
        book = _book_of(options)
        tell("importing", 0.25)
        completes = options.propagation == "completion"
        if completes and dropped:
            hint = "take it out of the module, and compare both with `shardlog diff`"
            raise ShardlogError("completion cannot drop an annotation", where=text.name, hint=hint)
        completion = _completed(module, book, options, text) if completes else None
        as_given = text.written and not (changed or options.annotate or options.steps or completes)

        def read() -> ImportedModule:
            return import_program(
                module,
                book,
                modes=options.modes,
                separate_groups=options.separate_groups,
                units=completes,
                written=text.data if as_given else b"",
            )

        tactics = _tactics(module, options, book, read)
        program = _without(read(), dropped)
        last = last_priority(options.until, tactics, program)
        functions = (instance.function for instance in program.graph.instances)
        as_read = not (options.annotate or options.steps or completes or dropped)
        names_read = _names_in(module, text, functions) if names and as_read else None
    return _ReadProgram(module, text, options, book, program, tactics, last, completion, names_read)


def _annotated(source: object, options: Options) -> tuple[ir.Module, Text, Options, bool]:
    """The module of a source with the annotations of the options, as text and options describe it.

    Last comes whether the module was converted, so that it is not as it was written.
    """
    text, module = view_of(source, options.view, options.dumped, options.entry)
    with text.places(), module.context, ir.Location.unknown():
        text, options = _asked(text, options, module)
        changed = to_sdy(module, text, options.mesh)
        annotations: tuple[str, ...] = ()
        if options.annotate:
            targets = Targets(module, text.data)
            annotations = annotation_texts(targets, options.annotate, text.interface)
            apply_annotations(module, annotations, targets)
        options = replace(options, annotate=annotations)
    return module, text, options, changed


def _book_of(options: Options) -> RuleBook:
    """The op rules of a run."""
    return RuleBook(
        options.files,
        None if options.op_priorities is None else Path(options.op_priorities),
        include_from=options.include_from,
        limits=options.limits,
        shardy=options.shardy,
    )


def _attach(module: ir.Module, program: ImportedModule, book: RuleBook, options: Options) -> None:
    """Adds to the annotated module what the options ask for besides shardings: reshards and op rules."""
    if options.explicit_reshards or options.full_reshards or options.mark_partial_results:
        from ..exporters.reshards import write_reshards

        write_reshards(
            module,
            program.shardings,
            book,
            options.modes,
            full=options.full_reshards,
            mark=options.mark_partial_results,
        )
    if options.keep_rules:
        from ..exporters.op_rules import attach_rules

        attach_rules(module, book, options.modes)


def _completed(module: ir.Module, book: RuleBook, options: Options, text: Text) -> Completion:
    from ..propagation.completion.completing import complete

    return complete(module, book, options.traversal, options.sharding_option, text.data)


def _names_in(module: ir.Module, text: Text, functions: Iterable[Function]) -> dict[str, FunctionNames]:
    from ..exporters.relations import names_in

    return names_in(module, text, functions)


def run_again(
    result: Result, annotate: Given = (), without: Collection[Cell] = (), sharding_options: Sequence[str] = ()
) -> Result:
    """A run with more annotations and sharding options, and without the annotations of some cells. Raises
    what ``run_with`` does."""
    options = replace(
        result.options,
        annotate=Several((result.options.annotate, annotate)),
        sharding_option=(*result.options.sharding_option, *sharding_options),
    )
    return run_with(result.source, options, dropped=without)


def _without(program: ImportedModule, cells: Collection[Cell]) -> ImportedModule:
    """A program without the annotations of cells, which its module loses too. Specs of ``shard_map``s are
    part of the program, and stay."""
    if not cells:
        return program
    initial = {cell: sharding for cell, sharding in program.initial.items() if cell not in cells}
    for instance in program.graph.instances:
        function = instance.function
        for v, sharding in function.annotations.items():
            node = function.definer[v]
            if program.cells[instance.place + instance.layout.place[v]] not in cells:
                continue
            if not 0 <= node < len(function.ops) or node in function.boundaries or node in function.created:
                continue
            if node in function.constraints:
                free = Sharding.open(sharding.mesh, len(sharding.dimensions))
                with program.module.context:
                    written = program.shardings.attribute(free, closed=False)
                function.ops[node].attributes["sharding"] = written
            elif "sdy.sharding" in function.ops[node].attributes:
                del function.ops[node].attributes["sdy.sharding"]
    return replace(program, initial=initial)


def _asked(text: Text, options: Options, module: ir.Module) -> tuple[Text, Options]:
    """The program with the meshes that are given as JAX's, and the options with the mesh as text.

    If neither the module nor the options have a mesh, it is the annotations' mesh.
    """
    mesh, meshes = options.mesh, meshes_of(options.annotate)
    if mesh is None and meshes and not symbols(module, "sdy.mesh"):
        mesh = meshes[0]
    if mesh is None:
        return text, options
    all_meshes = (*([] if isinstance(mesh, str) else [mesh]), *meshes, *text.interface.meshes)
    interface = replace(text.interface, meshes=all_meshes)
    return replace(text, interface=interface), replace(options, mesh=mesh_text(mesh))


def _tactics(
    module: ir.Module, options: Options, book: RuleBook, read: Callable[[], ImportedModule]
) -> tuple[Applied, ...]:
    """Annotates the module with the tactics of the schedule; ``read`` imports its present state."""
    if not options.steps:
        return ()
    if options.strategy != "user-priority":
        hint = "leave out the strategy, or the schedule"
        raise ShardlogError(f"no tactics with strategy {options.strategy}", where="schedule", hint=hint)

    def decide(program: ImportedModule) -> Held:
        fixpoint = propagate(program, book, options.strategy)
        facts, sharding = fixpoint.agenda.facts, program.shardings.sharding
        return lambda place, rank: sharding(facts(int(fixpoint.contents[place])), rank)

    with module.context, ir.Location.unknown():
        return apply_schedule(options.steps, read, decide, book)


def shardings_of(
    program: ImportedModule, book: RuleBook, fixpoint: Fixpoint, *, closed: bool
) -> FinalShardings:
    """The final shardings of propagation, as written in the module."""
    kept = book.boundary({"axis": program.shardings.meshes.facts()["axis"]})

    unknown = has_unknown_sizes(program.module)  # whether an axis divides a dimension, nobody knows then

    def fit(facts: dict[str, Any], shape: tuple[int, ...], entry: bool) -> dict[str, Any]:
        if unknown:
            return {"sharded": facts["sharded"]}
        given = {"sharded": facts["sharded"], "closed": facts["closed"], "dim": list(enumerate(shape))}
        return {"sharded": kept({**given, "entry": [()] if entry else []})}

    contents, facts = fixpoint.contents, fixpoint.agenda.facts
    graph, shapes = program.graph, program.classes.signatures.shapes
    main = graph.main.function
    ends = zip(graph.result_places.tolist(), main.operands[main.terminator], strict=True)
    place = graph.main.layout.place
    returned = {
        result: graph.main.place + int(place[v]) for result, v in ends if shapes[main.types[v]] is not None
    }
    return FinalShardings(
        program.shardings,
        contents,
        facts,
        fit,
        book.siblings,
        book.takes,
        book.crosses,
        fixpoint.unchanged,
        returned,
        closed=closed,
    )


def _unknown_ops(program: ImportedModule, text: Text) -> tuple[UnknownOp, ...]:
    """Ops without a rule, once per name, with how many there are and where the first one is."""
    signatures, by_name = program.classes.signatures, dict[str, list[Any]]()
    for number, op in enumerate(signatures.examples):
        knowledge = program.classes.of(number)
        if op is not None and not knowledge.known:
            by_name.setdefault(op.operation.name, [0, op, knowledge.no_rule])[0] += signatures.counts[number]
    return tuple(
        UnknownOp(name, count, text.line(location(op)), reason, origin(location_text(op)).stack)
        for name, (count, op, reason) in sorted(by_name.items())
    )

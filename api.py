"""The Python API: ``run`` and the ``Result`` it returns."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt
from jaxlib.mlir import ir

from .errors import ShardlogError, closest
from .exporters.module import annotate as write_module
from .exporters.op_rules import attach_rules
from .exporters.relations import Names, arrays, read_names, relations
from .exporters.shardings import Written
from .importers.annotate import apply_annotations, to_sdy
from .importers.asked import annotation_texts, mesh_text, meshes_of
from .importers.function import location
from .importers.jax import lowered
from .importers.program import Program, import_program
from .importers.schedule import Applied, Held, apply_schedule, last_priority
from .importers.source import Text, parse_module, read_source, symbols
from .options import NAMES, Options, described, listed
from .propagation import Fixpoint, Stage, propagate
from .questions import Questions
from .rulebook import RuleBook

if TYPE_CHECKING:
    from .explanations.record import Record
    from .exporters.stages import Account


Notation = Literal["sdy", "gspmd"]


@dataclass(frozen=True)
class UnknownOp:
    """An op that has no rule: shardings stop there. ``reason`` is why, where the rules say it."""

    name: str
    count: int
    location: str
    reason: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class Result(Questions):
    """What a run decided, and what can be asked about it (see ``Questions``).

    ``module`` is the annotated module, ``stages`` the statistics of every stage, ``unknown_ops`` the ops
    without a rule, one entry per name, ``tactics`` what became of the schedule.
    """

    module: ir.Module
    stages: tuple[Stage, ...]
    unknown_ops: tuple[UnknownOp, ...]
    tactics: tuple[Applied, ...]
    source: Text
    book: RuleBook
    program: Program
    fixpoint: Fixpoint
    written: Written
    options: Options

    def __repr__(self) -> str:
        function = self.program.graph.main.function
        arguments, results = len(function.arguments), len(function.operands[function.terminator])
        meshes = "; ".join(
            f"mesh @{mesh.name}: {', '.join(f'{name}={size}' for name, size in mesh.axes)}"
            for mesh in self.program.shardings.meshes.meshes
            if mesh.axes
        )
        size = f"{arguments:,} arguments, {results:,} results"
        return f"<Result of {self.source.name}: {size}; {meshes or 'no mesh'}>"

    def _repr_html_(self) -> str:
        from .explanations.notebook import result_html

        return result_html(self)

    def text(self, notation: Notation = "sdy") -> str:
        """The annotated module as MLIR text, with sdy's shardings or GSPMD's (``mhlo.sharding``).

        Raises ShardlogError for what GSPMD's notation cannot say.
        """
        return str(self._in(notation))

    def bytecode(self, notation: Notation = "sdy") -> bytes:
        """The annotated module as MLIR bytecode, as ``text``."""
        buffer = io.BytesIO()
        self._in(notation).operation.write_bytecode(buffer)
        return buffer.getvalue()

    def _in(self, notation: Notation) -> ir.Module:
        if notation == "sdy":
            return self.module
        from .exporters.gspmd import to_gspmd

        try:
            return to_gspmd(self.module)
        except ShardlogError as error:
            where = self.source.line(error.where)
            raise ShardlogError(error.message, where=where, hint=error.hint) from None

    @cached_property
    def record(self) -> Record:
        """The run as explanations read it."""
        from .explanations.live import Live

        return Live(self)

    @cached_property
    def accounts(self) -> tuple[Account, ...]:
        """What each tactic or user priority did, in order."""
        from .exporters.stages import accounts

        return accounts(self)

    @cached_property
    def names(self) -> dict[str, Names]:
        """What values are called and where ops are, in the program as it was read, by function."""
        functions = (instance.function for instance in self.program.graph.instances)
        return read_names(self.source, self.options.mesh, functions)

    @cached_property
    def facts(self) -> dict[str, list[tuple[Any, ...]]]:
        """The relations that ``shardlog query`` sees, as sorted tuples; see ``docs/facts.md``."""
        return relations(self.program, self.written, self.names)

    @cached_property
    def relations(self) -> dict[str, npt.NDArray[Any]]:
        """``facts`` as structured NumPy arrays, one field per column."""
        return arrays(self.facts)

    @property
    def argument_shardings(self) -> tuple[Any, ...]:
        """The shardings of the positional arguments, a tree of ``jax.sharding.NamedSharding`` like them: what
        ``jax.jit`` takes for ``in_shardings``, and ``jax.device_put`` for the arguments.

        They are on the program's own mesh, concrete where it is concrete. Arguments without a sharding, and
        those that ``jax.jit`` drops, are replicated; None where the program has no mesh. Where only a module
        is known, its arguments are flat. Raises ShardlogError for sub-axes, which JAX cannot name.
        """
        return self._arguments[0]

    @property
    def keyword_shardings(self) -> dict[str, Any]:
        """The shardings of the keyword arguments, as ``argument_shardings``."""
        return self._arguments[1]

    @property
    def result_shardings(self) -> Any:
        """The shardings of what the function returns, a tree like it, for ``out_shardings``; otherwise as
        ``argument_shardings``."""
        from .exporters.jax import result_shardings

        return result_shardings(self)

    @cached_property
    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        from .exporters.jax import argument_shardings

        return argument_shardings(self)


def run(
    source: Any,
    *args: Any,
    options: Options | None = None,
    progress: Callable[[str, float], None] | None = None,
    **keywords: Any,
) -> Result:
    """Propagates the shardings of a program to every value.

    ``source`` is a function, jitted or not, with its arguments (arrays or ``jax.ShapeDtypeStruct``s) after it
    and among the keywords; or a ``jax.stages.Lowered`` or ``Traced``, a ``jax.export.Exported``, a path, MLIR
    text or bytecode, or an ``ir.Module``. It is not changed. ``options``, and keywords in place of some of
    them, say what is asked for. ``progress`` is called now and then with what is being done and how much of
    the whole run is done, from 0 to 1.

    Raises ShardlogError for bad input, ``engine.DatalogError`` for errors in a rule file and
    ``engine.EngineError`` for rules that go wrong while they run.
    """
    asked = {name: keywords.pop(name) for name in NAMES if name in keywords}
    _check_keywords(source, keywords)
    options = replace(options or Options(), **asked)
    return run_with(lowered(source, args, keywords), options, progress)


def _check_keywords(source: Any, keywords: dict[str, Any]) -> None:
    """Raises ShardlogError for keywords that are neither options nor arguments of the function."""
    if callable(source) and any(p.kind is p.VAR_KEYWORD for p in signature(source).parameters.values()):
        return
    known = signature(source).parameters if callable(source) else {}
    for name in keywords:
        if name not in known:
            hint = closest(name, [*known, *NAMES])
            raise ShardlogError(f"there is no option {name}", where="run", hint=hint)


# The options are described in one place, and ``help(shardlog.run)`` has them too.
run.__signature__ = described(signature(run))  # type: ignore[attr-defined]
run.__doc__ = f"{run.__doc__}\n    Options:\n\n{listed(indent=8)}"


def run_with(source: Any, options: Options, progress: Callable[[str, float], None] | None = None) -> Result:
    """``run`` with the options of a run."""
    tell = progress or (lambda what, done: None)
    tell("reading", 0.0)
    text = read_source(source)
    module = parse_module(text)
    try:
        with module.context, ir.Location.unknown():
            text, options = _asked(text, options, module)
            to_sdy(module, text, options.mesh)
            options = replace(options, annotate=annotation_texts(module, options.annotate, text.interface))
            apply_annotations(module, tuple(options.annotate))
        order = None if options.op_priorities is None else Path(options.op_priorities)
        book = RuleBook(options.files, order, include_from=options.include_from, limits=options.limits)
        tell("importing", 0.25)

        def read() -> Program:
            return import_program(
                module, book, conservative=options.conservative, separate_groups=options.separate_groups
            )

        tactics = _tactics(module, options, book, read)
        program = read()
        last = last_priority(options.until, tactics, program)
    except ShardlogError as error:
        where = text.line(error.where) or text.name
        raise ShardlogError(error.message, where=where, hint=error.hint) from None
    unknown_ops = _unknown_ops(program, text)
    for message in book.unknown_priorities(program.classes.signatures.examples):
        warnings.warn(message, stacklevel=3)
    fixpoint = propagate(
        program, book, options.strategy, lambda done: tell("propagating", 0.5 + 0.25 * done), last=last
    )
    written = shardings_of(program, book, fixpoint, closed=options.closed)
    tell("writing", 0.75)
    write_module(module, program.graph, program.classes, written)
    if options.keep_rules:
        attach_rules(module, book)
    return Result(
        module, fixpoint.stages, unknown_ops, tactics, text, book, program, fixpoint, written, options
    )


def _asked(text: Text, options: Options, module: ir.Module) -> tuple[Text, Options]:
    """The program with the meshes that are given as JAX's, and the options with the mesh as text.

    Where neither the module nor the options have a mesh, it is that of the annotations.
    """
    mesh, meshes = options.mesh, meshes_of(options.annotate)
    if mesh is None and meshes and not symbols(module, "sdy.mesh"):
        mesh = meshes[0]
    if mesh is None:
        return text, options
    known = (*([] if isinstance(mesh, str) else [mesh]), *meshes, *text.interface.meshes)
    interface = replace(text.interface, meshes=known)
    return replace(text, interface=interface), replace(options, mesh=mesh_text(mesh))


def _tactics(
    module: ir.Module, options: Options, book: RuleBook, read: Callable[[], Program]
) -> tuple[Applied, ...]:
    """Annotates the module with the tactics of the schedule; ``read`` imports it as it is by then."""
    if not options.steps:
        return ()
    if options.strategy != "user-priority":
        hint = "leave out the strategy, or the schedule"
        raise ShardlogError(f"no tactics with strategy {options.strategy}", where="schedule", hint=hint)

    def decide(program: Program) -> Held:
        fixpoint = propagate(program, book, options.strategy)
        facts, sharding = fixpoint.agenda.facts, program.shardings.sharding
        return lambda place, rank: sharding(facts(int(fixpoint.contents[place])), rank)

    with module.context, ir.Location.unknown():
        return apply_schedule(options.steps, read, decide)


def shardings_of(program: Program, book: RuleBook, fixpoint: Fixpoint, *, closed: bool) -> Written:
    """The shardings with which propagation ends, as they are written."""
    kept = book.boundary({"axis": program.shardings.meshes.facts()["axis"]})

    def fit(facts: dict[str, Any], shape: tuple[int, ...], entry: bool) -> dict[str, Any]:
        given = {"sharded": facts["sharded"], "closed": facts["closed"], "dim": list(enumerate(shape))}
        return {"sharded": kept({**given, "entry": [()] if entry else []})}

    contents, facts = fixpoint.contents, fixpoint.agenda.facts
    return Written(program.shardings, contents, facts, fit, fixpoint.unchanged, closed=closed)


def _unknown_ops(program: Program, text: Text) -> tuple[UnknownOp, ...]:
    """Ops without a rule, once per name, with how many there are and where the first one is."""
    signatures, found = program.classes.signatures, dict[str, list[Any]]()
    for number, op in enumerate(signatures.examples):
        knowledge = program.classes.of(number)
        if not knowledge.known:
            found.setdefault(op.operation.name, [0, op, knowledge.no_rule])[0] += signatures.counts[number]
    return tuple(
        UnknownOp(name, count, text.line(location(op)), reason)
        for name, (count, op, reason) in sorted(found.items())
    )


__all__ = ["Options", "Result", "ShardlogError", "UnknownOp", "run"]

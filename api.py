"""The Python API: ``run`` and the ``Result`` it returns."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt
from jaxlib.mlir import ir

from .errors import ShardlogError, closest
from .exporters.module import annotate as write_module
from .exporters.op_rules import attach_rules
from .exporters.relations import Names, arrays, read_names, relations
from .exporters.shardings import Written
from .importers.annotate import apply_annotations, replace_mesh
from .importers.function import location
from .importers.program import Program, import_program
from .importers.schedule import Applied, Held, apply_schedule, last_priority
from .importers.shardings import Sharding
from .importers.source import Text, parse_module, read_source
from .importers.tactics import Step, Tactic, read_schedule
from .propagation import Fixpoint, Stage, propagate
from .rulebook import STRATEGIES, RuleBook

if TYPE_CHECKING:
    from jax.sharding import NamedSharding

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


@dataclass(frozen=True)
class Options:
    """What a run was asked for; see ``run``."""

    strategy: str
    closed: bool
    mesh: str | None
    annotate: tuple[str, ...]
    rules: tuple[Path, ...]
    op_priorities: Path | None = None
    schedule: tuple[Step, ...] = ()
    until: str | int | None = None
    conservative: bool = False
    keep_rules: bool = False
    separate_groups: bool = False


@dataclass(frozen=True, eq=False)
class Result:
    """What a run decided.

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
            where = self.source.place(error.where)
            raise ShardlogError(error.message, where=where, hint=error.hint) from None

    @cached_property
    def record(self) -> Record:
        """The run as explanations read it."""
        from .explanations.live import Live

        return Live(self)

    def save(self, path: str | Path) -> None:
        """Keeps the run in a file that ``shardlog.open`` opens, and ``why``, ``diff`` and others take for a
        module.

        Raises ShardlogError where the file cannot be written.
        """
        from .explanations.save import save

        save(self, Path(path))

    @cached_property
    def accounts(self) -> tuple[Account, ...]:
        """What each tactic or user priority did, in order."""
        from .exporters.stages import accounts

        return accounts(self)

    @cached_property
    def names(self) -> dict[str, Names]:
        """What values are called and where ops are, in the program as it was read, by function."""
        return read_names(self.source, (instance.function for instance in self.program.graph.instances))

    @cached_property
    def facts(self) -> dict[str, list[tuple[Any, ...]]]:
        """The relations that ``shardlog query`` sees, as sorted tuples; see ``docs/facts.md``."""
        return relations(self.program, self.written, self.names)

    @cached_property
    def relations(self) -> dict[str, npt.NDArray[Any]]:
        """``facts`` as structured NumPy arrays, one field per column."""
        return arrays(self.facts)

    @property
    def argument_shardings(self) -> tuple[NamedSharding | None, ...]:
        """The shardings of the main function's arguments; None where there is none.

        The mesh is a ``jax.sharding.AbstractMesh``. Raises ShardlogError for sub-axes, which JAX cannot name.
        """
        return self._named(self._main_arguments())

    @property
    def result_shardings(self) -> tuple[NamedSharding | None, ...]:
        """The shardings of the main function's results, as ``argument_shardings``."""
        graph = self.program.graph
        function = graph.main.function
        returned = function.operands[function.terminator]
        return self._named(
            self.written.fitted(self.written.sharding(int(place), len(shape)), shape, entry=True)
            for place, shape in zip(graph.result_places, self._shapes(returned), strict=True)
        )

    def _main_arguments(self) -> Iterable[Sharding | None]:
        main = self.program.graph.main
        values = main.function.arguments
        for value, shape in zip(values, self._shapes(values), strict=True):
            place = main.place + int(main.layout.place[value])
            yield self.written.fitted(self.written.sharding(place, len(shape)), shape, entry=True)

    def _shapes(self, values: Sequence[int]) -> list[tuple[int, ...]]:
        shapes, types = self.program.classes.signatures.shapes, self.program.graph.main.function.types
        return [shapes[types[v]] or () for v in values]

    def _named(self, shardings: Iterable[Sharding | None]) -> tuple[NamedSharding | None, ...]:
        from .exporters.jax import named_sharding

        meshes = self.program.shardings.meshes
        return tuple(None if s is None else named_sharding(s, meshes.meshes[s.mesh]) for s in shardings)


def run(
    source: Any,
    *,
    strategy: str = "user-priority",
    closed: bool = True,
    mesh: str | None = None,
    annotate: Sequence[str] = (),
    rules: Sequence[Path | str] = (),
    op_priorities: Path | str | None = None,
    schedule: str | Path | Sequence[Tactic] = (),
    until: str | int | None = None,
    conservative: bool = False,
    keep_rules: bool = False,
    separate_groups: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> Result:
    """Propagates the shardings of a program to every value.

    ``source`` is a path, MLIR text or bytecode, an ``ir.Module`` or a ``jax.stages.Lowered``; it is not
    changed. ``strategy`` is "basic", "aggressive", "op-priority" or "user-priority", or "none" to propagate
    nothing. ``closed`` makes the shardings ready for a compiler; otherwise they are open as propagated.
    ``mesh`` ("data=2,model=4") gives the module a mesh, ``annotate`` (``'%arg0=[{"data"}, {}]'``) annotates
    values, ``rules`` are files with more op rules. ``op_priorities`` is a file that lists the ops in the
    order in which they propagate (see ``docs/op_priorities.md``). ``schedule`` are tactics that come into
    force one after the other: text such as "batch: tokens -> data; zero: params -> data", a file with it, or
    ``Tactic`` objects; ``until`` is the tactic or user priority after which to stop (``docs/tactics.md``).
    ``conservative`` shardings keep to whole axes, and to factors that need no halos. ``keep_rules`` leaves
    every op its rule as an attribute ``sdy.sharding_rule``. ``separate_groups``: where members of a sharding
    group have different shardings each keeps its own, with a warning; otherwise that is an error.
    ``progress`` is called now and then with what is being done and how much of the whole run is done, from
    0 to 1.

    Raises ShardlogError for bad input, ``engine.DatalogError`` for errors in a rule file and
    ``engine.EngineError`` for rules that go wrong while they run.
    """
    if strategy not in (*STRATEGIES, "none"):
        raise ShardlogError(f"unknown strategy {strategy!r}", hint=closest(strategy, STRATEGIES))
    if op_priorities is not None and not strategy.endswith("-priority"):
        message = f"the strategy {strategy!r} has no op priorities"
        raise ShardlogError(message, where=str(op_priorities), hint="take op-priority or user-priority")
    order = None if op_priorities is None else Path(op_priorities)
    steps, files = read_schedule(schedule), tuple(map(Path, rules))
    options = Options(
        strategy=strategy,
        closed=closed,
        mesh=mesh,
        annotate=tuple(annotate),
        rules=files,
        op_priorities=order,
        schedule=steps,
        until=until,
        conservative=conservative,
        keep_rules=keep_rules,
        separate_groups=separate_groups,
    )
    return run_with(source, options, progress)


def run_with(source: Any, options: Options, progress: Callable[[str, float], None] | None = None) -> Result:
    """``run`` with the options of a run."""
    tell = progress or (lambda what, done: None)
    tell("reading", 0.0)
    text = read_source(source)
    module = parse_module(text)
    try:
        with module.context, ir.Location.unknown():
            if options.mesh is not None:
                replace_mesh(module, options.mesh)
            if b"mhlo.sharding" in text.data:
                from .importers.gspmd import read_gspmd

                read_gspmd(module)
            apply_annotations(module, options.annotate)
        book = RuleBook(options.rules, options.op_priorities)
        tell("importing", 0.25)

        def read() -> Program:
            return import_program(
                module, book, conservative=options.conservative, separate_groups=options.separate_groups
            )

        tactics = _tactics(module, options, book, read)
        program = read()
        last = last_priority(options.until, tactics, program)
    except ShardlogError as error:
        where = text.place(error.where) or text.name
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


def _tactics(
    module: ir.Module, options: Options, book: RuleBook, read: Callable[[], Program]
) -> tuple[Applied, ...]:
    """Annotates the module with the tactics of the schedule; ``read`` imports it as it is by then."""
    if not options.schedule:
        return ()
    if options.strategy != "user-priority":
        hint = "leave out the strategy, or the schedule"
        raise ShardlogError(f"no tactics with strategy {options.strategy}", where="schedule", hint=hint)

    def decide(program: Program) -> Held:
        fixpoint = propagate(program, book, options.strategy)
        facts, sharding = fixpoint.agenda.facts, program.shardings.sharding
        return lambda place, rank: sharding(facts(int(fixpoint.contents[place])), rank)

    with module.context, ir.Location.unknown():
        return apply_schedule(options.schedule, read, decide)


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
        UnknownOp(name, count, text.place(location(op)), reason)
        for name, (count, op, reason) in sorted(found.items())
    )


__all__ = ["Result", "ShardlogError", "UnknownOp", "run"]

"""The result of a run: all that it decided, as data, and the doors to the questions about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy.typing as npt
from jaxlib.mlir import ir

from ..exporters.module import Body
from ..exporters.relations import Names, arrays, read_names, relations
from ..exporters.shardings import Written
from ..importers.program import Program
from ..importers.sources.text import Text
from ..partition.forms import PlanFile
from ..program.ids import Item
from ..program.mlir.modules import bytecode_of
from ..program.shardings import Sharding
from ..propagation.fixpoint import Fixpoint, Stage
from ..propagation.schedules.schedule import Applied
from ..rulebook.book import RuleBook
from .choice import ProgramChoice
from .options import Options
from .questions import Questions

if TYPE_CHECKING:
    from pathlib import Path

    from ..partition.forms import Chosen
    from ..partition.preparing.computations import Computation
    from .accounts import Account
    from .executing.executable import Executable
    from .executing.partitioned import Partitioned
    from .records.live import Live

Notation = Literal["sdy", "gspmd", "shard", "mesh"]
Bind = Literal["none", "needed", "all"]


@dataclass(frozen=True)
class UnknownOp:
    """An op without a rule: shardings stop there.

    ``count`` is how often it occurs, ``location`` and ``stack`` say where first, and ``reason`` says why it
    has no rule, if the rules tell.
    """

    name: str
    count: int
    location: str
    reason: str = ""
    stack: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class RunData:
    """The data that a run leaves behind."""

    module: ir.Module
    stages: tuple[Stage, ...]
    unknown_ops: tuple[UnknownOp, ...]
    tactics: tuple[Applied, ...]
    source: Text
    book: RuleBook
    program: Program
    fixpoint: Fixpoint
    written: Written
    bodies: tuple[Body, ...]
    options: Options

    @cached_property
    def names(self) -> dict[str, Names]:
        """The names of values and the places of ops, in the program as it was read, by function."""
        functions = (instance.function for instance in self.program.graph.instances)
        return read_names(self.source, self.options.mesh, functions)

    @cached_property
    def items(self) -> dict[Any, Item]:
        """The items of the ops of the annotated module that were in the program.

        An op that is written once for several calls stands for the first of them.
        """
        found: dict[Any, Item] = {}
        for body in self.bodies:
            for node, op in body.alive.items():
                found.setdefault(op.operation, Item(body.instance.item + node))
        return found

    @cached_property
    def facts(self) -> dict[str, list[tuple[Any, ...]]]:
        """The relations of ``shardlog query`` by name, as sorted tuples; see ``docs/facts.md``."""
        return relations(self.program, self.written, self.names)


@dataclass(frozen=True, eq=False, repr=False)
class Result(RunData, Questions):
    """The decisions of a run, which answers questions about them (see ``Questions``).

    ``module`` is the annotated module, an ``ir.Module``. ``stages`` are the statistics of every stage.
    ``unknown_ops`` are the ops without a rule, one entry per name. ``tactics`` are the tactics of the
    schedule as they were applied. ``shardlog.run`` returns it; ``docs/propagation.md`` describes the method.
    """

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
        return self._as_html()

    def text(
        self, notation: Notation = "sdy", bind: Bind = "none", dialect_version: str | None = None
    ) -> str:
        """The annotated module as MLIR text.

        ``notation`` is "sdy", "gspmd" (``mhlo.sharding``), or one of MLIR's own dialects: "shard" or "mesh",
        as the ``dialect_version`` of LLVM reads it ("19", "22" or "main"). XLA ignores shardings on ops: with
        ``bind="all"`` every value gets a sharding constraint too, which XLA keeps; with ``bind="needed"``
        only the values that XLA would shard otherwise do.

        Raises ShardlogError where the notation cannot express a sharding.
        """
        if notation in ("shard", "mesh"):
            from ..exporters.dialects.text import spelled

            return spelled(self._in("sdy", bind), notation, dialect_version, self.source.name)
        return str(self._in(notation, bind).operation.get_asm(assume_verified=True))

    def bytecode(self, notation: Notation = "sdy", bind: Bind = "none") -> bytes:
        """The annotated module as MLIR bytecode; arguments and errors are those of ``text``."""
        return bytecode_of(self._in(notation, bind))

    def compile(self, devices: Sequence[Any] | None = None) -> Executable:
        """Compiles the program with exactly these shardings.

        ``devices`` are JAX devices, as many as the mesh has; by default the first of JAX's. Returns an
        ``Executable``, which is called as the function was.

        Raises ShardlogError where XLA cannot compile the program, and where there are too few devices.
        """
        from .executing.executable import compiled

        return compiled(self, devices)

    def partition(
        self,
        form: Chosen = "sdy-manual",
        *,
        keep_shardings: bool = False,
        topology: str | None = None,
        memory: int | str | None = None,
        seconds: float | None = None,
        pins: str | Sequence[str] | Mapping[Any, Sharding] = (),
        collective_matmul: bool = False,
        plan: str | Path | PlanFile | None = None,
        dialect_version: str | None = None,
        whole_arguments: bool = False,
        refuse: bool = True,
    ) -> Partitioned:
        """The program that each device runs, as ``docs/partitioning.md`` describes.

        The shardings of the boundary and of constraints are kept. Other values may be sharded otherwise than
        propagation decided, where that costs less in all. The result is cached: the same choice gives the
        same object.

        ``keep_shardings`` keeps all shardings. ``topology`` is a machine, by name or as a TOML file: time is
        minimised there instead of bytes. ``memory`` bounds what a device needs, in bytes or as in "16GiB".
        ``seconds`` bounds the search; its best result is taken. ``pins`` fix the shardings of results of ops,
        as in '%2=[{"data"}, {}]', or as a mapping from values of the annotated module. ``collective_matmul``
        overlaps collectives with the products that they serve, part by part, where that is faster on the
        topology. ``plan`` is a plan of this module, or its file, that the program follows; nothing else is
        chosen then.

        ``form`` is the form for XLA: one manual computation ("sdy-manual"), or a program per device for its
        partitions ("manual") or its replicas ("replica"). With "shard", its text is in MLIR's dialect shard,
        as the ``dialect_version`` of LLVM reads it ("22" or "main"); with ``whole_arguments`` each device
        takes its parts of whole arguments there. With ``refuse=False``, ops that cannot run on each
        device stay in the program, which can then be asked but not run.

        Raises ShardlogError for ops that cannot run on each device, for an unknown machine, for a bound on
        memory that no program met, and for a plan of another module.
        """
        choice = ProgramChoice(
            form=form,
            keep_shardings=keep_shardings,
            topology=topology,
            memory=memory,
            seconds=seconds,
            pins=pins if isinstance(pins, str) else tuple(map(str, pins)),
            collective_matmul=collective_matmul,
            plan=plan,
            dialect_version=dialect_version,
            whole_arguments=whole_arguments,
        )
        if isinstance(pins, Mapping):
            return self.made_of(choice, refuse, pins)
        return self.program_of(choice, refuse=refuse)

    def program_of(self, choice: ProgramChoice, *, refuse: bool = True) -> Partitioned:
        """The program of a choice, cached; see ``partition``, which raises the same errors."""
        key = choice, choice.machine, refuse
        if key not in self._programs:
            self._programs[key] = self.made_of(choice, refuse)
        return self._programs[key]

    def asked(self, choice: ProgramChoice) -> Partitioned:
        """The program of a choice, to ask what it moves and costs.

        Ops that cannot run on each device stay in it. Raises ShardlogError where it cannot be partitioned.
        """
        from ..partition.walk import RefusedError

        try:
            return self.program_of(choice)
        except RefusedError:
            return self.program_of(choice, refuse=False)

    @cached_property
    def _programs(self) -> dict[tuple[ProgramChoice, bytes, bool], Partitioned]:
        return {}

    def made_of(
        self, choice: ProgramChoice, refuse: bool = True, pins: Mapping[Any, Sharding] | None = None
    ) -> Partitioned:
        """The program of a choice, made anew.

        ``pins`` are the shardings of values of the annotated module, in place of those of the choice.
        """
        from ..partition.forms import form_of
        from ..partition.improving import within
        from ..partition.partitioning import partition
        from ..partition.saved import SavedPlan
        from .executing.partitioned import Partitioned

        shardings, modes = self.program.shardings, self.options.modes
        with self.source.places():
            given = self.pins_of(self, choice.pins) if pins is None else pins
            plan = SavedPlan(choice.plan) if isinstance(choice.plan, PlanFile) else None
            begins = {} if choice.keep_shardings or plan else self._further
            aim = replace(self.aim_of(self, choice), pins=given, begins=begins)
            make = partial(
                partition, self.module, shardings, self.book, modes, form_of(choice.form), given=plan
            )
            program = within(aim, partial(make, refuse=refuse, computations=self._computations))
            partitioned = Partitioned(self, program, choice)
            if choice.collective_matmul:
                partitioned.put_beside(self.windows_of(partitioned, choice.topology), aim)
            return partitioned

    @cached_property
    def _further(self) -> dict[Any, Sharding]:
        """The shardings that values of the annotated module would have with propagation into calls."""
        further = self.fixpoint.further
        return {value: sharding for body in self.bodies for value, sharding in body.held(further)}

    @cached_property
    def _computations(self) -> dict[Any, Computation]:
        """What each device computes for ops of which the user's functions say so, each asked once."""
        from .custom_partitioning import computations

        return computations(self)

    def _in(self, notation: Notation, bind: Bind) -> ir.Module:
        module = self.module
        if bind != "none":
            from ..exporters.bind import bind as bound
            from .executing.needed import needed

            module = bound(module, self.book.traits, needed(self) if bind == "needed" else None)
        if notation == "sdy":
            return module
        from ..notations.gspmd.write import to_gspmd

        with self.source.places():
            return to_gspmd(module, self.book.traits)

    @cached_property
    def record(self) -> Live:
        """The run as explanations read it."""
        from .records.live import Live

        return Live(RunData(*(getattr(self, field.name) for field in fields(RunData))))

    @cached_property
    def accounts(self) -> tuple[Account, ...]:
        """What each tactic or user priority did, in order."""
        from .accounts import accounts

        return accounts(self)

    @property
    def names(self) -> dict[str, Names]:
        """The names of values and the places of ops, in the program as it was read, by function."""
        return self.record.run.names

    @property
    def items(self) -> dict[Any, Item]:
        """The ops of the annotated module that were in the program as it was read, as items."""
        return self.record.run.items

    @property
    def facts(self) -> dict[str, list[tuple[Any, ...]]]:
        """The relations of ``shardlog query`` by name, as sorted tuples; see ``docs/facts.md``."""
        return self.record.run.facts

    @cached_property
    def relations(self) -> dict[str, npt.NDArray[Any]]:
        """``facts`` as structured NumPy arrays, one field per column."""
        return arrays(self.facts)

    @property
    def argument_shardings(self) -> tuple[Any, ...]:
        """The shardings of the positional arguments, for ``in_shardings`` of ``jax.jit``.

        A tuple of trees of ``jax.sharding.NamedSharding``, one like each argument; ``jax.device_put`` takes
        them too. They are on the program's own mesh, concrete where it is concrete. Arguments without a
        sharding, and those that ``jax.jit`` drops, are replicated; all are None where the program has no
        mesh. Where only a module is known, the arguments are flat. Raises ShardlogError for sub-axes, which
        JAX cannot name.
        """
        return self._arguments[0]

    @property
    def keyword_shardings(self) -> dict[str, Any]:
        """The shardings of the keyword arguments by name, as ``argument_shardings``."""
        return self._arguments[1]

    @property
    def result_shardings(self) -> Any:
        """The shardings of the results, for ``out_shardings`` of ``jax.jit``.

        A tree like what the function returns; otherwise as ``argument_shardings``.
        """
        from .jax import result_shardings

        return result_shardings(self)

    @cached_property
    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        from .jax import argument_shardings

        return argument_shardings(self)

"""The questions to a run, as methods: doors to ``explanations/`` and ``exporters/``, further up.

A run is data and knows nothing of the questions about it. Only this module leads to them, and it imports
nothing before it is called.
"""

from __future__ import annotations

from functools import cached_property, wraps
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack

from ..errors import ShardlogError
from .choice import ProgramChoice, ProgramOptions
from .options import machine_of_costs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..checks.agreement import Agreement
    from ..cost.ahead import Ahead
    from ..cost.beside import Beside
    from ..cost.cost import Cost
    from ..cost.machine import Machine
    from ..explanations.answers.answers import Answers, Conflicts, Reasons
    from ..explanations.answers.visualize import Picture
    from ..explanations.explanation import WhyNot
    from ..explanations.questions.collective import Moved
    from ..explanations.questions.diff import Diff
    from ..explanations.questions.pins import Chosen, Pinned
    from ..explanations.questions.what_if import WhatIf
    from ..explanations.questions.why import Explainer
    from ..partition.device_program import DeviceProgram
    from ..partition.finishing.collective_matmul import Window
    from ..partition.improving import Aim
    from ..program.shardings import Sharding
    from .executing.partitioned import Partitioned
    from .query import Rows
    from .records.record import Run
    from .result import Result

    Progress = Callable[[str, float], None]

P = ParamSpec("P")
T = TypeVar("T")
Q = TypeVar("Q", bound="Questions")


def _asked(question: Callable[Concatenate[Q, P], T]) -> Callable[Concatenate[Q, P], T]:
    """A question after whose failure saved runs are looked at: files made by hand may hold anything."""

    @wraps(question)
    def answer(self: Q, /, *arguments: P.args, **options: P.kwargs) -> T:
        try:
            return question(self, *arguments, **options)
        except (ShardlogError, OSError):
            raise
        except Exception:
            for run in (self, *arguments):
                if isinstance(run, Questions):
                    run._run._check()
            raise

    return answer


class Questions:
    """The questions to a run: a ``Result``, a saved run, or what ``shardlog.explain`` returns.

    Values are named by JAX paths of arguments or results (``params['wq']``), SSA names, or places
    (``model.py:42``). Answers show as text, and as HTML in notebooks. All methods raise ShardlogError for
    values, dimensions and axes that do not exist.
    """

    @property
    def _run(self) -> Run:
        """The run that is asked about."""
        return self  # type: ignore[return-value] # a Result or a Record

    def _check(self) -> None:
        """Raises ShardlogError where the run is from a file that is not as shardlog writes it."""

    @cached_property
    def _explainer(self) -> Explainer:
        from ..explanations.questions.why import Explainer

        return Explainer(self._run)

    def _as_html(self) -> str:
        """A table of a run in memory, for notebooks."""
        from ..explanations.answers.notebook import result_html

        return result_html(self._explainer.result)

    @_asked
    def why(self, value: str, dim: int | None = None, axis: str | None = None) -> Reasons:
        """Why a value is sharded as it is.

        Returns an explanation for each axis, or for those on dimension ``dim`` (from 0) and of name ``axis``;
        none if the value is not sharded there. The method: ``docs/explanations.md``.
        """
        from ..explanations.answers.answers import reasons

        return reasons(self._explainer, value, dim, axis)

    @_asked
    def why_not(self, value: str, dim: int, axis: str) -> Answers[WhyNot]:
        """Why dimension ``dim`` (from 0) of a value is not sharded on ``axis``.

        Returns an explanation for each value of that name. Raises ShardlogError where it is sharded on it.
        """
        from ..explanations.answers.answers import obstacles

        return obstacles(self._explainer, value, dim, axis)

    @_asked
    def why_collective(self, program: Partitioned, number: int) -> Moved:
        """Why a partitioned program of this run has collective ``number``.

        Raises ShardlogError where it has none.
        """
        from ..explanations.questions.collective import why_collective

        return why_collective(self._explainer, program, number)

    def causes_of(self, program: Partitioned) -> list[tuple[str, ...]]:
        """For each collective of a partitioned program, the annotations that its axes come from."""
        from ..explanations.questions.collective import causes

        return causes(self._explainer, program)

    @staticmethod
    def aim_of(result: Result, choice: ProgramChoice) -> Aim:
        """The aim of a partitioned program, without its pins.

        If values may move, the memory of the machine bounds it; without a machine and a bound, little more
        memory than with the shardings of propagation.
        """
        from ..cost.exchange import prices
        from ..cost.inlining import inlined
        from ..cost.machine import Allocation, machine
        from ..cost.memory import memory_of_all, peak_memory
        from ..partition.improving import Aim
        from ..partition.reshards.prices import Prices

        meshes = result.program.shardings.meshes.meshes
        axes = {name for mesh in meshes for name, _ in mesh.axes}
        devices = max((prod(size for _, size in mesh.axes) for mesh in meshes), default=1)
        topology, memory, move = choice.topology, choice.memory, not choice.keep_shardings
        assert memory is None or isinstance(memory, int)
        known, traits = machine(machine_of_costs(topology), sorted(axes), devices), result.book.traits
        given, allocation, most = Prices(), Allocation(), memory
        if topology is not None:
            given, allocation = prices(known, traits), known.allocation
            most = known.memory if memory is None and move else memory

        def peak(program: DeviceProgram) -> int:
            """The bytes that a device needs at most, or more where they are within the bound anyhow."""
            every = memory_of_all(program.module, allocation)
            if every <= (most or 0):
                return every
            return peak_memory(inlined(program.module_for(allocation.platform), traits), allocation, traits)

        modest = move and topology is None and memory is None
        return Aim(move, given, most, memory is not None, modest, peak, choice.seconds)

    @staticmethod
    def pins_of(result: Result, texts: Sequence[str]) -> dict[Any, Sharding]:
        """The pinned shardings by value of the annotated module.

        Raises ShardlogError for values that no op computes, for malformed shardings, and for two pins of one
        value.
        """
        if not texts:
            return {}
        from ..explanations.questions.pins import read_pins

        return {value: sharding for value, (_, sharding) in read_pins(result, texts).items()}

    def windows_of(self, program: Partitioned, topology: str | None) -> list[tuple[Window, Beside]]:
        """The collectives of a partitioned program that overlap products on a machine.

        Raises ShardlogError without a topology.
        """
        from ..cost.beside import beside
        from ..cost.pricing import Pricing
        from ..partition.facts.knowledge import Reader

        if topology is None:
            hint = "give a topology, such as v5e: the gain depends on the machine"
            raise ShardlogError("no machine is given", where="--collective-matmul", hint=hint)
        pricing = Pricing(_machine_of(program, topology), Reader(program.result.book))
        with program.module.context:
            return beside(program, pricing)

    def cost_of(self, program: Partitioned, topology: str) -> Cost:
        """The cost of a partitioned program of this run on a machine.

        Raises ShardlogError for an unknown machine.
        """
        from ..cost.cost import cost

        return cost(program, _machine_of(program, topology))

    def ahead_of(self, program: Partitioned, target: str) -> Ahead:
        """What a compiler makes of a partitioned program of this run.

        Raises ShardlogError for an unknown target, and where its compiler is missing.
        """
        from ..cost.ahead import ahead

        return ahead(program, target)

    @_asked
    def conflicts(self, **program: Unpack[ProgramOptions]) -> Conflicts:
        """The tensors that must be resharded, most bytes first.

        Keywords are those of ``Result.partition`` and choose the program; the default moves the fewest bytes.
        Raises ShardlogError where it cannot be partitioned.
        """
        from ..explanations.answers.answers import Conflicts
        from ..explanations.questions.conflicts import conflicts

        choice = ProgramChoice(**program)
        key = choice, choice.machine
        if key not in self._conflicts:
            self._conflicts[key] = Conflicts(conflicts(self._run, self._explainer, choice), choice)
        return self._conflicts[key]

    @cached_property
    def _conflicts(self) -> dict[tuple[ProgramChoice, bytes], Conflicts]:
        return {}

    @_asked
    def cost(self, **program: Unpack[ProgramOptions]) -> Cost:
        """The ``Cost`` of a partitioned program for one device, in seconds and bytes.

        Keywords are those of ``Result.partition``. Without a ``topology`` the machine is a v5e.
        ``docs/cost.md`` describes the model. Raises ShardlogError for an unknown machine.
        """
        found = self._explainer.result.asked(ProgramChoice(**program))
        return self.cost_of(found, machine_of_costs(found.topology))

    @_asked
    def diff(self, other: Run | Questions) -> Diff:
        """The tensors that this run and another shard differently, and why."""
        from ..explanations.questions.diff import diff

        return diff(self._run, other._run)

    @_asked
    def what_if(
        self, annotate: Any = (), drop: str | Sequence[str] = (), **program: Unpack[ProgramOptions]
    ) -> WhatIf:
        """What other annotations would change.

        ``annotate`` is that of ``shardlog.run``; ``drop`` names values, or patterns of them, whose
        annotations are dropped. Keywords are those of ``Result.partition`` and choose the program whose bytes
        are counted. Raises ShardlogError for a value without an annotation to drop.
        """
        from ..explanations.questions.what_if import what_if

        dropped = (drop,) if isinstance(drop, str) else drop
        return what_if(self._run, annotate, dropped, ProgramChoice(**program))

    @_asked
    def pin(self, pins: str | Sequence[str], /, **program: Unpack[ProgramOptions]) -> Pinned:
        """What changes in a partitioned program if the shardings of some values are fixed.

        ``pins`` are values and shardings, as in ``'%2=[{"data"}, {}]'``; keywords are those of
        ``Result.partition``. Raises ShardlogError for values that cannot be pinned.
        """
        from ..explanations.questions.pins import pin

        texts = (pins,) if isinstance(pins, str) else pins
        return pin(self._run, texts, ProgramChoice(**program))

    @_asked
    def chosen(self, value: str, **program: Unpack[ProgramOptions]) -> tuple[Chosen, ...]:
        """Why a partitioned program shards a value otherwise than propagation did.

        Keywords are those of ``Result.partition``. Empty if it does not.
        """
        from ..explanations.questions.pins import chosen

        return chosen(self._run, value, ProgramChoice(**program))

    @_asked
    def query(self, body: str) -> Rows:
        """The rows for which the body of a rule holds, over the relations of ``docs/facts.md``.

        Raises ``engine.DatalogError`` for a malformed body.
        """
        from .query import rows

        return rows(body, self._explainer.record.relation)

    @_asked
    def agreement(self) -> Agreement | None:
        """How far the run agrees with what XLA decided.

        None where the program is neither from an XLA dump nor read in the view "compiled", and where its
        shardings are open.
        """
        from ..checks.agreement import agreement

        return agreement(self._explainer.result)

    @_asked
    def visualize(self, value: str) -> Picture:
        """A picture of the devices that hold each part of a value; of several, of the first."""
        from ..explanations.answers.visualize import picture_of

        return picture_of(self._explainer.record, self._explainer.values.find(value)[0])

    @_asked
    def report(
        self, path: str | Path, progress: Progress | None = None, **program: Unpack[ProgramOptions]
    ) -> None:
        """Writes an HTML page about the run, with the collectives and the cost of a partitioned program.

        Keywords are those of ``Result.partition``. ``progress`` is that of ``shardlog.run``. Raises
        ShardlogError where the file cannot be written, and where Jinja is not installed.
        """
        from ..explanations.report import report
        from ..outputs import write

        write(path, report(self._run, progress, ProgramChoice(**program)).encode())

    @_asked
    def save(self, path: str | Path, progress: Progress | None = None) -> None:
        """Saves the run to a file, which ``shardlog.open`` and most commands read.

        ``progress`` is that of ``shardlog.run``. Raises ShardlogError where the file cannot be written.
        """
        from .records.save import save

        save(self._explainer.result, Path(path), progress)


def _machine_of(program: Partitioned, topology: str) -> Machine:
    """The machine that a partitioned program runs on."""
    from ..cost.machine import machine

    axes = [name for name, _ in program.axes.mesh.axes] if program.axes.mesh else ()
    return machine(topology, axes, program.axes.count)

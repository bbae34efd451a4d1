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

    Values are JAX paths of arguments or results (``params['wq']``), SSA names, or ``model.py:42``. Answers
    show as text, and as HTML in notebooks. All raise ShardlogError for values, dimensions and axes that do
    not exist.
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
        """Why a value is sharded as it is, for all axes or those that ``dim`` and ``axis`` say."""
        from ..explanations.answers.answers import reasons

        return reasons(self._explainer, value, dim, axis)

    @_asked
    def why_not(self, value: str, dim: int, axis: str) -> Answers[WhyNot]:
        """Why dimension ``dim`` of a value is not sharded on an axis; raises ShardlogError where it is."""
        from ..explanations.answers.answers import obstacles

        return obstacles(self._explainer, value, dim, axis)

    @_asked
    def why_collective(self, program: Partitioned, number: int) -> Moved:
        """Why a partitioned program of this run has a collective."""
        from ..explanations.questions.collective import why_collective

        return why_collective(self._explainer, program, number)

    def causes_of(self, program: Partitioned) -> list[tuple[str, ...]]:
        """The annotations that the axes of each collective of a partitioned program come from."""
        from ..explanations.questions.collective import causes

        return causes(self._explainer, program)

    @staticmethod
    def aim_of(result: Result, choice: ProgramChoice) -> Aim:
        """The aim of a partitioned program, but for pins: if values may move, also within the memory of its
        machine, or, where neither is given, with little more memory than as decided."""
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
        """The shardings that pins say of values of the annotated module. Raises ShardlogError for values that
        no op computes, for no shardings, and for two of one value."""
        if not texts:
            return {}
        from ..explanations.questions.pins import read_pins

        return {value: sharding for value, (_, sharding) in read_pins(result, texts).items()}

    def windows_of(self, program: Partitioned, topology: str | None) -> list[tuple[Window, Beside]]:
        """The collectives of a partitioned program that go on beside products on a machine."""
        from ..cost.beside import beside
        from ..cost.pricing import Pricing
        from ..partition.choice.knowledge import Reader

        if topology is None:
            hint = "give a topology, such as v5e: where it is faster depends on that"
            raise ShardlogError(
                "nothing says how fast the machine is", where="--collective-matmul", hint=hint
            )
        pricing = Pricing(_machine_of(program, topology), Reader(program.result.book))
        with program.module.context:
            return beside(program, pricing)

    def cost_of(self, program: Partitioned, topology: str) -> Cost:
        """The cost of a partitioned program of this run on a machine."""
        from ..cost.cost import cost

        return cost(program, _machine_of(program, topology))

    def ahead_of(self, program: Partitioned, target: str) -> Ahead:
        """What a compiler makes of a partitioned program of this run."""
        from ..cost.ahead import ahead

        return ahead(program, target)

    @_asked
    def conflicts(self, **program: Unpack[ProgramOptions]) -> Conflicts:
        """The tensors that must move, most bytes first, in the program that is meant: by default that which
        moves least; keywords are those of ``Result.partition``. Raises ShardlogError where it cannot be
        partitioned."""
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
        """The cost of the program that is meant, as for ``conflicts``, on its topology, or without one on a
        v5e."""
        found = self._explainer.result.asked(ProgramChoice(**program))
        return self.cost_of(found, machine_of_costs(found.topology))

    @_asked
    def diff(self, other: Run | Questions) -> Diff:
        """The differences between this run and another one, and their causes."""
        from ..explanations.questions.diff import diff

        return diff(self._run, other._run)

    @_asked
    def what_if(
        self, annotate: Any = (), drop: str | Sequence[str] = (), **program: Unpack[ProgramOptions]
    ) -> WhatIf:
        """The differences if values were annotated (as for ``shardlog.run``), and the annotations of
        others dropped: names of values, or patterns of them. ``program`` says in which program what moves is
        counted, as for ``conflicts``."""
        from ..explanations.questions.what_if import what_if

        dropped = (drop,) if isinstance(drop, str) else drop
        return what_if(self._run, annotate, dropped, ProgramChoice(**program))

    @_asked
    def pin(self, pins: str | Sequence[str], /, **program: Unpack[ProgramOptions]) -> Pinned:
        """What changes in the program that is meant, as for ``conflicts``, if values are sharded as ``pins``
        say in any case: a value and its sharding, as in ``'%2=[{"data"}, {}]'``."""
        from ..explanations.questions.pins import pin

        texts = (pins,) if isinstance(pins, str) else pins
        return pin(self._run, texts, ProgramChoice(**program))

    @_asked
    def chosen(self, value: str, **program: Unpack[ProgramOptions]) -> tuple[Chosen, ...]:
        """Why a value is sharded otherwise than propagation said in the program that is meant, as for
        ``conflicts``; nothing where it is not."""
        from ..explanations.questions.pins import chosen

        return chosen(self._run, value, ProgramChoice(**program))

    @_asked
    def query(self, body: str) -> Rows:
        """The rows for which the body of a rule holds, over the relations of ``docs/facts.md``.

        Raises ``engine.DatalogError`` where it is not the body of a rule.
        """
        from .query import rows

        return rows(body, self._explainer.record.relation)

    @_asked
    def agreement(self) -> Agreement | None:
        """The agreement of the run with XLA; None where the program is not from an XLA dump or the view
        "compiled", or where its shardings are open."""
        from ..checks.agreement import agreement

        return agreement(self._explainer.result)

    @_asked
    def visualize(self, value: str) -> Picture:
        """The devices that hold the parts of a value, the first one of that name."""
        from ..explanations.answers.visualize import picture_of

        return picture_of(self._explainer.record, self._explainer.values.find(value)[0])

    @_asked
    def report(
        self, path: str | Path, progress: Progress | None = None, **program: Unpack[ProgramOptions]
    ) -> None:
        """Writes a page that shows all of the run, and what moves and what it costs in the program that is
        meant, as for ``conflicts``. ``progress`` is that of ``shardlog.run``.

        Raises ShardlogError where the file cannot be written, and where Jinja is not installed.
        """
        from ..explanations.report import report
        from ..outputs import write

        write(path, report(self._run, progress, ProgramChoice(**program)).encode())

    @_asked
    def save(self, path: str | Path, progress: Progress | None = None) -> None:
        """Keeps the run in a file that ``shardlog.open`` opens, and that commands take in place of a module.
        ``progress`` is that of ``shardlog.run``.

        Raises ShardlogError where the file cannot be written.
        """
        from .records.save import save

        save(self._explainer.result, Path(path), progress)


def _machine_of(program: Partitioned, topology: str) -> Machine:
    """The machine that a partitioned program runs on."""
    from ..cost.machine import machine

    axes = [name for name, _ in program.axes.mesh.axes] if program.axes.mesh else ()
    return machine(topology, axes, program.axes.count)

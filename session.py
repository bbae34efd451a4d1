"""A session: a run that answers questions, and whose programs are partitioned, compiled and saved.

It is above everything that answers questions, and imports modules when a question needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, cached_property, partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar, Unpack

from .errors import ShardlogError
from .runs.choice import ProgramChoice, ProgramOptions

if TYPE_CHECKING:
    import numpy.typing as npt
    from jaxlib.mlir import ir

    from .cost.cost import Cost
    from .executing.executable import Executable
    from .explanations.answers.answers import Answers, Reasons
    from .explanations.answers.conflicts import Conflicts
    from .explanations.answers.diff import Diff
    from .explanations.answers.mutated import Mutated, MutatedFormulas
    from .explanations.answers.pins import ChosenSharding, Pinned
    from .explanations.answers.visualize import Picture
    from .explanations.answers.what_if import WhatIf
    from .explanations.answers.why_not import WhyNot
    from .explanations.partitioned import Partitioned, Programs
    from .explanations.questions.why import Explainer
    from .exporters.relations import FunctionNames
    from .importers.given import Given
    from .partition.forms import ChosenForm, PlanFile
    from .program.ids import Cell, Item
    from .program.shardings import Sharding
    from .propagation.fixpoint import StageStatistics
    from .propagation.schedules.schedule import Applied
    from .runs.accounts import Account
    from .runs.agreement import XlaAgreement
    from .runs.data import UnknownOp
    from .runs.query import Rows
    from .runs.records.live import Live
    from .runs.records.saved import Saved
    from .runs.result import Result

Progress = Callable[[str, float], None]
Notation = Literal["sdy", "gspmd", "shard", "mesh"]
Bind = Literal["none", "needed", "all"]
P = ParamSpec("P")
T = TypeVar("T")


def _asked(question: Callable[Concatenate[Session, P], T]) -> Callable[Concatenate[Session, P], T]:
    """A question.

    If it fails for a saved run, the file is checked, because files written by hand may be damaged.
    """

    @wraps(question)
    def answer(self: Session, /, *arguments: P.args, **options: P.kwargs) -> T:
        try:
            return question(self, *arguments, **options)
        except (ShardlogError, OSError):
            raise
        except Exception:
            for session in (self, *arguments):
                if isinstance(session, Session):
                    session._check()
            raise

    return answer


class Session:
    """A run that answers questions, returned by ``shardlog.run``, or by ``shardlog.open`` for a saved run.

    Values are named by JAX paths of arguments or results (``params['wq']``), SSA names, or places
    (``model.py:42``). Answers show as text, and as HTML in notebooks. All methods raise ShardlogError for
    values, dimensions and axes that do not exist. If a saved run lacks something, such as its module, it is
    run again on demand.
    """

    def __init__(self, result: Result | None = None, *, saved: Saved | None = None) -> None:
        assert (result is None) != (saved is None)
        self._result, self._saved = result, saved

    def _check(self) -> None:
        """Raises ShardlogError if the run is from a file that shardlog would not write."""
        if self._saved is not None:
            from .runs.records.saved import check_saved

            check_saved(self._saved.path)

    def __repr__(self) -> str:
        if self._saved is not None:
            return f"<Session of {self._saved.name}, saved in {self._saved.path}>"
        return f"<Session of {self.result.described}>"

    def _repr_html_(self) -> str:
        if self._saved is not None:
            return _pre(repr(self))
        from .explanations.answers.notebook import result_html

        return result_html(repr(self), self.result)

    # ---- The run ----------------------------------------------------------------------------------------

    @property
    def result(self) -> Result:
        """The decisions of the run, as data. Raises ShardlogError if a saved run cannot be run again."""
        if self._result is None:
            assert self._saved is not None
            self._result = self._saved.result
        return self._result

    @property
    def record(self) -> Live | Saved:
        """The run in the form that explanations read."""
        return self.result.record if self._saved is None else self._saved

    @property
    def module(self) -> ir.Module:
        """The annotated module."""
        return self.result.module

    @property
    def stages(self) -> tuple[StageStatistics, ...]:
        """The statistics of every stage."""
        return self.result.stages

    @property
    def unknown_ops(self) -> tuple[UnknownOp, ...]:
        """The ops without a rule, one entry per name."""
        return self.result.unknown_ops

    @property
    def tactics(self) -> tuple[Applied, ...]:
        """The tactics of the schedule as they were applied."""
        return self.result.tactics

    @property
    def names(self) -> Mapping[str, FunctionNames]:
        """The names of values and the places of ops, in the program as it was read, by function."""
        return self.result.names

    @property
    def items(self) -> dict[Any, Item]:
        """The ops of the annotated module that were in the program as it was read, as items."""
        return self.result.items

    @property
    def facts(self) -> dict[str, list[tuple[Any, ...]]]:
        """The relations of ``shardlog query`` by name, as sorted tuples; see ``docs/facts.md``."""
        return self.result.facts

    @cached_property
    def relations(self) -> dict[str, npt.NDArray[Any]]:
        """``facts`` as structured NumPy arrays, one field per column."""
        from .exporters.relations import arrays

        return arrays(self.facts)

    @cached_property
    def accounts(self) -> tuple[Account, ...]:
        """The effects of each tactic or user priority, in order."""
        from .runs.accounts import accounts

        return accounts(self.result)

    @property
    def argument_shardings(self) -> tuple[Any, ...]:
        """The shardings of the positional arguments, for ``in_shardings`` of ``jax.jit``.

        A tuple of trees of ``jax.sharding.NamedSharding``, one like each argument; ``jax.device_put`` takes
        them too. They are on the program's own mesh, concrete where it is concrete. Arguments without a
        sharding, and arguments that ``jax.jit`` drops, are replicated; all are None if the program has no
        mesh. If only a module is known, the arguments are flat. Raises ShardlogError for sub-axes, which JAX
        cannot name.
        """
        return self._arguments[0]

    @property
    def keyword_shardings(self) -> dict[str, Any]:
        """The shardings of the keyword arguments by name, as ``argument_shardings``."""
        return self._arguments[1]

    @property
    def result_shardings(self) -> Any:
        """The shardings of the results, for ``out_shardings`` of ``jax.jit``.

        A tree like the function's result; otherwise as ``argument_shardings``.
        """
        from .runs.jax import result_shardings

        return result_shardings(self.result)

    @cached_property
    def _arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        from .runs.jax import argument_shardings

        return argument_shardings(self.result)

    def text(
        self, notation: Notation = "sdy", bind: Bind = "none", dialect_version: str | None = None
    ) -> str:
        """The annotated module as MLIR text.

        ``notation`` is "sdy", "gspmd" (``mhlo.sharding``), or one of MLIR's own dialects: "shard" or "mesh",
        as the ``dialect_version`` of LLVM reads it ("19", "22" or "main"). XLA ignores shardings on ops: with
        ``bind="all"`` every value gets a sharding constraint too, which XLA keeps; with ``bind="needed"``
        only the values that XLA would shard otherwise do.

        Raises ShardlogError if the notation cannot express a sharding.
        """
        if notation in ("shard", "mesh"):
            from .exporters.dialects.text import spelled

            with self.result.source.places():
                return spelled(self._in("sdy", bind), notation, dialect_version)
        self._refuse_unknown(notation)
        return str(self._in(notation, bind).operation.get_asm(assume_verified=True))

    def bytecode(self, notation: Notation = "sdy", bind: Bind = "none") -> bytes:
        """The annotated module as MLIR bytecode; arguments and errors are as for ``text``.

        MLIR's own dialects are refused: they are text.
        """
        from .program.mlir.modules import bytecode_of

        if notation in ("shard", "mesh"):
            raise ShardlogError(f"{notation} is written as text", where="run", hint="name the file .mlir")
        self._refuse_unknown(notation)
        return bytecode_of(self._in(notation, bind))

    def _refuse_unknown(self, notation: str) -> None:
        from .program.carried import check_sizes

        with self.result.source.places():
            check_sizes(self.result.module, notation, "; or keep it unknown: --notation shard")

    def _in(self, notation: Notation, bind: Bind) -> ir.Module:
        result, module = self.result, self.result.module
        if bind != "none":
            from .executing.needed import needed
            from .exporters.bind import bind as bound

            module = bound(module, result.book.traits, needed(result) if bind == "needed" else None)
        if notation == "sdy":
            return module
        from .notations.gspmd.write import to_gspmd

        with result.source.places():
            return to_gspmd(module, result.book.traits)

    def agreement(self) -> XlaAgreement | None:
        """How far the run agrees with XLA's decisions.

        None unless the program is from an XLA dump or was read in the view "compiled", and if its shardings
        are open.
        """
        if not self.result.source.after:
            return None
        from .runs.agreement import agreement

        return agreement(self.result)

    @_asked
    def query(self, body: str) -> Rows:
        """The rows for which the body of a rule holds, over the relations of ``docs/facts.md``.

        Raises ``engine.DatalogError`` for a malformed body.
        """
        from .runs.query import rows

        return rows(body, self.record.relation)

    @_asked
    def save(self, path: str | Path, progress: Progress | None = None) -> None:
        """Saves the run to a file, which ``shardlog.open`` and most commands read.

        ``progress`` is that of ``shardlog.run``. Raises ShardlogError if the file cannot be written.
        """
        from .runs.records.save import save

        save(self.result, Path(path), progress)

    # ---- Programs ---------------------------------------------------------------------------------------

    def compile(self, devices: Sequence[Any] | None = None) -> Executable:
        """Compiles the program with exactly these shardings.

        ``devices`` are JAX devices, as many as the mesh has; by default the first of JAX's. Returns an
        ``Executable``, which is called as the function was.

        Raises ShardlogError if XLA cannot compile the program, and if there are too few devices.
        """
        from .executing.executable import compiled

        return compiled(self.result, devices)

    def partition(
        self,
        form: ChosenForm = "sdy-manual",
        *,
        keep_shardings: bool = False,
        topology: str | None = None,
        memory: int | str | None = None,
        seconds: float | None = None,
        pins: str | Sequence[str] | Mapping[Any, Sharding] = (),
        collective_matmul: bool = False,
        plan: str | Path | PlanFile | None = None,
        order: str | None = None,
        dialect_version: str | None = None,
        whole_arguments: bool = False,
        refuse: bool = True,
    ) -> Partitioned:
        """The program that each device runs, as ``docs/partitioning.md`` describes.

        The shardings of the boundary and of constraints are kept. Other values may be sharded otherwise than
        propagation decided if that costs less in all. The result is cached: the same choice gives the
        same object.

        ``keep_shardings`` keeps all shardings. ``topology`` is a machine, by name or as a TOML file: time is
        minimised there instead of bytes. ``memory`` bounds what a device needs, in bytes or as in "16GiB".
        ``seconds`` bounds the search; its best result is taken. ``pins`` fix the shardings of results of ops,
        as in '%2=[{"data"}, {}]', or as a mapping from values of the annotated module. ``collective_matmul``
        overlaps collectives with the products that they serve, part by part if that is faster on the
        topology. ``order`` is "rfc" for reshards in the stages of the device mesh RFC, with all shardings
        kept. ``plan`` is a plan of this module, or its file, that the program follows; nothing else is
        chosen then.

        ``form`` is the form for XLA: one manual computation ("sdy-manual", also "stablehlo"), or a program
        per device for its partitions ("manual") or its replicas ("replica"). With "shard", its text is in
        MLIR's dialect shard, as the ``dialect_version`` of LLVM reads it ("22" or "main"), and with "mpi" in
        its dialect mpi; with ``whole_arguments`` each device takes its parts of whole arguments there. With
        ``refuse=False``, ops that cannot run on each device stay in the program, which can then be asked but
        not run.

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
            order=order,
            dialect_version=dialect_version,
            whole_arguments=whole_arguments,
        )
        if isinstance(pins, Mapping):
            return self.programs.made(choice, pins, refuse=refuse)
        return self.programs.of(choice, refuse=refuse)

    @cached_property
    def programs(self) -> Programs:
        """The partitioned programs of the run, each made once."""
        from .explanations.partitioned import Programs

        return Programs(self.result, self._explains)

    @cached_property
    def _explains(self) -> Callable[[], Explainer]:
        """The explainer of the run in memory, made when it is first asked for."""
        return cache(partial(_explainer_of, self.result))

    @_asked
    def conflicts(self, **program: Unpack[ProgramOptions]) -> Conflicts:
        """The tensors that must be resharded, most bytes first.

        Keywords are those of ``partition`` and choose the program; the default moves the fewest bytes.
        Raises ShardlogError if it cannot be partitioned.
        """
        return self.conflicts_of(ProgramChoice(**program))

    def conflicts_of(self, choice: ProgramChoice) -> Conflicts:
        """The conflicts in the program of a choice. Of a saved run they may have been found and kept before.

        Raises ShardlogError if it cannot be partitioned.
        """
        if self._saved is None:
            return self.programs.conflicts(choice)
        from .explanations.kept import conflicts_of

        return conflicts_of(self._saved, choice, lambda: self.programs.conflicts(choice))

    def keep(self, conflicts: Conflicts) -> None:
        """Keeps the conflicts of a saved run, with those annotations that were read, for later processes."""
        if self._saved is not None:
            from .explanations.kept import keep

            keep(self._saved, conflicts)

    @_asked
    def cost(self, **program: Unpack[ProgramOptions]) -> Cost:
        """The ``Cost`` of a partitioned program for one device, in seconds and bytes.

        Keywords are those of ``partition``. Without a ``topology`` the machine is a v5e. ``docs/cost.md``
        describes the model. Raises ShardlogError for an unknown machine.
        """
        return self.programs.cost(ProgramChoice(**program))

    @_asked
    def pin(self, pins: str | Sequence[str], /, **program: Unpack[ProgramOptions]) -> Pinned:
        """The effects of fixing the shardings of some values in a partitioned program.

        ``pins`` are values and shardings, as in ``'%2=[{"data"}, {}]'``; keywords are those of ``partition``.
        Raises ShardlogError for values that cannot be pinned.
        """
        from .explanations.questions.pins import pin

        return pin(self.programs, _texts(pins), ProgramChoice(**program))

    @_asked
    def chosen(self, value: str, **program: Unpack[ProgramOptions]) -> tuple[ChosenSharding, ...]:
        """Why a partitioned program shards a value otherwise than propagation did.

        Keywords are those of ``partition``. Empty if it does not.
        """
        from .explanations.questions.pins import chosen

        return chosen(self.programs, value, ProgramChoice(**program))

    # ---- Explanations -----------------------------------------------------------------------------------

    @cached_property
    def explainer(self) -> Explainer:
        """The explainer of the run's shardings."""
        if self._saved is None:
            return self._explains()
        from .explanations.questions.why import Explainer

        return Explainer(self._saved)

    @_asked
    def why(self, value: str, dim: int | None = None, axis: str | None = None) -> Reasons:
        """Why a value is sharded as it is.

        Returns an explanation for each axis, or for those on dimension ``dim`` (from 0) and of name ``axis``;
        none if the value is not sharded there. The method: ``docs/explanations.md``.
        """
        from .explanations.answers.answers import Reasons
        from .explanations.questions.unreduced import unreduced

        reasons = Reasons(self.explainer.why(value, dim, axis))
        if dim is None:
            reasons.unreduced = tuple(unreduced(self.explainer, value, axis))
        return reasons

    @_asked
    def why_not(self, value: str, dim: int, axis: str) -> Answers[WhyNot]:
        """Why dimension ``dim`` (from 0) of a value is not sharded on ``axis``.

        Returns an explanation for each value of that name. Raises ShardlogError if it is sharded on it.
        """
        from .explanations.answers.answers import Answers
        from .explanations.questions.why_not import why_not

        return Answers(why_not(self.explainer, value, dim, axis))

    @_asked
    def diff(self, other: Session) -> Diff:
        """The tensors that this run and another shard differently, and why, as a ``Diff``.

        Tensors of one program are matched by name, those of two programs by the ops that compute them.
        """
        from .explanations.questions.diff import diff

        return diff(self.record, other.record)

    @_asked
    def what_if(
        self,
        annotate: Given = (),
        drop: str | Sequence[str] = (),
        sharding_option: str | Sequence[str] = (),
        **program: Unpack[ProgramOptions],
    ) -> WhatIf:
        """The effects of other annotations, or of sharding options of ops.

        ``annotate`` is that of ``shardlog.run``; ``drop`` names values, or patterns of them, whose
        annotations are dropped. ``sharding_option`` is that of ``mutate``. Keywords are those of
        ``partition`` and choose the program whose bytes are counted. Raises ShardlogError for a value without
        an annotation to drop.
        """
        from .explanations.answers.what_if import WhatIf
        from .explanations.questions.diff import diff
        from .explanations.questions.what_if import dropped

        choice = ProgramChoice(**program)
        cells = dropped(self.record, _texts(drop))
        sharding_options = _texts(sharding_option)
        changed = (
            self._again(annotate, cells, sharding_options) if annotate or cells or sharding_options else self
        )
        before, error = self.programs.conflicts_or_error(choice)
        after, later = changed.programs.conflicts_or_error(choice)
        unpartitioned = str(error or later or "")
        return WhatIf(choice, diff(self.record, changed.record), before, after, unpartitioned)

    @_asked
    def mutate(
        self, options: str | Sequence[str], /, **program: Unpack[ProgramOptions]
    ) -> Mutated | MutatedFormulas:
        """How sharding options of ops change the partitioned program of a completed module.

        ``options`` are ops and the axes of each of their loops, as in ``'%4=[[], [], [], [0]]'``. The run is
        completed again with them. Keywords are those of ``partition``; by default all shardings are kept.
        Returns a ``Mutated``: bytes received, operations and memory of each device, before and after; where
        sizes of the grid are not known, a ``MutatedFormulas``: shapes and bytes as formulas in these. Raises
        ShardlogError for options that ops cannot have, and if the run is not one of completion.
        """
        from .explanations.questions.mutate import mutate

        texts = _texts(options)
        program.setdefault("keep_shardings", program.get("plan") is None)
        choice = ProgramChoice(**program)
        return mutate(self.programs, self._again(sharding_options=texts).programs, texts, choice)

    def _again(
        self, annotate: Given = (), without: Collection[Cell] = (), sharding_options: Sequence[str] = ()
    ) -> Session:
        """The run with more annotations and sharding options, and without those of some cells."""
        if self._saved is not None:
            return Session(self._saved.again(annotate, without, sharding_options))
        from .runs.running import run_again

        return Session(run_again(self.result, annotate, without, sharding_options))

    @_asked
    def visualize(self, value: str) -> Picture:
        """A picture of the devices that hold each part of a value; of several values, of the first.

        Raises ShardlogError for an unknown value, and if the module has no mesh.
        """
        from .explanations.answers.visualize import picture_of

        return picture_of(self.record, self.explainer.values.find(value)[0])

    @_asked
    def report(
        self, path: str | Path, progress: Progress | None = None, **program: Unpack[ProgramOptions]
    ) -> None:
        """Writes an HTML page about the run, with the collectives and the cost of a partitioned program.

        Keywords are those of ``partition``. ``progress`` is that of ``shardlog.run``. Raises ShardlogError
        where the file cannot be written, and if Jinja is not installed.
        """
        from .outputs import write

        write(path, self.report_html(progress, ProgramChoice(**program)).encode())

    def report_html(
        self,
        progress: Progress | None = None,
        choice: ProgramChoice | None = None,
        plan: Mapping[str, Any] | None = None,
    ) -> str:
        """The page that ``report`` writes. ``plan`` is what it shows of an automatic choice."""
        from .explanations.report import report

        if progress is not None:
            progress("reading the run", 0.0)
        return report(self.programs, progress, choice, plan)


def _texts(given: str | Sequence[str]) -> tuple[str, ...]:
    """One text or several."""
    return (given,) if isinstance(given, str) else tuple(given)


def _pre(text: str) -> str:
    """Text as HTML."""
    from .explanations.answers.notebook import text_html

    return text_html(text)


def _explainer_of(result: Result) -> Explainer:
    from .explanations.questions.why import Explainer

    return Explainer(result.record)


class Explained(Session):
    """A session that shows as a summary, or as an answer.

    The answer explains the sharding of ``value``. The summary counts the collectives of ``program``.
    """

    def __init__(
        self, session: Session, value: str | None = None, program: ProgramChoice | None = None
    ) -> None:
        super().__init__(None if session._saved else session.result, saved=session._saved)
        self._choice = program or ProgramChoice()
        self._reasons = None if value is None else self.why(value)

    def summary(self) -> str:
        """The meshes, the number of sharded tensors, and the tensors that must be resharded."""
        record = self.record
        lines = [f"mesh @{m.name}: {', '.join(f'{n}={s}' for n, s in m.axes)}" for m in record.meshes.meshes]
        tensors = {value.place: value for value in record.values()}
        sharded = sum(bool(v.manual) or any(record.axes(v.number)) for v in tensors.values())
        given = record.given_shardings()
        # A constraint may be its operand's annotation too.
        annotated = f"{len({(a.value, a.where) for a in given if a.by == 'user'}):,} annotations"
        specs = " and the specs of shard_maps" if any(a.spec for a in given) else ""
        lines.append(f"{sharded:,} of {len(tensors):,} tensors are sharded, by {annotated}{specs}")
        lines += [self._choice.line, self._moved()]
        lines += [f"no rule for {op['name']} at {op['location']}" for op in record.unknown_ops]
        return "\n".join([*lines, "ask: .why(value), .why_not(value, dim, axis), .conflicts()"])

    def _moved(self) -> str:
        """The tensors that must move, or the reason why they are not known."""
        from .explanations.answers.conflicts import must_move

        conflicts, error = self.programs.conflicts_or_error(self._choice)
        return f"the collectives are not known: {error}" if error else must_move(conflicts)

    def __repr__(self) -> str:
        return self.summary() if self._reasons is None else repr(self._reasons)

    def _repr_html_(self) -> str:
        if self._reasons is None:
            return _pre(self.summary())
        return self._reasons._repr_html_()

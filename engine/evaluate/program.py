"""Programs: the result of ``load``, and how they are evaluated."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, cast

from ..language.diagnostics import Diagnostic, EngineError, unknown_relation
from ..plan.cache import PlanCache, PlanText, Request
from ..plan.plan import PlanDirective, QueryPlan, Relation
from .branches import Branches
from .limits import UNLIMITED, Limits

if TYPE_CHECKING:
    import numpy as np

    from .._core import Program as CoreProgram
    from .reference import Evaluation
    from .store import Store

Row: TypeAlias = tuple[Any, ...]
Facts: TypeAlias = Mapping[str, "Iterable[Sequence[Any]] | np.ndarray[Any, Any]"]
Answers: TypeAlias = dict[str, list[Row]]
Backend: TypeAlias = Literal["auto", "core", "reference"]


def load(
    paths: Sequence[Path | str] = (),
    *,
    key: str | None = None,
    texts: Mapping[str, str] | None = None,
    include_from: Sequence[Path | str] = (),
    untyped: Callable[[str], bool] = lambda file: False,
    files: bool = True,
    updates: bool = False,
    magic: bool = False,
    macros: Mapping[str, str] | None = None,
    pragmas: Mapping[str, str] | None = None,
    functors: Collection[str] = (),
    examine: Callable[[QueryPlan], Any] | None = None,
    cache: PlanCache | None = None,
) -> LoadedProgram:
    """Read Datalog files as one program, check and plan it.

    ``texts`` are further sources by a name that stands for their file; an ``.include`` may name them. With
    ``key``, the name of a type, relations whose first column has that type are keyed, and the program is
    solved for one key at a time: see ``LoadedProgram.solver``. Files may include files of their own folder
    and of those in ``include_from``. In rules of ``untyped`` files, a column declared as a plain ``number``
    or ``symbol`` fits where a subtype is expected. Without ``files``, directives that name files are errors.
    With ``updates`` the plan says how a ``store`` continues after facts were added. With ``magic``, relations
    have only the tuples that its outputs need: narrowed ones, and by magic sets where ``.pragma`` asks for
    them. ``macros`` are defined before the first file. ``pragmas`` come after the last one, so that they
    replace those of the files. A program whose plan is in ``cache`` is not compiled; other plans are stored
    there. Warnings come from compilation, and are not cached. ``functors`` are those that the program may
    declare: their calls become relations, as ``transform.functors`` says, which the caller fills. ``examine``
    gets the plan of a program that is compiled. It may raise an error, or return remarks that JSON can hold:
    they are cached with the plan.

    Raises DatalogError with every error found.
    """
    request = Request(
        paths,
        key,
        texts or {},
        include_from,
        untyped,
        files,
        updates,
        magic,
        macros or {},
        pragmas or {},
        tuple(functors),
        examine,
    )
    kept = cache.find(request) if cache else None
    if kept is not None:
        return LoadedProgram(kept, (), kept.remarks)
    from ..plan.compiler import compile_program

    plan, sources, diagnostics = compile_program(request)
    remarks = examine(plan) if examine else None
    if cache:
        cache.keep(request, plan, sources, remarks)
    return LoadedProgram(plan, tuple(diagnostics), remarks)


class Solver(Protocol):
    """A keyed program with its shared relations: solves one key at a time."""

    def solve(self, facts: Facts, outputs: Sequence[str] | None = None) -> Answers:
        """The sorted tuples of ``outputs`` for the facts of one key; neither has the key's column."""
        ...


@dataclass(frozen=True)
class LoadedProgram:
    """A checked and planned program.

    ``given`` is its plan, which as a text is read when it is asked for. ``remarks`` are those of ``examine``.
    """

    given: QueryPlan | PlanText
    warnings: tuple[Diagnostic, ...] = ()
    remarks: Any = None

    @cached_property
    def plan(self) -> QueryPlan:
        """The steps of all rules, in strata; read from the text of a stored plan when first asked for."""
        return QueryPlan.from_json(self.given.text) if isinstance(self.given, PlanText) else self.given

    @property
    def key(self) -> str | None:
        """The type that the program is keyed by, if it is."""
        return self.given.key

    @cached_property
    def relations(self) -> dict[str, Relation]:
        """The relations by name; in a keyed program keyed ones have lost their first column."""
        return {relation.name: relation for relation in self.plan.relations}

    @property
    def directives(self) -> tuple[PlanDirective, ...]:
        """The inputs and outputs that the program asks for, in textual order. The caller carries them out."""
        return self.plan.directives

    @cached_property
    def outputs(self) -> list[str]:
        """The names of the relations that are ``.output`` or ``.printsize``, in the order of declaration."""
        return [name for name, output in self._names.items() if output]

    def declares(self, relation: str) -> bool:
        """Whether the program has a relation of this name."""
        return relation in self._names

    @cached_property
    def _names(self) -> Mapping[str, bool]:
        """The names of the relations, with whether they are outputs."""
        if isinstance(self.given, PlanText):
            return self.given.relations
        return {relation.name: relation.output for relation in self.given.relations}

    def evaluate(
        self,
        facts: Facts,
        outputs: Sequence[str] | None = None,
        backend: Backend = "auto",
        limits: Limits = UNLIMITED,
    ) -> Answers:
        """The sorted tuples of the relations ``outputs`` (default: all outputs of the program).

        Facts are tuples of int, float, str, and tuple or None for records, or an int64 array of shape
        (tuples, columns). Raises EngineError for facts that do not fit, and for errors at run time, such as
        ``limits``. Other threads run meanwhile, and Ctrl-C stops it.
        """
        if self.key is not None:
            raise EngineError(f"the program is keyed by `{self.key}`: use solver(...).solve(...)")
        names = self._outputs(outputs)
        core = _core(backend)
        if core is not None:
            answers = self._in_core(core).evaluate(self._rows(facts), names, limits)
            return self._outward(answers) if self._branches else answers
        from .reference import Evaluation

        evaluation = Evaluation(self.plan, limits=limits)
        self._insert(evaluation, facts)
        evaluation.run(self.plan.strata, self._indices(names))
        return self._answers(evaluation, names)

    def evaluate_arrays(
        self, facts: Facts, backend: Backend = "auto", limits: Limits = UNLIMITED
    ) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
        """As ``evaluate``, but all outputs, which hold numbers, are arrays of shape (tuples, columns)."""
        import numpy as np

        core = _core(backend)
        if core is not None and self.key is None:
            return self._in_core(core).evaluate_arrays(self._rows(facts), None, limits)
        answers = self.evaluate(facts, None, backend, limits)
        widths = {name: len(self.relations[name].columns) for name in answers}
        return {name: np.asarray(rows, np.int64).reshape(-1, widths[name]) for name, rows in answers.items()}

    def solver(self, shared: Facts, backend: Backend = "auto", limits: Limits = UNLIMITED) -> Solver:
        """A solver for single keys, each under ``limits``.

        ``shared`` are the facts of relations that are not keyed.
        """
        if self.key is None:
            raise EngineError("the program has no key: use evaluate(...)")
        core = _core(backend)
        if core is None:
            return _ReferenceSolver(self, shared, limits)
        return _CoreSolver(self, core, shared, limits)

    def store(self, backend: Backend = "auto") -> Store:
        """The program with facts that come bit by bit; it has no key."""
        core = _core(backend)
        if core is not None:
            return self._in_core(core).store()
        from .store import ReferenceStore

        return ReferenceStore(self.plan)

    def _in_core(self, core: Any) -> CoreProgram:
        """The program as ``core`` holds it, made once."""
        if "_compiled" not in self.__dict__:
            text = self.given.text if isinstance(self.given, PlanText) else self.given.to_json()
            self.__dict__["_compiled"] = core.Program(text)
        return cast("CoreProgram", self.__dict__["_compiled"])

    def _rows(self, facts: Facts) -> dict[str, Any]:
        """Facts for ``core``, which checks the rows itself."""
        given: dict[str, Any] = {}
        for name, rows in facts.items():
            rows = self._inward(self._known(name), rows)
            given[name] = rows if isinstance(rows, list) or hasattr(rows, "dtype") else list(rows)
        return given

    @cached_property
    def _branches(self) -> Branches | None:
        """The algebraic data types of the program; None where it has none, which a text says at its end."""
        if isinstance(self.given, PlanText) and self.given.text.endswith('"branches":{}}'):
            return None
        return Branches(self.plan) if self.plan.branches else None

    def _inward(self, name: str, rows: Any) -> Any:
        return self._branches.inward(self.relations[name], rows) if self._branches else rows

    def _outward(self, answers: Answers) -> Answers:
        assert self._branches is not None
        outward, relations = self._branches.outward, self.relations
        return {name: list(outward(relations[name], rows)) for name, rows in answers.items()}

    def _insert(self, evaluation: Evaluation, facts: Facts) -> None:
        from .facts import tuples

        by_index = {self.plan.index(self._known(name)): rows for name, rows in facts.items()}
        for index, rows in sorted(by_index.items(), key=lambda pair: pair[0]):
            relation = self.plan.relations[index]
            inward = self._inward(relation.name, rows)
            evaluation.give(index, tuples(relation, inward, self.plan.records))

    def _answers(self, evaluation: Evaluation, names: Sequence[str]) -> Answers:
        answers = {name: evaluation.rows(self.plan.index(name)) for name in names}
        return self._outward(answers) if self._branches else answers

    def _outputs(self, outputs: Sequence[str] | None) -> list[str]:
        return self.outputs if outputs is None else [self._known(name) for name in outputs]

    def _indices(self, names: Sequence[str]) -> list[int]:
        return [self.plan.index(name) for name in names]

    def _known(self, name: str) -> str:
        if name not in self._names:
            raise unknown_relation(name, self._names)
        return name


class _ReferenceSolver:
    def __init__(self, program: LoadedProgram, shared: Facts, limits: Limits) -> None:
        from .reference import Evaluation

        plan = program.plan
        self._program, self._limits = program, limits
        self._shared = Evaluation(plan, limits=limits)
        program._insert(self._shared, shared)
        self._shared.run(plan.strata[: plan.shared], range(len(plan.relations)))

    def solve(self, facts: Facts, outputs: Sequence[str] | None = None) -> Answers:
        from .reference import Evaluation

        program, plan = self._program, self._program.plan
        names = program._outputs(outputs)
        evaluation = Evaluation(plan, self._shared, self._limits)
        program._insert(evaluation, facts)
        evaluation.run(plan.strata[plan.shared :], program._indices(names))
        return program._answers(evaluation, names)


class _CoreSolver:
    def __init__(self, program: LoadedProgram, core: Any, shared: Facts, limits: Limits) -> None:
        self._program = program
        self._solver = program._in_core(core).solver(program._rows(shared), limits)

    def solve(self, facts: Facts, outputs: Sequence[str] | None = None) -> Answers:
        names = self._program._outputs(outputs)
        answers = self._solver.solve(self._program._rows(facts), names)
        return self._program._outward(answers) if self._program._branches else answers


def _core(backend: Backend) -> Any:
    """The compiled evaluator.

    None if the reference is wanted, or if it is not built: then a process warns once.
    """
    if backend == "reference":
        return None
    try:
        return importlib.import_module(".._core", __package__)
    except ImportError as error:
        if backend == "core":
            raise EngineError(f"the compiled evaluator is not installed: {error}") from None
        _warn()
        return None


@cache
def _warn() -> None:
    message = "the compiled evaluator is not installed; the reference is much slower"
    warnings.warn(message, RuntimeWarning, stacklevel=4)

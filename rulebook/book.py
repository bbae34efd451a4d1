"""The rules that shardlog comes with, loaded once per process, and the rules that a user adds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..engine import Limits, LoadedProgram, Solver
from ..program.meshes import Mesh
from ..program.shardy import installed
from .discover import discovered
from .invalid import MISFIT, Invalid, find_invalid
from .invalid import RELATIONS as INVALID
from .naming import Names, shipped_naming, speak_of
from .shipped import RULES, shipped, unbound_ops
from .traits import OpTraits, traits

if TYPE_CHECKING:
    import numpy as np

    from ..engine.provenance.proof import Proof
    from ..program.classes import SignatureAnswers

Facts = Mapping[str, Any]
LIMITS = Limits(tuples=1_000_000, memory=4 << 30, seconds=6)  # for one op with a user's rules
_PROPAGATION = (
    *(
        "turn",
        "boundary",
        "constraints",
        "siblings",
        "unreduced",
        "completion",
        "tactics",
        "constants",
        "groups",
        "schedule",
    ),
)


@dataclass(frozen=True)
class _Answers:
    """The answers of op rules about signatures, and the parts that were read. ``solver`` knows which Shardy
    is meant; ``unbound`` does not, for facts about ops that hold for every Shardy."""

    solver: Solver
    unbound: Solver
    classified: dict[Hashable, dict[str, list[tuple[Any, ...]]]] = field(default_factory=dict)
    knowledge: dict[Hashable, SignatureAnswers] = field(default_factory=dict)
    local: dict[Hashable, dict[str, list[tuple[Any, ...]]]] = field(default_factory=dict)

    @cached_property
    def traits(self) -> OpTraits:
        return traits(self.solver)


def _meant(shardy: str) -> Facts:
    """The facts about the run that op rules get: which Shardy is meant."""
    return {"shardy_version": [(shardy,)]}


@cache
def _answers(shardy: str) -> _Answers:
    """The answers of the op rules that come with shardlog, for a line of Shardy."""
    return _Answers(shipped("ops/main").solver(_meant(shardy)), unbound_ops())


def builtin_ops() -> tuple[LoadedProgram, Solver]:
    """The shipped op rules, and their solver, which knows no Shardy."""
    return shipped("ops/main"), unbound_ops()


# The relations about how an op becomes local; see ``rules/partition/local.dl``.
LOCAL = (
    *("factor", "maps", "known", "no_rule", "lowers", "refuses", "splits", "leaves_partial", "combined_by"),
    *("combined_by_itself", "expands_scalar", "multiplies", "fills", "local_size", "counts", "starts"),
    *(
        "needs_stretch",
        "padding_of",
        "stands_for_zero",
        "reads_backwards",
        "accumulates",
        "reads_around",
        "reads_from_first",
        "maps_along",
        "passes_partial",
        "picks",
        "picks_of",
        "looks_up",
        "gives_nothing",
        "evenly",
        "sized_by",
    ),
    "touches_part",
)


# The relations about explicit reshards; see ``rules/ops/reshards.dl``.
RESHARDS = ("reshard_combines", "reshard_leaves", "may_mark", "reshard_marks", "reshard_alone")
# The relations about the values that an op is made for; see ``rules/ops/domains.dl``.
DOMAINS = ("asks", "asks_for", "hands", "edge_source", "edge_target")


def _holding(holds: Mapping[str, bool]) -> Facts:
    """The facts about a query with a single case."""
    return {name: [()] for name, is_so in holds.items() if is_so}


def _key(signature: Facts) -> Hashable:
    return tuple((name, tuple(rows)) for name, rows in signature.items())


def reasons() -> LoadedProgram:
    """The rules of a turn, and the rules for why an axis stops; see ``rules/propagation/blocked.dl``."""
    return shipped("propagation/blocked")


class RuleBook:
    """The rules for one run: shipped rules, rules of packages, and the files in ``extra``. ``op_priorities``,
    a file, has the order in which ops propagate (``rulebook/notations/priorities.py``). Rules that do not
    come with shardlog run under ``LIMITS``, changed as ``limits`` says, per signature. ``shardy`` is the line
    of Shardy (``program/shardy.py``), by default the installed jaxlib's.

    ``asked`` are the facts that programs have been asked about, by the name of the program: an entry per key,
    or a single one where the program has no key. (Turns are the agenda's.)
    """

    def __init__(
        self,
        extra: Iterable[Path] = (),
        op_priorities: Path | None = None,
        *,
        include_from: Sequence[Path | str] = (),
        limits: str = "",
        shardy: str | None = None,
    ) -> None:
        packages, given = discovered(), tuple(dict.fromkeys(extra))
        self.op_priorities = op_priorities
        self.shared = _meant(shardy or installed())  # the facts that are shared by all signatures
        self._shipped = _answers(shardy or installed())
        self.files: tuple[Path, ...] = ()
        self.ops, messages = shipped("ops/main"), list[str]()
        self._about: Names = frozenset()
        own = bool(packages or given) or op_priorities is not None
        if own:
            from .users import load_packages

            own_rules = load_packages(packages, given, op_priorities, include_from)
            self.ops, self.files = own_rules.program, own_rules.files
            self._about, messages = own_rules.about, own_rules.messages
        for message in messages:
            warnings.warn(message, stacklevel=2)
        each = LIMITS.changed(limits)
        self._invalid: set[Hashable] = set()  # signatures about which the rules say what makes no sense
        self.asked: dict[str, list[Facts]] = {}
        self._decisions: dict[str, dict[Hashable, dict[str, list[tuple[Any, ...]]]]] = {}
        # The rules that come with shardlog answer once per process: a signature has one answer for good,
        # unless more rules are about it.
        self._answers = self._shipped
        if own:
            meant, unbound = (
                self.ops.solver(shared_facts, limits=each) for shared_facts in (self.shared, {})
            )
            self._answers = _Answers(meant, unbound)
        self._ops = self._answers.solver
        shared = self._ops.solve({}, ["looks_at", "op_priority_level"])
        self.looks_at: list[tuple[str, str]] = [
            (str(name), str(surrounding)) for name, surrounding in shared["looks_at"]
        ]
        self.levels = shared["op_priority_level"]

    def programs(self) -> dict[str, LoadedProgram]:
        """All programs by name."""
        return {"ops": self.ops, **{name: shipped(f"propagation/{name}") for name in _PROPAGATION}}

    def text(self) -> str:
        """The op rules as one text of Datalog, for other engines: files of Datalog are included."""
        from .users import as_text

        return as_text(self.files, self.op_priorities)

    def unknown_priorities(self, ops: Iterable[Any]) -> list[str]:
        """A message for each entry of ``op_priorities`` about ops that neither the rules nor a module (with
        these ``ops``) have."""
        if self.op_priorities is None:
            return []
        from .notations.einsum import read_text
        from .notations.priorities import parse_priorities, unknown_names

        entries = parse_priorities(str(self.op_priorities), read_text(self.op_priorities))
        return list(unknown_names(entries, shipped_naming().known(self.ops.plan), ops))

    def classify(self, signature: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """The answer of the op rules about a signature; see ``rules/ops/schema.dl``.

        Raises ShardlogError where the rules of a user or a package contradict themselves or the op.
        """
        answers = self.unchecked(signature)
        for invalid in self.invalid(signature):
            raise invalid.error(signature)
        return answers

    def unchecked(self, signature: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """``classify``, but invalid answers are returned too."""
        self._note("ops", signature)
        key = _key(signature)
        own = speak_of(self._about, signature)
        answers = self._answers if own else self._shipped
        if key not in answers.classified:
            said = answers.solver.solve(signature, [*self.ops.outputs, *INVALID] if own else None)
            answers.classified[key] = said
            wrong = [said.pop(name, []) for name in INVALID]
            if any(wrong):
                self._invalid.add(key)
        return answers.classified[key]

    def knowledge(self, signature: Facts, words: Hashable = None) -> SignatureAnswers:
        """The answers of ``classify``, as the graph is built from them. ``words`` are some that signatures
        have only where their facts are equal: they are looked up faster."""
        key = words or _key(signature)
        answers = self._about_it(signature).knowledge
        if key in answers:
            self._note("ops", signature)
        else:
            from ..program.classes import knowledge

            answers[key] = knowledge(signature, self.classify(signature))
        return answers[key]

    def localize(self, signature: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """The answer of the op rules about how an op becomes local, which no Shardy is asked: ``LOCAL``."""
        answers, key = self._about_it(signature), _key(signature)
        if key not in answers.local:
            answers.local[key] = answers.unbound.solve(signature, LOCAL)
        return answers.local[key]

    @property
    def traits(self) -> OpTraits:
        """The facts about ops by their names alone."""
        return self._answers.traits

    def domains(self, signature: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """The answer of the op rules about the values that an op is made for: ``DOMAINS``."""
        return self._about_it(signature).unbound.solve(signature, DOMAINS)

    def reshards(self, signature: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """The answer of the op rules about explicit reshards: ``RESHARDS``."""
        return self._about_it(signature).solver.solve(signature, RESHARDS)

    def _about_it(self, signature: Facts) -> _Answers:
        """The answers of the rules that say something about a signature."""
        return self._answers if speak_of(self._about, signature) else self._shipped

    @cached_property
    def domains_look_at(self) -> list[tuple[str, str]]:
        """The surroundings that ``domains`` needs, besides those of ``looks_at``."""
        rows = self._ops.solve({}, ["domains_look_at"])["domains_look_at"]
        return [(str(name), str(surrounding)) for name, surrounding in rows]

    @cached_property
    def partition_looks_at(self) -> list[tuple[str, str]]:
        """The surroundings that ``localize`` needs, besides those of ``looks_at``."""
        rows = self._ops.solve({}, ["partition_looks_at"])["partition_looks_at"]
        return [(str(name), str(surrounding)) for name, surrounding in rows]

    @staticmethod
    def candidates(shared: Facts) -> Solver:
        """A solver for the ways in which an op can be computed; ``shared`` are the facts about axes. See
        ``rules/partition/candidates.dl``."""
        return shipped("partition/candidates").solver(shared)

    @staticmethod
    def choice(shared: Facts) -> Solver:
        """A solver for which of these ways is taken; ``shared`` are the facts about prices. See
        ``rules/partition/choice.dl``."""
        return shipped("partition/choice").solver(shared)

    def because(self, signature: Facts, relation: str, row: tuple[Any, ...]) -> Proof | None:
        """The proof of a fact of ``localize`` about a signature, such as that the op is computed in
        parts."""
        from ..engine.provenance.proof import Derivations

        ops = self.ops if speak_of(self._about, signature) else shipped("ops/main")
        return Derivations(ops, signature, [relation]).proof(relation, row)

    @staticmethod
    def dearer(facts: Facts, candidate: int, than: int) -> Proof | None:
        """Why one way to compute an op was not taken, but another; see ``rules/partition/choice.dl``."""
        from ..engine.provenance.proof import Derivations

        return Derivations(shipped("partition/choice"), facts, ["dearer"]).proof("dearer", (candidate, than))

    def invalid(self, signature: Facts) -> tuple[Invalid, ...]:
        """The errors in the answer of a user's or a package's rules about a signature that was classified
        before."""
        if not self._invalid or _key(signature) not in self._invalid:
            return ()
        from .users import places

        errors = find_invalid(self.ops, {**signature, **self.shared}, places(self.files), str(RULES))
        return tuple(invalid for invalid in errors if invalid.place)

    def misfit(self, signature: Facts) -> str:
        """The mismatch between an op's operands and results, by shardlog's own rules; "" if there is none."""
        if speak_of(self._about, signature) or not self._shipped.solver.solve(signature, MISFIT)["misfit"]:
            return ""
        errors = find_invalid(shipped("ops/main"), {**signature, **self.shared}, {}, str(RULES), MISFIT)
        return next(errors).what

    def turn(self, shared: Facts) -> Solver:
        """A solver for turns: the axes that the slots of one item gain. ``shared`` are the facts about the
        axes."""
        return shipped("propagation/turn").solver(shared)

    def boundary(self, shared: Facts) -> Callable[[Facts], list[tuple[Any, ...]]]:
        """The axes that arguments and results of functions may keep; see ``rules/propagation/boundary.dl``.

        Returns a function from the facts about a value to the rows of ``sharded`` that it keeps.
        """
        solver = shipped("propagation/boundary").solver({**shared, **self.shared})

        def kept(facts: Facts) -> list[tuple[Any, ...]]:
            self._note("boundary", facts)
            return solver.solve(facts, ["kept"])["kept"]

        return kept

    def takes(self, **holds: bool) -> bool:
        """Whether a result takes the sharding of the returned value. What ``holds`` of it: "single_device",
        as the mesh has only one; "entry", because it belongs to the main function and has no sharding
        itself; "token_of_flow". See ``rules/propagation/boundary.dl``."""
        holds = {"returned": True, **holds}
        return bool(self._decide("boundary", _holding(holds))["takes"])

    def refuses(self, **holds: bool) -> bool:
        """Whether an argument or result is refused. What ``holds`` of it: "single_device", as a function has
        it on one; "devices_differ", as the results of an op are on several. See
        ``rules/propagation/boundary.dl``."""
        return bool(self._decide("boundary", _holding(holds))["refused"])

    def crosses(self, *, axes_differ: bool, unreduced_differ: bool) -> tuple[bool, bool]:
        """Whether the result of a call is resharded, and whether the call keeps the sharding of the result,
        if it differs from the function's result. See ``rules/propagation/boundary.dl``."""
        holds = {"axes_differ": axes_differ, "unreduced_differ": unreduced_differ}
        answers = self._decide("boundary", _holding(holds))
        return bool(answers["resharded"]), bool(answers["keeps"])

    def stages(self, strategy: str, priorities: Iterable[int]) -> Sequence[tuple[int, int, int | None, str]]:
        """(number, user priority, op-priority level, strategy) of the stages, in order.

        The level is None in a stage without op priorities. ``priorities`` are the user priorities that
        annotations use.
        """
        facts = {
            "strategy_wanted": [(strategy,)],
            "priority_used": [(p,) for p in sorted({*priorities, 0})],
            "op_priority_level": self.levels,
        }
        rows = self._evaluate("schedule", facts)["stage"]
        return [(int(i), int(p), None if n < 0 else int(n), str(s)) for i, p, n, s in rows]

    def constants(self, facts: Facts) -> Mapping[str, np.ndarray[Any, np.dtype[np.int64]]]:
        """The ops that are constant sub-computations; see ``rules/propagation/constants.dl`` for the
        facts."""
        self._note("constants", facts)
        return shipped("propagation/constants").evaluate_arrays(facts)

    def constraint(self, facts: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """The fate of a sharding constraint; see ``rules/propagation/constraints.dl`` for the facts."""
        return self._decide("constraints", facts)

    def completion(self, facts: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """The sharding option of an op; see ``rules/propagation/completion.dl`` for the facts."""
        return self._decide("completion", facts)

    def tactic(self, facts: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """Which dimension of a tensor gets axes; see ``rules/propagation/tactics.dl`` for the facts."""
        return self._decide("tactics", facts)

    def attribute(self, to: str, *, has_edges: bool, several_meshes: bool) -> tuple[bool, bool]:
        """Whether values are siblings, and whether they are in propagation; they belong ``to`` an "op" or a
        "call" as its results, or to a "function" as its arguments: see ``rules/propagation/siblings.dl``."""
        holds = {"has_edges": has_edges, "several_meshes": several_meshes}
        answers = self._decide("siblings", {"belongs": [(to,)], **_holding(holds)})
        return bool(answers["stands_together"]), bool(answers["goes_along"])

    def siblings(
        self, when: str, held: Sequence[int | None], meshes: Sequence[Mesh]
    ) -> tuple[dict[int, int], set[int]]:
        """The shardings of siblings, whose meshes have the numbers ``held``. Returns the siblings that get an
        open sharding, with its mesh, and the siblings that lose theirs. See
        ``rules/propagation/siblings.dl``, also for ``when``."""
        used = sorted({mesh for mesh in held if mesh is not None})
        facts = {
            "looked_at": [(when,)],
            "sibling": [(i,) for i in range(len(held))],
            "on_mesh": [(i, mesh) for i, mesh in enumerate(held) if mesh is not None],
            "single_device": [(mesh,) for mesh in used if meshes[mesh].maximal],
        }
        answers = self._decide("siblings", facts)
        return dict(answers["opens"]), {i for (i,) in answers["loses"]}

    def unreduced(self, facts: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """The refusals of unreduced axes at an op, and the ops that are looked through; see
        ``rules/propagation/unreduced.dl`` for the facts."""
        return self._decide("unreduced", facts)

    def groups(self, grouped: Sequence[tuple[int, int]]) -> dict[int, list[int]]:
        """The values that share a sharding, in the given order, by the least of them; from (value, group id)
        pairs."""
        if not grouped:
            return {}
        leaders = dict(self._evaluate("groups", {"grouped": grouped})["leader"])
        members: dict[int, list[int]] = {}
        for value in dict.fromkeys(value for value, _ in grouped):
            members.setdefault(int(leaders[value]), []).append(value)
        return members

    def _evaluate(self, name: str, facts: Facts) -> dict[str, Any]:
        self._note(name, facts)
        return shipped(f"propagation/{name}").evaluate(facts)

    def _decide(self, name: str, facts: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """The answer of a keyed program about a case. Few cases are distinct, and each is solved once."""
        decisions, key = self._decisions.setdefault(name, {}), _key(facts)
        if key not in decisions:
            self._note(name, facts)
            program = shipped(f"propagation/{name}")
            given_facts = {
                relation: rows for relation, rows in self.shared.items() if program.declares(relation)
            }
            decisions[key] = program.solver(given_facts).solve(facts)
        return decisions[key]

    def _note(self, name: str, facts: Facts) -> None:
        self.asked.setdefault(name, []).append(facts)

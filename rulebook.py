"""The rules that shardlog comes with, loaded once per process, and the rules that a user adds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from .engine import Program, Solver, load
from .errors import ShardlogError

RULES = Path(__file__).parent / "rules"
STRATEGIES = ("basic", "aggressive", "op-priority", "user-priority", "basic-then-aggressive")
Facts = Mapping[str, Any]


@cache
def _program(files: tuple[Path, ...], key: str | None = None) -> Program:
    return load(files, key=key)


def _propagation(name: str, key: str | None = None) -> Program:
    return _program((RULES / f"propagation/{name}.dl",), key)


class RuleBook:
    """The rules for one run: those that come with shardlog and the files in ``extra``."""

    def __init__(self, extra: Iterable[Path] = ()) -> None:
        files = tuple(extra)
        for path in files:
            if not path.is_file():
                raise ShardlogError("no such rule file", where=str(path))
        program = _program((RULES / "ops/main.dl", RULES / "ops/splitting.dl", *files), "sig")
        self._ops = program.solver({})
        self.looks_at: list[tuple[str, str]] = [
            (str(name), str(what)) for name, what in self._ops.solve({}, ["looks_at"])["looks_at"]
        ]

    def classify(self, signature: Facts) -> dict[str, list[tuple[Any, ...]]]:
        """What the op rules say about a signature; see ``rules/ops/schema.dl``."""
        return self._ops.solve(signature)

    def turn(self, shared: Facts) -> Solver:
        """What the slots of one op gain in one turn; ``shared`` are the facts about the axes."""
        return _propagation("turn", "item").solver(shared)

    def boundary(self, shared: Facts) -> Solver:
        """What arguments and results of functions can take; see ``rules/propagation/boundary.dl``."""
        return _propagation("boundary", "value").solver(shared)

    def stages(self, strategy: str, priorities: Iterable[int]) -> Sequence[tuple[int, int, int, str]]:
        """(number, user priority, op-priority level, strategy) of the stages, in order.

        ``priorities`` are the user priorities that annotations use.
        """
        facts = {"strategy_wanted": [(strategy,)], "priority_used": [(p,) for p in sorted({*priorities, 0})]}
        return [(int(i), int(p), int(n), str(s)) for i, p, n, s in _propagation("schedule").evaluate(facts)["stage"]]

    def constants(self, facts: Facts) -> dict[str, Any]:
        """Which ops are constant sub-computations; see ``rules/propagation/constants.dl`` for the facts."""
        return _propagation("constants").evaluate(facts)

    def groups(self, grouped: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
        """Pairs of values that share a sharding, from (value, group id) pairs."""
        if not grouped:
            return []
        return [(int(v), int(w)) for v, w in _propagation("groups").evaluate({"grouped": grouped})["same"]]


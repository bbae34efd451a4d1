"""Annotations as facts, numbered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...program.reductions import UNREDUCED
from ...program.shardings import Sharding, Shardings

Facts = dict[str, list[tuple[Any, ...]]]
Note = int  # an annotation, numbered; NONE: there is none
NONE = -1


class Notes:
    """Annotations as facts, numbered: equal ones are one."""

    def __init__(self, shardings: Shardings) -> None:
        self.shardings = shardings
        self.facts: list[tuple[tuple[str, tuple[tuple[Any, ...], ...]], ...]] = []
        self._numbers: dict[Any, Note] = {}
        self._read: dict[tuple[Sharding, int], Note] = {}

    def number(self, facts: Facts) -> Note:
        """The number of an annotation; ``facts`` are the facts of a slot, without the slot's number."""
        key = tuple((name, tuple(sorted(rows))) for name, rows in sorted(facts.items()) if rows)
        if key not in self._numbers:
            self._numbers[key] = len(self.facts)
            self.facts.append(key)
        return self._numbers[key]

    def read(self, sharding: Sharding, entries: int) -> Note:
        """The number of a sharding, with only its first dimensions annotated."""
        key = sharding, entries
        if key not in self._read:
            held = self.shardings.facts(sharding)
            closed = {d for (d,) in held["closed"]} | {d for d, _, _ in held["sharded"]}
            partial = sorted(x for x, why in held["fixed"] if why in UNREDUCED.values())
            self._read[key] = self.number(
                {
                    "on_grid": [(m,) for (m,) in held["mesh"]],
                    "says": [(d,) for d in sorted(closed) if d < entries],
                    "sharded": held["sharded"],
                    "partial": list(enumerate(partial)),
                    "partial_as": [(sharding.reduction,)] if partial else [],
                }
            )
        return self._read[key]

    def given(
        self,
        grid: int,
        rank: int,
        sharded: Iterable[tuple[int, int, int]],
        partial: Iterable[int],
        reduction: str,
    ) -> Note:
        """The number of an annotation that completion gives. It speaks of the first dimension, and of those
        before the last split one. The order of partial axes means nothing."""
        rows = sorted(sharded)
        last = max((d for d, _, _ in rows), default=0 if rank else -1)
        return self.number(
            {
                "on_grid": [(grid,)],
                "says": [(d,) for d in range(last + 1)],
                "sharded": rows,
                "partial": list(enumerate(sorted(partial))),
                "partial_as": [(reduction,)] if partial else [],
            }
        )

    def at(self, note: Note, slot: int) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
        """The facts of an annotation, of a slot."""
        for name, rows in self.facts[note]:
            yield name, [(slot, *row) for row in rows]

    def same(self, one: Note, other: Note) -> bool:
        """Whether two annotations split alike; how many dimensions they speak of does not count."""
        if one == other:
            return True
        if NONE in (one, other):
            return False
        kept = [[part for part in self.facts[note] if part[0] != "says"] for note in (one, other)]
        return kept[0] == kept[1]

    def sharding(self, note: Note, rank: int) -> Sharding:
        """The sharding that an annotation says, all of whose dimensions are closed."""
        facts = {name: list(rows) for name, rows in self.facts[note]}
        ((reduction,),) = facts.get("partial_as", [("sum",)])
        held: dict[str, list[tuple[Any, ...]]] = {
            "mesh": list(facts["on_grid"]),
            "sharded": list(facts.get("sharded", [])),
            "closed": [(d,) for d in range(rank)],
            "fixed": [(x, UNREDUCED[reduction]) for _, x in facts.get("partial", [])],
        }
        sharding = self.shardings.sharding(held, rank)
        assert sharding is not None
        return sharding

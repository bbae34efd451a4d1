"""Traits of ops: the facts of rules about ops by their names alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..engine import LoadedProgram, Solver

Rows = tuple[tuple[Any, ...], ...]


@dataclass(frozen=True)
class OpTraits:
    """The facts about ops by name of one rule book, with the user's: ``facts`` are the relations that
    ``names_op`` lists (``rules/ops/schema.dl``), in order, each with its rows. Equal for books that say the
    same."""

    facts: tuple[tuple[str, Rows], ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash(self.facts)

    @cached_property
    def relations(self) -> Mapping[str, Rows]:
        """The rows of each relation."""
        return dict(self.facts)

    def family(self, relation: str) -> frozenset[str]:
        """The ops that a relation has, such as ``same_value_op``. Raises KeyError for one that has none."""
        return self._families[relation]

    @cached_property
    def _families(self) -> dict[str, frozenset[str]]:
        return {relation: frozenset(str(row[0]) for row in rows) for relation, rows in self.facts}

    def lowering(self, name: str) -> str:
        """How ops of a name become local; see ``rules/partition/local.dl``."""
        return self._lowerings.get(name, "parts")

    def touches(self, name: str) -> str:
        """Whether ops of a name read ("reads") no more than a part of an operand, or write ("writes") no more
        than a part of their result, or "all"; see ``rules/partition/local.dl``."""
        return self._touching.get(name, "all")

    def given_to(self, program: LoadedProgram) -> dict[str, Rows]:
        """The facts for another program, in the relations that it declares too."""
        return {relation: rows for relation, rows in self.facts if program.declares(relation)}

    def computed_as(self, name: str) -> str:
        """The op of StableHLO, such as "add", that computes the same as ops of this name; empty if there is
        none."""
        return self._computed.get(name, "")

    @cached_property
    def _computed(self) -> dict[str, str]:
        return dict(self.relations["computed_as"])

    @cached_property
    def _lowerings(self) -> dict[str, str]:
        return dict(self.relations["lowered_op"])

    @cached_property
    def _touching(self) -> dict[str, str]:
        return dict(self.relations["touches_part_op"])


def traits(rules: Solver) -> OpTraits:
    """The traits that op rules give."""
    relations = sorted(relation for relation, _ in rules.solve({}, ["names_op"])["names_op"])
    answers = rules.solve({}, relations)
    return OpTraits(tuple((name, tuple(sorted(map(tuple, answers[name])))) for name in relations))

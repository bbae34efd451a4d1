"""Partitioning: how an op is computed, and how slots with another sharding get there."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from shardlog.engine import load
from shardlog.engine.evaluate.program import Backend
from shardlog.program.meshes import Mesh, Meshes, SubAxis
from shardlog.rulebook.book import RULES

PROGRAM = RULES / "partition" / "partition.dl"
MESHES = Meshes([Mesh("mesh", (("a", 2), ("b", 4), ("c", 12)))])
OUTPUTS = ("computes", "collective", "shards", "assembles", "owns")
Facts = dict[str, list[tuple[Any, ...]]]


def atoms(text: str) -> list[int]:
    """The atoms of axes such as ``a b:(2)2``."""
    found = []
    for part in text.split():
        name, _, sub = part.partition(":")
        pre, size = sub[1:].split(")") if sub else (1, MESHES.meshes[0].sizes[name])
        found += MESHES.split(0, SubAxis(name, int(pre), int(size)))
    return found


def partitioned(rule: str, *held: str, backend: Backend = "core") -> Facts:
    """The answers for an op such as ``ik,kj->ij`` whose slots hold axes such as ``a,b c`` by dimension."""
    operands, results = (side.split(",") for side in rule.split("->"))
    slots = [*operands, *results]
    letters = sorted({letter for slot in slots for letter in slot}, key="".join(slots).index)
    places = [(t, d, letters.index(f)) for t, slot in enumerate(slots) for d, f in enumerate(slot)]
    facts: Facts = {
        "tensor": [(t, "operand" if t < len(operands) else "result") for t in range(len(slots))],
        "maps": [(t, d, 0, f) for t, d, f in places],
        "factor_sharded": [
            (t, f, k, x) for t, d, f in places for k, x in enumerate(atoms(held[t].split(",")[d]))
        ],
    }
    return (
        load([PROGRAM], key="item", include_from=[RULES])
        .solver({"axis": MESHES.facts()["axis"]}, backend)
        .solve(facts, OUTPUTS)
    )


def computed(rule: str, *held: str) -> dict[int, list[int]]:
    """The atoms that each factor is computed on."""
    factors: dict[int, list[int]] = {}
    for factor, _, atom in partitioned(rule, *held)["computes"]:
        factors.setdefault(factor, []).append(atom)
    return factors


def test_an_op_is_computed_as_its_result_is_sharded() -> None:
    assert computed("i,i->i", "b", "a", "a") == {0: atoms("a")}


def test_what_no_result_has_is_computed_as_the_operand_with_most_shards_has_it() -> None:
    assert computed("ik,kj->ij", ",a", "b,", ",") == {1: atoms("b")}
    assert computed("ik,kj->ij", ",a", "b:(1)2,", ",") == {1: atoms("a")}


def test_an_axis_is_used_once() -> None:
    assert computed("ik,kj->ij", ",a b", ",", "b,") == {0: atoms("b"), 1: atoms("a")}
    assert computed("ik,kj->ij", ",b a", ",", "b:(2)2,") == {0: atoms("b:(2)2"), 1: atoms("b:(1)2")}


@pytest.mark.parametrize("backend", ["core", "reference"])
@pytest.mark.parametrize(
    ("operand", "result", "collective", "received"),
    [
        # Received are parts of the whole tensor.
        ("a,", ",", "all-gather", Fraction(1, 2)),
        ("a,b", ",b", "all-gather", Fraction(1, 8)),
        ("c:(1)4,", "c:(1)3,", "all-gather", Fraction(1, 3) - Fraction(1, 4)),
        ("b,", ",b", "all-to-all", Fraction(1, 4) - Fraction(1, 16)),
        ("b,a", ",b", "all-to-all", Fraction(1, 4) - Fraction(1, 32)),
        ("b:(1)2,", "a,", "collective-permute", Fraction(1, 2)),
        ("a b,", "b a,", "collective-permute", Fraction(1, 8)),
        ("a,", "a b,", "slice", Fraction(0)),
    ],
)
def test_collectives(
    operand: str, result: str, collective: str, received: Fraction, backend: Backend
) -> None:
    found = partitioned("ij->ij", operand, result, backend=backend)
    assert found["collective"] == [(0, collective)]
    ((_, *shards),), ((_, *assembles),), ((_, *owns),) = (
        found[name] for name in ("shards", "assembles", "owns")
    )
    assert (Fraction(*assembles) - Fraction(*owns)) / Fraction(*shards) == received


def test_what_agrees_does_not_move() -> None:
    assert partitioned("ik,kj->ij", "a,b", "b,", "a,")["collective"] == []

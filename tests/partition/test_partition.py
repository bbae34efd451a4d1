"""The ways in which an op can be computed in parts, and how it would be if every tensor stayed as it is."""

from __future__ import annotations

from typing import Any

import pytest
from shardlog.engine import load
from shardlog.engine.evaluate.program import Backend
from shardlog.program.meshes import Mesh, Meshes, SubAxis
from shardlog.rulebook.shipped import RULES

PROGRAM = RULES / "partition" / "candidates.dl"
MESHES = Meshes([Mesh("mesh", (("a", 2), ("b", 4), ("c", 12)))])
OUTPUTS = ("stays", "candidate", "option_axis")
Facts = dict[str, list[tuple[Any, ...]]]


def atoms(text: str) -> list[int]:
    """The atoms of axes such as ``a b:(2)2``."""
    atoms = []
    for part in text.split():
        name, _, sub = part.partition(":")
        pre, size = sub[1:].split(")") if sub else (1, MESHES.meshes[0].sizes[name])
        atoms += MESHES.split(0, SubAxis(name, int(pre), int(size)))
    return atoms


def asked(rule: str, *held: str, merged: dict[str, str] | None = None, backend: Backend = "core") -> Facts:
    """The ways to compute an op such as ``ik,kj->ij`` whose slots hold axes such as ``a,b c`` by dimension;
    dimensions in ``merged`` have several factors. Factors are of size 24."""
    operands, results = (side.split(",") for side in rule.split("->"))
    slots = [*operands, *results]
    dims = [[(merged or {}).get(letter, letter) for letter in slot] for slot in slots]
    letters = sorted({f for slot in dims for factors in slot for f in factors}, key="".join(slots).find)
    if merged:
        letters = sorted(letters)
    facts: Facts = {
        "tensor": [(t, "operand" if t < len(operands) else "result") for t in range(len(slots))],
        "maps": [
            (t, d, j, letters.index(f))
            for t, slot in enumerate(dims)
            for d, factors in enumerate(slot)
            for j, f in enumerate(factors)
        ],
        "factor": [(f, 24) for f in range(len(letters))],
        "splits": [(f,) for f in range(len(letters))],
        "sharded": [
            (t, d, k, x)
            for t, slot in enumerate(dims)
            for d in range(len(slot))
            for k, x in enumerate(atoms(held[t].split(",")[d]))
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
    for factor, _, atom in asked(rule, *held)["stays"]:
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
def test_an_op_can_be_computed_as_each_slot_has_it_and_whole(backend: Backend) -> None:
    answer = asked("ik,kj->ij", "a,", "b,", "a,", backend=backend)
    axes: dict[tuple[Any, Any], list[int]] = {}
    for part, option, _, x in answer["option_axis"]:
        axes.setdefault((part, option), []).append(x)
    ways = set()
    for (choice,) in answer["candidate"]:
        way = {}
        while choice is not None:
            part, option, choice = choice
            if option != ("Whole",):
                assert part[0] == "Along"
                way[part[1]] = tuple(axes[part, option])
        ways.add(tuple(sorted(way.items())))
    a, b = tuple(atoms("a")), tuple(atoms("b"))
    on_i, on_k = [(), ((0, a),)], [(), ((1, b[:1]),), ((1, b),)]
    assert ways == {(*i, *k) for i in on_i for k in on_k}


def test_a_minor_factor_needs_the_major_ones_in_single_elements() -> None:
    answer = asked("ij->m", ",a", "", merged={"m": "ij"})
    assert answer["candidate"] == [(None,)]

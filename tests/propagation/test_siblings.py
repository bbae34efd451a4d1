"""Values whose shardings stand in one attribute: who they are, and what one that has none gets."""

from __future__ import annotations

import pytest
from shardlog.program.meshes import Mesh
from shardlog.rulebook.book import RuleBook

MESHES = [Mesh("a", (("x", 2),)), Mesh("b", (("y", 2),)), Mesh("device", (), (0,))]
A, B, DEVICE = range(3)


def filled(when: str, *held: int | None) -> list[int | None]:
    """The meshes on which siblings have shardings afterwards."""
    opened, lost = RuleBook().siblings(when, held, MESHES)
    return [opened.get(i, None if i in lost else mesh) for i, mesh in enumerate(held)]


@pytest.mark.parametrize(
    ("to", "has_edges", "several", "expected"),
    [
        ("op", False, False, (True, False)),
        ("op", False, True, (True, True)),
        ("op", True, True, (False, False)),
        ("call", True, True, (True, False)),
        ("function", False, True, (True, False)),
    ],
)
def test_who_is_a_sibling(to: str, has_edges: bool, several: bool, expected: tuple[bool, bool]) -> None:
    assert RuleBook().attribute(to, has_edges=has_edges, several_meshes=several) == expected


@pytest.mark.parametrize("when", ["call", "constraint", "end", "export"])
def test_a_gap_is_open_on_the_mesh_of_the_first_that_has_one(when: str) -> None:
    assert filled(when, None, B, A, None) == [B, B, A, B]
    assert filled(when, None, None) == [None, None]


def test_what_is_on_a_single_device() -> None:
    assert filled("call", None, DEVICE) == [None, None]
    assert filled("call", None, DEVICE, A) == filled("export", None, DEVICE, A) == [A, DEVICE, A]
    assert filled("export", None, DEVICE) == [DEVICE, DEVICE]
    assert filled("end", None, DEVICE, A) == filled("constraint", None, DEVICE, A) == [DEVICE, DEVICE, A]

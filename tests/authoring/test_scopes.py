"""Names of components: where each is declared, from inside, by inheritance and by instances."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardlog.authoring.editing.answers import definitions, hover, proposals, renamed, spots
from shardlog.authoring.editing.names import names_of
from shardlog.authoring.editing.programs import Library
from shardlog.errors import ShardlogError

TEXT = """\
// outside
.decl edge(x: number)
.comp Base<T> {
    .type node = [x: T]
    // of a base
    .decl edge(x: T, y: node)
    .decl reach(x: T, y: node) overridable
    reach(x, y) :- edge(x, y).
}
.comp Loops<T> : Base<T> {
    .override reach
    reach(x, x2) :- edge(x, x2).
    .init inner = Base<T>
    inner.edge(x, y) :- edge(x, y).
    .comp Deep {
        .decl edge(x: symbol)
        edge("a").
    }
}
.init loops = Loops<symbol>
edge(1).
loops.edge("a", [1]) :- loops.inner.edge("b", _), edge(2).
.output edge, loops.edge, loops.inner.reach
other.edge(1).
"""
PATH = Path("/nowhere/program.dl")
OUTSIDE, BASE, DEEP = ["decl edge(x: n", "edge(1)", "edge(2)", "edge, "], 6, 2


@pytest.fixture
def library() -> Library:
    library = Library()
    library.opened[PATH] = TEXT
    return library


def lines(library: Library, text: str, add: int = 0) -> list[int]:
    """The lines of all places of what is meant where ``text`` stands, the declaration first."""
    offset = TEXT.index(text) + add
    return [TEXT.count("\n", 0, spot.name.start) + 1 for spot in spots(library, PATH, offset)]


def test_a_name_is_of_the_component_that_declares_it(library: Library) -> None:
    assert lines(library, "edge(x: number") == [2, 21, 22, 23]
    in_base = [6, 8, 12, 14, 14, 22, 22, 23]
    assert lines(library, "edge(x: T") == in_base
    assert lines(library, "edge(x, x2)") == in_base
    assert lines(library, 'edge("b"') == in_base
    assert lines(library, "edge(x: symbol") == [16, 17]
    assert lines(library, "reach\n    reach") == [7, 8, 11, 12, 23]
    assert lines(library, "other.edge(1)", 6) == [24]  # what is declared nowhere is by itself


def test_parameters_and_types_are_of_their_component(library: Library) -> None:
    assert lines(library, "T> {\n    .type") == [3, 4, 6, 7]
    assert lines(library, "T> : Base") == [10, 10, 13]
    assert lines(library, "node = ") == [4, 6, 7]
    assert lines(library, "inner = ") == [13, 14, 22, 23]
    assert lines(library, "loops = ") == [20, 22, 22, 23, 23]


def test_definition_and_hover(library: Library) -> None:
    offset = TEXT.index('edge("b"')
    (definition,) = definitions(library, PATH, offset)
    assert TEXT.count("\n", 0, definition.name.start) + 1 == 6
    told = hover(library, PATH, offset)
    assert told is not None
    assert told[1] == "```datalog\n.decl edge(x: T, y: node)\n```\nof a base"
    told = hover(library, PATH, TEXT.index("x2) :-"))
    assert told is not None
    assert told[1].startswith("```datalog\nx2: node\n")


def test_renaming_leaves_other_components_alone(library: Library) -> None:
    changed = {
        TEXT.count("\n", 0, s.name.start) + 1 for s in renamed(library, PATH, TEXT.index("edge(1)"), "e")
    }
    assert changed == {2, 21, 22, 23}
    with pytest.raises(ShardlogError, match="there is a relation `reach` already"):
        renamed(library, PATH, TEXT.index("edge(x: T"), "reach")
    with pytest.raises(ShardlogError, match="there is a relation `reach` already"):
        renamed(library, PATH, TEXT.index("edge(1)"), "reach")  # which a rule of Loops would mean


def test_proposals(library: Library) -> None:
    def relations(text: str) -> list[str]:
        reply = proposals(library, PATH, TEXT.index(text) + len(text))
        return [p.detail for p in reply if p.kind == "relation"]

    assert relations("loops.inner.") == [
        ".decl edge(x: T, y: node)",
        ".decl reach(x: T, y: node) overridable",
    ]
    assert relations("edge(1).\n") == [".decl edge(x: number)"]


def test_a_component_that_is_derived_from_itself(library: Library) -> None:
    text = (
        ".comp A : B { }\n"
        ".comp B : A { .decl r(x: number) }\n.init a = A\na.r(1).\n.comp C : C { .init c = C }"
    )
    library.opened[PATH] = text
    (first, *_) = spots(library, PATH, text.index("r(1)"))
    assert first.name.start == text.index("r(x")


def test_a_statement_that_is_an_annotation_alone(library: Library) -> None:
    text = ".decl r(x: number)\n@[inline(r("
    library.opened[PATH] = text
    (only,) = spots(library, PATH, text.index("r(x"))
    assert only.name.declares


def test_a_lattice_names_a_type_and_branches() -> None:
    library = Library()
    library.opened[PATH] = text = """\
.type Bits = None {} | Some {x: number}
.lattice Bits<> { Lub -> max(_, _),
    Bottom -> $None() }
.decl r(b: Bits<>)
r($None()).
"""
    for name, expected in ("Bits", [1, 2, 4]), ("None", [1, 3, 5]):
        places = spots(library, PATH, text.index(name))
        assert [text.count("\n", 0, spot.name.start) + 1 for spot in places] == expected


def test_a_text_with_thousands_of_errors_has_names() -> None:
    names = names_of(".decl a(x: number)\n" + "a(£).\n" * 12_000)
    assert len(names.statements) == 12_001

"""What is no error, but rarely meant: the same things that Soufflé warns of."""

from __future__ import annotations

from textwrap import dedent

import pytest
from shardlog.engine import DatalogError, load

# A program, and the line, column, code and message of each warning.
WARNINGS = {
    "a variable in one place": (
        """
        .decl r(x: number, y: number)
        r(1, 2).
        .decl s(x: number)
        s(x) :- r(x, y), r(x, _), r(x, _any).
        s(x) :- r(x, a), (r(x, b) ; r(a, x)).
        s(x) :- x = min v : { r(v, w) }.
        """,
        [
            "4:14 W0403 the variable `y` occurs only here",
            "5:24 W0403 the variable `b` occurs only here",
            "6:28 W0403 the variable `w` occurs only here",
        ],
    ),
    "a variable that the sentence of the rule names": (
        """
        .decl r(x: number, y: number)
        r(1, 2).
        .decl s(x: number)
        /// {x} is in s, since {y} is its successor.
        s(x) :- r(x, y).
        """,
        [],
    ),
    "a variable whose name says that it stands in one place": (
        """
        .decl r(x: number, y: number)
        r(1, 2).
        .decl s(x: number)
        s(x) :- r(x, _y), r(_y, x).
        """,
        ["4:21 W0404 `_y` is used in several places, but its name means any value"],
    ),
    "lattices of which little is known": (
        """
        .type N <: number
        .lattice N<> { Lub -> max(_, _) }
        .decl r(n: N<>)
        r(1).
        """,
        ["2:10 W0405 the lattice `N<>` has no `Glb` and no `Bottom`: the order of its values is not known"],
    ),
    "two tuples that may delete each other": (
        """
        .decl a(x: number, y: symbol)
        a(1, "a").
        a(x, _) <= a(y, _) :- x < y.
        a(x, b) <= a(x, c) :- b < c.
        .decl b(x: number)
        b(1).
        b(x) <= b(y) :- x < y.
        b(x) <= b(y) :- x >= y.
        .decl c(x: number)
        c(1).
        c(x) <= c(y) :- x != y.
        .decl d(x: number, y: number)
        d(1, 2).
        d(x, _) <= d(y, _) :- x < y.
        d(_, x) <= d(_, y) :- x < y.
        .decl e(x: number, s: symbol)
        e(1, "a").
        e(x, "a") <= e(x, "b") :- x = x.
        e(x, "b") <= e(x, s) :- s = "c".
        e(x, "c") <= e(x, s) :- s = "b", x > 1, x < 0.
        .decl f(x: number)
        f(1).
        f(x) <= f(y) :- a(x, s), a(y, t), s < t.
        """,
        [
            "8:1 W0406 two tuples of `b` may delete each other by this rule and that of line 7",
            "11:1 W0406 two tuples of `c` may delete each other by this rule",
            "15:1 W0406 two tuples of `d` may delete each other by this rule and that of line 14",
        ],
    ),
    "relations that stay empty": (
        """
        .decl nothing(x: number)
        .decl given(x: number)
        .input given
        .decl quiet(x: number)
        .pragma "suppress-warnings" "other,quiet"
        .comp C { .decl inside() }
        .init c = C
        """,
        [
            "1:7 W0401 `nothing` has no rules and no facts",
            "6:17 W0401 `c.inside` has no rules and no facts",
        ],
    ),
    "a relation from which no rule deletes": (
        ".decl r(x: number) btree_delete\nr(1).",
        ["1:7 W0402 `r` is btree_delete, but no rule deletes from it"],
    ),
    "what is out of use": (
        """
        .number_type Old
        .type Older
        .decl r(x: number) output
        r(x) :- x = $.
        """,
        [
            "1:1 W0101 this way to declare a type is out of use",
            "2:1 W0101 this way to declare a type is out of use",
            "3:20 W0102 the qualifier `output` is out of use",
            "4:13 W0103 `$` as a counter is out of use",
        ],
    ),
    "doc comments that describe nothing": (
        """
        /// of an include
        .include "inc.dl"
        /// of a component
        .comp C {
          .decl s(x: number)
          /// of its end
        }
        /// of the end
        """,
        [
            "1:1 W0104 this doc comment describes nothing: no rule or declaration follows it",
            "6:3 W0104 this doc comment describes nothing: no rule or declaration follows it",
            "8:1 W0104 this doc comment describes nothing: no rule or declaration follows it",
        ],
    ),
    "options that take one another's place": (
        '.pragma "a" "1"\n.pragma "macro" "X=1"\n.pragma "macro" "Y=1"\n.pragma "a" "2"\n',
        ['4:1 W0105 this takes the place of an earlier `.pragma "a"`'],
    ),
}


@pytest.mark.parametrize("name", WARNINGS)
def test_warnings(name: str) -> None:
    program, expected = WARNINGS[name]
    warnings = load(texts={"t.dl": dedent(program).lstrip("\n"), "inc.dl": ".type T <: symbol\n"}).warnings
    assert [f"{w.line}:{w.column} {w.code} {w.message}" for w in warnings] == expected
    assert all(w.severity == "warning" and w.file == "t.dl" for w in warnings)


def test_a_program_with_errors_has_its_warnings_beside_them() -> None:
    with pytest.raises(DatalogError) as error:
        load(texts={"t.dl": ".decl r(value: number)\nr(1).\n.decl s(x: number)\ns(value) :- r(valve).\n"})
    assert [d.code for d in error.value.diagnostics] == ["E0401"]
    assert [(d.code, d.column) for d in error.value.warnings] == [("W0403", 15)]
    assert "warning" not in str(error.value)


def test_what_could_not_be_read_leaves_no_relation_empty() -> None:
    with pytest.raises(DatalogError) as error:
        load(texts={"t.dl": ".decl r(value: number)\nr(1.\n"})
    assert error.value.warnings == ()


def test_as_text() -> None:
    (warning,) = load(texts={"t.dl": ".decl r(x: number)\n"}).warnings
    assert str(warning) == (
        "t.dl:1:7: warning[W0401]: `r` has no rules and no facts\n"
        "    .decl r(x: number)\n"
        "          ^\n"
        "  hint: if they are in a file, write: .input r"
    )

"""Why tuples hold and why not, as text and JSON."""

from __future__ import annotations

from typing import Any

import pytest
from shardlog.datalog import EngineError, Limits, Program
from shardlog.engine.provenance.proof_check import Checker

PATHS = """
.decl edge(x: number, y: number)
.decl path(x: number, y: number)
.decl blocked(x: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z), !blocked(z).
.decl many(n: number)
many(n) :- n = count : { path(1, _) }, n > 2.
"""


@pytest.fixture
def paths(backend: Any) -> Program:
    program = Program(PATHS, backend=backend)
    program.add("edge", [(1, 2), (2, 3), (3, 4), (4, 5), (2, 4), (5, 6)])
    program.add("blocked", [(5,)])
    program.run()
    return program


SYMBOLS = ["a\nb\t\r", 'a"b\\', "\x00\x1b\x7f", "nil", " x ", "\a\v", "é😀\u2028", "u0041", "\\n", "", ", ]"]


@pytest.mark.parametrize("text", SYMBOLS)
def test_what_is_shown_can_be_asked_for(text: str, backend: Any) -> None:
    types = (
        ".type List = [head: symbol, tail: List]\n.type Tree = Leaf {} | Node {left: Tree, name: symbol}\n"
    )
    rules = ".decl r(n: number, x: symbol, l: List, t: Tree)\n.decl s(n: number)\ns(n) :- r(n, _, _, _).\n"
    program = Program(types + rules, backend=backend)
    program.add("r", [(1, text, (text, (text, None)), ("Node", ("Node", ("Leaf",), text), text))])
    program.run()
    (fact,) = (step["fact"] for step in program.explain("s(1)").as_json()["steps"][1:])
    assert program.explain(fact).fact == fact


def test_a_proof_is_of_least_height(paths: Program) -> None:
    answer = paths.explain("path(1, 4)")
    assert answer.height == 2
    assert (
        answer.text()
        == """\
path(1, 4)  by program:6
  !blocked(4)
  path(1, 2)  by program:5
    edge(1, 2)
  edge(2, 4)
by
  program:6  path(x, z) :- path(x, y), edge(y, z), !blocked(z).
  program:5  path(x, y) :- edge(x, y)."""
    )


def test_a_record_with_a_nan(backend: Any) -> None:
    types = ".type Pair = [f: float, n: number]\n.decl e(p: Pair, q: Pair)\n.decl r(p: Pair, q: Pair)\n"
    program = Program(f"{types}r(p, q) :- e(p, q).\nr(p, s) :- r(p, q), e(q, s).\n", backend=backend)
    program.add("e", [((float("nan"), i), (float("nan"), i + 1)) for i in range(40)])
    program.run()
    assert program.count("r") == 40 * 41 // 2
    for last in range(1, 40):
        assert program.explain(f"r([nan, 0], [nan, {last}])").height == last
    assert program.explain_not("r([nan, 1], [nan, 0])").attempts


def test_what_is_not_computed_has_no_explanation(backend: Any) -> None:
    program = Program(PATHS, backend=backend)
    program.add("edge", [(1, 2)])
    assert program.explain("edge(1, 2)").height == 0
    for explain in (program.explain, program.explain_not):
        with pytest.raises(EngineError, match="`path` is not computed: run it first"):
            explain("path(1, 2)")
    program.run("path")
    assert program.explain("path(1, 2)").height == 1
    with pytest.raises(EngineError, match="`many` is not computed: run it first"):
        program.explain_not("many(1)")
    program.add("edge", [(2, 3)])  # explanations are of the last run
    assert program.explain("path(1, 2)").height == 1
    with pytest.raises(EngineError, match="more than 0 tuples"):
        program.run(limits=Limits(tuples=0))
    with pytest.raises(EngineError, match="`path` is not computed: run it first"):
        program.explain("path(1, 2)")


def test_steps_further_away_are_left_open(paths: Program) -> None:
    assert paths.explain("path(1, 4)", depth=1).text().splitlines()[:4] == [
        "path(1, 4)  by program:6",
        "  !blocked(4)",
        "  path(1, 2)  ...",
        "  edge(2, 4)",
    ]
    assert paths.explain("path(1, 4)", depth=0).text() == "path(1, 4)  ..."
    assert paths.explain("path(1, 4)", depth=9).text() == paths.explain("path(1, 4)").text()


def test_what_an_aggregate_counts(paths: Program) -> None:
    lines = paths.explain("many(3)").text().splitlines()
    assert lines[:4] == [
        "many(3)  by program:8",
        "  3 = count : { path(1, _) }",
        "  3 > 2",
        "  path(1, 2)  by program:5",
    ]


def test_a_proof_as_json(paths: Program) -> None:
    steps = paths.explain("path(1, 3)").as_json()["steps"]
    assert [(s["id"], s["fact"], s["premises"], s["conditions"]) for s in steps] == [
        (0, "path(1, 3)", [1, 2], ["!blocked(3)"]),
        (1, "path(1, 2)", [3], []),
        (2, "edge(2, 3)", [], []),
        (3, "edge(1, 2)", [], []),
    ]
    assert steps[1]["rule"] == {"file": "program", "line": 5, "text": "path(x, y) :- edge(x, y)."}
    assert steps[2]["rule"] is None


def test_why_not(paths: Program) -> None:
    assert (
        paths.explain_not("path(2, 5)").text()
        == """\
path(2, 5) does not hold
  program:5  path(x, y) :- edge(x, y).
    ! no edge(2, 5)
  program:6  path(x, z) :- path(x, y), edge(y, z), !blocked(z).
    ! blocked(5) holds"""
    )
    assert paths.explain_not("path(6, 1)").text().splitlines()[-2:] == [
        "      !blocked(1)",
        "    ! no path(6, y)",
    ]
    assert paths.explain_not("edge(1, 1)").text().splitlines()[1:] == [
        "  it is not a fact, and no rule gives `edge`"
    ]


@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("path(4, 2)", "path(4, 2) does not hold: explain_not (--explain-not) says why"),
        ("path", "cannot read the fact 'path'; expected one as in path(1, 5)"),
        ("pth(1, 2)", "unknown relation `pth`; did you mean `path`?"),
        ("path(1)", "cannot read the fact 'path(1)' of path(x: number, y: number): expected `,` before `)`"),
        ("path(1, x)", "cannot read the fact 'path(1, x)' of path(x: number, y: number): "
         "expected a number of 64 bits"),
    ],
)  # fmt: skip
def test_what_cannot_be_explained(fact: str, said: str, paths: Program) -> None:
    with pytest.raises(EngineError) as error:
        paths.explain(fact)
    assert str(error.value) == said


def test_why_not_of_what_holds(paths: Program) -> None:
    with pytest.raises(EngineError, match=r"path\(1, 2\) holds: explain \(--explain\) says why"):
        paths.explain_not("path(1, 2)")


def test_values_of_branches_are_shown_as_a_program_has_them() -> None:
    program = Program("""
.type Tree = Leaf {} | Node {left: Tree, value: number, right: Tree}
.type Pair = [value: number, of: Tree]
.decl tree(t: Tree)
tree($Leaf()).
tree($Node($Leaf(), 5, $Leaf())).
.decl small(t: Tree)
small($Leaf()).
.decl held(t: Tree, p: Pair)
held(t, [v, r]) :- tree(t), t = $Node(_, v, r), v > 3, t != $Leaf(), !small($Node(r, 1, r)), small(r).
""")
    program.run()
    assert program.explain("held($Node($Leaf, 5, $Leaf()), [5, $Leaf])").text().splitlines()[:5] == [
        "held($Node($Leaf, 5, $Leaf), [5, $Leaf])  by program:10",
        "  $Node($Leaf, 5, $Leaf) = $Node(_, 5, $Leaf)",
        "  5 > 3",
        "  $Node($Leaf, 5, $Leaf) != $Leaf",
        "  !small($Node($Leaf, 1, $Leaf))",
    ]
    assert program.explain_not("held($Leaf, [5, $Leaf])").text().splitlines()[2:] == [
        "      tree($Leaf)",
        "    ! not $Leaf = $Node(_, 5, $Leaf)",
    ]


def test_why_not_gives_up_and_says_so() -> None:
    program = Program("""
.decl a(x: number)
a(x) :- x = range(0, 150).
.decl total(x: number)
total(x) :- a(x), a(y), a(z), x + y + z = 1000.
""")
    program.run()
    why_not = program.explain_not("total(3)")
    assert why_not.text().splitlines()[-2:] == [
        "    ! not ((3 + 0) + 0) = 1000",
        "      (10,000 combinations of tuples were tried: others may get further)",
    ]
    assert [attempt["complete"] for attempt in why_not.as_json()["attempts"]] == [False]


def test_equal_steps_are_shown_once() -> None:
    program = Program("""
.decl a(x: number)
a(1).
.decl b(x: number)
b(x + 1) :- a(x).
.decl c(x: number, y: number)
c(x, y) :- b(x), b(y).
""")
    program.run()
    assert program.explain("c(2, 2)").text().splitlines()[:3] == [
        "c(2, 2)  by program:7",
        "  b(2)  by program:5",
        "    a(1)",
    ]


def test_deep_proofs_go_on_at_the_margin() -> None:
    program = Program(".decl a(x: number)\na(0).\na(x + 1) :- a(x), x < 500.")
    program.run()
    lines = program.explain("a(500)", depth=None).text().splitlines()
    assert lines[0] == "a(500)  by program:3"
    assert lines[2:4] == ["  a(499)  by program:3", "    498 < 500"]
    at = lines.index("a(468)  by program:3")
    assert lines[at - 1].strip() == "a(468)  as below"
    assert max(map(len, lines)) < 100
    assert len([line for line in lines if "by program:3" in line]) == 500


def test_steps_further_away_than_32_rules_are_left_open() -> None:
    program = Program(".decl a(x: number)\na(0).\na(x + 1) :- a(x), x < 500.")
    program.run()
    answer = program.explain("a(500)")
    assert answer.height == 500
    assert [step.row for step in answer.proof.steps()] == [(500 - i,) for i in range(33)]
    assert [step.row for step in answer.proof.steps() if step.open] == [(468,)]


# A program for each part of the language, and a fact of it.
A = ".decl a(x: number)\na(1). a(5).\n"
FEATURES = {
    "equivalence": (".decl e(x: number, y: number) eqrel\ne(1, 2). e(3, 2). e(3, 4).", "e(1, 4)"),
    "records": (
        '.type L = [h: symbol, t: L]\n.decl l(x: L)\nl(nil). l(["a b", x]) :- l(x), x = nil.',
        'l(["a b", nil])',
    ),
    "branches": (
        ".type T = Leaf {} | Node {l: T, n: number}\n.decl t(x: T)\n"
        "t($Leaf). t($Node(x, 1)) :- t(x), x = $Leaf.",
        "t($Node($Leaf, 1))",
    ),
    "components": (
        '.comp C<T> { .decl a(x: T)\n.decl b(x: T)\nb(x) :- a(x). }\n.init c = C<symbol>\nc.a("x").',
        'c.b("x")',
    ),
    "inlined relations": (
        A + ".decl m(x: number) inline\nm(x) :- a(x), x > 1.\n.decl b(x: number)\nb(x) :- m(x).",
        "b(5)",
    ),
    "choices": (
        A + ".decl p(x: number, y: number) choice-domain y\np(x, 0) :- a(x).",
        "p(1, 0)",
    ),
    "subsumption": (
        ".decl d(x: number, n: number)\nd(1, 5). d(1, 3).\nd(x, a) <= d(x, b) :- b < a.\n"
        ".decl s(x: number)\ns(n) :- d(_, n).",
        "s(3)",
    ),
    "lattices": (
        ".type N <: number\n.lattice N<> { Lub -> max(_, _), Glb -> min(_, _), Bottom -> 0 }\n"
        ".decl s(x: number, n: N<>)\ns(1, 1). s(1, 6).\ns(x + 1, n) :- s(x, n), x < 3.\n"
        ".decl t(n: N)\nt(n) :- s(3, n), s(2, 4), !s(4, 1).",
        "t(6)",
    ),
    "joins of lattices": (
        ".type S <: number\n.lattice S<> { Lub -> _ bor _, Glb -> _ band _, Bottom -> 0 }\n"
        ".decl e(x: number, y: number)\ne(1, 2). e(2, 3). e(3, 1). e(4, 3).\n"
        ".decl own(x: number, s: S)\nown(1, 1). own(2, 2). own(3, 4). own(4, 8).\n"
        ".decl has(x: number, s: S<>)\nhas(x, s) :- own(x, s).\nhas(y, s) :- has(x, s), e(x, y).\n"
        ".decl all(x: number)\nall(x) :- has(x, 15).",
        "all(1)",
    ),
    "what others have replaced": (
        ".decl d(x: number, n: number)\nd(1, 9).\nd(x, n - 1) :- d(x, n), n > 5.\n"
        "d(x, a) <= d(x, b) :- b < a.\n.decl s(n: number)\ns(n) :- d(1, n).",
        "s(5)",
    ),
    "limits of what is replaced": (
        ".decl g(x: number, n: number)\n.limitsize g(n=5)\ng(1, 0).\ng(x + 1, n) :- g(x, n).\n"
        "g(x, n + 1) :- g(x, n), n < 3.\ng(x, n) <= g(x, m) :- n < m.",
        "g(2, 3)",
    ),
    "records among what is replaced": (
        ".type P = [x: number, n: number]\n.decl d(p: P)\nd([1, 9]).\nd([x, n - 1]) :- d([x, n]), n > 5.\n"
        "d([x, a]) <= d([x, b]) :- b < a.\n.decl s(x: number)\ns(x) :- d([x, _]).",
        "s(1)",
    ),
    "counters": (A + ".decl i(x: number, n: number)\ni(x, $) :- a(x).", "i(5, 1)"),
    "rounds": (
        A + ".decl b(x: number, n: unsigned)\nb(x, 0) :- a(x).\n"
        "b(x + 1, recursive_iteration_cnt()) :- b(x, _), recursive_iteration_cnt() < 3.\n"
        ".decl c = debug_delta(b)\n.decl d(x: number)\nd(x) :- c(x, 2, 2).",
        "d(7)",
    ),
    "rounds of what is replaced": (
        ".decl d(x: number, n: number)\nd(1, 9).\nd(x, n - 1) :- d(x, n), n > 5.\n"
        "d(x, a) <= d(x, b) :- b < a.\n.decl e = debug_delta(d)\n.decl s(n: number)\ns(n) :- e(1, n, 3).",
        "s(6)",
    ),
    "rounds of lattices": (
        ".type N <: number\n.lattice N<> { Lub -> max(_, _), Glb -> min(_, _), Bottom -> 0 }\n"
        ".decl s(x: number, n: N<>)\ns(1, 1). s(1, 6).\ns(x + 1, n) :- s(x, n), x < 3.\n"
        ".decl e = debug_delta(s)\n.decl t(n: N)\nt(n) :- e(3, n, 2).",
        "t(6)",
    ),
    "disjunctions": (A + ".decl b(x: number)\nb(x) :- (x = 2, a(1); a(x)), true.", "b(2)"),
    "aggregates": (A + ".decl s(n: number)\ns(n) :- n = sum x : { a(x) }.", "s(6)"),
    "sums that wrap around": (
        ".decl a(x: number)\na(9223372036854775807). a(2).\n"
        ".decl s(n: number)\ns(n) :- n = sum x : { a(x) }, y = range(0, 2), y > 0.",
        "s(-9223372036854775807)",
    ),
    "witnesses": (
        ".decl a(x: number, y: number)\na(1, 7). a(5, 8).\n"
        ".decl w(y: number)\nw(y) :- m = max x : { a(x, y) }, m > 1.",
        "w(8)",
    ),
    "ranges": (".decl r(x: number)\nr(x) :- x = range(0, 3).", "r(2)"),
    "unsigned numbers": (
        ".decl u(x: unsigned)\nu(18446744073709551615).\n.decl v(x: unsigned)\nv(x / 2) :- u(x), x > 5.",
        "v(9223372036854775807)",
    ),
    "texts": ('.decl a(x: symbol)\na("x").\n.decl b(x: symbol)\nb(cat(x, "y")) :- a(x).', 'b("xy")'),
    "ranges of floats": (".decl r(x: float)\nr(x) :- x = range(0.5, 3.0).", "r(2.5)"),
    "counts of tuples": (
        ".decl a(x: number, y: number)\na(1, 1). a(1, 2). a(2, 2).\n"
        ".decl c(n: number)\nc(n) :- n = count : { a(x, _), x < 2 }.",
        "c(2)",
    ),
    "records of what is computed": (
        A + ".type P = [x: number, y: number]\n.decl p(p: P)\np([x + 1, x * 2]) :- a(x).",
        "p([2, 2])",
    ),
    "computed arguments of atoms": (
        ".decl t(x: number, y: number)\nt(1, 2). t(2, 1). t(4, 2).\n"
        ".decl u(x: number)\nu(x) :- t(x - 1, y), t(y * 2, x), x > 1.",
        "u(2)",
    ),
    "zeros of floats": (
        ".decl a(x: float)\na(0.0).\n.decl b(x: float)\nb(x + 1) :- a(x), x = -0.0.",
        "b(1)",
    ),
    "counters that others use": (
        A + ".decl i(x: number, n: number)\ni(x, m + 1) :- a(x), n = $, m = n * 2.",
        "i(5, 3)",
    ),
    "floats": (".decl a(x: float)\na(1.5).\n.decl b(x: float)\nb(x / 2) :- a(x).", "b(0.75)"),
}


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("backend", ["core", "reference"])
def test_every_part_of_the_language_has_proofs(feature: str, backend: Any) -> None:
    text, fact = FEATURES[feature]
    program = Program(text, backend=backend)
    program.run()
    answer = program.explain(fact)
    assert answer.fact == fact
    search = program._search
    assert not any(step.open for step in answer.proof.steps())
    assert Checker(program._program.plan, {}, search.rules, search.extents).check(answer.proof)


def test_what_was_replaced_or_joined_is_marked() -> None:
    program = Program(
        "\n".join(
            [
                ".type S <: number",
                ".lattice S<> { Lub -> _ bor _ }",
                ".decl own(x: number, s: S)",
                "own(1, 1). own(1, 2).",
                ".decl has(x: number, s: S<>)",
                "has(x, s) :- own(x, s).",
                ".decl near(x: number, n: number)",
                "near(1, 3).",
                "near(y, n) :- near(x, n), y = x + 1, y < 3, n > 2.",
                "near(1, 2) :- near(2, 3).",
                "near(x, a) <= near(x, b) :- a = b + 1.",
                ".decl end(s: S)",
                "end(s) :- has(1, s), near(2, _).",
            ]
        )
    )
    program.run()
    answer = program.explain("end(3)")
    assert answer.text().splitlines()[:10] == [
        "end(3)  by program:13",
        "  has(1, 3)  joined of has(1, 1) and has(1, 2) by program:2",
        "    has(1, 1)  by program:6; replaced by has(1, 3)",
        "      own(1, 1)",
        "    has(1, 2)  by program:6; replaced by has(1, 3)",
        "      own(1, 2)",
        "  near(2, 3)  by program:9",
        "    2 = (1 + 1)",
        "    2 < 3",
        "    3 > 2",
    ]
    assert "near(1, 3)  replaced by near(1, 2)" in answer.text()
    steps = {step["fact"]: step for step in answer.as_json()["steps"]}
    marks = ("joined", "replaced", "replaced_by")
    assert [steps["has(1, 3)"][mark] for mark in marks] == [True, False, None]
    assert [steps["has(1, 1)"][mark] for mark in marks] == [False, True, "has(1, 3)"]


def test_what_replaced_a_tuple_may_be_gone_itself() -> None:
    program = Program(
        ".decl d(n: number)\nd(9).\nd(n - 1) :- d(n), n > 5.\nd(a) <= d(b) :- a = b + 1.\n"
        ".decl s(n: number)\ns(n) :- d(n)."
    )
    program.run()
    lines = [line.strip() for line in program.explain("s(5)").text().splitlines()]
    assert "d(6)  by program:3; replaced by d(5)" in lines
    assert "d(7)  by program:3; replaced" in lines


@pytest.mark.core
def test_evaluators_give_one_proof_whether_or_not_it_was_found_as_arrays() -> None:
    text = (
        ".decl edge(x: number, y: symbol, z: number)\n.decl start(x: number)\n.decl end(x: number)\n"
        '.decl reached(x: number)\nstart(0).\nedge(0, "a", 0).\nreached(x) :- start(x).\n'
        '/// {y} comes behind {x}\nreached(y) :- reached(x), edge(x, "to", y), edge(x, _, y), start(0).\n'
        ".decl twice(x: number, s: symbol)\n/// {x} by {s}\n"
        "twice(x, s) :- edge(x, s, y), edge(y, t, x), reached(x), s = t.\n"
        "end(x) :- reached(x), edge(_, _, x), !start(x).\n"
        ".decl far(x: unsigned, n: number)\nfar(18446744073709551615u, 7) :- start(_).\n"
        "/// {n} is {m} and one more\n"
        "far(x - 2u, n) :- far(x, m), n = m + 1, k = n, k - 1 < 20, x > 9223372036854775808u, "
        "!edge(n, _, n).\n"
    )
    found = []
    for backend in ("core", "reference"):
        program = Program(text, backend=backend)
        program.add("edge", [(i, "to", i + 1) for i in range(100)])
        program.run()
        facts = ("end(100)", "reached(50)", 'twice(0, "a")', "far(18446744073709551589, 20)")
        explained = [program.explain(fact, depth=depth) for fact in facts for depth in (None, 3)]
        found.append([(each.height, each.text(), each.as_json()) for each in explained])
        assert found[-1][0][1].count(" comes behind ") == 100
        assert len(explained[0].proof.premises[0].premises) == 3
        assert "  | 0 by a" in found[-1][4][1]
        assert "  | 20 is 19 and one more" in found[-1][6][1]
        assert not any(step.open for step in explained[6].proof.steps())
    assert found[0] == found[1]


def test_notebooks_show_relations_and_proofs() -> None:
    program = Program(
        '.decl edge(x: number, y: symbol)\nedge(1, "<a>").\n.decl last(y: symbol)\n'
        "/// {y} is last\nlast(y) :- edge(x, y), x < 2.\n"
    )
    assert "<td>last</td><td>y: symbol</td><td>not computed</td>" in program._repr_html_()
    program.run()
    assert "<td>last</td><td>y: symbol</td><td>1</td>" in program._repr_html_()
    shown = program.explain('last("<a>")')._repr_html_()
    assert shown.count("<details") == shown.count("</details>") == shown.count("open=") == 1
    assert "<a>" not in shown and "is last" in shown and "<code>1 &lt; 2</code>" in shown
    assert program.explain_not('last("b")')._repr_html_().startswith("<pre>last(&quot;b&quot;) does not")


def test_notebooks_show_deep_proofs_to_a_depth() -> None:
    program = Program(
        ".decl edge(x: number, y: number)\n.decl path(x: number, y: number)\n"
        "path(x, y) :- edge(x, y).\npath(x, z) :- path(x, y), edge(y, z).\n"
    )
    program.add("edge", [(i, i + 1) for i in range(3000)])
    program.run()
    shown = program.explain("path(0, 3000)", depth=None)._repr_html_()
    assert shown.count("<details") == 32 and "..." in shown


COUNTED = """.decl edge(x: number, y: number)
.decl path(x: number, y: number)
path(x, y) :- edge(x, y).
path(x, z) :- path(x, y), edge(y, z).
.decl reach(x: number, n: number)
/// {x} leads to {n} others, below {m}
reach(x, n) :- edge(x, _), n = count : { path(x, _) }, m = range(n, n + 1), !edge(x, x).
"""


def test_proofs_stay_as_they_were_when_the_program_goes_on(backend: Any) -> None:
    """Steps are read when someone asks for them: other facts may have come and gone by then."""
    programs = [Program(COUNTED, backend=backend) for _ in range(2)]
    for program in programs:
        program.add("edge", [(i, i + 1) for i in range(20)])
        program.run()
    told, proofs = (
        [program.explain(goal) for goal in ("path(0, 9)", "reach(3, 17)")] for program in programs
    )
    texts = [proof.text() for proof in told]
    programs[1].remove("edge", [(i, i + 1) for i in range(0, 20, 2)])
    programs[1].add("edge", [(i, 5) for i in range(30)])
    programs[1].run()
    assert [proof.text() for proof in proofs] == texts


@pytest.mark.core
def test_a_proof_copies_no_relation() -> None:
    program = Program(COUNTED)
    program.add("edge", [(i, i + 1) for i in range(500)])
    program.run("path")
    assert program.explain("path(0, 500)").height == 500
    extent = program._search.extents.extent("path")
    assert (extent.count, extent.stored) == (125_250, True)

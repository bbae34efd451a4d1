"""``shardlog fmt``: the layout, and that it changes nothing else."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shardlog.authoring.formatting.files import format_text
from shardlog.authoring.formatting.layout import formatted
from shardlog.authoring.formatting.pieces import tokens_of
from shardlog.cli import main
from shardlog.engine import DatalogError
from shardlog.engine.language.diagnostics import Reporter
from shardlog.engine.language.parser import parse
from shardlog.engine.language.sources import Sources
from shardlog.engine.language.syntax import Module

from ..support.drawing import in_turn

ROOT = Path(__file__).parents[2]
SHIPPED = sorted((ROOT / "rules").rglob("*.dl"))
PROGRAMS = sorted((ROOT / "tests/engine/programs").rglob("*.dl"))

# What is written, and how it is laid out.
LAYOUTS = {
    "spaces": ("a( x,y ):-b(x ,y),x<y , !c( x ).", "a(x, y) :- b(x, y), x < y, !c(x)."),
    "arithmetic stays as it is": ("a(x+1, -y * 2) :- b(x,y).", "a(x+1, -y * 2) :- b(x, y)."),
    "aggregates": (
        "a(n) :- n=count:{b(_)}, m = max (x+1):b(x), k = max( n,m ).",
        "a(n) :- n = count : { b(_) }, m = max (x+1) : b(x), k = max(n, m).",
    ),
    "disjunctions": ("a(x):-(b(x);c(x)),(x+1)*2=4.", "a(x) :- ( b(x) ; c(x) ), (x+1)*2 = 4."),
    "declarations": (
        '.decl a( x:number,y : symbol )  brie\n.type t=[ x:number ]\n.input a( IO = "file" )',
        '.decl a(x: number, y: symbol) brie\n.type t = [x: number]\n.input a(IO="file")',
    ),
    "components": (
        ".comp A<T>:B<T>{\n.decl r(x:T)\n  r(x):-\n s(x).\n}\n.init a=A<number>\np(x):-a.r(x).",
        ".comp A<T> : B<T> {\n    .decl r(x: T)\n    r(x) :-\n        s(x).\n}\n"
        ".init a = A<number>\np(x) :- a.r(x).",
    ),
    "lattices": (
        ".lattice L < > {Lub->max( _,_ ),Bottom -> $None()}\n.decl r(x:number,l:L < >)",
        ".lattice L<> { Lub -> max(_, _), Bottom -> $None() }\n.decl r(x: number, l: L<>)",
    ),
    "algebraic types": (
        ".type E=V{x:number}|N{}\na($V( 1 ), $N()).",
        ".type E = V { x: number } | N {}\na($V(1), $N()).",
    ),
    "lines stay broken": ("a(x) :-\n  b(x),\n      c(x).", "a(x) :-\n    b(x),\n    c(x)."),
    "a body stays beside its head": ("a(x) :- b(x),\n  c(x).", "a(x) :- b(x),\n        c(x)."),
    "commas stay with what they follow": ("a(x) :- b(x)\n  , c(x)\n  .", "a(x) :- b(x),\n        c(x)."),
    "choices below each other": (
        "a(x) :- b(x), ( x = 1\n; x = 2 ).",
        "a(x) :- b(x), ( x = 1\n              ; x = 2 ).",
    ),
    "long lines": (
        f"a(x) :- {', '.join(f'relation_{i}(x)' for i in range(12))}.",
        f"a(x) :-\n    {', '.join(f'relation_{i}(x)' for i in range(7))},\n"
        f"    {', '.join(f'relation_{i}(x)' for i in range(7, 12))}.",
    ),
    "blank lines": ("\n\na(1).\n\n\n\na(2).\n\n", "a(1).\n\na(2)."),
    "comments": (
        "a(1).// one\n   // of its own\n/* two\n  lines */ b(2).",
        f"{'a(1).'.ljust(60)}// one\n// of its own\n/* two\n  lines */\nb(2).",
    ),
    "comments that go on below": (
        f"a(1).{' ' * 50}// one\n{' ' * 50}// and more\n",
        f"{'a(1).'.ljust(60)}// one\n{' ' * 60}// and more",
    ),
    "comments in a rule": (
        "a(x) :-\n// first\nb(x), // second\nc(x).",
        f"a(x) :-\n    // first\n{'    b(x),'.ljust(60)}// second\n    c(x).",
    ),
    "sentences": ("   /// {x} is so.\na(x) :- b(x).", "/// {x} is so.\na(x) :- b(x)."),
    "facts in rows": ("a(1).   a(22).\na(333). a(4).", "a(1).    a(22).\na(333).  a(4)."),
    "facts in a line": ("a(1).a(2). a(3).", "a(1).  a(2).  a(3)."),
    "aligned necks": ("ab(x)   :- b(x).\na(x)    :- c(x).", "ab(x) :- b(x).\na(x)  :- c(x)."),
    "aligned arguments": ('a("x",    1).\na("yyy",  2).', 'a("x",   1).\na("yyy", 2).'),
    "lines of the preprocessor": (
        '#ifdef X\n  #define A(x) \\\n   b(x)\n#endif\na("\\\\").',
        '#ifdef X\n#define A(x) \\\n   b(x)\n#endif\na("\\\\").',
    ),
    "annotations": (
        "@[x(M)]  @[y]\na( x ) :- @![z=1]\n b(x).",
        "@[x(M)] @[y]\na(x) :- @![z = 1]\n        b(x).",
    ),
    "macros": ("a(__LINE__,N(x)).", "a(__LINE__, N(x))."),
    "names of several parts": ("a.b( 1 ).\n.output a.b", "a.b(1).\n.output a.b"),
    "nothing": ("", ""),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layout(name: str) -> None:
    written, laid_out = LAYOUTS[name]
    assert formatted(written) == (f"{laid_out}\n" if laid_out else "")
    assert formatted(formatted(written)) == formatted(written)


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_shipped_rules_are_in_the_layout(path: Path) -> None:
    assert formatted(path.read_text(), str(path)) == path.read_text()


def shape(text: str) -> object:
    """The syntax tree without places."""
    module, sources = Module(), Sources()
    parse(text, sources.add("text", text), module, Reporter(sources), lambda *_: None)

    def stripped(node: object) -> object:
        if not isinstance(node, tuple):
            return node
        fields = getattr(node, "_fields", None)
        if fields is None:  # among the names of types are their places
            return [stripped(part) for part in node if not isinstance(part, int)]
        places = ("at", "start", "end")
        return [stripped(part) for name, part in zip(fields, node, strict=True) if name not in places]

    parts = (module.types, module.relations, module.directives, module.clauses)
    return [[stripped(node) for node in part] for part in parts]


@pytest.mark.parametrize(
    "path", in_turn(0, [*SHIPPED, *PROGRAMS], 3), ids=lambda path: str(path.relative_to(ROOT))
)
def test_the_meaning_stays(path: Path) -> None:
    text = path.read_text()
    # With all white space changed there is more to do.
    for changed in (text, "\n".join(line.strip() for line in text.split("\n")), text.replace("\n    ", " ")):
        found = formatted(changed, str(path))
        assert shape(found) == shape(changed)
        assert formatted(found, str(path)) == found


PIECES = [
    *(
        "a",
        "b(x)",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ".",
        ";",
        ":-",
        ":",
        "=",
        "<=",
        "-",
        "+",
        "!",
        "$",
        "|",
    ),
    *(" ", "\n", "\n\n", "// c\n", "/* c */", "/* c\nd */", "/// s\n", '"s"', "1", "0.5", ".decl", ".type"),
    *(".comp", ".input", "count", "max", "band", "\n#if\n", "a(1).", "a(x) :- b(x)."),
]


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join))
def test_any_tokens_stay_as_they_are(text: str) -> None:
    assert tokens_of(formatted(text), "laid out").texts == tokens_of(text, "as it was").texts


GAPS = [
    *("",) * 8,
    *(" ",) * 4,
    "   ",
    "\n",
    "\n",
    "\n\n",
    " // c\n",
    "\n// c\n",
    "\n   /// s\n",
    " /* c */ ",
    "\n/* c\nd */\n",
]


@given(st.sampled_from(PROGRAMS), st.randoms(use_true_random=False))
def test_any_white_space_is_laid_out_once_for_all(path: Path, random: Random) -> None:
    tokens = tokens_of(path.read_text(), str(path))
    text = ""
    for i, (kind, word, at) in enumerate(zip(tokens.kinds, tokens.texts, tokens.places, strict=True)):
        touches = i and at == tokens.places[i - 1] + len(tokens.texts[i - 1])
        gap = random.choice(GAPS) if kind != "end" else "\n"
        joins = kind == "identifier" and i and tokens.kinds[i - 1] == "."
        text += ("" if touches else " ") + ("" if joins or gap == "" else gap) + word
    found = formatted(text)
    assert formatted(found) == found


@pytest.mark.parametrize("text", ['a("x', "/* a", "a(\x01)."])
def test_what_are_no_tokens(text: str) -> None:
    with pytest.raises(DatalogError, match="E0101"):
        formatted(text)


RULES = """// A comment.


/// The heads are apart.
@flash : b  s (g h)  d,b t g d->b s ( g h ) d {h = 4}  reduction = { t }	need_replication={b,s}
my.op: i j,
  j k -> i k
"my.sum" :i->
elementwise_op( "my.gelu" ).
"""
LAID_OUT = """// A comment.

/// The heads are apart.
@flash: b s (g h) d, b t g d -> b s (g h) d {h=4} reduction={t} need_replication={b, s}
my.op: i j,
    j k -> i k
"my.sum": i ->
elementwise_op("my.gelu").
"""


def test_einsum_notation() -> None:
    assert format_text(RULES, "my.rules") == LAID_OUT
    assert format_text(LAID_OUT, "my.rules") == LAID_OUT


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.dl").write_text("a( 1 ).\n")
    (tmp_path / "sub/b.rules").write_text(RULES)
    (tmp_path / "c.dl").write_text("c(1).\n")
    (tmp_path / "d.txt").write_text("no rules")
    monkeypatch.chdir(tmp_path)
    assert main(["fmt", "--check"]) == 1
    assert capsys.readouterr().out == "a.dl\nsub/b.rules\n"
    assert main(["fmt", "--diff", "a.dl"]) == 1
    assert capsys.readouterr().out == "--- a.dl\n+++ a.dl\n@@ -1 +1 @@\n-a( 1 ).\n+a(1).\n"
    assert (tmp_path / "a.dl").read_text() == "a( 1 ).\n"
    assert main(["fmt"]) == 0
    assert (tmp_path / "a.dl").read_text() == "a(1).\n"
    assert (tmp_path / "sub/b.rules").read_text() == LAID_OUT
    assert main(["fmt", "--check", "."]) == 0


def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a( 1 ).\n")))
    assert main(["fmt", "-"]) == 0
    assert capsys.readouterr().out == "a(1).\n"


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.dl", b'a("x).\n', "a.dl:1:3: error[E0101]: this string is not closed"),
        ("a.dl", b"\xff", "a.dl: error: cannot read this file: it is not UTF-8"),
        ("a.dl", b"edge(x, y) if x == y\n", "a.dl:1:12: error[E0102]: expected"),
        ("a.rules", b"my.op i\n", "a.rules:1:1: error: expected a name and a colon"),
    ],
)
def test_bad_files_stay_and_so_do_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, data: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(data)
    (tmp_path / "b.dl").write_text("b( 1 ).\n")
    assert main(["fmt", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert (tmp_path / name).read_bytes() == data
    assert (tmp_path / "b.dl").read_text() == "b( 1 ).\n"


def test_files_of_other_languages_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (other := tmp_path / "a.py").write_text(text := "if x == y:\n    print( x )\n")
    assert main(["fmt", str(other)]) == 2
    assert f"{other}:1:4: error[E0102]" in capsys.readouterr().err
    assert other.read_text() == text


def test_macros_may_stand_for_anything(tmp_path: Path) -> None:
    (file := tmp_path / "a.dl").write_text("#define FACTS a(1).\nFACTS b( 1 ).\n")
    assert main(["fmt", str(file)]) == 0
    assert file.read_text() == "#define FACTS a(1).\nFACTS b(1).\n"


def test_missing_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fmt", "missing.dl"]) == 2
    assert capsys.readouterr().err == "missing.dl: error: there is no such file\n"


@pytest.mark.parametrize("line", ["p(\n", ".comp A {\n"])
def test_what_is_nested_very_deeply_stays_small(line: str) -> None:
    assert len(formatted(line * 5_000)) < 5_000 * 500


@pytest.mark.parametrize(
    "tokens", ["@ !=", "choice -\tdomain", "1 . 5", "1 . 2 . 3 . 4", ". input", "/ *", "/ /", ": : -"]
)
def test_tokens_that_would_be_others_together_stay_apart(tokens: str) -> None:
    text = formatted(f"p(x) :- {tokens} x\n")
    assert tokens_of(text, "found").texts == tokens_of(f"p(x) :- {tokens} x\n", "given").texts

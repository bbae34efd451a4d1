"""Programs that nobody writes: too long, too deep, too many errors, files that are no rules."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shardlog.engine import DatalogError, load
from shardlog.engine.language import preprocessor
from shardlog.engine.language.diagnostics import did_you_mean
from shardlog.engine.language.sources import LARGEST
from shardlog.engine.transform import components

from ..support.drawing import by_day

DECLARED = ".decl r(x:number)\n.decl s(x:symbol)\n"


def errors(text: str) -> str:
    with pytest.raises(DatalogError) as error:
        load(texts={"t.dl": text})
    return str(error.value)


@pytest.mark.parametrize(
    "end",
    ["r(", "r(1", "r(1,", "r(x) :- r(", "r(x) :- !", "r(x) :- (", ".", ".decl", "$", "r(x) :- x = sum ("],
)
def test_a_text_that_ends_too_soon(end: str) -> None:
    assert errors(DECLARED + end).startswith("t.dl:3:")


DEEP: dict[str, Callable[[int], str]] = {
    "parentheses": lambda n: f"r({'(' * n}1{')' * n}).",
    "terms": lambda n: f"s({'cat(' * n}\"a\"{',1)' * n}).",
    "minus": lambda n: f"r({'- ' * n}1).",
    "sums": lambda n: f"r({' + '.join(['1'] * n)}).",
    "records": lambda n: f"r({'[' * n}1{']' * n}).",
    "bodies": lambda n: f"r(x) :- {'(r(x), ' * n}r(x){')' * n}.",
    "negations": lambda n: f"r(x) :- r(x), {'!' * n}(x = 1).",
    "aggregates": lambda n: f"r(n) :- {'n = sum x : {' * n} r(x){'}' * n}.",
    "opened only": lambda n: f"r({'(' * n}",
    "opened and left": lambda n: "r((.\n" * n,
}  # fmt: skip


@pytest.mark.parametrize("kind", DEEP)
def test_what_is_nested_too_deeply(kind: str) -> None:
    message = errors(DECLARED + DEEP[kind](20_000))
    assert kind == "opened and left" or "this rule is nested more than 100 levels deep" in message


@pytest.mark.parametrize(
    ("kind", "rows"), [("parentheses", {(1,)}), ("minus", {(-1,)}), ("sums", {(95,)}), ("bodies", set())]
)
def test_what_is_nested_as_deeply_as_it_may(kind: str, rows: set[Any], backend: Any) -> None:
    found = load(texts={"t.dl": f"{DECLARED}{DEEP[kind](95)}\n.output r"}).evaluate({}, backend=backend)
    assert set(found["r"]) == rows


def test_types_that_stand_for_types() -> None:
    assert "100 levels deep" in errors("".join(f".type t{i} <: t{i + 1}\n" for i in range(3_000)))


def test_rules_that_are_too_long() -> None:
    long = f"r(x) :- {', '.join(f'r(x{i})' for i in range(5_000))}, r(x)."
    assert "this rule has more than 1000 literals" in errors(DECLARED + long)
    either = f"({'; '.join(f'x = {i}' for i in range(101))})"
    bodies = (f"{either}, {either}", f"!({either}, {either})", f"!({', '.join([either] * 40)})")
    for rule in (f"r(x) :- r(x), {body}." for body in bodies):
        assert "more than 10000 combinations" in errors(DECLARED + rule)
    many = ", ".join(f"r({i})" for i in range(20_000))
    assert len(load(texts={"t.dl": f"{DECLARED}{many}.\n.output r"}).evaluate({})["r"]) == 20_000


def doubled(line: str) -> str:
    """A line for each number ``i`` below 40, and the one after it as ``j``."""
    return "".join(line.replace("(i)", str(i)).replace("(j)", str(i + 1)) for i in range(40))


LONG = ", x = 2" * 900
GROWING: dict[str, tuple[str, str]] = {
    "instances in instances": (
        doubled(".comp C(i) { .init a = C(j) .init b = C(j) }\n") + ".comp C40 { }\n.init c = C0",
        "error[E0203]: the instances of components, up to this one, hold more than 4 MiB",
    ),
    "instances of themselves": (
        ".comp C { .init a = C .init b = C }\n.init c = C",
        "error[E0203]: components have instances of one another, 100 levels deep",
    ),
    "what is derived twice": (
        doubled(".comp C(i) : C(j), D(j) { }\n.comp D(i) : C(j), D(j) { }\n")
        + ".comp C40 { }\n.comp D40 { }\n.init c = C0",
        "error[E0203]: the instances of components, up to this one, hold more than 4 MiB",
    ),
    "what is derived from its parameter": (
        ".comp C<T> : T { }\n.init c = C<C>",
        "error[E0203]: components are derived from one another, 100 levels deep",
    ),
    "a line of descent": (
        ".comp C0 { }\n" + "".join(f".comp C{i + 1} : C{i} {{ }}\n" for i in range(5_000)),
        "error[E0203]: components are derived from one another, 100 levels deep",
    ),
    "long components": (
        f".comp C {{ .decl r(x: number) {'r(1). ' * 5_000} }}\n"
        + "".join(f".init c{i} = C\n" for i in range(3_000)),
        "error[E0203]: the instances of components, up to this one, hold more than 4 MiB",
    ),
    "components in one another that are not there": (
        ".comp C : B {\n" * 90 + "}" * 90,
        "error[E0201]: unknown component `B`",
    ),
    "macros": (
        "#define A0 1\n" + doubled("#define A(j) A(i) + A(i)\n") + "A40",
        "error[E0108]: the macros of this text expand to more than 4 MiB",
    ),
    "macros of nothing": (
        "#define A0\n" + doubled("#define A(j) A(i) A(i)\n") + "A40",
        "error[E0108]: the macros of this text expand to more than 4 MiB",
    ),
    "macros that drop what they are given": (
        "#define A0(x)\n" + doubled("#define A(j)(x) A(i)(x x)A(i)(x x)\n") + "A40(1)",
        "error[E0108]: the macros of this text expand to more than 4 MiB",
    ),
    "macros in conditions": (
        "#define A0 1\n" + doubled("#define A(j) A(i) + A(i)\n") + "#if A40\n#endif",
        "error[E0108]: the macros of this text expand to more than 4 MiB",
    ),
    "texts of macros": (
        f"#define A(x) {'#x ' * 10_000}\nA({'x' * 10_000})",
        "error[E0108]: the macros of this text expand to more than 4 MiB",
    ),
    "inlined atoms": (
        doubled(".decl i(i)(x: number) inline\ni(i)(x) :- i(j)(x), i(j)(x).\n")
        + ".decl i40(x: number) inline\ni40(x) :- r(x).\nr(x) :- i0(x).",
        "error[E0206]: inlining",
    ),
    "inlined rules": (
        doubled(".decl i(i)(x: number) inline\ni(i)(x) :- i(j)(x).\ni(i)(x) :- i(j)(x).\n")
        + ".decl i40(x: number) inline\ni40(x) :- r(x).\nr(x) :- i0(x).",
        "error[E0206]: inlining makes more than 10000 rules of this one",
    ),
    "inlined terms": (
        doubled(".decl i(i)(x: number) inline\ni(i)(x) :- i(j)(x + x).\n")
        + ".decl i40(x: number) inline\ni40(x) :- r(x).\nr(x) :- r(x), i0(x).",
        "error[E0206]: inlining, up to this rule, makes more than 1000000 literals and terms",
    ),
    "inlined terms in one another": (
        doubled(f".decl i(i)(x: number) inline\ni(i)(x) :- i(j)(x{' + x' * 30}).\n")
        + ".decl i40(x: number) inline\ni40(x) :- r(x).\nr(x) :- r(x), i35(x).",
        "error[E0206]: inlining",
    ),
    "inlined counts": (
        doubled(".decl i(i)(x: number) inline\ni(i)(x) :- x > 1, i(j)(x).\ni(i)(x) :- x < 1, i(j)(x).\n")
        + ".decl i40(x: number) inline\ni40(x) :- x = 1.\n.decl n(x: number)\nn(count : { r(x), i0(x) }).",
        "error[E0206]: inlining, up to this rule, makes more than 1000000 literals and terms",
    ),
    "negations of what is inlined": (
        ".decl i(x: number) inline\n"
        + "i(x) :- r(x), r(x + 1), r(x + 2).\n" * 40
        + ".decl n(x: number)\nn(x) :- r(x), !i(x).",
        "error[E0206]: inlining makes more than 10000 rules of this one",
    ),
    "long alternatives": (
        f"r(x) :- r(x){f', (x = 1 ; x = 3{LONG})' * 10}.",
        "error[E0107]: the combinations of this rule's disjunctions have more than 200000 literals",
    ),
    "alternatives of many rules": (
        f"r(x) :- r(x), {', '.join(['(x = 1 ; x = 2)'] * 12)}.\n" * 20,
        "error[E0107]: rules with disjunctions or several heads, up to this one, have more than 500000",
    ),
    "recursive atoms": (
        f"r(x) :- {', '.join(['r(x)'] * 800)}.\n",
        "error[E0107]: the versions of recursive rules, up to this one, have more than 500000 literals",
    ),
}  # fmt: skip


LONGEST = ("long components", "macros that drop what they are given", "alternatives of many rules")


@pytest.mark.parametrize("mebibytes", by_day([1], [1, 4]))
@pytest.mark.parametrize("kind", by_day([kind for kind in GROWING if kind not in LONGEST], GROWING))
def test_what_grows_from_line_to_line(kind: str, mebibytes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a short text stands for has limits, and the error says which. By day those of texts are lower."""
    monkeypatch.setattr(components, "_CHARACTERS", mebibytes << 20)
    monkeypatch.setattr(preprocessor, "_MACRO_CHARACTERS", mebibytes << 20)
    text, message = GROWING[kind]
    assert message.replace("4 MiB", f"{mebibytes} MiB") in errors(DECLARED + text)


def test_a_macro_that_is_not_closed_in_a_condition() -> None:
    assert "the arguments of a macro are not closed" in errors("#define F(x) x\n#if F(1\n#endif")


def test_a_macro_over_many_lines() -> None:
    lines = [
        "#define F(x) x",
        *DECLARED.splitlines(),
        "F(",
        *("/* ) */ r(1)." for _ in range(3_000)),
        "r(2).)",
        "r(",
    ]
    assert errors("\n".join(lines)).startswith(f"t.dl:{len(lines)}:")


def test_a_relation_that_is_declared_again_as_inlined() -> None:
    message = errors(".decl p(x: number)\n.decl d = debug_delta(p)\n.decl p(x: number) inline\np(1).")
    assert "t.dl:3:7: error[E0202]: the relation `p` is declared twice" in message


@pytest.mark.parametrize(
    "text",
    [
        ".comp A { .override .decl r(x: number) }\n}\nr(1).",
        ".override r }",
        ".comp A { .override } }",
        ".comp A : { } }",
        ".lattice L<> { Lub -> @f(_, _)",
        ".lattice L",
        ".decl d = debug_delta(",
        "}",
        "r(1) } .",
    ],
)
def test_braces_that_belong_to_nothing(text: str) -> None:
    """The parser goes on behind each, whatever stands before it."""
    with pytest.raises(DatalogError, match=r"error\[E010[0-9]\]"):
        load(texts={"p.dl": text})


def test_thousands_of_errors() -> None:
    """Twenty of each file are shown, in order, with how many there are."""
    names = "".join(f".decl name{i}(x:number)\n" for i in range(20_000))
    text = names + "".join(f"nome{i}(1).\n" for i in range(5_000)) + "r(1"
    with pytest.raises(DatalogError) as error:
        load(texts={"t.dl": text, "u.dl": "other(1)."})
    diagnostics = error.value.diagnostics
    assert [d.line for d in diagnostics if d.file == "t.dl"] == list(range(20_001, 20_021))
    assert diagnostics[3].hint == "did you mean `name3`?"
    assert [d.file for d in diagnostics[20:]] == ["u.dl"]
    assert str(error.value).endswith("t.dl: 5,001 errors, of which the first 20 are shown")
    assert errors("&" * 3 + " &" * 1_000_000).endswith("10,000 errors, of which the first 20 are shown")


def test_messages_do_not_repeat_what_is_long() -> None:
    long = "a" * 1_000_000
    number = "1" * len(long)
    for text in (f"{long}(1).", f'r("{20 * long}").', f'.include "{long}"', f"r({number})."):
        message = errors(DECLARED + text)
        assert max(map(len, message.split("\n"))) < 300


def test_a_long_string_is_read() -> None:
    long = "a" * 20_000_000
    assert load(texts={"t.dl": f'{DECLARED}s("{long}").\n.output s'}).evaluate({}) == {"s": [(long,)]}


def test_suggestions() -> None:
    assert did_you_mean("egde", ["edges", "edge", "egg"]) == "did you mean `edge`?"
    assert did_you_mean("mapps", ["mesh", "maps"]) == "did you mean `maps`?"
    assert (
        did_you_mean("x", ["y"])
        == did_you_mean("reach", ["factor"])
        == did_you_mean("a" * 500, ["a" * 499])
        == ""
    )


def included(path: Path, target: str, *folders: Path) -> str:
    path.write_text(f'{DECLARED}.include "{target}"\n.output r\n')
    try:
        return str(load([path], include_from=folders).evaluate({}))
    except DatalogError as error:
        return str(error)


@pytest.mark.parametrize(
    "content",
    ["root:x:0:0\n", "PASSWORD=1\n", "{}", "-----BEGIN KEY-----\n", "f() {\n}\n", "& r(1).", '"secret'],
)
def test_of_a_file_that_is_no_rules_nothing_is_shown(tmp_path: Path, content: str) -> None:
    (tmp_path / "secret").write_text(content)
    message = included(tmp_path / "t.dl", "secret")
    assert message.splitlines() == [
        f'{tmp_path}/t.dl:3:10: error[E0106]: "secret" is not a rule file',
        '    .include "secret"',
        "             ^",
        "  hint: its first statement has a syntax error: load the file by itself to see it",
    ]


def test_files_are_included_from_the_folder_of_the_rules(tmp_path: Path) -> None:
    """Not from outside of it, by whatever way, unless that is allowed."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, inside / "more", outside):
        folder.mkdir()
        (folder / "fact.dl").write_text("r(1).\n")
    (inside / "more" / "up.dl").write_text('.include "../fact.dl"\n')
    (inside / "link.dl").symlink_to(outside / "fact.dl")
    rules = inside / "t.dl"
    for target in ("fact.dl", "more/fact.dl", "more/up.dl", str(inside / "fact.dl")):
        assert included(rules, target) == "{'r': [(1,)]}"
    for target in ("../outside/fact.dl", str(outside / "fact.dl"), "link.dl", "more/../../outside/fact.dl"):
        message = included(rules, target)
        assert f'error[E0106]: "{target}" is not in the folder of the rule file' in message
        assert f"hint: if it may be included, allow its folder: {outside}" in message
        assert included(rules, target, outside) == "{'r': [(1,)]}"


def test_files_that_do_not_end_or_cannot_be_read(tmp_path: Path) -> None:
    reasons = {
        Path("/dev/zero"): f"larger than {LARGEST >> 20} MiB",
        tmp_path: "Is a directory",
        tmp_path / ("a" * 5_000): "name too long",
        Path("a\0"): "null",
    }
    for path, why in reasons.items():
        with pytest.raises(DatalogError, match=f"cannot read this file: .*{why}"):
            load([path])
    (tmp_path / "loop.dl").symlink_to("loop.dl")
    assert 'cannot read "loop.dl"' in included(tmp_path / "t.dl", "loop.dl")
    (tmp_path / "latin.dl").write_bytes("// ä\n".encode("latin-1"))
    assert "it is not UTF-8" in included(tmp_path / "t.dl", "latin.dl")
    (tmp_path / "windows.dl").write_bytes(b"r(1).\r\nr(2).\r\n")
    assert included(tmp_path / "t.dl", "windows.dl") == "{'r': [(1,), (2,)]}"


def test_a_pipe_is_read(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.write(write, b".decl r(x:number)\nr(1).\n.output r\n")
    os.close(write)
    try:
        assert load([Path(f"/dev/fd/{read}")]).evaluate({}) == {"r": [(1,)]}
    finally:
        os.close(read)

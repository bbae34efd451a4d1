"""``shardlog datalog``: files as Soufflé reads and writes them."""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import sqlite3
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from shardlog.cli import main
from shardlog.datalog import Program
from shardlog.errors import shortened

from ..support import tools
from ..support.paths import PATHS_OF_FILES

SOUFFLE = tools.souffle()
LIST = """.type List = [head: symbol, tail: List]
.type Tree = Leaf {} | Node {left: Tree, name: symbol}
"""
DEEP = '["a", ' * 500
LEVELS = f"{'[a,' * 501}nil{']' * 501}"
NOUGHTS = "0" * 400
NINE = "9" + "0" * 5000  # more than Python takes
X_OF_R = "column `x` of `r`: expected"


class Folder:
    """A folder in which programs run."""

    def __init__(self, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path, self._capsys = path, capsys

    def write(self, **files: str | bytes) -> None:
        for name, content in files.items():
            file = self.path / name.replace("__", ".")
            file.write_bytes(content.encode() if isinstance(content, str) else content)

    def run(self, program: str, *options: str) -> tuple[int, str, str]:
        """The exit status, the output and the messages."""
        self.write(program__dl=program)
        folder = str(self.path)
        status = main(["datalog", str(self.path / "program.dl"), "-F", folder, "-D", folder, *options])
        said = self._capsys.readouterr()
        return status, said.out, said.err.replace(folder, "HERE")

    def read(self, name: str) -> str:
        return (self.path / name).read_bytes().decode()


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Folder:
    return Folder(tmp_path, capsys)


def test_facts_to_csv(folder: Folder) -> None:
    folder.write(edge__facts="1\t2\n2\t3\n")
    assert folder.run(PATHS_OF_FILES) == (0, "path\t3\n", "")
    assert folder.read("path.csv") == "1\t2\n1\t3\n2\t3\n"


def test_all_to_standard_output(folder: Folder) -> None:
    folder.write(edge__facts="1\t2\n")
    status, out, _ = folder.run(PATHS_OF_FILES, "-D", "-")
    bar = "---------------\npath\nx\ty\n===============\n1\t2\n===============\n"
    assert (status, out) == (0, bar + "path\t1\n")
    assert not (folder.path / "path.csv").exists()


def test_nothing_is_written_where_one_output_is_refused(folder: Folder) -> None:
    lists = ".type L = [n: number, l: L]\n.decl l(n: number, x: L)\n"
    nested = f"{lists}l(0, nil).\nl(n + 1, [n, x]) :- l(n, x), n < 600.\n"
    outputs = ".decl few(n: number)\nfew(1).\n.output few\n.output few(IO=stdout)\n.output l(IO=stdout)\n"
    status, out, error = folder.run(nested + outputs)
    assert (status, out) == (2, "")
    assert "a record that is nested more than 500 levels deep" in error
    assert not (folder.path / "few.csv").exists()


def test_files_without_room_are_refused_with_what_they_take(folder: Folder) -> None:
    folder.write(edge__facts="".join(f"{i}\t{i * 7}\n" for i in range(200_000)))
    status, out, error = folder.run(PATHS_OF_FILES, "--limits", "memory=1M")
    assert (status, out) == (2, "")
    assert re.search(
        r"edge.facts: error: the facts take (at least|about) \d MiB of memory, and the limit is 1", error
    )


# A declaration of `r`, the parameters of its .input, its facts, its tuples as lines of fields.
READ: list[tuple[str, str, str, str]] = [
    ("x: number, y: symbol", "", "-1\ta b\n+2\t\n", "-1\ta b\n2\t\n"),
    ("x: number, y: symbol", "", "1\ta", "1\ta\n"),
    ("x: number, y: symbol", "", "1\ta\r\n2\tb\r\n", "1\ta\n2\tb\n"),
    ("x: number", "", "3\tmore\tfields\n", "3\n"),
    ("x: symbol", "", "", ""),
    ("x: symbol", "", "a\n\n", "\na\n"),
    ("x: unsigned", "", "0x1F\n0b101\n18446744073709551615\n", "5\n31\n18446744073709551615\n"),
    ("x: float", "", "1\n-.5e1\ninf\n0.1\n", "-5\n0.10000000000000001\n1\ninf\n"),
    ("", "", "()\n", "()\n"),
    ("", "", "", ""),
    ("x: number, y: symbol", 'delimiter=","', "1,a\n2,b\n", "1\ta\n2\tb\n"),
    ("x: number, y: symbol", 'delimiter="::"', "1::a:b\n", "1\ta:b\n"),
    ("x: number, y: symbol", "headers=true", "x\ty\n1\ta\n", "1\ta\n"),
    ("x: number, y: symbol", 'columns="2:0"', "a\tz\t1\nb\tz\t2\textra\n", "1\ta\n2\tb\n"),
    ("x: symbol, y: symbol", "rfc4180=true", 'a,"b,""c"""\n"two\nlines",\n', 'a\tb,"c"\ntwo\nlines\t\n'),
    ("x: symbol, n: number", "rfc4180=true", '"a\r\nb",1\r\nc,2\r\n', "a\r\nb\t1\nc\t2\n"),
    *(
        ("x: number, y: symbol", f"rfc4180={quoted}{columns}", f"1{d}a\r\n2{d}b\r", "1\ta\n2\tb\n")
        for quoted, d in (("true", ","), ("false", "\t"))
        for columns in ("", ', columns="0:1"')  # at once, and line by line
    ),
    ("x: List, n: number", "", "nil\t1\n[a, [b c,nil]]\t2\n", "nil\t1\n[a, [b c, nil]]\t2\n"),
    ("x: List, n: number", 'delimiter=","', "[a, nil],1\nnil,2\n", "nil\t2\n[a, nil]\t1\n"),
    ("x: Tree, n: number", "", "$Leaf\t1\n$Node($Leaf, a b)\t2\n", "$Leaf\t1\n$Node($Leaf, a b)\t2\n"),
    ("x: Tree", "", '$Node( $Node($Leaf,"a)") , b)\n', "$Node($Node($Leaf, a)), b)\n"),
    ("x: Tree", "IO=jsonfile", '[[["Node", ["Leaf"], "a"]], [["Leaf"]]]', "$Leaf\n$Node($Leaf, a)\n"),
    ("x: List", "", '["a, \\"]", nil]\n', '[a, "], nil]\n'),
    ("x: number, y: symbol", "IO=jsonfile", '[[1, "a"], {"y": "b", "x": 2}]', "1\ta\n2\tb\n"),
    ("x: List, f: float", "IO=jsonfile", '[[["a", null], 1], [null, 2.5]]', "nil\t2.5\n[a, nil]\t1\n"),
    ("x: number", "IO=jsonfile", "[]", ""),
    ("", "IO=jsonfile", "[null]", "()\n"),
    ("x: float", "IO=jsonfile", "[[NaN], [1e400], [-0.0], [0]]", "-0\n0\ninf\nnan\n"),
    ("x: symbol", "", "\ufeffa\n", "a\n"),
    ("x: number", "IO=jsonfile", "\ufeff[[1]]", "1\n"),
    ("x: List", "", "[\u00a0, [\u2028,\vnil]]\n", "[\u00a0, [\u2028, nil]]\n"),
    ("x: List", "", f"{'[a, ' * 500}nil{']' * 500}\n", f"{'[a, ' * 500}nil{']' * 500}\n"),
    ("x: List", "IO=jsonfile", f"[[{DEEP}null{']' * 500}]]", f"{'[a, ' * 500}nil{']' * 500}\n"),
]  # fmt: skip


@pytest.mark.parametrize(("columns", "parameters", "facts", "expected"), READ)
def test_reading(columns: str, parameters: str, facts: str, expected: str, folder: Folder) -> None:
    folder.write(**{"r__json" if "json" in parameters else "r__facts": facts})
    program = f"{LIST}.decl r({columns})\n.input r({parameters})\n.output r\n"
    assert folder.run(program) == (0, "", "")
    assert folder.read("r.csv") == expected


# The parameters of the .output of `r`, and its file.
ROWS = ['5, 0.5, ["a", nil]', "18446744073709551615, -1, nil", r'7, 0.1, ["q\" ,", nil]']
LINES = '5\t0.5\t[a, nil]\n7\t0.10000000000000001\t[q" ,, nil]\n18446744073709551615\t-1\tnil\n'
RFC4180 = r"""5,0.5,"[""a"", nil]"
7,0.10000000000000001,"[""q\"" ,"", nil]"
18446744073709551615,-1,"nil"
"""
JSON = r"""[[5, 0.5, ["a", null]],
[7, 0.1, ["q\" ,", null]],
[18446744073709551615, -1, null]]
"""
OBJECTS = r"""[{"u": 5, "f": 0.5, "l": {"head": "a", "tail": null}},
{"u": 7, "f": 0.1, "l": {"head": "q\" ,", "tail": null}},
{"u": 18446744073709551615, "f": -1, "l": null}]
"""
WRITTEN = [
    ("", "r.csv", LINES),
    ('headers=true, delimiter="|"', "r.csv", "u|f|l\n" + LINES.replace("\t", "|")),
    ("rfc4180=true", "r.csv", RFC4180),
    ("rfc4180=true, headers=true", "r.csv", "u,f,l\n" + RFC4180),
    ("IO=jsonfile", "r.json", JSON),
    ("IO=jsonfile, format=object", "r.json", OBJECTS),
    ('filename="sub/other.txt"', "sub/other.txt", LINES),
]
DECLARED = LIST + ".decl r(u: unsigned, f: float, l: List)\n" + "".join(f"r({row}).\n" for row in ROWS)


@pytest.mark.parametrize(("parameters", "file", "expected"), WRITTEN)
def test_writing(parameters: str, file: str, expected: str, folder: Folder) -> None:
    assert folder.run(f"{DECLARED}.output r({parameters})\n") == (0, "", "")
    assert folder.read(file) == expected


@pytest.mark.parametrize(
    "parameters", ["", "rfc4180=true", "headers=true", "IO=jsonfile", "IO=sqlite", "compress=true"]
)
def test_what_is_written_can_be_read(parameters: str, folder: Folder) -> None:
    values = ', "a \\"b\\""' if "rfc" in parameters or "IO" in parameters else ', "a b"'
    declared = ".decl r(x: number, f: float, s: symbol)\n"
    name = {"IO=jsonfile": "r.json", "IO=sqlite": "r.sqlite", "compress=true": "r.csv.gz"}.get(
        parameters, "r.csv"
    )
    facts = f"r(-3, 0.1{values}).\nr(4, 2.5{values}).\n"
    folder.run(f'{declared}{facts}.output r({parameters})\n.output r(filename="1")\n')
    given = ", ".join(filter(None, [parameters, f'filename="{name}"']))
    assert folder.run(f'{declared}.input r({given})\n.output r(filename="2")\n') == (0, "", "")
    assert folder.read("1") == folder.read("2") != ""


HARD = [
    (-(1 << 63), 1 << 63, math.nan, "", None, ("Leaf",)),
    (-1, 1, -math.inf, " nil\t", ("", None), ("Node", ("Leaf",), "]), ")),
    ((1 << 63) - 1, (1 << 64) - 1, 0.1, 'a"b",\r\n\\', (' "x\\', (",", None)), ("Node", ("Leaf",), '"\n')),
]


@pytest.mark.parametrize(
    "parameters",
    ["rfc4180=true", 'rfc4180=true, delimiter="]"', "IO=jsonfile", "IO=jsonfile, format=object", "IO=sqlite"],
)
def test_every_value_comes_back(parameters: str, tmp_path: Path) -> None:
    declared = f"{LIST}.decl r(n: number, u: unsigned, f: float, s: symbol, l: List, t: Tree)\n"
    parameters += ', filename="r"'
    written = Program(f"{declared}.output r({parameters})\n")
    written.add("r", HARD)
    written.write_outputs(tmp_path)
    program = Program(f"{declared}.input r({parameters})\n")
    program.read_inputs(tmp_path)
    assert repr(program.rows("r")) == repr(HARD)


@pytest.mark.parametrize("parameters", ["", "IO=jsonfile", "IO=jsonfile, format=object"])
def test_both_zeros_come_back(parameters: str, tmp_path: Path) -> None:
    parameters = ", ".join(filter(None, [parameters, 'filename="r"']))
    written = Program(f".decl r(x: float)\n.output r({parameters})\n")
    written.add("r", [(0.0,), (-0.0,)])
    written.write_outputs(tmp_path)
    program = Program(f".decl r(x: float)\n.input r({parameters})\n")
    program.read_inputs(tmp_path)
    assert repr(program.rows("r")) == repr([(-0.0,), (0.0,)])


@pytest.mark.parametrize(
    ("created", "said"),
    [
        ("TABLE r AS SELECT 1, 'two'", "column `y` of `r`, row 0: expected a number of 64 bits, found 'two'"),
        (
            "TABLE r AS SELECT 1, x'ff'",
            r"column `y` of `r`, row 0: expected a number of 64 bits, found b'\xff'",
        ),
        ("TABLE r AS SELECT 1, NULL", "column `y` of `r`, row 0: expected a number of 64 bits, found None"),
        ("TABLE r(x)", "`r`: expected 2 columns, found 1"),
    ],
)
def test_tables_that_do_not_fit(created: str, said: str, folder: Folder) -> None:
    with sqlite3.connect(folder.path / "r.sqlite") as connection:
        connection.execute(f"CREATE {created}")
    program = ".decl r(x: number, y: number)\n.input r(IO=sqlite)\n.output r\n"
    assert folder.run(program) == (2, "", f"HERE/r.sqlite: error: {said}\n")


def test_tables_that_a_database_takes_for_one(folder: Folder) -> None:
    program = ".decl r, R(x: number)\nr(1).\nR(2).\n" + "".join(
        f'.output {name}(IO=sqlite, filename="{file}")\n'
        for name, file in [("r", "a"), ("R", "b"), ("r", "b")]
    )
    said = "HERE/b: error: a database takes `R` and `r` for one name\n"
    assert folder.run(program) == (2, "", said)
    assert [path.name for path in folder.path.iterdir()] == ["program.dl"]


def test_a_program_may_begin_with_a_byte_order_mark(folder: Folder) -> None:
    assert folder.run("\ufeff.decl r(x: number)\nr(1).\n.output r\n") == (0, "", "")
    assert folder.read("r.csv") == "1\n"


def test_compressed_files_are_the_same_each_time(folder: Folder) -> None:
    program = ".decl r(x: number)\nr(1).\n.output r(compress=true)\n"
    folder.run(program)
    first = (folder.path / "r.csv.gz").read_bytes()
    folder.run(program)
    assert gzip.decompress(first) == b"1\n"
    assert (folder.path / "r.csv.gz").read_bytes() == first


def test_a_database_keeps_its_other_tables(folder: Folder) -> None:
    file = folder.path / "r.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE mine (x)")
    folder.run('.decl r(x: number, s: symbol)\nr(1, "a").\n.output r(IO=sqlite)\n')
    folder.run('.decl r(x: number, s: symbol)\nr(2, "b").\n.output r(IO=sqlite)\n')
    with sqlite3.connect(file) as connection:
        assert connection.execute("SELECT x, s FROM r").fetchall() == [(2, "b")]
        assert connection.execute("SELECT * FROM mine").fetchall() == []


def test_standard_input(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"1\t2\n")))
    status, out, _ = folder.run(
        ".decl r(x: number, y: number)\n.input r(IO=stdin)\n.output r(IO=json)\n.output r(IO=stdout)\n"
    )
    assert (status, out) == (0, "[[1, 2]]\n---------------\nr\n===============\n1\t2\n===============\n")


@pytest.mark.parametrize("option", ["--depth 3", "--json"])
def test_options_of_explanations_alone(option: str, folder: Folder) -> None:
    status, _, err = folder.run(".decl r(x: number)\nr(1).\n.output r\n", *option.split())
    assert (status, f"{option.split()[0]} is only for" in err) == (2, True)


@pytest.mark.parametrize("option", ["--explain", "--explain-not"])
@pytest.mark.parametrize("backend", ["auto", "souffle"])
def test_an_empty_fact_is_none(option: str, backend: str, folder: Folder) -> None:
    status, _, err = folder.run(".decl r(x: number)\nr(1).\n.output r\n", option, "", "--backend", backend)
    wrong = "cannot read the fact ''" if backend == "auto" else f"{option} is not for --backend souffle"
    assert (status, wrong in err) == (2, True)
    assert not (folder.path / "r.csv").exists()


@pytest.mark.parametrize(
    ("program", "facts", "said"),
    [
        (".decl r(x: number)\n.input r\n", {}, "r.facts: error: cannot read: No such file or directory\n"
         "  hint: the facts of `r`, for the directive at HERE/program.dl:2:8; -F names the folder\n"),
        (".decl r(x: number, y: number)\n.input r\n", {"r__facts": "1\t2\n3\tx\n"},
         "r.facts:2: error: column `y` of `r`: expected a number of 64 bits, found 'x'\n"),
        (".decl r(x: number, y: number)\n.input r\n", {"r__facts": "1\t2\n3\n"},
         "r.facts:2: error: `r`: expected 2 fields, found 1\n"),
        (".decl r(x: number)\n.input r(headers=true)\n", {"r__facts": "x\n1\ny\n"},
         "r.facts:3: error: column `x` of `r`: expected a number of 64 bits, found 'y'\n"),
        (".decl r(x: number)\n.input r\n", {"r__facts": f"{1 << 63}\n"},
         f"r.facts:1: error: column `x` of `r`: expected a number of 64 bits, found '{1 << 63}'\n"),
        (".decl r(x: symbol)\n.input r(rfc4180=true)\n", {"r__facts": '"a\n'},
         'r.facts:1: error: `r`: expected a `"` that ends the field\n'),
        (".decl r(x: symbol)\n.input r\n", {"r__facts": b"a\n\xff\n"},
         "r.facts:2: error: not UTF-8\n  hint: expected text in UTF-8\n"),
        (".decl r(x: number)\n.input r(headers=true)\n", {"r__facts": b"\xff\n1\n"},
         "r.facts:1: error: not UTF-8\n  hint: expected text in UTF-8\n"),
        (".decl r(x: symbol)\n.input r\n", {"r__facts": b"\x1f\x8b\x08"},
         "r.facts: error: cannot be decompressed: "
         "Compressed file ended before the end-of-stream marker was reached\n"),
        (".decl r(x: number)\n.input r(IO=jsonfile)\n", {"r__json": "[[1], [true]]"},
         "r.json: error: `r`, fact 1: expected a number of 64 bits for `x`, found true\n"),
        (".decl r(x: symbol)\n.input r(IO=jsonfile)\n", {"r__json": '[["\\ud800"]]'},
         "r.json: error: `r`, fact 0, column `x`: expected a text, found '\\ud800'\n"),
        (".decl r(x: float)\n.input r(IO=jsonfile)\n", {"r__json": f"[[1{NOUGHTS}]]"},
         f"r.json: error: {shortened(f'`r`, fact 0: expected a float for `x`, found 1{NOUGHTS}')}\n"),
        (".decl r(x: number)\n.input r(IO=jsonfile)\n", {"r__json": f"[[{'1' * 5000}]]"},
         "r.json: error: not JSON: a number has too many digits\n"),
        (".decl r(x: number)\n.input r\n", {"r__facts": NINE},
         f"r.facts:1: error: {shortened(f'{X_OF_R} a number of 64 bits, found {NINE!r}')}\n"),
        (f"{LIST}.decl r(x: Tree)\n.input r(IO=jsonfile)\n", {"r__json": '[[[{"Leaf": 1}]]]'},
         "r.json: error: `r`, fact 0: "
         'expected a list that begins with "Leaf" or "Node", found [{"Leaf": 1}]\n'),
        (f"{LIST}.decl r(x: List)\n.input r(IO=jsonfile)\n", {"r__json": f"[[{DEEP * 2}null{']' * 1000}]]"},
         "r.json: error: it is nested too deeply\n"),
        (f"{LIST}.decl r(x: List)\n.input r\n", {"r__facts": LEVELS},
         f"r.facts:1: error: {shortened(f'{X_OF_R} a record of at most 500 levels, found {LEVELS!r}')}\n"),
        (".decl r(x: number)\n.input r(IO=sqlite)\n", {"r__sqlite": "no"},
         "r.sqlite: error: cannot read `r`: file is not a database\n"),
        (".type C = Red {} | Blue {}\n.decl r(x: C)\n.input r\n", {"r__facts": "$Green\n"},
         "r.facts:1: error: column `x` of `r`: expected one of $Blue, $Red, found '$Green'\n"),
        (".decl r(x: number)\n.input r(IO=kafka)\n", {},
         'program.dl:2:8: error: cannot .input `r` by IO "kafka"\n'
         "  hint: there are: file, stdin, json, jsonfile, sqlite\n"),
        (".decl r(x: number)\n.input r(columns=\"a\")\n", {"r__facts": ""},
         "program.dl:2:8: error: `r`: cannot read columns='a'\n"
         "  hint: expected 1 places of fields, counted from 0, as in 0:2:1\n"),
    ],
)  # fmt: skip
def test_bad_files(program: str, facts: dict[str, Any], said: str, folder: Folder) -> None:
    folder.write(**facts, old__csv="stays")
    out = ".decl old(x: number)\nold(1).\n.output old, r\n"
    assert folder.run(program + out) == (2, "", f"HERE/{said}")
    assert folder.read("old.csv") == "stays"


def test_a_parameter_that_nobody_knows_is_told(folder: Folder) -> None:
    status, _, err = folder.run('.decl r(x: number)\nr(1).\n.output r(delimeter=",")\n')
    said = "HERE/program.dl:3:9: warning[W0106]: the parameter `delimeter` is not known\n"
    assert (status, err) == (0, f"{said}  hint: did you mean `delimiter`?\n")


def test_facts_that_no_output_needs_are_not_read(folder: Folder) -> None:
    program = (
        ".decl a, b, c(x: number)\n.input a, b\nc(x) :- a(x).\n.output c\n"
        ".decl d(x: number)\nd(n) :- a(x), n = count : { b(x) }.\n"
    )
    folder.write(a__facts="1\n")
    assert folder.run(program) == (0, "", "")
    assert folder.read("c.csv") == "1\n"
    status, _, err = folder.run(program, "--explain", "d(0)")
    assert status == 2
    assert "b.facts: error: cannot read" in err


def test_warnings_are_shown_also_beside_errors(folder: Folder) -> None:
    program = ".decl r(value: number)\nr(1).\n.decl s(x: number)\ns(value) :- r(valve).\n"
    status, _, err = folder.run(program)
    assert status == 2
    assert "HERE/program.dl:4:15: warning[W0403]: the variable `valve` occurs only here\n" in err
    assert "error[E0401]: the variable `value` has no value" in err


def test_limits(folder: Folder) -> None:
    endless = ".decl r(x: number)\nr(0).\nr(x + 1) :- r(x).\n.output r\n"
    status, _, err = folder.run(endless, "--limits", "tuples=1000")
    assert status == 2
    assert "more than 1000 tuples" in err
    assert not (folder.path / "r.csv").exists()


@pytest.mark.souffle
@pytest.mark.parametrize(
    ("columns", "parameters", "facts", "expected"),
    [r for r in READ if "json" not in r[1] and not r[2].startswith("\ufeff")],
)
def test_souffle_reads_the_same(
    columns: str, parameters: str, facts: str, expected: str, folder: Folder
) -> None:
    folder.write(r__facts=facts, p__dl=f"{LIST}.decl r({columns})\n.input r({parameters})\n.output r\n")
    path = str(folder.path)
    subprocess.run([str(SOUFFLE), "-F", path, "-D", path, f"{path}/p.dl"], check=True, capture_output=True)
    assert sorted(folder.read("r.csv").split("\n")) == sorted(expected.split("\n"))


@pytest.mark.souffle
@pytest.mark.parametrize(
    ("parameters", "file", "expected"),
    [w for w in WRITTEN if "json" not in w[0] and "sub" not in w[1] and "rfc4180=true, h" not in w[0]],
)
def test_souffle_writes_the_same(parameters: str, file: str, expected: str, folder: Folder) -> None:
    folder.write(p__dl=f"{DECLARED}.output r({parameters})\n")
    path = str(folder.path)
    subprocess.run([str(SOUFFLE), "-F", path, "-D", path, f"{path}/p.dl"], check=True, capture_output=True)
    assert sorted(folder.read(file).split("\n")) == sorted(expected.split("\n"))


MACROS = """
#ifdef LARGE
.decl r(x: number, y: symbol)
r(N, NAME).
.output r
#else
#error say -M LARGE
#endif
.decl unused(x: number)
"""


def test_macros_of_the_command_line(folder: Folder) -> None:
    status, _, err = folder.run(MACROS, "-w")
    assert status == 2 and "#error say -M LARGE" in err
    assert folder.run(MACROS, "-w", "-M", "LARGE N=3", "-M", 'NAME="a b"') == (0, "", "")
    assert folder.read("r.csv") == "3\ta b\n"


@pytest.mark.parametrize("given", ["3=4", "A B-C", "=1"])
def test_what_is_no_macro(given: str, folder: Folder) -> None:
    status, _, err = folder.run(MACROS, "-M", given)
    assert status == 2 and "-M/--macro: expected NAME=VALUE" in err


def test_warnings_can_be_left_out(folder: Folder) -> None:
    program = ".decl unused(x: number)\n.decl r(x: number)\nr(1).\n.output r\n"
    assert "W0401" in folder.run(program)[2]
    assert folder.run(program, "-w") == (0, "", "")


def test_included_folders(folder: Folder, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "part.dl").write_text(".decl r(x: number)\nr(1).\n")
    program = '#include "part.dl"\n.output r\n'
    assert folder.run(program)[0] == 2
    for option in ("-I", "--include-dir", "--allow-include"):
        assert folder.run(program, option, str(other)) == (0, "", "")


def test_magic_sets_of_the_command_line(folder: Folder) -> None:
    folder.write(edge__facts="1\t2\n2\t3\n3\t4\n")
    program = (
        f"{PATHS_OF_FILES.replace('.printsize path', '')}.decl last(x: number)\nlast(x) :- path(3, x).\n"
    )
    program = program.replace(".output path", ".output last")
    profile = folder.path / "profile.json"
    sizes = {}
    for options in ((), ("-m", "*"), ("-m", "*", "--magic-transform-exclude", "path")):
        assert folder.run(program, "-p", str(profile), *options) == (0, "", "")
        assert folder.read("last.csv") == "4\n"
        rules = json.loads(profile.read_text())["rules"]
        sizes[options] = sum(rule["tuples"] for rule in rules)
    whole, magic, excluded = sizes.values()
    assert magic < whole == excluded


@pytest.mark.parametrize(
    "option", ["-c", "--compile", "-g x.cpp", "-l lib", "-t explain", "--legacy", "-W all"]
)
def test_options_of_souffle_without_a_meaning_are_refused(option: str, folder: Folder) -> None:
    status, out, err = folder.run(".decl r(x: number)\nr(1).\n.output r\n", *option.split())
    assert (status, out) == (2, "")
    assert f"Soufflé's option {option.split()[0]} is not supported\n  hint: " in err
    assert not (folder.path / "r.csv").exists()


def test_files_do_not_take_numpy(folder: Folder) -> None:
    folder.write(program__dl=PATHS_OF_FILES, edge__facts="1\t2\n")
    program = (
        "import sys\nfrom shardlog.cli import main\n"
        "main(['datalog', 'program.dl'])\nprint('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=folder.path, capture_output=True, text=True)
    assert done.stdout == "path\t1\nFalse\n"

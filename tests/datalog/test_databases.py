"""Relations in DuckDB, pyDatalog and stock Soufflé."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardlog import ShardlogError
from shardlog.cli import main
from shardlog.datalog import Program, give_to_pydatalog, take_from_pydatalog

from ..support.paths import PATHS_OF_FILES

TEXT = (
    PATHS_OF_FILES
    + """
.type List = [head: symbol, tail: List]
.decl named(s: symbol, u: unsigned, f: float, l: List)
named("a", 18446744073709551615, 0.5, ["b", nil]).
.output named
.decl yes()
yes() :- path(1, _).
.output yes
"""
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("p.dl").write_text(TEXT)
    Path("edge.facts").write_text("1\t2\n2\t3\n")
    return tmp_path


def test_a_database_has_facts_and_results(folder: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("found.db") as connection:
        connection.execute("CREATE TABLE mine AS SELECT 7 AS x")
    for _ in range(2):
        assert main(["datalog", "p.dl", "-D", "out", "--duckdb", "found.db"]) == 0
    with duckdb.connect("found.db", read_only=True) as connection:
        assert connection.sql("SELECT * FROM edge ORDER BY ALL").fetchall() == [(1, 2), (2, 3)]
        assert connection.sql("SELECT count(*) FROM path JOIN edge USING (x)").fetchall() == [(3,)]
        assert connection.sql("FROM named").fetchall() == [("a", 18446744073709551615, 0.5, "[b, nil]")]
        assert [row[1] for row in connection.sql("DESCRIBE named").fetchall()][:1] == ["VARCHAR"]
        assert connection.sql("FROM yes").fetchall() == [(True,)]
        assert connection.sql("FROM mine").fetchall() == [(7,)]
    assert sorted(path.name for path in folder.iterdir()) == ["edge.facts", "found.db", "out", "p.dl"]


@pytest.mark.parametrize(
    ("declared", "one", "other"),
    [("R(x: number)\n.decl r(x: number)", "R", "r"), ("r(x: number, X: symbol)", "x", "X")],
)
def test_names_that_a_database_takes_for_one(declared: str, one: str, other: str, tmp_path: Path) -> None:
    pytest.importorskip("duckdb")
    program = Program(f".decl {declared}\n")
    with pytest.raises(ShardlogError, match=f"a database takes `{one}` and `{other}` for one name"):
        program.write_duckdb(tmp_path / "found.db")
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_database_stays(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("duckdb")
    Path("found.db").write_text("no database\n" * 1000)
    assert main(["datalog", "p.dl", "--duckdb", "found.db"]) == 2
    assert capsys.readouterr().err.startswith("found.db: error: cannot write a database: ")
    assert Path("found.db").read_text().startswith("no database")
    assert not Path("path.csv").exists()


def test_pydatalog_takes_relations_and_gives_results() -> None:
    pydatalog = pytest.importorskip("pyDatalog.pyDatalog")
    pydatalog.clear()
    program = Program("""
.decl edge(x: number, y: symbol)
edge(1, "a"). edge(2, "b").
.decl named(y: symbol, x: number)
.decl none(x: number)
.decl upper(y: symbol)
upper(to_string(n)) :- named(_, n).
""")
    program.run()
    give_to_pydatalog(program, "edge")
    pydatalog.load("named(Y, X) <= edge(X, Y)")
    take_from_pydatalog(program, "named", "none")
    program.run()
    assert program.rows("named") == [("a", 1), ("b", 2)]
    assert program.rows("upper") == [("1",), ("2",)]
    assert program.rows("none") == []


def test_pydatalog_cannot_have_every_relation() -> None:
    pytest.importorskip("pyDatalog")
    with pytest.raises(ShardlogError, match="pyDatalog cannot have the relation Edge"):
        give_to_pydatalog(Program(".decl Edge(x: number)"), "Edge")


@pytest.mark.souffle
def test_souffle_carries_out_a_program(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = TEXT.replace("18446744073709551615", "7")  # it may have 32 bits
    Path("p.dl").write_text(text)
    assert main(["datalog", "p.dl", "-D", "ours"]) == 0
    ours = capfd.readouterr()
    assert main(["datalog", "p.dl", "-D", "theirs", "--backend", "souffle", "-j", "2"]) == 0
    assert capfd.readouterr().out == ours.out == "path\t3\n"
    for file in ("path.csv", "named.csv", "yes.csv"):
        assert Path("ours", file).read_text() == Path("theirs", file).read_text()
    Path("edge.facts").unlink()
    assert main(["datalog", "p.dl", "-D", "none", "--backend", "souffle"]) == 2
    assert capfd.readouterr().err == (
        "p.dl: error: Soufflé says: Error loading edge data: Cannot open fact file edge.facts\n"
    )
    assert not Path("none").exists()


def test_without_souffle(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("SOUFFLE", raising=False)
    assert main(["datalog", "p.dl", "--backend", "souffle"]) == 2
    assert "Soufflé is not on the PATH" in capsys.readouterr().err
    assert main(["datalog", "p.dl", "--backend", "souffle", "--explain", "path(1, 2)"]) == 2
    assert "--explain is not for --backend souffle" in capsys.readouterr().err

"""Saved runs: the answers from the file are those of the run, and what is no saved run is refused."""

from __future__ import annotations

import gc
import os
import re
import sqlite3
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import shardlog
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.explanations.questions.replay import replay
from shardlog.explanations.questions.why import Explainer
from shardlog.explanations.questions.why_not import after_removal, why_not
from shardlog.exporters.schema import SCHEMA
from shardlog.runs.options import Options
from shardlog.runs.records import save
from shardlog.runs.records.saved import check_saved, open_saved
from shardlog.runs.records.saved_file import is_saved, seal
from shardlog.runs.running import run_with

from ..support import models
from ..support.drawing import by_day

SAMPLE = 5  # values of each program

MODULE = """
sdy.mesh @mesh = <["data"=2, "model"=2]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("batch['x']"),
                %w: tensor<4x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}p1]>})
    -> tensor<8x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x4xf32>, tensor<4x16xf32>) -> tensor<8x16xf32> loc("model.py":7:3)
  return %0 : tensor<8x16xf32>
}
"""


def answers(run: shardlog.Session) -> Iterator[Any]:
    """The explanations of a run: of a sample of its values, and of all conflicts."""
    explainer = run.explainer
    values = explainer.values.all()
    yield explainer.values.names()
    yield explainer.record.stages, explainer.record.statistics, explainer.record.unknown_ops
    yield explainer.record.order(), explainer.record.annotations()
    for value in values[:: max(1, len(values) // SAMPLE)]:
        yield explainer.record.axes(value.number)
        yield [found.as_json(proofs=True) for found in explainer.why(value.name)]
        for dim in range(len(value.shape)):
            try:
                yield [found.as_json() for found in why_not(explainer, value.name, dim, "data")]
            except ShardlogError as error:  # because it is sharded on the axis
                yield str(error)
    for name in SCHEMA:
        relation = explainer.record.relation(name)
        yield relation
        for first in {row[0] for row in relation[:: max(1, len(relation) // SAMPLE)]}:
            among = explainer.record.relation(name, [first])
            yield [row for row in among if row[0] == first]
    yield run.conflicts(keep_shardings=True)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("saved") / "dot.shardlog"
    shardlog.run(MODULE).save(path)
    return path


@pytest.mark.parametrize(("name", "scan"), by_day([("lstm", True)], models.LAYERED))
def test_answers_are_those_of_the_run(name: str, scan: bool, tmp_path: Path) -> None:
    result = shardlog.run(models.lower(name, train=name != "decode", scan=scan))
    result.save(tmp_path / "run.shardlog")
    for saved, live in zip(answers(shardlog.open(tmp_path / "run.shardlog")), answers(result), strict=True):
        assert saved == live


def test_a_run_of_many_ops_has_large_pages_and_gives_the_same_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shardlog.run(MODULE)
    run.save(tmp_path / "few")
    monkeypatch.setattr(save, "_MANY", 1)
    run.save(tmp_path / "many")
    pages = [int.from_bytes((tmp_path / name).read_bytes()[16:18]) for name in ("few", "many")]
    assert pages == [4096, 16384]
    few, many = (list(map(repr, answers(shardlog.open(tmp_path / name)))) for name in ("few", "many"))
    assert few == many


def test_same_run_same_bytes(file: Path, tmp_path: Path) -> None:
    shardlog.run(MODULE).save(tmp_path / "again.shardlog")
    assert (tmp_path / "again.shardlog").read_bytes() == file.read_bytes()
    assert [entry.name for entry in tmp_path.iterdir()] == ["again.shardlog"]


@pytest.mark.parametrize(("name", "scan"), by_day([("vit", False), ("lstm", True)], models.LAYERED))
def test_names_read_before_the_module_is_written(name: str, scan: bool) -> None:
    """A run that will be saved reads the names of values from the module that it has parsed."""
    text = models.lower(name, train=name != "decode", scan=scan)
    read = run_with(text, Options(), names=True)
    assert told(read.names) == told(run_with(text, Options()).names)


def told(names: object) -> str:
    """Names without the ends of ranges from column 0 on, which MLIR loses when it reads its own text."""
    return re.sub(r'(":\d+:0) to :\d+', r"\1", repr(names))


def test_no_turn_is_solved_again_for_why(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardlog.runs.records.saved.Saved.rules", None)
    (answer,) = Explainer(shardlog.open(file).record).why("%0", 0)
    assert [step.op for step in answer.steps] == ["stablehlo.dot_general"]
    assert answer.steps[0].sentence.startswith('Slot 0 (%arg0) has "data"')


def test_places(file: Path) -> None:
    explainer = Explainer(shardlog.open(file).record)
    assert [found.site.value for found in explainer.why("model.py:7")] == ["%0"]
    assert [found.site.value for found in explainer.why("batch['x']")] == ["%arg0"]
    with pytest.raises(ShardlogError) as error:
        explainer.why("model.py:9")
    assert "lines 7 of model.py" in error.value.hint


def test_run_again(file: Path) -> None:
    """Questions that need another run are answered by a run of the module in the file."""
    saved = shardlog.open(file)
    explainer = Explainer(saved.record)
    (answer,) = explainer.why("%0", 0)
    assert explainer.check_proofs(answer) > 1
    assert replay(saved.result, answer).holds
    (missing,) = why_not(saved.explainer, "%0", 1, "data")
    assert after_removal(saved.result, missing) == ("%arg0", '%0 dim 1 is sharded on "data"')


def test_run_again_with_rules_and_options(tmp_path: Path) -> None:
    rules = tmp_path / "mine.rules"
    rules.write_text("mine.scale: b n -> b n\n")
    text = """
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = "mine.scale"(%x) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""
    result = shardlog.run(
        text, mesh="x=2", annotate=['%arg0=[{"x"}, {}]'], rules=[rules], strategy="aggressive"
    )
    result.save(tmp_path / "run.shardlog")
    rules.unlink()
    again = shardlog.open(tmp_path / "run.shardlog")
    assert again.text() == result.text()
    assert '[{"x"}, {}]' in again.text().splitlines()[-4]


def test_other_rules(file: Path, tmp_path: Path) -> None:
    """A run that the present rules do not give is explained as it was, but not run again."""
    saved = shardlog.open(edited(file, tmp_path, UNCHANGED))
    with pytest.raises(ShardlogError, match="the run does not come out as it was saved"):
        _ = saved.result


def test_command(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module, saved = tmp_path / "dot.mlir", tmp_path / "run.shardlog"
    module.write_text(MODULE)
    assert main(["run", str(module), "--save", str(saved)]) == 0
    assert capsys.readouterr().out == ""
    for command in (
        ["why", "%0"],
        ["why-not", "%0", "--dim", "1", "--axis", "data", "--verify"],
        ["conflicts"],
    ):
        shown = []
        for run in (module, saved):
            assert main([command[0], str(run), *command[1:]]) == 0
            shown.append(capsys.readouterr().out)
        assert shown[0] == shown[1]


def test_a_pipe_is_left_unread(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert not is_saved(tmp_path / "pipe")  # to open it would wait for who writes


# ---- Bad input ---------------------------------------------------------------------------------------------


def refused(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["why", str(path), "%0"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_another_format(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "newer.shardlog"
    path.write_bytes(file.read_bytes())
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    error = refused(path, capsys)
    assert f"{path}: error: the run is saved in format 99, this version of shardlog reads format" in error
    assert "hint: run it again: shardlog run MODULE --save FILE" in error


@pytest.mark.parametrize("part", [0, 0.001, 0.01, 0.5, 0.999])
def test_cut_short(file: Path, tmp_path: Path, part: float, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "short.shardlog"
    path.write_bytes(file.read_bytes()[: int(part * file.stat().st_size) or 4])
    assert f"{path}: error: the file is cut short" in refused(path, capsys)


def test_damaged(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, data = tmp_path / "bad.shardlog", file.read_bytes()
    path.write_bytes(data[:100] + b"\xff" * (len(data) - 100))
    assert f"{path}: error: the file is damaged" in refused(path, capsys)


def test_another_database(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t(x)")
    database.close()
    assert f"{path}: error: this SQLite database is not a saved run" in refused(path, capsys)


@pytest.mark.parametrize("seed", range(4))
def test_every_flipped_bit_is_noticed(file: Path, tmp_path: Path, seed: int) -> None:
    path, data, random = tmp_path / "bad.shardlog", file.read_bytes(), Random(seed)
    for _ in range(100):
        at = random.randrange(8 * len(data))
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        path.write_bytes(flipped)
        with pytest.raises(ShardlogError):
            open_saved(path)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i, i, i FROM n"


@pytest.mark.parametrize(
    "change",
    [
        "CREATE VIEW more AS SELECT 1",
        "CREATE TRIGGER again AFTER INSERT ON run BEGIN DELETE FROM run; END",
        f"DROP TABLE loss; CREATE VIEW loss AS {ENDLESS}",
        "ALTER TABLE type ADD COLUMN more TEXT",
        "CREATE INDEX by_text ON type(text)",
    ],
)
def test_other_tables(file: Path, tmp_path: Path, change: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = edited(file, tmp_path, change)
    assert f"{path}: error: the file is damaged: it has other tables than a saved run" in refused(
        path, capsys
    )


UNCHANGED = "UPDATE column SET numbers = zeroblob(length(numbers)) WHERE name = 'change.old'"


@pytest.mark.parametrize(
    ("command", "change"),
    [
        ("why {} %0", "DELETE FROM run"),
        ("why {} %0", "UPDATE proof SET steps = '[]'"),
        ("why {} %0", "UPDATE content SET facts = '{\"sharded\": [[0]]}'"),
        ("why {} %0", "UPDATE type SET shape = 'x'"),
        ("why {} %0", "UPDATE column SET width = 'h' WHERE name = 'value.cell'"),
        ("why {} %0", "UPDATE column SET width = 'q' WHERE name = 'gain.change'"),
        ("why {} %0", "DELETE FROM column WHERE name = 'text'"),
        ("why {} result#0", "UPDATE column SET numbers = x'090909' WHERE name = 'gain.before'"),
        ("report {} -o report.html", "UPDATE column SET numbers = x'09' WHERE name = 'change.slot'"),
        ("what-if {} --drop %arg0", "UPDATE module SET options = '[]'"),
        ("what-if {} --drop %arg0", "UPDATE module SET data = x'00'"),
        ("diff {} {}", "UPDATE axes SET atoms = 'x'"),
    ],
)
def test_other_things_under_a_right_checksum(
    command: str,
    change: str,
    file: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tables that contradict each other end in one message."""
    monkeypatch.chdir(tmp_path)
    path = edited(file, tmp_path, change)
    assert main(command.format(*[str(path)] * 2).split()) == 2
    assert capsys.readouterr().err.startswith(f"{path}: error: ")


QUESTIONS: dict[str, Callable[[shardlog.Session], object]] = {
    "why": lambda run: run.why("%0"),
    "why not": lambda run: run.why_not("%0", 1, "data"),
    "conflicts": lambda run: run.conflicts(),
    "diff": lambda run: shardlog.run(MODULE).diff(run),
    "query": lambda run: run.query("op(v, name)"),
    "report": lambda run: run.report("report.html"),
    "visualize": lambda run: run.visualize("%0"),
    "what if": lambda run: run.what_if(drop="%arg0"),
}


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.parametrize("explained", [False, True])
def test_other_things_in_the_api(
    ask: Callable[[shardlog.Session], object],
    explained: bool,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    change = "UPDATE type SET shape = 'x'; UPDATE op_rows SET rows = 'x'; UPDATE module SET options = '[]'"
    run = shardlog.open(edited(file, tmp_path, change))
    with pytest.raises(ShardlogError, match="the file is damaged"):
        ask(shardlog.explain(run) if explained else run)


def test_a_file_without_its_tables_is_not_opened(file: Path, tmp_path: Path) -> None:
    with pytest.raises(ShardlogError, match="the file is damaged"):
        shardlog.open(edited(file, tmp_path, "DELETE FROM run"))


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="where open files are listed")
@pytest.mark.parametrize(
    "command", [["why", "%0"], ["conflicts"], ["query", "value(v, t)"], ["what-if", "--drop", "%arg0"]]
)
def test_a_command_closes_the_file(file: Path, command: list[str]) -> None:
    """At once: nothing in a saved run refers to itself, so no collector is needed."""

    def opened() -> bool:
        return file in (each.resolve() for each in Path("/proc/self/fd").iterdir())

    gc.collect()
    gc.disable()
    try:
        record = shardlog.open(file)
        assert opened()
        del record
        assert main([command[0], str(file), *command[1:]]) == 0
        assert not opened()
    finally:
        gc.enable()


def test_a_line_that_no_file_has(file: Path) -> None:
    with pytest.raises(ShardlogError, match="values come from lines 7"):
        shardlog.open(file).why(f"model.py:{1 << 80}")


def test_errors_of_ours_stay_errors(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A saved run as it was written is not blamed."""

    def broken(*_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr("shardlog.runs.records.saved.Saved.cell", broken)
    with pytest.raises(KeyError, match="ours"):
        main(["why", str(file), "%0"])
    with pytest.raises(KeyError, match="ours"):
        shardlog.open(file).why("%0")


def test_a_module_that_ends_the_process(file: Path, tmp_path: Path) -> None:
    """The module in a file is vetted as any other."""
    text = 'func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { "\\FF"() : () -> () '
    text += "return %a : tensor<8xf32> }"
    packed = zlib.compress(text.encode()).hex()
    saved = open_saved(edited(file, tmp_path, f"UPDATE module SET data = x'{packed}'"))
    with pytest.raises(ShardlogError, match="UTF-8"):
        saved.again()


def test_other_rules_of_turns(file: Path, tmp_path: Path) -> None:
    """Turns are not solved by rules from a file."""
    plan = zlib.compress(b"{}").hex()
    saved = open_saved(edited(file, tmp_path, f"UPDATE plan SET data = x'{plan}'"))
    assert Explainer(saved).why("%0", 0)
    with pytest.raises(ShardlogError, match="the rules of turns are others than those it was saved with"):
        why_not(Explainer(saved), "%0", 1, "data")


def test_checked_with_its_rules(tmp_path: Path) -> None:
    """The options of a run are in its file, and give the same file again."""
    rules = tmp_path / "mine.rules"
    rules.write_text("mine.scale: b n -> b n\n")
    text = MODULE.replace(
        "return %0", '%1 = "mine.scale"(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>\n  return %1'
    )
    path = tmp_path / "run.shardlog"
    shardlog.run(text, rules=[rules], annotate=['%arg1=[{}, {"model"}]']).save(path)
    check_saved(path)


def test_what_unpacks_to_far_more(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shardlog.runs.records.saved_file._UNPACKED", 1 << 20)
    packed = zlib.compress(bytes(2 << 20)).hex()
    saved = open_saved(edited(file, tmp_path, f"UPDATE module SET data = x'{packed}'"))
    with pytest.raises(ShardlogError, match="a column has more than 1 MiB unpacked"):
        saved.again()


def test_rows_without_end(file: Path, tmp_path: Path) -> None:
    """A query gives up where the file cannot have as much as it goes through."""
    saved = open_saved(file)
    with pytest.raises(ShardlogError, match="the file is damaged"):
        saved._all(ENDLESS)


def edited(file: Path, folder: Path, script: str) -> Path:
    """A copy of a saved run with another database under a right checksum."""
    path = folder / "edited.shardlog"
    path.write_bytes(file.read_bytes())
    database = sqlite3.connect(path)
    database.executescript(script)
    database.close()
    seal(path)
    return path


def test_not_a_run(tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    path.write_text(MODULE)
    with pytest.raises(ShardlogError, match="this is not a saved run"):
        shardlog.open(path)
    with pytest.raises(ShardlogError, match="cannot read the run: No such file"):
        shardlog.open(tmp_path / "none")


def test_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(ShardlogError, match="cannot write: No such file"):
        shardlog.run(MODULE).save(tmp_path / "none" / "run.shardlog")


def test_a_saved_run_stays_as_it_is(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", str(file), "%0", "--annotate", '%arg0=[{}, {"data"}]']) == 2
    assert "--annotate cannot change a saved run\n  hint: use what-if" in capsys.readouterr().err
    schedule = tmp_path / "t"
    schedule.write_text("batch: x -> data\n")
    for options in (
        ["--strategy", "basic"],
        ["--schedule", str(schedule)],
        ["--until", "0"],
        ["--compiled"],
        ["--separate-groups"],
        ["--allow-include", "."],
    ):
        flag = {"--compiled": "--view"}.get(options[0], options[0])
        for command in (["why", "%0"], ["what-if", "--drop", "x"], ["diff", str(file)]):
            assert main([command[0], str(file), *command[1:], *options]) == 2
            assert f"{flag} cannot change a saved run\n  hint: run the module" in capsys.readouterr().err
    assert main(["diff", str(file), str(file), "--as-is"]) == 2
    assert "--as-is cannot change a saved run" in capsys.readouterr().err
    assert main(["query", str(file), "op(v, name)", "--limits", "tuples=1000"]) == 0

"""Plans that are kept in files."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from shutil import move

import pytest
from shardlog import outputs
from shardlog.engine import LoadedProgram, load
from shardlog.engine.language.sources import Sources
from shardlog.engine.plan import cache as caches
from shardlog.engine.plan.cache import PlanCache, PlanText, Request

MAIN = """
    .include "part.dl"
    .decl p(x: number)
    .output p
    p(x) :- q(x), x > 1.
"""
PART = """
    .decl q(x: number)
    .input q
    /// {x} is asked for.
    q(x) :- x = 7.
"""
ANSWER = {"p": [(2,), (7,)]}


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "rules"
    folder.mkdir()
    (folder / "main.dl").write_text(MAIN)
    (folder / "part.dl").write_text(PART)
    return folder


def loaded(rules: Path, cache: Path | None = None, files: bool = True) -> LoadedProgram:
    """The program in a folder of rules; the cache is beside it."""
    plans = PlanCache(rules, rules.parent / "shipped", cache or rules.parent / "cache")
    return load([rules / "main.dl"], cache=plans, files=files)


def is_kept(program: LoadedProgram) -> bool:
    return isinstance(program.given, PlanText)


def test_what_is_kept_is_the_program(rules: Path) -> None:
    compiled, kept = loaded(rules), loaded(rules)
    assert (is_kept(compiled), is_kept(kept)) == (False, True)
    assert kept.evaluate({"q": [(2,)]}) == compiled.evaluate({"q": [(2,)]}) == ANSWER
    assert (kept.outputs, kept.key, kept.relations) == (compiled.outputs, None, compiled.relations)
    assert kept.plan == compiled.plan
    assert kept.plan.sources[0].file == str(rules / "part.dl")
    assert kept.evaluate({"q": [(2,)]}, backend="reference") == ANSWER


def test_a_text_that_changed_is_compiled(rules: Path) -> None:
    loaded(rules)
    (rules / "part.dl").write_text(PART.replace("7", "8"))
    changed = loaded(rules)
    assert not is_kept(changed)
    assert changed.evaluate({})["p"] == [(8,)]
    assert is_kept(loaded(rules))
    (rules / "part.dl").unlink()
    with pytest.raises(Exception, match=r"part\.dl"):
        loaded(rules)


@pytest.mark.parametrize("directive", [".", "#"])
@pytest.mark.parametrize("place", ["rules", "first"])
def test_a_file_that_is_included_instead_is_compiled(rules: Path, place: str, directive: str) -> None:
    first, second = rules.parent / "first", rules.parent / "second"
    first.mkdir()
    second.mkdir()
    move(rules / "part.dl", second)
    (rules / "main.dl").write_text(MAIN.replace('.include "', f'{directive}include "').replace("    #", "#"))

    def program() -> LoadedProgram:
        plans = PlanCache(rules, rules.parent / "shipped", rules.parent / "cache")
        return load([rules / "main.dl"], include_from=[first, second], cache=plans)

    assert not is_kept(program())
    assert is_kept(program())
    (rules.parent / place / "part.dl").write_text(PART.replace("7", "8"))
    changed = program()
    assert not is_kept(changed)
    assert changed.evaluate({})["p"] == [(8,)]


def test_another_question_is_another_program(rules: Path) -> None:
    loaded(rules)
    assert not is_kept(loaded(rules, files=False))
    assert is_kept(loaded(rules, files=False))


def test_another_front_end_compiles_again(rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(rules)
    monkeypatch.setattr(caches, "_version", lambda examiners: "another")
    assert not is_kept(loaded(rules))


def test_only_examined_plans_depend_on_the_code_that_examines(rules: Path) -> None:
    code = rules.parent / "code"
    code.mkdir()

    def program(*, examined: bool) -> LoadedProgram:
        examine = (lambda plan: len(plan.relations)) if examined else None
        plans = PlanCache(rules, rules.parent / "shipped", rules.parent / "cache", (code,))
        caches._version.cache_clear()  # as in another process
        return load([rules / "main.dl"], cache=plans, examine=examine)

    for examined in (True, False):
        assert not is_kept(program(examined=examined))
        assert is_kept(program(examined=examined))
    (code / "more.py").write_text("")
    assert not is_kept(program(examined=True))
    assert is_kept(program(examined=False))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b'"number"', b'"symbol"', 1),
        lambda data: b"\x00\xff" + data,
        lambda data: b"[" * 100_000,
    ],
    ids=["empty", "half", "changed", "not text", "nested"],
)
def test_a_damaged_file_is_passed_over(rules: Path, damage: Callable[[bytes], bytes]) -> None:
    loaded(rules)
    (file,) = (rules.parent / "cache").glob("*.plan")
    data = file.read_bytes()
    file.write_bytes(damage(data))
    program = loaded(rules)
    assert not is_kept(program)
    assert program.evaluate({"q": [(2,)]}) == ANSWER
    assert file.read_bytes() == data


def test_a_cache_that_cannot_be_written(rules: Path) -> None:
    file = rules.parent / "file"
    file.write_text("")
    assert loaded(rules, cache=file / "cache").evaluate({"q": [(2,)]}) == ANSWER
    assert loaded(rules, cache=Path("/dev/null/x")).evaluate({"q": [(2,)]}) == ANSWER


def test_a_cache_keeps_the_newest(rules: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outputs, "_CACHED", 2)
    cache = rules.parent / "cache"
    for name in "abc":
        load(texts={name: f".decl {name}()"}, cache=PlanCache(rules, rules, cache))
    assert sorted(re.findall(r'"name":"(.)"', "".join(f.read_text() for f in cache.iterdir()))) == ["b", "c"]


def test_shipped_plans_move_with_their_rules(rules: Path, tmp_path: Path) -> None:
    """Places are those of the folder that the rules are in now."""
    program = loaded(rules)
    request = Request([rules / "main.dl"])
    shipped = rules.parent / "shipped"
    shipped.mkdir()
    sources = Sources()
    for name, text in {"main.dl": MAIN, "part.dl": PART}.items():
        sources.add(str(rules / name), text)
    PlanCache(rules, shipped, None).ship(request, program.plan, sources)
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    move(rules, moved)
    move(shipped, moved)
    there = loaded(moved / "rules")
    assert is_kept(there)
    assert there.plan.sources[0].file == str(moved / "rules/part.dl")
    assert not (moved / "cache").exists()


def test_the_version_is_that_of_all_that_compiles() -> None:
    """No part of the engine takes part in a plan whose sources are not in the version."""
    program = "import sys, shardlog.engine.plan.compiler\nprint(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    engine = {name.split(".")[2] for name in loaded.stdout.split() if name.startswith("shardlog.engine.")}
    assert engine - set(caches.PARTS) == {"evaluate"}  # which the package imports, and the compiler does not

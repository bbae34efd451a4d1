"""The plans of the rules that ship."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from shardlog.engine import load
from shardlog.engine.plan.cache import PlanText
from shardlog.rulebook import shipped
from shardlog.rulebook.shipped import RULES
from shardlog.rulebook.traits import traits
from shardlog.rulebook.users import load_ops

BUILD = """
import sys
for missing in ("numpy", "jaxlib"):
    sys.modules[missing] = None
from pathlib import Path
from shardlog.rulebook.shipped import compile_ahead
compile_ahead(Path(sys.argv[1]))
"""


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Plans as a build makes them: where nothing is installed that shardlog needs to run."""
    folder = tmp_path_factory.mktemp("built") / "plans"
    subprocess.run([sys.executable, "-c", BUILD, folder], check=True)
    return folder


@pytest.fixture(params=shipped.KEYS)
def name(request: pytest.FixtureRequest, plans: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    cache = shipped.plan_cache()
    monkeypatch.setattr(shipped, "plan_cache", lambda: replace(cache, shipped=plans, folder=None))
    return str(request.param)


def test_every_program_is_made_ahead(name: str) -> None:
    program = shipped.shipped.__wrapped__(name)
    assert isinstance(program.given, PlanText)
    compiled = load([RULES / f"{name}.dl"], key=shipped.KEYS[name], include_from=[RULES], files=False)
    assert program.plan == compiled.plan


def test_op_rules_of_nobody_are_those_that_ship(plans: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = replace(shipped.plan_cache(), shipped=plans, folder=None)
    monkeypatch.setattr("shardlog.rulebook.users.plan_cache", lambda: cache)
    assert isinstance(load_ops([]).given, PlanText)


def test_every_program_is_listed() -> None:
    """What no other file includes is a program."""
    included = {
        (file.parent / line.split('"')[1]).resolve()
        for file in RULES.rglob("*.dl")
        for line in file.read_text().splitlines()
        if line.startswith(".include")
    }
    programs = {(RULES / f"{name}.dl").resolve() for name in shipped.KEYS}
    assert {file.resolve() for file in RULES.rglob("*.dl")} - included <= programs


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        ({"SHARDLOG_CACHE": "/a/b"}, "/a/b"),
        ({"SHARDLOG_CACHE": "", "XDG_CACHE_HOME": "/c"}, None),
        ({"XDG_CACHE_HOME": "/c"}, "/c/shardlog"),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/me"}, "/home/me/.cache/shardlog"),
        ({"HOME": "/home/me"}, "/home/me/.cache/shardlog"),
    ],
)
def test_the_folder_of_the_cache(
    variables: dict[str, str], folder: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("SHARDLOG_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in variables.items():
        monkeypatch.setenv(variable, value)
    assert shipped.plan_cache().folder == (Path(folder) if folder else None)


@pytest.mark.parametrize("name", shipped.KEYS)
def test_facts_about_ops_are_those_that_a_program_declares(name: str) -> None:
    """Traits go to all programs with relations of their names, which then need the same columns."""
    given = traits(shipped.shipped("ops/main").solver({}))
    columns = {relation: {tuple(map(type, row)) for row in rows} for relation, rows in given.facts}
    wanted = {"symbol": str, "number": int, "unsigned": int, "float": float}
    for relation in shipped.shipped(name).plan.relations:
        types = tuple(wanted[column.type] for column in relation.columns if column.type in wanted)
        assert columns.get(relation.name, set()) <= {types}, relation.name

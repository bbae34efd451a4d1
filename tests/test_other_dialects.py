"""What the rules know of StableHLO they can know of any dialect: the same program gets the same shardings."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog
from hypothesis import given, note, seed
from hypothesis import strategies as st

from . import models
from .compare import differences
from .random_modules import modules
from .renamed import renamed, renamed_rules
from .test_random_modules import SEED, several

HOST, OTHER = "stablehlo.", "my."


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with all that the rules say about StableHLO, said of the dialect `my`."""
    path = tmp_path_factory.mktemp("rules") / "my.dl"
    path.write_text(renamed_rules(HOST, OTHER))
    return path


def assert_same(text: str, rules: Path, strategy: str = "user-priority") -> None:
    """The module of StableHLO and the same one of the dialect `my` get the same shardings."""
    result = shardlog.run(renamed(text, HOST, OTHER), rules=[rules], strategy=strategy, closed=False)
    expected = shardlog.run(text, strategy=strategy, closed=False)
    found = renamed(result.text(), OTHER, HOST)
    assert differences(found, expected.text()) == []
    turns = [(s.turns, s.changes) for s in result.stages]
    assert turns == [(s.turns, s.changes) for s in expected.stages]


@pytest.mark.parametrize("name", models.MODELS)
def test_models(name: str, rules: Path) -> None:
    assert_same(models.text(name, train=name != "decode"), rules)


@seed(SEED)
@several
@given(text=modules(), strategy=st.sampled_from(["user-priority", "op-priority", "aggressive"]))
def test_random_modules(text: str, strategy: str, rules: Path) -> None:
    note(text)
    assert_same(text, rules, strategy)

"""The errors that users see."""

from __future__ import annotations

import copy
import pickle

import pytest
from shardlog import ShardlogError, engine
from shardlog.engine import DatalogError, EngineError


def bad_rule() -> DatalogError:
    with pytest.raises(DatalogError) as raised:
        engine.load([], texts={"bad.dl": "elementwise(s) :- nowhere(s)."})
    return raised.value


@pytest.mark.parametrize(
    "error",
    [ShardlogError("no x", where="m.mlir:3", hint="y"), ShardlogError("no x"), EngineError("e"), bad_rule()],
    ids=["place", "plain", "engine", "rules"],
)
def test_errors_go_to_other_processes(error: Exception) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)

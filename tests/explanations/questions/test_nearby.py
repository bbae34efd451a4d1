"""The dimensions next to others: arrays say what the rules say of each op."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog
from shardlog.explanations.questions.why_not import WhyNotSearch
from shardlog.program.ids import Cell
from shardlog.tests.support import models


@pytest.mark.parametrize("axis", ["data", "model"])
def test_arrays_agree_with_each_op(axis: str, tmp_path: Path) -> None:
    session = shardlog.run(models.text("transformer", depth=1))
    session.save(tmp_path / "run")
    for each in (session, shardlog.open(tmp_path / "run")):
        search = WhyNotSearch(each.explainer, axis)
        record, history, nearby = search.explainer.record, search.history, search.nearby(3)
        columns = record.slot_columns()
        stopped = 0
        for number, looked_at in enumerate(nearby.looked_at):
            cell, dim = Cell(number // nearby.rank), number % nearby.rank
            near, has_axis, unknown = list[int](), False, False
            for item, slot in search.items(cell):
                unknown |= search.obstacles.unknown(item)
                for _, u, d in search.shared(item, slot, dim):
                    other = history.cell(history.slots(item)[u])
                    has_axis |= d in search.on_axis(record.contents(other)[1])
                    near.append(other * nearby.rank + d)
            assert looked_at or [*nearby.near[nearby.starts[number] : nearby.starts[number + 1]]] == near
            assert looked_at or not (has_axis or unknown)
            stopped += looked_at
        assert 0 < stopped < len(nearby.looked_at) == len(columns.last) * nearby.rank

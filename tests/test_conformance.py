"""Shardy's own propagation tests give the same modules; see conformance.py."""

from __future__ import annotations

import pytest

from .conformance import checkout, table

# Functions that are known to differ, by file: a dynamic shape, which is an error here; a mesh that has two names
# and keeps the first; rules that Shardy leaves on ops; a group whose members disagree, which is an error here.
KNOWN: dict[str, int] = {
    "basic_propagation": 2,
    "basic_propagation_keep_sharding_rules": 1,
    "propagation_pipeline": 1,
}


@pytest.mark.skipif(checkout() is None, reason="SHARDY does not name a checkout of openxla/shardy")
def test_conformance() -> None:
    path = checkout()
    assert path is not None
    rows = table(path)
    assert rows
    notes = [n for name, row in rows.items() if row.different > KNOWN.get(name, 0) for n in row.notes]
    assert not notes, "\n".join(notes)

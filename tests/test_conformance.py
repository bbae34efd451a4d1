"""Shardy's own propagation tests give the same modules; see conformance.py."""

from __future__ import annotations

import pytest

from .conformance import checkout, table

# Functions that are known to differ, by file.
KNOWN: dict[str, int] = {}


@pytest.mark.skipif(checkout() is None, reason="SHARDY does not name a checkout of openxla/shardy")
def test_conformance() -> None:
    path = checkout()
    assert path is not None
    rows = table(path)
    assert rows
    notes = [n for name, row in rows.items() if row.different > KNOWN.get(name, 0) for n in row.notes]
    assert not notes, "\n".join(notes)

"""Shardy's own tests: propagation gives the same modules, and what is not valid is refused.

See conformance.py and verification.py.
"""

from __future__ import annotations

import pytest

from ..support import tools
from . import verification
from .conformance import table


@pytest.mark.shardy
def test_conformance() -> None:
    path = tools.shardy()
    assert path is not None
    rows = table(path)
    assert rows
    notes = [note for row in rows.values() if row.different for note in row.notes]
    assert not notes, "\n".join(notes)


@pytest.mark.shardy
def test_verification() -> None:
    path = tools.shardy()
    assert path is not None
    rows = verification.table(path)
    assert sum(row.refused for row in rows.values()) > 300
    assert [line for row in rows.values() for line in row.different] == []

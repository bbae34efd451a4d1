"""Random single ops: our factors are Shardy's."""

from __future__ import annotations

import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from ..support.drawing import drawing
from .rules import attached, ours
from .single_ops import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_family(family: str) -> None:
    @drawing(10)
    @given(FAMILIES[family], st.booleans())
    def equal(text: str, conservative: bool) -> None:
        note(text)
        assert ours(text, conservative=conservative) == attached(text, conservative=conservative)

    equal()

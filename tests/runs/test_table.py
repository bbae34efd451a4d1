"""Tables, and numbers in them."""

from __future__ import annotations

import pytest
from shardlog.program.elements import bytes_text
from shardlog.runs.table import time_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 us"),
        (4.2e-12, "<0.001 us"),
        (1e-9, "0.001 us"),
        (1.25e-5, "12.5 us"),
        (9.994e-4, "999 us"),
        (9.996e-4, "1 ms"),
        (0.9996, "1 s"),
        (12, "12 s"),
        (123456, "123,456 s"),
    ],
)
def test_times_have_no_powers_of_ten(seconds: float, text: str) -> None:
    assert time_text(seconds) == text


def test_one_byte_is_one() -> None:
    assert [bytes_text(n) for n in (0, 1, 2, 1024)] == ["0 bytes", "1 byte", "2 bytes", "1 KiB"]

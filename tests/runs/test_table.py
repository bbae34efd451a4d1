"""Tables, and numbers in them."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardlog.program.elements import bytes_text
from shardlog.runs.table import table, time_text


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


@pytest.mark.parametrize(
    ("places", "shown"),
    [
        (["{}/a.py:1 (jax/b.py:2)", "{}/c/a.py:3"], ["a.py:1 (jax/b.py:2)", "c/a.py:3"]),
        (["{}/a.py:1", "/home/a.py:3"], ["a.py:1", "/home/a.py:3"]),  # two files of this name
        (["/home/x/a.py:1", "/home/y/a.py:3", "-"], ["x/a.py:1", "y/a.py:3", "-"]),
        (["/home/x/a.py:1"], ["a.py:1"]),
        (["/home/x/m.mlir:1", "m.mlir:1"], ["/home/x/m.mlir:1", "m.mlir:1"]),
        (["-"], ["-"]),
    ],
)
def test_places_keep_what_tells_them_apart(
    places: list[str], shown: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [[place.format(tmp_path)] for place in places]
    assert table(["place"], rows).splitlines()[2:] == shown

"""The passes over device programs, and the page that lists them."""

from __future__ import annotations

import re
from pathlib import Path

from shardlog.partition.finishing import passes

PAGE = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_the_page_lists_all_passes_in_their_order() -> None:
    every = (*passes.COUNTED, *passes.FINISHED, *passes.COMBINED, *passes.CPU, *passes.TPU, *passes.OTHERS)
    listed = re.findall(r"^\| `(\w+)` \|", PAGE.read_text().split("| pass | does |")[1], re.MULTILINE)
    assert listed == list(dict.fromkeys(each.__name__ for each in every))


def test_passes_say_what_they_do() -> None:
    for change in (*passes.COUNTED, *passes.FINISHED, *passes.COMBINED, *passes.CPU, *passes.TPU):
        assert (change.__doc__ or "").partition(".")[0]

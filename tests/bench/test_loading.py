"""Facts are read and written in each form."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .loading import SHARDLOG, measured, write


@pytest.mark.parametrize("form", SHARDLOG)
def test_what_is_written_is_in_order_and_distinct(form: str, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    write(np.array([(3, 1), (1, 2), (3, 1), (1, 1)]), tmp_path)
    ours, theirs = measured(form, tmp_path, duckdb=False)
    assert ours.clock > 0 and theirs is None
    if form == "lines":
        rows = [tuple(map(int, line.split("\t"))) for line in (tmp_path / "written").read_text().splitlines()]
    elif form == "parquet":
        rows = [tuple(row.values()) for row in parquet.read_table(tmp_path / "written").to_pylist()]
    else:
        rows = [tuple(row) for row in np.load(tmp_path / "written.npy").tolist()]
    assert rows == [(1, 1), (1, 2), (3, 1)]

"""Measured programs: what ``measure`` writes, gzipped JSON of the ``device``, ``jax``, its version, and
``rows``."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Row:
    """A measured program: its ``kind``, its name, its ``text`` in StableHLO, the microseconds for which it
    keeps the GPU ``busy``, those of one of several calls that do not wait for each other (``ahead``, 0 where
    that was not measured), and how many ``kernels`` it has."""

    kind: str
    name: str
    text: str
    busy: float
    ahead: float = 0.0
    kernels: int = 0


def read_rows(files: Iterable[str]) -> list[Row]:
    """The rows of files, in order; of programs of one text the first. Programs are of the kind that their
    name begins with where nothing says it."""
    found: dict[str, Row] = {}
    for file in files:
        for row in json.loads(gzip.decompress(Path(file).read_bytes()))["rows"]:
            found.setdefault(row["text"], _row(row))
    return list(found.values())


def write(path: Path, what: Any) -> None:
    """Writes gzipped JSON: of the same the same bytes."""
    text = json.dumps(what, ensure_ascii=False, separators=(",", ":"))
    path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


def _row(row: dict[str, Any]) -> Row:
    kind = row.get("kind", "handed")
    kind = _kind(row["name"]) if kind == "handed" else kind
    count = row.get("count", row["kernels"])
    return Row(kind, row["name"], row["text"], row["busy_us"], row.get("ahead_us", 0.0), count)


def _kind(name: str) -> str:
    """The word of a name that says of which kind a program is: the first that is no number of a round."""
    word = next(word for word in name.split() if not re.fullmatch(r"r\d+", word))
    return "bmm" if "," in word else re.sub(r"\d+(x\d+)*$", "", word)

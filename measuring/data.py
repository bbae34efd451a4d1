"""Measured programs: what ``measure`` writes, gzipped JSON of the ``device``, ``jax``, its version, and
``rows``."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import outputs
from ..errors import ShardlogError


@dataclass(frozen=True)
class Measurement:
    """A measured program: its ``kind``, its name, its ``text`` in StableHLO, and the number of its
    ``kernels``. Times are in microseconds: ``busy``, for which it keeps the GPU busy, and ``ahead``, of one
    of several calls that do not wait for each other (0 if that was not measured)."""

    kind: str
    name: str
    text: str
    busy: float
    ahead: float = 0.0
    kernels: int = 0


def read_rows(files: Iterable[str]) -> list[Measurement]:
    """The rows of files, in order; of programs of one text the first. Programs are of the kind that their
    name begins with where nothing says it.

    Raises ShardlogError for a file that has no measured programs.
    """
    rows: dict[str, Measurement] = {}
    for file in files:
        data = _read(Path(file))
        try:
            for row in data["rows"]:
                rows.setdefault(row["text"], _row(row))
        except (KeyError, TypeError, AttributeError):
            raise _wrong(Path(file), "no measured programs", "run") from None
    return list(rows.values())


def read_programs(file: Path) -> list[dict[str, Any]]:
    """The programs of a file, each with its kind, name and text.

    Raises ShardlogError for a file that has none.
    """
    rows = _read(file)
    fields = {"kind", "name", "text"}
    if not isinstance(rows, list) or not all(isinstance(r, dict) and fields <= r.keys() for r in rows):
        raise _wrong(file, "no programs to measure", "draw")
    return rows


def _read(file: Path) -> Any:
    try:
        return json.loads(gzip.decompress(file.read_bytes()))
    except (gzip.BadGzipFile, ValueError, EOFError, zlib.error):
        raise _wrong(file, "no gzipped JSON", "draw or run") from None
    except OSError as error:
        raise ShardlogError(f"cannot read: {error.strerror}", where=str(file)) from None


def _wrong(file: Path, fault: str, command: str) -> ShardlogError:
    hint = f"expected a file of python -m shardlog.measuring {command}"
    return ShardlogError(f"the file has {fault}", where=str(file), hint=hint)


def write(path: Path, content: Any) -> None:
    """Writes gzipped JSON: of the same the same bytes."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    outputs.write(path, gzip.compress(text.encode(), 9, mtime=0))


def _row(row: dict[str, Any]) -> Measurement:
    kind = row.get("kind", "handed")
    kind = _kind(row["name"]) if kind == "handed" else kind
    count = row["count"] if "count" in row else row["kernels"]
    return Measurement(kind, row["name"], row["text"], row["busy_us"], row.get("ahead_us", 0.0), count)


def _kind(name: str) -> str:
    """The word of a name that is the kind of a program: the first that is not the number of a round."""
    word = next(word for word in name.split() if not re.fullmatch(r"r\d+", word))
    return "bmm" if "," in word else re.sub(r"\d+(x\d+)*$", "", word)

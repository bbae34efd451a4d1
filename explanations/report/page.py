"""The report as one HTML page: the data compressed, with the styles and scripts of ``browser/`` inside."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ...collector import no_collections
from ...pages import page_of
from ...runs.choice import ProgramChoice
from ..partitioned import Programs
from .data import collect

_FOLDER = Path(__file__).parent / "browser"
_SCRIPTS = (
    *("dom", "run", "cost", "ways", "graph/layout", "graph/graph", "graph/nodes", "graph/derivation"),
    *("pictures/devices", "pictures/step"),
    *("details", "tensors", "program", "conflicts", "summary", "app"),
)


@no_collections()
def report(
    programs: Programs,
    progress: Callable[[str, float], None] | None = None,
    choice: ProgramChoice | None = None,
    plan: Mapping[str, Any] | None = None,
) -> str:
    """A run as an HTML page that needs nothing but a browser, not even a network.

    ``progress``: see ``shardlog.run``. Collectives and costs are those of the program of ``choice``
    (docs/partitioning.md). ``plan`` is the automatic choice of the run's shardings, for the summary: a
    ``head``, the ``tried`` plans, the ``specs``, and a ``picture``.
    """
    tell = progress or (lambda stage, done: None)
    tell("reading the run", 0.0)
    document = {**collect(programs, tell, choice), "plan": plan}
    data = json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
    tell("writing", 0.95)
    return page_of(
        _FOLDER / "page.html.j2",
        title=Path(programs.result.record.name).name,
        data=base64.b64encode(zlib.compress(data)).decode(),
        style=_read("page.css"),
        scripts=[_read(f"{name}.js") for name in _SCRIPTS],
    )


def _read(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")

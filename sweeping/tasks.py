"""A task of a sweep: a plan for one model, mesh, machine and limit. It needs nothing but itself."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

from ..autosharding.options import AutoOptions
from ..errors import ShardlogError
from ..version import __version__


@dataclass(frozen=True)
class Task:
    """A plan to search: the name and the compressed bytes of a ``model``, and the ``options``."""

    model: str
    data: bytes
    options: AutoOptions

    @cached_property
    def key(self) -> str:
        """The digest that identifies a task: of the model, the options, and the version of shardlog."""
        described = json.dumps([__version__, self.model, asdict(self.options)], sort_keys=True).encode()
        return sha256(described + self.data).hexdigest()[:20]

    @property
    def name(self) -> str:
        """The task in words."""
        options = self.options
        mesh = options.mesh or (f"{options.devices} devices" if options.devices else "its own mesh")
        memory = "" if options.memory is None else f", at most {options.memory:,} bytes"
        return f"{self.model} on {mesh}, {options.topology}{memory}"


def perform(task: Task) -> str:
    """The result of a task as a JSON document: the plan, or why there is none (``refused``)."""
    import zlib

    from ..autosharding.automatic import plan
    from ..importers.sources.text import Text

    result: dict[str, Any] = {"plan": None, "refused": ""}
    try:
        result["plan"] = plan(Text(zlib.decompress(task.data), task.model), task.options).as_json()
    except ShardlogError as error:
        result["refused"] = error.message
    return json.dumps({"model": task.model, "asked": asdict(task.options), **result}, indent=1) + "\n"

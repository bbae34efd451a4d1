"""Reading the text of a module."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir
from shardlog.errors import ShardlogError
from shardlog.importers.sources.text import Text, parse_module


def test_a_module_that_memory_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(data: bytes) -> ir.Module:
        raise MemoryError

    monkeypatch.setattr(ir.Module, "parse", parse)
    with pytest.raises(ShardlogError, match="not enough memory for the module"):
        parse_module(Text(b"module {}", "m.mlir"))

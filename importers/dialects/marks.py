"""Signs of the sharding dialects of MLIR in a text. Without them, nothing else of this folder is needed."""

from __future__ import annotations

_SHARDINGS = (b"shard.", b"mesh.")
_STATEMENTS = (*_SHARDINGS, b"tosa.", b"linalg.", b"bufferization.", b"mpi.")


def may_have_shardings(data: bytes) -> bool:
    """Whether a text may have annotations or collectives of the dialects."""
    return any(mark in data for mark in _SHARDINGS)


def may_have_statements(data: bytes) -> bool:
    """Whether a text may have statements that jaxlib cannot read."""
    return any(mark in data for mark in _STATEMENTS)

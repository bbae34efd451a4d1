"""Signs of the sharding dialects of MLIR in a text, and names of their ops. Without them nothing else of this
folder is needed."""

from __future__ import annotations

SHARDINGS = ("shard.sharding", "mesh.sharding")
ANNOTATIONS = ("shard.shard", "mesh.shard", "mesh.annotate")
_DIALECTS = (b"shard.", b"mesh.")
_STATEMENTS = (*_DIALECTS, b"tosa.", b"linalg.", b"bufferization.", b"mpi.")


def may_have_shardings(data: bytes) -> bool:
    """Whether a text may have annotations or collectives of the dialects."""
    return any(mark in data for mark in _DIALECTS)


def may_have_statements(data: bytes) -> bool:
    """Whether a text may have statements that jaxlib cannot read."""
    return any(mark in data for mark in _STATEMENTS)

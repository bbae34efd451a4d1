"""What ``jax.export.Exported.serialize()`` returns: a flatbuffer that holds a module as bytecode.

It is read here, and not by ``jax.export.deserialize``, which needs the package flatbuffers and the classes of
all nodes in the trees of arguments and results.
"""

from __future__ import annotations

import struct

from .text import BYTECODE

# The place of mlir_module_serialized in the index of a table: JAX's schema keeps the places of fields.
_MODULE = 30


def bytecode_place(data: bytes) -> int | None:
    """Where a flatbuffer that begins with ``data`` has the length of the bytecode; None for other data."""
    try:
        (table,) = struct.unpack_from("<I", data)
        index = table - struct.unpack_from("<i", data, table)[0]
        (size,) = struct.unpack_from("<H", data, index)
        if index < 4 or size <= _MODULE:
            return None
        field = table + struct.unpack_from("<H", data, index + _MODULE)[0]
        place: int = field + struct.unpack_from("<I", data, field)[0]
    except struct.error:
        return None
    return place if field > table else None


def bytecode_in(data: bytes) -> bytes | None:
    """The bytecode in a serialized ``Exported``; None for other data, and if the file was cut."""
    place = bytecode_place(data)
    if place is None or len(data) < place + 4:
        return None
    (length,) = struct.unpack_from("<I", data, place)
    module = data[place + 4 : place + 4 + length]
    return module if module.startswith(BYTECODE) and len(module) == length else None

"""Python's collector of cyclic garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def no_collections() -> Iterator[None]:
    """Python looks for no cycles of objects: for what makes many objects that stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            if not gc.get_freeze_count():  # put with those that are old, they are not looked through at once
                gc.freeze()
                gc.unfreeze()
            gc.enable()

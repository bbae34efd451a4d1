"""Explanations: why a tensor is sharded so, and why not. ``shardlog.explain`` can be called too."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Package(ModuleType):
    """A name for both the package and the function in ``explained``, which is imported when it is called."""

    def __call__(self, function: Any, *args: Any, **kwargs: Any) -> Any:
        from .explained import explain

        return explain(function, *args, **kwargs)


sys.modules[__name__].__class__ = _Package

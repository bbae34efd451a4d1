"""shardlog decides how every tensor of a StableHLO program is sharded over a device mesh, and says why.

    import shardlog
    session = shardlog.run(jax.jit(step).lower(params, batch))
    print(session.text())
    shardlog.explain(jax.jit(step), params, batch).why("params['w']")

The knowledge is in Datalog rules (``rules/``), run to a fixpoint by a small engine (``engine/``).
"""

from __future__ import annotations

import os

from .version import __version__

# XLA reads it when the first part of jaxlib is loaded. JAX says the same, where it comes first.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than what the command line needs here
__all__ = [
    "Options",
    "Result",
    "Session",
    "ShardlogError",
    "Tactic",
    "__version__",
    "auto",
    "explain",
    "jit",
    "open",
    "run",
    "visualize",
]

if TYPE_CHECKING:
    from typing import Any

    from .api import (
        Options,
        Result,
        Session,
        ShardlogError,
        Tactic,
        explain,
        open,  # noqa: A004 - as a file is opened
        run,
        visualize,
    )
    from .automatic import auto
    from .jitted import jit


def __getattr__(name: str) -> Any:
    # What the command line does not need is imported when it is asked for: MLIR takes a fifth of a second.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "auto":
        from .automatic import auto

        return auto
    if name == "jit":
        from .jitted import jit

        return jit
    from . import api

    return getattr(api, name)


def __dir__() -> list[str]:
    return sorted(__all__)

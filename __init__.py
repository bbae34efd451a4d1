"""shardlog decides how every tensor of a StableHLO program is sharded over a device mesh, and says why.

    import shardlog
    result = shardlog.run(jax.jit(step).lower(params, batch))
    print(result.text())

The knowledge is in Datalog rules (``rules/``), run to a fixpoint by a small engine (``engine/``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["Result", "ShardlogError", "__version__", "run"]

if TYPE_CHECKING:
    from .api import Result, run
    from .errors import ShardlogError


def __getattr__(name: str) -> Any:
    # What the command line does not need is imported when it is asked for: MLIR takes a fifth of a second.
    if name in ("Result", "run"):
        from . import api

        return getattr(api, name)
    if name == "ShardlogError":
        from .errors import ShardlogError

        return ShardlogError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

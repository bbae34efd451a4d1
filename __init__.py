"""shardlog decides how every tensor of a StableHLO program is sharded over a device mesh, and says why.

    import shardlog
    result = shardlog.run(jax.jit(step).lower(params, batch))
    print(result.text())
    shardlog.explain(jax.jit(step), params, batch).why("params['w']")

The knowledge is in Datalog rules (``rules/``), run to a fixpoint by a small engine (``engine/``).
"""

from __future__ import annotations

import os

# XLA reads it when the first part of jaxlib is loaded. JAX says the same, where it comes first.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

TYPE_CHECKING = False  # that of `typing`, whose import takes longer than what the command line needs here
__version__ = "0.1.0"
__all__ = [
    "Options",
    "Result",
    "ShardlogError",
    "Tactic",
    "__version__",
    "explain",
    "jit",
    "open",
    "run",
    "visualize",
]

if TYPE_CHECKING:
    from typing import Any

    from .api import explain, run
    from .errors import ShardlogError
    from .explanations.answers.visualize import visualize
    from .jitted import jit
    from .propagation.schedules.tactics import Tactic
    from .runs.options import Options
    from .runs.records.saved import open_saved as open  # noqa: A004 - as a file is opened
    from .runs.result import Result

_FROM = {
    "Options": "runs.options",
    "Result": "runs.result",
    "ShardlogError": "errors",
    "Tactic": "propagation.schedules.tactics",
    "explain": "api",
    "jit": "jitted",
    "run": "api",
    "visualize": "explanations.answers.visualize",
}


def __getattr__(name: str) -> Any:
    # What the command line does not need is imported when it is asked for: MLIR takes a fifth of a second.
    from importlib import import_module

    if name in _FROM:
        return getattr(import_module(f".{_FROM[name]}", __name__), name)
    if name == "open":
        return import_module(".runs.records.saved", __name__).open_saved
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

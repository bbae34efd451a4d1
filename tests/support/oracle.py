"""The oracle: the real Shardy, which jaxlib carries, run in process on the text of a module.

The reference pipeline is jaxlib's own propagation pipeline, whichever passes that has, without what
partitions the program afterwards.

`forked` runs any function here in a child process: Shardy ends the process on some modules.
"""

from __future__ import annotations

import atexit
import os
import re
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir, passmanager
from shardlog.importers.sources.text import make_context
from shardlog.program.shardy import installed

PROPAGATE = {
    "basic": "sdy-basic-propagate{keep-sharding-rules=true}",
    "aggressive": "sdy-aggressive-propagate{keep-sharding-rules=true propagation-strategy=aggressive}",
    "op-priority": "sdy-op-priority-propagate{keep-sharding-rules=true}",
    "user-priority": "sdy-user-priority-propagate{keep-sharding-rules=true}",
}

CLOSE = "sdy-close-shardings"

# What checks the program before it is partitioned, folds it, or saves it; and what begins to partition it.
BESIDE = re.compile(r"sdy-save-module|sdy-verify-unreduced-axes|canonicalize|sdy-inline-meshes")
PARTITIONS = re.compile(r"sdy-sharding-constraint-to-reshard|sdy-insert-explicit-reshards")


class OracleError(Exception):
    """Shardy refused the module, or a pass failed, with its diagnostics; or the process crashed."""


def context() -> ir.Context:
    """An MLIR context that knows every dialect and starts no threads, so that it works in a forked child."""
    context = make_context()
    context.enable_multithreading(False)
    return context


def _passes() -> list[str]:
    """The passes of jaxlib's propagation pipeline, in order."""
    with context():
        manager = passmanager.PassManager.parse("builtin.module(sdy-propagation-pipeline)")
        inside = str(manager).removeprefix("builtin.module(").removesuffix(")")
    matches = re.findall(r"[\w.-]+(?:\([^()]*\)|\{(?:[^{}]|\{[^{}]*\})*\})?", inside)
    return [one for one in matches if not BESIDE.search(one)]


_all = _passes()
_own = [one for one in _all if not PARTITIONS.search(one)]
_propagates = next(i for i, one in enumerate(_own) if one.startswith("sdy-user-priority-propagate"))
BEFORE, AFTER = tuple(_own[:_propagates]), tuple(_own[_propagates + 1 :])


def pipeline(strategy: str = "user-priority", *, closed: bool = True) -> tuple[str, ...]:
    """The passes of the reference pipeline."""
    after = AFTER if closed else tuple(p for p in AFTER if p != CLOSE)
    return (*BEFORE, PROPAGATE[strategy], *after)


def manager(*passes: str) -> passmanager.PassManager:
    """A pass manager for `passes`, its verifier off, in the current context."""
    manager = passmanager.PassManager.parse(f"builtin.module({','.join(passes)})")
    manager.enable_verifier(False)
    return manager


def run_passes(text: str, *passes: str) -> str:
    """The module after `passes`, e.g. "sdy-basic-propagate" or "func.func(sdy-populate-op-sharding-rules)".

    Raises OracleError with MLIR's diagnostics.
    """
    with context():
        try:
            module = ir.Module.parse(text)
            manager(*passes).run(module.operation)
        except ir.MLIRError as error:
            raise OracleError(str(error)) from None
        return str(module)


def propagate(text: str, *, strategy: str = "user-priority", closed: bool = True) -> str:
    """The module as the reference pipeline leaves it, with `sdy.constant` written as `stablehlo.constant`.

    Raises OracleError.
    """
    result = run_passes(text, *pipeline(strategy, closed=closed))
    return reprinted(with_constants(result))


def with_explicit_reshards(text: str, *, full: bool = False, mark: bool = False) -> str:
    """The module as the pipeline leaves it that goes on to explicit reshards, around all ops if ``full``.

    ``mark``: partial results are marked as unreduced, which that of jaxlib 0.10 cannot. Raises OracleError.
    """
    chosen = {"enable-full-version": full, "mark-partial-result-with-unreduced-axes": mark}
    passes = [*_all]
    for option, value in chosen.items():
        passes = [one.replace(f"{option}=false", f"{option}={str(value).lower()}") for one in passes]
    return reprinted(with_constants(run_passes(text, *passes)))


def refused_unreduced(text: str, *, strategy: str = "user-priority", closed: bool = True) -> str:
    """Where Shardy refuses what becomes of unreduced axes once shardings are decided, as line:column; empty
    where it does not, as that of jaxlib 0.10 never does.

    Raises OracleError where the reference pipeline does.
    """
    if installed() == "0.10":
        return ""
    try:
        run_passes(text, *pipeline(strategy, closed=closed), "func.func(sdy-verify-unreduced-axes)")
    except OracleError as error:
        match = re.search(
            r'error: "-":(\d+:\d+): .* op (?:dropped|cannot|has unreduced|operand must|results introduce)',
            str(error),
        )
        if match is None:
            raise
        return match[1]
    return ""


def refused_single_device(text: str, *, strategy: str = "user-priority", closed: bool = True) -> str:
    """Where Shardy refuses a function that takes or returns a tensor on a single device, as line:column.

    Empty where it does not, as that of jaxlib 0.10 never does.
    """
    reshards = "func.func(sdy-insert-explicit-reshards{enable-full-version=false})"
    try:
        run_passes(text, *pipeline(strategy, closed=closed), reshards)
    except OracleError as error:
        match = re.search(r'error: "-":(\d+:\d+): .* cannot have a single-device', str(error))
        return match[1] if match else ""
    return ""


def with_constants(text: str) -> str:
    """The module with `sdy.constant` written as `stablehlo.constant`."""
    return re.sub(r"(?m)^( *%\w+ = )sdy\.constant ", r"\1stablehlo.constant ", text)


def reprinted(text: str) -> str:
    """The module as MLIR prints it. Raises OracleError where it does not parse."""
    return run_passes(text)


_log = Path(tempfile.gettempdir()) / f"shardlog-oracle-{os.getpid()}.log"
_pool: ProcessPoolExecutor | None = None


def forked(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """`function(*args, **options)` in a child process, which is kept for the next call while it lives.

    Raises what the function raises, and OracleError with the child's last words where the child dies.
    """
    global _pool
    if _pool is None:
        _pool = ProcessPoolExecutor(1, get_context("fork"), _redirect, (_log,))
        atexit.register(_log.unlink, missing_ok=True)
    try:
        with warnings.catch_warnings():  # the child uses none of the threads that jax warns about
            warnings.filterwarnings("ignore", message=r"os\.fork\(\) was called")
            return _pool.submit(function, *args, **options).result()
    except BrokenProcessPool:
        _pool = None
        words = _log.read_text(errors="replace").strip().splitlines()
        raise OracleError("crashed: " + "\n".join(words[:3])) from None


def _redirect(log: Path) -> None:
    """Sends the standard error of the process, Python's and LLVM's, to a file."""
    with log.open("w") as file:
        os.dup2(file.fileno(), 2)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    """Ends this process after its parent: it would wait for calls for ever where the parent was killed."""
    while os.getppid() == parent:
        time.sleep(5)
    os._exit(0)

"""Eight CPU devices, set before anything imports JAX; a cache of their own; and what tests need, by their
marker."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from jaxlib.mlir import ir
from shardlog.program.shardy import LINES, installed

from .support import tools

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # where there is a GPU, too
# Unless flags are given, XLA optimises little: it compiles in half of the time. At night none are given.
# Newer XLAs end at a flag that they lack.
_QUICK = [
    "--xla_backend_optimization_level=0",
    "--xla_llvm_disable_expensive_passes=true",
    "--xla_cpu_parallel_codegen_split_count=1",
    *(["--xla_cpu_use_fusion_emitters=false"] if installed() == LINES[0] else []),
]
_flags = os.environ.get("XLA_FLAGS", " ".join(_QUICK))
os.environ["XLA_FLAGS"] = f"{_flags} --xla_force_host_platform_device_count=8"

_cache = TemporaryDirectory(prefix="shardlog-tests-")  # it goes with the process
os.environ.setdefault("SHARDLOG_CACHE", _cache.name)

# Each run tries the same cases, however long they take; those of a night are as many times more, and others.
settings.register_profile("repeated", derandomize=True, database=None, deadline=None)
settings.register_profile("nightly", derandomize=False, database=None, deadline=None, max_examples=2500)
settings.load_profile("repeated")

gc.set_threshold(200_000, 20, 20)  # as in the processes of commands

# What runs in the background of a shell ignores Ctrl-C, and so would the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _own_name(op: ir.OpView) -> str:
    raise AssertionError("an OpView's name may be an attribute of its op: read op.operation.name")


# Of a stablehlo.composite, `name` is its attribute. No test, whatever its ops, lets anyone ask for it.
ir.OpView.name = property(_own_name)  # type: ignore[assignment,method-assign]


def _address(binding: Any) -> str:
    raise AssertionError(f"the text of a {type(binding).__name__} is its address, another one in each run")


# Texts decide, and are printed. A list of attributes or of operands has none of its own.
_plain: Any = object.__repr__
for _kind in [each for each in vars(ir).values() if isinstance(each, type) and each.__repr__ is _plain]:
    if _kind.__module__.startswith("jaxlib"):
        _kind.__repr__ = _address  # type: ignore[assignment,method-assign]

# Marker -> whether what it needs is there, and how to get it.
_NEEDS = {
    "core": (tools.core, "the parts in Rust: cargo, and then pip install -e ."),
    "shardy": (tools.shardy, "SHARDY=CHECKOUT of openxla/shardy"),
    "stablehlo": (tools.stablehlo, "STABLEHLO=CHECKOUT of openxla/stablehlo"),
    "souffle": (tools.souffle, "souffle on the PATH, or SOUFFLE=ITS PATH"),
    "tpu": (tools.libtpu, "libtpu, as in pip install 'jax[tpu]'; no device"),
    "cuda": (tools.cuda, "XLA's plugin for CUDA, as in pip install 'jax[cuda12]'; no device"),
    "gpu": (tools.gpu, "a GPU, and XLA's plugin for CUDA, as in pip install 'jax[cuda12]'"),
    "browser": (tools.browsers, "chromium and chromedriver on the PATH"),
}


@pytest.fixture(params=["core", "reference"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each of the evaluators of Datalog."""
    return str(request.param)


@pytest.fixture
def decisions(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `shardlog.jit` decides meanwhile."""
    from shardlog.runs.running import run_with

    decisions: list[Any] = []

    def counted(*args: Any) -> Any:
        decisions.append(args)
        return run_with(*args)

    monkeypatch.setattr("shardlog.jitted.run_with", counted)
    return decisions


def pytest_configure() -> None:
    """Ends a run that is to have the parts in Rust and would skip their tests."""
    if os.environ.get("SHARDLOG_REQUIRE_CORE") and tools.core() is None:
        raise pytest.UsageError("the parts in Rust are not all built, and SHARDLOG_REQUIRE_CORE is set")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips the tests whose markers need what is not there."""
    missing = {marker: how for marker, (find, how) in _NEEDS.items() if find() is None}
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)
        backend = item.callspec.params.get("backend") if hasattr(item, "callspec") else None
        if backend == "core":
            item.add_marker(pytest.mark.core)
        for marker, how in missing.items():
            if item.get_closest_marker(marker) and (marker, backend) != ("core", "reference"):
                item.add_marker(pytest.mark.skip(reason=f"needs {how}"))


def pytest_sessionfinish() -> None:
    """Spares pytest, which collects garbage at the end, a walk over all that the process holds."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says what was left out, and how it is run."""
    reasons: Counter[str] = Counter()
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reasons[reason.removeprefix("Skipped: ")] += 1
    for report in terminalreporter.stats.get("deselected", ()):
        if report.get_closest_marker("bench"):
            reasons["a measurement of time: make bench"] += 1
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"left out: {count:3} {reason}")

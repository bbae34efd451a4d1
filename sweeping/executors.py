"""Workers: processes of this machine, or workers of a cluster of Ray or Dask; each kind as an executor of
``concurrent.futures``."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from queue import LifoQueue
from typing import Any, ParamSpec, TypeVar

from .. import interrupt
from ..errors import ShardlogError, from_extra

_HOST = re.compile(r"(?:\w+://)?(?P<host>[\w.-]+):(?P<port>\d+)")
_SECONDS = 10  # to reach a cluster
_P = ParamSpec("_P")  # parameters of a task
_T = TypeVar("_T")  # its result


@contextmanager
def workers(
    kind: str, count: int | None = None, address: str | None = None
) -> Iterator[tuple[Executor, int]]:
    """An executor, and how many tasks it carries out at once: ``count``, by default as many as there are
    CPUs. Ray and Dask take the ``address`` of a cluster; otherwise they start one on this machine.

    Raises ShardlogError if the package is not installed, and for a cluster that cannot be reached.
    """
    if count is not None and count < 1:
        raise ShardlogError(f"{count} workers", where="--workers", hint="expected one or more")
    if kind == "processes":
        if address is not None:
            hint = "add --on ray or --on dask, or leave it out"
            raise ShardlogError("processes have no address", where="--address", hint=hint)
        at_once = count or os.cpu_count() or 1
        with Processes(at_once) as executor:
            yield executor, at_once
        return
    if address is not None:
        _check_address(address)
    with (_ray if kind == "ray" else _dask)(count, address) as started:
        yield started


class Processes(Executor):
    """Worker processes. Each is a pool of its own, so that one that ends takes only its own task with it."""

    def __init__(self, count: int) -> None:
        _track_quietly()
        self._free = LifoQueue[ProcessPoolExecutor | None]()
        self._pools = set[ProcessPoolExecutor]()
        for _ in range(count):
            self._free.put(None)
        interrupt.clearing[self._name] = self._kill

    def submit(self, function: Callable[_P, _T], /, *args: _P.args, **keywords: _P.kwargs) -> Future[_T]:
        """Gives a task to a free worker, and waits for one if there is none."""
        pool = self._free.get()
        if pool is None:
            pool = ProcessPoolExecutor(1, get_context("spawn"), _ignore_interrupts)
            self._pools.add(pool)
        own = pool

        def give_back(future: Future[_T]) -> None:
            ended = not future.cancelled() and isinstance(future.exception(), BrokenExecutor)
            if ended:
                self._pools.discard(own)
            self._free.put(None if ended else own)

        try:
            future = own.submit(function, *args, **keywords)
        except BrokenExecutor as error:  # it ended while it was free
            future = Future()
            future.set_exception(error)
        future.add_done_callback(give_back)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the workers."""
        for pool in [*self._pools]:
            pool.shutdown(wait, cancel_futures=cancel_futures)
        interrupt.clearing.pop(self._name, None)

    @property
    def _name(self) -> str:
        return f"workers {id(self)}"

    def _kill(self) -> None:
        for pool in [*self._pools]:
            for process in [*(pool._processes or {}).values()]:
                process.kill()


def _track_quietly() -> None:
    """Starts the process that removes the semaphores of this one. Where a signal ends this one, it does so
    without a warning."""
    if os.name != "posix":  # there is no such process elsewhere
        return
    from multiprocessing.resource_tracker import ensure_running

    sys.warnoptions.append("ignore:::multiprocessing.resource_tracker")
    try:
        ensure_running()
    finally:
        sys.warnoptions.pop()


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of a terminal; the first one ends the others."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _ray(count: int | None, address: str | None) -> Iterator[tuple[Executor, int]]:
    with from_extra("ray", "Ray"):
        import ray
    cluster: dict[str, Any] = (
        {"num_cpus": count, "include_dashboard": False} if address is None else {"address": address}
    )
    try:
        ray.init(log_to_driver=False, logging_level="ERROR", **cluster)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _unreached(address, error) from None
    remote = ray.remote(max_retries=0)(_call)  # a task whose worker ends is done again here

    class OnRay(Executor):
        def submit(self, function: Callable[_P, _T], /, *args: _P.args, **keywords: _P.kwargs) -> Future[_T]:
            future: Future[_T] = remote.remote(function, args, keywords).future()
            return future

    try:
        yield OnRay(), count or int(ray.cluster_resources().get("CPU", 1))
    finally:
        ray.shutdown()


def _call(function: Callable[..., _T], args: tuple[object, ...], keywords: dict[str, object]) -> _T:
    return function(*args, **keywords)


@contextmanager
def _dask(count: int | None, address: str | None) -> Iterator[tuple[Executor, int]]:
    with from_extra("dask", "Dask's distributed"):
        import distributed
    try:
        if address is not None:
            client = distributed.Client(address, timeout=_SECONDS)
        else:
            client = distributed.Client(
                n_workers=count or os.cpu_count() or 1, threads_per_worker=1, dashboard_address=None
            )
    except (OSError, ValueError) as error:
        raise _unreached(address, error) from None
    try:
        with client:
            at_once = count or sum(client.nthreads().values()) or 1
            yield client.get_executor(pure=False), at_once
    finally:
        if client.cluster is not None:
            client.cluster.close()


def _check_address(address: str) -> None:
    """Raises ShardlogError for a host and port that nothing listens at: Ray would try for minutes."""
    if (match := _HOST.fullmatch(address)) is None:
        return
    try:
        socket.create_connection((match["host"], int(match["port"])), timeout=_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise _unreached(address, error) from None


def _unreached(address: str | None, error: Exception) -> ShardlogError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    where = "--address" if address is None else f"--address {address}"
    return ShardlogError(
        f"no cluster: {reason}", where=where, hint="expected the address of a cluster that runs"
    )

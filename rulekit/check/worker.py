"""The process that compiles and runs programs for the CPU, apart from the one that asks."""

from __future__ import annotations

import os
import signal
import threading
from functools import cache
from multiprocessing import parent_process
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..case import Array


def prepare() -> None:
    """Prepares the process: it ends with the one that asks, which Ctrl-C is for. What XLA logs is no news."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    threading.Thread(target=_end_with, args=[parent_process()], daemon=True).start()


def _end_with(parent: Any) -> None:
    parent.join()
    os._exit(0)


def compute(program: bytes) -> list[Array] | str:
    """The results of a program, a StableHLO function without arguments as text; or the error."""
    from jaxlib import _jax

    client, devices, options = _client()
    try:
        return [np.asarray(a) for a in client.compile_and_load(program, devices, options).execute([])]
    except _jax.JaxRuntimeError as error:
        return str(error).splitlines()[0]


@cache
def _client() -> tuple[Any, Any, Any]:
    from jaxlib import _jax, xla_client

    client: Any = xla_client.make_cpu_client()
    options = xla_client.CompileOptions()
    options.executable_build_options.debug_options.xla_backend_optimization_level = 0
    return client, _jax.DeviceList(tuple(client.local_devices()[:1])), options

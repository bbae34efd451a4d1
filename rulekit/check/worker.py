"""A process that compiles and runs programs for the CPU, apart, because some ops end the process they run in.

Reads pickled programs (StableHLO as text, a function without arguments) from standard input; answers each on
standard output with a pickled list of arrays, or a string: what went wrong.
"""

from __future__ import annotations

import pickle
import sys
from typing import Any

import numpy as np


def main() -> None:
    """Serves until the input ends."""
    from jaxlib import _jax, xla_client

    client: Any = xla_client.make_cpu_client()
    options = xla_client.CompileOptions()
    options.executable_build_options.debug_options.xla_backend_optimization_level = 0
    devices = _jax.DeviceList(tuple(client.local_devices()[:1]))
    while True:
        try:
            program = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        answer: Any
        try:
            answer = [np.asarray(a) for a in client.compile_and_load(program, devices, options).execute([])]
        except _jax.JaxRuntimeError as error:
            answer = str(error).splitlines()[0]
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()

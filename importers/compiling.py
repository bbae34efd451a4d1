"""A process that compiles a module with XLA for as many devices as it needs, for the dump that this leaves.

    python -m shardlog.importers.compiling FOLDER DEVICES < MODULE

XLA may end the process that it runs in, and the number of CPU devices has to be known before JAX starts.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from ..errors import ShardlogError


def dump(module: bytes, devices: int, folder: Path, options: dict[str, str], where: str) -> None:
    """Compiles a module for CPU devices and leaves XLA's dump in a folder. Raises ShardlogError with XLA's
    message where it does not compile."""
    flags = [f"--{name}={value}" for name, value in options.items()]
    flags.append(f"--xla_force_host_platform_device_count={devices}")
    environment = os.environ | {
        "XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), *flags]),
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    command = [sys.executable, "-m", __name__, str(folder), str(devices)]
    done = subprocess.run(command, input=module, env=environment, capture_output=True, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        message = lines[-1] if lines else f"the compiler ended with {done.returncode}"
        raise ShardlogError(f"XLA does not compile it: {message}", where=where)


def _main() -> None:
    devices = int(sys.argv[2])
    import jax
    import numpy as np
    from jaxlib import _jax, xla_client
    from jaxlib.mlir import ir

    from .source import make_context

    client: Any = jax.devices("cpu")[0].client  # JAX's, with what its linear algebra calls
    options: Any = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = 1, devices
    options.executable_build_options.use_spmd_partitioning = True
    options.executable_build_options.use_shardy_partitioner = True
    chosen = client.devices()[:devices]
    numbers = np.asarray([[device.id for device in chosen]])
    options.device_assignment = xla_client.DeviceAssignment.create(numbers)
    try:
        with make_context():
            module = ir.Module.parse(sys.stdin.buffer.read())
            number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), devices)
            module.operation.attributes["mhlo.num_partitions"] = number
            client.compile_and_load(module, _jax.DeviceList(tuple(chosen)), options)
    except Exception as error:  # XLA's, of many classes
        sys.exit(str(error).partition("\n")[0])


if __name__ == "__main__":
    _main()

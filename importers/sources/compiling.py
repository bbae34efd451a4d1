"""Compiling with XLA; and a process that does it for as many CPU devices as a module needs, for the dump.

    python -m shardlog.importers.sources.compiling DEVICES < MODULE

XLA may end the process that it runs in, and the number of CPU devices has to be known before JAX starts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from ...errors import ShardlogError, not_installed
from ...program.function import location
from ...program.mlir.modules import bytecode_of, ops_in, with_main
from ...program.signature import text_of

if TYPE_CHECKING:
    from jaxlib.mlir import ir

    from .text import Text

_LONGEST = 400  # characters of a message
_SUSPECTED = re.compile(r"Suspected Python Code Location:\s+(\S+:\d+):\d+")
_PLACED = re.compile(r"(?:loc\((?P<where>.+?)\)|(?P<line>\S+:\d+:\d+)): (?:error: )?(?P<rest>.+)")


def refused(message: object, text: Text, module: ir.Module) -> ShardlogError:
    """The error for a program that XLA does not compile: the first line of XLA's message, and the place of
    the op, if the message has one or names the target of a custom call."""
    first, hint = _first_line(message), ""
    if "custom_partitioner" in first:
        hint = "XLA calls a Python function there (custom_partitioning): compile in the process that has it"
    if "Only dense elements" in first:
        hint = "dense_resource<__elided__> is a constant left out in printing: print all elements"
    if match := _PLACED.search(first):
        where, first = text.line((match["where"] or match["line"]).replace('"', "")), match["rest"]
    else:
        about = next((op for op, target in _custom_calls(module) if target in first), None)
        suspected = _SUSPECTED.search(str(message))
        where = suspected[1] if suspected else text.name
        where = text.line(location(about)) if about is not None else where
    return ShardlogError(f"XLA cannot compile it: {first}", where=where, hint=hint)


def _first_line(message: object) -> str:
    """The first line of XLA's message. If a Python function raised an error, that error replaces its
    location."""
    first, *rest = str(message).splitlines() or [""]
    before, raised, _ = first.partition("Traceback (most recent call last)")
    if raised:
        first = before + next((line for line in rest if line[:1].strip()), raised)
    return first[:_LONGEST]


def _custom_calls(module: ir.Module) -> Iterator[tuple[Any, str]]:
    """The custom calls of a module, and their targets."""
    for op in ops_in(module):
        if op.operation.name == "stablehlo.custom_call":
            yield op, text_of(op.attributes["call_target_name"])


def load(
    module: ir.Module, devices: Sequence[Any], callbacks: Sequence[Any] = (), form: str = "sdy-manual"
) -> Any:
    """Compiles a module for devices, with Shardy, or a partitioned one by its ``form``; ``callbacks`` are
    functions that it calls. Raises XLA's errors."""
    from jaxlib import _jax

    module = with_main(module)
    _initialize_lapack(module)
    options = compile_options(devices, form)
    called: dict[str, Any] = {"host_callbacks": [*callbacks]} if callbacks else {}
    return devices[0].client.compile_and_load(module, _jax.DeviceList(tuple(devices)), options, **called)


def _initialize_lapack(module: ir.Module) -> None:
    """Has jaxlib look up LAPACK's functions if a module calls them. JAX does so when it traces such a call;
    a program from a file was traced elsewhere, and its calls would end the process."""
    if any(target.startswith("lapack_") for _, target in _custom_calls(module)):
        import numpy as np
        from jaxlib import lapack

        lapack.prepare_lapack_call("potrf", np.dtype(np.float32))  # type: ignore[no-untyped-call]  # any of them


def compile_options(devices: Sequence[Any], form: str) -> Any:
    """XLA's options for a partitioned module of a ``form``, or for one that Shardy partitions."""
    import numpy as np
    from jaxlib import xla_client

    options: Any = xla_client.CompileOptions()
    numbers = np.asarray([[device.id for device in devices]])
    if form == "replica":
        numbers = numbers.T
    options.num_replicas, options.num_partitions = numbers.shape
    options.executable_build_options.use_spmd_partitioning = form != "replica"
    options.executable_build_options.use_shardy_partitioner = form == "sdy-manual"
    options.device_assignment = xla_client.DeviceAssignment.create(numbers)
    return options


def dump(module: ir.Module, devices: int, options: dict[str, str]) -> str:
    """Compiles a module for CPU devices with XLA's ``options``, which say where its dump goes. Returns XLA's
    message where it does not compile, and else nothing. Raises ShardlogError where JAX is not installed."""
    if find_spec("jax") is None:
        raise not_installed("JAX", "jax")
    flags = [f"--{name}={value}" for name, value in options.items()]
    flags.append(f"--xla_force_host_platform_device_count={devices}")
    environment = os.environ | {
        "XLA_FLAGS": " ".join([os.environ.get("XLA_FLAGS", ""), *flags]),
        "JAX_PLATFORMS": "cpu",
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    command = [sys.executable, "-m", __name__, str(devices)]
    done = subprocess.run(
        command, input=bytecode_of(module), env=environment, capture_output=True, check=False
    )
    if not done.returncode:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines and done.returncode > 0 else f"the compiler crashes on it ({done.returncode})"


def _main() -> None:
    count = int(sys.argv[1])
    import jax
    from jaxlib.mlir import ir

    from .text import make_context

    devices = jax.devices("cpu")[0].client.devices()[
        :count
    ]  # JAX's, with the functions of its linear algebra
    try:
        with make_context():
            module = ir.Module.parse(sys.stdin.buffer.read())
            number = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), count)
            module.operation.attributes["mhlo.num_partitions"] = number
            load(module, devices)
    except Exception as error:  # XLA's, of many classes
        sys.exit(_first_line(error))


if __name__ == "__main__":
    _main()

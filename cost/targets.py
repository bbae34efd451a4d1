"""Targets of ahead-of-time compilation: as many CPUs as needed, TPUs and GPUs that need not be present.

 python -m shardlog.cost.targets TARGET DEVICES FORM < MODULE

compiles a module. It prints its optimised HLO, its memory and XLA's cost as JSON, or the error. It runs as a
process of its own, because compilers write to standard error and may crash.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from math import prod
from pathlib import Path
from typing import Any

from ..errors import ShardlogError, closest
from .machine import machine, names, sizes_of

GPUS = Path(__file__).parent / "gpus"
_NODE = 8  # GPUs
_QUIET = {
    "TF_CPP_MIN_LOG_LEVEL": "3",
    "JAX_PLATFORMS": "cpu",
    "TPU_SKIP_MDS_QUERY": "1",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
_UNKNOWN = re.compile(r"Custom emitter for .* not found|No FFI handler registered")
_ELSEWHERE = (
    "it may be lowered for other devices; from JAX: jit(f).trace(x).lower(lowering_platforms=('{}',))"
)
_MEMORY = ("argument", "output", "alias", "temp", "generated_code")


@dataclass(frozen=True)
class Target:
    """A target to compile for: ``platform`` is "cpu", "tpu" or "cuda", ``name`` a chip such as "v5e" or
    "h100", and ``shape`` the shape of a TPU slice, as in "2x4"."""

    platform: str
    name: str = ""
    shape: str = ""

    def __str__(self) -> str:
        return ":".join(filter(None, (self.platform, self.name, self.shape)))


def read_target(text: str) -> Target:
    """A target from text: cpu, tpu:v5e:2x4, cuda:h100.

    Raises ShardlogError for other texts, and if the target's compiler is not installed.
    """
    platform, _, rest = text.partition(":")
    name, _, shape = rest.partition(":")
    where = f"--target {text}"
    tpus = [name for name in names() if machine(name).torus is not None]
    gpus = sorted(path.stem for path in GPUS.glob("*.txtpb"))
    machines = {"cpu": [""], "tpu": tpus, "cuda": gpus}
    if platform not in machines:
        hint = "expected as in cpu, tpu:v5e:2x4 or cuda:h100"
        raise ShardlogError(f"there is no target {text}", where=where, hint=hint)
    if name not in machines[platform] or (platform != "tpu" and shape):
        written = [f"{platform}:{each}".removesuffix(":") for each in machines[platform]]
        hint = closest(f"{platform}:{name}", written) if name else f"there are: {', '.join(written)}"
        raise ShardlogError(f"there is no target {text}", where=where, hint=hint)
    if platform == "tpu" and not sizes_of(shape):
        hint = f"add the number of chips, as in {platform}:{name}:2x4"
        message = f"{shape} is not the shape of a slice" if shape else "a slice needs a shape"
        raise ShardlogError(message, where=where, hint=hint)
    if not _installed(platform):
        extra = "jax" if platform == "cpu" else platform
        hint = f"pip install 'shardlog[{extra}]'; no device is needed"
        raise ShardlogError(f"the compiler for {platform} is not installed", where=where, hint=hint)
    return Target(platform, name, shape)


def _installed(platform: str) -> bool:
    if find_spec("jax") is None:
        return False
    if platform == "tpu":
        return find_spec("libtpu") is not None
    return platform == "cpu" or bool(_cuda_plugins())


def _cuda_plugins() -> list[str]:
    if find_spec("jax_plugins") is None:
        return []
    return [name for name in ("xla_cuda13", "xla_cuda12") if find_spec(f"jax_plugins.{name}") is not None]


def compile_for(module: bytes, target: Target, devices: int, form: str) -> dict[str, Any]:
    """The compiler's answers about a module, for this many devices: "hlo", "memory" and "cost".

    Raises ShardlogError if the target has too few devices, or if compilation fails.
    """
    if target.platform == "tpu" and prod(map(int, target.shape.split("x"))) < devices:
        hint = f"the mesh of the program has {devices}"
        raise ShardlogError(f"{target} has too few chips", where=f"--target {target}", hint=hint)
    environment = os.environ | _QUIET
    if target.platform == "cpu":
        count = f"--xla_force_host_platform_device_count={devices}"
        environment["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {count}"
    command = [sys.executable, "-m", __name__, str(target), str(devices), form]
    done = subprocess.run(command, input=module, env=environment, capture_output=True, check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        message = lines[-1] if lines and done.returncode > 0 else f"the compiler ends ({done.returncode})"
        raise ShardlogError(
            f"XLA cannot compile it: {message[:400]}",
            where=f"--target {target}",
            hint=_ELSEWHERE.format(target.platform) if _UNKNOWN.search(message) else "",
        )
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def _devices(target: Target, count: int) -> Sequence[Any]:
    """Devices of a target that can be compiled for."""
    import jax
    from jax.experimental import topologies

    if target.platform == "cpu":
        return jax.devices("cpu")
    if target.platform == "tpu":
        return topologies.get_topology_desc(f"{target.name}:{target.shape}", "tpu").devices
    nodes = -(-count // _NODE)
    options = {
        "target_config": (GPUS / f"{target.name}.txtpb").read_text(encoding="utf-8"),
        "topology": f"1x{nodes}x{min(count, _NODE)}",
    }
    return topologies.get_topology_desc("", "cuda", **options).devices


def _compiled(target: Target, count: int, form: str) -> dict[str, Any]:
    from jaxlib import _jax
    from jaxlib.mlir import ir

    from ..importers.sources.compiling import compile_options
    from ..importers.sources.text import make_context

    devices = tuple(_devices(target, count)[:count])
    with make_context():
        module = ir.Module.parse(sys.stdin.buffer.read())
        given = _jax.DeviceList(devices), compile_options(devices, form)
        client: Any = devices[0].client
        # A program compiled for a CPU is loaded at once.
        make = client.compile_and_load if target.platform == "cpu" else client.compile
        executable: Any = make(module, *given)
    memory = executable.get_compiled_memory_stats()
    try:
        cost = dict(executable.cost_analysis())
    except Exception:  # a plugin may lack one
        cost = {}
    return {
        "hlo": "\n".join(part.to_string() for part in executable.hlo_modules()),
        "memory": {name: getattr(memory, f"{name}_size_in_bytes") for name in _MEMORY}
        | {"peak": memory.peak_memory_in_bytes},
        "cost": {name: cost[name] for name in ("flops", "bytes accessed") if name in cost},
    }


def _main() -> None:
    target, count, form = sys.argv[1:]
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the output of compilers is not an answer
    try:
        answers = _compiled(Target(*target.split(":")), int(count), form)
    except Exception as error:  # XLA's errors have many classes
        sys.exit(str(error).partition("\n")[0])
    with out:
        json.dump(answers, out)


if __name__ == "__main__":
    _main()

"""What the lines of JAX and XLA that tests run with do not all have, or call otherwise."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax

# Small programs compile in a third of the time by the older emitters, which newer XLAs lack, and as one LLVM
# module.
_QUICK: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}


@cache
def quick() -> dict[str, Any]:
    """Options with which this XLA compiles small programs for CPUs quickly."""
    nothing = jax.jit(lambda: ()).lower()

    def known(name: str) -> bool:
        try:
            nothing.compile(compiler_options={name: _QUICK[name]})
        except jax.errors.JaxRuntimeError as error:
            assert "No such compile option" in str(error)
            return False
        return True

    return {name: value for name, value in _QUICK.items() if known(name)}


def on_host(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that JAX has computed on the host, with its results on the device."""
    from jax.experimental import compute_on

    host: Any = getattr(compute_on, "compute_on2", compute_on.compute_on)
    computed: Callable[..., Any] = host(
        function, compute_type="device_host", out_memory_spaces=jax.memory.Space.Device
    )
    return computed

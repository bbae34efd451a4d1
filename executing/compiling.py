"""The module that is compiled for a run, and its devices. We compile it, or JAX does in place of the module
that it lowered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import ShardlogError, from_extra
from ..exporters.bind import bind
from ..exporters.plain import tell_nobody
from ..program.mlir.modules import with_main
from ..runs.jax import device_count, device_shardings, main_mesh
from .inspecting import tell

if TYPE_CHECKING:
    from jax import Device
    from jaxlib.mlir import ir

    from ..partition.device_program import DeviceProgram
    from ..runs.result import Result
    from .dispatch import ChosenModule


def chosen(
    result: Result,
    devices: Sequence[Device] | None,
    lowered_for: tuple[Device, ...],
    program: DeviceProgram | None,
) -> ChosenModule:
    """The module that JAX compiles, as ``compiled`` says, in place of the module that it lowered for the
    devices ``lowered_for``."""
    from .dispatch import ChosenModule

    whole = not main_mesh(result.program.shardings.meshes.meshes).axes
    devices = (
        lowered_for
        if whole and devices is None and lowered_for
        else devices_for(result, devices, lowered_for)
    )
    arguments, _ = device_shardings(result, devices, program)
    module = with_main(module_for(result, devices, program))
    return ChosenModule(module, tuple(devices), tuple(arguments))


def devices_for(
    result: Result, devices: Sequence[Device] | None = None, lowered_for: Sequence[Device] = ()
) -> Sequence[Device]:
    """The devices of a run: the requested ones, or else those that it was ``lowered_for``, those of its mesh
    (if that is JAX's), or JAX's first ones. There must be as many as the mesh has. Raises ShardlogError if no
    choice fits."""
    with from_extra("jax", "JAX"):
        import jax
        from jax.sharding import Mesh

    count = device_count(main_mesh(result.program.shardings.meshes.meshes))
    if devices is None:
        concrete = next((mesh for mesh in result.source.interface.meshes if isinstance(mesh, Mesh)), None)
        meant = concrete.devices.flat if concrete is not None else ()
        each = (list(lowered_for), list(meant), jax.devices()[:count])
        devices = next((some for some in each if len(some) == count), each[-1])
    if len(devices) != count:
        hint = "give devices=, or start JAX with more: XLA_FLAGS=--xla_force_host_platform_device_count=8"
        raise ShardlogError(f"{len(devices)} devices for a mesh of {count}", where="compile", hint=hint)
    return devices


def module_for(result: Result, devices: Sequence[Device], program: DeviceProgram | None) -> ir.Module:
    """The module that XLA compiles for a run on these devices: with binding shardings, or partitioned."""
    if program is None:
        module = bind(result.module, result.book.traits)
        if not result.source.interface.alive:
            tell_nobody(module, result.book.traits)
        return module
    tell(result, program)
    return program.module_for(devices[0].platform)

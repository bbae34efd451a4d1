"""Views of a program: as it was lowered, after a round trip through HLO, and as XLA gives it to Shardy."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...outputs import temporary_folder
from ...program.function import location
from ...program.mlir.modules import (
    boundary_attributes,
    bytecode_of,
    main_function,
    named_in,
    operations_in,
    symbols,
    with_attributes,
)
from ...program.shardings import read_mesh
from .compiling import dump, refused
from .dumps import FLAGS, read_dump
from .source import read_program
from .text import Text, copied, parse_module
from .vetting import round_trip

_INSTALL = {
    "tpu": "pip install 'jax[tpu]', and lower it for the devices that it shall run on, as in "
    "jax.experimental.topologies.get_topology_desc('v5e:4x4', 'tpu').devices",
    "cuda": "pip install 'jax[cuda]', and lower it for the devices that it shall run on",
}


def view_of(source: object, view: str, module: str = "", entry: str = "") -> tuple[Text, ir.Module]:
    """A program as XLA sees it, and its module: "lowered", as given; "roundtrip", after a round trip through
    HLO, where CHLO is lowered and loops are simplified; "compiled", as a compilation gives it to Shardy: for
    a ``jax.stages.Lowered`` on its own platform, for a module on as many CPU devices as it needs.

    ``module`` names a module in an XLA dump, ``entry`` the function that runs, if not main. Raises
    ShardlogError for a program that cannot be read or compiled.
    """
    text, given = read_program(source, module)
    already = isinstance(source, Text) and view != "lowered"  # a view already
    if entry and not already:
        text = replace(text, entry=entry, written=False)
    original = parse_module(text) if given is None else copied(given, text)
    if view == "lowered" or already:
        return text, original
    _drop_declared(original)
    if text.interface.arguments is None:  # JAX names its ops
        _name_ops(original)
    seen = _compiled(source, original, text) if view == "compiled" else None
    if seen is None:  # also where XLA has nothing to ask Shardy: the program is on one device
        seen = replace(text, data=round_trip(original, text), written=False, entry="")
    return _with_names(seen, original)


def _drop_declared(module: ir.Module) -> None:
    """Erases the functions without a body, on which XLA ends the process. Raises ShardlogError for one that
    is called."""
    functions = symbols(module, "func.func")
    declared = {name: op for name, op in functions.items() if not len(op.regions[0].blocks)}
    called = set[str]().union(*map(named_in, functions.values())) if declared else set()
    for name, op in declared.items():
        if name in called:
            hint = "define the function, or use stablehlo.custom_call"
            raise ShardlogError(f"@{name} is called, but has no body", where=location(op), hint=hint)
        op.erase()


def _compiled(source: Any, module: ir.Module, text: Text) -> Text | None:
    """The program that a compile gives to Shardy; None where it gives none."""
    with temporary_folder() as folder:
        options = FLAGS | {"xla_dump_to": str(folder)}
        if _has_devices(source, text.name):
            try:
                source.compile(compiler_options=options)
            except Exception as error:  # XLA's, of many classes
                raise refused(error, text, module) from None
        elif message := dump(module, _devices(module), options):
            raise refused(message, text, module)
        if not (folder / "shardy").exists():
            return None
        return replace(read_dump(folder, own=True), name=text.name, interface=text.interface)


def _has_devices(source: Any, where: str) -> bool:
    """Whether a program is a ``jax.stages.Lowered`` for devices, and not for an abstract mesh.

    Raises ShardlogError where it is lowered for a platform that its devices are not of.
    """
    if not (hasattr(source, "compile") and hasattr(source, "compiler_ir")):
        return False
    lowering = source._lowering
    devices, platforms = getattr(lowering, "_device_list", None), getattr(lowering, "_platforms", ())
    platform = next(iter(devices)).platform if devices else "cpu"
    accepted = {"gpu": ("gpu", "cuda", "rocm")}.get(platform, (platform,))
    if platforms and not set(platforms) & set(accepted):
        name = platforms[0]
        message = (
            f"it is lowered for {name}, but its devices are {platform}" if devices else f"no {name} devices"
        )
        raise ShardlogError(message, where=where, hint=_INSTALL.get(name, f"lower it for devices of {name}"))
    return bool(devices)


def _devices(module: ir.Module) -> int:
    """The number of devices in the meshes of a module."""
    meshes = symbols(module, "sdy.mesh").items()
    read_meshes = (read_mesh(name, op.attributes["mesh"]) for name, op in meshes)
    return max((prod(size for _, size in mesh.axes) for mesh in read_meshes), default=1)


def _name_ops(module: ir.Module) -> None:
    """Gives the ops of a module names where they have only a line: HLO has no lines without a name."""
    with module.context:
        for op in operations_in(module):
            if isinstance(op.location, ir.FileLineColLoc):
                op.location = ir.Location.name("op", op.location)


def _with_names(text: Text, original: ir.Module) -> tuple[Text, ir.Module]:
    """A view, and its module, with the names of the original's arguments and results, which HLO only
    numbers."""
    with original.context:
        seen = ir.Module.parse(text.data)
        functions, theirs = symbols(seen, "func.func"), symbols(original, "func.func")
        main, other = functions[main_function(functions)], theirs[main_function(theirs)]
        arguments = list(main.arguments), list(other.arguments)
        if len(arguments[0]) == len(arguments[1]):
            for mine, given in zip(*arguments, strict=True):
                mine.set_location(given.location)
        for label in ("arg_attrs", "res_attrs"):
            entries = boundary_attributes(main, label), boundary_attributes(other, label)
            if len(entries[0]) == len(entries[1]):
                main.attributes[label] = ir.ArrayAttr.get(list(map(_with_jax, *entries)))
        return replace(text, data=bytecode_of(seen)), seen


def _with_jax(entry: Any, original: Any) -> ir.DictAttr:
    """The attributes of an argument or result, together with the original's from JAX."""
    return with_attributes(entry, {a.name: a.attr for a in original if a.name.startswith("jax.")})

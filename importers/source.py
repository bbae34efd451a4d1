"""Reading a program: MLIR text, MLIR bytecode, standard input, or a lowered JAX function."""

from __future__ import annotations

import io
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from ..errors import ShardlogError, closest

_BYTECODE = b"ML\xefR"
_PORTABLE = b"StableHLO_v"  # producer of a StableHLO portable artifact, in the first bytes of the bytecode


def make_context() -> ir.Context:
    """An MLIR context with every dialect that jaxlib has; unregistered ones are allowed."""
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    sdy.register_dialect(context)
    mhlo.register_mhlo_dialect(context)
    chlo.register_dialect(context)
    stablehlo.register_dialect(context)
    context.allow_unregistered_dialects = True
    return context


@dataclass(frozen=True)
class Text:
    """A program as it was given: MLIR text or bytecode, and the name that its locations bear."""

    data: bytes
    name: str


def read_source(source: Any) -> Text:
    """What ``source`` holds.

    ``source`` is a path (``-``: standard input), MLIR text, MLIR bytecode, an ``ir.Module`` or a ``jax.stages.Lowered``.
    Raises ShardlogError where it cannot be read.
    """
    if isinstance(source, str):
        if source == "-":
            return Text(sys.stdin.buffer.read(), "<stdin>")
        if "\n" in source or "{" in source:
            return Text(source.encode(), "<text>")
        source = Path(source)
    if isinstance(source, Path):
        try:
            return Text(source.read_bytes(), str(source))
        except OSError as error:
            raise ShardlogError(f"cannot read the module: {error.strerror}", where=str(source)) from error
    if isinstance(source, bytes):
        return Text(source, "<bytes>")
    if hasattr(source, "compiler_ir"):
        source = source.compiler_ir("stablehlo")
    if isinstance(source, ir.Module):
        buffer = io.BytesIO()
        source.operation.write_bytecode(buffer)
        return Text(buffer.getvalue(), "<module>")
    raise ShardlogError(
        f"cannot read a program from a {type(source).__name__}",
        hint="give a path, MLIR text or bytecode, an ir.Module or a jax.stages.Lowered",
    )


def parse_module(text: Text) -> ir.Module:
    """The module that a program holds. Raises ShardlogError where it does not parse or verify."""
    data, name = text.data, text.name
    if not data.strip():
        raise ShardlogError("the module is empty", where=name, hint="expected StableHLO as MLIR text or bytecode")
    context = make_context()
    try:
        with context:
            if data.startswith(_BYTECODE) and _PORTABLE in data[:64]:
                from jaxlib.mlir.dialects import stablehlo

                return stablehlo.deserialize_portable_artifact(context, data)
            if not data.startswith(_BYTECODE):
                try:
                    data.decode()
                except UnicodeDecodeError as error:
                    raise ShardlogError(
                        "neither MLIR text nor MLIR bytecode", where=name, hint="expected a .mlir or .mlirbc file"
                    ) from error
            return ir.Module.parse(data)
    except ir.MLIRError as error:
        raise _translate(error, name) from None


def _translate(error: ir.MLIRError, name: str) -> ShardlogError:
    """MLIR's diagnostics as one message: the first error, with the notes that belong to it."""
    diagnostics = error.error_diagnostics
    if not diagnostics:
        return ShardlogError(str(error).splitlines()[0], where=name, hint="the module does not parse")
    first = diagnostics[0]
    where = str(first.location).removeprefix("loc(").removesuffix(")").replace('"', "")
    where = where.replace("<stdin>", name).replace("-:", f"{name}:", 1) if where.startswith("-:") else where
    message = "; ".join([first.message, *(n.message for n in first.notes if not n.message.startswith("see current"))])
    return ShardlogError(message, where=where if where != "unknown" else name, hint=_hint(message))


def _hint(message: str) -> str:
    """What to do about the errors that users meet most."""
    for part, hint in (
        ("unknown mesh", "declare the mesh with `sdy.mesh @name = <[\"axis\"=size]>`"),
        ("unknown axis name", "use an axis of the mesh"),
        ("duplicate axis", "an axis may shard a tensor only once"),
        ("overlap", "an axis may shard a tensor only once, sub-axes included"),
        ("rank", "give one entry in [...] per dimension of the tensor"),
    ):
        if part in message:
            return hint
    return "fix the module; it must parse and verify as MLIR"


def main_function(functions: dict[str, Any]) -> str:
    """The entry point: the only function, or ``main``."""
    if len(functions) == 1:
        return next(iter(functions))
    if "main" in functions:
        return "main"
    if not functions:
        raise ShardlogError("the module has no function", hint="expected a func.func")
    raise ShardlogError("the module has several functions and none is called main", hint=closest("main", [*functions]))

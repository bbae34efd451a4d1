"""Reading a program: MLIR text, MLIR bytecode, standard input, a dump of XLA, or a lowered JAX function."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from jaxlib.mlir import ir

from ...errors import ShardlogError
from .dumps import beside, read_dump
from .files import LARGEST_STREAM, given, held, read_file, read_stream
from .jax import read_jax
from .text import Text


def read_source(source: object, module: str = "") -> Text:
    """The program of ``source``, which ``read_program`` describes."""
    return read_program(source, module)[0]


def read_program(source: object, module: str = "") -> tuple[Text, ir.Module | None]:
    """The program of ``source``, and its module if the caller has it in memory.

    ``source`` is a path (``-``: standard input; a folder: an XLA dump with a ``module`` of this name), MLIR
    text or bytecode, what a ``jax.export.Exported`` serializes, HLO, an ``ir.Module``, a
    ``jax.stages.Lowered`` or a ``jax.export.Exported``. Raises ShardlogError if it cannot be read.
    """
    if isinstance(source, ir.Module):
        return held(source), source
    if isinstance(source, (str, Path, bytes, Text)):
        return _outside(source, module), None
    if (from_jax := read_jax(source)) is not None:
        program, interface = from_jax
        if isinstance(program, bytes):
            return replace(given(program, "<module>"), interface=interface), None
        return replace(held(program), interface=interface), program
    raise ShardlogError(
        f"cannot read a program from a {type(source).__name__}",
        hint="give a path, MLIR text or bytecode, an ir.Module, a jax.stages.Lowered or Traced, a "
        "jax.export.Exported, or a function with arguments for it",
    )


def _outside(source: str | Path | bytes | Text, module: str) -> Text:
    if isinstance(source, str):
        if source == "-":
            return read_stream(lambda: nullcontext(sys.stdin.buffer), "<stdin>", LARGEST_STREAM)
        if "\n" in source or "{" in source:
            return given(source.encode(errors="surrogatepass"), "<text>")
        source = Path(source)
    if isinstance(source, Path):
        if source.is_dir():
            return read_dump(source, module)
        if module:
            hint = "only an XLA dump, a folder, has several modules; leave the option out"
            raise ShardlogError(
                f"{source} is a file, which has one module", where=f"--module {module}", hint=hint
            )
        return beside(read_file(source), source)
    if isinstance(source, bytes):
        return given(source, "<bytes>")
    return source

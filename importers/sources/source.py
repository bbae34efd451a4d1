"""Reading a program: MLIR text, MLIR bytecode, standard input, a dump of XLA, or a lowered JAX function."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

from ...errors import ShardlogError
from .dumps import beside, read_dump
from .files import LARGEST_STREAM, given, held, read_file, read_stream
from .jax import read_jax
from .text import Text


def read_source(source: Any, module: str = "") -> Text:
    """The program of ``source``.

    ``source`` is a path (``-``: standard input; a folder: an XLA dump, of which ``module`` is one), MLIR text
    or bytecode, an ``ir.Module``, a ``jax.stages.Lowered`` or a ``jax.export.Exported``. Raises ShardlogError
    where it cannot be read.
    """
    if isinstance(source, str):
        if source == "-":
            return read_stream(lambda: nullcontext(sys.stdin.buffer), "<stdin>", LARGEST_STREAM)
        if "\n" in source or "{" in source:
            return given(source.encode(errors="surrogatepass"), "<text>")
        source = Path(source)
    if isinstance(source, Path):
        return read_dump(source, module) if source.is_dir() else beside(read_file(source), source)
    if isinstance(source, bytes):
        return given(source, "<bytes>")
    if isinstance(source, Text):
        return source
    if isinstance(source, ir.Module):
        return held(source)
    if (found := read_jax(source)) is not None:
        program, interface = found
        text = given(program, "<module>") if isinstance(program, bytes) else held(program)
        return replace(text, interface=interface)
    raise ShardlogError(
        f"cannot read a program from a {type(source).__name__}",
        hint="give a path, MLIR text or bytecode, an ir.Module, a jax.stages.Lowered or Traced, a "
        "jax.export.Exported, or a function with arguments for it",
    )

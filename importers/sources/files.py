"""Checks of programs before MLIR reads them: files, streams, objects of the caller."""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ..listing import bytecode
from .exported import bytecode_in, bytecode_place
from .text import BYTECODE, Text
from .vetting import module_of_hlo, vetted, with_names

LARGEST_STREAM = 4 << 30  # bytes of a pipe or a device
_HLO = b"HloModule "
_SCHEDULED = b"is_scheduled=true"  # in the first line of HLO that XLA has optimized
_FIRST = 1 << 16  # bytes that identify the format


def read_file(path: Path) -> Text:
    """The program in a file. Raises ShardlogError where it cannot be read."""
    # Names of files are bytes. Python's stand-ins for bytes that are not UTF-8 are not text elsewhere.
    name = os.fsencode(path).decode("utf-8", "backslashreplace")
    return read_stream(lambda: path.open("rb"), name, -1 if path.is_file() else LARGEST_STREAM)


def read_stream(opened: Callable[[], AbstractContextManager[IO[bytes]]], name: str, most: int = -1) -> Text:
    """The text of a stream, which may be endless. Raises ShardlogError for ``most`` bytes or more."""
    try:
        with opened() as stream:
            first = stream.read(_FIRST)
            if bytecode_place(first) is None:
                _check_kind(first, name)
            data = first + stream.read(most)
    except OSError as error:
        raise ShardlogError(f"cannot read the module: {error.strerror}", where=name) from error
    if 0 <= most < len(data):
        hint = "save it to a file, if it ends"
        raise ShardlogError(f"more than {most >> 30} GiB of input", where=name, hint=hint)
    return given(data, name)


def given(data: bytes, name: str) -> Text:
    """A program that comes from outside."""
    if (hlo := data.lstrip()).startswith(_HLO):
        if _SCHEDULED in hlo.partition(b"\n")[0]:
            hint = (
                "give the text from before: lowered.as_text('hlo'), or *.before_optimizations.txt of a dump"
            )
            raise ShardlogError("this HLO is optimized: it is the program of a device", where=name, hint=hint)
        return Text(module_of_hlo(data, name), name)
    data = bytecode_in(data) or data
    _check_kind(data, name)
    return Text(vetted(data, name), name)


def held(module: ir.Module) -> Text:
    """A program that the caller has in memory."""
    return Text(with_names(bytecode(module), "<module>"), "<module>", written=True)


def _check_kind(data: bytes, name: str) -> None:
    """Raises ShardlogError for data of another kind, which its first bytes show."""
    if not data.strip():
        hint = "expected StableHLO as MLIR text or bytecode"
        raise ShardlogError("the module is empty", where=name, hint=hint)
    if data.startswith(b"SQLi"):  # a part of SQLite's first bytes, since a file may have been cut
        hint = "give the module instead; why, diff, report, query and others read saved runs"
        raise ShardlogError("this is a saved run, not a module", where=name, hint=hint)
    if data.startswith(BYTECODE):
        return
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF8)):
        hint = "MLIR reads UTF-8 without a byte order mark; Windows PowerShell writes others for `>`"
        raise ShardlogError("this text starts with a byte order mark", where=name, hint=hint)
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data)  # the last character may be cut
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        hint = "expected a .mlir or .mlirbc file"
        if bytecode_place(data) is not None:
            hint = "it begins as a file of jax.export does: has its end been cut?"
        raise ShardlogError("this is neither MLIR text nor MLIR bytecode", where=name, hint=hint)

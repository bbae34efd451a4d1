"""Reading a program: MLIR text, MLIR bytecode, standard input, or a lowered JAX function."""

from __future__ import annotations

import codecs
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...program.mlir.diagnostics import explain
from ...program.mlir.modules import bytecode_of
from ...program.mlir.places import source_location
from .jax import Interface, read_jax
from .vetting import BYTECODE, DAMAGED, vetted, with_names

_FIRST = 1 << 16  # so many bytes show what it is
_LARGEST_STREAM = 4 << 30  # bytes of a pipe or a device
_PORTABLE = b"StableHLO_v"  # producer of a StableHLO portable artifact, in the first bytes of the bytecode


def make_context() -> ir.Context:
    """An MLIR context with every dialect that jaxlib has; unregistered ones are allowed."""
    # Without the classes of their ops, which MLIR imports where a module has one.
    from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _mlirHlo, _sdy, _stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    _sdy.register_dialect(context)
    _mlirHlo.register_mhlo_dialect(context)
    _chlo.register_dialect(context)
    _stablehlo.register_dialect(context)
    context.allow_unregistered_dialects = True
    context.enable_multithreading(False)  # locks cost more than threads bring: most ops are in one function
    return context


@dataclass(frozen=True)
class Text:
    """A program as it was given: MLIR text or bytecode, the name in its locations, and its interface to
    JAX. ``after`` is the module that XLA made of it, where an XLA dump says so."""

    data: bytes
    name: str
    interface: Interface = field(default_factory=Interface)
    after: bytes = b""

    def line(self, location: str) -> str:
        """The place that a location names: of a chain of calls the innermost one, as ``file:line``."""
        nested = "(" in location or location.startswith("fused[")
        return self.place((nested and source_location(location)) or location)

    @contextmanager
    def places(self) -> Iterator[None]:
        """Errors of what is done to the program name its places as ``line`` does, or its name."""
        try:
            yield
        except ShardlogError as error:
            where = self.line(error.where) or self.name
            raise ShardlogError(error.message, where=where, hint=error.hint) from None

    def place(self, location: str) -> str:
        """A location as MLIR has it, with the name of the program where MLIR has none."""
        return f"{self.name}:{location[2:]}" if location.startswith("-:") else location


def read_source(source: Any, module: str = "") -> Text:
    """The program of ``source``.

    ``source`` is a path (``-``: standard input; a folder: an XLA dump, of which ``module`` is one), MLIR text
    or bytecode, an ``ir.Module``, a ``jax.stages.Lowered`` or a ``jax.export.Exported``. Raises ShardlogError
    where it cannot be read.
    """
    if isinstance(source, str):
        if source == "-":
            return _read(lambda: nullcontext(sys.stdin.buffer), "<stdin>", _LARGEST_STREAM)
        if "\n" in source or "{" in source:
            return _given(source.encode(errors="surrogatepass"), "<text>")
        source = Path(source)
    if isinstance(source, Path):
        from .dumps import beside, read_dump

        return read_dump(source, module) if source.is_dir() else beside(read_file(source), source)
    if isinstance(source, bytes):
        return _given(source, "<bytes>")
    if isinstance(source, Text):
        return source
    if isinstance(source, ir.Module):
        return _held(source)
    if (found := read_jax(source)) is not None:
        program, interface = found
        text = _given(program, "<module>") if isinstance(program, bytes) else _held(program)
        return replace(text, interface=interface)
    raise ShardlogError(
        f"cannot read a program from a {type(source).__name__}",
        hint="give a path, MLIR text or bytecode, an ir.Module, a jax.stages.Lowered or Traced, a "
        "jax.export.Exported, or a function with arguments for it",
    )


def read_file(path: Path) -> Text:
    """The program in a file. Raises ShardlogError where it cannot be read."""
    # Names of files are bytes; what stands for those that are not UTF-8 in Python is no text elsewhere.
    name = os.fsencode(path).decode("utf-8", "backslashreplace")
    return _read(lambda: path.open("rb"), name, -1 if path.is_file() else _LARGEST_STREAM)


def _read(opened: Callable[[], AbstractContextManager[IO[bytes]]], name: str, most: int = -1) -> Text:
    """The text of a stream, which may be endless. Raises ShardlogError for ``most`` bytes or more."""
    try:
        with opened() as stream:
            first = stream.read(_FIRST)
            _check_kind(first, name)
            data = first + stream.read(most)
    except OSError as error:
        raise ShardlogError(f"cannot read the module: {error.strerror}", where=name) from error
    if 0 <= most < len(data):
        hint = "save it as a file, if there is an end"
        raise ShardlogError(f"more than {most >> 30} GiB of it", where=name, hint=hint)
    return _given(data, name)


def _given(data: bytes, name: str) -> Text:
    """A program that comes from outside."""
    _check_kind(data, name)
    return Text(vetted(data, name), name)


def _held(module: ir.Module) -> Text:
    """A program that the caller has in memory."""
    return Text(with_names(bytecode_of(module), "<module>"), "<module>")


def _check_kind(data: bytes, name: str) -> None:
    """Raises ShardlogError for data of another kind, which its first bytes show."""
    if not data.strip():
        hint = "expected StableHLO as MLIR text or bytecode"
        raise ShardlogError("the module is empty", where=name, hint=hint)
    if data.startswith(b"SQLite format 3"):
        hint = "run takes modules; why, diff, report, query and others take saved runs"
        raise ShardlogError("a saved run, not a module", where=name, hint=hint)
    if data.startswith(BYTECODE):
        return
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(data)  # the last character may be cut
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        hint = "expected a .mlir or .mlirbc file"
        raise ShardlogError("neither MLIR text nor MLIR bytecode", where=name, hint=hint)


def parse_module(text: Text) -> ir.Module:
    """The module that a program holds. Raises ShardlogError where it does not parse or verify."""
    context = make_context()
    try:
        with context:
            if text.data.startswith(BYTECODE) and _PORTABLE in text.data[:64]:
                from jaxlib.mlir.dialects import stablehlo

                return stablehlo.deserialize_portable_artifact(context, text.data)
            return ir.Module.parse(text.data)
    except ValueError as error:  # of a portable artifact; why is not said
        raise ShardlogError(str(error), where=text.name, hint=DAMAGED) from None
    except ir.MLIRError as error:
        raise _translate(error, text) from None
    except MemoryError:
        hint = f"it has {len(text.data):,} bytes; what they say may be larger by far"
        raise ShardlogError("there is not enough memory for the module", where=text.name, hint=hint) from None


def _translate(error: ir.MLIRError, text: Text) -> ShardlogError:
    if text.data.startswith(BYTECODE):
        message, hint = explain(error, "")
        hint = DAMAGED
    elif text.name.endswith(".py"):
        hint = "lower it first: jax.jit(f).lower(*arguments).as_text() is the text of a module"
        return ShardlogError("this is Python", where=text.name, hint=hint)
    else:
        message, hint = explain(error, text.data.decode(errors="replace"))
    diagnostics = error.error_diagnostics
    location = str(diagnostics[0].location) if diagnostics else "loc(unknown)"
    where = location.removeprefix("loc(").removesuffix(")").replace('"', "")
    return ShardlogError(message, where=text.name if where == "unknown" else text.place(where), hint=hint)

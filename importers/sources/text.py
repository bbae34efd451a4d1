"""A program as it was given, and the module that MLIR reads from it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from sys import intern

from jaxlib.mlir import ir

from ...errors import ShardlogError
from ...program.mlir.diagnostics import explain
from ...program.mlir.modules import copy_of, make_main
from ...program.mlir.origins import Frame, origin, written
from ...program.mlir.types import Operation
from ..dialects.marks import may_have_shardings, may_have_statements
from .jax import Interface
from .nesting import open_module

BYTECODE = b"ML\xefR"
DAMAGED = "the bytecode is damaged, or newer than this jaxlib can read"
_DIALECTS = ("func", "sdy", "stablehlo", "chlo", "mhlo")  # of programs
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
    """A program as given: MLIR text or bytecode, the name in its locations, and its interface to JAX.
    ``after`` is the module that XLA made of it, if an XLA dump has it. ``written``: MLIR wrote the bytecode
    in this process. ``entry``: the function that becomes ``main``; empty: no change."""

    data: bytes
    name: str
    interface: Interface = field(default_factory=Interface)
    after: bytes = b""
    written: bool = False
    entry: str = ""

    def line(self, location: str) -> str:
        """The place that a location names: of a chain of calls the innermost one, as ``file:line``."""
        return self.place(origin(location).line or location)

    @contextmanager
    def places(self) -> Iterator[None]:
        """Errors in this context name places like ``line`` does, or the program. MLIR has accepted the
        program before, so its errors mean that shardlog made it invalid."""
        try:
            yield
        except ir.MLIRError as error:
            message, _ = explain(error, "")
            hint = "this is a bug: shardlog made an invalid program of a valid one; please report it"
            raise ShardlogError(message, where=self.line(_place(error)) or self.name, hint=hint) from None
        except ShardlogError as error:
            where = self.line(error.where) or self.name
            raise error.at(where) from None

    def location(self, op: Operation) -> str:
        """The location of an op as MLIR writes it, with the name of the program where MLIR has none."""
        return self.text_of(op.location)

    def text_of(self, location: ir.Location | ir.Attribute) -> str:
        """The same of a location, or of its attribute."""
        return written(location).replace('"-":', self._quoted)

    def key_of(self, location: ir.Location) -> Frame | ir.Attribute:
        """What tells a location from others: the frame that it is, if that can be read without its text,
        which takes longer; or else its attribute."""
        if self._in_ascii and isinstance(location, ir.FileLineColLoc):
            line, column = location.start_line, location.start_col
            if (location.end_line, location.end_col) == (line, column):
                file = location.filename
                if file not in self._files:
                    self._files[file] = self._shown(file)
                if shown := self._files[file]:
                    return Frame("", shown, line, column)
        return location.attr

    @cached_property
    def _in_ascii(self) -> bool:
        """Whether all names in it are; MLIR's bindings end the process for names that are not in UTF-8."""
        return not self.data.startswith(BYTECODE) and self.data.isascii() and b"\\" not in self.data

    @cached_property
    def _files(self) -> dict[str, str]:
        return {}

    def _shown(self, file: str) -> str:
        """The name of a file as texts of locations have it; empty where these escape some of it."""
        shown = self.name if file == "-" else file if file.isprintable() else ""
        return "" if '"' in shown or "\\" in shown else intern(shown)

    @cached_property
    def _quoted(self) -> str:
        """The name as locations have it."""
        name = self.name.replace("\\", "\\\\").replace('"', "\\22")
        return f'"{name}":'

    def place(self, location: str) -> str:
        """A location as MLIR has it, with the name of the program where MLIR has none."""
        return f"{self.name}:{location[2:]}" if location.startswith("-:") else location


def parse_module(text: Text) -> ir.Module:
    """The module that a program holds. Raises ShardlogError where it does not parse or verify, and where it
    has no function that is its entry."""
    return _entered(_parsed(text), text)


def _entered(module: ir.Module, text: Text) -> ir.Module:
    if text.entry:
        with module.context, ir.Location.unknown():
            open_module(module)
            make_main(module, text.entry)
    return module


def _parsed(text: Text) -> ir.Module:
    context = make_context()
    try:
        with context:
            if text.data.startswith(BYTECODE) and _PORTABLE in text.data[:64]:
                from jaxlib.mlir.dialects import stablehlo

                return stablehlo.deserialize_portable_artifact(context, text.data)
            return _of_text(text)
    except ValueError as error:  # of a portable artifact; why is not said
        raise ShardlogError(str(error), where=text.name, hint=DAMAGED) from None
    except ir.MLIRError as error:
        raise _translate(error, text) from None
    except MemoryError:
        hint = f"it has {len(text.data):,} bytes, and takes far more once it is parsed"
        raise ShardlogError("there is not enough memory for the module", where=text.name, hint=hint) from None


def _of_text(text: Text) -> ir.Module:
    """The module of a text or of bytecode; of the sharding dialects of MLIR in the normal form of those."""
    if text.data.startswith(BYTECODE):
        return ir.Module.parse(text.data)
    if not may_have_statements(text.data):
        return ir.Module.parse(text.data)
    from ..dialects.normal import to_normal_form
    from ..dialects.statements import in_generic_form

    try:
        try:
            module = ir.Module.parse(in_generic_form(text.data, one_each=True))
        except ir.MLIRError:  # of the text, or because something else uses a sharding that was left out
            module = ir.Module.parse(in_generic_form(text.data))
        if may_have_shardings(text.data):
            to_normal_form(module, text.data, text.place)
    except ShardlogError as error:
        where = text.place(error.where) or text.name
        raise ShardlogError(error.message, where=where, hint=error.hint) from None
    return module


def copied(module: ir.Module, text: Text) -> ir.Module:
    """A copy of the caller's module, whose bytecode is ``text``; in the same context, if that knows the
    dialects of programs. Raises ShardlogError if the module does not verify."""
    with suppress(ir.MLIRError, ValueError):  # an unknown dialect; or reading the text says why
        if all(map(module.context.get_dialect_descriptor, _DIALECTS)) and module.operation.verify():
            return _entered(copy_of(module), text)
    return parse_module(text)


def _translate(error: ir.MLIRError, text: Text) -> ShardlogError:
    if text.data.startswith(BYTECODE):
        message, hint = explain(error, "")
        hint = DAMAGED
    elif text.name.endswith(".py"):
        hint = "lower it first: jax.jit(f).lower(*arguments).as_text() is the text of a module"
        return ShardlogError("this is Python", where=text.name, hint=hint)
    else:
        message, hint = explain(error, text.data.decode(errors="replace"))
    return ShardlogError(message, where=text.place(_place(error)) or text.name, hint=hint)


def _place(error: ir.MLIRError) -> str:
    """The location of MLIR's first diagnostic; empty if it has none."""
    diagnostics = error.error_diagnostics
    location = str(diagnostics[0].location) if diagnostics else "loc(unknown)"
    where = location.removeprefix("loc(").removesuffix(")").replace('"', "")
    return "" if where == "unknown" else where

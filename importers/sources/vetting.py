"""Programs on which MLIR or XLA may end the process are read in another process first.

MLIR trusts bytecode, recurses as deeply as a program nests, and its Python bindings abort where a message
holds a name that is not UTF-8; XLA aborts where a sharding contradicts itself. None of that raises an
exception, so input from outside that may cause it goes to a child process first. Bytecode comes back as MLIR
itself writes it; text is unchanged, and is read again.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ... import children
from ...errors import ShardlogError
from ...program.mlir.modules import bytecode_of
from ...program.mlir.types import Operation
from .compiling import refused
from .text import BYTECODE, DAMAGED, Text, parse_module

_DEEP = 500  # levels of brackets: programs have some dozens, MLIR's stack lasts for some thousands
_SIGNS = b"-" * _DEEP  # nest too, in affine expressions
_BRACKETS = b"([{<)]}>"
_OTHERS = bytes(c for c in range(256) if c not in _BRACKETS)
_STEPS = bytes.maketrans(_BRACKETS, b"\x01" * 4 + b"\xff" * 4)
_PIECE = 1 << 20  # bytes read at a time
_NAMES = "names of ops, functions, meshes, axes and attributes have to be UTF-8"
_HLO = "StableHLO, as MLIR text or bytecode, is read by every version"
_LONGEST_MESSAGE = 300  # characters of XLA's
_SYMBOLS = ("sym_name",)
_ESCAPES = re.compile(rb"(?:\\[0-9A-Fa-f]{2})+")
_ALIAS = re.compile(rb"\n[ \t]*((?:#(?!loc)|!)[\w.$-]+)[ \t]*=")
_USED = re.compile(rb"[#!][\w.$-]+")
_ALIAS_ENDS = 1 << 16  # characters of an alias, with the aliases in it
_LONGEST = 1 << 26  # characters of an expanded alias
_SECONDS, _BYTES_A_SECOND = 10, 100_000  # of processor time, and how many bytes take one more
_WAITING = 6  # times as many, which pass before a child is given up
_MEMORY, _TIMES = 8 << 30, 32  # bytes, and how many more for each of the program
_ENDLESS = -getattr(signal, "SIGXCPU", 0) or -1  # the status of a child that takes longer
_CHILD = (
    "import sys; sys.path[:] = sys.argv[4:]; "
    "from shardlog.importers.sources.vetting import child; child(*sys.argv[1:4])"
)


def vetted(data: bytes, name: str) -> bytes:
    """``data`` in a form that is safe to read: text unchanged, bytecode as MLIR itself writes it.

    Raises ShardlogError if it is not a program, or crashes MLIR.
    """
    if data.startswith(BYTECODE):
        return _in_child(data, name, where=name, hint=DAMAGED)
    if (size := _written_out(data)) > _LONGEST:
        hint = f"at most {_LONGEST:,} are supported; aliases that name another twice double with every line"
        raise ShardlogError(f"an alias expands to {size:,} characters", where=name, hint=hint)
    if fault := risk(data):
        line, hint = fault
        return _in_child(data, name, where=f"{name}:{line}" if line else name, hint=hint)
    return data


def with_names(data: bytes, name: str) -> bytes:
    """Bytecode that MLIR has written for this process, if all names in it are UTF-8.

    Raises ShardlogError otherwise: MLIR ends a process that asks for such a name.
    """
    try:
        _strings(data).decode()
    except UnicodeDecodeError:  # of a name, or of a string, which may be anything
        return _in_child(data, name, where=name, hint=_NAMES)
    return data


def from_hlo(text: bytes, *, own: bool = False) -> bytes:
    """The module that a text of HLO stands for, as bytecode; nothing where this jaxlib cannot read it.

    HLO of another process (not ``own``) is read in a child: XLA's parser may end its process.
    """
    try:
        return _stablehlo_of(text, "HLO") if own else module_of_hlo(text, "HLO")
    except ShardlogError:  # of another version
        return b""


def module_of_hlo(text: bytes, name: str) -> bytes:
    """The module that a text of HLO stands for, as bytecode.

    It is read in a child, since XLA's parser may end its process. Raises ShardlogError if this jaxlib cannot
    read it.
    """
    return _in_child(text, name, where=name, hint=_HLO, kind="hlo")


def _stablehlo_of(hlo: bytes, name: str) -> bytes:
    try:
        from jaxlib import _hlo, _jax  # type: ignore[attr-defined] # without stubs

        proto = _hlo.hlo_module_from_text(hlo.decode()).as_serialized_hlo_module_proto()
        return bytes(_jax.mlir.hlo_to_stablehlo(proto))
    except (ImportError, AttributeError, RuntimeError, ValueError) as error:
        message = " ".join(str(error).split())[:_LONGEST_MESSAGE]
        raise ShardlogError(f"cannot read the HLO: {message}", where=name, hint=_HLO) from None


def round_trip(module: ir.Module, text: Text) -> bytes:
    """A module after a round trip through HLO, as bytecode. Raises ShardlogError if XLA refuses it.

    A program that is not yet in memory goes to a child process.
    """
    data = bytecode_of(module)
    if text.written:
        return _through_hlo(module, data, text)
    hint = "the default view, lowered, does not need XLA and may have a better message"
    return _in_child(data, text.name, where=text.name, hint=hint, kind="roundtrip")


def _through_hlo(module: ir.Module, data: bytes, text: Text) -> bytes:
    from jaxlib import _jax

    try:
        computation = _jax.mlir.mlir_module_to_xla_computation(data, use_tuple_args=False, return_tuple=False)
        return bytes(_jax.mlir.hlo_to_stablehlo(computation.as_serialized_hlo_module_proto()))
    except (RuntimeError, ValueError) as error:
        raise refused(error, text, module) from None


def _strings(data: bytes) -> bytes:
    """The strings of bytecode, one after the other: section 0 of it."""
    _, at = _number(data, len(BYTECODE))  # the version
    at = data.index(b"\0", at) + 1  # behind the producer
    while at < len(data):
        kind, (size, at) = data[at], _number(data, at + 1)
        if kind & 0x80:
            alignment, at = _number(data, at)
            at = -(-at // alignment) * alignment
        if not kind & 0x7F:
            count, start = _number(data, at)
            for _ in range(count):  # their lengths come first
                _, start = _number(data, start)
            return data[start : at + size]
        at += size
    return b""


def _number(data: bytes, at: int) -> tuple[int, int]:
    """The number at a place of bytecode, and the place behind it.

    The zeros at the end of its first byte count the bytes that follow it.
    """
    first = data[at] | 0x100
    length = (first & -first).bit_length()
    return int.from_bytes(data[at : at + length], "little") >> min(length, 8), at + length


def risk(text: bytes) -> tuple[int, str] | None:
    """The reason why MLIR may crash on a text, and the line of it (0: all of it); None where there is
    none."""
    if line := _not_text(text):
        return line, _NAMES
    if (levels := depth(text)) > _DEEP:
        return 0, f"brackets nest {levels:,} levels deep"
    if _SIGNS in text:
        return 0, f"there are {_DEEP} signs in a row"
    return None


def depth(text: bytes) -> int:
    """The approximate depth of nested brackets; those in strings count too."""
    steps = text.replace(b"->", b"").translate(_STEPS, _OTHERS)
    level = lowest = deepest = 0
    for start in range(0, len(steps), _PIECE):
        piece = np.frombuffer(steps, np.int8, min(_PIECE, len(steps) - start), start)
        levels = np.cumsum(piece, dtype=np.int32) + level
        floor = np.minimum(np.minimum.accumulate(levels), lowest)
        deepest = max(deepest, int((levels - floor).max()))
        level, lowest = int(levels[-1]), int(floor[-1])
    return deepest


def _written_out(text: bytes) -> int:
    """The length of the longest alias of an attribute or a type with all aliases in it expanded, roughly.
    (Locations are never expanded.)"""
    sizes: dict[bytes, int] = {}
    text = b"\n" + text
    aliases = list(_ALIAS.finditer(text))
    nexts = [*(alias.start() for alias in aliases), len(text)][1:]
    for alias, following in zip(aliases, nexts, strict=True):
        used = _USED.findall(text, alias.end(), min(following, alias.end() + _ALIAS_ENDS))
        sizes[alias[1]] = len(alias[0]) + sum(sizes.get(name, len(name)) for name in used)
    return max(sizes.values(), default=0)


def _not_text(data: bytes) -> int:
    """The line of the first escaped bytes that are not UTF-8; 0 where there are none."""
    for escapes in _ESCAPES.finditer(data) if b"\\" in data else ():
        try:
            bytes.fromhex(escapes[0].replace(b"\\", b"").decode()).decode()
        except UnicodeDecodeError:
            return data.count(b"\n", 0, escapes.start()) + 1
    return 0


def _in_child(data: bytes, name: str, *, where: str, hint: str, kind: str = "mlir") -> bytes:
    if not sys.executable:  # Python in another program
        return data
    seconds = _SECONDS + len(data) // _BYTES_A_SECOND
    process = children.start([sys.executable, "-c", _CHILD, name, kind, str(seconds), *sys.path])
    try:
        answer, _ = process.communicate(data, timeout=_WAITING * seconds)
        status = process.returncode
    except subprocess.TimeoutExpired:
        status = _ENDLESS
    finally:
        children.end(process)
    if status == 0:
        return answer
    if status == 2:
        raise ShardlogError(**json.loads(answer))
    reader = "MLIR" if kind == "mlir" else "XLA"
    if status == _ENDLESS:
        raise ShardlogError(f"{reader} did not read this within {seconds} seconds", where=where, hint=hint)
    raise ShardlogError(f"{reader} crashes on this", where=where, hint=hint)


def _check_names(module: ir.Module, text: Text) -> None:
    """Raises ShardlogError, or ends the process, if the name of an op, a symbol, an attribute or an axis is
    not UTF-8: no Python string can hold it. ``text`` is where the module comes from."""
    waiting: list[Any] = [module.operation]
    while waiting:
        op = waiting.pop().operation
        try:
            _read_names(op)
        except RuntimeError:
            where = text.place(str(op.location).removeprefix("loc(").removesuffix(")").replace('"', ""))
            raise ShardlogError("a name that is not UTF-8", where=where, hint=_NAMES) from None
        waiting.extend(op for region in op.regions for block in region.blocks for op in block.operations)


def _read_names(op: Operation) -> None:
    from jaxlib.mlir.dialects import sdy

    _ = op.name
    waiting: list[Any] = [op.attributes[label] for label in op.attributes]
    _ = [op.attributes[label].value for label in op.attributes if label in _SYMBOLS]
    while waiting:
        attribute = waiting.pop()
        if isinstance(attribute, ir.FlatSymbolRefAttr):
            _ = attribute.value
        elif isinstance(attribute, ir.ArrayAttr):
            waiting.extend(attribute)
        elif isinstance(attribute, ir.DictAttr):
            entries = [attribute[i] for i in range(len(attribute))]
            waiting.extend(entry.attr for entry in entries if entry.name)
        elif sdy.MeshAttr.isinstance(attribute):
            _ = [sdy.MeshAxisAttr(axis).name for axis in sdy.MeshAttr(attribute).axes]


def child(name: str, kind: str, seconds: str) -> None:
    """Reads a program from standard input, and writes it, or its error, to standard output.

    ``kind`` is "mlir", "hlo" for text that is written as bytecode of MLIR, or "roundtrip" for a module that
    goes through HLO. ``seconds`` limits the processor time.
    """
    data = sys.stdin.buffer.read()
    with suppress(ImportError, OSError, ValueError):  # another system, or a lower limit already
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        last = int(time.process_time()) + int(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (last, last + 1))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY + _TIMES * len(data),) * 2)
    try:
        if kind == "hlo":
            data = _stablehlo_of(data, name)
        text = Text(data, name)
        module = parse_module(text)
        _check_names(module, text)
        if kind == "roundtrip":
            data = _through_hlo(module, data, text)
        elif data.startswith(BYTECODE):
            data = bytecode_of(module)
    except ShardlogError as error:
        answer = {"message": error.message, "where": error.where, "hint": error.hint}
        sys.stdout.write(json.dumps(answer))
        sys.stdout.flush()
        os._exit(2)
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
    os._exit(0)  # without parts that could still crash

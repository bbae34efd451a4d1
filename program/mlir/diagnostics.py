"""MLIR's diagnostics as messages for users: the error, and how to fix it."""

from __future__ import annotations

import re

from jaxlib.mlir import ir

from ...errors import closest
from ..shardy import newer

_OWNER = re.compile(r"'([\w.]+)' op (?:(arg|operand|result)( \d+)? - )?")
_REDUCTION = re.compile(r"(?:unreduced\s*=\s*|sdy\.(?:all_reduce|reduce_scatter)\s+)(\w+)\s*[{\[]")
_UNKNOWN = re.compile(
    r"(?:unregistered operation|custom op) '(?P<op>[\w.-]+)' (?:found|is unknown|;)"
    r"|unknown (?P<kind>attribute|type) `(?P<name>[\w.-]+)` in dialect `(?P<dialect>\w+)`"
)
_DIALECTS = ("sdy", "stablehlo", "chlo", "mhlo")
_OTHERS = "is the name of the op right? ops of other dialects are written in generic form"
_ENUM = re.compile(
    r"custom op '(?P<op>[\w.]+)' expected (?:string or keyword containing one of the following enum values "
    r"for attribute '\w+' \[(?P<words>.*)\]|::mlir::[\w:]+ to be one of: (?P<others>[^;]*))"
)
_NAME = re.compile(r"[A-Za-z_]\w*")
_KEY = re.compile(rf"\s*({_NAME.pattern})\s*=")
_UNREAD = "failed to parse Sdy_"  # an attribute that says more than is known of it, or less
_CUT = "the text ends here, inside of braces: has the file been cut?"
_HINTS = (
    ("unknown mesh", 'declare the mesh: sdy.mesh @name = <["axis"=size]>'),
    ("unknown axis name", "use an axis of the mesh"),
    ("duplicate axis name", "name every axis of a mesh once"),
    ("duplicate axis ref", "an axis may shard a tensor only once"),
    ("overlap", "an axis may shard a tensor only once, sub-axes included"),
    ("both sub-axis and full-axis", "an axis may shard a tensor only once, sub-axes included"),
    ("sub-axis", '"x":(pre)size is part of the axis "x": pre * size divides its size, and size is smaller'),
    ("tensor rank", "give one {...} for each dimension of the tensor"),
    ("not ordered w.r.t. mesh", "list the axes in the order of the mesh"),
    ("match number of values", "give one sharding for each value"),
    ("already bound by a parent", "inside of a manual computation only its free axes may shard"),
    ("before free axes", "list the manual axes of a dimension before the free ones"),
    ("unknown manual axis", "use an axis of the mesh"),
    ("manual axes size", "the manual axes must divide the dimension"),
    ("Expected local shape", "in the body, dimensions are divided by the manual axes that shard them"),
    ("sub-axes can be merged", "write neighbouring sub-axes of an axis as one"),
    ("empty and closed but has a priority", "open the dimension with {?}, or leave out its priority"),
    ("expected operation name in quotes", "a module is expected: StableHLO as MLIR text or bytecode"),
)


def explain(error: ir.MLIRError, text: str) -> tuple[str, str]:
    """A message and a hint for the first of MLIR's diagnostics, with the notes that belong to it.

    ``text`` declares the meshes, whose names and axes are suggested in place of unknown ones.
    """
    if not error.error_diagnostics:
        return str(error).splitlines()[0], ""
    message, hint = _explained(error, text)
    return message, _CUT if _cut(str(error.error_diagnostics[0].location), text) else hint


def _cut(location: str, text: str) -> bool:
    """Whether a location is in the last line of a text that ends inside of braces."""
    place = re.search(r":(\d+):\d+\)?$", location)
    last = place is not None and int(place[1]) >= len(text.splitlines()) > 1
    return last and text.count("{") > text.count("}")


def _explained(error: ir.MLIRError, text: str) -> tuple[str, str]:
    first = error.error_diagnostics[0]
    notes = [note.message for note in first.notes if not note.message.startswith("see current")]
    message = _OWNER.sub(_owner, "; ".join([first.message, *notes]), count=1)
    if word := _reduction(str(first.location), text):
        hint = 'expected max or min, and jaxlib 0.11 or later; a sum takes no word, as in unreduced={"x"}'
        return f"the sdy of this jaxlib has no reduction {word}", hint
    if (unknown := _UNKNOWN.search(message)) and unknown["dialect"] in (None, *_DIALECTS):
        unknown_name = unknown["op"] or f"{unknown['kind']} {unknown['dialect']}.{unknown['name']}"
        return f"{unknown_name} is not known", _OTHERS if _other(unknown["op"]) else newer()
    if _UNREAD in message:
        word = _word(str(first.location), text)
        return f"{word} is not known: {message}" if word else message, newer()
    line, column = _at(str(first.location), text)
    if (enum := _ENUM.match(message)) and (name := _NAME.match(line, column)):
        return f"{name[0]} is not known: {enum['op']} expects {enum['words'] or enum['others']}", newer()
    if "expected '" in message and "sdy." in line[:column] and (key := _KEY.match(line, column)):
        return f"{message}, not {key[1]}", newer()
    return message, _suggestion(message, text) or next((h for part, h in _HINTS if part in message), "")


def _reduction(location: str, text: str) -> str:
    """The word at a location, where it should be the reduction of unreduced axes; else empty."""
    line, column = _at(location, text)
    match = _REDUCTION.search(line)
    while match and not match.start() <= column <= match.start(1):
        match = _REDUCTION.search(line, match.end())
    return match[1] if match else ""


def _word(location: str, text: str) -> str:
    """The word at a location, or right before it; else empty."""
    line, column = _at(location, text)
    match = re.search(r"\w+\s*=?$", line[:column]) or re.match(r"\w+", line[column:])
    return match[0].rstrip(" =") if match else ""


def _at(location: str, text: str) -> tuple[str, int]:
    """The line of a location, and the column in it; an empty line where the location has none."""
    place = re.search(r":(\d+):(\d+)\)?$", location)
    row, column = (int(number) - 1 for number in place.groups()) if place else (0, 0)
    return "".join(text.splitlines()[row : row + 1]) if place else "", column


def _other(op: str | None) -> bool:
    """Whether an op is of a dialect that no jaxlib has."""
    return op is not None and op.partition(".")[0] not in _DIALECTS


def _owner(match: re.Match[str]) -> str:
    op, role, number = match.groups()
    return f"{'argument' if role == 'arg' else role}{number or ''} of {op}: " if role else f"{op}: "


def _suggestion(message: str, text: str) -> str:
    """A hint with the nearest name, where the message is about an unknown one."""
    if mesh := re.search(r"unknown mesh: @(\S+)", message):
        names = re.findall(r"sdy\.mesh @(\S+) =", text)
        return closest(f"@{mesh[1]}", [f"@{name}" for name in names]) if names else ""
    if axis := re.search(r'unknown axis name: ("[^"]*")', message):
        meshes = re.findall(r"sdy\.mesh @\S+ = [^\[\n]*\[(.*?)\]", text)
        names = [name for axes in meshes for name in re.findall(r'("[^"]*")=', axes)]
        return closest(axis[1], dict.fromkeys(names)) if names else ""
    return ""

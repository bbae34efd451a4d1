"""Random changes of an input: of its bytes, and of its words where it is text."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

_WORDS = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[%@#!^]?[\w.$-]+|\s+|.', re.DOTALL)
_NUMBERS = re.compile(rb"-?\d+")
_NAMES = re.compile(rb'"[^"\n]*"|[%@][\w.]+|\b[a-z_]\w*\b')
NUMBERS: tuple[bytes, ...] = (
    b"0",
    b"-1",
    b"1",
    b"2",
    b"3",
    b"12",
    b"255",
    b"720720",
    b"2147483648",
    b"9223372036854775807",
)
NUMBERS += (
    b"9223372036854775783",
    b"18446744073709551616",
    b"1" * 40,
    b"1e400",
    b"nan",
    b"-9223372036854775808",
)
NAMES: tuple[bytes, ...] = (
    b'""',
    b'"a\\", \\"b"',
    b'"\\FF"',
    b'"\\00"',
    b'"my mesh"',
    b'@"my mesh"',
    b'"\xc3\xa9"',
    b'"\xf0\x9f\x98\x80"',
)
NAMES += (
    b'"{?}"',
    b'"\\0A"',
    b"%",
    b"@",
    b'"' + b"x" * 5000 + b'"',
    b"*",
    b"?",
    b"_",
    b"../x",
    b"/etc/passwd",
    b"'",
    b"\xff",
)
_OPENING = (
    b"tuple<",
    b"[",
    b"(",
    b"{",
    b"[[",
    b"{a = ",
    b"module {",
    b"complex<",
    b"-(",
    b"{{",
    b"<[",
    b"!",
    b"*",
)
_CLOSING = {b"(": b")", b"[": b"]", b"{": b"}", b"<": b">"}

Mutation = Callable[[Random, bytes, Sequence[bytes]], bytes]


def mutate(random: Random, data: bytes, others: Sequence[bytes], *, binary: bool = False) -> bytes:
    """``data`` after one to four changes; ``others`` are inputs that parts may come from."""
    mutations = BINARY if binary else (*BINARY, *TEXT, *TEXT)
    for _ in range(random.choice((1, 1, 1, 2, 2, 4))):
        data = random.choice(mutations)(random, data, others)[:4_000_000]
    return data


def edited(random: Random, data: bytes) -> bytes:
    """A saved run with other things in its tables, under a right checksum."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.deserialize(data[:-4])
    tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for _ in range(random.choice((1, 1, 2, 8))):
        table = random.choice(tables)
        rows = [list(row) for row in database.execute(f"SELECT * FROM {table}")]
        if not rows:
            continue
        row = random.choice(rows)
        match random.randrange(6):
            case 0:
                rows.remove(row)
            case 1:
                rows.append([*row[:-1], random.choice(rows)[-1]])
            case _:
                column = random.randrange(len(row))
                row[column] = _other(random, row[column], [other[column] for other in rows])
        database.execute(f"DELETE FROM {table}")
        marks = ", ".join("?" * len(row))
        with suppress(sqlite3.IntegrityError):  # no such thing may stand there; the rows behind it are gone
            database.executemany(f"INSERT OR REPLACE INTO {table} VALUES ({marks})", rows)
    written = database.serialize()
    database.close()
    return written + zlib.crc32(written).to_bytes(4)


def _other(random: Random, value: object, others: Sequence[object]) -> object:
    """Something else in the place of what a table holds."""
    match value:
        case bytes() if random.randrange(4) and value:
            try:
                unpacked = zlib.decompressobj().decompress(value)
            except zlib.error:  # numbers of a column
                return mutate(random, value, [b"\0\1\2"], binary=True)
            return zlib.compress(mutate(random, unpacked, [b"[[1, 2]]"]))
        case str() if random.randrange(4):
            with suppress(ValueError):
                return json.dumps(_part(random, json.loads(value)))
            return mutate(random, value.encode(), [b'"x"', b"[]"]).decode(errors="replace")
        case int() if random.randrange(4):
            return value + random.choice((-1, 1, 1000, -1000))
    return random.choice((None, 0, -1, 1 << 62, 0.5, "", "x", "null", "[[]]", "{}", b"\0", *others))


def _part(random: Random, value: Any) -> Any:
    """A document with another part."""
    if isinstance(value, list) and value and random.randrange(8):
        at = random.randrange(len(value))
        return [*value[:at], _part(random, value[at]), *value[at + 1 :]]
    if isinstance(value, dict) and value and random.randrange(8):
        name = random.choice(sorted(value))
        return value | {name: _part(random, value[name])}
    if isinstance(value, int) and random.randrange(4):
        return value + random.choice((-1, 1, 1000))
    return random.choice((None, 0, -1, 1 << 62, "x", "", [], {}, [[]], [1, 2, 3]))


def _span(random: Random, length: int, most: int = 64) -> tuple[int, int]:
    start = random.randrange(length + 1)
    return start, min(length, start + random.randint(1, most))


def _flip(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    changed = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 8, 32)) if data else 0):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _overwrite(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(random, len(data))
    fill = random.choice((random.randbytes(end - start), b"\xff" * (end - start), b"\0" * (end - start)))
    return data[:start] + fill + data[end:]


def _truncate(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return data[: random.randrange(len(data) + 1)]


def _remove(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(random, len(data))
    return data[:start] + data[end:]


def _repeat(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    start, end = _span(random, len(data))
    return data[:end] + data[start:end] * random.choice((1, 2, 10, 1000)) + data[end:]


def _splice(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    other = random.choice(others)
    start, end = _span(random, len(other), max(1, len(other)))
    at = random.randrange(len(data) + 1)
    return data[:at] + other[start:end] + data[at + random.choice((0, end - start)) :]


def _words(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Removes, doubles, swaps or replaces words."""
    words = _WORDS.findall(data)
    if not words:
        return data
    at, other = random.randrange(len(words)), random.randrange(len(words))
    match random.randrange(4):
        case 0:
            del words[at : at + random.randint(1, 6)]
        case 1:
            words[at:at] = words[at : at + random.randint(1, 12)]
        case 2:
            words[at], words[other] = words[other], words[at]
        case _:
            words[at] = random.choice(_WORDS.findall(random.choice(others)) or words)
    return b"".join(words)


def _replaced(random: Random, data: bytes, pattern: re.Pattern[bytes], choices: Sequence[bytes]) -> bytes:
    """``data`` with something hostile for one match of the pattern, or for all that are equal to it."""
    found = list(pattern.finditer(data))
    if not found:
        return data
    match, new = random.choice(found), random.choice(choices)
    if random.randrange(3) == 0:
        return data.replace(match[0], new)
    return data[: match.start()] + new + data[match.end() :]


def _number(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return _replaced(random, data, _NUMBERS, NUMBERS)


def _name(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    return _replaced(random, data, _NAMES, NAMES)


def _lines(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Removes, repeats or moves lines."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    start, end = _span(random, len(lines), 6)
    block = lines[start:end]
    match random.randrange(3):
        case 0:
            return b"".join(lines[:start] + lines[end:])
        case 1:
            return b"".join(lines[:end] + block * random.choice((1, 3, 300)) + lines[end:])
        case _:
            rest = lines[:start] + lines[end:]
            at = random.randrange(len(rest) + 1)
            return b"".join(rest[:at] + block + rest[at:])


def _nest(random: Random, data: bytes, others: Sequence[bytes]) -> bytes:
    """Opens something very often, and closes it or not."""
    opening, depth = random.choice(_OPENING), random.choice((3, 50, 1000, 20_000))
    closing = b"".join(_CLOSING.get(opening[i : i + 1], b"") for i in range(len(opening)))[::-1]
    words = _WORDS.findall(data)
    at = random.randrange(len(words) + 1)
    inside = words[at : at + 1] if random.randrange(2) else []
    parts = [*words[:at], opening * depth, *inside, closing * (depth if random.randrange(4) else 0)]
    return b"".join([*parts, *words[at + len(inside) :]])


BINARY: tuple[Mutation, ...] = (_flip, _flip, _overwrite, _truncate, _remove, _repeat, _splice)
TEXT: tuple[Mutation, ...] = (_words, _words, _words, _number, _name, _lines, _nest)

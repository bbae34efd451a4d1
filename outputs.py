"""The writing of all files and folders: they appear whole or not at all."""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any

from . import interrupt
from .errors import ShardlogError

_CACHED = 128  # files of one suffix in a cache
_number = count()
_PARTIAL = re.compile(r"\.(\d+)-\d+\.partial")


@contextmanager
def output(name: str | Path) -> Iterator[Path]:
    """An empty file to write to. When all went well it takes the place of ``name``; otherwise it is removed,
    and what stood there stays.

    A symbolic link stays one: what it leads to is written. A device or a pipe is not replaced: what was
    written is copied to it at the end. Raises ShardlogError where it cannot be written.
    """
    with _errors(name):
        old = _status(name)
        if old is not None and stat.S_ISDIR(old.st_mode):
            raise ShardlogError("cannot write: Is a directory", where=str(name))
        if old is not None and (_stream(old) or not stat.S_ISREG(old.st_mode)):
            with temporary_folder() as folder:
                written = folder / "output"
                written.touch()
                yield written
                _copy(written, name)
            return
        path = Path(os.path.realpath(name))
        with _partial(path, Path.unlink) as written:
            written.touch()
            yield written
            if old is not None:
                written.chmod(stat.S_IMODE(old.st_mode))
            written.replace(path)


@contextmanager
def output_folder(name: str | Path) -> Iterator[Path]:
    """An empty folder to write to. When all went well its files take their places in the folder ``name``,
    which keeps other files that it has; otherwise it is removed.

    Raises ShardlogError where it cannot be written.
    """
    with _errors(name):
        path, old = Path(os.path.realpath(name)), _status(name)
        if old is not None and not stat.S_ISDIR(old.st_mode):
            raise ShardlogError("cannot write: Not a directory", where=str(name))
        # In the folder itself where there is one: that is the same file system.
        with _partial(path / path.name if old is not None else path, _remove_folder) as written:
            written.mkdir(parents=True)
            yield written
            if old is None:
                written.replace(path)
                return
            files = sorted(file.relative_to(written) for file in written.rglob("*") if file.is_file())
            for file in files:
                (path / file).parent.mkdir(parents=True, exist_ok=True)
            for file in files:
                (written / file).replace(path / file)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """An empty folder for what only this process reads. It is removed at the end, and where a signal ends the
    process."""
    with TemporaryDirectory(prefix="shardlog-") as name:
        interrupt.clearing[name] = lambda: _remove_folder(Path(name))
        try:
            yield Path(name)
        finally:
            del interrupt.clearing[name]


def write(name: str | Path, data: bytes) -> None:
    """Writes a file, as ``output``."""
    with output(name) as path:
        path.write_bytes(data)


def write_to_cache(file: Path, data: bytes) -> None:
    """Writes a file of a cache, and removes the oldest of those with its suffix if there are many. Does
    nothing where files cannot be written."""
    with suppress(OSError, ShardlogError):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write(file, data)
        files = sorted(file.parent.glob(f"*{file.suffix}"), key=lambda each: each.stat().st_mtime)
        for old in files[:-_CACHED]:
            old.unlink()


def refuse_loss(outputs: Iterable[tuple[str, str | None]], inputs: Iterable[str | None]) -> None:
    """Raises ShardlogError where an output has no name or is ``-``, or would take the place of an input or of
    another output.

    ``outputs`` are pairs of an option and a name; None is no file.
    """
    taken = [("what is read", name) for name in inputs if name is not None and _regular(name)]
    for option, name in outputs:
        if name is None:
            continue
        if not name:
            hint = "give a name, or leave out the option"
            raise ShardlogError("the file name is empty", where=option, hint=hint)
        if name == "-":
            hint = "give a name; /dev/stdout is standard output"
            raise ShardlogError("- is not the name of a file", where=option, hint=hint)
        for replaced, other in taken:
            if _same(name, other):
                hint = "choose another name"
                raise ShardlogError(f"{option} would replace {replaced}", where=name, hint=hint)
        taken.append((f"the file of {option}", name))


@contextmanager
def _errors(name: str | Path) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # who reads has read enough
    except OSError as error:
        raise ShardlogError(f"cannot write: {error.strerror}", where=str(name)) from error


@contextmanager
def _partial(path: Path, remove: Callable[[Path], None]) -> Iterator[Path]:
    """A name beside ``path`` for what is half-written; whatever has it in the end is removed. So is what
    processes that are gone have left."""
    start = os.fsdecode(os.fsencode(path.name)[:200])  # names have 255 bytes at most
    _remove_stale(path.parent, start)
    written = path.with_name(f"{start}.{os.getpid()}-{next(_number)}.partial")
    interrupt.clearing[str(written)] = lambda: remove(written)
    try:
        yield written
    finally:
        with suppress(OSError):  # it took its place, or was never there: the folder may be a file
            remove(written)
        del interrupt.clearing[str(written)]


def _remove_stale(folder: Path, start: str) -> None:
    with suppress(OSError):
        for file in os.scandir(folder):
            match = _PARTIAL.fullmatch(file.name, len(start)) if file.name.startswith(start) else None
            if match and not _runs(int(match[1])):
                (_remove_folder if file.is_dir(follow_symlinks=False) else Path.unlink)(Path(file))


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _remove_folder(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _status(name: str | Path) -> os.stat_result | None:
    try:
        return Path(name).stat()
    except OSError:  # it is not there, or cannot be: writing says why
        return None


def _stream(status: os.stat_result) -> IO[Any] | None:
    """Standard output or error, where a file is that, whatever it is called."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            if os.path.samestat(status, os.fstat(stream.fileno())):
                return stream
    return None


def _copy(source: Path, name: str | Path) -> None:
    stream = _stream(Path(name).stat())
    if stream is not None:
        stream.flush()
    descriptor = os.open(name, os.O_WRONLY) if stream is None else os.dup(stream.fileno())
    with source.open("rb") as reader, os.fdopen(descriptor, "wb") as writer:
        shutil.copyfileobj(reader, writer)


def _regular(name: str) -> bool:
    return Path(name).is_file()


def _same(one: str, other: str) -> bool:
    """Whether two names lead to one file that can be replaced, be it there or not."""
    if _status(one) is not None and not _regular(one):
        return False
    return os.path.realpath(one) == os.path.realpath(other)

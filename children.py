"""Processes that do for this one what could end it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from subprocess import DEVNULL, PIPE, Popen
from typing import IO

from .interrupt import clearing


def start(command: Sequence[str]) -> Popen[bytes]:
    """A child to talk to by its standard input and output, for which ``end`` has to be called.

    It is not told of Ctrl-C, which this process answers for, and is gone where this process is told to end.
    """
    process = Popen(
        command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, process_group=0 if os.name == "posix" else None
    )
    clearing[_name(process)] = process.kill
    return process


def end(process: Popen[bytes]) -> None:
    """Ends a child, whatever it does."""
    process.kill()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with suppress(OSError):  # of what it has not read
                stream.close()
    process.wait()
    clearing.pop(_name(process), None)


def carry_out(command: Sequence[str], output: IO[bytes] | None = None) -> tuple[int, str]:
    """Runs a command to its end: its exit status and what it says on standard error. It has this process's
    standard input, and ``output``, by default standard output. Raises OSError where it cannot be started."""
    process = Popen(command, stdout=output, stderr=PIPE)
    clearing[_name(process)] = process.kill
    try:
        _, written = process.communicate()
    finally:
        process.kill()
        process.wait()
        del clearing[_name(process)]
    return process.returncode, written.decode(errors="replace")


def _name(process: Popen[bytes]) -> str:
    return f"process {process.pid}"

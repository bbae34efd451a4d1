"""A process that carries out command lines one after the other, until it dies or is ended."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TextIO

MEMORY = 6 << 30  # bytes of address space; MLIR and NumPy alone take two
HANG = 20.0  # seconds of processor time that a case may take: a machine that others use too changes nothing
PACKAGE = Path(__file__).parents[2]
Command = Callable[[list[str]], int]  # takes arguments, gives an exit status


def work(jobs: Connection, crashes: str, command: Command | None, hang: float) -> None:
    """Carries out ``command`` (None: shardlog's): takes (folder, arguments, name of the standard input or
    None), answers (exit status, traceback, seconds of processor time that children took).

    Where the process crashes, or gets SIGUSR1, it writes the Python frames into the file ``crashes``. So it
    does after ``hang`` seconds of processor time, when SIGPROF ends it.
    """
    os.setsid()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with Path(crashes).open("w") as log:
        faulthandler.enable(log, all_threads=False)
        faulthandler.register(signal.SIGUSR1, log, all_threads=False)
        faulthandler.register(signal.SIGPROF, log, all_threads=False, chain=True)
        from shardlog import cli  # under the limit

        command = command or cli.main
        kept = [os.dup(number) for number in range(3)]
        while True:
            try:
                folder, arguments, stdin = jobs.recv()
            except EOFError:
                return
            _redirect(Path(folder), stdin)
            outcome: tuple[object, str] = (None, "")
            children = _children()
            signal.setitimer(signal.ITIMER_PROF, hang)
            try:
                outcome = (command(arguments), "")
            except BaseException as error:  # SystemExit too: main returns the status
                outcome = (None, _shown(error))
            signal.setitimer(signal.ITIMER_PROF, 0)
            _restore(kept)
            jobs.send((*outcome, _children() - children))


def _children() -> float:
    """Seconds of processor time that children have taken which are gone."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _shown(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(error))
    except Exception:  # of an error that cannot be shown
        return f"{''.join(traceback.format_tb(error.__traceback__))}{type(error).__name__}"


def _redirect(folder: Path, stdin: str | None) -> None:
    """Stands in the folder, with the standard streams as files: Python's and those of the process."""
    os.chdir(folder)
    opened = [
        os.open(folder / stdin if stdin else os.devnull, os.O_RDONLY),
        os.open(folder / ".stdout", os.O_WRONLY | os.O_CREAT),
        os.open(folder / ".stderr", os.O_WRONLY | os.O_CREAT),
    ]
    for number, made in enumerate(opened):
        os.dup2(made, number)
        os.close(made)
    sys.stdin, sys.stdout, sys.stderr = (_stream(n) for n in range(3))


def _restore(kept: list[int]) -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue
    for number, stream in enumerate(kept):
        os.dup2(stream, number)


def _stream(number: int) -> TextIO:
    return open(number, "w" if number else "r", encoding="utf-8", closefd=False)

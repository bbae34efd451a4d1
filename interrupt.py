"""The end of a process of the command line on a signal.

An exception, as Python raises for Ctrl-C, would show as a traceback during imports, and crashes the process
where it comes up in a callback from C++. So nothing is raised: the process clears up and is gone.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

# What clears up, by the name of what is half-written.
clearing: dict[str, Callable[[], None]] = {}

_SAID = {signal.SIGINT: b"shardlog: interrupted\n", signal.SIGTERM: b"shardlog: terminated\n"}


def install() -> None:
    """Ends this process at SIGINT, SIGTERM and SIGHUP without half-written files, with one line and the exit
    status that a shell gives such a process. Signals that it was told to ignore stay ignored."""
    for number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, _: object) -> None:
    for clear in list(clearing.values()):
        _try(clear)
    progress = b"\r\x1b[K" if os.isatty(2) else b""  # which may be on the line
    _try(lambda: os.write(2, progress + _SAID.get(signal.Signals(number), b"")))
    os._exit(128 + number)


def _try(act: Callable[[], object]) -> None:
    try:  # noqa: SIM105 - contextlib would take time before `install`
        act()
    except OSError:
        pass  # the process ends, whatever happens

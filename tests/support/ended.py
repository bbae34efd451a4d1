"""Commands that end early: in each of their phases by Ctrl-C, or because the disk is full.

``endings`` starts one process for all commands, which forks a child for each ending. Imports take most of the
time of a small command. What a child has imported, the process imports for those that follow.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

_BYTES = 10  # that a file may have where the disk is full


class Ending(NamedTuple):
    """How a command ended: the phase that Ctrl-C came in ("" where the command went on to its end), the exit
    status, the messages, and the files that are there, with their bytes in hexadecimal."""

    phase: str
    status: int
    messages: str
    files: dict[str, str]


def endings(folder: Path, command: list[str], *, full: bool = False) -> list[Ending]:
    """How a command in a folder ends when Ctrl-C comes in each of its phases, and without; or, if ``full``,
    with a full disk."""
    process = _process()
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"folder": str(folder), "command": command, "full": full}) + "\n")
    process.stdin.flush()
    return [Ending(*ending) for ending in json.loads(process.stdout.readline())]


@cache
def _process() -> subprocess.Popen[str]:
    """The process that forks; it ends with its input, when this process does."""
    command = [sys.executable, __file__]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _files() -> dict[str, str]:
    return {str(path): path.read_bytes().hex() for path in sorted(Path().rglob("*")) if path.is_file()}


def _forked(carry_out: Callable[[int], int]) -> Ending:
    """What becomes of a child. It is given a pipe to write its phase to."""
    (phase, phase_end), (messages, messages_end), (modules, modules_end) = os.pipe(), os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(messages_end, 2)
        sys.stderr = os.fdopen(2, "w", closefd=False)  # a file before, which could be sought
        status = carry_out(phase_end)
        os.write(modules_end, " ".join(name for name in sys.modules if name.startswith("shardlog")).encode())
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    texts = list[str]()
    for pipe, end in ((phase, phase_end), (messages, messages_end), (modules, modules_end)):
        os.close(end)
        with os.fdopen(pipe, "rb") as told:
            texts.append(told.read().decode())
    _, status = os.waitpid(child, 0)
    for name in texts.pop().split():
        import_module(name)
    return Ending(texts[0], os.waitstatus_to_exitcode(status), texts[1], _files())


def _watch(tell: Callable[[str], None]) -> None:
    """Tells of each phase: those of the bar, of Datalog programs, and when a file is half-written, and when
    it is about to take its place."""
    from shardlog.cli.running import Progress
    from shardlog.datalog import Program

    def telling(act: Callable[..., Any], name: str) -> Callable[..., Any]:
        def told(*arguments: Any, **keywords: Any) -> Any:
            tell(name)
            return act(*arguments, **keywords)

        return told

    def written(act: Callable[..., Any]) -> Callable[..., Any]:
        def half_written(path: Path, data: Any, *arguments: Any, **keywords: Any) -> Any:
            act(path, data[: len(data) // 2], *arguments, **keywords)
            tell("half-written")
            return act(path, data, *arguments, **keywords)

        return half_written

    replaced: Any = Progress
    replaced.__call__ = lambda _, what, done: tell(f"{what} {4 * done:.0f}/4")
    replaced = Program
    for name in ("read_inputs", "run_outputs", "write_outputs"):
        setattr(replaced, name, telling(getattr(Program, name), name))
    replaced = Path
    replaced.write_bytes, replaced.write_text = written(Path.write_bytes), written(Path.write_text)
    replaced.replace = telling(Path.replace, "taking its place")


def _interrupted(command: list[str], number: int) -> Ending:
    """How a command ends when Ctrl-C comes in its phase with a number."""

    def carry_out(phases: int) -> int:
        from shardlog import interrupt
        from shardlog.cli import main

        seen = list[str]()

        def tell(phase: str) -> None:
            if phase not in seen:
                seen.append(phase)
                if len(seen) == number + 1:
                    os.write(phases, phase.encode())
                    os.kill(os.getpid(), signal.SIGINT)

        interrupt.install()
        _watch(tell)
        return main(command)

    return _forked(carry_out)


def _full(command: list[str]) -> Ending:
    def carry_out(_: int) -> int:
        from shardlog.cli import main

        resource.setrlimit(resource.RLIMIT_FSIZE, (_BYTES, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        return main(command)

    return _forked(carry_out)


def _main() -> None:
    import shardlog.executing.partitioning
    import shardlog.explanations.partitioned
    import shardlog.runs.running
    import shardlog.session  # noqa: F401

    for line in sys.stdin:
        asked = json.loads(line)
        os.chdir(asked["folder"])
        os.environ["TMPDIR"] = tempfile.tempdir = str(Path("temporary").absolute())
        Path("temporary").mkdir(exist_ok=True)
        if asked["full"]:
            found = [_full(asked["command"])]
        else:
            found = [_interrupted(asked["command"], 0)]
            while found[-1].phase:
                found.append(_interrupted(asked["command"], len(found)))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    _main()

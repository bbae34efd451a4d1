"""Runs cases in workers, and keeps what goes wrong: tracebacks, crashes, hangs, files touched."""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from shlex import join

from .cases import Case, make
from .seeds import Seeds, collect
from .worker import HANG, PACKAGE, Command, work

_BLOCKED = 300.0  # seconds after which a case that waits, and uses no processor, is given up
_CASES = 200  # of one worker: what it keeps between them must not hide anything for long
_LONG = 100_000  # characters of messages
_FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:,)? in (\S+)')


@dataclass(frozen=True)
class Finding:
    """A failure of a case: its number, the kind, where (shardlog's last frame), and the words."""

    number: int
    kind: str  # "traceback", "crash", "hang", "status", "message" or "files"
    frame: str
    detail: str

    @property
    def key(self) -> tuple[str, str]:
        return self.kind, self.frame


def fuzz(
    *,
    seed: int,
    minutes: float,
    keep: Path,
    jobs: int,
    first: int = 0,
    last: int | None = None,
    tell: Callable[[str], None],
    seeds: Seeds | None = None,
    command: Command | None = None,
    hang: float = HANG,
    cases: Callable[[int], Case] | None = None,
) -> tuple[int, list[Finding]]:
    """Runs cases from ``first`` on for so many minutes (or up to ``last``) in ``jobs`` workers.

    ``seeds``: those of the tests, if None. ``command``: what is given the cases; shardlog's command line, if
    None. ``hang``: how many seconds of processor time are too many. ``cases``: the case of each number; those
    of ``seeds``, if None. Returns how many cases were run, and one
    finding for each kind and place; ``keep`` gets a folder for each with the files of the case.
    """
    with tempfile.TemporaryDirectory(prefix="shardlog-fuzz-") as name:
        scratch = Path(name)
        (scratch / "seeds").mkdir()
        if cases is None:
            cases = partial(make, seeds or collect(scratch / "seeds"), seed)
        workers = [_Worker(scratch, n, command, hang) for n in range(jobs)]
        numbers, done, found = first, 0, dict[tuple[str, str], Finding]()
        end = time.monotonic() + 60 * minutes
        try:
            while True:
                for worker in workers:
                    stop = time.monotonic() >= end or (last is not None and numbers > last)
                    if worker.number is None and not stop:
                        worker.start(numbers, cases(numbers))
                        numbers += 1
                busy = [worker for worker in workers if worker.number is not None]
                if not busy:
                    return done, list(found.values())
                wait(
                    [w.answers for w in busy],
                    timeout=max(0.01, min(w.deadline for w in busy) - time.monotonic()),
                )
                for worker in busy:
                    number, finding = worker.number, worker.outcome()
                    done += worker.number is None
                    if finding is not None and finding.key not in found:
                        assert number is not None
                        found[finding.key] = finding
                        kept = _keep(keep, finding, cases(number), seed)
                        said = f"case {number}: {finding.kind} {finding.frame}, kept in {kept}"
                        tell(f"{said}\n  {finding.detail[-300:]}")
        finally:
            for worker in workers:
                worker.end()


class _Worker:
    def __init__(self, scratch: Path, name: int, command: Command | None, hang: float) -> None:
        self.command, self.hang = command, hang
        self.folder, self.crashes = scratch / f"case{name}", scratch / f"crash{name}"
        self.number: int | None = None  # of the case that it is at
        self.deadline = 0.0
        self.case = Case()
        self.spawn()

    def spawn(self) -> None:
        context = get_context("spawn")
        self.left = _CASES
        ours, theirs = context.Pipe()
        self.answers: Connection = ours
        self.process = context.Process(target=work, args=(theirs, str(self.crashes), self.command, self.hang))
        self.process.start()
        theirs.close()

    def start(self, number: int, case: Case) -> None:
        if not self.left or not self.process.is_alive():
            self.end()
            self.spawn()
        self.left -= 1
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        case.write(self.folder)
        self.number, self.case, self.deadline = number, case, time.monotonic() + _BLOCKED
        self.answers.send((str(self.folder), case.arguments, case.stdin))

    def outcome(self) -> Finding | None:
        """The failure of the case, if there is one; None while ``number`` is still at work."""
        number = self.number
        assert number is not None
        if self.answers.poll():
            self.number = None
            try:
                status, shown, children = self.answers.recv()
            except (EOFError, ConnectionResetError):
                self.process.join()
                code = self.process.exitcode or 0
                name = signal.Signals(-code).name if code < 0 else f"exit status {code}"
                kind = "hang" if code == -signal.SIGPROF else "crash"
                return Finding(number, kind, _frame(self.log(), first=True), f"{name}\n{self.log()[:2000]}")
            if children > self.hang:
                return Finding(number, "hang", "children", f"{children:.0f} seconds of children")
            return self.judged(number, status, shown)
        if time.monotonic() < self.deadline:
            return None
        self.number = None
        if self.process.pid is not None and self.process.is_alive():
            os.kill(self.process.pid, signal.SIGUSR1)
        for _ in range(30):
            time.sleep(0.1)
            if log := self.log():
                break
        self.end()
        return Finding(number, "hang", _frame(log, first=True), f"it waits\n{log[:2000]}")

    def judged(self, number: int, status: object, shown: str) -> Finding | None:
        if shown:
            return Finding(number, "traceback", f"{_error(shown)} {_frame(shown)}", shown)
        messages = (self.folder / ".stderr").read_text(errors="replace")
        place = self.case.arguments[0]
        if status not in (0, 1, 2):
            return Finding(number, "status", f"{place} {status}", messages[-300:])
        if "Traceback (most recent call last)" in messages:
            return Finding(number, "traceback", f"{_error(messages)} {_frame(messages)}", messages)
        if status == 2 and (not messages.strip() or len(messages) > _LONG):
            problem = "long" if messages.strip() else "none"
            return Finding(number, "message", f"{place}: {problem}", messages[:300])
        touched = self.touched(status)
        return Finding(number, "files", f"{place}: {touched}", messages[-300:]) if touched else None

    def touched(self, status: object) -> str:
        """The file that was changed, removed or left over against the rules, if any."""
        case = self.case
        may = set() if status == 2 and len(case.outputs) == 1 else case.outputs
        for name, data in case.files.items():
            path = self.folder / name
            if not path.is_file():
                return f"{name} is gone"
            if name not in may and path.read_bytes() != data:
                return f"{name} is changed"
        known = {".stdout", ".stderr", *case.files, *case.folders, *(Path(name).parts[0] for name in may)}
        left = sorted(path.name for path in self.folder.iterdir() if path.name not in known)
        return f"left over: {', '.join(left)}" if left else ""

    def log(self) -> str:
        return self.crashes.read_text(errors="replace") if self.crashes.exists() else ""

    def end(self) -> None:
        """Ends the process, with those that it started."""
        self.answers.close()
        if self.process.pid is not None and self.process.exitcode is None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:  # it has no group of its own yet
                self.process.kill()
        self.process.join()


def _frame(text: str, *, first: bool = False) -> str:
    """The last frame of shardlog in a traceback; ``first``: the inner frames stand first."""
    found = []
    for file, line, function in _FRAME.findall(text):
        path = Path(file)
        if path.is_relative_to(PACKAGE) and not path.is_relative_to(PACKAGE / "tests"):
            found.append(f"{path.relative_to(PACKAGE)}:{line} {function}")
    return "nowhere" if not found else found[0] if first else found[-1]


def _error(shown: str) -> str:
    """The type of the error at the end of a traceback."""
    names = re.findall(r"(?m)^([\w.]*(?:Error|Exception|Exit|Interrupt|Warning|Iteration)\w*)", shown)
    return names[-1] if names else "error"


def _keep(keep: Path, finding: Finding, case: Case, seed: int) -> Path:
    """Writes the case into a folder of its own, with the command and what came of it. Returns the folder."""
    slug = re.sub(r"[^\w.]+", "-", f"{finding.kind}-{finding.frame}").strip("-")[:100]
    folder = keep / slug
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    case.write(folder)
    command = join(["shardlog", *case.arguments]) + (f" < {case.stdin}" if case.stdin else "")
    text = (
        f"seed {seed}, case {finding.number}\n{command}\n\n{finding.kind} {finding.frame}\n{finding.detail}\n"
    )
    (folder / "finding.txt").write_text(text, encoding="utf-8", errors="surrogateescape")
    return folder

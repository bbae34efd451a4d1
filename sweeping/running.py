"""Carrying out the tasks of a sweep. Each has a file for its result, which is complete or absent."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Executor, Future, wait
from dataclasses import dataclass
from pathlib import Path

from ..errors import ShardlogError
from ..outputs import write
from .tasks import Task, perform

ATTEMPTS = 5  # at a task whose workers end: it may be the task that ends them


@dataclass(frozen=True)
class Finished:
    """How a sweep ended: the tasks that were done ``now``, those done ``before``, and those that were
    ``not_done`` because their workers ended, with the last error."""

    now: int
    before: int
    not_done: tuple[tuple[Task, str], ...] = ()


def file_of(folder: Path, task: Task) -> Path:
    """The file with the result of a task."""
    return folder / f"{task.key}.json"


def carry_out(
    tasks: Sequence[Task],
    folder: Path,
    executor: Executor,
    at_once: int,
    progress: Callable[[str, float], None] | None = None,
    *,
    carry: Callable[[Task], str] = perform,
    attempts: int = ATTEMPTS,
) -> Finished:
    """Carries out the tasks that have no result in a folder, at most ``at_once`` at a time. If a worker ends,
    its task is done again. ``carry`` is a function that can be pickled.

    Raises ShardlogError if a file cannot be written.
    """
    tell = progress or (lambda stage, done: None)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ShardlogError(f"cannot write: {error.strerror}", where=str(folder)) from None
    waiting = deque(task for task in tasks if not file_of(folder, task).exists())
    before, tried, running = len(tasks) - len(waiting), Counter[str](), dict[Future[str], Task]()
    not_done, now = list[tuple[Task, str]](), 0
    while waiting or running:
        tell(f"{before + now:,} of {len(tasks):,} plans", (before + now) / len(tasks))
        while waiting and len(running) < at_once:
            task = waiting.popleft()
            running[executor.submit(carry, task)] = task
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            task = running.pop(future)
            try:
                result = future.result()
            except (Exception, CancelledError) as error:
                tried[task.key] += 1
                if tried[task.key] < attempts:
                    waiting.append(task)
                else:
                    not_done.append((task, f"{type(error).__name__}: {error}"))
                continue
            write(file_of(folder, task), result.encode())
            now += 1
    return Finished(now, before, tuple(not_done))

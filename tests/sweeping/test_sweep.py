"""Sweeps: the tasks of a file, workers that end, what is done again, and the table."""

from __future__ import annotations

import csv
import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from shardlog import outputs
from shardlog.autosharding.options import AutoOptions
from shardlog.autosharding.pictures import PlotPoint, picture
from shardlog.autosharding.plan import front
from shardlog.cli import main
from shardlog.sweeping import running
from shardlog.sweeping.asked import read_sweep
from shardlog.sweeping.executors import Processes
from shardlog.sweeping.running import carry_out, file_of
from shardlog.sweeping.tasks import Task

MODULE = """func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<64x32xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
"""


def _tasks(count: int) -> list[Task]:
    return [Task(f"model{n}", b"", AutoOptions(devices=8)) for n in range(count)]


# ---- Tasks ----------------------------------------------------------------------------------------------


def test_all_combinations_are_tasks(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(MODULE)
    (tmp_path / "sweep.toml").write_text(
        'models = ["m.mlir"]\nmeshes = ["data=8", "data=2,model=4"]\ndevices = [4]\n'
        'topologies = ["h100", "v5e"]\nmemory = ["none", "1GiB"]\nkeep = ["arg0=data"]\ncompare = false\n'
    )
    tasks = read_sweep(tmp_path / "sweep.toml")
    assert len(tasks) == len({task.key for task in tasks}) == 3 * 2 * 2
    assert {(task.options.mesh, task.options.devices) for task in tasks} == {
        *(("data=8", None), ("data=2,model=4", None), (None, 4))
    }
    assert {task.options.memory for task in tasks} == {None, 2**30}
    assert all(task.options.keep == ("arg0=data",) and not task.options.compare for task in tasks)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('models = ["m.mlir"\nmeshes = []\n', "sweep.toml:2:1: error: not TOML"),
        ("", "sweep.toml: error: a sweep without models"),
        ('models = ["m.mlir"]\n\nmodls = ["m.mlir"]\n', "sweep.toml:3: error: a sweep has no modls"),
        ('models = ["m.mlir"]\n[meshes]\na = 1\n', "sweep.toml:2: error: meshes is not a list"),
        ("models = []\n", "sweep.toml:1: error: models is not a list with items"),
        ('models = [\n  "m.mlir",\n  "none.mlir",\n]\n', "none.mlir: cannot read the module"),
        ('models = ["none.mlir"]\n', "sweep.toml:1: error: "),
        ('models = ["m.mlir", 3]\n', "sweep.toml:1: error: 3 is not the path of a module"),
        ('models = ["m.mlir"]\nmeshes = [\n "data=8",\n "data=x"]\n', "sweep.toml:4: error: not a mesh"),
        ('models = ["m.mlir"]\nmeshes = [8]\n', "sweep.toml:2: error: 8 is not a mesh"),
        ('models = ["m.mlir"]\ndevices = [8, 0]\n', "sweep.toml:2: error: 0 devices"),
        ('models = ["m.mlir"]\ndevices = ["8"]\n', "sweep.toml:2: error: '8' devices"),
        (
            'models = ["m.mlir"]\ntopologies = ["h100", "h1000"]\n',
            "sweep.toml:2: error: there is no topology",
        ),
        ('models = ["m.mlir"]\nmemory = ["1GiB",\n"much"]\n', "sweep.toml:3: error: 'much' is not a size"),
        ('models = ["m.mlir"]\naxes = 7\n', "sweep.toml:2: error: meshes of 7 axes"),
        ('models = ["m.mlir"]\ncompare = "no"\n', "sweep.toml:2: error: compare is 'no'"),
        ('models = ["m.mlir"]\nkeep = [1]\n', "sweep.toml:2: error: [1] is neither"),
        ('models = ["m.mlir"]\nmethod = "guess"\n', "sweep.toml:2: error: there is no method"),
        (None, "sweep.toml: error: cannot read"),
    ],
)
def test_a_bad_file_is_one_message_with_its_line(
    text: str | None, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.mlir").write_text(MODULE)
    path = tmp_path / "sweep.toml"
    if text is not None:
        path.write_text(text)
    assert main(["sweep", str(path)]) == 2
    message = capsys.readouterr().err
    assert said in message
    assert message.count("error:") == 1
    assert not (tmp_path / "sweep").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--workers", "0"], "0 workers"),
        (["--address", "tcp://127.0.0.1:1"], "processes have no address"),
        (["-o", "/proc/sweep"], "/proc/sweep: error: cannot write"),
    ],
)
def test_bad_workers_are_one_message(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.mlir").write_text(MODULE)
    (tmp_path / "sweep.toml").write_text('models = ["m.mlir"]\ndevices = [4]\n')
    assert main(["sweep", str(tmp_path / "sweep.toml"), *words]) == 2
    assert said in capsys.readouterr().err


# ---- Workers that end -----------------------------------------------------------------------------------


class Simulated(Executor):
    """Workers that take a simulated time for each task. Some end: before their task is done, or after it but
    before its result is there."""

    def __init__(self, count: int, ends: set[int]) -> None:
        self.pool, self.ends = ThreadPoolExecutor(count), ends
        self.lock, self.submitted, self.done = threading.Lock(), 0, Counter[str]()

    def submit(self, function: Any, /, *args: Any, **keywords: Any) -> Future[Any]:
        self.submitted += 1
        return self.pool.submit(self._work, args[0], self.submitted)

    def _work(self, task: Task, number: int) -> str:
        time.sleep(random.Random(number).uniform(0, 2e-3))
        if number in self.ends and number % 2:
            raise BrokenProcessPool("ended")
        with self.lock:
            self.done[task.key] += 1
        if number in self.ends:
            raise BrokenProcessPool("ended")
        return f"{task.model}\n"


def _complete(tasks: list[Task], folder: Path) -> None:
    files = {path.name for path in folder.iterdir()}
    assert files == {file_of(folder, task).name for task in tasks}
    for task in tasks:
        assert file_of(folder, task).read_text() == f"{task.model}\n"


def test_a_thousand_tasks_survive_two_hundred_workers_that_end(tmp_path: Path) -> None:
    tasks = _tasks(1000)
    ends = set(random.Random(0).sample(range(1, 1201), 200))
    executor, told = Simulated(8, ends), list[str]()
    finished = carry_out(tasks, tmp_path, executor, 8, lambda what, done: told.append(what), attempts=50)
    assert (finished.now, finished.before, finished.not_done) == (1000, 0, ())
    assert executor.submitted == 1200  # only the tasks of workers that ended are done again
    _complete(tasks, tmp_path)
    assert told[0] == "0 of 1,000 plans"


def test_what_is_done_is_not_done_again_if_the_sweep_itself_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep is ended 200 times: before a file is written, while it has its temporary name, and after."""

    class EndError(BaseException):
        pass

    tasks, drawn, replace = _tasks(1000), random.Random(0), Path.replace
    carried, ends = list[str](), 0

    def carry(task: Task) -> str:
        assert not file_of(tmp_path, task).exists()
        carried.append(task.key)
        return f"{task.model}\n"

    class Here(Executor):
        def submit(self, function: Any, /, *args: Any, **keywords: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_result(function(*args))
            return future

    def ending(self: Path, target: Any) -> Path:
        early = drawn.random() < 0.5
        if left[0] <= 0 and early:
            raise EndError
        changed = replace(self, target)
        left[0] -= 1
        if left[0] < 0:
            raise EndError
        return changed

    monkeypatch.setattr(Path, "replace", ending)
    left = [0]
    for _ in range(200):
        left[0] = drawn.randrange(1, 6)
        with pytest.raises(EndError):
            carry_out(tasks, tmp_path, Here(), 2, carry=carry)
        ends += 1
    monkeypatch.setattr(Path, "replace", replace)
    finished = carry_out(tasks, tmp_path, Here(), 2, carry=carry)
    assert finished.now + finished.before == 1000
    _complete(tasks, tmp_path)
    assert len(carried) <= 1000 + 2 * ends  # again at most what was under way


def _end_at_first(task: Task) -> str:
    """Ends its process at the first attempt at some tasks."""
    mark = Path(task.options.keep[0]) / f"{task.model}.tried"
    first = not mark.exists()
    mark.touch()
    if first and int(task.model.removeprefix("model")) % 3 == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{task.model}\n"


def test_the_task_of_a_killed_process_is_done_again(tmp_path: Path) -> None:
    options = AutoOptions(devices=8, keep=(str(tmp_path),))
    tasks = [Task(f"model{n}", b"", options) for n in range(6)]
    with Processes(2) as executor:
        finished = carry_out(tasks, tmp_path / "out", executor, 2, carry=_end_at_first)
    assert (finished.now, finished.not_done) == (6, ())
    _complete(tasks, tmp_path / "out")


def _always_end(task: Task) -> str:
    raise BrokenProcessPool("it ended")


def test_a_task_that_always_ends_its_worker_is_named(tmp_path: Path) -> None:
    with ThreadPoolExecutor(1) as executor:
        finished = carry_out(_tasks(2), tmp_path, executor, 1, carry=_always_end)
    assert [task.model for task, _ in finished.not_done] == ["model0", "model1"]
    assert finished.not_done[0][1] == "BrokenProcessPool: it ended"
    assert not list(tmp_path.iterdir())
    assert running.ATTEMPTS > 1


# ---- Results --------------------------------------------------------------------------------------------


@pytest.fixture
def sweep(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "m.mlir").write_text(MODULE)
    path = tmp_path / "sweep.toml"
    path.write_text(
        'models = ["m.mlir"]\nmeshes = ["data=2"]\ntopologies = ["h100"]\n'
        'memory = ["none", "17KiB"]\ncompare = false\n'
    )
    yield path


def test_a_sweep_ends_with_a_table_and_a_plot_and_goes_on(
    sweep: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sweep", str(sweep), "--workers", "1"]) == 0
    said = capsys.readouterr().out
    assert "2 tasks; table.csv and plot.svg are in" in said
    folder = sweep.with_suffix("")
    rows = list(csv.DictReader((folder / "table.csv").open()))
    assert [row["model"] for row in rows] == ["m.mlir"] * 2
    assert float(rows[0]["seconds"]) > 0
    assert rows[1]["refused"] == "" or "KiB" in rows[1]["refused"]
    ElementTree.parse(folder / "plot.svg")
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    next(folder.glob("*.json")).unlink()
    assert main(["sweep", str(sweep), "--workers", "1"]) == 0
    assert "1 task, 1 were done before" in capsys.readouterr().out
    after = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.json")}
    assert before.keys() == after.keys()
    assert len(before.items() & after.items()) == 1


def test_a_damaged_result_is_named(sweep: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (task, *_) = read_sweep(sweep)
    folder = sweep.with_suffix("")
    for each in read_sweep(sweep):
        outputs_of = file_of(folder, each)
        outputs_of.parent.mkdir(exist_ok=True)
        outputs.write(outputs_of, b"{}")
    assert main(["sweep", str(sweep), "--workers", "1"]) == 2
    assert f"{file_of(folder, task)}: error: not the result of a task" in capsys.readouterr().err


def test_a_front_has_what_nothing_beats() -> None:
    points = [
        PlotPoint("a", name, seconds, peak) for name, seconds, peak in (("x", 1, 9), ("y", 2, 9), ("z", 3, 1))
    ]
    assert [point.label for point in front(points, lambda point: point.cost)] == ["x", "z"]
    tree = ElementTree.fromstring(picture(points, "a < b"))
    texts = [element.text for element in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"x", "y", "z", "a < b"} <= set(texts)
    assert len(list(tree.iter("{http://www.w3.org/2000/svg}circle"))) == 3


def test_labels_stay_in_the_picture_and_of_many_in_one_place_a_few_are_named() -> None:
    points = [PlotPoint("a", f"plan {number}", 1.0, 9) for number in range(9)]
    long = "a long name " * 8
    tree = ElementTree.fromstring(picture([*points, PlotPoint("a", long, 2.0, 9)], "title"))
    texts = {text.text: text for text in tree.iter("{http://www.w3.org/2000/svg}text")}
    assert [name for name in texts if name and ("plan " in name or "others" in name)] == [
        "plan 0",
        "plan 1",
        "plan 2",
        "and 6 others",
    ]
    assert texts[long].get("text-anchor") == "end"
    assert len(list(tree.iter("{http://www.w3.org/2000/svg}circle"))) == 10

"""Sweeps on local clusters of Ray and Dask with two workers. They need the extras: `make test-clusters`."""

from __future__ import annotations

import csv
import importlib.util
import os
import signal
from pathlib import Path

import pytest
from shardlog.autosharding.options import AutoOptions
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.sweeping.executors import workers
from shardlog.sweeping.running import carry_out, file_of
from shardlog.sweeping.tasks import Task

from .test_sweep import MODULE

_PACKAGES = {"ray": "ray", "dask": "distributed"}


@pytest.fixture(params=_PACKAGES)
def cluster(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if importlib.util.find_spec(_PACKAGES[name]) is None:
        pytest.skip(f"needs the extra {name}")
    return name


def test_a_sweep_is_the_same_on_a_cluster(cluster: str, tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(MODULE)
    path = tmp_path / "sweep.toml"
    path.write_text(
        'models = ["m.mlir"]\nmeshes = ["data=2", "data=4"]\ntopologies = ["h100", "v5e"]\ncompare = false\n'
    )
    tables = []
    for kind in (cluster, "processes"):
        folder = tmp_path / kind
        assert main(["sweep", str(path), "--on", kind, "--workers", "2", "-o", str(folder)]) == 0
        tables.append(list(csv.DictReader((folder / "table.csv").open())))
    assert len(tables[0]) == 4
    assert tables[0] == tables[1]


def _end_at_first(task: Task) -> str:
    """Ends its process at the first attempt at some tasks."""
    mark = Path(task.options.keep[0]) / f"{task.model}.tried"
    first = not mark.exists()
    mark.touch()
    if first and int(task.model.removeprefix("model")) % 4 == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"{task.model}\n"


def test_the_task_of_a_killed_worker_is_done_again(cluster: str, tmp_path: Path) -> None:
    options = AutoOptions(devices=8, keep=(str(tmp_path),))
    tasks = [Task(f"model{n}", b"", options) for n in range(8)]
    with workers(cluster, 2) as (executor, at_once):
        assert at_once == 2
        finished = carry_out(tasks, tmp_path / "out", executor, at_once, carry=_end_at_first)
    assert (finished.now, finished.not_done) == (8, ())
    for task in tasks:
        assert file_of(tmp_path / "out", task).read_text() == f"{task.model}\n"


def test_a_cluster_that_is_not_there_is_one_message(cluster: str) -> None:
    address = "tcp://127.0.0.1:9" if cluster == "dask" else "127.0.0.1:9"
    with pytest.raises(ShardlogError, match="no cluster"), workers(cluster, 2, address):
        pass


@pytest.mark.parametrize("kind", _PACKAGES)
def test_without_the_extra_it_is_named(kind: str) -> None:
    if importlib.util.find_spec(_PACKAGES[kind]) is not None:
        pytest.skip("it is installed")
    with pytest.raises(ShardlogError, match="is not installed"), workers(kind):
        pass

"""The plugin for pytest, in pytest runs of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

LAYER = """
import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec as P

mesh = AbstractMesh((8,), ("data",), axis_types=(AxisType.Auto,))


def array(*shape, spec):
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))


def layer(x, w):
    return jnp.tanh(x @ w)


ARGUMENTS = array(64, 512, spec=P("data", None)), array(512, 2048, spec=P(None, "data"))
"""


def pytest_run(folder: Path, text: str, *arguments: str) -> tuple[int, str]:
    """The exit status of pytest on a file of tests, and what it prints."""
    (folder / "test_it.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "shardlog.testing", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *arguments, "test_it.py"],
        cwd=folder,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_assertions(tmp_path: Path) -> None:
    status, said = pytest_run(
        tmp_path,
        LAYER
        + """
def test_passes(shardlog):
    shardlog.assert_sharded(layer, ARGUMENTS, {"x": P("data", None), "result": '[{}, {"data"}]'})
    shardlog.assert_no_collective("all-reduce")
    shardlog.assert_collectives({"all-gather": 1})

def test_is_sharded_otherwise(shardlog):
    shardlog.assert_sharded(layer, ARGUMENTS, {"x": P(None, "data")})

def test_has_a_gather(shardlog):
    shardlog.run(layer, *ARGUMENTS)
    shardlog.assert_no_collective("all-gather")

def test_has_another_number(shardlog):
    shardlog.run(layer, *ARGUMENTS)
    shardlog.assert_collectives({"all-reduce": 1})

@pytest.mark.shardlog(topology="v5e")
class TestMarked:
    @pytest.mark.shardlog(keep_shardings=True, topology="h100")
    def test_options(self, shardlog):
        shardlog.run(layer, *ARGUMENTS)
        shardlog.assert_no_collective("all-gather")

def test_bad_kind(shardlog):
    shardlog.run(layer, *ARGUMENTS)
    shardlog.assert_no_collective("allgather")

def test_nothing_ran(shardlog):
    shardlog.assert_no_collective("all-gather")
""",
        "--strict-markers",
    )
    assert status == 1
    assert "6 failed, 1 passed" in said
    for part in (
        'expected [{}, {"data"}], is [{"data"}, {}]',
        '"data" comes from the annotation of %arg0',
        "program: least bytes",
        'all-gather 0 over "data": 114,688 bytes from each of 8 devices, once',
        "0 all-reduce, not 1, 1 all-gather, not 0",
        "program: as decided, moved in least time on h100",
        "did you mean all-gather?",
        "no program was run in this test",
    ):
        assert part in said, said


def test_snapshots(tmp_path: Path) -> None:
    text = (
        LAYER
        + "def test_layer(shardlog):\n    shardlog.run(layer, *ARGUMENTS)\n    shardlog.assert_snapshot()\n"
    )
    status, said = pytest_run(tmp_path, text)
    assert (status, "pytest --shardlog-update writes it" in said) == (1, True)
    assert pytest_run(tmp_path, text, "--shardlog-update")[0] == 0
    snapshot = tmp_path / "__shardlog__" / "test_it" / "test_layer.toml"
    assert '"x" = \'[{"data"}, {}]\'' in snapshot.read_text()
    assert pytest_run(tmp_path, text)[0] == 0
    status, said = pytest_run(tmp_path, text.replace('P("data", None)', 'P(None, "data")'))
    assert (status, 'dim 1 is sharded on "data"' in said) == (1, True)


def test_pytest_starts_without_what_only_tests_need(tmp_path: Path) -> None:
    text = "import sys\n\ndef test_it():\n    assert not {'jax', 'jaxlib', 'numpy'} & set(sys.modules)\n"
    assert pytest_run(tmp_path, text)[0] == 0


def test_what_is_wrong_with_a_test(tmp_path: Path) -> None:
    status, said = pytest_run(
        tmp_path,
        LAYER
        + """
def test_axis(shardlog):
    shardlog.run(layer, *ARGUMENTS)
    shardlog.assert_no_collective("all-reduce", axis="dat")

def test_sharding(shardlog):
    shardlog.assert_sharded(layer, ARGUMENTS, {"x": 3})

def test_arguments(shardlog):
    shardlog.assert_sharded(layer, ARGUMENTS[0], {"x": P("data", None)})

@pytest.mark.shardlog("v5e")
def test_marker(shardlog):
    shardlog.run(layer, *ARGUMENTS)

@pytest.mark.shardlog(topologyy="v5e")
def test_misspelt(shardlog):
    shardlog.run(layer, *ARGUMENTS)
""",
    )
    assert status == 1
    for message in (
        "there is no axis 'dat'",
        "expected['x']: error: 3 is not a sharding",
        "assert_sharded: error: args is of type ShapeDtypeStruct",
        "marker shardlog: error: 'v5e' has no name",
        "marker shardlog: error: there is no option topologyy\n  hint: did you mean topology?",
    ):
        assert message in said
    assert "raise ShardlogError" not in said

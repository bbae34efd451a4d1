"""What ops take on machines that are no GPUs: kernels, lanes, memory near the cores."""

from __future__ import annotations

from pathlib import Path

import pytest
import shardlog
from shardlog.cost.machine import MACHINES, OPS, machine
from shardlog.errors import ShardlogError
from shardlog.measuring.data import read_rows
from shardlog.measuring.judging import estimated, judged

from .test_kernels import LOOP, SORT, UNARY

DATA = Path(__file__).parents[1] / "data"


def seconds(text: str, topology: str = "v5e") -> float:
    """The seconds that a program takes."""
    return float(shardlog.run(text).partition().cost(topology).seconds)


def test_a_small_kernel_takes_the_least_and_single_elements_none() -> None:
    least = machine("v5e").ops["least"]
    assert seconds(UNARY.format(64, "f32", "negate")) == pytest.approx(least, rel=0.01)
    # In each turn the sine is one; the counter is not.
    assert seconds(LOOP) == pytest.approx(100 * least, rel=0.01)


def test_functions_take_lanes_and_narrow_types_are_widened() -> None:
    size = 1 << 24
    negated, narrow, sine = (
        seconds(UNARY.format(size, element, name))
        for element, name in (("f32", "negate"), ("bf16", "negate"), ("bf16", "sine"))
    )
    assert negated == pytest.approx(2 * 4 * size / machine("v5e").ops["memory"], rel=0.02)
    assert narrow == pytest.approx(negated / 2, rel=0.02)
    assert sine > narrow


def test_sorts_take_long_on_cpus() -> None:
    assert seconds(SORT.format(4096, "f32"), "cpu") > 100 * seconds(SORT.format(4096, "f32"))


@pytest.mark.parametrize(("name", "most"), [("v5e", 2.0), ("cpu", 2.4)])
def test_what_is_said_is_near_what_was_fitted(name: str, most: float) -> None:
    rows = read_rows([str(DATA / f"{name}_kernels.json.gz")])[::3]
    (_, found) = judged([(row, estimated(row.text, name)) for row in rows])[-1]
    assert found.all.error < most


def test_numbers_of_ops_are_all_there_or_none(tmp_path: Path) -> None:
    text = (MACHINES / "v5e.toml").read_text(encoding="utf-8")
    assert set(machine("v5e").ops) == set(OPS)
    file = tmp_path / "mine.toml"
    line = next(line for line in text.splitlines() if line.startswith("lanes = 9"))
    for changed, message in (("", "there is no ops.lanes"), ("lanes = 9", "ops.lanes is 9")):
        file.write_text(text.replace(line, changed), encoding="utf-8")
        with pytest.raises(ShardlogError, match=message):
            machine(str(file))

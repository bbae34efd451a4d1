"""JAX programs and models, partitioned as derived and under random shardings, beside one device."""

from __future__ import annotations

from random import Random
from typing import Any

import jax
import numpy as np
import pytest
import shardlog
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy
from shardlog.executing.comparing import compare
from shardlog.executing.execution import alone_on, run_partitioned
from shardlog.executing.values import BoundaryValue, boundary
from shardlog.importers.sources.text import make_context
from shardlog.program.mlir.modules import symbols
from shardlog.program.shardings import read_mesh
from shardlog.session import Session

from ..support import models
from ..support.drawing import by_day, in_turn
from ..support.models.expert_parallel import expert_parallel
from ..support.programs import PROGRAMS, lowered

MESH = 'sdy.mesh @mesh = <["data"=2, "model"=4]>'
BLOCKS = {"stablehlo.while", "stablehlo.case", "stablehlo.if", "func.func"}


def inputs(values: list[BoundaryValue]) -> list[Any]:
    """Positive numbers; small integers."""
    rng = np.random.default_rng(0)
    return [
        rng.integers(0, 4, v.shape).astype(v.dtype)
        if v.dtype.kind in "biu"
        else rng.random(v.shape).astype(v.dtype)
        for v in values
    ]


def assert_right(result: Session, *, keep: bool = False) -> None:
    """The partitioned program gives what the program gives on one device."""
    arrays = inputs(boundary(result.result)[0])
    partitioned = result.partition(keep_shardings=keep)
    devices = jax.devices("cpu")[: partitioned.axes.count]
    got = run_partitioned(result.result, partitioned.compile(devices), arrays)
    assert [
        str(c) for c in compare(result.result, alone_on(result.result, devices), arrays, got) if not c.right
    ] == []


def scattered(text: str, seed: int) -> str:
    """A module with random closed shardings on a third of what its ops give."""
    random = Random(seed)
    with make_context():
        module = ir.Module.parse(text)
        if not symbols(module, "sdy.mesh"):
            module = ir.Module.parse(text.replace("{\n", f"{{\n{MESH}\n", 1))
        ((name, mesh),) = symbols(module, "sdy.mesh").items()
        axes = list(read_mesh(name, mesh.attributes["mesh"], "").axes)

        def closed(type_: Any) -> Any:
            shape = list(ir.RankedTensorType(type_).shape)
            dims: list[list[str]] = [[] for _ in shape]
            left = list(shape)
            for axis, size in random.sample(axes, len(axes)):
                fits = [d for d, n in enumerate(left) if n >= size]
                if fits and random.random() < 0.8:
                    d = random.choice(fits)
                    dims[d].append(axis)
                    left[d] //= size
            parts = [
                sdy.DimensionShardingAttr.get([sdy.AxisRefAttr.get(a) for a in dim], is_closed=True)
                for dim in dims
            ]
            return sdy.TensorShardingAttr.get(name, parts)

        def block(ops: Any) -> None:
            for op in ops:
                results = list(op.operation.results)
                tensors = all(isinstance(r.type, ir.RankedTensorType) for r in results)
                if (
                    results
                    and tensors
                    and op.operation.name.startswith("stablehlo.")
                    and random.random() < 0.33
                ):
                    shardings = [closed(result.type) for result in results]
                    op.attributes["sdy.sharding"] = sdy.TensorShardingPerValueAttr.get(shardings)
                if op.operation.name in BLOCKS:
                    for region in op.regions:
                        block(region.blocks[0].operations)

        block(module.body.operations)
        return str(module)


@pytest.mark.parametrize("name", in_turn(0, PROGRAMS))
def test_programs_as_derived(name: str) -> None:
    assert_right(shardlog.run(lowered(name, 2).as_text()))


@pytest.mark.parametrize("name", in_turn(1, [name for name in PROGRAMS if name != "shard_map"]))
def test_programs_under_random_shardings(name: str) -> None:
    assert_right(shardlog.run(scattered(lowered(name, 3).as_text(), 3)), keep=True)


DAY = ["grouped_query", "mixture_of_experts", "resnet", "recommender"]


@pytest.mark.parametrize("name", by_day(DAY, models.MODELS))
def test_models(name: str) -> None:
    assert_right(shardlog.run(models.text(name, depth=1, scan=False, train=False)))


def test_experts_on_their_own_devices() -> None:
    assert_right(shardlog.run(expert_parallel(depth=1, scan=False, train=False).as_text()))

"""Programs compiled for TPU, ahead of time: what we decide for them is what that compile decided."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from jax.experimental import topologies
from jax.sharding import Mesh
from shardlog.program.mlir.modules import ops_in

from ..support.programs import PROGRAMS, lowered, on
from .test_views import boundary, run

pytestmark = pytest.mark.tpu


@pytest.fixture(scope="module", autouse=True)
def v5e() -> Iterator[Mesh]:
    """The sixteen devices of a v5e:4x4, none of which is needed."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("TPU_SKIP_MDS_QUERY", "1")
        environment.setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
        devices = topologies.get_topology_desc("v5e:4x4", "tpu").devices
        mesh = Mesh(np.array(devices).reshape(4, 4), ("data", "model"))
        with on(mesh):
            yield mesh


@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled(name: str) -> None:
    program = lowered(name, 0)
    result = run(program, view="compiled")
    agreement = result.agreement()
    assert agreement is None or agreement.equal == agreement.ops, str(agreement)
    assert boundary(result) == boundary(program.compile())


def test_lines_are_the_users() -> None:
    result = run(lowered("train step", 0), view="compiled")
    products = [op for op in ops_in(result.module) if op.operation.name.startswith("stablehlo.dot")]
    assert len(products) == 5
    assert all("programs.py" in str(op.location) for op in products)

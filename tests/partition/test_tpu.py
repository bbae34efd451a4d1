"""Partitioned programs compile for a TPU, ahead of time: no device is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shardlog
from jax.experimental import topologies
from shardlog.partition.forms import Form

from ..support.programs import PROGRAMS, lowered

# What LAPACK does on a CPU, TPUs do otherwise: the program that JAX lowers for a CPU calls it.
CPU_ONLY = {"cholesky", "qr", "eigh"}


@pytest.mark.tpu
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in CPU_ONLY])
def test_programs_compile_for_v5e(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from jaxlib import _jax, xla_client

    monkeypatch.setenv("TPU_SKIP_MDS_QUERY", "1")
    monkeypatch.setenv("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
    devices: Any = topologies.get_topology_desc("v5e:2x4", "tpu").devices
    forms: tuple[Form, ...] = ("sdy-manual", "manual")
    for form in forms:
        program = shardlog.run(lowered(name, 2).as_text()).partition(form)
        used = devices[: program.axes.count]
        options: Any = xla_client.CompileOptions()
        options.num_replicas, options.num_partitions = 1, len(used)
        options.executable_build_options.use_spmd_partitioning = True
        options.executable_build_options.use_shardy_partitioner = form == "sdy-manual"
        numbers = np.asarray([[device.id for device in used]])
        options.device_assignment = xla_client.DeviceAssignment.create(numbers)
        client: Any = used[0].client
        compiled = client.compile(program.module, _jax.DeviceList(tuple(used)), compile_options=options)
        assert compiled.hlo_modules()

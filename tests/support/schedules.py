"""Schedules for the JAX models, as PartIR's users write them."""

from __future__ import annotations

import re

from . import models

# Batch, then Megatron, then ZeRO; and what the models have instead of Megatron. Constraints inside of the
# transformer and the ResNet come first.
SCHEDULES = {
    "transformer": """
        batch: batch -> data;
        megatron: params.layers.*.query[1], params.layers.*.key[1], params.layers.*.value[1],
                  params.layers.*.up[1], params.layers.*.out[0], params.layers.*.down[0],
                  params.embedding[0] -> model;
        zero: params, m, v -> fsdp
    """,
    "recommender": """
        batch: batch -> (data, fsdp);
        tables: params.tables.*[0], params.bottom.0[1], params.top.0[1] -> model;
        zero: params -> data, m -> data, v -> data
    """,
    "resnet": "batch: batch -> data; zero2: params[replicated] -> fsdp, m, v -> fsdp",
    "lstm": "batch: batch -> data; zero: params, m, v -> fsdp; more: params, m, v -> model",
}
CASES = [(name, scan) for name in SCHEDULES for scan in (False, True) if not (name == "recommender" and scan)]


def bare(name: str, scan: bool) -> str:
    """A train step without annotations of its arguments, with the paths of these."""
    text = models.lower(name, train=True, scan=scan).as_text(debug_info=True)
    return re.sub(r" \{sdy\.sharding = #sdy\.sharding<@mesh, \[[^>]*\]>\}", "", text)


def stacked(schedule: str) -> str:
    """The schedule for scanned layers: one tensor for all of them, with one more dimension."""
    return re.sub(
        r"params\.layers\.\*\.(\w+)\[(\d)\]", lambda m: f"params.layers.{m[1]}[{int(m[2]) + 1}]", schedule
    )


def case(name: str, scan: bool) -> tuple[str, str]:
    """A module and its schedule."""
    schedule = SCHEDULES[name]
    return bare(name, scan), stacked(schedule) if scan else schedule

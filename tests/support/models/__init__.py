"""JAX programs for tests and benchmarks, lowered on abstract values: real structure, small sizes."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from jax.stages import Lowered

from .dense import transformer
from .experts import mixture_of_experts
from .grouped_query import grouped_query
from .recommender import recommender
from .recurrent import decode, lstm
from .vision import resnet, vit

MODELS: dict[str, Callable[..., Lowered]] = {
    "transformer": transformer,
    "grouped_query": grouped_query,
    "mixture_of_experts": mixture_of_experts,
    "vit": vit,
    "resnet": resnet,
    "lstm": lstm,
    "decode": decode,
    "recommender": recommender,
}
# Models with their layers unrolled, or scanned.
LAYERED = [(name, scan) for name in MODELS for scan in (False, True) if not scan or name != "recommender"]


@cache
def lower(name: str, **options: Any) -> Lowered:
    """The model `name` lowered, with keyword arguments depth, scan and train. Lowered once per session."""
    return MODELS[name](**options)


@cache
def text(name: str, **options: Any) -> str:
    """The StableHLO text of the model `name`."""
    return str(lower(name, **options).as_text())

"""Every model's module, op by op, is the one that Shardy's propagation gives."""

from __future__ import annotations

from typing import Any

import pytest
import shardlog

from ..support import models, oracle
from ..support.compare import differences
from ..support.drawing import by_day

pytestmark = pytest.mark.versions

SCANNED = {"transformer", "grouped_query", "mixture_of_experts", "vit", "resnet", "lstm", "decode"}
TRAINED = set(models.MODELS) - {"decode"}

CASES: list[tuple[str, dict[str, Any]]] = [
    (name, {"train": train, "scan": scan})
    for name in models.MODELS
    for train in (False, True)
    for scan in (False, True)
    if (not train or name in TRAINED) and (not scan or name in SCANNED)
]
DEEP: list[tuple[str, dict[str, Any]]] = [
    ("transformer", {"train": train, "scan": scan, "depth": depth})
    for depth in (24, 96)
    for train in (False, True)
    for scan in (False, True)
]


def identifier(value: Any) -> str:
    """A name such as transformer-train-scan-24."""
    if isinstance(value, str):
        return value
    words = ["train" if value["train"] else "forward", "scan" if value["scan"] else "unrolled"]
    return "-".join([*words, *([str(value["depth"])] if "depth" in value else [])])


@pytest.mark.parametrize(("name", "options"), by_day([*CASES, DEEP[3]], CASES + DEEP), ids=identifier)
def test_model(name: str, options: dict[str, Any]) -> None:
    text = models.text(name, **options)
    differing = differences(shardlog.run(text, strict_shardy=True).text(), oracle.propagate(text))
    assert not differing, "\n".join(differing)


@pytest.mark.parametrize("strategy", ["basic", "aggressive", "op-priority"])
@pytest.mark.parametrize("name", models.MODELS)
def test_strategy(name: str, strategy: str) -> None:
    text = models.text(name, train=name in TRAINED)
    expected = oracle.propagate(text, strategy=strategy, closed=False)
    differing = differences(
        shardlog.run(text, strategy=strategy, closed=False, strict_shardy=True).text(), expected
    )
    assert not differing, "\n".join(differing)


def test_lowered() -> None:
    lowered = models.lower("transformer", train=True)
    expected = oracle.propagate(models.text("transformer", train=True))
    differing = differences(shardlog.run(lowered, strict_shardy=True).text(), expected)
    assert not differing, "\n".join(differing)


def test_an_operand_counts_as_used_once_when_its_dead_user_is_gone() -> None:
    """So `abs` propagates at the first level, before the addition takes the columns of %y."""
    tensor, mesh = "tensor<8x8xf32>", "#sdy.sharding<@mesh, "
    text = f"""
        sdy.mesh @mesh = <["x"=4]>
        func.func @main(%x: {tensor} {{sdy.sharding = {mesh}[{{"x", ?}}, {{?}}]>}},
                        %y: {tensor} {{sdy.sharding = {mesh}[{{?}}, {{"x", ?}}]>}}) -> {tensor} {{
          %dead = stablehlo.tanh %x : {tensor}
          %0 = stablehlo.abs %x : {tensor}
          %1 = stablehlo.add %0, %y : {tensor}
          return %1 : {tensor}
        }}"""
    decided = shardlog.run(text, strict_shardy=True).text()
    assert '[{"x"}, {}]' in next(line for line in decided.splitlines() if "stablehlo.abs" in line)
    assert not differences(decided, oracle.propagate(text))

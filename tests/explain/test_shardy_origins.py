"""Every axis of the JAX programs comes from the annotation that Shardy's own record of origins names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import shardlog
from jaxlib.mlir import ir
from shardlog.explain.why import Explainer
from shardlog.importers.graph import Instance
from shardlog.importers.source import symbols

from .. import models, oracle

DEBUG = "sdy-user-priority-propagate{keep-sharding-rules=true debug-sharding-origins=true}"
# What a call becomes while Shardy propagates.
NAMES = {
    "sdy.named_computation": "func.call",
    "sdy.return": "func.return",
    "sdy.constant": "stablehlo.constant",
}


def recorded(text: str) -> list[tuple[str, list[dict[str, str]]]]:
    """The ops of the program as Shardy propagates it, with the origins of each result's axes."""
    found: list[tuple[str, list[dict[str, str]]]] = []

    def walk(region: Any) -> None:
        for op in region.blocks[0].operations:
            name = op.operation.name
            if name != "sdy.data_flow_edge":
                origins: Any = op.attributes.get("sdy.sharding_origins", [])
                entries: Any = [origins] if isinstance(origins, ir.DictAttr) else origins
                axes = [{e.name: e.attr.value for e in entry} for entry in entries]
                found.append((NAMES.get(name, name), axes))
            for inner in op.regions:
                walk(inner)

    with oracle.context():
        module = ir.Module.parse(text)
        oracle.manager(*oracle.BEFORE, DEBUG).run(module.operation)
        walk(symbols(module, "func.func")["main"].regions[0])
    return found


def ops(instance: Instance) -> Iterator[tuple[Instance, int]]:
    """The ops of a function and of those that it calls, in the place of the calls."""
    for node in instance.function.order:
        yield instance, node
        if node in instance.children:
            yield from ops(instance.children[node])


@pytest.mark.parametrize("name", models.MODELS)
def test_origins(name: str) -> None:
    text = models.text(name, train=name != "decode")
    explainer = Explainer(shardlog.run(text))
    history, values, main = explainer.history, explainer.values, explainer.result.program.graph.main
    function = main.function
    inputs = {values.name(main.place + v): f"input: {i}" for i, v in enumerate(function.arguments)}
    constraints = {values.op(i.item + n).slots[-1] for i, n in ops(main) if n in i.function.constraints}
    theirs = recorded(text)
    ours = list(ops(main))
    assert [op for op, _ in theirs] == [i.function.names[node] for i, node in ours]
    compared = 0
    for (_, origins), (instance, node) in zip(theirs, ours, strict=True):
        results = instance.function.results[node]
        if len(results) != 1 or not origins:
            continue
        cell = history.cell(instance.place + int(instance.layout.place[results[0]]))
        for dim, _, atom in history.facts(history.content(cell, history.end)).get("sharded", ()):
            changes, annotated = explainer.origin(cell, dim, atom)
            origin, says = explainer.annotation(annotated).value, origins[0][explainer.axis(atom)]
            if says.startswith("input"):
                assert inputs.get(origin) == says
            elif says.startswith("constraint"):
                assert origin in constraints
            elif says.startswith("output"):
                assert origin == says.replace("output: ", "result#")
            else:
                assert (says, changes) == ("self", 0)
            compared += 1
    assert compared > 100

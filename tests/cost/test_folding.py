"""Ops whose values are stored alike are priced once: the prices are those of each op on its own."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.cost.account import computed
from shardlog.cost.inlining import inlined
from shardlog.cost.machine import machine
from shardlog.cost.pricing import Pricing, _moved
from shardlog.partition.facts.knowledge import RuleReader

from ..bench.size import program as unrolled
from ..support import models


@pytest.mark.parametrize("topology", ["v5e", "cpu"])
@pytest.mark.parametrize("model", ["layers", "transformer"])
def test_equal_ops_have_the_price_of_each_on_its_own(model: str, topology: str) -> None:
    text = unrolled(200) if model == "layers" else models.text("transformer", depth=3, train=True)
    session = shardlog.run(text)
    program, book = session.partition(topology=topology), session.result.book
    pricing = Pricing(machine(topology), RuleReader(book))
    module = inlined(program.module, program.traits)
    priced = 0
    with module.context:
        for op, _ in computed(pricing.graph, module, program.traits):
            graph, knowledge = pricing.graph, pricing._rules.of(op)
            alone = pricing._price(graph.plain[op], knowledge, _moved(op, pricing.storing))
            assert pricing.of(op) == alone, graph.ops[op]
            priced += 1
    assert len(pricing._alike) < priced / 2

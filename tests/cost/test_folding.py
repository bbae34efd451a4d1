"""What is found once for ops that are alike, or in columns, is what each op has on its own."""

from __future__ import annotations

import pytest
import shardlog
from shardlog.cost.account import computed
from shardlog.cost.graph import OpGraph
from shardlog.cost.inlining import inlined
from shardlog.cost.items import AMOUNTS
from shardlog.cost.machine import machine
from shardlog.cost.pricing import Pricing, _moved
from shardlog.cost.storing import Storing
from shardlog.partition.facts.knowledge import RuleReader
from shardlog.runs.groups import in_order
from shardlog.runs.records.record import RunRecord

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
    with module.context:
        graph, ops = pricing.graph, [op for op, _ in computed(pricing.graph, module, program.traits)]
        which, prices = pricing.of_all(ops)
        for op, number in zip(ops, which, strict=True):
            knowledge, moved = pricing._rules.of(op), _moved(op, pricing.storing)
            assert prices[number] == pricing._price(graph.plain[op], knowledge, moved), graph.ops[op]
    assert len(prices) < len(ops) / 2


@pytest.mark.parametrize("scan", [False, True])
@pytest.mark.parametrize("model", ["grouped_query", "transformer"])
def test_values_that_are_alike_are_stored_as_each_on_its_own(model: str, scan: bool) -> None:
    program = shardlog.run(models.text(model, depth=2, train=True, scan=scan)).partition()
    module = inlined(program.module, program.traits)
    with module.context:
        graph, allocation = OpGraph(), machine("v5e").allocation
        graph.add(module)
        together, apart = (Storing(allocation, program.traits, graph=graph) for _ in range(2))
        apart._looked = len(graph.ops)  # as if they had been found
        values = [value for value, maker in enumerate(graph.definers) if maker >= 0]
        found = [together.at(value) for value in values]
        assert found == [apart.at(value) for value in values]
        assert any(how.runs_as for how in found), "what users run as is looked at"


def test_columns_have_what_each_item_has_on_its_own() -> None:
    cost = shardlog.run(models.text("transformer", depth=3, train=True)).partition(topology="v5e").cost("v5e")
    items = list(cost.items)
    assert items == [cost.items[n] for n in range(len(items))] == list(cost.items[:])
    assert repr(cost.items) == repr(tuple(items))
    for amount in AMOUNTS:
        assert cost.items.total(amount) == sum(getattr(item, amount) for item in items)
    for name in ("op", "where", "stack", "limited"):
        assert cost.items.names(name) == [getattr(item, name) for item in items]
    seconds: dict[str, float] = {}
    for item in items:
        seconds[item.where] = seconds.get(item.where, 0.0) + item.seconds
    assert {where: took for where, took, _ in cost.by("where")} == seconds
    assert cost.limited() == {
        what: sum(item.seconds for item in items if item.limited == what) for what in cost.limited()
    }


@pytest.mark.parametrize("scan", [False, True])
def test_layers_are_found_as_from_the_ops_themselves(scan: bool) -> None:
    record = shardlog.run(models.text("grouped_query", depth=2, scan=scan)).result.record
    items = list(in_order(record))
    assert list(record.sketches(items)) == list(RunRecord.sketches(record, items))
    assert [record.values_of(item) for item in items] == [record.op(item).values for item in items]
    assert list(record.present()) == [item for item, _ in record.ops()]

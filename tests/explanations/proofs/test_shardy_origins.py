"""Every axis of the JAX programs comes from the annotation that Shardy's own record of origins names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import shardlog
from jaxlib.mlir import ir
from shardlog.importers.graph.graph import Instance
from shardlog.program.ids import Item, Place
from shardlog.program.meshes import AxisAtom
from shardlog.program.mlir.modules import symbols

from ...support import models, oracle, tools
from ...support.drawing import by_day

DEBUG = "sdy-user-priority-propagate{keep-sharding-rules=true debug-sharding-origins=true}"
# What a call becomes while Shardy propagates.
NAMES = {
    "sdy.named_computation": "func.call",
    "sdy.return": "func.return",
    "sdy.constant": "stablehlo.constant",
}

# Both operands have the axis: we name the first, Shardy's record the one that has another axis after it.
WEAK = ["larger_prefix_match: stablehlo.add: a is from %arg0, in Shardy's record: input: 1"]


def recorded(text: str) -> list[tuple[str, list[dict[str, str]]]]:
    """The ops of the program as Shardy propagates it, with the origins of each result's axes."""
    recorded: list[tuple[str, list[dict[str, str]]]] = []

    def walk(region: Any) -> None:
        for op in region.blocks[0].operations:
            name = op.operation.name
            if name != "sdy.data_flow_edge":
                origins: Any = op.attributes.get("sdy.sharding_origins", [])
                entries: Any = [origins] if isinstance(origins, ir.DictAttr) else origins
                axes = [{e.name: e.attr.value for e in entry} for entry in entries]
                recorded.append((NAMES.get(name, name), axes))
            for inner in op.regions:
                walk(inner)

    with oracle.context():
        module = ir.Module.parse(text)
        oracle.manager(*oracle.BEFORE, DEBUG).run(module.operation)
        walk(symbols(module, "func.func")["main"].regions[0])
    return recorded


def ops(instance: Instance) -> Iterator[tuple[Instance, int]]:
    """The ops of a function and of those that it calls, in the place of the calls."""
    for node in instance.function.order:
        yield instance, node
        if node in instance.children:
            yield from ops(instance.children[node])


def covers(key: str, atom: AxisAtom) -> bool:
    """Whether an axis or sub-axis, as MLIR has it, has an atom."""
    match = re.fullmatch(r"(\w+)(?::\((\d+)\)(\d+))?", key)
    assert match is not None
    name, pre, size = match.groups()
    return name == atom.axis and (pre is None or (int(pre) <= atom.lo and atom.hi <= int(pre) * int(size)))


def differing(text: str) -> tuple[int, list[str]]:
    """The number of axes compared, and those with another origin than in Shardy's record."""
    session = shardlog.run(text, strict_shardy=True)
    explainer = session.explainer
    history, values, main = explainer.history, explainer.values, session.result.program.graph.main
    function = main.function
    inputs = {values.name(Place(main.place + v)): f"input: {i}" for i, v in enumerate(function.arguments)}
    constraints = {values.op(Item(i.item + n)).slots[-1] for i, n in ops(main) if n in i.function.constraints}
    boundaries: dict[str, set[str]] = {}  # "input: 0" of a manual computation -> the names of the value
    for node in function.boundaries:
        body = function.regions[node][0].arguments
        for i, (operand, argument) in enumerate(zip(function.operands[node], body, strict=True)):
            names = {values.name(Place(main.place + v)) for v in (operand, argument)}
            boundaries.setdefault(f"input: {i}", set()).update(names)
        for i, result in enumerate(function.results[node]):
            boundaries.setdefault(f"output: {i}", set()).add(values.name(Place(main.place + result)))
    theirs, ours = recorded(text), list(ops(main))
    assert [op for op, _ in theirs] == [NAMES.get(n, n) for n in (i.function.names[v] for i, v in ours)]
    compared, differing = 0, []
    for (op, origins), (instance, node) in zip(theirs, ours, strict=True):
        results = instance.function.results[node]
        if len(results) != 1 or not origins:
            continue
        cell = history.cell(Place(instance.place + int(instance.layout.place[results[0]])))
        for dim, _, atom in history.facts(history.content(cell, history.end)).get("sharded", ()):
            changes, annotated = explainer.origin(cell, dim, atom)
            origin, axis = explainer.annotation(annotated).value, explainer.meshes.atoms[atom]
            says = next((says for key, says in origins[0].items() if covers(key, axis)), "nothing")
            if says.startswith("input"):
                equal = inputs.get(origin) == says
            elif says.startswith("constraint"):
                equal = origin in constraints
            elif says.startswith("mc_"):
                equal = origin in boundaries[says.split("_", 2)[2]]
            elif says.startswith("output"):
                equal = origin == says.replace("output: ", "result#")
            else:
                equal = (says, changes) == ("self", 0)
            compared += 1
            if not equal:
                differing.append(f"{op}: {axis.axis} is from {origin}, in Shardy's record: {says}")
    return compared, differing


@pytest.mark.parametrize("name", by_day(["transformer", "vit", "lstm"], models.MODELS))
def test_origins(name: str) -> None:
    compared, unequal = differing(models.text(name, train=name != "decode"))
    assert compared > 100
    assert unequal == []


@pytest.mark.shardy
def test_shardys_own_tests() -> None:
    path = tools.shardy()
    assert path is not None
    text = (
        path / "shardy/dialect/sdy/transforms/propagation/debugging/test/sharding_origins.mlir"
    ).read_text()
    compared, unequal = 0, []
    for piece in text.split("// -----"):
        meshes = "\n".join(re.findall(r"(?m)^sdy\.mesh .*$", piece))
        for function in re.split(r"(?m)^(?=func\.func )", piece)[1:]:
            name = re.match(r"func\.func (?:public |private )?@(\w+)", function)
            assert name is not None
            more, wrong = differing(meshes + "\n" + function.replace(f"@{name[1]}(", "@main(", 1))
            compared += more
            unequal += [f"{name[1]}: {line}" for line in wrong]
    assert compared > 80
    assert unequal == WEAK

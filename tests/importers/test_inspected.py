"""What jax.debug.inspect_array_sharding says at values is what we decide for them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import pytest
import shardlog
from jax.extend import core
from jax.sharding import NamedSharding
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy
from shardlog.program.mlir.modules import is_custom_call, ops_in

from ..support.drawing import in_turn
from ..support.programs import PROGRAMS, P, arguments, mesh

pytestmark = pytest.mark.versions

INNER = ("jaxpr", "body_jaxpr")  # of calls and loops


_JAXPR: Any = core  # newer ones have Jaxpr alone, by the name of ClosedJaxpr too


class Inspecting:
    """A function like another one that tells the shardings of its values when it is compiled."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.seen: dict[str, Any] = {}
        self.count = 0

    def __call__(self, *arguments: Any) -> Any:
        return self.run(jax.make_jaxpr(self.function)(*arguments), arguments)

    def run(self, closed: Any, arguments: Sequence[Any]) -> list[Any]:
        jaxpr = closed.jaxpr
        known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *arguments], strict=True))

        def read(value: Any) -> Any:
            return value.val if isinstance(value, _JAXPR.Literal) else known[value]

        for equation in jaxpr.eqns:
            primitive: Any = equation.primitive
            inside = {} if primitive.name == "shard_map" else self.inside(equation.params)
            params = primitive.get_bind_params(equation.params | inside)
            results = primitive.bind(*map(read, equation.invars), **params)
            results = results if primitive.multiple_results else [results]
            for variable, result in zip(equation.outvars, results, strict=True):
                known[variable] = result
                if jax.numpy.ndim(result):
                    self.inspect(result)
        return [read(value) for value in jaxpr.outvars]

    def inside(self, params: dict[str, Any]) -> dict[str, Any]:
        """The parameters of an op that say what it runs, with inspections inside."""
        found = {name: params[name] for name in INNER if isinstance(params.get(name), _JAXPR.ClosedJaxpr)}
        return {
            name: jax.make_jaxpr(lambda *args, closed=closed: self.run(closed, args))(*closed.in_avals)
            for name, closed in found.items()
        }

    def inspect(self, value: Any) -> None:
        name = f"inspected{self.count}"
        self.count += 1
        with jax.named_scope(name):
            jax.debug.inspect_array_sharding(value, callback=lambda found: self.seen.update({name: found}))


def decided(value: Any) -> Any:
    """The sharding of a value in an annotated module, as JAX has it."""
    owner: Any = value.owner
    if isinstance(owner, ir.Block):
        number, op = ir.BlockArgument(value).arg_number, owner.owner
        attributes: Any = op.attributes
        if op.operation.name == "func.func":
            held = attributes["arg_attrs"][number]["sdy.sharding"]
        else:
            held = sdy.TensorShardingPerValueAttr(attributes["sdy.sharding"]).shardings[number]
    elif "sharding" in owner.attributes:
        held = owner.attributes["sharding"]
    else:
        label = "out_shardings" if "out_shardings" in owner.attributes else "sdy.sharding"
        number, held = ir.OpResult(value).result_number, owner.attributes.get(label)
        held = held and sdy.TensorShardingPerValueAttr(held).shardings[number]
    dimensions = sdy.TensorShardingAttr(held).dimension_shardings if held else []
    axes = [[sdy.AxisRefAttr(a).name for a in sdy.DimensionShardingAttr(d).axes] for d in dimensions]
    return NamedSharding(mesh(), P(*(tuple(each) for each in axes)))  # type: ignore[no-untyped-call]


INSPECTED = [
    *("train step", "gradient of a scan", "cholesky", "attention", "gather"),
    *("random", "inner jit", "remat", "while", "shard_map"),
]


@pytest.mark.parametrize("name", in_turn(1, INSPECTED))
def test_inspected_values(name: str) -> None:
    function = Inspecting(PROGRAMS[name][0])
    program = jax.jit(function).lower(*arguments(name, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = shardlog.run(program, view="compiled")
    calls = [op for op in ops_in(result.module) if is_custom_call(op, "InspectSharding")]
    for call in calls:
        match = re.search(r"inspected\d+", str(call.location))
        assert match, call
        value = call.operands[0]
        ours, theirs = decided(value), function.seen[match[0]]
        assert ours.is_equivalent_to(theirs, value.type.rank), f"{match[0]}: {ours}, XLA has {theirs}"
    assert len(calls) == len(function.seen) == function.count > 0

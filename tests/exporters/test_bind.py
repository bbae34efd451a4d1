"""With every sharding bound, XLA's own propagation ends with what was decided."""

from __future__ import annotations

import random
import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import pytest
import shardlog
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy
from shardlog.importers.sources.source import read_source
from shardlog.importers.sources.text import parse_module
from shardlog.program.mlir.modules import ops_in, symbols

from ..support.drawing import by_day
from ..support.programs import SIZES, P, array, lowered

pytestmark = pytest.mark.versions

MESH = '#sdy.mesh<["data"=2, "model"=4]>'
Found = dict[tuple[str, str], list[list[str]]]


def randomly_annotated(program: jax.stages.Lowered, seed: int) -> ir.Module:
    """A program with random shardings on some of its ops, which are called op0, op1, ..."""
    module, rng = parse_module(read_source(program)), random.Random(seed)
    with module.context, ir.Location.unknown():
        if not symbols(module, "sdy.mesh"):
            sdy.MeshOp("mesh", ir.Attribute.parse(MESH), ip=ir.InsertionPoint.at_block_begin(module.body))
        mesh = next(iter(symbols(module, "sdy.mesh")))
        for number, op in enumerate(ops_in(module)):
            op.operation.location = ir.Location.name(f"op{number}")
            if op.results and not op.regions and not is_manual(op) and rng.random() < 0.3:
                shardings = [random_sharding(rng, result.type, mesh) for result in op.results]
                op.attributes["sdy.sharding"] = sdy.TensorShardingPerValueAttr.get(shardings)
    return module


def is_manual(op: Any) -> bool:
    while op is not None and op.operation.name != "sdy.manual_computation":
        op = op.operation.parent
    return op is not None


def random_sharding(rng: random.Random, kind: Any, mesh: str) -> ir.Attribute:
    axes, dimensions = rng.sample(sorted(SIZES), 2), []
    for size in kind.shape:
        fits = axes and rng.random() < 0.5 and size % SIZES[axes[0]] == 0
        taken = [sdy.AxisRefAttr.get(axes.pop())] if fits else []
        dimensions.append(sdy.DimensionShardingAttr.get(taken, is_closed=rng.random() < 0.5))
    return sdy.TensorShardingAttr.get(mesh, dimensions)


def shardings(module: ir.Module) -> Found:
    """The shardings of the results of ops that something uses, without those of scalars, by the name that the
    op was given and what it is."""
    by_key: Found = defaultdict(list)
    for op in ops_in(module):
        name = str(op.location).rpartition("/")[2].removeprefix('loc("').removesuffix('")')
        used = [i for i, r in enumerate(op.results) if "x" in str(r.type) and any(True for _ in r.uses)]
        if name.startswith("op") and used:
            kind, types = op.operation.name.replace("dot_general", "dot"), [str(r.type) for r in op.results]
            held = op.attributes.get("sdy.sharding")
            texts = [] if held is None else [str(s) for s in sdy.TensorShardingPerValueAttr(held).shardings]
            key = name, kind if op.regions else f"{kind} {types}"
            by_key[key].append([texts[i] for i in used] if texts else [])
    return by_key


def check(result: shardlog.Session, bind: Literal["needed", "all"] = "all") -> int:
    """Asserts that XLA decides what was decided; returns the number of ops that were compared."""
    seen = shardlog.run(result.bytecode(bind=bind), view="compiled")
    agreement = seen.agreement()
    assert agreement is not None
    assert agreement.equal == agreement.ops, str(agreement)  # so seen.module is what XLA has
    decided, theirs, compared = shardings(result.module), shardings(seen.module), 0
    for key, ours in decided.items():
        for texts in (texts for texts in ours if texts and key in theirs):
            compared += 1
            known = theirs[key]
            if "while" in key[1]:  # which has lost results that it never changes
                assert any({*other} <= {*texts} for other in known), key
            else:
                assert texts in known, key
    return compared


ANNOTATED = ["scan", "while", "cond", "train step", "attention", "inner jit", "cholesky"]


@pytest.mark.parametrize("name", by_day(["scan", "cond", "inner jit", "cholesky"], ANNOTATED))
def test_random_annotations(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = shardlog.run(randomly_annotated(lowered(name, 0), 0))
        assert check(result) >= 3


@pytest.mark.parametrize("name", ["gradient of a scan", "random"])
def test_functions_that_are_called_with_several_shardings(name: str) -> None:
    assert check(shardlog.run(randomly_annotated(lowered(name, 1), 1))) > 10


@pytest.mark.parametrize("name", by_day(["mlp", "attention"], ["mlp", "train step", "attention", "cholesky"]))
def test_needed_constraints(name: str) -> None:
    """A few of them are enough for XLA to decide the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = shardlog.run(randomly_annotated(lowered(name, 2), 2))
        few, every = (result.text(bind=which).count("sharding_constraint") for which in ("needed", "all"))
        assert few < every
        assert check(result, "needed") >= 3


def test_nothing_is_needed_where_xla_decides_the_same() -> None:
    result = shardlog.run(jax.jit(lambda x, w: jnp.tanh(x @ w)).lower(array((8, 16), "data"), array((16, 8))))
    assert "sharding_constraint" not in result.text(bind="needed")
    assert result.text(bind="all").count("sharding_constraint") == 2


RULES = """
target_of_mine(s) :- target(s, "lapack_spotrf_ffi").
.decl target_of_mine(s: sig)
ruled(s) :- target_of_mine(s).
/// Matrices are decomposed one by one.
along(s, 0, t, 0) :- target_of_mine(s), slot(s, t, _, _, _).
"""


def test_an_op_rule_that_xla_does_not_know(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        kinds = jax.ShapeDtypeStruct(x.shape, x.dtype), jax.ShapeDtypeStruct(x.shape[:1], jnp.int32)  # type: ignore[no-untyped-call]
        return jnp.tanh(jax.ffi.ffi_call("lapack_spotrf_ffi", kinds)(x, uplo="L")[0])

    (tmp_path / "mine.dl").write_text(RULES)
    program = jax.jit(f).lower(array((8, 4, 4), "data"))
    result = shardlog.run(program, rules=[tmp_path / "mine.dl"])
    assert result.result_shardings.spec == P("data", None, None)  # type: ignore[no-untyped-call]
    module = parse_module(read_source(result.bytecode()))
    for number, op in enumerate(ops_in(module)):
        op.operation.location = ir.Location.name(f"op{number}", context=module.context)
    assert check(shardlog.run(module, rules=[tmp_path / "mine.dl"])) == 2

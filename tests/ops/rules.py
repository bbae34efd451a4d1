"""The op rules side by side: what ours say about the ops of a module, and what Shardy attaches to them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir
from shardlog.engine import LoadedProgram, Solver
from shardlog.exporters.op_rules import rule_attribute
from shardlog.program.shardy import installed
from shardlog.program.signature import RULE, describe, looks_at
from shardlog.rulebook.users import load_ops

from ..support import oracle

MAIN = Path(__file__).parents[2] / "rules" / "ops" / "main.dl"


@cache
def program() -> LoadedProgram:
    return load_ops([])


@cache
def solver(backend: str = "auto", shardy: str | None = None) -> Solver:
    told = {"shardy_version": [(shardy or installed(),)]}
    return program().solver(told, backend)  # type: ignore[arg-type]


@cache
def around() -> dict[str, tuple[str, ...]]:
    return looks_at(solver().solve({}, ["looks_at"])["looks_at"])


def walk(op: Any) -> Iterator[ir.Operation]:
    """The ops inside of `op`, in program order."""
    for region in op.regions:
        for block in region:
            for inner in block:
                yield inner.operation
                yield from walk(inner.operation)


def answers(
    op: ir.Operation,
    *,
    multiple_uses: bool = False,
    modes: Sequence[str] = (),
    backend: str = "auto",
    shardy: str | None = None,
) -> dict[str, list[tuple[Any, ...]]]:
    """All that our rules say about an op, by the Shardy that is meant or that of the installed jaxlib."""
    facts = describe(op, multiple_uses, around()) | {mode: [()] for mode in modes}
    return solver(backend, shardy).solve(facts)


def written(op: ir.Operation, said: dict[str, list[tuple[Any, ...]]]) -> str:
    """The factors in Shardy's notation, e.g. "([i, j], [j])->([i]) {i=8, j=4} reduction={j}"; or ""."""
    rule = rule_attribute(op, said)
    return "" if rule is None else _inside(rule)


def attached(text: str, *, conservative: bool = False) -> list[str]:
    """The rules that Shardy attaches to the ops of a module, in program order."""
    with oracle.context():
        module = ir.Module.parse(text)
        option = "{conservative-propagation=true}" if conservative else ""
        oracle.manager(f"func.func(sdy-populate-op-sharding-rules{option})").run(module.operation)
        return [
            _inside(op.attributes[RULE]).replace(", custom", "") if RULE in op.attributes else ""
            for op in walk(module.operation)
        ]


def ours(text: str, *, conservative: bool = False, backend: str = "auto") -> list[str]:
    """The rules that we give to the ops of a module when we keep to Shardy's, in program order."""
    modes = ("strict_shardy", *(("conservative",) if conservative else ()))
    with oracle.context():
        module = ir.Module.parse(text)
        return [written(op, answers(op, modes=modes, backend=backend)) for op in walk(module.operation)]


def _inside(rule: ir.Attribute) -> str:
    return str(rule).removeprefix("#sdy.op_sharding_rule<").removesuffix(">")

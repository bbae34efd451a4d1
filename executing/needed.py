"""The values whose shardings XLA would decide differently: only these need constraints.

XLA's decisions come from a run with Shardy's rules alone, on the program after a round trip through HLO. Each
round also binds the values that differ, until none do.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ..exporters.bind import bind
from ..program.mlir.modules import bytecode_of, copy_of, ops_in
from ..program.mlir.types import Operation
from ..program.signature import text_of
from ..runs.options import Options
from ..runs.running import run_with

if TYPE_CHECKING:
    from ..runs.result import Result

_ATTRIBUTES, _NUMBER = "mhlo.frontend_attributes", "shardlog.number"  # survive HLO


def needed(result: Result) -> set[tuple[int, int]]:
    """The values of a run that need a constraint: the number of the op, in the order of ``ops_in``, and of
    the result. A value that is missing in XLA's version of the program needs one."""
    decided = _decided(result.module)
    chosen: set[tuple[int, int]] = set()
    numbered = _numbered(result.module)
    while True:
        module = bytecode_of(bind(numbered, result.book.traits, chosen))
        seen = _seen(run_with(module, Options(view="roundtrip")).module)
        more = {
            value
            for value, sharding in decided.items()
            if value not in chosen and {sharding} != seen.get(value)
        }
        if not more:
            return chosen
        chosen |= more


def _decided(module: ir.Module) -> dict[tuple[int, int], str]:
    """The shardings of all values of a module that can be sharded."""
    decided: dict[tuple[int, int], str] = {}
    for number, op in enumerate(ops_in(module)):
        if "sharding" not in op.attributes and "out_shardings" not in op.attributes:
            decided |= {(number, i): text for i, text in _texts(op).items()}
    return decided


def _seen(module: ir.Module) -> dict[tuple[int, int], set[str]]:
    """The shardings of the values of numbered ops, wherever they are; there may be copies of an op."""
    seen: dict[tuple[int, int], set[str]] = defaultdict(set)
    for op in ops_in(module):
        given: Any = op.attributes.get(_ATTRIBUTES)
        if given is not None and _NUMBER in given:
            number, count = map(int, text_of(given[_NUMBER]).split())
            for index, text in _texts(op).items() if count == len(op.results) else ():
                seen[number, index].add(text)
    return seen


def _texts(op: Operation) -> dict[int, str]:
    """The shardings of the results of an op that have dimensions; a value without one is replicated."""
    held = op.attributes.get("sdy.sharding")
    texts = [str(s) for s in sdy.TensorShardingPerValueAttr(held).shardings] if held is not None else []
    return {
        i: texts[i] if texts else ""
        for i, result in enumerate(op.results)
        if isinstance(result.type, ir.RankedTensorType) and result.type.rank
    }


def _numbered(module: ir.Module) -> ir.Module:
    """A copy of a module in which every op carries its number, and the number of its first result."""
    copy = copy_of(module)
    with copy.context:
        for number, op in enumerate(ops_in(copy)):
            if op.results:
                given: Any = op.attributes.get(_ATTRIBUTES, ())
                entries = {entry.name: entry.attr for entry in given}
                entries[_NUMBER] = ir.StringAttr.get(f"{number} {len(op.results)}")
                op.attributes[_ATTRIBUTES] = ir.DictAttr.get(entries)
    return copy

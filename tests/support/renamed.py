"""Ops under other names: a module of StableHLO as a module of a dialect that nobody has registered."""

from __future__ import annotations

import re

from jaxlib.mlir import ir
from shardlog.rulebook.shipped import RULES

from .oracle import context

DIALECT = "my."


def renamed(text: str, old: str, new: str) -> str:
    """The module with every op of the dialect `old` as one of the dialect `new`, attributes and all."""
    with context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        found: list[ir.Operation] = []

        def note(op: ir.Operation) -> ir.WalkResult:
            if op.name.startswith(old):
                found.append(op)
            return ir.WalkResult.ADVANCE

        module.operation.walk(note, ir.WalkOrder.POST_ORDER)
        for op in found:
            _replace(op, new + op.name.removeprefix(old))
        return str(module)


def _replace(op: ir.Operation, name: str) -> None:
    other = ir.Operation.create(
        name,
        results=[result.type for result in op.results],
        operands=list(op.operands),
        attributes=dict(op.attributes.items()),
        regions=len(op.regions),
        ip=ir.InsertionPoint(op),
    )
    for region, target in zip(op.regions, other.regions, strict=True):
        for block in list(region.blocks):
            block.append_to(target)
    for result, replacement in zip(op.results, other.results, strict=True):
        result.replace_all_uses_with(replacement)
    op.erase()


def renamed_rules(old: str, new: str) -> str:
    """All that the rules say about ops of the dialect `old`, said of the dialect `new`."""
    included = re.findall(r'^\.include "(.*)"', (RULES / "ops" / "main.dl").read_text(), re.MULTILINE)
    texts = [(RULES / "ops" / name).read_text() for name in included]
    statements = [s for text in texts for s in _statements(text) if f'"{old}' in s]
    return "\n".join(s.replace(f'"{old}', f'"{new}') for s in statements)


def _statements(text: str) -> list[str]:
    """The facts and rules of a file, each as one line."""
    bare = re.sub(r"//.*|^\..*", "", text, flags=re.MULTILINE)
    return [" ".join(s.split()) for s in re.findall(r'(?:"[^"]*"|[^".]|\.(?=\S))+\.(?=\s)', bare)]

"""The table: modules with many small ops, and behind each op its factors, or why it has none.

Where a newer Shardy says otherwise, its answer stands behind that, as in ``// 0.12: ([i])->([i]) {i=8}``.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import chlo, stablehlo
from shardlog.program.shardy import LINES

from ..support import oracle
from .rules import answers, attached, ours, solver, walk, written

pytestmark = pytest.mark.versions

MODULES = [
    pytest.param(text, id=f"{path.stem}-{text.splitlines()[0].strip('/ ')}")
    for path in sorted((Path(__file__).parent / "table").glob("*.mlir"))
    for text in path.read_text().split("\n// -----\n")
]


# Of dialects that Shardy knows nothing of.
DIALECTS = [
    pytest.param(text, id=f"{path.stem}-{text.splitlines()[0].strip('/ ')}")
    for path in sorted((Path(__file__).parent / "table" / "dialects").glob("*.mlir"))
    for text in path.read_text().split("\n// -----\n")
]


def column(line: str, shardy: str) -> str:
    """The answer that a line of the table has for a Shardy; empty where it has none."""
    _, *columns = line.split("  // ")
    since = dict(column.split(": ", 1) for column in columns[1:])
    assert set(since) <= set(LINES[1:])
    known = [since[line] for line in LINES[: LINES.index(shardy) + 1] if line in since]
    return [*columns[:1], *known][-1] if columns else ""


@pytest.mark.parametrize("shardy", LINES)
@pytest.mark.parametrize("text", MODULES + DIALECTS)
def test_answers(text: str, shardy: str) -> None:
    """The answer about each op is the one in the table. Each op has one, but for those inside of others."""
    lines = text.splitlines()
    with oracle.context():
        module = ir.Module.parse(text)
        for op in walk(module.operation):
            place: Any = op.location
            expected = column(lines[place.start_line - 1], shardy)
            if op.parent is not None and op.parent.name == "func.func" and op.name != "func.return":
                assert expected, f"no answer for {op}"
            if expected:
                said = answers(op, shardy=shardy)
                reasons = [f"no rule: {reason}" for (reason,) in said["no_rule"]]
                assert [*reasons, written(op, said)][0] == expected, str(op)


@pytest.mark.parametrize("conservative", [False, True])
@pytest.mark.parametrize("text", MODULES)
def test_like_shardy(text: str, conservative: bool) -> None:
    # Shardy propagates through barriers and edges without attaching their rule.
    text = re.sub(r".* = sdy\.(propagation_barrier|data_flow_edge) .*\n", "", text)
    assert ours(text, conservative=conservative) == attached(text, conservative=conservative)


def test_evaluators_agree() -> None:
    text = MODULES[0].values[0]
    assert isinstance(text, str)
    assert ours(text, backend="core") == ours(text, backend="reference")


def test_every_op_has_a_rule_or_a_reason() -> None:
    names = {
        view.OPERATION_NAME
        for dialect in (stablehlo, chlo)
        for view in vars(dialect).values()
        if isinstance(view, type) and hasattr(view, "OPERATION_NAME")
    }
    assert len(names) > 150
    found = set()
    with oracle.context():
        for parameters in MODULES:
            module = ir.Module.parse(str(parameters.values[0]))
            for op in walk(module.operation):
                said = answers(op)
                if said["factor"] or said["no_rule"]:
                    found.add(op.name)
    missing = {name for name in names - found if not solver().solve({"op": [(name,)]})["no_rule"]}
    assert missing == set()

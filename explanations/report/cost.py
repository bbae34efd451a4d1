"""The costs on the page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...cost.cost import Cost, Item
from ...errors import ShardlogError
from ...program.mlir.origins import said
from ...runs.choice import ProgramChoice
from ..partitioned import Programs
from .pictures import pictures

_ROWS = 100  # rows of a table


def costs(programs: Programs, choice: ProgramChoice) -> dict[str, Any]:
    """The ``cost`` of the program that is meant, as the page has it, or None and why there is none
    (``uncosted``)."""
    try:
        page = _page(programs.cost(choice))
        return {"cost": {**page, "answers": _answers(programs, choice, page["pictures"])}, "uncosted": ""}
    except ShardlogError as error:
        return {"cost": None, "uncosted": str(error)}


def _page(cost: Cost) -> dict[str, Any]:
    document, again = cost.as_json(), cost.computed_again()
    del document["items"]
    return {
        **document,
        "held": [
            {**row, "where": said(row["where"], row["stack"])}
            for row in document["held"]
            if row["memory"] == "device"
        ],
        "collectives": [
            {**item.as_json(), "where": said(item.where, item.stack)} for item in cost.collectives()[:_ROWS]
        ],
        "ops": _by((item.serves or item.op, item) for item in cost.items),
        "places": _by((item.where, item) for item in cost.items),
        "stacks": _by((item.stack, item) for item in cost.items),
        "pictures": pictures(cost),
        "redundant": [
            (i.op, said(i.where, i.stack), i.redundant, i.redundant / i.flops) for i in again[:_ROWS]
        ],
    }


def _answers(programs: Programs, choice: ProgramChoice, drawn: dict[str, Any]) -> dict[int, str]:
    """Why there is the collective that sends most of each cell of the matrix, by its number."""
    program = programs.asked(choice)
    first = sorted({numbers[0] for *_, numbers in drawn["matrix"]["cells"]})
    return {each.collective.number: str(each) for each in program.whys(first)}


def _by(items: Iterable[tuple[str, Item]]) -> list[dict[str, Any]]:
    """Rows by name, longest first, with their seconds by limiting resource."""
    by_name: dict[str, dict[str, Any]] = {}
    for name, item in items:
        row = by_name.setdefault(name, {"name": name, "seconds": 0.0, "limited": {}})
        row["seconds"] += item.seconds
        row["limited"][item.limited] = row["limited"].get(item.limited, 0.0) + item.seconds
    return sorted(by_name.values(), key=lambda row: (-row["seconds"], row["name"]))[:_ROWS]

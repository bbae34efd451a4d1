"""The costs on the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...cost.cost import Cost
from ...cost.items import sums
from ...errors import ShardlogError
from ...program.mlir.origins import place_text
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
    document, again = cost.as_json(items=False), cost.computed_again()
    return {
        **document,
        "held": [
            {**row, "where": place_text(row["where"], row["stack"])}
            for row in document["held"]
            if row["memory"] == "device"
        ],
        "collectives": [
            {**item.as_json(), "where": place_text(item.where, item.stack)}
            for item in cost.collectives()[:_ROWS]
        ],
        "ops": _by(cost, cost.ops()),
        "places": _by(cost, cost.items.names("where")),
        "stacks": _by(cost, cost.items.names("stack")),
        "pictures": pictures(cost),
        "redundant": [
            (i.op, place_text(i.where, i.stack), i.redundant, i.redundant / i.flops) for i in again[:_ROWS]
        ],
    }


def _answers(programs: Programs, choice: ProgramChoice, drawn: dict[str, Any]) -> dict[int, str]:
    """Why there is the collective that sends most of each cell of the matrix, by its number."""
    program = programs.asked(choice)
    first = sorted({numbers[0] for *_, numbers in drawn["matrix"]["cells"]})
    return {each.collective.number: str(each) for each in program.whys(first)}


def _by(cost: Cost, names: Sequence[str]) -> list[dict[str, Any]]:
    """Rows by the name of each item, longest first, with their seconds by limiting resource."""
    seconds = cost.items.of("seconds")
    by_name = sorted(sums(names, seconds).items(), key=lambda row: (-row[1], row[0]))[:_ROWS]
    rows: dict[str, dict[str, Any]] = {
        name: {"name": name, "seconds": took, "limited": {}} for name, took in by_name
    }
    pairs = zip(names, cost.items.names("limited"), strict=True)
    for (name, limited), took in sums(pairs, seconds).items():
        if name in rows:
            rows[name]["limited"][limited] = took
    return list(rows.values())

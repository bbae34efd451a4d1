"""The sum that automatic sharding minimises beside the cost:

    python -m shardlog.tests.bench.sums MACHINES [MODEL ...]

For each model of ``auto`` and each machine (such as h100,v5e), on eight devices: the sum of the plan that is
found, the cost of its program, and their ratio; and the least and the largest ratio of the known strategies,
which the sum ranks. A strategy's sum is that of the best program that the search finds for its boundary.
"""

from __future__ import annotations

import sys

from .auto import MODELS, lowered

MESH = "data=2,model=4"


def measured(text: str, machine: str) -> str:
    """The cells of a model on a machine."""
    from shardlog.autosharding.options import AutoOptions
    from shardlog.autosharding.searching import PRICES, Search

    search = Search(text, MESH, AutoOptions(topology=machine), lambda what, done: None)
    found = search.at(PRICES[0])
    ratios = [search.sum_of(each.candidate) / each.cost.seconds for each in search.strategies()]
    cells = [f"{search.sum * 1e3:.2f}", f"{found.cost.seconds * 1e3:.2f}"]
    return " | ".join(
        [*cells, f"{search.sum / found.cost.seconds:.2f}", f"{min(ratios):.2f}", f"{max(ratios):.2f}"]
    )


def main(machines: str, names: list[str]) -> None:
    """Prints the table."""
    print("| model | machine | sum, ms | cost, ms | ratio | strategies, from | to |")
    print("|---|---|---|---|---|---|---|")
    for name in names or MODELS:
        text = lowered(MODELS[name]())
        for machine in machines.split(","):
            print(f"| {name} | {machine} | {measured(text, machine)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

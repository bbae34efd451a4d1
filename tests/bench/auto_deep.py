"""The search for a LLaMA of many layers, or on many devices, by processor time:

    python -m shardlog.tests.bench.auto_deep LAYERS MESH|DEVICES ...

With 32 layers it has 8.7 billion parameters. Its layers are not scanned, and the machine has H100s. In the
time of costing programs are written, too.
"""

from __future__ import annotations

import sys
import time
from itertools import pairwise

from .auto import lowered, transformer

TOPOLOGY = "h100"


def measured(text: str, place: str) -> str:
    """The row of a mesh, or of a number of devices."""
    from shardlog.autosharding.automatic import plan
    from shardlog.autosharding.options import AutoOptions
    from shardlog.partition.reshards import planning

    asked: dict[str, object] = {"devices": int(place)} if place.isdecimal() else {"mesh": place}
    planning._KEPT.clear()  # what the search before has decided
    steps = [("", time.process_time())]
    found = plan(
        text,
        AutoOptions.of(topology=TOPOLOGY, **asked),
        lambda what, done: steps.append((what, time.process_time())),
    )
    steps.append(("", time.process_time()))
    costing = sum(end - begin for (what, begin), (_, end) in pairwise(steps) if what.startswith("costing"))
    whole = steps[-1][1] - steps[0][1]
    assert found.sum is not None and found.gap is not None
    cells = [f"{whole:.1f}", f"{costing:.1f}", f"{found.sum * 1e3:.1f}", f"{found.seconds * 1e3:.1f}"]
    return f"| {place} | {found.mesh} | {' | '.join(cells)} | {found.gap:.2%} |"


def main(layers: int, places: list[str]) -> None:
    """Prints the table."""
    text = lowered(transformer(4096, 32, layers, gated=True))
    print("| asked | found on | search, s | of it costing, s | sum, ms | cost, ms | gap |")
    print(f"{'|---' * 7}|")
    for place in places:
        print(measured(text, place), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])

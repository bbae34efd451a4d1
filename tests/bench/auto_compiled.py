"""Found shardings as XLA compiles them for eight CPU devices, of the models of ``auto.py``:

    python -m shardlog.tests.bench.auto_compiled bytes [MODEL ...]
    python -m shardlog.tests.bench.auto_compiled limits [MODEL ...]

``bytes``: what a device sends in the compiled program of a found plan, beside the best known strategy as XLA
partitions it. ``limits``: five limits on memory, between the peak of the best known strategy and 1.05 times
the least that is found; each is met by the compiled program, too, or refused.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from .auto import MODELS, lowered
from .bytes_moved import by_xla, measured

TOPOLOGY, MESH = "cpu", "data=2,model=4"
LIMITS = 5
CLOSE = 1.05  # of the compiler's memory to the limit; of the least limit to the least memory


def bytes_moved(name: str) -> str:
    """The row of a model: the strategy and what XLA sends for it, and for the found plan."""
    import jax
    from shardlog.autosharding.automatic import plan, session_of
    from shardlog.autosharding.options import AutoOptions
    from shardlog.autosharding.searching import Search

    text, options = lowered(MODELS[name]()), AutoOptions(topology=TOPOLOGY, mesh=MESH)
    search = Search(text, MESH, options, lambda what, done: None)
    expert = min(search.strategies(), key=lambda each: each.cost.seconds)
    theirs = measured(by_xla(search.run(expert.candidate), jax.devices()))
    partitioned = session_of(text, plan(text, options)).partition(topology=TOPOLOGY)
    ours = measured(partitioned.compile()._loaded)
    ratio = ours.bytes / theirs.bytes if theirs.bytes else 1.0
    return f"{name} | {expert.candidate.name} | {theirs.bytes:,.0f} | {ours.bytes:,.0f} | {ratio:.2f}"


def limits(name: str) -> Iterator[str]:
    """The rows of a model: each limit, the peak that is estimated, and the memory of the compiled program."""
    from shardlog.autosharding.automatic import plan, program
    from shardlog.autosharding.options import AutoOptions
    from shardlog.autosharding.searching import Search
    from shardlog.partition.improving import TooLargeError

    text = lowered(MODELS[name]())
    search = Search(text, MESH, AutoOptions(topology=TOPOLOGY), lambda what, done: None)
    most = min(search.strategies(), key=lambda each: each.cost.seconds).cost.peak
    devices = 8
    floor = -(-sum(end.bytes for end in search.ends.arguments) // devices)
    try:
        least = plan(text, AutoOptions(topology=TOPOLOGY, mesh=MESH, memory=floor)).peak
    except TooLargeError as error:
        least = error.least
    compiled = dict[tuple[tuple[str, ...], int], int]()  # many limits have one plan
    for n in range(LIMITS):
        limit = round(most + (CLOSE * least - most) * n / (LIMITS - 1))
        try:
            best = plan(text, AutoOptions(topology=TOPOLOGY, mesh=MESH, memory=limit))
        except TooLargeError as error:
            yield f"{name} | {limit:,} | refused | | the least has {error.least:,}"
            continue
        key = best.annotations, best.peak
        if key not in compiled:
            compiled[key] = program(text, best).compile_ahead("cpu").memory.total
        met = "met" if compiled[key] <= CLOSE * limit else "exceeded"
        yield f"{name} | {limit:,} | {best.peak:,} | {compiled[key]:,} | {met}"


def main(what: str, names: list[str]) -> None:
    """Prints a table."""
    heads = {
        "bytes": ("model", "best known strategy", "bytes, by XLA", "of the found plan", "ratio"),
        "limits": ("model", "limit", "peak", "compiled", ""),
    }
    print(f"| {' | '.join(heads[what])} |\n{'|---' * len(heads[what])}|")
    for name in names or MODELS:
        rows = [bytes_moved(name)] if what == "bytes" else limits(name)
        for row in rows:
            print(f"| {row} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])

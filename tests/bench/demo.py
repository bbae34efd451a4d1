"""The example beside Shardy, on the same program: ``make demo``."""

from __future__ import annotations

from shardlog.examples.train_step import main, say

from ..support.compare import differences
from ..support.oracle import propagate
from .bench import fixpoint, whole


def compare(program: str, annotated: str) -> None:
    """Ends with an error where the annotated module is not Shardy's."""
    say("\nShardy, which jaxlib carries, does the same in this process, and the two are compared ...")
    if differing := differences(annotated, propagate(program)):
        raise SystemExit("\n".join(["the modules differ:", *differing]))
    say("  equal on every value and on every op")
    say("and both are timed, three times each ...")
    for what, pair in (("fixpoint alone", fixpoint(program, 3)), ("from text to text", whole(program, 3))):
        say(f"  {what}: {pair.ours:.3f} s, Shardy {pair.theirs:.3f} s, ratio {pair.ratio:.2f}")


if __name__ == "__main__":
    main(compare)

"""The forms in which XLA takes a partitioned program: as one manual computation, or as a program per device
for its partitions or its replicas."""

from typing import Literal

Form = Literal["sdy-manual", "manual", "replica"]
FORMS: tuple[Form, ...] = ("sdy-manual", "manual", "replica")
# A program may be asked for in a dialect, too: it is made in the first form, and written in that.
Chosen = Literal["sdy-manual", "manual", "replica", "shard"]
CHOSEN: tuple[Chosen, ...] = (*FORMS, "shard")


def form_of(chosen: Chosen) -> Form:
    """The form in which a program is made that is asked for in this one."""
    return FORMS[0] if chosen == "shard" else chosen

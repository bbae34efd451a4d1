"""The forms in which XLA takes a partitioned program: as one manual computation, or as a program per device
for its partitions or its replicas."""

from typing import Literal

Form = Literal["sdy-manual", "manual", "replica"]
FORMS: tuple[Form, ...] = ("sdy-manual", "manual", "replica")

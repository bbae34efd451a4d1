"""Options of a program that need neither MLIR nor NumPy: the form in which XLA takes it, and a plan from a
file."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..errors import ShardlogError

Form = Literal["sdy-manual", "manual", "replica"]
FORMS: tuple[Form, ...] = ("sdy-manual", "manual", "replica")
# A program may also be requested in a dialect. It is made in the first form, and written in the dialect.
ChosenForm = Literal["sdy-manual", "manual", "replica", "stablehlo", "shard", "mpi"]
CHOSEN: tuple[ChosenForm, ...] = (*FORMS, "stablehlo", "shard", "mpi")
LOCAL: tuple[ChosenForm, ...] = ("shard", "mpi")  # functions of local tensors, in MLIR's own dialects


def form_of(chosen: ChosenForm) -> Form:
    """The form in which a program is made, for the form that was requested."""
    return next((form for form in FORMS if form == chosen), FORMS[0])


VERSION = 1  # of files of plans
REMAKE = "make a new one: shardlog partition MODULE -o plan.json"


@dataclass(frozen=True)
class PlanFile:
    """A plan from a file: ``text`` is the content of the file. Its name, ``where``, does not count in
    comparisons."""

    text: str
    where: str = field(default="plan", compare=False)

    def __post_init__(self) -> None:
        try:
            data = json.loads(self.text)
        except ValueError:
            data = None
        if not isinstance(data, dict) or "reshards" not in data or "version" not in data:
            of_auto = isinstance(data, dict) and "bound" in data
            hint = "its program: shardlog auto MODULE --program OUT" if of_auto else REMAKE
            message = "a plan of shardlog auto, which has no choices inside" if of_auto else "not a plan"
            raise ShardlogError(message, where=self.where, hint=hint)
        if data["version"] != VERSION:
            message = f"a plan of version {data['version']}, and this is version {VERSION}"
            raise ShardlogError(message, where=self.where, hint=REMAKE)


def read_plan(path: str | Path) -> PlanFile:
    """The plan in a file. Raises ShardlogError if it cannot be read, or is not a plan."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        message = f"cannot read: {getattr(error, 'strerror', None) or error}"
        raise ShardlogError(message, where=str(path)) from None
    return PlanFile(text, str(path))

"""The choice of a partitioned program, described once.

Python, its help and the command line use this description. Every answer about a program begins with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypedDict, cast

from ..errors import ShardlogError, closest
from ..partition.forms import CHOSEN, LOCAL, ChosenForm, PlanFile, read_plan
from ..program.elements import bytes_text
from .options import about, flag_of, memory_of, seconds_of

_OF_THE_FORM = ("plan", "form", "dialect_version", "whole_arguments")  # which a plan leaves open


ORDERS = ("rfc",)


class ProgramOptions(TypedDict, total=False):
    """``ProgramChoice`` as keywords."""

    keep_shardings: bool
    topology: str | None
    memory: int | str | None
    seconds: float | None
    pins: str | Sequence[str]
    collective_matmul: bool
    plan: str | Path | PlanFile | None
    form: ChosenForm
    order: str | None
    dialect_version: str | None
    whole_arguments: bool


@dataclass(frozen=True, kw_only=True)
class ProgramChoice:
    """A choice among the programs that carry out a run; the default moves the fewest bytes.

    As text it is the name of the program. ``memory`` is in bytes once it is read, ``seconds`` in seconds.
    Raises ShardlogError for a malformed size, time or form, and for pins together with ``keep_shardings``.
    """

    keep_shardings: bool = field(
        default=False,
        metadata=about(
            "keep the sharding that propagation decided for every value",
            otherwise="keep it at the boundary and at constraints, and choose the cheapest elsewhere",
            negated=True,
        ),
    )
    topology: str | None = field(
        default=None,
        metadata=about(
            "minimise the time on this machine, not the bytes: v4, v5e, v5p, v6e (with a shape, as in "
            "v5e:4x8), h100, h200, b200, cpu, or a TOML file",
            metavar="MACHINE",
        ),
    )
    memory: int | str | None = field(
        default=None,
        metadata=about(
            "the most memory that a device may use, as in 16GiB or 500MiB",
            otherwise="the memory of the machine, if there is one",
            metavar="SIZE",
            read=memory_of,
        ),
    )
    seconds: float | None = field(
        default=None,
        metadata=about(
            "stop the search after this many seconds, and print how far its result is from a lower bound",
            metavar="S",
            read=seconds_of,
        ),
    )
    pins: str | Sequence[str] = field(
        default=(),
        metadata=about(
            "fix the sharding of the result of an op, whatever it costs, as in "
            """'%2=[{"data"}, {}]' or "%2=P('data')\"""",
            flag="--pin",
            metavar="VALUE=SHARDING",
            repeated=True,
        ),
    )
    collective_matmul: bool = field(
        default=False,
        metadata=about("with --topology: overlap collectives with products, where that is faster"),
    )
    plan: str | Path | PlanFile | None = field(
        default=None,
        metadata=about(
            "follow this plan, which partition -o PLAN.json wrote for this module",
            metavar="PLAN.json",
        ),
    )
    form: ChosenForm = field(
        default=CHOSEN[0],
        metadata=about(
            "the form for XLA: a manual computation (stablehlo means this, too), or the program of each "
            "partition or each replica; or local tensors with collectives of MLIR's dialect shard or mpi",
            flag="--as",
            choices=CHOSEN,
        ),
    )
    order: str | None = field(
        default=None,
        metadata=about(
            "carry out reshards in these stages, and keep all shardings: rfc is the order of the device mesh "
            "RFC, all-reduce, all-gather, local split",
            otherwise="in the cheapest way",
            choices=ORDERS,
        ),
    )
    dialect_version: str | None = field(
        default=None,
        metadata=about(
            "the version of LLVM that will read a dialect of MLIR",
            otherwise="main for shard, 19 for mesh",
            choices=("19", "22", "main"),
        ),
    )
    whole_arguments: bool = field(
        default=False,
        metadata=about(
            "with --as shard or mpi: give each device whole arguments, and slice its parts from them (type 2 "
            "of the RFC)"
        ),
    )

    def __post_init__(self) -> None:
        keep = object.__setattr__
        try:
            keep(self, "memory", None if self.memory is None else memory_of(self.memory))
            keep(self, "seconds", None if self.seconds is None else seconds_of(self.seconds))
        except ValueError as error:
            raise ShardlogError(str(error), where="partition") from None
        if self.plan is not None and not isinstance(self.plan, PlanFile):
            keep(self, "plan", read_plan(self.plan))
        keep(self, "pins", (self.pins,) if isinstance(self.pins, str) else tuple(map(str, self.pins)))
        if self.order is not None:
            if self.order not in ORDERS:
                hint = closest(self.order, ORDERS)
                raise ShardlogError(f"there is no order {self.order!r}", where="partition", hint=hint)
            keep(self, "keep_shardings", True)
        if self.keep_shardings and self.pins:
            hint = "annotate the values instead, or leave out keep_shardings"
            raise ShardlogError(
                "pins have no effect where propagation decides all shardings",
                where="keep_shardings",
                hint=hint,
            )
        if self.keep_shardings and self.seconds is not None and self.memory is None:
            message = "nothing is searched where propagation decides all shardings"
            raise ShardlogError(message, where="seconds", hint="leave out keep_shardings, or seconds")
        if self.plan is not None:
            self._refuse_beside_plan()
        if self.form not in CHOSEN:
            hint = closest(self.form, CHOSEN)
            raise ShardlogError(f"there is no form {self.form!r}", where="partition", hint=hint)
        if self.form not in LOCAL and (self.whole_arguments or self.dialect_version):
            message = (
                f"only {' and '.join(LOCAL)} have {'whole arguments' if self.whole_arguments else 'versions'}"
            )
            raise ShardlogError(message, where="partition", hint="add --as shard")

    def _refuse_beside_plan(self) -> None:
        """Refuses options that a plan already decides."""
        for each in fields(self):
            if each.name not in _OF_THE_FORM and getattr(self, each.name) != each.default:
                hint = "a plan determines the program: leave out the option, or the plan"
                raise ShardlogError(f"{each.name} has no effect with a plan", where="plan", hint=hint)

    def __str__(self) -> str:
        if isinstance(self.plan, PlanFile):
            return f"as planned in {self.plan.where}"
        if self.keep_shardings:
            named = "as decided" + (f", in the order {self.order}" if self.order else "")
            named += f", moved in least time on {self.topology}" if self.topology else ""
        else:
            named = "least bytes" if self.topology is None else f"least time on {self.topology}"
        if self.memory is not None:
            named += f", within {bytes_text(int(self.memory))}"
        if self.seconds is not None:
            named += f", the best found in {self.seconds:g} s"
        if self.pins:
            named += f", {len(self.pins)} pinned"
        return named + (", products part by part" if self.collective_matmul else "")

    @property
    def arguments(self) -> list[str]:
        """The choice as arguments of a command: ``["--topology", "v5e"]``."""
        given = list[str]()
        for option in fields(self):
            value, flag = getattr(self, option.name), flag_of(option)
            if value == option.default:
                continue
            if isinstance(value, bool):
                given.append(flag)
                continue
            for each in value if isinstance(value, tuple) else (value,):
                given += flag, str(each.where if isinstance(each, PlanFile) else each)
        return given

    @property
    def options(self) -> ProgramOptions:
        """The choice as keywords of ``Session.partition``."""
        return cast(ProgramOptions, {each.name: getattr(self, each.name) for each in fields(self)})

    @property
    def machine(self) -> bytes:
        """The bytes of the TOML file that ``topology`` names; empty for a built-in machine."""
        named = str(self.topology or "")
        for name in (named, named.partition(":")[0]):  # with the shape of a torus: machine.toml:4x8
            with suppress(OSError, ValueError):  # which who reads the machine tells
                return Path(name).read_bytes()
        return b""

    @property
    def line(self) -> str:
        """The line that names the program, and the options that ask for others."""
        if self.plan is not None:
            others = "without --plan: least bytes"
        elif self.keep_shardings:
            others = "without --keep-shardings: least bytes, or least time with --topology MACHINE"
        elif self.topology is None:
            others = "--keep-shardings: as decided; --topology MACHINE: least time there"
        else:
            others = "--keep-shardings: as decided; without --topology: least bytes"
        return f"program: {self} ({others})"

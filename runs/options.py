"""What a run can be asked for, described once: for ``shardlog.run``, its help and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from inspect import Parameter, Signature
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ..errors import ShardlogError, closest
from ..importers.given import Given

if TYPE_CHECKING:
    from ..propagation.schedules.tactics import Step, Tactic

STRATEGIES = ("basic", "aggressive", "op-priority", "user-priority", "basic-then-aggressive")


def _about(text: str) -> dict[str, str]:
    return {"about": text}


@dataclass(frozen=True, kw_only=True)
class Options:
    """What a run is asked for; each option is a keyword of ``shardlog.run`` too.

    Raises ShardlogError for an unknown strategy, and for what is no schedule.
    """

    strategy: str = field(
        default="user-priority",
        metadata=_about(
            '"basic", "aggressive", "op-priority" or "user-priority", or "none" to propagate nothing'
        ),
    )
    closed: bool = field(
        default=True,
        metadata=_about(
            "whether the shardings are made ready for a compiler; otherwise they are open, as propagated"
        ),
    )
    mesh: Any = field(
        default=None,
        metadata=_about(
            'the mesh of the module in place of the one it has: "data=2,model=4", a `jax.sharding.Mesh` or '
            "an `AbstractMesh`"
        ),
    )
    annotate: Given = field(
        default=(),
        metadata=_about(
            "shardings for values: `{\"params['w']\": P(None, 'model')}` by JAX path or SSA name, a pytree "
            "of `PartitionSpec` or `NamedSharding` that matches the arguments as `in_shardings` of `jax.jit` "
            "does, or texts, as in `'%arg0=[{\"data\"}, {}]'`"
        ),
    )
    rules: Sequence[Path | str] = field(default=(), metadata=_about("files with more op rules"))
    include_from: Sequence[Path | str] = field(
        default=(),
        metadata=_about("folders that rule files may include files from, beside their own"),
    )
    limits: str = field(
        default="",
        metadata=_about(
            "what rules may take for one op, and a query: 'tuples=5000000,memory=2G,seconds=10'; what is not "
            "named stays at a million tuples (of a query ten), 4 GiB, 15 seconds; 'none' is no limit"
        ),
    )
    op_priorities: Path | str | None = field(
        default=None,
        metadata=_about(
            "a file that lists the ops in the order in which they propagate (docs/op_priorities.md)"
        ),
    )
    schedule: str | Path | Sequence[Tactic | Step] = field(
        default=(),
        metadata=_about(
            'tactics that come into force one after the other: text such as "batch: tokens -> data; '
            'zero: params -> data", a file with it, or `Tactic` objects (docs/tactics.md)'
        ),
    )
    until: str | int | None = field(
        default=None, metadata=_about("the tactic or user priority after which to stop")
    )
    conservative: bool = field(
        default=False, metadata=_about("whether to keep to whole axes, and to factors that need no halos")
    )
    keep_rules: bool = field(
        default=False,
        metadata=_about("whether every op is left its rule, as an attribute `sdy.sharding_rule`"),
    )
    separate_groups: bool = field(
        default=False,
        metadata=_about(
            "whether members of a sharding group that have different shardings each keep their own, with a "
            "warning; otherwise that is an error"
        ),
    )

    def __post_init__(self) -> None:
        from ..propagation.schedules.tactics import read_schedule

        if self.strategy not in (*STRATEGIES, "none"):
            raise ShardlogError(
                f"unknown strategy {self.strategy!r}", hint=closest(self.strategy, STRATEGIES)
            )
        if self.op_priorities is not None and not self.strategy.endswith("-priority"):
            message = f"the strategy {self.strategy!r} has no op priorities"
            hint = "take op-priority or user-priority"
            raise ShardlogError(message, where=str(self.op_priorities), hint=hint)
        keep = object.__setattr__
        if isinstance(self.rules, str | Path):
            keep(self, "rules", (self.rules,))
        if isinstance(self.include_from, str | Path):
            keep(self, "include_from", (self.include_from,))
        keep(self, "rules", tuple(map(Path, self.rules)))
        keep(self, "include_from", tuple(map(str, self.include_from)))
        keep(self, "op_priorities", None if self.op_priorities is None else Path(self.op_priorities))
        keep(self, "schedule", read_schedule(self.schedule))
        if isinstance(self.annotate, str):
            keep(self, "annotate", (self.annotate,))

    @property
    def files(self) -> tuple[Path, ...]:
        """The files with more op rules."""
        return tuple(map(Path, self.rules))

    @property
    def steps(self) -> tuple[Step, ...]:
        """The tactics of the schedule, as they were read."""
        from ..propagation.schedules.tactics import read_schedule

        return read_schedule(self.schedule)


NAMES = tuple(option.name for option in fields(Options))


def listed(indent: int = 0) -> str:
    """The options with their defaults and what they are, an indented paragraph each."""
    margin = " " * indent
    return "\n".join(
        fill(
            f"{option.name}={option.default!r}: {option.metadata['about']}.",
            width=110,
            initial_indent=margin,
            subsequent_indent=margin + "    ",
            break_on_hyphens=False,
        )
        for option in fields(Options)
    )


def described(signature: Signature) -> Signature:
    """The signature of a function that takes the options as keywords, with all of them."""
    *parameters, keywords = signature.parameters.values()
    options = [
        Parameter(option.name, Parameter.KEYWORD_ONLY, default=option.default, annotation=option.type)
        for option in fields(Options)
    ]
    return signature.replace(parameters=[*parameters, *options, keywords])

"""The options of a run, described once: for ``shardlog.run``, its help and the command line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, field, fields
from inspect import Parameter, Signature
from math import inf
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ..errors import ShardlogError, closest
from ..importers.given import Given
from ..program.elements import bytes_in
from ..program.shardy import LINES, installed
from ..propagation.completion.traversals import TRAVERSALS

if TYPE_CHECKING:
    from ..propagation.schedules.tactics import ReadTactic, Tactic

VIEWS = ("lowered", "roundtrip", "compiled")
TOPOLOGY = "v5e"  # the machine of costs, where none is named
STRATEGIES = ("basic", "aggressive", "basic-then-aggressive", "op-priority", "user-priority")
PROPAGATIONS = ("shardy", "completion")


def machine_of_costs(topology: str | None) -> str:
    """The machine for costs: the named one, or the default."""
    return TOPOLOGY if topology is None else topology


def memory_of(given: object) -> int:
    """A size in bytes, from a number or a text such as "16GiB".

    Raises ValueError for anything else.
    """
    size = None if isinstance(given, bool | float) else bytes_in(f"{given}")
    if size is None:
        raise ValueError(f"{given!r} is not a size: expected one such as 16GiB, 500MiB or 4096")
    if not size:
        raise ValueError(f"{given!r} is less than a byte: expected one such as 16GiB, or 4096")
    return size


def seconds_of(given: Any) -> float:
    """A time in seconds, zero or more.

    Raises ValueError for anything else.
    """
    try:
        seconds = -1.0 if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 <= seconds < inf:
        raise ValueError(f"{given!r} is not a time: expected seconds, such as 2.5")
    return seconds


@dataclass(frozen=True)
class Described:
    """The description of an option for the help of Python and of the command line."""

    about: str
    also: str = ""  # what else it may be in Python
    otherwise: str = ""  # what is so without it
    flag: str = ""  # on the command line, where it does not follow from the name
    metavar: str | None = None
    repeated: bool = False  # whether the flag may be given several times
    choices: tuple[str, ...] = ()
    negated: bool = False  # whether there is a flag that says no, too
    read: Callable[[str], Any] | None = None  # a value from its text; raises ValueError

    def __str__(self) -> str:
        one_of = f": {', '.join(self.choices)}" if self.choices else ""
        also = f"; also {self.also}" if self.also else ""
        return f"{self.about}{one_of}{also}" + (f"; otherwise {self.otherwise}" if self.otherwise else "")


def about(text: str, **more: Any) -> dict[str, Described]:
    """The metadata of a field that is an option."""
    return {"described": Described(text, **more)}


def flag_of(option: Field[Any]) -> str:
    """The flag of an option on the command line."""
    flag: str = option.metadata["described"].flag
    return flag or f"--{option.name.replace('_', '-')}"


@dataclass(frozen=True, kw_only=True)
class Options:
    """The options of a run; each is a keyword of ``shardlog.run`` too.

    ``help(shardlog.run)`` describes them. Raises ShardlogError for an unknown strategy, Shardy or view, for a
    malformed schedule, and for op priorities with a strategy that has none.
    """

    mesh: Any = field(
        default=None,
        metadata=about(
            "replace the mesh of the module, as in data=2,model=4",
            also="a `jax.sharding.Mesh` or an `AbstractMesh`",
            metavar="AXES",
        ),
    )
    annotate: Given = field(
        default=(),
        metadata=about(
            "annotate a value, given by SSA name or JAX path, as in "
            """'%arg0=[{"data"}, {}]' or "%arg0=P('data')\"""",
            also="several, `{\"params['w']\": P(None, 'model')}`, or a pytree of `PartitionSpec` or "
            "`NamedSharding` that matches the arguments as `in_shardings` of `jax.jit` does",
            metavar="VALUE=SHARDING",
            repeated=True,
        ),
    )
    rules: Sequence[Path | str] = field(
        default=(),
        metadata=about("a file with more op rules", also="several", metavar="FILE", repeated=True),
    )
    include_from: Sequence[Path | str] = field(
        default=(),
        metadata=about(
            "another folder from which rule files may include files",
            also="several",
            flag="--allow-include",
            metavar="DIR",
            repeated=True,
        ),
    )
    limits: str = field(
        default="",
        metadata=about(
            "limits on the rules of one op and on a query, as in tuples=5000000,memory=2G,seconds=10; by "
            "default a million tuples (ten million for a query), 4 GiB and 6 seconds; none lifts a limit",
            metavar="LIMITS",
        ),
    )
    shardy: str | None = field(
        default=None,
        metadata=about(
            "the Shardy to follow, given by the version of its jaxlib",
            otherwise="that of the installed jaxlib",
            choices=LINES,
        ),
    )
    op_priorities: Path | str | None = field(
        default=None,
        metadata=about(
            "a file with the order in which ops propagate (docs/op_priorities.md)",
            metavar="FILE",
        ),
    )
    schedule: str | Path | Sequence[Tactic | ReadTactic] = field(
        default=(),
        metadata=about(
            "tactics to apply one after the other, as in 'batch: tokens -> data; zero: params -> data', or a "
            "file with them (docs/tactics.md)",
            also="`Tactic` objects",
            metavar="TACTICS",
        ),
    )
    until: str | int | None = field(
        default=None, metadata=about("stop after this tactic or user priority", metavar="TACTIC")
    )
    view: str = field(
        default="lowered",
        metadata=about(
            "the program to read: as given, after a round trip through HLO, or as XLA gives it to Shardy",
            choices=VIEWS,
        ),
    )
    dumped: str = field(
        default="",
        metadata=about(
            "which module of an XLA dump to read, as in jit_step", flag="--module", metavar="NAME"
        ),
    )
    entry: str = field(
        default="",
        metadata=about(
            "the function that runs, if the module has several and none is called main; shardlog renames it "
            "to main",
            metavar="NAME",
        ),
    )
    conservative: bool = field(
        default=False, metadata=about("use whole axes only, and no factors that need halos")
    )
    strict_shardy: bool = field(
        default=False,
        metadata=about(
            "use Shardy's own op rules alone, so that every decision is Shardy's: no sharding passes through "
            "CHLO ops, which XLA lowers before it calls Shardy"
        ),
    )
    separate_groups: bool = field(
        default=False,
        metadata=about(
            "let members of a sharding group keep different shardings, with a warning",
            otherwise="different shardings are an error",
        ),
    )
    strategy: str = field(
        default="user-priority",
        metadata=about("how to propagate", also="`none`, which propagates nothing", choices=STRATEGIES),
    )
    propagation: str = field(
        default="shardy",
        metadata=about(
            "the algorithm: Shardy's, or completion, as in the device mesh RFC and MLIR's shard dialect",
            choices=PROPAGATIONS,
        ),
    )
    traversal: str = field(
        default="backward-forward",
        metadata=about("the order in which completion visits the ops", choices=(*TRAVERSALS,)),
    )
    sharding_option: str | Sequence[str] = field(
        default=(),
        metadata=about(
            "with completion: the axes of each loop of an op, whatever its annotations say, as in "
            "'%4=[[], [], [], [0]]'",
            also="several",
            flag="--option",
            metavar="VALUE=AXES",
            repeated=True,
        ),
    )
    closed: bool = field(
        default=True,
        metadata=about(
            "close the shardings, as compilers need them",
            otherwise="leave the shardings open, as propagation left them",
            flag="--open",
        ),
    )
    explicit_reshards: bool = field(
        default=False,
        metadata=about(
            "insert reshards around ops whose operands are not sharded alike, as Shardy does for a compiler"
        ),
    )
    full_reshards: bool = field(
        default=False, metadata=about("insert explicit reshards around all ops, not only where Shardy does")
    )
    mark_partial_results: bool = field(
        default=False,
        metadata=about("insert explicit reshards, and mark results as unreduced before they are all-reduced"),
    )
    keep_rules: bool = field(
        default=False, metadata=about("write the rule of every op as an attribute, sdy.sharding_rule")
    )

    def __post_init__(self) -> None:
        from ..propagation.schedules.tactics import read_schedule

        if self.strategy not in (*STRATEGIES, "none"):
            raise ShardlogError(
                f"unknown strategy {self.strategy!r}", hint=closest(self.strategy, STRATEGIES)
            )
        if self.shardy is not None and self.shardy not in LINES:
            raise ShardlogError(f"there is no Shardy {self.shardy!r}", hint=f"there are {', '.join(LINES)}")
        if self.propagation not in PROPAGATIONS:
            hint = closest(self.propagation, PROPAGATIONS)
            raise ShardlogError(f"unknown propagation {self.propagation!r}", hint=hint)
        if self.traversal not in TRAVERSALS:
            raise ShardlogError(
                f"unknown traversal {self.traversal!r}", hint=closest(self.traversal, TRAVERSALS)
            )
        if self.view not in VIEWS:
            raise ShardlogError(f"there is no view {self.view!r}", hint=f"there are {', '.join(VIEWS)}")
        if self.op_priorities is not None and not self.strategy.endswith("-priority"):
            message = f"the strategy {self.strategy!r} has no op priorities"
            hint = "use op-priority or user-priority"
            raise ShardlogError(message, where=str(self.op_priorities), hint=hint)
        keep = object.__setattr__
        if self.propagation == "completion":
            if self.schedule or self.until is not None or self.op_priorities is not None:
                hint = "leave out --schedule, --until and --op-priorities, or use --propagation shardy"
                raise ShardlogError("completion has no tactics and no priorities", hint=hint)
            if self.strategy not in ("none", Options.strategy):
                hint = "leave out --strategy, or use --propagation shardy"
                raise ShardlogError(f"completion has no strategy {self.strategy!r}", hint=hint)
            keep(self, "strategy", "none")
        elif self.sharding_option:
            hint = "add --propagation completion, or leave out --option"
            raise ShardlogError("Shardy's algorithm has no sharding options of ops", hint=hint)
        elif self.traversal != Options.traversal:
            hint = "add --propagation completion, or leave out --traversal"
            raise ShardlogError("Shardy's algorithm has no traversal", hint=hint)
        if self.include_from and not (self.rules or self.op_priorities):
            hint = "add --rules FILE, or leave out --allow-include"
            raise ShardlogError(
                "no file is given that may include others", where="--allow-include", hint=hint
            )
        if isinstance(self.sharding_option, str):
            keep(self, "sharding_option", (self.sharding_option,))
        keep(self, "sharding_option", tuple(map(str, self.sharding_option)))
        if isinstance(self.rules, str | Path):
            keep(self, "rules", (self.rules,))
        if isinstance(self.include_from, str | Path):
            keep(self, "include_from", (self.include_from,))
        for path in self.rules:
            if not isinstance(path, str | Path):
                raise ShardlogError(f"{path!r} is not a path", where="rules", hint="expected rule files")
        keep(self, "rules", tuple(map(Path, self.rules)))
        keep(self, "include_from", tuple(map(str, self.include_from)))
        keep(self, "op_priorities", None if self.op_priorities is None else Path(self.op_priorities))
        keep(self, "shardy", self.shardy or installed())  # a saved run keeps it
        keep(self, "schedule", read_schedule(self.schedule))
        if isinstance(self.annotate, str):
            keep(self, "annotate", (self.annotate,))

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that rules read, as names of relations of ``rules/ops/schema.dl``."""
        return tuple(name for name in ("conservative", "strict_shardy") if getattr(self, name))

    @property
    def files(self) -> tuple[Path, ...]:
        """The paths of the files with more op rules."""
        return tuple(map(Path, self.rules))

    @property
    def steps(self) -> tuple[ReadTactic, ...]:
        """The tactics of the schedule, in order."""
        from ..propagation.schedules.tactics import read_schedule

        return read_schedule(self.schedule)


NAMES = tuple(option.name for option in fields(Options))
ON_MODULES = (
    "closed",
    "keep_rules",
    "explicit_reshards",
    "full_reshards",
    "mark_partial_results",
)  # what matters only where a module is written
ON_RULES = ("rules", "include_from", "limits", "shardy")  # what matters where rules are read


def listed(indent: int = 0) -> str:
    """The options with their defaults and descriptions, an indented paragraph each."""
    margin = " " * indent
    return "\n".join(
        fill(
            f"{option.name}={option.default!r}: {option.metadata['described']}.",
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

"""Plans: a mesh, and the shardings of arguments and results over it; also as files."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..errors import ShardlogError

VERSION = 1
Entry = None | str | tuple[str, ...]  # of a dimension: whole, over an axis, or over several
Spec = tuple[Entry, ...]
T = TypeVar("T")
_INDEX = re.compile(r"(?<=\[)\d+(?=\])")


@dataclass(frozen=True)
class Placed:
    """An argument or a result, by its name, and its spec: the axes of each dimension."""

    name: str
    spec: Spec

    @property
    def text(self) -> str:
        """The sharding in Shardy's notation, with closed dimensions."""
        return text_of(self.spec)


@dataclass(frozen=True)
class Other:
    """Another spec of an argument.

    ``seconds`` is the increase of the sum if the argument alone, and those laid out alike, had it; it may be
    negative beside a plan whose sum is not the least. Also the op whose cost rises most, with its place;
    empty for none.
    """

    spec: Spec
    seconds: float
    op: str
    where: str


@dataclass(frozen=True)
class Tried:
    """A plan whose cost is known, by its name: ``seconds`` of a step and ``peak`` bytes of a device.

    If its program was not ``written``, both are estimates by the sum.
    """

    name: str
    mesh: str
    seconds: float
    peak: int
    written: bool = True


@dataclass(frozen=True)
class AutoPlan:
    """A plan: shardings for the arguments and results of a program.

    ``mesh`` is a text such as "data=4,model=2", ``topology`` the machine. ``seconds`` is the time of a step
    of the partitioned program, and ``peak`` the bytes of a device, by ``docs/cost.md``. ``sum`` is the sum
    that the search minimised, in seconds, and ``bound`` a lower bound of it; None if nothing was searched.
    ``state`` has, by result, the argument that it becomes. ``tried`` are all plans whose cost was computed or
    estimated, the best first. ``others`` are the next best specs of each argument. ``notes`` say where an
    applied plan differs from the given one.
    """

    mesh: str
    topology: str
    seconds: float
    peak: int
    sum: float | None
    bound: float | None
    arguments: tuple[Placed, ...]
    results: tuple[Placed, ...]
    state: Mapping[int, int]
    memory: int | None = None
    tried: tuple[Tried, ...] = ()
    others: tuple[tuple[Other, ...], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def gap(self) -> float | None:
        """The relative gap between the sum and its bound; None if nothing was searched."""
        if self.sum is None or self.bound is None:
            return None
        return 1 - self.bound / self.sum if self.sum else 0.0

    @property
    def annotations(self) -> tuple[str, ...]:
        """The plan as annotations of a run, in order."""
        named = [(f"%arg{n}", placed) for n, placed in enumerate(self.arguments)]
        named += [(f"result#{n}", placed) for n, placed in enumerate(self.results)]
        return tuple(f"{name}={placed.text}" for name, placed in named if placed.spec)

    def as_json(self) -> dict[str, Any]:
        """The plan as a JSON document."""
        document: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return {"version": VERSION, **document, "gap": self.gap}

    @property
    def text(self) -> str:
        """The plan as a file."""
        return json.dumps(self.as_json(), indent=1) + "\n"

    @staticmethod
    def read(path: str | Path) -> AutoPlan:
        """The plan in a file. Raises ShardlogError for a file that is not a plan."""
        hint = "expected a plan, as shardlog auto -o PLAN.json writes it"
        try:
            given = json.loads(Path(path).read_text())
            if given["version"] != VERSION:
                raise ShardlogError(f"a plan of version {given['version']}", where=str(path), hint=hint)
            placed = {
                label: tuple(Placed(str(each["name"]), _spec(each["spec"])) for each in given[label])
                for label in ("arguments", "results")
            }
            return AutoPlan(
                str(given["mesh"]),
                str(given["topology"]),
                _amount(given["seconds"]),
                _bytes(given["peak"]),
                None if given["sum"] is None else _amount(given["sum"]),
                None if given["bound"] is None else _amount(given["bound"]),
                placed["arguments"],
                placed["results"],
                {int(result): int(argument) for result, argument in given["state"].items()},
                None if given["memory"] is None else _bytes(given["memory"]),
                tuple(
                    Tried(
                        str(each["name"]),
                        str(each["mesh"]),
                        _amount(each["seconds"]),
                        _bytes(each["peak"]),
                        bool(each.get("written", True)),
                    )
                    for each in given["tried"]
                ),
                tuple(
                    tuple(
                        Other(
                            _spec(each["spec"]), _finite(each["seconds"]), str(each["op"]), str(each["where"])
                        )
                        for each in argument
                    )
                    for argument in given["others"]
                ),
                tuple(map(str, given.get("notes", ()))),
            )
        except OSError as error:
            raise ShardlogError(f"cannot read: {error.strerror}", where=str(path)) from None
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError):
            raise ShardlogError("not a plan", where=str(path), hint=hint) from None


def _finite(given: Any) -> float:
    number = float(given)
    if not math.isfinite(number):
        raise ValueError(given)
    return number


def _amount(given: Any) -> float:
    """Seconds: finite, and not negative."""
    amount = _finite(given)
    if amount < 0:
        raise ValueError(given)
    return amount


def _bytes(given: Any) -> int:
    amount = int(given)
    if amount < 0:
        raise ValueError(given)
    return amount


def _spec(given: Any) -> Spec:
    if not isinstance(given, list):
        raise ValueError(given)
    entries = [tuple(map(str, entry)) if isinstance(entry, list) else entry for entry in given]
    if not all(entry is None or isinstance(entry, str | tuple) for entry in entries):
        raise ValueError(given)
    names = [name for each in axes_of(tuple(entries)) for name in each]
    if len(set(names)) < len(names):
        raise ValueError(f"an axis twice: {given}")
    return tuple(entries)


def spec_of(axes: tuple[tuple[str, ...], ...]) -> Spec:
    """The spec with these axes for each dimension."""
    return tuple(None if not names else names[0] if len(names) == 1 else names for names in axes)


def axes_of(spec: Spec) -> tuple[tuple[str, ...], ...]:
    """The axes of each dimension of a spec."""
    return tuple(() if not each else (each,) if isinstance(each, str) else each for each in spec)


def text_of(spec: Spec) -> str:
    """A spec in Shardy's notation."""
    from ..program.meshes import quoted

    dims = ("{" + ", ".join(map(quoted, names)) + "}" for names in axes_of(spec))
    return f"[{', '.join(dims)}]"


def pattern_of(name: str) -> str:
    """The name without its indices: equal for the arguments of like layers."""
    return _INDEX.sub("", name)


def indices_of(name: str) -> list[int]:
    """The indices in a name, the outermost first."""
    return [int(number) for number in _INDEX.findall(name)]


def front(plans: Iterable[T], cost: Callable[[T], tuple[float, int]]) -> list[T]:
    """The Pareto front: the things that are not both slower and larger than another, the fastest first.

    ``cost`` returns the seconds and the bytes of a thing.
    """
    best = list[T]()
    for plan in sorted(plans, key=cost):
        if not best or cost(plan)[1] < cost(best[-1])[1]:
            best.append(plan)
    return best

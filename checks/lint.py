"""Lints: patterns that a run should not have, such as large tensors that every device holds all of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from math import prod
from typing import Any

from ..errors import ShardlogError, closest
from ..explanations.answers.text import given_text, moves_text, short_why_not, wrapped
from ..explanations.questions.conflicts import conflicts_or_error
from ..explanations.questions.why import Explainer
from ..explanations.questions.why_not import Search
from ..program.elements import bytes_in, bytes_text, size_of
from ..program.mlir.origins import at
from ..runs.choice import ProgramChoice
from ..runs.records.record import Run, Value, record

_MOST_REASONS = 20


@dataclass(frozen=True)
class Finding:
    """Something that a lint found: the tensor or op, where it is in the user's program, with the name stack
    there, and why.

    ``bytes`` are per device; 0 for what has none.
    """

    lint: str
    what: str
    where: str
    stack: str
    bytes: int
    sentence: str
    because: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The finding as JSON has it."""
        return {**asdict(self), "because": list(self.because)}

    def __str__(self) -> str:
        place = at(self.where, self.stack)
        lines = [f"{self.lint}: {self.what}{place}", *wrapped("  ", self.sentence)]
        return "\n".join([*lines, *(text for reason in self.because for text in wrapped("      ", reason))])


@dataclass(frozen=True)
class Lint:
    """A lint with its limit in bytes, as ``replicated-above=64MiB`` says; 0 for lints without one."""

    name: str
    limit: int

    @staticmethod
    def parse(text: str) -> Lint:
        """Reads ``NAME`` or ``NAME=SIZE``. Raises ShardlogError for what is neither."""
        name, equals, size = text.partition("=")
        where = f"--fail-on {text}"
        if name not in _LINTS:
            raise ShardlogError(f"there is no lint {name!r}", where=where, hint=closest(name, _LINTS))
        if not _LINTS[name].sized:
            if equals:
                raise ShardlogError("this lint takes no size", where=where, hint=f"expected {name}")
            return Lint(name, 0)
        if (least := bytes_in(size)) is None:
            hint = f"expected a size in bytes, KiB, MiB, GiB or TiB, as in {name}=64MiB"
            raise ShardlogError(
                "no size" if not size else f"{size[:40]!r} is no size", where=where, hint=hint
            )
        return Lint(name, least)


def findings(run: Run, lints: Sequence[Lint], choice: ProgramChoice | None = None) -> list[Finding]:
    """The findings of lints in a run, lint by lint, most bytes first; what moves is that of the program that
    ``choice`` means."""
    meant = choice or ProgramChoice()
    return [finding for lint in dict.fromkeys(lints) for finding in _LINTS[lint.name].find(run, lint, meant)]


def _unknown_op(run: Run, lint: Lint, _: ProgramChoice) -> Iterator[Finding]:
    for op in record(run).unknown_ops:
        times = "once" if op["count"] == 1 else f"{op['count']:,} times"
        because = (op["reason"],) if op["reason"] else ()
        yield Finding(
            lint.name, op["name"], op["location"], op["stack"], 0, f"no rule for it, {times}", because
        )


def _reshard_above(run: Run, lint: Lint, choice: ProgramChoice) -> Iterator[Finding]:
    found, error = conflicts_or_error(run, choice)
    if error:  # what is not known to be small is not let pass
        yield Finding(
            lint.name, "what must move is not known", error.where, "", 0, error.message, (error.hint,)
        )
    for conflict in found:
        if conflict.bytes > lint.limit:
            move = moves_text(conflict)
            said = f"{bytes_text(conflict.bytes)} per device, {conflict.collective}: {move}"
            yield Finding(
                lint.name,
                f"{conflict.tensor} : {conflict.type}",
                conflict.where,
                conflict.stack,
                conflict.bytes,
                f"{said} for {conflict.op}, {conflict.slot}",
                (given_text(conflict.given),) if conflict.given else (),
            )


@dataclass(frozen=True)
class _Replicated:
    """A tensor of which each device holds ``bytes`` more than its share, as it is not sharded on ``axes``."""

    value: Value
    bytes: int
    held: int
    axes: tuple[str, ...]


def _replicated_above(run: Run, lint: Lint, _: ProgramChoice) -> Iterator[Finding]:
    explainer = Explainer(run)
    found = sorted(_replicated(explainer, lint.limit), key=lambda tensor: -tensor.bytes)
    searches: dict[str, Search] = {}
    for number, tensor in enumerate(found):
        value = tensor.value
        names = ", ".join(f'"{axis}"' for axis in tensor.axes)
        yield Finding(
            lint.name,
            f"{value.name} : {value.type}",
            value.where,
            value.stack,
            tensor.bytes,
            f"{bytes_text(tensor.bytes)} of the {bytes_text(tensor.held)} per device are copies: "
            f"it is not sharded on {names}",
            tuple(_reasons(explainer, searches, tensor)) if number < _MOST_REASONS else (),
        )


def _replicated(explainer: Explainer, limit: int) -> Iterator[_Replicated]:
    meshes, run = explainer.meshes, explainer.record
    seen: set[int] = set()
    for value in explainer.values.all():
        if value.place in seen or not meshes.meshes:
            continue
        seen.add(value.place)
        held = run.facts(run.contents(run.cell(value.place))[1]).get("mesh")
        mesh = meshes.meshes[held[0][0] if held else 0]
        if mesh.maximal:
            continue
        manual = {axis for axis, _ in value.manual}  # along which it is a part already
        axes = {name: size for name, size in mesh.axes if name not in manual}
        used = [axis for atoms in run.axes(value.number) for axis in meshes.merge(atoms)]
        left = {name: size // prod(a.size for a in used if a.name == name) for name, size in axes.items()}
        total, devices = size_of(value.type), prod(axes.values())
        local = -(-total // prod(axis.size for axis in used))
        copies = local - -(-total // devices)
        if copies > limit:
            yield _Replicated(value, copies, local, tuple(name for name, size in left.items() if size > 1))


def _reasons(explainer: Explainer, searches: dict[str, Search], tensor: _Replicated) -> Iterable[str]:
    """Why the largest dimension is not sharded on the axes that are left."""
    shape = tensor.value.shape
    if not shape:
        return
    dim = max(range(len(shape)), key=lambda d: shape[d])
    for axis in tensor.axes:
        search = searches.setdefault(axis, Search(explainer, axis))
        try:
            yield f'dim {dim} on "{axis}": {short_why_not(search.explain(tensor.value, dim))}'
        except ShardlogError:  # it is, on a part of the axis
            continue


@dataclass(frozen=True)
class _Entry:
    """A lint: the function that finds, and whether it takes a size."""

    find: Callable[[Run, Lint, ProgramChoice], Iterator[Finding]]
    sized: bool


_LINTS = {
    "replicated-above": _Entry(_replicated_above, sized=True),
    "unknown-op": _Entry(_unknown_op, sized=False),
    "reshard-above": _Entry(_reshard_above, sized=True),
}

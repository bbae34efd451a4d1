"""Lints: patterns that a run should not have, such as large tensors that every device holds all of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path

from ..errors import ShardlogError, closest
from ..explanations.answers.conflicts import moves_text
from ..explanations.answers.text import given_text
from ..explanations.answers.why_not import short_why_not
from ..explanations.questions.why import Explainer
from ..explanations.questions.why_not import WhyNotSearch
from ..program.elements import bytes_in, bytes_text, size_of
from ..runs.choice import ProgramChoice
from ..runs.records.record import TensorValue
from ..runs.records.saved import open_saved
from ..runs.records.saved_file import is_saved
from ..session import Session
from . import limits
from .findings import Finding
from .limits import count_in, time_in

_MOST_REASONS = 20  # findings with reasons, the first ones


@dataclass(frozen=True)
class Lint:
    """A lint with its limit, as in ``replicated-above=64MiB``.

    The ``limit`` is in bytes, seconds or collectives; 0 for lints without one. ``against`` is the file of the
    saved run that it compares with.
    """

    name: str
    limit: float
    against: str = ""

    @staticmethod
    def parse(text: str) -> Lint:
        """Reads ``NAME`` or ``NAME=LIMIT``. Raises ShardlogError for anything else."""
        name, equals, given = text.partition("=")
        where = f"--fail-on {text}"
        if name not in _LINTS:
            raise ShardlogError(f"there is no lint {name!r}", where=where, hint=closest(name, _LINTS))
        takes = _LINTS[name].takes
        if not takes:
            if equals:
                raise ShardlogError("this lint takes no size", where=where, hint=f"expected {name}")
            return Lint(name, 0)
        noun, hint = _TAKEN[takes]
        hint = hint.format(name=name)
        if not given:
            raise ShardlogError(f"no {noun}", where=where, hint=hint)
        if takes == "run":
            if not Path(given).exists():
                raise ShardlogError(f"there is no file {given}", where=where, hint=hint)
            if not is_saved(Path(given)):
                raise ShardlogError(f"{given} is not a {noun}", where=where, hint=hint)
            return Lint(name, 0, given)
        limit = {"size": bytes_in, "count": count_in, "time": time_in}[takes](given)
        if limit is None:
            raise ShardlogError(f"{given[:40]!r} is not a {noun}", where=where, hint=hint)
        return Lint(name, limit)

    def check(self, choice: ProgramChoice) -> None:
        """Raises ShardlogError where the program that is meant is not one that the lint can look at."""
        if _LINTS[self.name].takes == "time" and choice.topology is None:
            hint = "give --topology, such as v5e"
            raise ShardlogError("a limit on time needs a machine", where=f"--fail-on {self.name}", hint=hint)


def findings(session: Session, lints: Sequence[Lint], choice: ProgramChoice | None = None) -> list[Finding]:
    """The findings of lints in a run, lint by lint, most bytes first.

    Collectives are those of the program that ``choice`` means.
    """
    meant, listed = choice or ProgramChoice(), list[Finding]()
    for lint in dict.fromkeys(lints):
        lint.check(meant)
        try:
            listed += _LINTS[lint.name].find(session, lint, meant)
        except ShardlogError as error:
            if not _LINTS[lint.name].of_program:
                raise
            # What is not known to be small is not let pass.
            sentence, because = error.message, (error.hint,) if error.hint else ()
            listed.append(
                Finding(lint.name, "the collectives are not known", error.where, "", 0, sentence, because)
            )
    return listed


def _unknown_op(session: Session, lint: Lint, _: ProgramChoice) -> Iterator[Finding]:
    for op in session.record.unknown_ops:
        times = "once" if op["count"] == 1 else f"{op['count']:,} times"
        because = (op["reason"],) if op["reason"] else ()
        yield Finding(
            lint.name, op["name"], op["location"], op["stack"], 0, f"no rule for it, {times}", because
        )


def _reshard_above(session: Session, lint: Lint, choice: ProgramChoice) -> Iterator[Finding]:
    for conflict in session.conflicts(**choice.options):
        if conflict.bytes > lint.limit:
            move = moves_text(conflict)
            sent = f"{bytes_text(conflict.bytes)} per device, {conflict.collective}: {move}"
            yield Finding(
                lint.name,
                f"{conflict.tensor} : {conflict.type}",
                conflict.where,
                conflict.stack,
                conflict.bytes,
                f"{sent} for {conflict.op}, {conflict.slot}",
                (given_text(conflict.given),) if conflict.given else (),
            )


@dataclass(frozen=True)
class _Replicated:
    """A tensor that is not sharded on ``axes``, so that each device holds ``bytes`` more than its share."""

    value: TensorValue
    bytes: int
    held: int
    axes: tuple[str, ...]


def _replicated_above(session: Session, lint: Lint, _: ProgramChoice) -> Iterator[Finding]:
    explainer = session.explainer
    tensors = sorted(_replicated(explainer, int(lint.limit)), key=lambda tensor: -tensor.bytes)
    searches: dict[str, WhyNotSearch] = {}
    for number, tensor in enumerate(tensors):
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


def _reasons(explainer: Explainer, searches: dict[str, WhyNotSearch], tensor: _Replicated) -> Iterable[str]:
    """Why the largest dimension is not sharded on the axes that are left."""
    shape = tensor.value.shape
    if not shape:
        return
    dim = max(range(len(shape)), key=lambda d: shape[d])
    for axis in tensor.axes:
        search = searches.setdefault(axis, WhyNotSearch(explainer, axis))
        try:
            yield f'dim {dim} on "{axis}": {short_why_not(search.explain(tensor.value, dim))}'
        except ShardlogError:  # it is, on a part of the axis
            continue


def _collectives(session: Session, lint: Lint, choice: ProgramChoice) -> Iterator[Finding]:
    return limits.collectives(session, int(lint.limit), choice)


def _sent(session: Session, lint: Lint, choice: ProgramChoice) -> Iterator[Finding]:
    return limits.sent(session, int(lint.limit), choice)


def _memory(session: Session, lint: Lint, choice: ProgramChoice) -> Iterator[Finding]:
    return limits.memory(session, int(lint.limit), choice)


def _time(session: Session, lint: Lint, choice: ProgramChoice) -> Iterator[Finding]:
    return limits.time(session, lint.limit, choice)


def _new_collective(session: Session, lint: Lint, choice: ProgramChoice) -> Iterator[Finding]:
    return limits.new_collectives(session, Session(saved=open_saved(lint.against)), choice)


@dataclass(frozen=True)
class _LintEntry:
    """A lint: its function, the kind of its limit, and whether it looks at the chosen program."""

    find: Callable[[Session, Lint, ProgramChoice], Iterator[Finding]]
    takes: str = ""
    of_program: bool = False


_TAKEN = {
    "size": ("size", "expected a size in bytes, KiB, MiB, GiB or TiB, as in {name}=64MiB"),
    "count": ("number", "expected a whole number, as in {name}=12"),
    "time": ("time", "expected seconds, or a time in us, ms or s, as in {name}=1.5ms"),
    "run": ("saved run", "expected the file of one, as `shardlog run MODULE --save FILE` writes it"),
}
_LINTS = {
    "replicated-above": _LintEntry(_replicated_above, "size"),
    "unknown-op": _LintEntry(_unknown_op),
    "reshard-above": _LintEntry(_reshard_above, "size", of_program=True),
    "collectives": _LintEntry(_collectives, "count", of_program=True),
    "sent": _LintEntry(_sent, "size", of_program=True),
    "memory": _LintEntry(_memory, "size", of_program=True),
    "time": _LintEntry(_time, "time", of_program=True),
    "new-collective": _LintEntry(_new_collective, "run", of_program=True),
}

"""A partitioned program, compiled ahead of time: its memory, and the collectives that XLA kept."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ..program.elements import bytes_text
from ..program.mlir.modules import bytecode_of, with_main
from ..runs.table import plural, table
from .cost import cost
from .hlo import KINDS, hlo_collectives
from .machine import machine, names
from .targets import compile_for, read_target
from .text import counted

if TYPE_CHECKING:
    from ..runs.choice import ProgramChoice
    from ..runs.partitioned import PartitionedRun


@dataclass(frozen=True)
class Memory:
    """The memory of a device in bytes, as the compiler reports it.

    It holds arguments, results and temporaries; ``shared`` bytes of results are in the memory of arguments.
    ``expected`` is the total by the estimate of ``shardlog cost``.
    """

    arguments: int
    results: int
    shared: int
    temporary: int
    expected: int

    @property
    def total(self) -> int:
        """The total in bytes."""
        return self.arguments + self.results - self.shared + self.temporary


@dataclass(frozen=True)
class KeptCollectives:
    """The collectives of one kind: how many a device runs, and the bytes that it sends.

    ``count`` and ``bytes`` are for shardlog's program, the others for XLA's.
    """

    kind: str
    count: int
    bytes: int
    compiled_count: int
    compiled_bytes: int


@dataclass(frozen=True)
class Ahead:
    """A ``program`` compiled for a ``target``.

    It has the memory, the collectives by kind, and the floating-point operations: ``flops`` of shardlog's
    program, and ``compiled_flops`` as XLA counts them, with loops once (None if XLA does not report them).
    ``hlo`` is the optimised HLO.
    """

    program: ProgramChoice
    target: str
    devices: int
    memory: Memory
    collectives: tuple[KeptCollectives, ...]
    flops: float
    compiled_flops: float | None
    hlo: str

    def as_json(self) -> dict[str, Any]:
        """All but the HLO, as a JSON document; ``shardlog compile --schema`` is its schema."""
        return {
            "program": str(self.program),
            "target": self.target,
            "devices": self.devices,
            "memory": {**asdict(self.memory), "total": self.memory.total},
            "collectives": [asdict(kept) for kept in self.collectives],
            "flops": self.flops,
            "compiled_flops": self.compiled_flops,
        }

    def __str__(self) -> str:
        memory = self.memory
        parts = (
            ("arguments", memory.arguments),
            ("results", memory.results),
            ("temporary", memory.temporary),
        )
        shared = f", of which results have {bytes_text(memory.shared)} of arguments" if memory.shared else ""
        lines = [
            self.program.line,
            f"compiled for {plural(self.devices, 'device')} of {self.target}",
            f"{bytes_text(memory.total)} of memory each ({bytes_text(memory.expected)} expected): "
            + ", ".join(f"{name} {bytes_text(size)}" for name, size in parts)
            + shared,
        ]
        compiled = self.compiled_flops
        theirs = f", {counted(compiled)} as XLA counts them, loops once" if compiled is not None else ""
        lines.append(f"{counted(self.flops)} operations{theirs}")
        if not self.collectives:
            return "\n".join([*lines, "it moves nothing"])
        rows = [
            (k.kind, f"{k.count:,}", f"{k.bytes:,}", f"{k.compiled_count:,}", f"{k.compiled_bytes:,}")
            for k in self.collectives
        ]
        return "\n".join([*lines, "", table(("collective", "ours", "bytes", "XLA's", "bytes"), rows)])


def ahead(program: PartitionedRun, text: str) -> Ahead:
    """A partitioned program, compiled ahead of time for the target that ``text`` names ("tpu:v5e:2x4").

    Returns its memory and collectives, in bytes for one device. Raises ShardlogError for an unknown target,
    if its compiler is not installed, and if XLA cannot compile the program.
    """
    target = read_target(text)
    estimated = (name for name in (target.name, target.platform) if name in names())
    predicted = cost(program, machine(next(estimated, names()[0])))
    module = with_main(program.module_for(target.platform))
    compiled = compile_for(bytecode_of(module), target, program.axes.count, program.form)
    memory = compiled["memory"]
    ours: dict[str, tuple[int, int]] = {}
    rings = {window.sent.op for window in program.windows}  # of permutes
    for each, collective in zip(program.collectives, program.sent, strict=True):
        kind, steps = (
            ("collective-permute", collective.group - 1) if collective.op in rings else (each.kind, 1)
        )
        count, sent = ours.get(kind, (0, 0))
        ours[kind] = count + steps * each.repeats, sent + each.total
    theirs = hlo_collectives(compiled["hlo"])
    kinds = [kind for kind in KINDS if kind in ours or kind in theirs]
    kept = (
        KeptCollectives(
            kind, *ours.get(kind, (0, 0)), theirs.get(kind, (0, 0))[0], round(theirs.get(kind, (0, 0))[1])
        )
        for kind in kinds
    )
    return Ahead(
        program.choice,
        text,
        program.axes.count,
        Memory(memory["argument"], memory["output"], memory["alias"], memory["temp"], predicted.peak),
        tuple(kept),
        predicted.flops,
        compiled["cost"].get("flops"),
        compiled["hlo"],
    )

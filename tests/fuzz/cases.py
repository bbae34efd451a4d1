"""Cases: a command line with the files that it names, made of seeds and changed at random."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from . import seeds as known
from .mutate import NAMES, edited, mutate
from .seeds import Seeds

_EXISTING = b"what was there before\n"
_COMMANDS = (
    *("run",) * 6, *("facts", "query", "ops", "check", "conflicts", "report", "what-if", "why-not") * 2,
    *("why",) * 3, *("expect",) * 3, *("partition", "cost") * 3, "diff", "diff", "rules",
)  # fmt: skip


@dataclass
class Case:
    """Arguments, the files around them, and which of these may be written. Names are relative."""

    arguments: list[str] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    folders: list[str] = field(default_factory=list)
    outputs: set[str] = field(default_factory=set)
    stdin: str | None = None

    def write(self, folder: Path) -> None:
        """Writes the files."""
        for name in self.folders:
            (folder / name).mkdir()
        for name, data in self.files.items():
            (folder / name).write_bytes(data)


def make(seeds: Seeds, seed: int, number: int) -> Case:
    """Case ``number`` of a seed: the same one always."""
    return _Maker(seeds, Random(f"{seed}/{number}")).make()


class _Maker:
    def __init__(self, seeds: Seeds, random: Random) -> None:
        self.seeds, self.random, self.case = seeds, random, Case()
        self.module_is_changed = random.random() < 0.55

    def chance(self, n: int) -> bool:
        return self.random.randrange(n) == 0

    def data(self, kind: str, *, changed: bool) -> bytes:
        """An input of a kind, which is a field of ``Seeds``."""
        choices = getattr(self.seeds, kind)
        data: bytes = self.random.choice(choices)
        if changed and kind == "saved" and self.chance(2):
            data = edited(self.random, data)
        elif changed:
            data = mutate(self.random, data, choices, binary=kind in ("bytecode", "saved"))
        return data

    def file(self, name: str, kind: str, *, changed: bool) -> str:
        """A file with such an input; now and then something that is no such file."""
        if self.chance(60):
            return self.random.choice(("missing", ".", "/dev/null", "/dev/zero", "", "\udcff", "a" * 300))
        if self.chance(60):
            kind = self.random.choice(list(Seeds.__dataclass_fields__))
        self.case.files[name] = self.data(kind, changed=changed)
        return name

    def text(self, kind: str, choices: tuple[str, ...] = ()) -> str:
        """An argument of the command line."""
        data = self.random.choice(choices).encode() if choices else self.data(kind, changed=False)
        if not self.chance(3):
            others = [c.encode() for c in choices] or getattr(self.seeds, kind)
            data = self.random.choice(NAMES) if self.chance(8) else mutate(self.random, data, others)
        return data[:20_000].decode("utf-8", "surrogateescape").replace("\0", "0")

    def module(self, name: str, *, saved: bool) -> str:
        kinds = ["modules"] * 5 + ["bytecode"] + ["saved"] * (2 if saved else 0)
        kind = self.random.choice(kinds)
        written = self.file(name, kind, changed=self.module_is_changed)
        if written == name and self.chance(20):
            self.case.stdin = name
            return "-"
        return written

    def output(self, option: str, name: str, rarity: int) -> list[str]:
        """An option that names an output: a new file, one that exists, or what cannot be written."""
        if not self.chance(rarity):
            return []
        match self.random.randrange(12):
            case 0:
                self.case.folders.append(name)
            case 1:
                name = f"missing/{name}"
            case 2 | 3 | 4:
                self.case.files[name] = _EXISTING
        self.case.outputs.add(name)
        return [option, name]

    def common(self) -> list[str]:
        """Some of the options that every run takes."""
        found: list[str] = []
        if self.chance(6):
            found += ["--mesh", self.text("", known.MESHES)]
        if self.chance(5):
            found += ["--annotate", self.text("annotations")]
        if self.chance(4):
            found += ["--rules", self.file("more.dl", "rules", changed=not self.chance(5))]
        if self.chance(12):
            found += ["--op-priorities", self.file("ops.txt", "priorities", changed=not self.chance(5))]
        if self.chance(6):
            inline = self.chance(2)
            found += [
                "--schedule",
                self.text("schedules") if inline else self.file("t", "schedules", changed=True),
            ]
            if self.chance(3):
                found += ["--until", self.text("", ("batch", "0", "1", "p0"))]
        for flag in ("--conservative", "--separate-groups", "--strict-shardy"):
            found += [flag] if self.chance(10) else []
        if self.chance(5):
            strategies = ("basic", "aggressive", "op-priority", "user-priority")
            found += ["--strategy", self.random.choice(strategies)]
        return found

    def flags(self, *flags: str) -> list[str]:
        return [flag for flag in flags if self.chance(4)]

    def where(self, *, must: bool) -> list[str]:
        found = []
        if must or self.chance(3):
            found += ["--dim", self.text("", ("0", "1", "2", "-1"))]
        if must or self.chance(3):
            found += ["--axis", self.text("", known.AXES)]
        return found

    def lints(self) -> list[str]:
        return ["--fail-on", self.text("", known.LINTS)] if self.chance(4) else []

    def make(self) -> Case:
        command = self.random.choice(_COMMANDS)
        arguments: list[str] = getattr(self, f"_{command.replace('-', '_')}")()
        self.case.arguments = [command, *arguments]
        return self.case

    def _run(self) -> list[str]:
        flags = self.flags("--open", "--keep-rules", "--stats", "--stages", "--json")
        flags += ["--notation", "gspmd"] if self.chance(4) else []
        outputs = self.output("-o", self.random.choice(("out.mlir", "out.mlirbc")), 4)
        outputs += self.output("--save", "out.run", 4)
        return [self.module("module", saved=False), *flags, *outputs, *self.lints(), *self.common()]

    def _facts(self) -> list[str]:
        return [self.module("module", saved=False), *self.output("-o", "facts", 1), *self.common()]

    def _query(self) -> list[str]:
        module = self.module("module", saved=False)
        return [module, self.text("queries"), *self.flags("--json"), *self.common()]

    def topology(self, rarity: int) -> list[str]:
        if not self.chance(rarity):
            return []
        named = self.chance(2)
        return [
            "--topology",
            self.text("", known.TOPOLOGIES) if named else self.file("m.toml", "machines", changed=True),
        ]

    def choice(self) -> list[str]:
        """How a program is partitioned."""
        found = self.flags("--keep-shardings", "--collective-matmul") + self.topology(3)
        if self.chance(4):
            found += ["--memory", self.text("", known.SIZES)]
        if self.chance(8):
            found += ["--seconds", self.text("", ("0", "0.5", "2"))]
        return found

    def _partition(self) -> list[str]:
        form = ["--as", self.text("", ("sdy-manual", "manual", "replica"))] if self.chance(3) else []
        outputs = self.output("-o", self.random.choice(("out.mlir", "out.mlirbc")), 3)
        flags = self.flags("--list", "--json")
        return [self.module("module", saved=True), *form, *flags, *outputs, *self.choice(), *self.common()]

    def _cost(self) -> list[str]:
        flags = self.flags("--full", "--json")
        return [self.module("module", saved=True), *flags, *self.choice(), *self.common()]

    def _why(self) -> list[str]:
        if self.chance(4):
            number = ["--collective", self.text("", ("0", "1", "7"))]
            flags = self.flags("--keep-shardings", "--full", "--json")
            return [self.module("module", saved=True), *number, *flags, *self.topology(4), *self.common()]
        flags = self.flags("--verify", "--full", "--json", "--dot", "--mermaid", "--no-keep-shardings")
        flags += ["--depth", self.text("", ("0", "2", "100"))] if self.chance(5) else []
        value = self.text("", known.VALUES)
        return [self.module("module", saved=True), value, *self.where(must=False), *flags, *self.common()]

    def _why_not(self) -> list[str]:
        flags = self.flags("--verify", "--full", "--json")
        value = self.text("", known.VALUES)
        return [self.module("module", saved=True), value, *self.where(must=True), *flags, *self.common()]

    def _conflicts(self) -> list[str]:
        return [self.module("module", saved=True), *self.flags("--full", "--json"), *self.common()]

    def _report(self) -> list[str]:
        return [self.module("module", saved=True), *self.output("-o", "out.html", 1), *self.common()]

    def _diff(self) -> list[str]:
        modules = [self.module(name, saved=True) for name in ("module", "other")]
        return [*modules, *self.flags("--as-is", "--full", "--json"), *self.common()]

    def _what_if(self) -> list[str]:
        drop = ["--drop", self.text("", known.VALUES)] if self.chance(2) else []
        pin = ["--pin", self.text("annotations")] if self.chance(3) else []
        flags = [*pin, *self.flags("--full", "--json"), *self.topology(5)]
        return [self.module("module", saved=True), *drop, *flags, *self.common()]

    def _expect(self) -> list[str]:
        file = self.file("expected.toml", "expectations", changed=not self.chance(4))
        update = ["--update"] if self.chance(3) else []
        self.case.outputs.update([file] if update else [])
        return [
            self.module("module", saved=True),
            file,
            *update,
            *self.lints(),
            *self.flags("--json"),
            *self.common(),
        ]

    def _check(self) -> list[str]:
        kinds = ("text", "github", "sarif", "junit", "markdown")
        expected = ["--expect", self.file("expected.toml", "expectations", changed=not self.chance(4))]
        baseline = [
            "--baseline",
            self.file("before", self.random.choice(("modules", "saved")), changed=False),
        ]
        return [
            self.module("module", saved=True),
            *(expected if self.chance(2) else []),
            *(baseline if self.chance(2) else []),
            *(["--format", self.random.choice(kinds)] if self.chance(2) else []),
            *self.lints(),
            *self.common(),
        ]

    def _ops(self) -> list[str]:
        rules = ["--rules", self.file("more.dl", "rules", changed=True)] if self.chance(2) else []
        return [self.module("module", saved=False), *rules, *self.flags("--json")]

    def _rules(self) -> list[str]:
        name = self.text("", ("stablehlo.dot_general", "@target", "stablehlo.tanh", "sdy.manual_computation"))
        examples = ["--examples", self.module("module", saved=False)] if self.chance(3) else []
        if self.chance(2):
            return ["check", self.file("more.dl", "rules", changed=not self.chance(8)), *examples]
        rules = ["--rules", self.file("more.dl", "rules", changed=True)] if self.chance(2) else []
        return ["show", name, *rules, *examples]

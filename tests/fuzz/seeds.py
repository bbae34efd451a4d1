"""The seeds of the fuzzer: the inputs in the sources of the tests, and shardlog's own outputs."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import shardlog
from jaxlib.mlir import ir
from shardlog.importers.sources.text import make_context

_TESTS = Path(__file__).parent.parent
_RULES = Path(shardlog.__file__).parent / "rules"
_MACHINES = Path(shardlog.__file__).parent / "cost" / "machines"
_GSPMD = re.compile(r"\{(devices=|replicated|maximal|manual|unknown|\{)[^\n]*\}")
# What a value, an axis, a tactic or a mesh can be called on a command line.
VALUES = ("%arg0", "%arg1", "%0", "%1", "%1#1", "%c", "result#0", "args[0]", "model.py:3", "*", "%a?g0")
AXES = ("x", "y", "a", "b", "data", "model", "d", "m")
MESHES = ("x=2,y=4", "data=2,model=4", "a=2,b=2,c=2", "d=12", "x=1", "x=2,x=2", "", "x=0", "x=-1", "=", "x")
LINTS = (
    "replicated-above=1B",
    "replicated-above=64MiB",
    "reshard-above=1MiB",
    "reshard-above=0",
    "unknown-op",
)
TOPOLOGIES = ("v5e", "cpu", "h100", "v5e:2x4", "v5p:2x2x2", "v4:0x1", "v9")
SIZES = ("1KiB", "64MiB", "16GiB", "0", "1e3", "-1", "1.5")
QUERIES = ("argument(v, i), sharded(v, d, k, x)", "value(v, t, s)", "n = count : { dim(v, _, _) }")


@dataclass(frozen=True)
class Seeds:
    """Inputs of every kind. Modules are valid; other texts may lack their surroundings."""

    modules: tuple[bytes, ...]  # text
    bytecode: tuple[bytes, ...]
    rules: tuple[bytes, ...]
    saved: tuple[bytes, ...]
    schedules: tuple[bytes, ...]
    expectations: tuple[bytes, ...]
    priorities: tuple[bytes, ...]  # --op-priorities
    gspmd: tuple[bytes, ...]
    annotations: tuple[bytes, ...]
    queries: tuple[bytes, ...]
    machines: tuple[bytes, ...]  # --topology


def collect(folder: Path) -> Seeds:
    """All seeds, in an order that does not change. Runs are saved in ``folder``."""
    texts = _texts()
    gspmd = sorted({m[0] for t in texts for m in _GSPMD.finditer(t) if len(m[0]) < 200})
    modules = _modules([t for t in texts if "func.func" in t])
    modules += [_with_gspmd(text) for text in gspmd]
    shipped = [path.read_text() for path in sorted(_RULES.rglob("*.dl"))]
    bytecode, saved = [], []
    for number, module in enumerate(modules[::7]):
        try:
            result = shardlog.run(module)
            bytecode.append(result.bytecode())
            path = folder / f"{number}.run"
            result.save(path)
            saved.append(path.read_bytes())
        except shardlog.ShardlogError:
            continue
    short = [t for t in texts if len(t) < 400 and "func" not in t]
    return Seeds(
        modules=_bytes(modules),
        bytecode=tuple(bytecode),
        rules=_bytes([*shipped, *(t for t in texts if ":-" in t and "\n" in t)]),
        saved=tuple(saved),
        schedules=_bytes([t for t in short if re.search(r"^[\w ]+:.*->", t)]),
        expectations=_bytes([t for t in short if re.search(r"""(?m)^["'\w%\[.\]*]+ *= *["'\[]""", t)]),
        priorities=_bytes([t for t in short if re.fullmatch(r"\s*((stablehlo|sdy|chlo)\.\w+\s*)+", t)]),
        gspmd=_bytes(gspmd),
        annotations=_bytes([t for t in short if re.match(r"[%\w].*=\[.*\]$", t)]),
        queries=_bytes([*QUERIES, *(t for t in short if re.match(r"\w+\(\w+, .*\)$", t))]),
        machines=tuple(path.read_bytes() for path in sorted(_MACHINES.glob("*.toml"))),
    )


@cache
def _texts() -> tuple[str, ...]:
    """The strings in the sources of the tests, but those of the fuzzer."""
    found = set()
    for path in sorted(_TESTS.rglob("*.py")):
        if path.parent != Path(__file__).parent:
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            found |= {n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    return tuple(sorted(found))


def _modules(texts: list[str]) -> list[str]:
    """Those of the texts that are modules."""
    found = []
    with make_context():
        for text in texts:
            try:
                ir.Module.parse(text)
            except (ir.MLIRError, UnicodeError):
                continue
            found.append(text)
    return found


def _with_gspmd(sharding: str) -> str:
    """A module with a sharding in GSPMD's notation."""
    text = sharding.replace('"', "")
    return (
        f'func.func @main(%a: tensor<8x8xf32> {{mhlo.sharding = "{text}"}}) -> tensor<8x8xf32> {{\n'
        f'  %0 = stablehlo.tanh %a {{mhlo.sharding = "{text}"}} : tensor<8x8xf32>\n'
        "  return %0 : tensor<8x8xf32>\n}\n"
    )


def _bytes(texts: list[str]) -> tuple[bytes, ...]:
    return tuple(dict.fromkeys(text.encode("utf-8", "surrogatepass") for text in texts))

"""Op rules beside LLVM's: of each op of tosa and linalg, a dimension of one operand or result is sharded, and
what LLVM's ``sharding-propagation`` makes of the others is compared with our rule.

    python -m shardlog.tests.dialects.op_rules --peer PYTHON [-v]

The peer is a Python in which ``torch_mlir`` is installed (see ``completion.py``). The ops are those of
``tests/ops/table/dialects``. Prints of each op how many dimensions are alike, and how many otherwise:

    refused         the peer does not read the op, or has no rule for it
    not propagated  the peer shards nothing else
    size one        the peer shards what has one element, and is repeated
    windows         an image is read through windows: the peer shards it without the elements of others that a
                    shard needs, our rule does so only along the windows, and says that elements move
    differs         all else
"""

from __future__ import annotations

import argparse
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir
from shardlog.program.signature import describe, looks_at
from shardlog.rulebook.book import RuleBook

from ..support import oracle
from .completion import peer

TABLES = Path(__file__).parents[1] / "ops" / "table" / "dialects"
PASSES = "builtin.module(func.func(sharding-propagation{traversal=backward-forward}))"
_OP = re.compile(r'  (%\w+)(?::(\d))? = "([\w.]+)"\((.*?)\)(.*)', re.DOTALL)


@dataclass(frozen=True)
class Probe:
    """A dimension of a slot of an op, which is sharded; ``text`` is a module in which it is. ``expected`` are
    the dimensions that our rule shards alike, by slot; ``kind`` is that of the factor. Windows: the op reads
    through them."""

    op: str
    slot: int
    dim: int
    text: str
    expected: dict[int, list[int]]
    kind: str
    shapes: list[list[int]]
    windows: bool


def probes(book: RuleBook) -> Iterator[Probe]:
    """Each dimension of the ops of the tables."""
    around = looks_at(book.looks_at)
    for name in ("tosa", "linalg"):
        for text in (TABLES / f"{name}.mlir").read_text().split("\n// -----\n"):
            lines = [re.sub(r"  // .*", "", line) for line in text.splitlines()]
            header = next(line for line in lines if line.startswith("func.func"))
            with oracle.context():
                module = ir.Module.parse("\n".join(lines))
                function = module.body.operations[0]
                for op in function.regions[0].blocks[0].operations:
                    place: Any = op.location
                    start = place.start_line - 1
                    end = start + 1
                    while end < len(lines) and not re.match(r"  (%|return)", lines[end]):
                        end += 1
                    if match := _OP.fullmatch("\n".join(lines[start:end])):
                        facts = describe(op.operation, False, around)
                        yield from _of(match, header, op.operation, book.classify(facts))


def _of(
    match: re.Match[str], header: str, op: Any, said: dict[str, list[tuple[Any, ...]]]
) -> Iterator[Probe]:
    name, given = match[3], match[4].split(", ")
    types = [value.type for value in [*op.operands, *op.results]]
    shapes = [list(kind.shape) if isinstance(kind, ir.RankedTensorType) else [] for kind in types]
    maps: dict[tuple[int, int], list[int]] = defaultdict(list)
    for t, d, _, factor in sorted(said["maps"]):
        maps[t, d].append(factor)
    kinds: dict[int, str] = dict(said["kind"])
    windows = "permutation" in kinds.values()
    for t, shape in enumerate(shapes):
        for d, size in enumerate(shape):
            if size == 1:
                continue
            factors = maps[t, d]
            whole = len(factors) != 1 or said["factor"][factors[0]][1] == 1
            kind = "none" if whole else kinds[factors[0]]
            shared = {
                u: [e for e in range(len(shapes[u])) if maps[u, e][:1] == factors] for u in range(len(shapes))
            }
            expected = {t: [d]} if kind not in ("pass_through", "reduction") else shared
            text = _module(header, match, given, t, d, types, len(op.operands))
            yield Probe(name, t, d, text, expected, kind, shapes, windows)


def _module(
    header: str, match: re.Match[str], given: list[str], t: int, d: int, types: list[Any], operands: int
) -> str:
    result, several, name, _, rest = match.groups()
    lists = f"[{', '.join(['[]'] * d + ['[0]'])}]"
    sharding = f"  %sharding = shard.sharding @g split_axes = {lists} : !shard.sharding"
    before, after, given = list[str](), list[str](), list(given)
    count = f":{several}" if several else ""
    returned = f"{result}#0" if several else result
    if t < operands:
        before.append(f"  %sharded = shard.shard {given[t]} to %sharding annotate_for_users : {types[t]}")
        given[t] = "%sharded"
    else:
        source = f"{result}#{t - operands}" if several else result
        after.append(f"  %sharded = shard.shard {source} to %sharding : {types[t]}")
        returned = "%sharded" if t == operands else returned
    rest = re.sub(r'"(parallel|reduction|window)"', r"#linalg.iterator_type<\1>", rest)
    op = f'  {result}{count} = "{name}"({", ".join(given)}){rest}'
    head = header.rstrip(" {") + f" -> {types[operands]} {{"
    body = [sharding, *before, op, *after, f"  return {returned} : {types[operands]}"]
    return "\n".join(["shard.grid @g(shape = 2)", head, *body, "}"])


def asked(python: str, known: list[Probe]) -> Iterator[dict[str, Any]]:
    """What a peer makes of each probe: of those of an op at once, or one by one where that ends it."""
    for _, group in groupby(known, lambda probe: probe.op):
        cases = [(probe.text, PASSES) for probe in group]
        try:
            yield from peer(python, cases)
        except (SystemExit, IndexError):
            for case in cases:
                try:
                    yield from peer(python, [case])
                except (SystemExit, IndexError):
                    yield {"error": "it ends the process"}


def verdict(probe: Probe, answer: dict[str, Any]) -> str:
    """How the peer's answer stands to our rule."""
    if "error" in answer:
        return "refused"
    (_, operands, results), *_ = [each for each in answer["ops"] if each[0] == probe.op]
    found = {
        t: [d for d, axes in enumerate(lists or []) if axes] for t, lists in enumerate([*operands, *results])
    }
    others = {t: dims for t, dims in found.items() if dims and t != probe.slot}
    wanted = {t: dims for t, dims in probe.expected.items() if dims and t != probe.slot}
    if others == wanted:
        return "alike"
    if not others:
        return "not propagated"
    if any(probe.shapes[t][d] == 1 for t, dims in others.items() for d in dims):
        return "size one"
    return "windows" if probe.windows else "differs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", required=True, help="a Python with torch_mlir")
    parser.add_argument("-v", action="store_true", help="show what differs")
    options = parser.parse_args()
    known = list(probes(RuleBook()))
    answers = list(asked(options.peer, known))
    table: dict[str, Counter[str]] = defaultdict(Counter)
    for probe, answer in zip(known, answers, strict=True):
        how = verdict(probe, answer)
        table[probe.op][how] += 1
        if options.v and how != "alike":
            wanted = {t: dims for t, dims in probe.expected.items() if dims}
            said = answer.get("error") or answer["ops"]
            place = f"{probe.op} slot {probe.slot} dim {probe.dim} ({probe.kind})"
            print(f"{place}: {how}; here {wanted}; peer {said}")
    for op, counts in table.items():
        print(f"{op:40} {', '.join(f'{n} {how}' for how, n in sorted(counts.items()))}")
    total = sum(table.values(), Counter[str]())
    counted = ", ".join(f"{n} {how}" for how, n in total.most_common())
    print(f"{len(table)} ops, {len(known)} dimensions: {counted}")


if __name__ == "__main__":
    main()

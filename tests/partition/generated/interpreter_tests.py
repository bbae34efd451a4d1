"""StableHLO's own interpreter tests, their inputs and what ops give under random shardings.

    STABLEHLO=CHECKOUT python -m shardlog.tests.partition.generated.interpreter_tests [--seeds N]

Constants become arguments, but for those that say a shape, and what a test checks becomes a result: it is
compared with the program on one device.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import shardlog
from jaxlib.mlir import ir
from shardlog.importers.sources.text import make_context
from shardlog.program.mlir.modules import symbols

from ...support import tools
from ..running import Array, run_partitioned, run_whole, survive
from .random_programs import XLA_UNABLE, differs
from .writing import DTYPES, Program, mesh


@dataclass
class Chunk:
    """A test: where it is, and its module, whose results are what is checked."""

    name: str
    text: str


def chunks(checkout: Path) -> Iterator[Chunk]:
    """The tests of a checkout of openxla/stablehlo that are for one device."""
    for file in sorted((checkout / "stablehlo" / "tests" / "interpret").rglob("*.mlir")):
        for number, text in enumerate(file.read_text().split("// -----")):
            functions = re.split(r"(?m)^(?=\s*func\.func)", text)
            main = next((f for f in functions if "check.expect" in f), None)
            if main is None or "interpreter." in text or "module" in text:
                continue
            values = re.findall(r"check\.expect\w+ (%[\w#]+)", main)
            others = "".join(f for f in functions if f is not main and "func.func" in f)
            body = re.sub(
                r"(?ms)^\s*check\.expect.*?(?=^\s*(?:check\.expect|func\.return|return|%))", "", main
            )
            types = [_type_of(main, name) for name in values]
            if None in types or not values:
                continue
            listed = ", ".join(t for t in types if t)
            body = re.sub(
                r"func\.func (?:private |public )?@\w+\(\)(?: *-> *\S+)?",
                f"func.func @main() -> ({listed})",
                body,
            )
            body = re.sub(r"(?m)^\s*(?:func\.)?return.*$", f"  return {', '.join(values)} : {listed}", body)
            yield Chunk(f"{file.stem}#{number}", others + body)


def _type_of(text: str, name: str) -> str | None:
    """The type of what a test checks, as the check says it."""
    match = re.search(rf"check\.expect\w+ {re.escape(name)},.*?: *(tensor<[^\n]*>)\s*$", text, re.M | re.S)
    return match[1].split("), ")[-1].split(", tensor")[0] if match else None


def prepared(chunk: Chunk, seed: int) -> tuple[str, str, list[Array]]:
    """The module with random shardings, the module without, and the arguments."""
    random = Random(f"{seed}/{chunk.name}")
    meshes = [mesh(random)]
    writer = Program(random, meshes)
    with make_context():
        module = ir.Module.parse(chunk.text)
        main = symbols(module, "func.func")["main"]
        block, arrays, attributes = main.regions[0].blocks[0], [], []
        shardings: list[tuple[Any, str]] = []
        for op in list(block.operations):
            if op.operation.name == "stablehlo.constant" and (array := _array(op)) is not None:
                result = op.operation.results[0]
                argument = block.add_argument(result.type, ir.Location.unknown())
                result.replace_all_uses_with(argument)
                op.operation.erase()
                arrays.append(array)
                attributes.append(_sharding(writer, argument.type))
            elif len(op.operation.results) and op.operation.name.startswith("stablehlo."):
                texts = [_sharding(writer, r.type) for r in op.operation.results]
                if all(texts) and random.random() < 0.7:
                    shardings.append((op, ", ".join(texts)))
        types = [a.type for a in block.arguments]
        main.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, main.type.results))
        plain = str(module)
        parsed = "\n".join([*map(str, meshes), ""])
        with_meshes = ir.Module.parse(parsed)
        for op in list(with_meshes.body.operations):
            op.operation.clone(ir.InsertionPoint.at_block_begin(module.body))
        for op, text in shardings:
            op.attributes["sdy.sharding"] = ir.Attribute.parse(f"#sdy.sharding_per_value<[{text}]>")
        entries = [f"{{sdy.sharding = #sdy.sharding{a}}}" for a in attributes]
        main.attributes["arg_attrs"] = ir.Attribute.parse(f"[{', '.join(entries)}]")
        return str(module), plain, arrays


def _sharding(writer: Program, type_: Any) -> str:
    shaped = isinstance(type_, ir.RankedTensorType) and type_.has_static_shape
    return f"<{writer.sharding(tuple(type_.shape))}>" if shaped else ""


def _array(op: Any) -> Array | None:
    """The value of a constant, if it can be an argument."""
    result = op.operation.results[0]
    element = str(result.type.element_type) if isinstance(result.type, ir.RankedTensorType) else ""
    if element not in DTYPES or any("dynamic" in use.owner.operation.name for use in result.uses):
        return None
    if element.startswith("complex"):
        return None
    values = op.attributes["value"]
    try:
        array = np.array(values)
    except (TypeError, ValueError, RuntimeError):
        return None
    found = np.broadcast_to(array, tuple(result.type.shape)).astype(DTYPES[element])
    return np.ascontiguousarray(found).reshape(tuple(result.type.shape))


def check(chunk: Chunk, seed: int) -> str:
    """What is wrong with a test under the shardings of a seed; "" where nothing is."""
    if "tuple<" in chunk.text:
        return "on one device: a tuple, which shardlog has no sharding for"
    if "bitcast_convert" in chunk.text and "xi1>" in chunk.text:
        return "on one device: predicates as bits, which are bytes in XLA"
    try:
        sharded, plain, arrays = prepared(chunk, seed)
        with make_context():
            expected = run_whole(ir.Module.parse(plain), arrays)
    except Exception as error:  # XLA does not run it on one device
        return f"on one device: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
    try:
        result = shardlog.run(sharded)
        got = run_partitioned(result, result.partition("replica"), arrays)
    except Exception as error:  # whatever it is, it is wrong
        return f"{type(error).__name__}: {' '.join(str(error).split())[:400]}"
    for number, (one, other) in enumerate(zip(got, expected, strict=True)):
        if message := differs(one, other):
            return f"result {number}: {message}"
    return ""


def main() -> int:
    """Runs all tests; 1 where any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--from", dest="first", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--to", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--here", action="store_true", help="in this process, which XLA may end")
    options = parser.parse_args()
    checkout = tools.stablehlo()
    if checkout is None:
        sys.exit("needs STABLEHLO=CHECKOUT of openxla/stablehlo")
    tests = [(chunk, seed) for chunk in chunks(checkout) for seed in range(options.seeds)]
    numbers = range(options.first, options.to or len(tests))
    if options.here:
        for number in numbers:
            print(f"{number} {check(*tests[number])}", flush=True)
        return 0
    counts = {"right": 0, "wrong": 0, "not run by XLA": 0}
    module, passed = "shardlog.tests.partition.generated.interpreter_tests", ["--seeds", str(options.seeds)]
    for number, message in survive(module, numbers, passed):
        unable = message.startswith("on one device") or any(text in message for text in XLA_UNABLE)
        counts["not run by XLA" if unable else "wrong" if message else "right"] += 1
        if message:
            print(f"{tests[number][0].name} of seed {tests[number][1]}: {message}", flush=True)
    print(", ".join(f"{count} {kind}" for kind, count in counts.items()))
    return int(counts["wrong"] > 0)


if __name__ == "__main__":
    import os

    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    sys.exit(main())

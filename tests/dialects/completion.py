"""Completion beside LLVM's: random modules of tosa and linalg, completed here and by a peer.

    python -m shardlog.tests.dialects.completion --peer PYTHON [--modules N] [--seed S] [FILE ...]

With files, those of LLVM's tests, it takes their functions instead, in each order.

The peer is a Python in which ``torch_mlir`` is installed: its wheel has the pass ``sharding-propagation`` of
LLVM's main branch. What is written here is read by the peer, too. Prints how many modules are completed
alike, op by op and tensor by tensor, and how many the peer refuses; shows the first that differ.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import shardlog
from shardlog.errors import ShardlogError
from shardlog.propagation.completion.traversals import TRAVERSALS

from .conformance import functions

GRIDS = ((2, 3), (2, 2, 2), (4,))
UNARY, BINARY = ("exp", "tanh", "abs", "floor"), ("add", "sub", "maximum")
_PEER = """
import json, re, sys
from torch_mlir import ir
from torch_mlir.passmanager import PassManager

def axes(op):
    lists = json.loads(re.search(r"split_axes = (\\[.*?\\])(?: halo| sharded| :| {)", str(op))[1])
    while lists and not lists[-1]:
        lists.pop()
    return lists

def seen(value):
    op = value.owner
    if isinstance(op, ir.Block) or op.name != "shard.shard":
        return None
    return axes(op.operands[1].owner)

def given(result):
    for use in result.uses:
        op = use.owner
        if op.name == "shard.shard" and "annotate_for_users" not in op.attributes:
            return axes(op.operands[1].owner)
    return None

def one(text, passes):
    context, said = ir.Context(), []
    context.emit_error_diagnostics = True  # to the handler, where a pass goes on
    context.attach_diagnostic_handler(lambda diagnostic: said.append(diagnostic.message) or True)
    try:
        module = ir.Module.parse(text, context)
        if passes:
            PassManager.parse(passes, context).run(module.operation)
    except Exception as error:
        return {"error": str(error)[:500]}
    ops = []
    for function in module.body.operations:
        if function.operation.name == "func.func":
            for op in function.regions[0].blocks[0].operations:
                op = op.operation
                if not op.name.startswith("shard.") and op.name != "func.return":
                    ops.append([op.name, [*map(seen, op.operands)], [*map(given, op.results)]])
    return {"ops": ops, "left": any("multiple loop indices" in message for message in said)}

print(json.dumps([one(*case) for case in json.load(sys.stdin)]))
"""


class Module:
    """A random module: text that grows op by op."""

    def __init__(self, draw: random.Random) -> None:
        self.draw, self.grid = draw, draw.choice(GRIDS)
        self.size, self.count = 12, 0
        self.arguments: list[str] = []
        self.lines: list[str] = []
        self.values = [self.argument() for _ in range(draw.randint(1, 3))]
        for _ in range(draw.randint(1, 7)):
            self.values.append(self.annotated(self.op(), users=False))

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def type(self, rank: int = 2) -> str:
        return f"tensor<{'1x' * (rank - 2)}{self.size}x{self.size}xf32>"

    def argument(self) -> str:
        name = self.name()
        self.arguments.append(f"{name}: {self.type()}")
        return self.annotated(name, users=False)

    def lists(self) -> list[list[int]]:
        """A random list of axes for each of the first dimensions."""
        left = list(range(len(self.grid)))
        self.draw.shuffle(left)
        lists = []
        for _ in range(self.draw.choice((1, 1, 2, 2))):
            count = min(self.draw.choice((0, 0, 1, 1, 2)), len(left))
            lists.append([left.pop() for _ in range(count)])
        return lists

    def annotated(self, value: str, *, users: bool, of: str = "") -> str:
        """The value, which has the type ``of``, now and then with an annotation."""
        if self.draw.random() > 0.25:
            return value
        sharding, name = self.name(), self.name()
        flag = " annotate_for_users" if users else ""
        self.lines.append(f"{sharding} = shard.sharding @g split_axes = {self.lists()} : !shard.sharding")
        self.lines.append(f"{name} = shard.shard {value} to {sharding}{flag} : {of or self.type()}")
        return name

    def operands(self, count: int) -> list[str]:
        """Values that an op uses, none of them twice: of two annotations for one use, a peer forgets one."""
        chosen = list[str]()
        while len(chosen) < count:
            value = self.draw.choice([*self.values[-4:], ""])
            if value in chosen or not value:
                value = self.argument()
            chosen.append(value)
        return [self.annotated(value, users=True) for value in chosen]

    def op(self) -> str:
        name, t = self.name(), self.type()
        kind = self.draw.choice(("unary", "unary", "binary", "matmul", "generic", "transpose", "windows"))
        if kind == "unary":
            (x,) = self.operands(1)
            self.lines.append(f"{name} = tosa.{self.draw.choice(UNARY)} {x} : ({t}) -> {t}")
        elif kind == "binary":
            x, y = self.operands(2)
            self.lines.append(f"{name} = tosa.{self.draw.choice(BINARY)} {x}, {y} : ({t}, {t}) -> {t}")
        elif kind == "transpose":
            x, z = self.operands(2)
            self.lines.append(
                f"{name} = linalg.transpose ins({x} : {t}) outs({z} : {t}) permutation = [1, 0]"
            )
        elif kind == "windows":
            image, kernel, types = self.name(), self.name(), ("tensor<14x14xf32>", "tensor<3x3xf32>")
            self.arguments += [f"{image}: {types[0]}", f"{kernel}: {types[1]}"]
            x, (z,) = self.annotated(image, users=True, of=types[0]), self.operands(1)
            self.lines.append(
                f"{name} = linalg.conv_2d ins({x}, {kernel} : {', '.join(types)}) outs({z} : {t}) -> {t}"
            )
        elif kind == "matmul":
            x, y, z = self.operands(3)
            self.lines.append(f"{name} = linalg.matmul ins({x}, {y} : {t}, {t}) outs({z} : {t}) -> {t}")
        else:
            x, y, z = self.operands(3)
            dims = ("i, k", "j, k", "i, j")
            maps = ", ".join(f"affine_map<(i, j, k) -> ({each})>" for each in dims)
            kinds = '"parallel", "parallel", "reduction"'
            self.lines.append(
                f"{name} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} "
                f"ins({x}, {y} : {t}, {t}) outs({z} : {t}) {{ ^bb0(%a: f32, %b: f32, %c: f32): "
                f"%p = arith.mulf %a, %b : f32 %q = arith.addf %c, %p : f32 linalg.yield %q : f32 }} -> {t}"
            )
        return name

    def text(self) -> str:
        shape = "x".join(map(str, self.grid))
        types = ", ".join([self.type()] * len(self.values))  # all are returned: what nothing uses is dropped
        head = f"shard.grid @g(shape = {shape})\nfunc.func @f({', '.join(self.arguments)}) -> ({types}) {{"
        body = [f"  {line}" for line in self.lines]
        return "\n".join([head, *body, f"  return {', '.join(self.values)} : {types}", "}"])


def peer(python: str, cases: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What a peer says of modules, after some passes."""
    done = subprocess.run([python, "-c", _PEER], input=json.dumps(cases), capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{python}: {done.stderr.strip().splitlines()[-1]}")
    document: list[dict[str, Any]] = json.loads(done.stdout)
    return document


def alike(theirs: list[Any], ours: list[Any]) -> bool:
    """Whether ops have the same annotations, as far as the peer has any."""
    if [name for name, *_ in theirs] != [name for name, *_ in ours]:
        return False  # constants are split, and what nothing uses is dropped
    for (name, operands, results), (own, *rest) in zip(theirs, ours, strict=True):
        wanted, found = [*operands, *results], [*rest[0], *rest[1]]
        if name != own or any(w is not None and w != (f or []) for w, f in zip(wanted, found, strict=True)):
            return False
    return True


def completed(text: str, order: str) -> str:
    """A module that is completed here; empty, with a message, if it is refused."""
    try:
        return shardlog.run(text, propagation="completion", traversal=order, closed=True).text("shard")
    except ShardlogError as error:
        print(f"refused here: {error.message}")
        return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--peer", required=True, help="a Python with torch_mlir")
    parser.add_argument("--modules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*", type=Path, help="take the functions of these tests of LLVM")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    draw = random.Random(options.seed)
    cases = [(Module(draw).text(), draw.choice([*TRAVERSALS])) for _ in range(options.modules)]
    if options.files:
        cases = [(text, order) for file in options.files for text in functions(file) for order in TRAVERSALS]
    passes = "builtin.module(func.func(sharding-propagation{{traversal={}}}))"
    theirs = peer(options.peer, [(text, passes.format(order)) for text, order in cases])
    written = [completed(text, order) for text, order in cases]
    ours = peer(options.peer, [(text, "") for text in written])
    same = refused = left = refused_here = differ = 0
    for (text, order), their, our, output in zip(cases, theirs, ours, written, strict=True):
        if "error" in their:
            refused += 1
        elif not output:
            refused_here += 1
        elif "error" in our:
            sys.exit(f"the peer does not read what is written here: {our['error']}\n{text}\n{output}")
        elif alike(their["ops"], our["ops"]):
            same += 1
        elif their["left"]:  # an op with windows: neither a result nor an earlier operand says their loop
            left += 1
        else:
            differ += 1
            if differ > 2:
                continue
            print(f"{order}\n{text}\npeer: {their['ops']}\nhere: {our['ops']}")
    print(f"{same} of {len(cases)} modules are completed alike; {differ} differ")
    print(f"the peer refuses {refused}, and leaves ops with windows in {left}; refused here: {refused_here}")


if __name__ == "__main__":
    main()

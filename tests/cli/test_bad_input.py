"""Bad input gets one message with the place, what was expected and a hint, exit status 2, and no output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from shardlog import cli
from shardlog.program.shardy import newer

MESH = 'sdy.mesh @mesh = <["data"=2, "model"=4]>\n'
IDENTITY = """\
func.func @main(%arg0: {type}{sharding}) -> {type} {{
  return %arg0 : {type}
}}
"""
GOOD = (
    MESH
    + """\
func.func @main(%arg0: tensor<8x16xf32>, %arg1: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.add %arg0, %arg1 : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
"""
)


def identity(sharding: str, type_: str = "tensor<8x16xf32>") -> str:
    """A function that returns its argument, which has this sharding."""
    attribute = f" {{sdy.sharding = #sdy.sharding<{sharding}>}}"
    return MESH + IDENTITY.format(type=type_, sharding=attribute)


def body(*ops: str, result: str = "tensor<8x16xf32>") -> str:
    """A function with two arguments and these ops, of which the last defines %0."""
    arguments = "%arg0: tensor<8x16xf32>, %arg1: tensor<2xi32>"
    lines = [f"func.func @main({arguments}) -> {result} {{", *(f"  {op}" for op in ops)]
    return MESH + "\n".join([*lines, f"  return %0 : {result}", "}", ""])


MODULES: dict[str, tuple[str | bytes, str]] = {
    "nothing": (
        "",
        "m.mlir: error: the module is empty\n  hint: expected StableHLO as MLIR text or bytecode",
    ),
    "no text": (
        bytes(range(256)),
        "m.mlir: error: this is neither MLIR text nor MLIR bytecode\n"
        "  hint: expected a .mlir or .mlirbc file",
    ),
    "a byte order mark": (
        GOOD.encode("utf-8-sig"),
        "m.mlir: error: this text starts with a byte order mark\n"
        "  hint: MLIR reads UTF-8 without a byte order mark; Windows PowerShell writes others for `>`",
    ),
    "UTF-16": (
        GOOD.encode("utf-16"),
        "m.mlir: error: this text starts with a byte order mark\n"
        "  hint: MLIR reads UTF-8 without a byte order mark; Windows PowerShell writes others for `>`",
    ),
    "damaged bytecode": (
        b"ML\xefR",
        "m.mlir:0:0: error: attempting to parse a byte at the end of the bytecode\n"
        "  hint: the bytecode is damaged, or newer than this jaxlib can read",
    ),
    "a text that was cut": (
        GOOD[: GOOD.index("lo.add")],
        "m.mlir:3:8: error: stableh is not known\n"
        "  hint: the text ends here, inside of braces: has the file been cut?",
    ),
    "undefined value": (
        GOOD.replace("return %0", "return %1"),
        "m.mlir:4:10: error: use of undeclared SSA value name",
    ),
    "wrong type": (
        body("%0 = stablehlo.abs %arg0 : tensor<8x17xf32>"),
        "m.mlir:3:22: error: use of value '%arg0' expects different type than prior uses: "
        "'tensor<8x17xf32>' vs 'tensor<8x16xf32>'; prior use here",
    ),
    "unknown op": (
        GOOD.replace(".add", ".ad"),
        f"m.mlir:3:8: error: stablehlo.ad is not known\n  hint: {newer()}",
    ),
    "op of a dialect that nobody knows": (
        GOOD.replace("stablehlo.add", "mine.add"),
        "m.mlir:3:8: error: mine.add is not known\n"
        "  hint: is the name of the op right? ops of other dialects are written in generic form",
    ),
    "op of a newer Shardy": (
        body('%0 = "sdy.spread"(%arg0) : (tensor<8x16xf32>) -> tensor<8x16xf32>'),
        f"m.mlir:3:8: error: sdy.spread is not known\n  hint: {newer()}",
    ),
    "attribute of a newer Shardy": (
        body("%0 = stablehlo.abs %arg0 {sdy.sharding = #sdy.spread<1>} : tensor<8x16xf32>"),
        f"m.mlir:3:49: error: attribute sdy.spread is not known\n  hint: {newer()}",
    ),
    "note of a newer Shardy": (
        body("%0 = stablehlo.abs %arg0 {sdy.spread = 1} : tensor<8x16xf32>"),
        f"m.mlir:3:8: error: attribute sdy.spread is not known\n  hint: {newer()}",
    ),
    "note of a newer Shardy on an argument": (
        identity("@mesh, [{}, {}]").replace(
            "sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>", "sdy.spread = 1"
        ),
        f"m.mlir:2:1: error: attribute sdy.spread is not known\n  hint: {newer()}",
    ),
    "part of a sharding of a newer Shardy": (
        body(
            "%0 = stablehlo.abs %arg0 {sdy.sharding = "
            '#sdy.sharding_per_value<[<@mesh, [{}, {}], spread={"x"}>]>} : tensor<8x16xf32>'
        ),
        "m.mlir:3:87: error: spread is not known: failed to parse Sdy_TensorSharding, "
        f"expected valid named axis list after comma\n  hint: {newer()}",
    ),
    "part of a mesh of a newer Shardy": (
        GOOD.replace("]>", '], shape="ring">', 1),
        f"m.mlir:1:42: error: custom op 'sdy.mesh' expected 'device_ids', not shape\n  hint: {newer()}",
    ),
    "kind of factor of a newer Shardy": (
        body(
            "%0 = stablehlo.abs %arg0 {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) "
            "{i=8, j=16} shuffled={i}>} : tensor<8x16xf32>"
        ),
        f"m.mlir:3:101: error: expected '>', not shuffled\n  hint: {newer()}",
    ),
    "direction of a newer Shardy": (
        body("%0 = sdy.propagation_barrier %arg0 allowed_direction=SIDEWAYS : tensor<8x16xf32>"),
        "m.mlir:3:56: error: SIDEWAYS is not known: sdy.propagation_barrier expects NONE, FORWARD, BACKWARD, "
        "BOTH\n"
        f"  hint: {newer()}",
    ),
    "dynamic shape": (
        body(
            "%1 = stablehlo.dynamic_reshape %arg0, %arg1 : "
            "(tensor<8x16xf32>, tensor<2xi32>) -> tensor<?x16xf32>",
            "%0 = stablehlo.abs %arg0 : tensor<8x16xf32>",
        ),
        "m.mlir:3:8: error: dynamic shape tensor<?x16xf32>\n  hint: lower the program with static shapes",
    ),
    "dynamic argument": (
        MESH + IDENTITY.format(type="tensor<?xf32>", sharding=""),
        "m.mlir:2:1: error: dynamic shape tensor<?xf32>\n  hint: lower the program with static shapes",
    ),
    "unranked tensor": (
        MESH + IDENTITY.format(type="tensor<*xf32>", sharding=""),
        "m.mlir:2:1: error: unranked tensor tensor<*xf32>\n  hint: give the tensor a static shape",
    ),
    "buffer": (
        MESH + IDENTITY.format(type="memref<4xf32>", sharding=""),
        "m.mlir:2:1: error: memref<4xf32> is not a tensor\n"
        "  hint: expected tensors; partition the program before it has buffers and vectors",
    ),
    "vector": (
        MESH + IDENTITY.format(type="vector<4xf32>", sharding=""),
        "m.mlir:2:1: error: vector<4xf32> is not a tensor\n"
        "  hint: expected tensors; partition the program before it has buffers and vectors",
    ),
    "tuple": (
        body("%0 = stablehlo.tuple %arg0 : tuple<tensor<8x16xf32>>", result="tuple<tensor<8x16xf32>>"),
        "m.mlir:3:8: error: tuple type tuple<tensor<8x16xf32>>\n  hint: return the parts as separate results",
    ),
    "no return": (
        MESH + 'func.func @main(%a: tensor<f32>) {\n  %0 = "mine.op"(%a) : (tensor<f32>) -> tensor<f32>\n}\n',
        "m.mlir:3:8: error: function @main ends in mine.op\n  hint: expected func.return with its results",
    ),
    "several blocks": (
        MESH + IDENTITY.format(type="tensor<f32>", sharding="").replace("{\n", "{\n  cf.br ^next\n^next:\n"),
        "m.mlir:2:1: error: a region of func.func has 2 blocks\n"
        "  hint: only structured control flow (stablehlo.while, stablehlo.case) is supported",
    ),
    "no function": (MESH, "m.mlir: error: the module has no function\n  hint: expected a func.func"),
    "no main": (
        GOOD.replace("@main", "@step")
        + IDENTITY.format(type="tensor<f32>", sharding="").replace("@main", "@init"),
        "m.mlir: error: the module has several functions and none is called main\n"
        "  hint: name the entry function, as in --entry step, or entry= in Python; there are: step, init",
    ),
    "recursion": (
        GOOD.replace("stablehlo.add %arg0, %arg1 :", "call @main(%arg0, %arg1) :").replace(
            ": tensor<8x16xf32>\n  return",
            ": (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>\n  return",
        ),
        "m.mlir:2:1: error: recursive call: @main -> @main\n  hint: a loop is a stablehlo.while",
    ),
    "call of a declaration": (
        "func.func private @f(tensor<f32>) -> tensor<f32>\n"
        + IDENTITY.format(type="tensor<f32>", sharding="").replace(
            "{\n", "{\n  %0 = call @f(%arg0) : (tensor<f32>) -> tensor<f32>\n"
        ),
        "m.mlir:1:1: error: @f is called, but has no body\n"
        "  hint: define the function, or use stablehlo.custom_call",
    ),
    "unknown mesh": (
        identity('@mash, [{"data"}, {}]'),
        "m.mlir:2:1: error: argument 0 of func.func: unknown mesh: @mash\n  hint: did you mean @mesh?",
    ),
    "unknown axis": (
        identity('@mesh, [{"dota"}, {}]'),
        'm.mlir:2:1: error: argument 0 of func.func: unknown axis name: "dota"\n  hint: did you mean "data"?',
    ),
    "axis of another name": (
        identity('@mesh, [{"expert"}, {}]'),
        'm.mlir:2:1: error: argument 0 of func.func: unknown axis name: "expert"\n'
        '  hint: there are: "data", "model"',
    ),
    "axis used twice": (
        identity('@mesh, [{"data"}, {"data"}]'),
        'm.mlir:2:1: error: argument 0 of func.func: duplicate axis ref: "data"\n'
        "  hint: an axis may shard a tensor only once",
    ),
    "axis replicated and used": (
        identity('@mesh, [{"data"}, {}], replicated={"data"}'),
        'm.mlir:2:1: error: argument 0 of func.func: duplicate axis ref: "data"\n'
        "  hint: an axis may shard a tensor only once",
    ),
    "overlapping sub-axes": (
        MESH.replace("4", "8") + identity('@mesh, [{"model":(1)4}, {"model":(2)4}]').removeprefix(MESH),
        'm.mlir:2:1: error: argument 0 of func.func: overlapping sub-axes: "model":(1)4, "model":(2)4\n'
        "  hint: an axis may shard a tensor only once, sub-axes included",
    ),
    "axis and sub-axis": (
        identity('@mesh, [{"model":(1)2}, {"model"}]'),
        "m.mlir:2:1: error: argument 0 of func.func: "
        'both sub-axis and full-axis are used for axis name: "model"\n'
        "  hint: an axis may shard a tensor only once, sub-axes included",
    ),
    "wrong sub-axis": (
        identity('@mesh, [{"model":(1)3}, {}]'),
        "m.mlir:2:1: error: argument 0 of func.func: "
        'sub-axis next pre-size 3 doesn\'t divide the size of the full axis 4: "model":(1)3\n'
        '  hint: "x":(pre)size is part of the axis "x": pre * size divides its size, and size is smaller',
    ),
    "wrong rank": (
        identity('@mesh, [{"data"}]'),
        "m.mlir:2:1: error: argument 0 of func.func: sharding doesn't match tensor rank: 1 != 2\n"
        "  hint: give one {...} for each dimension of the tensor",
    ),
    "axis declared twice": (
        GOOD.replace("model", "data"),
        "m.mlir:1:18: error: custom op 'sdy.mesh' duplicate axis name: \"data\"\n"
        "  hint: name every axis of a mesh once",
    ),
    "a saved run": (
        b"SQLite format 3\x00 and more",
        "m.mlir: error: this is a saved run, not a module\n"
        "  hint: give the module instead; why, diff, report, query and others read saved runs",
    ),
    "members of a group that disagree": (
        identity('@mesh, [{"data"}, {}]').replace(
            "{\n",
            "{\n  %0 = stablehlo.abs %arg0 "
            '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"model"}]>]>}'
            " : tensor<8x16xf32>\n"
            "  sdy.sharding_group %arg0 group_id = 7 : tensor<8x16xf32>\n"
            "  sdy.sharding_group %0 group_id = 7 : tensor<8x16xf32>\n",
        ),
        "m.mlir:3:8: error: members of a sharding group have different shardings: "
        '#sdy.sharding<@mesh, [{"data"}, {}]> and #sdy.sharding<@mesh, [{}, {"model"}]>\n'
        "  hint: give the members equal shardings, or leave each its own with --separate-groups",
    ),
    "members of a group with different shapes": (
        body(
            "sdy.sharding_group %arg0 group_id = 7 : tensor<8x16xf32>",
            "sdy.sharding_group %arg1 group_id = 7 : tensor<2xi32>",
            "%0 = stablehlo.abs %arg0 : tensor<8x16xf32>",
        ),
        "m.mlir:2:1: error: sharding group 7 has values of shapes (8, 16) and (2,)\n"
        "  hint: all members of a sharding group must have the same shape",
    ),
    "a group across a manual computation": (
        MESH + "func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<4x8xf32>) -> tensor<8x8xf32> {\n"
        "  sdy.sharding_group %arg1 group_id=7 : tensor<4x8xf32>\n"
        '  %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data"}, {}]>] '
        'out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data"} (%arg2: tensor<4x8xf32>) {\n'
        "    sdy.sharding_group %arg2 group_id=7 : tensor<4x8xf32>\n"
        "    sdy.return %arg2 : tensor<4x8xf32>\n"
        "  } : (tensor<8x8xf32>) -> tensor<8x8xf32>\n"
        "  return %0 : tensor<8x8xf32>\n}\n",
        "m.mlir:2:1: error: sharding group 7 has values inside and outside of a manual computation\n"
        "  hint: the members of a sharding group must be in the same manual computation",
    ),
}

OPTIONS = {
    "no mesh": (
        ["--mesh", "data"],
        "--mesh 'data': error: not a mesh\n  hint: expected axes with sizes, as in data=2,model=4",
    ),
    "axis of a mesh twice": (
        ["--mesh", "a=2,a=4"],
        "--mesh 'a=2,a=4': error: the axis a is listed twice\n  hint: name every axis once",
    ),
    "axis of size 0": (
        ["--mesh", "a=0"],
        "--mesh 'a=0': error: the axis a has size 0\n  hint: expected a number of devices",
    ),
    "axis of any size": (
        ["--mesh", "a=99999999999999999999"],
        "--mesh 'a=99999999999999999999': error: the axis a has size 99999999999999999999\n"
        "  hint: expected a number of devices",
    ),
    "mesh of another name": (
        ["--mesh", "mash: a=2"],
        "--mesh 'mash: a=2': error: the module has no mesh @mash\n  hint: did you mean mesh?",
    ),
    "no annotation": (
        ["--annotate", "%arg0"],
        "--annotate '%arg0': error: not an annotation\n"
        """  hint: expected a value and its sharding, as in %arg0=[{"data"}, {}] or %arg0=P('data')""",
    ),
    "value that does not exist": (
        ["--annotate", "%arg2=[{}, {}]"],
        "--annotate '%arg2=[{}, {}]': error: there is no value %arg2\n  hint: did you mean %arg1?",
    ),
    "no sharding": (
        ["--annotate", "%arg0=[{data}, {}]"],
        "--annotate '%arg0=[{data}, {}]': error: not a sharding: expected string\n"
        '  hint: expected one {...} for each dimension, as in [{"data", ?}, {}]',
    ),
    "annotation with an unknown axis": (
        ["--annotate", '%0=[{"dota"}, {}]'],
        '--annotate \'%0=[{"dota"}, {}]\': error: result of stablehlo.add: unknown axis name: "dota"\n'
        '  hint: did you mean "data"?',
    ),
    "annotation with an unknown mesh": (
        ["--annotate", "%0=<@mash, [{}, {}]>"],
        "--annotate '%0=<@mash, [{}, {}]>': error: result of stablehlo.add: unknown mesh: @mash\n"
        "  hint: did you mean @mesh?",
    ),
    "annotation of the wrong rank": (
        ["--annotate", "%0=[{}]"],
        "--annotate '%0=[{}]': error: result of stablehlo.add: sharding doesn't match tensor rank: 1 != 2\n"
        "  hint: give one {...} for each dimension of the tensor",
    ),
    "rule file that does not exist": (
        ["--rules", "none.dl"],
        "none.dl:1:1: error[E0106]: cannot read this file: No such file or directory",
    ),
    "output folder that does not exist": (
        ["-o", "none/out.mlir"],
        "none/out.mlir: error: cannot write: No such file or directory",
    ),
    "output that is a folder": (["-o", "."], ".: error: cannot write: Is a directory"),
}

RULES = {
    "unknown relation": (
        'ruled(s) :- opp(s, "my.op").\n',
        'r.dl:1:13: error[E0201]: unknown relation `opp`\n    ruled(s) :- opp(s, "my.op").\n'
        "                ^\n  hint: did you mean `op`?",
    ),
    "two errors": (
        "ruled(s) :- op(s).\nruled(s) :- op(s, name) name = 1.\n",
        "r.dl:1:13: error[E0302]: `op` has 2 columns, not 1\n    ruled(s) :- op(s).\n                ^\n"
        "  hint: it is declared as op(s:sig, name:symbol)\n"
        "r.dl:2:25: error[E0102]: expected `,` or `.` after the literal, found `name`\n"
        "    ruled(s) :- op(s, name) name = 1.\n                            ^",
    ),
    "two keys": (
        "ruled(s) :- op(s, n), op(r, n).\n",
        "r.dl:1:26: error[E0404]: this rule is not about one `sig`: "
        "the key of `op` is `r`, that of `ruled` is `s`\n"
        "    ruled(s) :- op(s, n), op(r, n).\n                             ^\n"
        "  hint: every `sig` in the first column is the same variable, which is in no other place",
    ),
    "division by zero": (
        "ruled(s) :- dim(s, _, _, n), 1 / (n - 8) = 0.\n",
        "r.dl:1: error: division by zero; test the divisor in the rule first",
    ),
}

QUERIES = {
    "nothing": (
        "",
        "query: error: the query is empty\n"
        "  hint: expected the body of a rule, as in 'argument(v, i), value(v, t)'",
    ),
    "unknown relation": (
        "argument(v, i), shard(v, d, k, x)",
        "query:1:17: error[E0201]: unknown relation `shard`\n    argument(v, i), shard(v, d, k, x).\n"
        "                    ^\n  hint: did you mean `sharded`?",
    ),
    "wrong type in the second line": (
        'argument(v, i),\ni = "a"',
        'query:2:5: error[E0301]: `"a"` is a symbol, but a number is expected here\n    i = "a".\n        ^',
    ),
    "no value": (
        "argument(v, i), j < i",
        "query:1:17: error[E0401]: the variable `j` has no value: no positive atom of the body holds it\n"
        "    argument(v, i), j < i.\n                    ^",
    ),
}

# What is wrong with the arguments themselves.
ARGUMENTS = {
    "unknown option": (
        "run m.mlir --bogus",
        "shardlog run: error: unrecognized arguments: --bogus\n  hint: see shardlog run --help",
    ),
    "misspelt option": (
        "cost m.mlir --topolgy=v4",
        "shardlog cost: error: unrecognized arguments: --topolgy=v4\n  hint: did you mean --topology?",
    ),
    "unknown command": (
        "rum m.mlir",
        "shardlog: error: argument COMMAND: invalid choice: 'rum'\n  hint: did you mean run?",
    ),
    "unknown choice": (
        "partition m.mlir --as hlo",
        "shardlog partition: error: argument --as: invalid choice: 'hlo'\n"
        "  hint: there are: sdy-manual, manual, replica, stablehlo, shard, mpi",
    ),
    "missing argument": (
        "report m.mlir",
        "shardlog report: error: the following arguments are required: -o/--output\n"
        "  hint: see shardlog report --help",
    ),
    "levels below none": (
        "why m.mlir %0 --depth -3",
        "shardlog why: error: argument --depth: '-3' is not a number of levels: expected zero or more\n"
        "  hint: see shardlog why --help",
    ),
    "no whole number": (
        "why m.mlir %0 --dim one",
        "shardlog why: error: argument --dim: 'one' is not a whole number\n  hint: see shardlog why --help",
    ),
    "a target in the place of a machine": (
        "cost m.mlir --topology tpu:v5e:2x4",
        "--topology: error: there is no topology tpu:v5e:2x4\n"
        "  hint: did you mean v5e:2x4? There are a100, b200, cpu, h100, h200, v4, v5e, v5p, v6e; "
        "or give a TOML file: docs/cost.md says how to measure a GPU",
    ),
    "a file inside of a file": (
        "run m.mlir -o m.mlir/out",
        "m.mlir/out: error: cannot write: Not a directory",
    ),
    "two documents on standard output": (
        "check m.mlir --fail-on collectives=0 --json --format junit",
        "--format junit: error: --json is printed there, too\n"
        "  hint: give the format a file, as in junit=FILE, or leave out one of the two",
    ),
    "a module of a file": (
        "run m.mlir -o out.mlir --module jit_step",
        "--module jit_step: error: m.mlir is a file, which has one module\n"
        "  hint: only an XLA dump, a folder, has several modules; leave the option out",
    ),
    "axes of a given mesh": (
        "auto m.mlir --mesh data=8 --axes 2",
        "--axes: error: only meshes that auto makes have a number of axes\n"
        "  hint: add --devices N, or leave --axes out",
    ),
    "a traversal without completion": (
        "run m.mlir -o out.mlir --traversal forward",
        "shardlog: error: Shardy's algorithm has no traversal\n"
        "  hint: add --propagation completion, or leave out --traversal",
    ),
    "a strategy of completion": (
        "run m.mlir -o out.mlir --propagation completion --strategy basic",
        "shardlog: error: completion has no strategy 'basic'\n"
        "  hint: leave out --strategy, or use --propagation shardy",
    ),
    "a folder that no file includes from": (
        "run m.mlir -o out.mlir --allow-include .",
        "--allow-include: error: no file is given that may include others\n"
        "  hint: add --rules FILE, or leave out --allow-include",
    ),
    "a value annotated twice": (
        "run m.mlir -o out.mlir --annotate %arg0=P() --annotate %arg1=P() --annotate %arg0=P('data')",
        "--annotate '%arg0=P('data')': error: another annotation is of this value\n"
        "  hint: leave it or this one out: %arg0=P()",
    ),
    "a version of a form without one": (
        "partition m.mlir --list --as replica --dialect-version 19",
        "partition: error: only shard and mpi have versions\n  hint: add --as shard",
    ),
    "a time for a search that there is not": (
        "partition m.mlir --list --keep-shardings --seconds 1",
        "seconds: error: nothing is searched where propagation decides all shardings\n"
        "  hint: leave out keep_shardings, or seconds",
    ),
    "a graph in JSON": (
        "why m.mlir %0 --json --dot",
        "--dot: error: --json prints another document\n  hint: leave out one of the two",
    ),
    "a plot that is no SVG picture": (
        "auto m.mlir --mesh data=8 --plot plot.png",
        "--plot plot.png: error: this is not the name of an SVG file\n"
        "  hint: the plot is an SVG picture: expected a name that ends with .svg",
    ),
    "a module for the layout": (
        "fmt m.mlir",
        "m.mlir: error: this is a module, not a rule file\n"
        "  hint: rules are files of Datalog (.dl) or einsum notation (.rules)",
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test has a folder of its own, the current one, with an output that must not be touched."""
    monkeypatch.chdir(tmp_path)
    Path("out.mlir").write_text("before")
    Path("m.mlir").write_text(GOOD)


def check_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The command ends with status 2 and this message, and leaves all files as they were."""
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert cli.main(arguments) == 2
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == f"{message}\n"
    assert {path: path.read_bytes() for path in Path().iterdir()} == before


@pytest.mark.parametrize("name", MODULES)
def test_module(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    content, message = MODULES[name]
    Path("m.mlir").write_bytes(content.encode() if isinstance(content, str) else content)
    check_refused(["run", "m.mlir", "-o", "out.mlir"], message, capsys)


@pytest.mark.parametrize("name", OPTIONS)
def test_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    options, message = OPTIONS[name]
    check_refused(["run", "m.mlir", "-o", "out.mlir", *options], message, capsys)


@pytest.mark.parametrize("name", RULES)
def test_rule_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = RULES[name]
    Path("r.dl").write_text(text)
    check_refused(["run", "m.mlir", "-o", "out.mlir", "--rules", "r.dl"], message, capsys)


@pytest.mark.parametrize("name", QUERIES)
def test_query(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    text, message = QUERIES[name]
    check_refused(["query", "m.mlir", text], message, capsys)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message = ARGUMENTS[name]
    check_refused(arguments.split(), message, capsys)


@pytest.mark.parametrize(
    "arguments", [["run"], ["report", "-o", "out.html"], ["fmt", "--check"], ["rules", "check"]]
)
def test_file_name_that_is_empty(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """As a variable of the shell that is not set leaves it."""
    dest = "module" if arguments[0] in ("run", "report") else "rules"
    message = f"{dest}: error: the file name is empty\n  hint: is it a variable of the shell that is not set?"
    check_refused([*arguments, ""], message, capsys)


def test_folder_without_rule_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    message = "there are no rule files in this folder\n  hint: rule files end with .dl or .rules"
    check_refused(["fmt", "--check", str(tmp_path)], f"{tmp_path}: error: {message}", capsys)


def test_without_jax(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    message = "shardlog: error: JAX is not installed\n  hint: pip install 'shardlog[jax]'"
    check_refused(["exec", "m.mlir"], message, capsys)


def test_annotation_without_a_mesh(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text(GOOD.removeprefix(MESH))
    message = (
        "--annotate '%0=[{}, {}]': error: the module has no mesh\n"
        "  hint: give it one, as in --mesh data=2,model=4"
    )
    check_refused(["run", "m.mlir", "-o", "out.mlir", "--annotate", "%0=[{}, {}]"], message, capsys)


def test_mesh_without_the_axes_in_use(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text(identity('@mesh, [{"data"}, {}]'))
    message = (
        "--mesh 'batch=2': error: the shardings of the module do not fit this mesh: argument 0 of func.func: "
        'unknown axis name: "data"\n  hint: keep the names of the axes that the module uses'
    )
    check_refused(["run", "m.mlir", "-o", "out.mlir", "--mesh", "batch=2"], message, capsys)


def test_mesh_without_a_name_for_several(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text('sdy.mesh @other = <["a"=2]>\n' + GOOD)
    message = (
        "--mesh 'a=4': error: the module has 2 meshes\n"
        "  hint: name one, as in 'other: a=4'; there are: other, mesh"
    )
    check_refused(["run", "m.mlir", "-o", "out.mlir", "--mesh", "a=4"], message, capsys)


def test_module_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    message = "none.mlir: error: cannot read the module: No such file or directory"
    check_refused(["run", "none.mlir", "-o", "out.mlir"], message, capsys)


@pytest.mark.parametrize("command", ["run", "partition", "exec", "facts -o f", "auto --devices 4"])
def test_function_without_a_body(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text("func.func private @main(tensor<4xf32>) -> tensor<4xf32>\n")
    name, *options = command.split()
    assert cli.main([name, "m.mlir", *options]) == 2
    assert "m.mlir: error: the " in capsys.readouterr().err


def test_value_of_a_program_without_tensors(capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.mlir").write_text("func.func @main() {\n  return\n}\n")
    message = "m.mlir: error: there is no value result#0\n  hint: the program has no tensors"
    check_refused(["why", "m.mlir", "result#0"], message, capsys)


def test_facts_where_a_file_stands(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["facts", "m.mlir", "-o", "out.mlir"]) == 2
    assert capsys.readouterr().err == "out.mlir: error: cannot write: Not a directory\n"
    assert Path("out.mlir").read_text() == "before"


@pytest.mark.parametrize(
    "arguments", [["run", "-"], ["run", "m.mlir", "--strategy", "best"], ["query", "-", "value(v"], []]
)
def test_no_traceback_in_a_process_of_its_own(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "shardlog", *arguments]
    done = subprocess.run(command, input="junk", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "error: " in done.stderr or "error[" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""

"""Programs that MLIR does not survive, or that have no end, get one message; the process that reads them
stays."""

from __future__ import annotations

import base64
import os
import random
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import shardlog
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo
from shardlog import ShardlogError
from shardlog.errors import closest
from shardlog.importers.sources import vetting
from shardlog.importers.sources.text import make_context
from shardlog.importers.sources.vetting import depth
from shardlog.program.mlir.modules import bytecode_of
from shardlog.program.shardy import installed

from ..support import models
from ..support.drawing import SEED, by_day

MESH = 'sdy.mesh @mesh = <["data"=2, "model"=4]>\n'
IDENTITY = "func.func @main(%arg0: {0}) -> {0} {{ return %arg0 : {0} }}\n"
CALL = (
    "func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {{\n  %0 = {0}(%arg0){1}"
    " : (tensor<8xf32>) -> tensor<8xf32>\n  return %0 : tensor<8xf32>\n}}\n"
)
DEEP = 20_000


def refused(source: object) -> str:
    with pytest.raises(ShardlogError) as caught:
        shardlog.run(source)
    return str(caught.value)


NESTED = {
    "types": IDENTITY.format("(" * DEEP + "f32" + ")" * DEEP),
    "types of functions": IDENTITY.format("() -> (" * DEEP + "f32" + ")" * DEEP),
    "lists": "module attributes {a.b = " + "[" * DEEP + "]" * DEEP + "} {}",
    "elements": "module attributes {a.b = dense<" + "[" * DEEP + "1" + "]" * DEEP + "> : tensor<1xi32>} {}",
    "affine maps": "module attributes {a.b = affine_map<(d0) -> ("
    + "(" * DEEP
    + "d0"
    + ")" * DEEP
    + ")>} {}",
    "modules": "module {" * DEEP + "}" * DEEP,
}


@pytest.mark.parametrize("text", NESTED.values(), ids=NESTED)
def test_nested_too_deeply(text: str) -> None:
    levels = depth(text.encode())
    assert levels >= DEEP
    expected = f"<text>: error: MLIR crashes on this\n  hint: brackets nest {levels:,} levels deep"
    assert refused(text) == expected


def test_signs_nest_too() -> None:
    text = "module attributes {a.b = affine_map<(d0) -> (" + "-" * DEEP + "d0)>} {}"
    assert refused(text) == "<text>: error: MLIR crashes on this\n  hint: there are 500 signs in a row"


def test_depth() -> None:
    assert depth(b"") == 0
    assert depth(b"f(x) -> tuple<[a], {b}>") == 2
    assert depth(b") -> ) -> (((") == 3
    assert depth((b"(" * 1500 + b")" * 1500) * 1000) == 1500  # over several pieces


def test_nested_deeply_but_readable() -> None:
    text = IDENTITY.format("tensor<8xf32>").replace(
        "{ return", "attributes {a.b = " + "[" * 600 + "]" * 600 + "} { return"
    )
    assert "[[[[" in shardlog.run(text).text()


NAMES = {
    "an op": CALL.format(r'"my.\FF"', ""),
    "a function": CALL.format('"my.op"', "").replace("@main", r'@"\FF"'),
    "a callee": CALL.format(r'func.call @"\FF"', ""),
    "a mesh": MESH.replace("@mesh", r'@"\FF"') + CALL.format('"my.op"', ""),
    "an axis": MESH.replace("data", r"\FF") + CALL.format('"my.op"', ""),
    "an axis in use": MESH
    + CALL.format('"my.op"', r' {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"\FF"}]>]>}'),
    "an attribute": CALL.format('"my.op"', r' {"\FF" = 1}'),
    "an entry of a dictionary": CALL.format('"my.op"', r' {a = [{"\FF" = 1}]}'),
    "a symbol": CALL.format('"my.op"', r' {a = @"\FF"}'),
}
NOT_READ = ("a callee", "an axis in use")  # there is no such module


@pytest.mark.parametrize("text", NAMES.values(), ids=NAMES)
def test_names_that_are_not_text(text: str) -> None:
    message = refused(text)
    assert message.startswith("<text>:")
    assert message.endswith("\n  hint: names of ops, functions, meshes, axes and attributes have to be UTF-8")


@pytest.mark.parametrize(
    "attributes",
    [r'backend_config = "\FF\00"', r'a = "\FF"', r'mhlo.frontend_attributes = {a = "\FF"}'],
)
@pytest.mark.parametrize("target", ["my_target", r'"\FF"'])
def test_strings_may_be_any_bytes(attributes: str, target: str) -> None:
    text = CALL.format(f"stablehlo.custom_call @{target}", f" {{{attributes}}}")
    assert attributes in shardlog.run(text).text()


@pytest.mark.parametrize("what", [what for what in NAMES if what not in NOT_READ])
def test_names_of_a_module_in_memory(what: str) -> None:
    with make_context():
        module = ir.Module.parse(NAMES[what])
    message = refused(module)
    assert message.startswith("<module>")
    assert message.endswith("\n  hint: names of ops, functions, meshes, axes and attributes have to be UTF-8")


def test_strings_of_a_module_in_memory() -> None:
    with make_context():
        module = ir.Module.parse(CALL.format('"my.op"', r' {a = "\FF"}'))
    assert r'a = "\FF"' in shardlog.run(module).text()


def doubled(times: int) -> str:
    """A module with a list that has one twice that has one twice, and so on."""
    aliases = [f"#a{i} = [#a{i - 1}, #a{i - 1}]" for i in range(1, times + 1)]
    return "\n".join(['#a0 = "x"', *aliases, CALL.format('"my.op"', f" {{a = #a{times}}}")])


def test_attributes_have_many_parts() -> None:
    assert shardlog.run(doubled(18)).text().count('"x"') == 2**18


def test_aliases_that_stand_for_too_much() -> None:
    """Printing what is read would take the memory of the machine."""
    text = doubled(40)
    assert re.fullmatch(
        r"<text>: error: an alias expands to [\d,]{15,} characters\n  hint: .*", refused(text)
    )
    types = text.replace("#a", "!a").replace('"x"', "tuple<f32>").replace("[", "tuple<").replace("]", ">")
    assert "an alias expands to" in refused(types)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ("{a = ", "}")])
def test_attributes_nest_deeply(opening: str, closing: str) -> None:
    nested = opening * 2000 + "[]" + closing * 2000
    assert nested in shardlog.run(CALL.format('"my.op"', f" {{a = {nested}}}")).text()


# Of a tanh, with some bytes changed: jaxlib 0.10.2 reads it without an end.
ENDLESS = base64.b64decode(
    b"TUzvUg1NTElSMjMuMC4wZ2l0AAEnCQEFCQ0LAQMTAwMXBQULGwcDHwNjSwkBOQsLCwsPCxMTCxMLExsLDxsLDwcTCwsLExMTExMD"
    b"ExsXDw8XDxcPDwEJFw8XBwIiAgURBRMFFQULAQMnBRcXAQEBAwMREwUZAwMVFwUbAQUZFwMFAxsFHQUdEQMhAwUDIQUjBR8RAxEf"
    b"AwMLOQkHDQUFIRcBAwMXAQMjAwMLSRcBBREXAQcHDSkFQUUBBQU9PwEDHSEDHxELA0MBAQkfAQsDRwEBCR0BDwM5GwUhIQcBAgQF"
    b"AwEDAQsEWQUBUA0BBwRJAwEJA0ElDwMFUC8FBwQrAwULAwMxAAlHNTMHAwEDAQcENwMDBgMBBQEAFgIjCw8PCx8bCwsFCw8LDxUL"
    b"CRFidWlsdGluAHNkeQBmdW5jAHN0YWJsZWhsbwBtb2R1bGUAbWVzaAByZXR1cm4AdGFuaAAtAG5hbWUAc2l6ZQBzZHkuc2hhcmRp"
    b"bmcAc3RhYmxlaGxvLm1lc2gAYXhlcwBheGlzXzAAYXhpc18xAG1haW4ACCEJBQEBBTsHDRMrARMtAQMB"
)


def test_bytecode_that_is_read_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vetting, "_SECONDS", 1)
    assert refused(ENDLESS).endswith(
        "error: MLIR did not read this within 1 seconds\n"
        "  hint: the bytecode is damaged, or newer than this jaxlib can read"
    )


# Of the seeds of its damage, those of the night are others each day.
@pytest.mark.parametrize(("number", "count"), by_day([(0, 12)], [(0, 12), (SEED + 1, 50)]))
def test_damaged_bytecode(number: int, count: int) -> None:
    """Of these, some crash MLIR, some read endlessly much, and some are a program still."""
    with make_context():
        good = bytecode_of(ir.Module.parse(models.text("transformer", train=True)))
    assert shardlog.run(good).text() == shardlog.run(models.text("transformer", train=True)).text()
    chosen = random.Random(number)
    for _ in range(count):
        damaged = bytearray(good)
        for _ in range(chosen.choice([1, 3, 30])):
            damaged[chosen.randrange(len(good))] ^= 1 << chosen.randrange(8)
        try:
            shardlog.run(bytes(damaged)).text()
        except ShardlogError as error:
            assert error.where
            assert len(str(error)) < 1000


def test_damaged_portable_artifact() -> None:
    text = CALL.format("stablehlo.custom_call @f", "")
    with make_context():
        module = ir.Module.parse(text)
        good = stablehlo.serialize_portable_artifact(module, stablehlo.get_current_version())
    assert shardlog.run(good).text() == shardlog.run(text).text()
    assert refused(good[:60]) == (
        "<bytes>: error: failed to deserialize module\n"
        "  hint: the bytecode is damaged, or newer than this jaxlib can read"
    )


LOOP = """
func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xf32> {mhlo.sharding = "{devices=[8,1]<=[2]}"})
    -> tensor<8x8xf32> {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %c_0 = stablehlo.constant dense<1.0> : tensor<f32>
  %0:2 = stablehlo.while(%a = %arg0, %b = %arg1) : tensor<8x8xf32>, tensor<8x8xf32>
      attributes {mhlo.sharding = "{{devices=[2,4]<=[8]}, {devices=[2,4]<=[8]}}"} cond {
    %1 = stablehlo.reduce(%b init: %c) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.compare GT, %1, %c_0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
    %2 = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.multiply %2, %1 : tensor<8x8xf32>
    stablehlo.return %a, %3 : tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %0#1 : tensor<8x8xf32>
}
"""


def test_what_ends_xla() -> None:
    """XLA of jaxlib 0.10 aborts where a sharded loop uses values from around it beside one with such a
    sharding; later ones refuse it."""
    with pytest.raises(ShardlogError) as caught:
        shardlog.run(LOOP, view="roundtrip")
    if installed() == "0.10":
        assert str(caught.value) == (
            "<text>: error: XLA crashes on this\n"
            "  hint: the default view, lowered, does not need XLA and may have a better message"
        )
    else:
        assert caught.value.message.startswith("XLA cannot compile it: RET_CHECK failure")
    assert "not a sharding: {devices=[8,1]<=[2]}" in refused(LOOP)


def test_a_device_without_end() -> None:
    expected = "error: this is neither MLIR text nor MLIR bytecode\n  hint: expected a .mlir or .mlirbc file"
    for device in ("/dev/zero", "/dev/urandom"):
        assert refused(Path(device)) == f"{device}: {expected}"


def test_a_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(CALL.format('"my.op"', ""),))
    writer.start()
    assert "my.op" in shardlog.run(path).text()
    writer.join()


def test_python(tmp_path: Path) -> None:
    path = tmp_path / "model.py"
    path.write_text("import jax\n")
    assert refused(path) == (
        f"{path}: error: this is Python\n"
        "  hint: lower it first: jax.jit(f).lower(*arguments).as_text() is the text of a module"
    )


def test_long_messages_are_cut(tmp_path: Path) -> None:
    string = "x" * 1_000_000
    for text in (
        f'module attributes {{a.b = "{string}" : "{string}"}} {{}}',
        CALL.format(f'"{string}.op"', f" {{sdy.sharding = #sdy.sharding<@{string}, [{{}}]>}}"),
        CALL.format('"my.op"', f' {{mhlo.sharding = "{{{string}"}}'),
        IDENTITY.format(f"tuple<!my.{string}>"),
    ):
        assert len(refused(text)) < 700
    assert len(refused(tmp_path / "m.mlir")) < 700


@pytest.mark.parametrize("length", by_day([4_000_000], [4_000_000, 20_000_000]))
def test_a_long_string_is_read(length: int) -> None:
    string = "x" * length
    assert len(shardlog.run(CALL.format('"my.op"', f' {{a = "{string}"}}')).text()) > len(string)


def test_a_folder_as_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shardlog", "run", "-"]
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        done = subprocess.run(command, stdin=folder, capture_output=True, text=True, check=False)
    finally:
        os.close(folder)
    assert done.returncode != 0
    assert "directory" in done.stderr.lower()


def test_an_axis_of_too_many_parts() -> None:
    text = 'sdy.mesh @mesh = <["x"={}]>\n' + CALL.format('"my.op"', "").replace("{", "{{").replace("}", "}}")
    shardlog.run(text.format(2**31 - 1))  # a prime
    assert refused(text.format(720_720)) == (
        '<text>:1:1: error: the axis "x" of size 720,720 has 240 divisors, each of them a sub-axis\n'
        "  hint: at most 100; split the axis into two"
    )
    for size in (2**31, 2**63 - 25):
        assert refused(text.format(size)) == (
            f'<text>:1:1: error: the axis "x" has size {size:,}\n  hint: expected a number of devices'
        )


def test_regions_nest_deeply() -> None:
    for levels, works in ((100, True), (101, False)):
        inner = "%x = stablehlo.abs %arg1 : tensor<8xf32> stablehlo.return %x : tensor<8xf32>"
        for level in range(levels):
            end = "return" if level == levels - 1 else "stablehlo.return"
            inner = (
                f'%{level} = "stablehlo.case"(%arg0) ({{ {inner} }}) : (tensor<i32>) -> tensor<8xf32>'
                f" {end} %{level} : tensor<8xf32>"
            )
        text = f"func.func @main(%arg0: tensor<i32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {{ {inner} }}"
        if works:
            assert shardlog.run(text).text("gspmd").count("stablehlo.case") == levels
        else:
            hint = "at most 100 levels are supported; move the inner ones into a function"
            assert refused(text).endswith(f"error: regions nest too deeply\n  hint: {hint}")


def test_calls_nest_deeply() -> None:
    call = "%0 = call @f{0}(%arg0) : (tensor<8xf32>) -> tensor<8xf32> return %0 : tensor<8xf32>"
    type_ = "(%arg0: tensor<8xf32>) -> tensor<8xf32>"
    count = 1_500
    functions = [f"func.func private @f{i}{type_} {{ {call.format(i + 1)} }}" for i in range(count)]
    end = f"func.func private @f{count}{type_} {{ return %arg0 : tensor<8xf32> }}"
    sharded = type_.replace("f32>)", 'f32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>})')
    main = MESH + f"func.func @main{sharded} {{ {call.format(0)} }}"
    text = shardlog.run("\n".join([main, *functions, end])).text()
    assert text.count('sdy.sharding_per_value<[<@mesh, [{"data"}]>]>') == count + 1


def test_calls_that_count_too_many_ops() -> None:
    """Every function calls the next one twice."""
    call = "func.call @f{0}(%arg0) : (tensor<8xf32>) -> tensor<8xf32>"
    functions = [
        f"func.func {'private' * (i > 0)} @{f'f{i}' if i else 'main'}(%arg0: tensor<8xf32>) -> tensor<8xf32> "
        f"{{ %0 = {call.format(i + 1)} %1 = {call.format(i + 1)} return %1 : tensor<8xf32> }}"
        for i in range(40)
    ]
    last = "func.func private @f40(%arg0: tensor<8xf32>) -> tensor<8xf32> { return %arg0 : tensor<8xf32> }"
    assert refused("\n".join([*functions, last])) == (
        f"<text>:1:1: error: {4 * 2**40 - 3:,} ops, counting each function once per call\n"
        "  hint: at most 50,000,000 are supported; call functions less often, or in a stablehlo.while"
    )


def test_the_closest_of_many_names() -> None:
    names = [f"%layer_{i}_attention" for i in range(20_000)]
    assert closest("%layer_15731_atention", names) == "did you mean %layer_15731_attention?"
    assert closest("x" * 10**6, ["x" * 10**6 + "y"]).startswith("there are: xxx")


def test_annotation_where_main_is_declared_alone() -> None:
    text = MESH + "func.func private @main(tensor<8xf32>) -> tensor<8xf32>\n"
    with pytest.raises(ShardlogError) as caught:
        shardlog.run(text, annotate=['%arg0=[{"data"}]'])
    assert str(caught.value) == "<text>: error: the module has no function\n  hint: expected a func.func"


@pytest.mark.parametrize(
    "sharding",
    [
        r'[{"\FF"}]',
        '[{"\udcff"}]',
        "[" * DEEP,
        "<@mesh, [{}]> loc(unknown)",
        '_per_value<[<@mesh, [{"data"}]>]>',
        f'[{{"{"x" * 10**6}"}}]',
    ],
    ids=["bytes", "surrogates", "nested", "more", "another attribute", "long"],
)
def test_annotations_that_are_no_shardings(sharding: str) -> None:
    with pytest.raises(ShardlogError) as caught:
        shardlog.run(MESH + CALL.format('"my.op"', ""), annotate=[f"%arg0={sharding}"])
    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("mesh", "message"),
    [
        ("\udcff=2", "names must be UTF-8"),
        (r'"\FF"=2', "names must be UTF-8"),
        ("a=" + "9" * 5000, "the axis a has size 9999"),
        ("a=2147483647,b=2", "the mesh has 4,294,967,294 devices"),
        ("a=720720", 'the axis "a" of size 720,720 has 240 divisors'),
    ],
    ids=["surrogates", "bytes", "long", "many devices", "many divisors"],
)
def test_meshes_that_are_none(mesh: str, message: str) -> None:
    with pytest.raises(ShardlogError) as caught:
        shardlog.run(CALL.format('"my.op"', ""), mesh=mesh)
    assert caught.value.message.startswith(message)
    assert len(str(caught.value)) < 700

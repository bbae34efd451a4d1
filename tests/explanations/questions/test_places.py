"""Places: the line of the user's program, the name stack, and how values of one line are told apart."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
import shardlog
from shardlog.checks.expect import check
from shardlog.cli import main
from shardlog.errors import ShardlogError
from shardlog.program.mlir.origins import Frame, Origin, is_library, origin, tell_apart
from shardlog.program.mlir.places import NameScope
from shardlog.runs.records.record import RunRecord
from shardlog.session import Session

LIBRARY = "/usr/lib/python3.11/site-packages/flax/linen/linear.py"


def call(name: str, *frames: int | str) -> str:
    """A location with a name stack and frames, inner ones first: lines of the user's, or files."""
    files = [f if isinstance(f, str) else f"/home/me/model.py:{f}" for f in frames]
    *inner, outer = [f'"f"("{file.rpartition(":")[0]}":{file.rpartition(":")[2]}:1 to :9)' for file in files]
    chain = outer
    for frame in reversed(inner):
        chain = f"callsite({frame} at {chain})"
    return f'"{name}"({chain})'


def test_frames_are_read_with_their_functions() -> None:
    place = origin('"jit(f)/mul"(callsite("g"("my files/a(1).py":3:8 to 5:9) at "f.<locals>.h"("b.py":7:1)))')
    frames = Frame("g", "my files/a(1).py", 3, 8), Frame("f.<locals>.h", "b.py", 7, 1)
    assert place == Origin(("jit(f)/mul",), frames)
    assert origin('"a\\22b\\C3\\BC/c"("-":1:2)').stack == 'a"b\u00fc'
    assert origin("unknown") == origin("callsite(unknown at unknown)") == Origin()
    assert origin('"mul:"("layer/mul"("f"("m.py":1:2)))').path == "layer/mul"  # the kind of an op is no name
    deep = "callsite(" * 5000 + "unknown"  # which MLIR would not print
    assert origin(deep) == Origin((deep,))


def test_fused_locations_have_all_frames() -> None:
    place = origin(f'fused<"pass">["a/mul"("{LIBRARY}":7:1), "model.py":3:1, "b/add"("model.py":3:1)]')
    assert (place.line, place.stack) == ("model.py:3 (flax/linen/linear.py:7)", "a")


def test_the_line_is_the_nearest_one_outside_of_libraries() -> None:
    inside = f"{LIBRARY}:7"
    assert origin(call("mul", inside, 31, 40)).line == "/home/me/model.py:31 (flax/linen/linear.py:7)"
    assert origin(call("mul", inside, f"{LIBRARY}:9", 31)).line == (
        "/home/me/model.py:31 (flax/linen/linear.py:7)"
    )
    assert origin(call("mul", 31, inside, 40)).line == "/home/me/model.py:31"
    assert origin(call("mul", inside, f"{LIBRARY}:9")).line == "flax/linen/linear.py:7"  # all there is
    assert origin('"/home/me/model.py":7:3').line == "/home/me/model.py:7"
    assert origin('"mul"').line == ""


@pytest.mark.parametrize(
    "file",
    [
        LIBRARY,
        "/usr/lib/python3/dist-packages/numpy/core/numeric.py",
        "/opt/conda/lib/python3.13t/contextlib.py",
        "/home/me/jax/jax/_src/numpy/lax_numpy.py",
        "C:\\Python311\\Lib\\site-packages\\haiku\\_src\\basic.py",
        "site-packages/equinox/nn/_linear.py",
        "<frozen runpy>",
    ],
)
def test_libraries(file: str) -> None:
    assert is_library(file)


@pytest.mark.parametrize(
    "file", ["/home/me/lib/model.py", "m.py", "/tmp/ipykernel_7/12.py", "<stdin>", "flax/a.py"]
)
def test_what_is_the_users(file: str) -> None:
    assert not is_library(file)


def test_name_stacks() -> None:
    for frames in ((3,), (3, 4), (3, 4, 5)):
        assert origin(call("jit(f)/jvp(layer_0)/norm/mul", *frames)).stack == "jvp(layer_0)/norm"
        assert origin(call("mul", *frames)).stack == ""
    assert origin('"jit(f)/transpose(jvp(a))/b/mul"').path == "transpose(jvp(a))/b/mul"
    assert origin('"jit(f)/jit(main)/a/mul"').stack == "a"  # as JAX wrote it once
    assert origin('"jit(f)/jvp(a/b)/mul"').stack == "jvp(a/b)"
    assert origin('"jit(f)"').path == origin('"model.py":3:1').stack == ""


def test_calls_stand_around_what_they_call() -> None:
    caller, own = origin(call("jit(f)/jvp(net)/jit(silu)", 9, 20)), origin('"mul"')
    found = own.within(caller)
    assert (found.line, found.stack, found.primitive) == ("/home/me/model.py:9", "jvp(net)/jit(silu)", "mul")
    inlined = 'callsite("mul" at "jit(f)/jvp(net)/jit(silu)"("model.py":9:1))'  # as compilers write it
    assert origin(inlined).path == "jvp(net)/jit(silu)/mul"
    both = 'callsite("mul"("lib.py":3:1) at "jit(f)/net/jit(silu)"("model.py":9:1))'
    assert origin(both) == origin('"mul"("lib.py":3:1)').within(
        origin('"jit(f)/net/jit(silu)"("model.py":9:1)')
    )
    whole = origin('"jit(f)/net/jit(silu)/mul"').within(origin('"jit(f)/net/jit(silu)"'))
    assert whole.path == "net/jit(silu)/mul"  # has been said


def test_scopes() -> None:
    path = "transpose(jvp(UNet))/ResBlock_0/Conv_1/conv_general_dilated"
    for pattern in (
        *("ResBlock_0/Conv_1", "ResBlock_0", "UNet/ResBlock_0", "transpose(jvp(UNet))", "Conv_1/conv_*"),
        *("ResBlock_*/Conv_1", "*/Conv_1", path),
    ):
        assert NameScope(pattern).has(path), pattern
    for pattern in ("Conv", "ResBlock_0/conv_general_dilated", "jvp(UNet)", "ResBlock_*/conv*", "*/Conv_0"):
        assert not NameScope(pattern).has(path), pattern


def test_what_a_helper_makes_is_told_apart() -> None:
    first, second = origin(call("jit(f)/a/mul", 3, 10, 20)), origin(call("jit(f)/a/mul", 3, 11, 20))
    assert tell_apart(first, [first, second]) == "from /home/me/model.py:10"
    assert tell_apart(first, [first]) == ""
    inside = [origin(call("jit(f)/a/mul", f"{LIBRARY}:7", 3, line)) for line in (10, 11)]
    assert tell_apart(inside[1], inside) == "from /home/me/model.py:11"


CONSTRAIN = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}, {}]> : tensor<8x8xf32>
      loc(callsite("lib.py":3:1 at "m.py":10:1))
  %2 = stablehlo.tanh %1 : tensor<8x8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{"b"}, {}]> : tensor<8x8xf32>
      loc(callsite("lib.py":3:1 at "m.py":11:1))
  %4 = func.call @f(%3) : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("m.py":12:1)
  return %4 : tensor<8x8xf32>
}
func.func private @f(%x: tensor<8x8xf32> loc(unknown)) -> tensor<8x8xf32> {
  %0:2 = stablehlo.while(%i = %x, %j = %x) : tensor<8x8xf32>, tensor<8x8xf32>
  cond { %c = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %c : tensor<i1> }
  do { stablehlo.return %i, %j : tensor<8x8xf32>, tensor<8x8xf32> } loc("m.py":20:1)
  return %0#0 : tensor<8x8xf32>
}
"""


@pytest.fixture(scope="module")
def run() -> RunRecord:
    return shardlog.run(CONSTRAIN).record


def test_annotations_say_who_called_the_helper(run: RunRecord) -> None:
    assert {a.where for a in run.annotations()} == {"lib.py:3 from m.py:10", "lib.py:3 from m.py:11"}


def test_arguments_come_from_where_they_are_given(run: RunRecord) -> None:
    assert run.named("@f:%arg0")[0].where == "m.py:12"
    assert {value.where for value in run.named("@f:%iterArg")} == {"m.py:20"}


MODEL = f"""
sdy.mesh @mesh = <["data"=2, "model"=2]>
func.func @main(%x: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"data"}}, {{}}]>}} loc("x"),
                %w: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"model"}}, {{}}]>}} loc("w"))
    -> tensor<8x8xf32> {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
     : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
     loc("jit(step)/jvp(Net)/Dense_0/dot_general"(
       callsite("call"("{LIBRARY}":700:1) at "net"("model.py":31:1))))
  %1 = func.call @silu(%0) : (tensor<8x8xf32>) -> tensor<8x8xf32>
     loc("jit(step)/jvp(Net)/jit(silu)"("net"("model.py":32:1)))
  %2 = func.call @silu(%1) : (tensor<8x8xf32>) -> tensor<8x8xf32>
     loc("jit(step)/jvp(Net)/Block_1/jit(silu)"("net"("model.py":33:1)))
  return %2 : tensor<8x8xf32>
}}
func.func private @silu(%x: tensor<8x8xf32> loc(unknown)) -> tensor<8x8xf32> {{
  %0 = stablehlo.logistic %x : tensor<8x8xf32> loc("logistic")
  %1 = stablehlo.multiply %x, %0 : tensor<8x8xf32> loc("mul")
  return %1 : tensor<8x8xf32> loc(unknown)
}}
"""
AT = "at model.py:31 (flax/linen/linear.py:700) in jvp(Net)/Dense_0"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> tuple[Session, Session]:
    """A run of a model whose layers are a library's, and the same saved."""
    result, file = shardlog.run(MODEL), tmp_path_factory.mktemp("runs") / "run.db"
    result.save(file)
    return result, shardlog.open(file)


@pytest.mark.parametrize("saved", [False, True])
def test_values_have_lines_and_stacks(model: tuple[Session, Session], saved: bool) -> None:
    record = model[saved].record
    (product,) = record.named("%0")
    assert (product.where, product.stack) == ("model.py:31 (flax/linen/linear.py:700)", "jvp(Net)/Dense_0")
    places = [(v.where, v.stack) for call in (1, 2) for v in record.named(f"@silu#{call}:%1")]
    assert places == [
        ("model.py:32", "jvp(Net)/jit(silu)"),
        ("model.py:33", "jvp(Net)/Block_1/jit(silu)"),
    ]
    ops = {op.slots[-1]: op for _, op in record.ops()}
    assert (ops["%0"].where, ops["%0"].stack) == (product.where, product.stack)
    assert ops["@silu#2:%0"].stack == "jvp(Net)/Block_1/jit(silu)"


@pytest.mark.parametrize("saved", [False, True])
def test_values_are_found_by_scope_and_by_lines_of_calls(model: tuple[Session, Session], saved: bool) -> None:
    record = model[saved].record
    explainer = shardlog.explanations.questions.why.Explainer(record)
    found = {
        name: [v.name for v in explainer.values.find(name)] for name in ("Net/Dense_0", "Block_*", "silu")
    }
    assert found["Net/Dense_0"] == ["%0"]
    assert found["Block_*"] == ["%2", "@silu#2:%0", "@silu#2:%1"]
    assert set(found["silu"]) == {"%1", "%2", *(f"@silu#{c}:%{v}" for c in (1, 2) for v in (0, 1))}
    assert [v.name for v in record.from_line("model.py", 33)] == found["Block_*"]
    with pytest.raises(ShardlogError, match="there is no value Dense"):
        explainer.values.find("Dense")


def test_explanations_and_lists_say_both(
    model: tuple[Session, Session], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "model.mlir"
    file.write_text(MODEL)

    def said(*arguments: str) -> str:
        assert main([*arguments[:1], str(file), *arguments[1:]]) in (0, None)
        return " ".join(capsys.readouterr().out.split())

    assert f"%0 : tensor<8x8xf32> {AT}" in said("why", "Dense_0", "--axis", "data")
    assert AT in said("why-not", "%0", "--dim", "1", "--axis", "model")
    assert AT in said("conflicts")
    listed = said("partition", "--list")
    assert "model.py:31 (flax/linen/linear.py:700) jvp(Net)/Dense_0" in listed
    assert AT in said("why", "--collective", "0")
    assert "jvp(Net)/Dense_0" in said("cost", "--topology", "v5e")
    assert '"stack": "jvp(Net)/Dense_0"' in said("why", "Dense_0", "--json")


def test_expectations_of_scopes(model: tuple[Session, Session], tmp_path: Path) -> None:
    file = tmp_path / "expected.toml"
    file.write_text('"Net/Block_*" = \'[{"data"}, {}]\'\n"Dense_*" = \'[{}, {"model"}]\'\n')
    (wrong,) = check(model[0], file)
    assert (wrong.value, wrong.place, wrong.stack) == (
        "%0",
        "model.py:31 (flax/linen/linear.py:700)",
        "jvp(Net)/Dense_0",
    )


def test_name_stacks_of_jax() -> None:
    def layer(x: jax.Array) -> jax.Array:
        with jax.named_scope("norm"):
            return jax.nn.silu(x)

    def loss(x: jax.Array) -> jax.Array:
        with jax.named_scope("Net"):
            return jnp.sum(layer(x))

    lowered = jax.jit(jax.grad(loss)).lower(jnp.ones((8, 8)))
    record = shardlog.run(lowered, mesh="data=2").record
    inside = [op for _, op in record.ops() if "silu" in op.stack and op.name.startswith("stablehlo.")]
    assert {op.stack for op in inside} == {"jvp(Net)/norm/jit(silu)", "transpose(jvp(Net))/norm/jit(silu)"}
    assert all(Path(__file__).name in op.where for op in inside)

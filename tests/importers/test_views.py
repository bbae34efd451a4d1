"""Programs as XLA sees them: what we decide for them is what a real compile decided."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardlog
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from shardlog.explanations.questions.match import matched

from ..support.drawing import in_turn
from ..support.programs import PROGRAMS, P, array, lowered

pytestmark = pytest.mark.versions

TEXT = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
#rows = #sdy.sharding<@mesh, [{"data"}, {}]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #rows}) -> tensor<8x16xf32> {
  %0 = stablehlo.tanh %x : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
"""


def run(program: Any, **options: Any) -> shardlog.Session:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return shardlog.run(program, **options)


def specs(shardings: Any) -> list[Any]:
    """Shardings in one form: the axes of each dimension, without dimensions at the end that have none."""
    found = []
    for sharding in jax.tree.leaves(shardings, is_leaf=lambda leaf: leaf is None):
        spec = getattr(sharding, "spec", ())  # None, or on one device: of a program without a mesh
        axes = [entry if isinstance(entry, tuple) else (entry,) if entry else () for entry in spec]
        while axes and not axes[-1]:
            axes.pop()
        found.append(axes)
    return found


def boundary(of: Any) -> list[Any]:
    if isinstance(of, shardlog.Session):
        return specs((of.argument_shardings, of.result_shardings))
    return specs((of.input_shardings[0], of.output_shardings))


@pytest.mark.parametrize("name", in_turn(0, PROGRAMS))
def test_compiled(name: str) -> None:
    program = lowered(name, 0)
    result = run(program, view="compiled")
    agreement = result.agreement()
    assert agreement is None or agreement.equal == agreement.ops, str(agreement)
    assert boundary(result) == boundary(program.compile())


@pytest.mark.parametrize("name", in_turn(1, PROGRAMS))
def test_round_trip(name: str) -> None:
    program = lowered(name, 1)
    assert boundary(run(program, view="roundtrip")) == boundary(program.compile())


@pytest.mark.parametrize("view", ["roundtrip", "compiled"])
def test_names_are_the_users(view: str) -> None:
    def f(params: Any, x: Any) -> Any:
        return {"y": jnp.tanh(x @ params["w"])}  # the line that is asked about

    w, x = array((16, 32), None, "model"), array((8, 16), "data")
    result = run(jax.jit(f).lower({"w": w}, x), view=view)
    line = f.__code__.co_firstlineno + 1
    assert {reason.site.value for reason in result.why(f"test_views.py:{line}")} == {"%0", "%1"}
    (reason,) = result.why("result['y']", dim=1)
    assert "stablehlo.dot" in str(reason)
    assert "annotated %arg0" in str(reason)
    assert "params['w']" in str(reason)
    assert set(result.argument_shardings[0]) == {"w"}


def test_a_view_is_asked_about_as_any_run(tmp_path: Path) -> None:
    result = run(lowered("train step", 0), view="compiled")
    result.save(tmp_path / "compiled.run")
    saved = shardlog.open(tmp_path / "compiled.run")
    assert str(saved.conflicts()) == str(result.conflicts())
    assert not result.diff(saved).tensors


def test_tensors_of_views_are_matched() -> None:
    """Also where XLA has another op for the same: ``dot`` for ``dot_general``."""
    program = lowered("mlp", 1)
    seen, given = (run(program, view=view).record for view in ("compiled", "lowered"))
    found = {mine.number: theirs.type for mine, theirs in matched(seen, given)}
    assert {v.number: v.type for v in seen.values() if v.shape}.items() <= found.items()


def test_a_program_on_one_device() -> None:
    result = run(jax.jit(jnp.sin).lower(jnp.ones(4)), view="compiled")
    assert result.agreement() is None


def test_there_is_no_such_view() -> None:
    with pytest.raises(shardlog.ShardlogError, match="there is no view 'seen'"):
        shardlog.run(TEXT, view="seen")


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "shardlog", *arguments]
    return subprocess.run(line, capture_output=True, text=True, check=False)


def test_command_line(tmp_path: Path) -> None:
    (tmp_path / "m.mlir").write_text(TEXT)
    done = command("why", str(tmp_path / "m.mlir"), "%0", "--compiled")
    assert done.returncode == 0
    assert "XLA decided the same: all 3 ops" in done.stderr
    assert f'%0 dim 0 gets "data" from %arg0 dim 0 by stablehlo.tanh at {tmp_path}/m.mlir:4' in done.stdout


def test_what_does_not_compile(tmp_path: Path) -> None:
    """XLA's message, with the place of the op that it is about."""
    unknown = "%0 = stablehlo.custom_call @nobody_knows(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32>"
    (tmp_path / "m.mlir").write_text(TEXT.replace("%0 = stablehlo.tanh %x : tensor<8x16xf32>", unknown))
    done = command("run", str(tmp_path / "m.mlir"), "--compiled")
    assert done.returncode == 2
    assert f"{tmp_path}/m.mlir:4: error: XLA cannot compile it: " in done.stderr
    assert "Traceback" not in done.stderr


def test_what_xla_does_not_take() -> None:
    """The place is in its message."""
    reshard = "%1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<8x16xf32>"
    text = TEXT.replace("  return %0", f"  {reshard}\n  return %1")
    for view in ("roundtrip", "compiled"):
        with pytest.raises(shardlog.ShardlogError, match="op unknown mesh: @mesh") as error:
            shardlog.run(text, view=view)
        assert error.value.where == "<text>:5:8"


def test_platforms() -> None:
    traced = jax.jit(jnp.sin).trace(array((8, 16), "data"))
    for platform in ("tpu", "cuda"):
        with pytest.raises(
            shardlog.ShardlogError, match=f"lowered for {platform}, but its devices are cpu"
        ) as e:
            shardlog.run(traced.lower(lowering_platforms=(platform,)), view="compiled")
        assert f"pip install 'jax[{platform}" in e.value.hint


def test_an_abstract_mesh_is_compiled_for_cpu() -> None:
    mesh = AbstractMesh((4, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
    sharding = NamedSharding(mesh, P("data"))  # type: ignore[no-untyped-call]
    x = jax.ShapeDtypeStruct((8, 16), jnp.float32, sharding=sharding)  # type: ignore[no-untyped-call]
    lowered = jax.jit(lambda x: jnp.sin(x) ** 2).trace(x).lower(lowering_platforms=("cpu",))
    result = run(lowered, view="compiled")
    assert str(result.agreement()).startswith("XLA decided the same")
    assert result.result_shardings.mesh == sharding.mesh
    assert result.result_shardings.spec == P("data", None)  # type: ignore[no-untyped-call]


def test_a_loop_of_one_turn_uses_what_a_manual_computation_gives() -> None:
    """XLA puts an open constraint before such a loop, also for a value that is not an argument."""
    mesh = jax.make_mesh((2,), ("a",))
    spec: Any = P
    rows = NamedSharding(mesh, spec("a"))

    def step(x: jax.Array, w: jax.Array) -> jax.Array:
        y = jax.shard_map(jnp.sin, mesh=mesh, in_specs=spec("a"), out_specs=spec("a"))(x)
        return jax.lax.scan(lambda c, w: (c @ w + y, None), x, w)[0]

    arguments = jax.device_put(jnp.ones((8, 4)), rows), jnp.ones((1, 4, 4))
    text = shardlog.run(jax.jit(step).lower(*arguments), view="compiled").text()
    assert text.count("sdy.manual_computation") == 1
    assert text.count("stablehlo.while") == 1

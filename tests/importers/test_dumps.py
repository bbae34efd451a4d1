"""XLA's dumps, read as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import shardlog
from shardlog.importers.sources.dumps import FLAGS
from shardlog.program.mlir.modules import ops_in

from ..support.programs import lowered

pytestmark = pytest.mark.versions


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dump")
    for name in ("train step", "scan", "shard_map"):
        lowered(name, 3).compile(compiler_options={**FLAGS, "xla_dump_to": str(folder)})
    return folder


@pytest.fixture
def scan(dump: Path) -> Path:
    return next((dump / "shardy").glob("*scan"))


@pytest.mark.parametrize("stage", ["00.input_module", "01.before_propagation"])
def test_a_file(scan: Path, stage: str) -> None:
    agreement = shardlog.run(scan / f"{stage}.mlir").agreement()
    assert agreement is not None
    assert agreement.equal == agreement.ops > 20


def test_a_module_of_a_folder(dump: Path, scan: Path) -> None:
    with pytest.raises(shardlog.ShardlogError, match="the dump has 3 modules") as error:
        shardlog.run(dump)
    assert "take one with --module: module_" in error.value.hint
    for folder, name in ((dump, "jit__scan"), (dump / "shardy", scan.name), (scan, "")):
        result = shardlog.run(folder, dumped=name)
        assert "programs.py" in str(result.why("result#0"))  # the source, which only the HLO has
    with pytest.raises(shardlog.ShardlogError, match="there is no module jit_scam"):
        shardlog.run(dump, dumped="jit_scam")


def test_every_op_has_its_line(dump: Path) -> None:
    """Also where ops stand in another order in HLO."""
    result = shardlog.run(dump, dumped="jit__step")
    ops = [op for op in ops_in(result.module) if op.operation.name.startswith("stablehlo.dot")]
    assert len(ops) == 5
    assert all("programs.py" in str(op.location) for op in ops)


def test_hlo_that_is_not_understood(scan: Path, dump: Path, tmp_path: Path) -> None:
    """It is read in another process, and there are no lines."""
    shutil.copytree(scan, tmp_path / "shardy" / scan.name)
    (tmp_path / f"{scan.name}.0001.before_shardy-xla.txt").write_text("HloModule what, is={this\n")
    result = shardlog.run(tmp_path)
    assert "01.before_propagation.mlir:" in str(result.why("result#0"))


def test_without_hlo_there_are_lines_of_the_module(scan: Path, tmp_path: Path) -> None:
    shutil.copytree(scan, tmp_path / scan.name)
    result = shardlog.run(tmp_path / scan.name)
    assert "01.before_propagation.mlir:" in str(result.why("result#0"))


def test_what_xla_decided_otherwise_is_told(scan: Path, tmp_path: Path) -> None:
    folder = tmp_path / scan.name
    shutil.copytree(scan, folder)
    after = folder / "02.after_propagation.mlir"
    text = after.read_text()
    changed = text.replace('{"model"}', "{}")
    assert changed != text
    after.write_text(changed)
    agreement = shardlog.run(folder).agreement()
    assert agreement is not None
    assert agreement.equal < agreement.ops
    assert "XLA decided otherwise" in str(agreement)
    assert "XLA has #sdy.sharding" in str(agreement)


def test_no_dump(tmp_path: Path) -> None:
    with pytest.raises(shardlog.ShardlogError, match="no dump of Shardy's modules") as error:
        shardlog.run(tmp_path)
    assert "--xla_dump_hlo_pass_re=.*shard.*" in error.value.hint


BROKEN = """\
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\\22x\\22=2]>}"}} {
  func.func @main(%arg0: tensor<8xf32> {mhlo.frontend_attributes = {xla.sdy.sharding = "SHARDING"}})
      -> tensor<8xf32> {
    return %arg0 : tensor<8xf32>
  }
}
"""


@pytest.mark.parametrize(
    ("sharding", "message"),
    [
        ("nothing", "argument 0 of @main: error: xla.sdy.sharding is not understood"),
        ("#sdy.sharding<@mesh, [{\\22y\\22}]>", "XLA's output is not valid"),
        ("#sdy.mesh<[\\22x\\22=2]>", "argument 0 of @main: error: xla.sdy.sharding is not understood"),
    ],
)
def test_what_is_not_understood(sharding: str, message: str) -> None:
    with pytest.raises(shardlog.ShardlogError, match=message):
        shardlog.run(BROKEN.replace("SHARDING", sharding))
    good = BROKEN.replace("SHARDING", "#sdy.sharding<@mesh, [{\\22x\\22}]>")
    assert 'sdy.sharding<@mesh, [{"x"}]>' in shardlog.run(good).text()


XLA = """\
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\\22x\\22=2]>}"}} {
  func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    BODY
    return %r : tensor<8xf32>
  }
  func.func private @xla.sdy.manual_computation_body(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    return %arg0 : tensor<4xf32>
  }
}
"""
CALL = "stablehlo.custom_call @xla.sdy.{}(%arg0) {{mhlo.frontend_attributes = {{{}}}}}"
TO_SAME = " : (tensor<8xf32>) -> tensor<8xf32>"
MANY = "#sdy.sharding_per_value<[<@mesh, [{\\22x\\22}]>]>"
AXES = 'xla.sdy.manual_axes = "#sdy<manual_axes{\\22x\\22}>"'
MANUAL = f"""
    %0 = {CALL.format("GlobalToLocalShape", f'xla.sdy.in_shardings = "{MANY}", {AXES}')}
      : (tensor<8xf32>) -> tensor<4xf32>
    %1 = func.call @xla.sdy.manual_computation_body(%0) : (tensor<4xf32>) -> tensor<4xf32>
    %r = {CALL.format("LocalToGlobalShape", f'xla.sdy.out_shardings = "{MANY}"')}
      : (tensor<4xf32>) -> tensor<8xf32>
""".replace("LocalToGlobalShape(%arg0)", "LocalToGlobalShape(%1)")


def from_xla(body: str) -> str:
    return shardlog.run(XLA.replace("BODY", body)).text()


@pytest.mark.parametrize(("number", "direction"), [*enumerate(["NONE", "FORWARD", "BACKWARD"])])
def test_propagation_barriers(number: int, direction: str) -> None:
    """XLA writes their directions as numbers."""
    barrier = CALL.format("PropagationBarrier", f'xla.sdy.allowed_direction = "{number} : i32"')
    assert f"allowed_direction={direction}" in from_xla(f"%r = {barrier}{TO_SAME}")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            f"%r = {CALL.format('PropagationBarrier', '')}{TO_SAME}",
            "a barrier has no direction",
        ),
        (
            "%r = stablehlo.custom_call @xla.sdy.FuncResultSharding(%arg0, %arg0) : "
            "(tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>",
            "@xla.sdy.FuncResultSharding takes one value",
        ),
        # What is put in another's place is used twice.
        (f"{MANUAL}\n    %2 = stablehlo.tanh %1 : tensor<4xf32>", "is not between"),
        (f"{MANUAL}\n    %2 = stablehlo.tanh %0 : tensor<4xf32>", "is not between"),
        (MANUAL.replace("in_shardings", "out_shardings"), "XLA's output is not valid"),
    ],
)
def test_what_is_damaged(body: str, message: str) -> None:
    with pytest.raises(shardlog.ShardlogError, match=message):
        from_xla(body)
    assert "sdy.manual_computation" in from_xla(MANUAL)


def test_meshes_that_are_damaged() -> None:
    for meshes in ("#sdy.mesh<[\\22x\\22=2]>", "{mesh = 1}"):
        text = XLA.replace("BODY", MANUAL).replace("{mesh = #sdy.mesh<[\\22x\\22=2]>}", meshes)
        with pytest.raises(shardlog.ShardlogError, match=r"xla\.sdy\.meshes is not understood"):
            shardlog.run(text)

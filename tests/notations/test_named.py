"""XLA's shardings by named axes: strings that jaxlib prints since 0.11, and a module as XLA reads it."""

from __future__ import annotations

import re
from typing import Any

import pytest
import shardlog
from jaxlib import xla_client
from shardlog.notations.gspmd.hlo_sharding import parse
from shardlog.notations.gspmd.named import NamedSharding
from shardlog.program.meshes import Mesh, SubAxis
from shardlog.program.shardings import Dimension
from shardlog.program.shardy import installed

from ..support.compare import differences

XLA: Any = xla_client.HloSharding
MESH = Mesh("", (("a", 2), ("b", 4)))
A, B = SubAxis("a", 1, 2), SubAxis("b", 1, 4)
MAJOR, MINOR = SubAxis("b", 1, 2), SubAxis("b", 2, 2)


def over(*axes: SubAxis, closed: bool = True) -> Dimension:
    return Dimension(axes, closed)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{mesh['a'=2,'b'=4], [{'a'}, {}]}", NamedSharding(MESH, (over(A), over()))),
        ("{mesh['a'=2,'b'=4], [{'b':(1)2}, {'a', 'b':(2)2, ?}]}",
         NamedSharding(MESH, (over(MAJOR), over(A, MINOR, closed=False)))),
        ("{mesh['a'=2,'b'=4], [{?}], replicated={'a'}}", NamedSharding(MESH, (over(closed=False),), (A,))),
        ("{mesh['a'=2,'b'=4], [{'b'}], unreduced={'a'}}", NamedSharding(MESH, (over(B),), (), (A,))),
        ("{mesh['a'=2,'b'=4], [{}], unreduced=max{'a'}}",
         NamedSharding(MESH, (over(),), (), (A,), reduction="max")),
        ("{mesh['a'=2,'b'=4], [{}], manual={'b':(2)2}}", NamedSharding(MESH, (over(),), manual=(MINOR,))),
        ("{mesh['a'=2,'b'=4], replicated}", NamedSharding(MESH)),
        ("{mesh['a'=2,'b'=4], manual}", NamedSharding(MESH, manual=(A, B))),
        ("{mesh['a'=2,'b'=4], unreduced=min}", NamedSharding(MESH, (), (), (A, B), reduction="min")),
        ("{mesh[], replicated}", NamedSharding(Mesh("", ()))),
        ("{mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)), [{'a'}]}",
         NamedSharding(Mesh("", (("a", 2), ("b", 2)), (0, 2, 1, 3)), (over(A),))),
        ("{mesh['a'=2,'b'=2], device_ids=(0,3,1,2), [{'a'}]}",
         NamedSharding(Mesh("", (("a", 2), ("b", 2)), (0, 3, 1, 2)), (over(A),))),
        ("{single_device[device_id=3]}", NamedSharding(Mesh("single_device_3", (), (3,)))),
        ("{maximal_mesh[device_id=3]}", NamedSharding(Mesh("maximal_mesh_3", (), (3,)))),
        ("{mesh['a.b <c>'=2], [{'a.b <c>'}]}",
         NamedSharding(Mesh("", (("a.b <c>", 2),)), (over(SubAxis("a.b <c>", 1, 2)),))),
    ],
)  # fmt: skip
def test_strings(text: str, found: NamedSharding) -> None:
    assert parse(text) == found
    of_line = {"single_device": "0.12", "maximal_mesh": "0.11"}.get(text[1:].partition("[")[0])
    if installed() != "0.10" and of_line in (None, installed()):
        assert str(XLA.from_string(text)) == text


def test_a_tuple_and_what_is_left_out() -> None:
    text = "{{mesh[], replicated}, /*index=1*/{mesh['a\\'b'=2], [{'a\\'b'}], metadata={op_name=\"}\"}}}"
    mesh = Mesh("", (("a'b", 2),))
    assert parse(text) == (NamedSharding(Mesh("", ())), NamedSharding(mesh, (over(SubAxis("a'b", 1, 2)),)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{mesh[a=2], [{a}]}", "expected the name of an axis, in single quotes, found 'a'"),
        ("{mesh['data'=2], [{'dat'}]}", "the mesh has no axis 'dat'\n  hint: did you mean data?"),
        ("{mesh['a'=2,'a'=2], []}", "the mesh has two axes of one name"),
        ("{mesh['a'=0], []}", "a mesh of 0 devices"),
        ("{mesh['a'=4], [{'a':(3)2}]}", "the axis 'a' of size 4 has no part (3)2"),
        ("{mesh['a'=2], device_ids=(0,2), [{'a'}]}", "the devices are not the numbers from 0 to 1"),
        ("{mesh['a'=2], [{?, 'a'}]}", "'?' is the last entry of a dimension"),
        ("{mesh['a'=2], unknown}", "expected the axes of dimensions, replicated, unreduced or manual"),
        ("{mesh['a'=2], [{'a'}] shard_as 3}", "expected '}', found 'shard_as'"),
    ],
)
def test_what_is_no_sharding(text: str, message: str) -> None:
    with pytest.raises(shardlog.ShardlogError, match=re.escape(message)):
        parse(text)


# As jaxlib 0.12.0.1 dumps it, and what it is; the ops have shardings, which mean nothing.
DUMPED = """
module @jit_f {
  func.func private @xla.sdy.manual_computation_body.1(%arg0: tensor<1x8xf32>) -> tensor<1x8xf32> {
    %0 = stablehlo.negate %arg0 {mhlo.sharding = "{mesh['a'=2,'b'=4], manual}"} : tensor<1x8xf32>
    return %0 : tensor<1x8xf32>
  }
  func.func private @xla.sdy.manual_computation_body_0.2(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>)
      -> tensor<4x8xf32> {
    %0 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{mesh['a'=2,'b'=4], [{'b'}, {}]}"}
      : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%0)
      {mhlo.sharding = "{mesh['a'=2,'b'=4], [{}, {}], manual={'b'}}"} : (tensor<4x8xf32>) -> tensor<1x8xf32>
    %2 = call @xla.sdy.manual_computation_body.1(%1)
      {mhlo.sharding = "{mesh['a'=2,'b'=4], [{}, {}], manual={'b'}}"} : (tensor<1x8xf32>) -> tensor<1x8xf32>
    %3 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%2)
      {mhlo.sharding = "{mesh['a'=2,'b'=4], [{'b'}, {}]}"} : (tensor<1x8xf32>) -> tensor<4x8xf32>
    %4 = stablehlo.add %3, %y : tensor<4x8xf32>
    return %4 : tensor<4x8xf32>
  }
  func.func @main(%x: tensor<8x8xf32> {mhlo.sharding = "{mesh['a'=2,'b'=4], [{'b':(1)2}, {'a', ?}]}"},
                  %y: tensor<8x8xf32>)
      -> (tensor<8x8xf32> {mhlo.sharding = "{replicated}"},
          tensor<8x8xf32> {mhlo.sharding = "{mesh['a'=2,'b'=4], [{'a', ?}, {}], replicated={'b'}}"}) {
    %0 = stablehlo.custom_call @xla.sdy.ShardingGroup(%x) {has_side_effect = true,
      mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "0 : i64"}} : (tensor<8x8xf32>) -> tuple<>
    %1 = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{mesh['a'=2,'b'=4], [{'a'}, {?}]}"}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = stablehlo.custom_call @Sharding(%y) {mhlo.sharding = "{mesh['a'=2,'b'=4], [{'a', 'b'}, {}]}"}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%1, %2) {mhlo.sharding =
      "{{mesh['a'=2,'b'=4], [{}, {?}], manual={'a'}}, {mesh['a'=2,'b'=4], [{'b'}, {}], manual={'a'}}}"}
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tuple<tensor<4x8xf32>, tensor<4x8xf32>>
    %4 = stablehlo.get_tuple_element %3[0] {mhlo.sharding = "{mesh['a'=2,'b'=4], manual}"}
      : (tuple<tensor<4x8xf32>, tensor<4x8xf32>>) -> tensor<4x8xf32>
    %5 = stablehlo.get_tuple_element %3[1] : (tuple<tensor<4x8xf32>, tensor<4x8xf32>>) -> tensor<4x8xf32>
    %6 = call @xla.sdy.manual_computation_body_0.2(%4, %5)
      {mhlo.sharding = "{mesh['a'=2,'b'=4], [{?}, {'b'}], manual={'a'}}"}
      : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %7 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%6)
      {mhlo.sharding = "{mesh['a'=2,'b'=4], [{'a', ?}, {'b'}]}"} : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %8 = stablehlo.custom_call @Sharding(%7) {mhlo.sharding = "{single_device[device_id=1]}"}
      : (tensor<8x8xf32>) -> tensor<8x8xf32>
    return %8, %7 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
"""
SAME = """
module @jit_f {
  sdy.mesh @single_device_1 = <[], device_ids=[1]>
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b":(1)2}, {"a", ?}]>},
                  %y: tensor<8x8xf32>)
      -> (tensor<8x8xf32>,
          tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {}], replicated={"b"}>}) {
    sdy.sharding_group %x group_id=0 : tensor<8x8xf32>
    %0 = sdy.manual_computation(%x, %y) in_shardings=[<@mesh, [{"a"}, {?}]>, <@mesh, [{"a", "b"}, {}]>]
        out_shardings=[<@mesh, [{"a", ?}, {"b"}]>] manual_axes={"a"}
        (%u: tensor<4x8xf32>, %v: tensor<4x8xf32>) {
      %1 = sdy.manual_computation(%u) in_shardings=[<@mesh, [{"b"}, {}]>] out_shardings=[<@mesh, [{"b"}, {}]>]
          manual_axes={"b"} (%w: tensor<1x8xf32>) {
        %2 = stablehlo.negate %w : tensor<1x8xf32>
        sdy.return %2 : tensor<1x8xf32>
      } : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %3 = stablehlo.add %1, %v : tensor<4x8xf32>
      sdy.return %3 : tensor<4x8xf32>
    } : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = sdy.sharding_constraint %0 <@single_device_1, []> : tensor<8x8xf32>
    return %1, %0 : tensor<8x8xf32>, tensor<8x8xf32>
  }
}
"""


def test_a_module() -> None:
    assert differences(shardlog.run(DUMPED).text(), shardlog.run(SAME).text()) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("[{'b':(1)2}, {'a', ?}]", "[{'b':(1)2}]", "a sharding of 1 dimensions, and the tensor has rank 2"),
        ("[{'b':(1)2}, {'a', ?}]", "[{'b'}, {'b'}]", 'duplicate axis ref: "b"'),
        (
            "GlobalToLocalShape(%1, %2)",
            "GlobalToLocalShape(%1, %y)",
            "the operand of @xla.sdy.GlobalToLocalShape has no sharding",
        ),
        (
            "xla.sdy.LocalToGlobalShape(%6)",
            "SPMDShardToFullShape(%6)",
            "occurs only in programs that XLA has rewritten",
        ),
    ],
)
def test_a_module_that_is_wrong(old: str, new: str, message: str) -> None:
    with pytest.raises(shardlog.ShardlogError, match=re.escape(message)):
        shardlog.run(DUMPED.replace(old, new))


STRINGS = """
module attributes {mhlo.frontend_attributes = {xla.sdy.meshes = "{mesh = #sdy.mesh<[\\22a\\22=2]>}"}} {
  sdy.mesh @mesh = <["a"=2]>
  func.func @main(%x: tensor<8xf32>
      {mhlo.frontend_attributes = {xla.sdy.sharding = "#sdy.sharding<@mesh, [{\\22a\\22}]>"}})
      -> tensor<8xf32> {
    %0 = stablehlo.negate %x : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""


def test_a_mesh_that_collectives_name_too() -> None:
    """A round trip through HLO gives it twice since jaxlib 0.11."""
    assert shardlog.run(STRINGS).text().count("sdy.mesh @") == 1
    with pytest.raises(shardlog.ShardlogError, match="two meshes are called @mesh"):
        shardlog.run(STRINGS.replace('<["a"=2]>', '<["a"=4]>'))

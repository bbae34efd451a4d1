"""Sharding groups whose members are constants, or constrained: our module is Shardy's."""

from __future__ import annotations

import pytest
import shardlog

from ..support.compare import differences
from ..support.oracle import propagate

# The copy of the constant that is in the group is used by a copy alone.
CONSTANT = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4xf32> {
  %c = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"b"}]>]>}
      dense<0.0> : tensor<4xf32>
  %e = stablehlo.exponential %c : tensor<4xf32>
  sdy.sharding_group %c group_id = 0 : tensor<4xf32>
  sdy.sharding_group %x group_id = 0 : tensor<4xf32>
  %y = stablehlo.add %x, %e : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
# The constraint takes over all uses of %b, that by the group too: %b has no sharding.
CONSTRAINT = """
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %b = stablehlo.optimization_barrier %x : tensor<4xf32>
  sdy.sharding_group %b group_id = 0 : tensor<4xf32>
  %c = sdy.sharding_constraint %b <@mesh, [{}]> : tensor<4xf32>
  return %c : tensor<4xf32>
}
"""
# Open dimensions without axes are as good as no sharding to the others, whatever else it says.
REPLICATED = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.add %x, %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}], replicated={"b"}>]>}
      : tensor<4xf32>
  %1 = stablehlo.add %y, %y SHARDING : tensor<4xf32>
  sdy.sharding_group %0 group_id = 0 : tensor<4xf32>
  sdy.sharding_group %1 group_id = 0 : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
"""
CLOSED = REPLICATED.replace("SHARDING", "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>}")
# The members of group 0, and by %0 those of group 1, are in two functions; one of these is called twice.
FUNCTIONS = """
#a = #sdy.sharding<@mesh, [{"a"}, {?}]>
#b = #sdy.sharding<@mesh, [{"b"}, {?}]>
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #a}, %y: tensor<8x8xf32> {sdy.sharding = #b})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.negate %x : tensor<8x8xf32>
  sdy.sharding_group %0 group_id = 0 : tensor<8x8xf32>
  sdy.sharding_group %y group_id = 0 : tensor<8x8xf32>
  %2 = call @f(%0, %y) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %3 = call @f(%x, %x) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %2, %3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
func.func private @f(%x: tensor<8x8xf32>, %z: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"b", ?}]>]>}
      : tensor<8x8xf32>
  %1 = stablehlo.add %0, %z : tensor<8x8xf32>
  sdy.sharding_group %z group_id = 1 : tensor<8x8xf32>
  sdy.sharding_group %0 group_id = 1 : tensor<8x8xf32>
  sdy.sharding_group %0 group_id = 0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""
# What comes out of a manual computation has "m", and so has %t. Shardy takes it from %t when "b" comes out.
MANUAL = """
sdy.mesh @mesh = <["m"=2, "b"=2]>
func.func @main(%x: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b"}]>}) -> tensor<8x4xf32> {
  %q = sdy.manual_computation(%x) in_shardings=[<@mesh, [{?}, {?}]>] out_shardings=[<@mesh, [{"m", ?}, {?}]>]
      manual_axes={"m"} (%s: tensor<4x4xf32>) {
    %e = stablehlo.tanh %s : tensor<4x4xf32>
    sdy.return %e : tensor<4x4xf32>
  } : (tensor<4x4xf32>) -> tensor<8x4xf32>
  %t = stablehlo.custom_call @f() {has_side_effect = true} : () -> tensor<8x4xf32>
  sdy.sharding_group %q group_id = 0 : tensor<8x4xf32>
  sdy.sharding_group %t group_id = 0 : tensor<8x4xf32>
  return %q : tensor<8x4xf32>
}
"""
# The shardings of the members of one group.
OWN = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
sdy.mesh @reversed = <["a"=2, "b"=2], device_ids=[3, 2, 1, 0]>
sdy.mesh @device = <[], device_ids=[0]>
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %y: tensor<8x4xf32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.maximum %x, %x FIRST : tensor<8x4xf32>
  sdy.sharding_group %0 group_id = 0 : tensor<8x4xf32>
  %1 = stablehlo.exponential %y SECOND : tensor<8x4xf32>
  sdy.sharding_group %1 group_id = 0 : tensor<8x4xf32>
  %2 = stablehlo.add %1, %y : tensor<8x4xf32>
  return %0, %2 : tensor<8x4xf32>, tensor<8x4xf32>
}
"""
ALONE = ["@device, []", "@reversed, [{?}, {?}]", '@mesh, [{?}, {?}], replicated={"a"}']


@pytest.mark.filterwarnings("ignore:the members of sharding group")
@pytest.mark.parametrize(
    "text",
    [CONSTANT, CONSTRAINT, REPLICATED.replace("SHARDING", ""), CLOSED, FUNCTIONS],
    ids=["constant", "constraint", "replicated", "replicated and closed", "several functions"],
)
@pytest.mark.parametrize("closed", [True, False])
def test_members(text: str, closed: bool) -> None:
    got = shardlog.run(text, separate_groups=True, closed=closed).text()
    assert differences(got, propagate(text, closed=closed)) == []


@pytest.mark.parametrize("first", [None, *ALONE])
@pytest.mark.parametrize("second", [None, *ALONE, '@mesh, [{"b"}, {?}]'])
def test_an_annotation_without_axes_counts_for_its_member_alone(
    first: str | None, second: str | None
) -> None:
    """Until the group has a sharding: on one device, on a mesh of another order, or explicitly replicated."""
    one, two = (
        "" if said is None else f"{{sdy.sharding = #sdy.sharding_per_value<[<{said}>]>}}"
        for said in (first, second)
    )
    text = OWN.replace("FIRST", one).replace("SECOND", two)
    got = shardlog.run(text, separate_groups=True).text()
    assert differences(got, propagate(text)) == []


def test_members_stay_alike_where_one_leaves_a_manual_computation() -> None:
    wanted = '@mesh, [{"m"}, {"b"}]>'
    for text, parts in ((shardlog.run(MANUAL).text(), 3), (propagate(MANUAL), 2)):
        assert text.count(wanted) == parts  # the computation, what is returned, and with us %t


# What has "m" is in a group with a result of a computation that is manual on it. Shardy's members end up with
# different shardings.
TAKEN = """
sdy.mesh @mesh = <["m"=2, "b"=2]>
#m = #sdy.sharding<@mesh, [{?}, {"m", ?}]>
func.func @main(%x: tensor<4x4xf32>, %y: tensor<8x4xf32> {sdy.sharding = #m}) -> tensor<8x4xf32> {
  %q = sdy.manual_computation(%x) in_shardings=[<@mesh, [{?}, {?}]>] out_shardings=[<@mesh, [{?}, {?}]>]
      manual_axes={"m"} (%s: tensor<4x4xf32>) {
    %c = stablehlo.concatenate %s, %s, dim = 0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    sdy.return %c : tensor<8x4xf32>
  } : (tensor<4x4xf32>) -> tensor<8x4xf32>
  %t = stablehlo.negate %y : tensor<8x4xf32>
  sdy.sharding_group %q group_id = 0 : tensor<8x4xf32>
  sdy.sharding_group %t group_id = 0 : tensor<8x4xf32>
  return %t : tensor<8x4xf32>
}
"""


def test_a_manual_axis_for_what_leaves_its_computation() -> None:
    with pytest.raises(shardlog.ShardlogError, match='gets its manual axis "m"') as caught:
        shardlog.run(TAKEN).text()
    assert caught.value.where == "<text>:5:8"

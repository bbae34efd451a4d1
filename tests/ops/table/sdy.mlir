// Shardy's ops
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x4xf32>) {
  %constraint = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %reshard = sdy.reshard %a <@mesh, [{"x"}, {}]> : tensor<8x4xf32>  // no rule: its result has the sharding that it names
  %gather = sdy.all_gather [{"x"}, {}] %reshard out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>  // no rule: its result has the sharding that it names
  %slice = sdy.all_slice [{"x"}, {}] %gather out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x4xf32>  // no rule: its result has the sharding that it names
  %exchange = sdy.all_to_all [{"x"}: 0->1] %slice out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x4xf32>  // no rule: its result has the sharding that it names
  %permute = sdy.collective_permute %slice out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x4xf32>  // no rule: its result has the sharding that it names
  %partial = sdy.replicated_to_unreduced {"x"} %gather out_sharding=<@mesh, [{}, {}], unreduced={"x"}> : tensor<8x4xf32>  // no rule: its result has the sharding that it names
  %unsharded = sdy.sharded_to_unreduced [{"x"}, {}] %slice out_sharding=<@mesh, [{}, {}], unreduced={"x"}> : tensor<8x4xf32>  // no rule: its result has the sharding that it names
  %reduce = sdy.all_reduce {"x"} %partial out_sharding=<@mesh, [{}, {}]> : tensor<8x4xf32>  // no rule: its result has the sharding that it names
  %scatter = sdy.reduce_scatter [{"x"}, {}] %partial out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x4xf32>  // no rule: its result has the sharding that it names
  %barrier = sdy.propagation_barrier %a allowed_direction=FORWARD : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %constant = sdy.constant dense<1.0> : tensor<8x4xf32>  // no rule: a constant is sharded as its use asks
  sdy.sharding_group %a group_id=0 : tensor<8x4xf32>  // no rule: its members share one sharding
  %manual = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x4xf32>) {  // no rule: values pass along data-flow edges
    sdy.return %b : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %named = sdy.named_computation<"g">(%a) (%b: tensor<8x4xf32>) {  // no rule: values pass along data-flow edges
    sdy.return %b : tensor<8x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %call = func.call @g(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: its values are those of the called function
  %edge = sdy.data_flow_edge %named : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  return
}
func.func @g(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  return %a : tensor<8x4xf32>
}

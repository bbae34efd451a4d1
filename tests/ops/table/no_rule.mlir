// Ops without a rule
func.func @f(%a: tensor<8x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<i1>, %t: !stablehlo.token, %l: tensor<2xi64>, %v: tensor<4xf32>) {
  %constant = stablehlo.constant dense<1.0> : tensor<8x4xf32>  // no rule: a constant is sharded as its use asks
  %iota = stablehlo.iota dim = 0 : tensor<8x4xf32>  // no rule: a constant is sharded as its use asks
  %dynamic_iota = stablehlo.dynamic_iota %i, dim = 0 : (tensor<2xi32>) -> tensor<8x4xf32>  // no rule: shapes must be static
  %partition_id = stablehlo.partition_id : tensor<ui32>  // no rule: a scalar
  %replica_id = stablehlo.replica_id : tensor<ui32>  // no rule: a scalar
  %create_token = stablehlo.create_token : !stablehlo.token  // no rule: tokens are not sharded
  %after_all = stablehlo.after_all %t, %create_token : !stablehlo.token  // no rule: tokens are not sharded
  %infeed:2 = "stablehlo.infeed"(%t) {infeed_config = ""} : (!stablehlo.token) -> (tensor<8x4xf32>, !stablehlo.token)  // no rule: its data comes from outside the program
  %outfeed = "stablehlo.outfeed"(%a, %t) {outfeed_config = ""} : (tensor<8x4xf32>, !stablehlo.token) -> !stablehlo.token  // no rule: its data leaves the program
  %send = "stablehlo.send"(%a, %t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>, is_host_transfer = true} : (tensor<8x4xf32>, !stablehlo.token) -> !stablehlo.token  // no rule: its data leaves the program
  %recv:2 = "stablehlo.recv"(%t) {channel_handle = #stablehlo.channel_handle<handle = 1, type = 3>, is_host_transfer = true} : (!stablehlo.token) -> (tensor<8x4xf32>, !stablehlo.token)  // no rule: its data comes from outside the program
  %optimization_barrier:2 = stablehlo.optimization_barrier %a, %t : tensor<8x4xf32>, !stablehlo.token  // no rule: values pass along data-flow edges
  %broadcast = stablehlo.broadcast %a, sizes = [2] : (tensor<8x4xf32>) -> tensor<2x8x4xf32>  // no rule: to be written as broadcast_in_dim
  %dynamic_broadcast_in_dim = stablehlo.dynamic_broadcast_in_dim %v, %i, dims = [1] : (tensor<4xf32>, tensor<2xi32>) -> tensor<8x4xf32>  // no rule: shapes must be static
  %dynamic_reshape = stablehlo.dynamic_reshape %a, %i : (tensor<8x4xf32>, tensor<2xi32>) -> tensor<4x8xf32>  // no rule: shapes must be static
  %real_dynamic_slice = stablehlo.real_dynamic_slice %a, %i, %i, %i : (tensor<8x4xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<8x4xf32>  // no rule: shapes must be static
  %dynamic_pad = stablehlo.dynamic_pad %a, %s, %i, %i, %i : (tensor<8x4xf32>, tensor<f32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<8x4xf32>  // no rule: shapes must be static
  %dynamic_gather = "stablehlo.dynamic_gather"(%a, %i, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>} : (tensor<8x4xf32>, tensor<2xi32>, tensor<2xi32>) -> tensor<2x4xf32>  // no rule: shapes must be static
  %get_dimension_size = stablehlo.get_dimension_size %a, dim = 0 : (tensor<8x4xf32>) -> tensor<i32>  // no rule: a scalar, and shapes must be static
  %set_dimension_size = stablehlo.set_dimension_size %a, %j, dim = 0 : (tensor<8x4xf32>, tensor<i32>) -> tensor<?x4xf32, #stablehlo.bounds<8, ?>>  // no rule: shapes must be static
  %rng = stablehlo.rng %s, %s, %l, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<8x4xf32>  // no rule: to be written as rng_bit_generator
  %einsum = stablehlo.einsum %a, %a, config = "ab,ac->bc" : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>  // no rule: to be written as dot_general
  %unary_einsum = stablehlo.unary_einsum %a, config = "ab->b" : (tensor<8x4xf32>) -> tensor<4xf32>  // no rule: to be written as reduce and transpose
  %torch_index_select = "stablehlo.torch_index_select"(%a, %i) {dim = 0 : i64, batch_dims = 0 : i64} : (tensor<8x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>  // no rule: to be written as gather
  %map = "stablehlo.map"(%a, %a) ({  // no rule: to be written as elementwise ops
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {dimensions = array<i64: 0, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %training:3 = "stablehlo.batch_norm_training"(%a, %v, %v) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)  // no rule: to be expanded into simpler ops
  %grad:3 = "stablehlo.batch_norm_grad"(%a, %v, %v, %v, %a) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)  // no rule: to be expanded into simpler ops
  %if = "stablehlo.if"(%p) ({  // no rule: to be written as case
    stablehlo.return %a : tensor<8x4xf32>
  }, {
    stablehlo.return %constant : tensor<8x4xf32>
  }) : (tensor<i1>) -> tensor<8x4xf32>
  %case:2 = "stablehlo.case"(%j) ({  // no rule: values pass along data-flow edges
    stablehlo.return %a, %t : tensor<8x4xf32>, !stablehlo.token
  }, {
    stablehlo.return %constant, %t : tensor<8x4xf32>, !stablehlo.token
  }) : (tensor<i32>) -> (tensor<8x4xf32>, !stablehlo.token)
  %while:2 = stablehlo.while(%x = %a, %n = %j) : tensor<8x4xf32>, tensor<i32>  // no rule: values pass along data-flow edges
    cond {
      %c = stablehlo.compare LT, %n, %j : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    } do {
      %y = stablehlo.add %x, %x : tensor<8x4xf32>
      stablehlo.return %y, %n : tensor<8x4xf32>, tensor<i32>
    }
  return
}

// Collectives
func.func @f(%a: tensor<8x4xf32>, %b: tensor<2xf32>) {
  %all_reduce = "stablehlo.all_reduce"(%a) ({  // ([i, j])->([i, j]) {i=8, j=4}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %all_gather = "stablehlo.all_gather"(%a) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x4xf32>) -> tensor<8x8xf32>  // ([i, j])->([i, k]) {i=8, j=4, k=8} need_replication={j, k}
  %all_gather_two:2 = "stablehlo.all_gather"(%a, %a) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>)  // ([j, i], [j, i])->([k, i], [k, i]) {i=4, j=8, k=16} need_replication={j, k}
  %all_to_all = "stablehlo.all_to_all"(%a) {split_dimension = 1 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x4xf32>) -> tensor<16x2xf32>  // ([k, i])->([l, j]) {i=4, j=2, k=8, l=16} need_replication={i, j, k, l}
  %all_to_all_same = "stablehlo.all_to_all"(%a) {split_dimension = 1 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, k]) {i=8, j=4, k=4} need_replication={j, k}
  %reduce_scatter = "stablehlo.reduce_scatter"(%a) ({  // ([j, i])->([k, i]) {i=4, j=8, k=4} need_replication={j, k}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %broadcast = "stablehlo.collective_broadcast"(%a) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %permute = "stablehlo.collective_permute"(%a) {source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %sum = "stablehlo.cross-replica-sum"(%a) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  return
}

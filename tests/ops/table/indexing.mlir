// dynamic_slice and dynamic_update_slice
func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x1xf32>, %c: tensor<2x1xf32>, %i: tensor<i32>) {
  %slice = stablehlo.dynamic_slice %a, %i, %i, sizes = [8, 1] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x1xf32>  // ([i, j], [], [])->([i, j]) {i=8, j=4} need_replication={j} blocked_propagation={j}
  %whole = stablehlo.dynamic_slice %a, %i, %i, sizes = [8, 4] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>  // ([i, j], [], [])->([i, j]) {i=8, j=4}
  %update = stablehlo.dynamic_update_slice %a, %b, %i, %i : (tensor<8x4xf32>, tensor<8x1xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>  // ([i, j], [i, k], [], [])->([i, j]) {i=8, j=4, k=1} need_replication={k}  // 0.11: ([i, j], [i, k], [], [])->([i, j]) {i=8, j=4, k=1} permutation={j, k}
  %small = stablehlo.dynamic_update_slice %a, %c, %i, %i : (tensor<8x4xf32>, tensor<2x1xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>  // ([i, k], [j, l], [], [])->([i, k]) {i=8, j=2, k=4, l=1} need_replication={j, l}  // 0.11: ([i, k], [j, l], [], [])->([i, k]) {i=8, j=2, k=4, l=1} permutation={i, j, k, l}
  %z = stablehlo.constant dense<0> : tensor<i32>  // no rule: a constant is sharded as its use asks
  %half_fixed = stablehlo.dynamic_update_slice %a, %b, %i, %z : (tensor<8x4xf32>, tensor<8x1xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>  // ([i, j], [i, k], [], [])->([i, j]) {i=8, j=4, k=1} need_replication={k}  // 0.11: ([i, j], [i, k], [], [])->([i, j]) {i=8, j=4, k=1} permutation={j, k}
  %fixed = stablehlo.dynamic_update_slice %a, %b, %z, %z : (tensor<8x4xf32>, tensor<8x1xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>  // ([i, j], [i, k], [], [])->([i, j]) {i=8, j=4, k=1}  // 0.11: ([i, j], [i, k], [], [])->([i, j]) {i=8, j=4, k=1} permutation={j, k}
  return
}

// -----
// gather
func.func @f(%a: tensor<16x8x4xf32>, %i: tensor<5x2xi32>, %j: tensor<3x5xi32>, %o: tensor<1x8xf32>, %b: tensor<6x16x8xf32>, %k: tensor<6x5x1xi32>) {
  %rows = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1, 4>, indices_are_sorted = false} : (tensor<16x8x4xf32>, tensor<5x2xi32>) -> tensor<5x4xf32>  // ([k, l, j], [i, m])->([i, j]) {i=5, j=4, k=16, l=8, m=2} reduction={k, l} need_replication={m}
  %embedding = "stablehlo.gather"(%a, %j) {dimension_numbers = #stablehlo.gather<offset_dims = [2, 3], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 8, 4>, indices_are_sorted = false} : (tensor<16x8x4xf32>, tensor<3x5xi32>) -> tensor<3x5x8x4xf32>  // ([m, k, l], [i, j])->([i, j, k, l]) {i=3, j=5, k=8, l=4, m=16} reduction={m}
  %parts = "stablehlo.gather"(%a, %i) {dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], collapsed_slice_dims = [1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 3, 1, 1>, indices_are_sorted = false} : (tensor<16x8x4xf32>, tensor<5x2xi32>) -> tensor<5x3x1xf32>  // ([j, m, k], [i, n])->([i, j, l]) {i=5, j=16, k=4, l=1, m=8, n=2} reduction={k, m} need_replication={j, l, n} blocked_propagation={j}
  %vector_first = "stablehlo.gather"(%a, %j) {dimension_numbers = #stablehlo.gather<offset_dims = [0, 1, 2], collapsed_slice_dims = [], start_index_map = [2, 0, 1], index_vector_dim = 0>, slice_sizes = array<i64: 16, 8, 1>, indices_are_sorted = false} : (tensor<16x8x4xf32>, tensor<3x5xi32>) -> tensor<16x8x1x5xf32>  // ([i, j, k], [n, m])->([i, j, l, m]) {i=16, j=8, k=4, l=1, m=5, n=3} reduction={k} need_replication={l, n}
  %one = "stablehlo.gather"(%o, %k) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 8>, indices_are_sorted = false} : (tensor<1x8xf32>, tensor<6x5x1xi32>) -> tensor<6x5x8xf32>  // ([l, k], [i, j, m])->([i, j, k]) {i=6, j=5, k=8, l=1, m=1} need_replication={l, m}
  %batch = "stablehlo.gather"(%b, %k) {dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1, 8>, indices_are_sorted = false} : (tensor<6x16x8xf32>, tensor<6x5x1xi32>) -> tensor<6x5x8xf32>  // ([i, l, k], [i, j, m])->([i, j, k]) {i=6, j=5, k=8, l=16, m=1} reduction={l} need_replication={m}
  return
}

// -----
// scatter: of sums, which commute, and of overwrites, which do not
func.func @f(%a: tensor<16x8xf32>, %i: tensor<5xi32>, %u: tensor<5x8xf32>, %w: tensor<5x3xf32>, %b: tensor<6x16x8xf32>, %k: tensor<6x5x1xi32>, %v: tensor<6x5x8xf32>, %p: tensor<16xi1>, %q: tensor<5xi1>, %m: tensor<16xi32>, %n: tensor<5xi32>) {
  %add = "stablehlo.scatter"(%a, %i, %u) ({  // ([k, j], [i], [i, j])->([k, j]) {i=5, j=8, k=16} reduction={i}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x8xf32>, tensor<5xi32>, tensor<5x8xf32>) -> tensor<16x8xf32>
  %overwrite = "stablehlo.scatter"(%a, %i, %u) ({  // ([k, j], [i], [i, j])->([k, j]) {i=5, j=8, k=16} need_replication={i}
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x8xf32>, tensor<5xi32>, tensor<5x8xf32>) -> tensor<16x8xf32>
  %partial = "stablehlo.scatter"(%a, %i, %w) ({  // ([l, j], [i], [i, k])->([l, j]) {i=5, j=8, k=3, l=16} reduction={i} need_replication={j, k}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.multiply %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x8xf32>, tensor<5xi32>, tensor<5x3xf32>) -> tensor<16x8xf32>
  %same:2 = "stablehlo.scatter"(%a, %a, %i, %u, %u) ({  // ([k, j], [k, j], [i], [i, j], [i, j])->([k, j], [k, j]) {i=5, j=8, k=16} reduction={i}
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>, %y0: tensor<f32>, %y1: tensor<f32>):
    %z0 = stablehlo.maximum %x0, %y0 : tensor<f32>
    %z1 = stablehlo.maximum %y1, %x1 : tensor<f32>
    stablehlo.return %z0, %z1 : tensor<f32>, tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<5xi32>, tensor<5x8xf32>, tensor<5x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>)
  %mixed:2 = "stablehlo.scatter"(%a, %a, %i, %u, %u) ({  // ([k, j], [k, j], [i], [i, j], [i, j])->([k, j], [k, j]) {i=5, j=8, k=16} need_replication={i}
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>, %y0: tensor<f32>, %y1: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    %z1 = stablehlo.maximum %y1, %x1 : tensor<f32>
    stablehlo.return %z0, %z1 : tensor<f32>, tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<5xi32>, tensor<5x8xf32>, tensor<5x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>)
  %crossed:2 = "stablehlo.scatter"(%a, %a, %i, %u, %u) ({  // ([k, j], [k, j], [i], [i, j], [i, j])->([k, j], [k, j]) {i=5, j=8, k=16} need_replication={i}
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>, %y0: tensor<f32>, %y1: tensor<f32>):
    %z0 = stablehlo.add %x0, %y1 : tensor<f32>
    %z1 = stablehlo.add %x1, %y0 : tensor<f32>
    stablehlo.return %z0, %z1 : tensor<f32>, tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<5xi32>, tensor<5x8xf32>, tensor<5x8xf32>) -> (tensor<16x8xf32>, tensor<16x8xf32>)
  %doubled = "stablehlo.scatter"(%a, %i, %u) ({  // ([k, j], [i], [i, j])->([k, j]) {i=5, j=8, k=16} need_replication={i}
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %y, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16x8xf32>, tensor<5xi32>, tensor<5x8xf32>) -> tensor<16x8xf32>
  %batch = "stablehlo.scatter"(%b, %k, %v) ({  // ([i, l, k], [i, j, m], [i, j, k])->([i, l, k]) {i=6, j=5, k=8, l=16, m=1} need_replication={j, m}
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 2>, indices_are_sorted = false, unique_indices = false} : (tensor<6x16x8xf32>, tensor<6x5x1xi32>, tensor<6x5x8xf32>) -> tensor<6x16x8xf32>
  %predicates = "stablehlo.scatter"(%p, %i, %q) ({  // ([j], [i], [i])->([j]) {i=5, j=16} reduction={i}
  ^bb0(%x0: tensor<i1>, %y0: tensor<i1>):
    %z0 = stablehlo.or %x0, %y0 : tensor<i1>
    stablehlo.return %z0 : tensor<i1>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16xi1>, tensor<5xi32>, tensor<5xi1>) -> tensor<16xi1>
  %bits = "stablehlo.scatter"(%m, %i, %n) ({  // ([j], [i], [i])->([j]) {i=5, j=16} need_replication={i}
  ^bb0(%x0: tensor<i32>, %y0: tensor<i32>):
    %z0 = stablehlo.or %x0, %y0 : tensor<i32>
    stablehlo.return %z0 : tensor<i32>
  }) {scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false} : (tensor<16xi32>, tensor<5xi32>, tensor<5xi32>) -> tensor<16xi32>
  return
}

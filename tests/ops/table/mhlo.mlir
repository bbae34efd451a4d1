// mhlo: what XLA writes in its own dialect
func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4x2xf32>, %r: tensor<3x4x7xf32>, %g: tensor<3xi64>, %c: tensor<8x2xf32>) {
  %copy = mhlo.copy %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %erf = mhlo.erf %a : tensor<8x4xf32>  // no rule: neither Shardy nor XLA has one  // 0.12: ([i, j])->([i, j]) {i=8, j=4}
  %topk:2 = mhlo.topk(%a, k = 2) : tensor<8x4xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)  // ([i, j])->([i, j], [i, j]) {i=8, j=4} need_replication={j} blocked_propagation={j}
  %all:2 = mhlo.topk(%a, k = 4) : tensor<8x4xf32> -> (tensor<8x4xf32>, tensor<8x4xi32>)  // ([i, j])->([i, j], [i, j]) {i=8, j=4}
  %ragged = "mhlo.ragged_dot"(%a, %r, %g) {ragged_dot_dimension_numbers = #mhlo.ragged_dot<dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<8x4xf32>, tensor<3x4x7xf32>, tensor<3xi64>) -> tensor<8x7xf32>  // ([i, k], [l, k, j], [l])->([i, j]) {i=8, j=7, k=4, l=3} reduction={k} need_replication={i, l}
  %scan:2 = "mhlo.scan"(%b, %c) <{dimension = 1 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({  // ([i, j, k], [i, k])->([i, j, k], [i, k]) {i=8, j=4, k=2} need_replication={j}
  ^bb0(%i: tensor<8x2xf32>, %k: tensor<8x2xf32>):
    "mhlo.return"(%i, %k) : (tensor<8x2xf32>, tensor<8x2xf32>) -> ()
  }) : (tensor<8x4x2xf32>, tensor<8x2xf32>) -> (tensor<8x4x2xf32>, tensor<8x2xf32>)
  return
}

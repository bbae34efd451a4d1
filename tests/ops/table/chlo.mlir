// CHLO
func.func @f(%a: tensor<8x4xf32>, %i: tensor<8x4xi32>, %m: tensor<11x5xf32>, %r: tensor<3x5x7xf32>, %g: tensor<3xi64>, %v: tensor<4xf32>, %one: tensor<8x1xf32>, %x: tensor<f32>, %rows: tensor<8xf32>) {
  %acos = chlo.acos %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %acosh = chlo.acosh %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %asin = chlo.asin %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %asinh = chlo.asinh %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %atan = chlo.atan %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %atanh = chlo.atanh %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %bessel_i1e = chlo.bessel_i1e %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %conj = chlo.conj %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %cosh = chlo.cosh %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %digamma = chlo.digamma %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %erf = chlo.erf %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: XLA makes it mhlo.erf, which has none  // 0.12: ([i, j])->([i, j]) {i=8, j=4}
  %erf_inv = chlo.erf_inv %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %erfc = chlo.erfc %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %lgamma = chlo.lgamma %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %sinh = chlo.sinh %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %square = chlo.square %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %tan = chlo.tan %a : tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %is_inf = chlo.is_inf %a : tensor<8x4xf32> -> tensor<8x4xi1>  // ([i, j])->([i, j]) {i=8, j=4}
  %is_neg_inf = chlo.is_neg_inf %a : tensor<8x4xf32> -> tensor<8x4xi1>  // ([i, j])->([i, j]) {i=8, j=4}
  %is_pos_inf = chlo.is_pos_inf %a : tensor<8x4xf32> -> tensor<8x4xi1>  // ([i, j])->([i, j]) {i=8, j=4}
  %badd = chlo.broadcast_add %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bvector = chlo.broadcast_add %a, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>  // ([i, j], [j])->([i, j]) {i=8, j=4}
  %bcolumn = chlo.broadcast_add %v, %one : (tensor<4xf32>, tensor<8x1xf32>) -> tensor<8x4xf32>  // ([j], [i, k])->([i, j]) {i=8, j=4, k=1}
  %bscalar = chlo.broadcast_add %x, %a : (tensor<f32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([], [i, j])->([i, j]) {i=8, j=4}
  %brow = chlo.broadcast_add %a, %rows {broadcast_dimensions = array<i64: 0>} : (tensor<8x4xf32>, tensor<8xf32>) -> tensor<8x4xf32>  // ([i, j], [i])->([i, j]) {i=8, j=4}
  %batan2 = chlo.broadcast_atan2 %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bdivide = chlo.broadcast_divide %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bmaximum = chlo.broadcast_maximum %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bminimum = chlo.broadcast_minimum %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bmultiply = chlo.broadcast_multiply %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bnext_after = chlo.broadcast_next_after %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bpolygamma = chlo.broadcast_polygamma %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bpower = chlo.broadcast_power %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bremainder = chlo.broadcast_remainder %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bsubtract = chlo.broadcast_subtract %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bzeta = chlo.broadcast_zeta %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %band = chlo.broadcast_and %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bor = chlo.broadcast_or %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bxor = chlo.broadcast_xor %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bshift_left = chlo.broadcast_shift_left %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bshift_right_arithmetic = chlo.broadcast_shift_right_arithmetic %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %bshift_right_logical = chlo.broadcast_shift_right_logical %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %next_after = chlo.next_after %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %polygamma = chlo.polygamma %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %zeta = chlo.zeta %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %complex = chlo.broadcast_complex %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xcomplex<f32>>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %kernel = chlo._asin_acos_kernel %complex : tensor<8x4xcomplex<f32>> -> tensor<8x4xcomplex<f32>>  // ([i, j])->([i, j]) {i=8, j=4}
  %compare = chlo.broadcast_compare %a, %a {comparison_direction = #chlo<comparison_direction LT>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %select = chlo.broadcast_select %compare, %a, %a : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  %constant = chlo.constant dense<1.0> : tensor<8x4xf32>  // no rule: a constant is sharded as its use asks
  %constant_like = "chlo.constant_like"(%a) {value = 1.0 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: a constant is sharded as its use asks
  %mulhi = chlo.mulhi %i, %i : tensor<8x4xi32>, tensor<8x4xi32> -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %topk:2 = chlo.top_k(%a, k = 2) : tensor<8x4xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)  // ([i, j])->([i, j], [i, j]) {i=8, j=4} need_replication={j} blocked_propagation={j}
  return
}
// -----
// ragged_dot: what XLA gives mhlo.ragged_dot
func.func @f(%a0: tensor<16x8xf32>, %b0: tensor<4x8x32xf32>, %g0: tensor<4xi32>, %a1: tensor<16x12x8xf32>, %b1: tensor<4x12x8x32xf32>, %g1: tensor<4xi32>, %a2: tensor<16x8xf32>, %b2: tensor<8x4x32xf32>, %g2: tensor<4xi32>, %a3: tensor<16x12x8xf32>, %b3: tensor<4x16x8x32xf32>, %g3: tensor<16x4xi32>, %a4: tensor<16x12x8xf32>, %b4: tensor<4x8x32xf32>, %g4: tensor<16x4xi32>, %a5: tensor<16x8xf32>, %b5: tensor<16x32xf32>, %g5: tensor<4xi32>, %a6: tensor<5x16x8xf32>, %b6: tensor<5x16x32xf32>, %g6: tensor<5x4xi32>, %a7: tensor<16x6x8xf32>, %b7: tensor<16x6x32xf32>, %g7: tensor<16x4xi32>, %a8: tensor<16x6x8xf32>, %b8: tensor<16x6x32xf32>, %g8: tensor<4xi32>, %a9: tensor<16x12x8xf32>, %b9: tensor<16x8x32xf32>, %g9: tensor<4xi32>, %a10: tensor<5x16x12x8xf32>, %b10: tensor<5x16x8x32xf32>, %g10: tensor<5x4xi32>) {
  %0 = "chlo.ragged_dot"(%a0, %b0, %g0) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<16x8xf32>, tensor<4x8x32xf32>, tensor<4xi32>) -> tensor<16x32xf32>  // ([i, k], [l, k, j], [l])->([i, j]) {i=16, j=32, k=8, l=4} reduction={k} need_replication={i, l}
  %1 = "chlo.ragged_dot"(%a1, %b1, %g1) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [2, 1], rhs_contracting_dimensions = [2, 1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<16x12x8xf32>, tensor<4x12x8x32xf32>, tensor<4xi32>) -> tensor<16x32xf32>  // ([i, l, k], [m, l, k, j], [m])->([i, j]) {i=16, j=32, k=8, l=12, m=4} reduction={k, l} need_replication={i, m}
  %2 = "chlo.ragged_dot"(%a2, %b2, %g2) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0], rhs_group_dimensions = [1]>} : (tensor<16x8xf32>, tensor<8x4x32xf32>, tensor<4xi32>) -> tensor<16x32xf32>  // ([i, k], [k, l, j], [l])->([i, j]) {i=16, j=32, k=8, l=4} reduction={k} need_replication={i, l}
  %3 = "chlo.ragged_dot"(%a3, %b3, %g3) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]>} : (tensor<16x12x8xf32>, tensor<4x16x8x32xf32>, tensor<16x4xi32>) -> tensor<16x12x32xf32>  // ([i, j, l], [m, i, l, k], [i, m])->([i, j, k]) {i=16, j=12, k=32, l=8, m=4} reduction={l} need_replication={j, m}
  %4 = "chlo.ragged_dot"(%a4, %b4, %g4) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]>} : (tensor<16x12x8xf32>, tensor<4x8x32xf32>, tensor<16x4xi32>) -> tensor<16x12x32xf32>  // ([i, j, l], [m, l, k], [i, m])->([i, j, k]) {i=16, j=12, k=32, l=8, m=4} reduction={l} need_replication={j, m}
  %5 = "chlo.ragged_dot"(%a5, %b5, %g5) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0], rhs_group_dimensions = []>} : (tensor<16x8xf32>, tensor<16x32xf32>, tensor<4xi32>) -> tensor<4x8x32xf32>  // ([k, i], [k, j], [l])->([l, i, j]) {i=8, j=32, k=16, l=4} need_replication={k, l}
  %6 = "chlo.ragged_dot"(%a6, %b6, %g6) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [1], rhs_group_dimensions = []>} : (tensor<5x16x8xf32>, tensor<5x16x32xf32>, tensor<5x4xi32>) -> tensor<4x5x8x32xf32>  // ([i, l, j], [i, l, k], [i, m])->([m, i, j, k]) {i=5, j=8, k=32, l=16, m=4} need_replication={l, m}
  %7 = "chlo.ragged_dot"(%a7, %b7, %g7) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0,1], rhs_contracting_dimensions = [0,1], lhs_ragged_dimensions = [1], rhs_group_dimensions = []>} : (tensor<16x6x8xf32>, tensor<16x6x32xf32>, tensor<16x4xi32>) -> tensor<4x8x32xf32>  // ([k, l, i], [k, l, j], [k, m])->([m, i, j]) {i=8, j=32, k=16, l=6, m=4} reduction={k} need_replication={l, m}
  %8 = "chlo.ragged_dot"(%a8, %b8, %g8) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0,1], rhs_contracting_dimensions = [0,1], lhs_ragged_dimensions = [0], rhs_group_dimensions = []>} : (tensor<16x6x8xf32>, tensor<16x6x32xf32>, tensor<4xi32>) -> tensor<4x8x32xf32>  // ([k, l, i], [k, l, j], [m])->([m, i, j]) {i=8, j=32, k=16, l=6, m=4} reduction={l} need_replication={k, m}
  %9 = "chlo.ragged_dot"(%a9, %b9, %g9) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = []>} : (tensor<16x12x8xf32>, tensor<16x8x32xf32>, tensor<4xi32>) -> tensor<16x12x32xf32>  // ([i, j, l], [i, l, k], [m])->([i, j, k]) {i=16, j=12, k=32, l=8, m=1} reduction={l}
  %10 = "chlo.ragged_dot"(%a10, %b10, %g10) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0,1], rhs_batching_dimensions = [0,1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = []>} : (tensor<5x16x12x8xf32>, tensor<5x16x8x32xf32>, tensor<5x4xi32>) -> tensor<5x16x12x32xf32>  // ([i, j, k, m], [i, j, m, l], [n, o])->([i, j, k, l]) {i=5, j=16, k=12, l=32, m=8, n=1, o=1} reduction={m}
  return
}
// -----
// scan: what XLA gives mhlo.scan
func.func @f(%x: tensor<8x64x4xf32>, %c: tensor<8x4xf32>) {
  %sum:2 = "chlo.scan"(%x, %c) <{dimension = 1 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({  // ([i, j, k], [i, k])->([i, j, k], [i, k]) {i=8, j=64, k=4} need_replication={j}
  ^bb0(%i: tensor<8x4xf32>, %k: tensor<8x4xf32>):
    %s = stablehlo.add %i, %k : tensor<8x4xf32>
    stablehlo.return %s, %s : tensor<8x4xf32>, tensor<8x4xf32>
  }) : (tensor<8x64x4xf32>, tensor<8x4xf32>) -> (tensor<8x64x4xf32>, tensor<8x4xf32>)
  %associative:2 = "chlo.scan"(%x, %c) <{dimension = 1 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>, is_associative = true}> ({  // ([i, j, k], [i, k])->([i, j, k], [i, k]) {i=8, j=64, k=4} permutation={j}
  ^bb0(%i: tensor<8x4xf32>, %k: tensor<8x4xf32>):
    %s = stablehlo.add %i, %k : tensor<8x4xf32>
    stablehlo.return %s, %s : tensor<8x4xf32>, tensor<8x4xf32>
  }) : (tensor<8x64x4xf32>, tensor<8x4xf32>) -> (tensor<8x64x4xf32>, tensor<8x4xf32>)
  %part:2 = "chlo.scan"(%x, %c) <{dimension = 1 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({  // ([j, i, k], [l, m])->([n, i, o], [p, q]) {i=64, j=1, k=1, l=1, m=1, n=1, o=1, p=1, q=1} need_replication={i}
  ^bb0(%i: tensor<8x4xf32>, %k: tensor<8x4xf32>):
    %r = stablehlo.slice %i [0:8, 0:2] : (tensor<8x4xf32>) -> tensor<8x2xf32>
    stablehlo.return %r, %k : tensor<8x2xf32>, tensor<8x4xf32>
  }) : (tensor<8x64x4xf32>, tensor<8x4xf32>) -> (tensor<8x64x2xf32>, tensor<8x4xf32>)
  return
}

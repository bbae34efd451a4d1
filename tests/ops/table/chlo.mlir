// CHLO
func.func @f(%a: tensor<8x4xf32>, %i: tensor<8x4xi32>, %m: tensor<11x5xf32>, %r: tensor<3x5x7xf32>, %g: tensor<3xi64>) {
  %acos = chlo.acos %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %acosh = chlo.acosh %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %asin = chlo.asin %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %asinh = chlo.asinh %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %atan = chlo.atan %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %atanh = chlo.atanh %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bessel_i1e = chlo.bessel_i1e %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %conj = chlo.conj %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %cosh = chlo.cosh %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %digamma = chlo.digamma %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %erf = chlo.erf %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %erf_inv = chlo.erf_inv %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %erfc = chlo.erfc %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %lgamma = chlo.lgamma %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %sinh = chlo.sinh %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %square = chlo.square %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %tan = chlo.tan %a : tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %is_inf = chlo.is_inf %a : tensor<8x4xf32> -> tensor<8x4xi1>  // no rule: to be lowered to StableHLO
  %is_neg_inf = chlo.is_neg_inf %a : tensor<8x4xf32> -> tensor<8x4xi1>  // no rule: to be lowered to StableHLO
  %is_pos_inf = chlo.is_pos_inf %a : tensor<8x4xf32> -> tensor<8x4xi1>  // no rule: to be lowered to StableHLO
  %badd = chlo.broadcast_add %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %batan2 = chlo.broadcast_atan2 %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bdivide = chlo.broadcast_divide %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bmaximum = chlo.broadcast_maximum %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bminimum = chlo.broadcast_minimum %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bmultiply = chlo.broadcast_multiply %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bnext_after = chlo.broadcast_next_after %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bpolygamma = chlo.broadcast_polygamma %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bpower = chlo.broadcast_power %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bremainder = chlo.broadcast_remainder %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bsubtract = chlo.broadcast_subtract %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %bzeta = chlo.broadcast_zeta %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %band = chlo.broadcast_and %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // no rule: to be lowered to StableHLO
  %bor = chlo.broadcast_or %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // no rule: to be lowered to StableHLO
  %bxor = chlo.broadcast_xor %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // no rule: to be lowered to StableHLO
  %bshift_left = chlo.broadcast_shift_left %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // no rule: to be lowered to StableHLO
  %bshift_right_arithmetic = chlo.broadcast_shift_right_arithmetic %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // no rule: to be lowered to StableHLO
  %bshift_right_logical = chlo.broadcast_shift_right_logical %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // no rule: to be lowered to StableHLO
  %next_after = chlo.next_after %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %polygamma = chlo.polygamma %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %zeta = chlo.zeta %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %complex = chlo.broadcast_complex %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xcomplex<f32>>  // no rule: to be lowered to StableHLO
  %kernel = chlo._asin_acos_kernel %complex : tensor<8x4xcomplex<f32>> -> tensor<8x4xcomplex<f32>>  // no rule: to be lowered to StableHLO
  %compare = chlo.broadcast_compare %a, %a {comparison_direction = #chlo<comparison_direction LT>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>  // no rule: to be lowered to StableHLO
  %select = chlo.broadcast_select %compare, %a, %a : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %constant = chlo.constant dense<1.0> : tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %constant_like = "chlo.constant_like"(%a) {value = 1.0 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: to be lowered to StableHLO
  %mulhi = chlo.mulhi %i, %i : tensor<8x4xi32>, tensor<8x4xi32> -> tensor<8x4xi32>  // no rule: to be lowered to StableHLO
  %topk:2 = chlo.top_k(%a, k = 2) : tensor<8x4xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)  // no rule: to be lowered to StableHLO
  %ragged = "chlo.ragged_dot"(%m, %r, %g) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<11x5xf32>, tensor<3x5x7xf32>, tensor<3xi64>) -> tensor<11x7xf32>  // no rule: to be lowered to StableHLO
  return
}

// Elementwise ops
func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %i: tensor<8x4xi32>, %s: tensor<f32>, %p: tensor<i1>, %e: tensor<0x4xf32>, %o: tensor<1x4x1xf32>) {
  %abs = stablehlo.abs %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %cbrt = stablehlo.cbrt %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %ceil = stablehlo.ceil %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %cosine = stablehlo.cosine %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %exponential = stablehlo.exponential %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %exponential_minus_one = stablehlo.exponential_minus_one %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %floor = stablehlo.floor %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %log = stablehlo.log %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %log_plus_one = stablehlo.log_plus_one %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %logistic = stablehlo.logistic %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %negate = stablehlo.negate %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %round_nearest_afz = stablehlo.round_nearest_afz %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %round_nearest_even = stablehlo.round_nearest_even %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %rsqrt = stablehlo.rsqrt %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %sign = stablehlo.sign %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %sine = stablehlo.sine %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %sqrt = stablehlo.sqrt %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %tan = stablehlo.tan %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %tanh = stablehlo.tanh %a : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %add = stablehlo.add %a, %b : tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %atan2 = stablehlo.atan2 %a, %b : tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %divide = stablehlo.divide %a, %b : tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %maximum = stablehlo.maximum %a, %b : tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %minimum = stablehlo.minimum %a, %b : tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %multiply = stablehlo.multiply %a, %b : tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %power = stablehlo.power %a, %b : tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %remainder = stablehlo.remainder %a, %b : tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %subtract = stablehlo.subtract %a, %b : tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %and = stablehlo.and %i, %i : tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %or = stablehlo.or %i, %i : tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %shift_left = stablehlo.shift_left %i, %i : tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %shift_right_arithmetic = stablehlo.shift_right_arithmetic %i, %i : tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %shift_right_logical = stablehlo.shift_right_logical %i, %i : tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %xor = stablehlo.xor %i, %i : tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %not = stablehlo.not %i : tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %popcnt = stablehlo.popcnt %i : tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %count_leading_zeros = stablehlo.count_leading_zeros %i : tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %compare = stablehlo.compare LT, %a, %b : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %complex = stablehlo.complex %a, %b : tensor<8x4xcomplex<f32>>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %convert = stablehlo.convert %a : (tensor<8x4xf32>) -> tensor<8x4xbf16>  // ([i, j])->([i, j]) {i=8, j=4}
  %real = stablehlo.real %complex : (tensor<8x4xcomplex<f32>>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %imag = stablehlo.imag %complex : (tensor<8x4xcomplex<f32>>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %is_finite = stablehlo.is_finite %a : (tensor<8x4xf32>) -> tensor<8x4xi1>  // ([i, j])->([i, j]) {i=8, j=4}
  %reduce_precision = stablehlo.reduce_precision %a, format = e5m10 : tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %clamp = stablehlo.clamp %s, %a, %s : (tensor<f32>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>  // ([], [i, j], [])->([i, j]) {i=8, j=4}
  %clamp_whole = stablehlo.clamp %b, %a, %b : tensor<8x4xf32>  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  %select = stablehlo.select %p, %a, %b : tensor<i1>, tensor<8x4xf32>  // ([], [i, j], [i, j])->([i, j]) {i=8, j=4}
  %select_whole = stablehlo.select %compare, %a, %b : tensor<8x4xi1>, tensor<8x4xf32>  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  %scalar = stablehlo.add %s, %s : tensor<f32>  // ([], [])->([])
  %empty = stablehlo.add %e, %e : tensor<0x4xf32>  // ([i, j], [i, j])->([i, j]) {i=0, j=4}
  %ones = stablehlo.add %o, %o : tensor<1x4x1xf32>  // ([i, j, k], [i, j, k])->([i, j, k]) {i=1, j=4, k=1}
  return
}

// -----
// bitcast_convert: to the same width, to a narrower and to a wider type
func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x4x2xui16>, %c: tensor<2xf32>, %d: tensor<1x2xf32>) {
  %same = stablehlo.bitcast_convert %a : (tensor<8x4xf32>) -> tensor<8x4xui32>  // ([i, j])->([i, j]) {i=8, j=4}
  %narrower = stablehlo.bitcast_convert %a : (tensor<8x4xf32>) -> tensor<8x4x2xui16>  // ([i, j])->([i, j, k]) {i=8, j=4, k=2} need_replication={k}
  %wider = stablehlo.bitcast_convert %b : (tensor<8x4x2xui16>) -> tensor<8x4xf32>  // ([i, j, k])->([i, j]) {i=8, j=4, k=2} need_replication={k}
  %to_scalar = stablehlo.bitcast_convert %c : (tensor<2xf32>) -> tensor<f64>  // ([i])->([]) {i=2} need_replication={i}
  return
}

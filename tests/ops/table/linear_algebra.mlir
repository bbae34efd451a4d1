// Decompositions and transforms
func.func @f(%a: tensor<2x8x8xf32>, %b: tensor<2x8x3xf32>, %c: tensor<2x3x8xf32>, %x: tensor<2x6x8xcomplex<f32>>, %r: tensor<2x6x8xf32>, %v: tensor<8xf32>) {
  %cholesky = stablehlo.cholesky %a, lower = true : tensor<2x8x8xf32>  // ([i, j, k])->([i, j, k]) {i=2, j=8, k=8} need_replication={j, k}
  %left = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x8x8xf32>, tensor<2x8x3xf32>) -> tensor<2x8x3xf32>  // ([i, j, l], [i, j, k])->([i, l, k]) {i=2, j=8, k=3, l=8} need_replication={j, k, l}
  %left_t = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>} : (tensor<2x8x8xf32>, tensor<2x8x3xf32>) -> tensor<2x8x3xf32>  // ([i, l, j], [i, j, k])->([i, l, k]) {i=2, j=8, k=3, l=8} need_replication={j, k, l}
  %right = "stablehlo.triangular_solve"(%a, %c) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<2x8x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>  // ([i, l, k], [i, j, k])->([i, j, l]) {i=2, j=3, k=8, l=8} need_replication={j, k, l}
  %right_t = "stablehlo.triangular_solve"(%a, %c) {left_side = false, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose ADJOINT>} : (tensor<2x8x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>  // ([i, k, l], [i, j, k])->([i, j, l]) {i=2, j=3, k=8, l=8} need_replication={j, k, l}
  %fft = stablehlo.fft %x, type = FFT, length = [8] : (tensor<2x6x8xcomplex<f32>>) -> tensor<2x6x8xcomplex<f32>>  // ([i, j, k])->([i, j, k]) {i=2, j=6, k=8} need_replication={k}
  %rfft = stablehlo.fft %r, type = RFFT, length = [6, 8] : (tensor<2x6x8xf32>) -> tensor<2x6x5xcomplex<f32>>  // ([i, j, k])->([i, j, k]) {i=2, j=6, k=8} need_replication={j, k} blocked_propagation={k}
  %vector = stablehlo.fft %v, type = RFFT, length = [8] : (tensor<8xf32>) -> tensor<5xcomplex<f32>>  // ([i])->([i]) {i=8} need_replication={i} blocked_propagation={i}
  %eigh:2 = stablehlo.custom_call @Eigh(%a) : (tensor<2x8x8xf32>) -> (tensor<2x8x8xf32>, tensor<2x8xf32>)  // ([i, j, k])->([i, j, k], [i, k]) {i=2, j=8, k=8}
  %qr:2 = stablehlo.custom_call @Qr(%b) : (tensor<2x8x3xf32>) -> (tensor<2x8x3xf32>, tensor<2x3xf32>)  // ([i, j, k])->([i, j, k], [i, l]) {i=2, j=8, k=3, l=3} need_replication={j, k, l}
  %block:2 = stablehlo.custom_call @QrDecompositionBlock(%c) : (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>)  // ([i, j, k])->([i, j, k], [i, l]) {i=2, j=3, k=8, l=3} need_replication={j, k, l}
  %product = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%b, %qr#1) : (tensor<2x8x3xf32>, tensor<2x3xf32>) -> tensor<2x8x3xf32>  // ([i, j, k], [i, l])->([i, j, k]) {i=2, j=8, k=3, l=3} need_replication={j, k, l}
  return
}

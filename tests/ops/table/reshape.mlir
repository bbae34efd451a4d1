// reshape
func.func @f(%a0: tensor<8x4xf32>, %a1: tensor<32xf32>, %a2: tensor<8x4xf32>, %a3: tensor<2x3x5xf32>, %a4: tensor<4x6xf32>, %a5: tensor<8x1x4xf32>, %a6: tensor<1xf32>, %a7: tensor<f32>, %a8: tensor<2x2x2xf32>, %a9: tensor<12xf32>, %a10: tensor<4x3xf32>, %a11: tensor<6x35xf32>, %a12: tensor<1x8x1xf32>, %a13: tensor<16x9xf32>, %a14: tensor<5x7xf32>, %a15: tensor<2x3x4x5xf32>, %a16: tensor<10x3x7xf32>, %a17: tensor<4x1x6xf32>, %a18: tensor<0x4xf32>, %a19: tensor<30x30xf32>) {
  %0 = stablehlo.reshape %a0 : (tensor<8x4xf32>) -> tensor<32xf32>  // ([i, j])->([ij]) {i=8, j=4}
  %1 = stablehlo.reshape %a1 : (tensor<32xf32>) -> tensor<8x4xf32>  // ([ij])->([i, j]) {i=8, j=4}
  %2 = stablehlo.reshape %a2 : (tensor<8x4xf32>) -> tensor<2x16xf32>  // ([ij, k])->([i, jk]) {i=2, j=4, k=4}
  %3 = stablehlo.reshape %a3 : (tensor<2x3x5xf32>) -> tensor<30xf32>  // ([i, j, k])->([ijk]) {i=2, j=3, k=5}
  %4 = stablehlo.reshape %a4 : (tensor<4x6xf32>) -> tensor<6x4xf32>  // ([ij, ln])->([ik, mn]) {i=2, j=2, k=3, l=3, m=2, n=2}  // 0.12: ([ij, km])->([ij, lm]) {i=2, j=2, k=3, l=2, m=2} need_replication={k, l} permutation={j}
  %5 = stablehlo.reshape %a5 : (tensor<8x1x4xf32>) -> tensor<8x4xf32>  // ([i, j, k])->([i, k]) {i=8, j=1, k=4}  // 0.12: ([i, j, k])->([i, k]) {i=8, j=1, k=4} need_replication={j}
  %6 = stablehlo.reshape %a6 : (tensor<1xf32>) -> tensor<1x1xf32>  // ([i])->([j, k]) {i=1, j=1, k=1}  // 0.12: ([i])->([j, k]) {i=1, j=1, k=1} need_replication={i, j, k}
  %7 = stablehlo.reshape %a7 : (tensor<f32>) -> tensor<1xf32>  // ([])->([i]) {i=1}  // 0.12: ([])->([i]) {i=1} need_replication={i}
  %8 = stablehlo.reshape %a8 : (tensor<2x2x2xf32>) -> tensor<8xf32>  // ([i, j, k])->([ijk]) {i=2, j=2, k=2}
  %9 = stablehlo.reshape %a9 : (tensor<12xf32>) -> tensor<3x4xf32>  // ([ij])->([i, j]) {i=3, j=4}
  %10 = stablehlo.reshape %a10 : (tensor<4x3xf32>) -> tensor<6x2xf32>  // ([ij, l])->([ik, m]) {i=2, j=2, k=3, l=3, m=2}  // 0.12: ([ij, k])->([ij, l]) {i=2, j=2, k=3, l=2} need_replication={k, l} permutation={j}
  %11 = stablehlo.reshape %a11 : (tensor<6x35xf32>) -> tensor<14x15xf32>  // ([ij, ln])->([ik, mn]) {i=2, j=3, k=7, l=7, m=3, n=5}  // 0.12: ([ij, km])->([ij, lm]) {i=2, j=3, k=7, l=3, m=5} need_replication={k, l} permutation={j}
  %12 = stablehlo.reshape %a12 : (tensor<1x8x1xf32>) -> tensor<1x1x8xf32>  // ([i, l, m])->([j, k, l]) {i=1, j=1, k=1, l=8, m=1}  // 0.12: ([i, l, m])->([j, k, l]) {i=1, j=1, k=1, l=8, m=1} need_replication={i, j, k, m}
  %13 = stablehlo.reshape %a13 : (tensor<16x9xf32>) -> tensor<12x12xf32>  // ([ij, mn])->([ik, ln]) {i=4, j=4, k=3, l=4, m=3, n=3}  // 0.12: ([ij, lm])->([ij, km]) {i=4, j=4, k=4, l=3, m=3} need_replication={k, l} permutation={j}
  %14 = stablehlo.reshape %a14 : (tensor<5x7xf32>) -> tensor<7x5xf32>  // ([i, k])->([j, l]) {i=5, j=7, k=7, l=5}  // 0.12: ([i, j])->([i, k]) {i=5, j=7, k=5} need_replication={j, k} permutation={i}
  %15 = stablehlo.reshape %a15 : (tensor<2x3x4x5xf32>) -> tensor<24x5xf32>  // ([i, j, k, l])->([ijk, l]) {i=2, j=3, k=4, l=5}
  %16 = stablehlo.reshape %a16 : (tensor<10x3x7xf32>) -> tensor<6x35xf32>  // ([ij, m, n])->([ik, l]) {i=2, j=5, k=3, l=35, m=3, n=7}  // 0.12: ([ij, l, m])->([ij, k]) {i=2, j=5, k=35, l=3, m=7} need_replication={k, l, m} permutation={j}
  %17 = stablehlo.reshape %a17 : (tensor<4x1x6xf32>) -> tensor<2x2x1x6xf32>  // ([ij, k, m])->([i, j, l, m]) {i=2, j=2, k=1, l=1, m=6}  // 0.12: ([ij, k, m])->([i, j, l, m]) {i=2, j=2, k=1, l=1, m=6} need_replication={k, l}
  %18 = stablehlo.reshape %a18 : (tensor<0x4xf32>) -> tensor<4x0xf32>  // no rule: there is nothing to shard in a tensor without elements
  %19 = stablehlo.reshape %a19 : (tensor<30x30xf32>) -> tensor<4x225xf32>  // ([ij, mn])->([ik, ln]) {i=2, j=15, k=2, l=15, m=2, n=15}  // 0.12: ([ij, lm])->([ij, km]) {i=2, j=15, k=15, l=2, m=15} need_replication={k, l} permutation={j}
  return
}

// broadcast_in_dim
func.func @f(%s: tensor<f32>, %a: tensor<4xf32>, %b: tensor<8x1xf32>, %c: tensor<2x8xf32>, %o: tensor<1xf32>) {
  %scalar = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<8x4xf32>  // ([])->([i, j]) {i=8, j=4}
  %minor = stablehlo.broadcast_in_dim %a, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>  // ([j])->([i, j]) {i=8, j=4}
  %stretched = stablehlo.broadcast_in_dim %b, dims = [0, 1] : (tensor<8x1xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, k]) {i=8, j=1, k=4}
  %swapped = stablehlo.broadcast_in_dim %c, dims = [2, 0] : (tensor<2x8xf32>) -> tensor<8x5x2xf32>  // ([k, i])->([i, j, k]) {i=8, j=5, k=2}
  %same = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<4xf32>) -> tensor<4xf32>  // ([i])->([i]) {i=4}
  %one = stablehlo.broadcast_in_dim %o, dims = [1] : (tensor<1xf32>) -> tensor<4x1xf32>  // ([j])->([i, j]) {i=4, j=1}
  return
}

// -----
// transpose and reverse
func.func @f(%a: tensor<2x3x5xf32>, %b: tensor<8x1xf32>) {
  %t = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32>  // ([j, k, i])->([i, j, k]) {i=5, j=2, k=3}
  %u = stablehlo.transpose %b, dims = [1, 0] : (tensor<8x1xf32>) -> tensor<1x8xf32>  // ([j, i])->([i, j]) {i=1, j=8}
  %r = stablehlo.reverse %a, dims = [0, 2] : tensor<2x3x5xf32>  // ([i, j, k])->([i, j, k]) {i=2, j=3, k=5} permutation={i, k}
  %none = stablehlo.reverse %a, dims = [] : tensor<2x3x5xf32>  // ([i, j, k])->([i, j, k]) {i=2, j=3, k=5}
  return
}

// -----
// slice and pad
func.func @f(%a: tensor<8x4x2xf32>, %s: tensor<f32>) {
  %slice = stablehlo.slice %a [0:8, 1:3, 0:2:2] : (tensor<8x4x2xf32>) -> tensor<8x2x1xf32>  // ([i, j, k])->([i, j, k]) {i=8, j=4, k=2} permutation={j, k}
  %whole = stablehlo.slice %a [0:8, 0:4, 0:2] : (tensor<8x4x2xf32>) -> tensor<8x4x2xf32>  // ([i, j, k])->([i, j, k]) {i=8, j=4, k=2}
  %pad = stablehlo.pad %a, %s, low = [0, 1, 0], high = [0, 0, 3], interior = [0, 0, 0] : (tensor<8x4x2xf32>, tensor<f32>) -> tensor<8x5x5xf32>  // ([i, j, k], [])->([i, j, k]) {i=8, j=4, k=2} permutation={j, k}
  %cut = stablehlo.pad %a, %s, low = [-1, 1, 0], high = [0, -1, 0], interior = [0, 0, 1] : (tensor<8x4x2xf32>, tensor<f32>) -> tensor<7x4x3xf32>  // ([i, j, k], [])->([i, j, k]) {i=8, j=4, k=2} permutation={i, k}  // 0.12: ([i, j, k], [])->([i, j, k]) {i=8, j=4, k=2} permutation={i, j, k}
  return
}

// -----
// concatenate: also of slices, which move between neighbours
func.func @f(%a: tensor<8x4xf32>, %b: tensor<8x2xf32>) {
  %two = stablehlo.concatenate %a, %b, dim = 1 : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<8x6xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=6} need_replication={j}
  %one = stablehlo.concatenate %a, dim = 0 : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4} need_replication={i}
  %head = stablehlo.slice %a [0:1, 0:4] : (tensor<8x4xf32>) -> tensor<1x4xf32>  // ([i, j])->([i, j]) {i=8, j=4} permutation={i}
  %tail = stablehlo.slice %a [7:8, 0:4] : (tensor<8x4xf32>) -> tensor<1x4xf32>  // ([i, j])->([i, j]) {i=8, j=4} permutation={i}
  %other = stablehlo.slice %b [0:8, 1:2] : (tensor<8x2xf32>) -> tensor<8x1xf32>  // ([i, j])->([i, j]) {i=8, j=2} permutation={j}
  %rotated = stablehlo.concatenate %tail, %head, dim = 0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>  // ([i, j], [i, j])->([i, j]) {i=2, j=4} permutation={i}
  %halo = stablehlo.concatenate %tail, %a, %head, dim = 0 : (tensor<1x4xf32>, tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<10x4xf32>  // ([i, j], [i, j], [i, j])->([i, j]) {i=10, j=4} permutation={i}
  %joined = stablehlo.concatenate %a, %other, dim = 1 : (tensor<8x4xf32>, tensor<8x1xf32>) -> tensor<8x5xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=5} need_replication={j}
  %twice = stablehlo.concatenate %a, %a, dim = 0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>  // ([i, j], [i, j])->([i, j]) {i=16, j=4} need_replication={i}
  %slice_twice = stablehlo.slice %head [0:1, 0:2] : (tensor<1x4xf32>) -> tensor<1x2xf32>  // ([i, j])->([i, j]) {i=1, j=4} permutation={j}
  %nested = stablehlo.concatenate %head, %slice_twice, dim = 1 : (tensor<1x4xf32>, tensor<1x2xf32>) -> tensor<1x6xf32>  // ([i, j], [i, j])->([i, j]) {i=1, j=6} permutation={j}
  return
}

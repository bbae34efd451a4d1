// tensor
func.func @tensor_0(%a: tensor<8x4x6xf32>, %x: f32, %i: index, %m: tensor<8x24xf32>, %d: tensor<2xindex>, %s: tensor<8x2x6xf32>, %row: tensor<4x6xf32>) {
  %0 = tensor.empty() : tensor<8x4xf32>  // no rule: a constant is sharded as its use asks
  %1 = tensor.splat %x : tensor<8x4xf32>  // ([])->([i, j]) {i=8, j=4}
  %2 = tensor.from_elements %x, %x : tensor<2xf32>  // ([], [])->([i]) {i=1}
  %3 = tensor.expand_shape %m [[0], [1, 2]] output_shape [8, 4, 6] : tensor<8x24xf32> into tensor<8x4x6xf32>  // ([i, jk])->([i, j, k]) {i=8, j=4, k=6}
  %4 = tensor.collapse_shape %a [[0], [1, 2]] : tensor<8x4x6xf32> into tensor<8x24xf32>  // ([i, j, k])->([i, jk]) {i=8, j=4, k=6}
  %5 = tensor.reshape %m(%d) : (tensor<8x24xf32>, tensor<2xindex>) -> tensor<32x6xf32>  // ([i, jk], [l])->([ij, k]) {i=8, j=4, k=6, l=1}
  %6 = tensor.bitcast %a : tensor<8x4x6xf32> to tensor<8x4x6xi32>  // ([i, j, k])->([i, j, k]) {i=8, j=4, k=6}
  %7 = tensor.cast %a : tensor<8x4x6xf32> to tensor<8x4x6xf32>  // ([i, j, k])->([i, j, k]) {i=8, j=4, k=6}
  %8 = tensor.concat dim(1) %a, %s : (tensor<8x4x6xf32>, tensor<8x2x6xf32>) -> tensor<8x6x6xf32>  // ([i, j, k], [i, j, k])->([i, j, k]) {i=8, j=6, k=6} need_replication={j}
  %9 = tensor.pad %a low[0, 1, 0] high[0, 1, 0] {  // ([i, j, k])->([i, j, k]) {i=8, j=4, k=6} permutation={j}
  ^bb0(%j: index, %k: index, %l: index):
    tensor.yield %x : f32
  } : tensor<8x4x6xf32> to tensor<8x6x6xf32>
  %10 = tensor.extract_slice %a[0, 1, 0] [8, 2, 6] [1, 1, 1] : tensor<8x4x6xf32> to tensor<8x2x6xf32>  // ([i, j, k])->([i, l, k]) {i=8, j=4, k=6, l=1} need_replication={j}
  %11 = tensor.extract_slice %a[%i, 0, 0] [1, 4, 6] [1, 1, 1] : tensor<8x4x6xf32> to tensor<4x6xf32>  // ([i, j, k], [])->([j, k]) {i=8, j=4, k=6} need_replication={i}
  %12 = tensor.insert_slice %s into %a[0, 1, 0] [8, 2, 6] [1, 1, 1] : tensor<8x2x6xf32> into tensor<8x4x6xf32>  // ([i, l, k], [i, j, k])->([i, j, k]) {i=8, j=4, k=6, l=1} need_replication={j}
  %13 = tensor.insert_slice %row into %a[0, 0, 0] [1, 4, 6] [1, 1, 1] : tensor<4x6xf32> into tensor<8x4x6xf32>  // ([j, k], [i, j, k])->([i, j, k]) {i=8, j=4, k=6} need_replication={i}
  %14 = tensor.extract %a[%i, %i, %i] : tensor<8x4x6xf32>  // ([i, j, k], [], [], [])->([]) {i=1, j=1, k=1}
  %15 = tensor.insert %x into %a[%i, %i, %i] : tensor<8x4x6xf32>  // ([], [i, j, k], [], [], [])->([i, j, k]) {i=8, j=4, k=6} need_replication={i, j, k}
  %16 = tensor.dim %a, %i : tensor<8x4x6xf32>  // ([i, j, k], [])->([]) {i=1, j=1, k=1}
  %17 = tensor.rank %a : tensor<8x4x6xf32>  // ([i, j, k])->([]) {i=1, j=1, k=1}
  %18 = "bufferization.alloc_tensor"() {operandSegmentSizes = array<i32: 0, 0, 0>} : () -> tensor<8x4xf32>  // no rule: a constant is sharded as its use asks
  %19 = "bufferization.materialize_in_destination"(%a, %a) : (tensor<8x4x6xf32>, tensor<8x4x6xf32>) -> tensor<8x4x6xf32>  // ([i, j, k], [i, j, k])->([i, j, k]) {i=8, j=4, k=6}
  return
}

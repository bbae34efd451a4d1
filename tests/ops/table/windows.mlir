// reduce_window
func.func @f(%a: tensor<4x8x8xf32>, %s: tensor<f32>) {
  %pool = "stablehlo.reduce_window"(%a, %s) ({  // ([i, j, k], [])->([i, j, k]) {i=4, j=4, k=8} permutation={j}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.maximum %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>} : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x4x8xf32>
  %same = "stablehlo.reduce_window"(%a, %s) ({  // ([i, j, k], [])->([i, j, k]) {i=4, j=8, k=8} permutation={j}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.maximum %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {window_dimensions = array<i64: 1, 3, 1>, padding = dense<[[0, 0], [1, 1], [0, 0]]> : tensor<3x2xi64>} : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x8x8xf32>
  %padded = "stablehlo.reduce_window"(%a, %s) ({  // ([i, j, k], [])->([i, j, k]) {i=6, j=10, k=10} permutation={i, j, k}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {window_dimensions = array<i64: 1, 1, 1>, padding = dense<1> : tensor<3x2xi64>} : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<6x10x10xf32>
  %sums = "stablehlo.reduce_window"(%a, %s) ({  // ([i, j, k], [])->([i, j, k]) {i=4, j=8, k=8} permutation={k}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {window_dimensions = array<i64: 1, 1, 8>, padding = dense<[[0, 0], [0, 0], [7, 0]]> : tensor<3x2xi64>} : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x8x8xf32>
  %leaps = "stablehlo.reduce_window"(%a, %s) ({  // ([i, j, k], [])->([i, j, k]) {i=2, j=8, k=8} permutation={i}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {window_dimensions = array<i64: 1, 1, 1>, window_strides = array<i64: 2, 1, 1>} : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<2x8x8xf32>
  %pair:2 = "stablehlo.reduce_window"(%a, %a, %s, %s) ({  // ([i, j, k], [i, j, k], [], [])->([i, j, k], [i, j, k]) {i=3, j=8, k=8} permutation={i}
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>, %y0: tensor<f32>, %y1: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    %z1 = stablehlo.add %x1, %y1 : tensor<f32>
    stablehlo.return %z0, %z1 : tensor<f32>, tensor<f32>
  }) {window_dimensions = array<i64: 2, 1, 1>} : (tensor<4x8x8xf32>, tensor<4x8x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<3x8x8xf32>, tensor<3x8x8xf32>)
  return
}

// -----
// select_and_scatter
func.func @f(%a: tensor<4x8x8xf32>, %b: tensor<4x4x8xf32>, %s: tensor<f32>) {
  %pool = "stablehlo.select_and_scatter"(%a, %b, %s) ({  // ([i, k, l], [i, j, l], [])->([i, k, l]) {i=4, j=4, k=8, l=8} need_replication={j} permutation={k}
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }, {
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) {window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>} : (tensor<4x8x8xf32>, tensor<4x4x8xf32>, tensor<f32>) -> tensor<4x8x8xf32>
  %plain = "stablehlo.select_and_scatter"(%a, %a, %s) ({  // ([i, j, k], [i, j, k], [])->([i, j, k]) {i=4, j=8, k=8}
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.compare GE, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }, {
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  }) {window_dimensions = array<i64: 1, 1, 1>} : (tensor<4x8x8xf32>, tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x8x8xf32>
  return
}

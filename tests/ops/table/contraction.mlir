// dot_general
func.func @f(%a: tensor<2x3x5x7xf32>, %b: tensor<5x2x11x7xf32>, %m: tensor<8x4xf32>, %n: tensor<4x1xf32>, %v: tensor<4xf32>) {
  %batch = stablehlo.dot_general %a, %b, batching_dims = [2, 0] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x7xf32>, tensor<5x2x11x7xf32>) -> tensor<5x2x3x11xf32>  // ([j, k, i, m], [i, j, l, m])->([i, j, k, l]) {i=5, j=2, k=3, l=11, m=7} reduction={m}
  %matmul = stablehlo.dot_general %m, %n, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x1xf32>) -> tensor<8x1xf32>  // ([i, k], [k, j])->([i, j]) {i=8, j=1, k=4} reduction={k}
  %outer = stablehlo.dot_general %v, %v, contracting_dims = [] x [] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4x4xf32>  // ([i], [j])->([i, j]) {i=4, j=4}
  %two = stablehlo.dot_general %a, %a, contracting_dims = [3, 0] x [3, 0] : (tensor<2x3x5x7xf32>, tensor<2x3x5x7xf32>) -> tensor<3x5x3x5xf32>  // ([n, i, j, m], [n, k, l, m])->([i, j, k, l]) {i=3, j=5, k=3, l=5, m=7, n=2} reduction={m, n}
  %all = stablehlo.dot_general %v, %v, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>  // ([i], [i])->([]) {i=4} reduction={i}
  return
}

// -----
// dot
func.func @f(%m: tensor<8x4xf32>, %n: tensor<4x2xf32>, %v: tensor<4xf32>) {
  %mm = stablehlo.dot %m, %n : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>  // ([i, k], [k, j])->([i, j]) {i=8, j=2, k=4} reduction={k}
  %mv = stablehlo.dot %m, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8xf32>  // ([i, j], [j])->([i]) {i=8, j=4} reduction={j}
  %vm = stablehlo.dot %v, %n : (tensor<4xf32>, tensor<4x2xf32>) -> tensor<2xf32>  // ([j], [j, i])->([i]) {i=2, j=4} reduction={j}
  %vv = stablehlo.dot %v, %v : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>  // ([i], [i])->([]) {i=4} reduction={i}
  return
}

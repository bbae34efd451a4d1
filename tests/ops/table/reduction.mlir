// reduce
func.func @f(%a: tensor<2x3x5xf32>, %i: tensor<2x3x5xi32>, %s: tensor<f32>, %j: tensor<i32>) {
  %one = "stablehlo.reduce"(%a, %s) ({  // ([i, j, k], [])->([i, k]) {i=2, j=3, k=5} reduction={j}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<2x3x5xf32>, tensor<f32>) -> tensor<2x5xf32>
  %all = "stablehlo.reduce"(%a, %s) ({  // ([i, j, k], [])->([]) {i=2, j=3, k=5} reduction={i, j, k}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.maximum %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {dimensions = array<i64: 0, 1, 2>} : (tensor<2x3x5xf32>, tensor<f32>) -> tensor<f32>
  %none = "stablehlo.reduce"(%a, %s) ({  // ([i, j, k], [])->([i, j, k]) {i=2, j=3, k=5}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z0 = stablehlo.maximum %x0, %y0 : tensor<f32>
    stablehlo.return %z0 : tensor<f32>
  }) {dimensions = array<i64>} : (tensor<2x3x5xf32>, tensor<f32>) -> tensor<2x3x5xf32>
  %pair:2 = "stablehlo.reduce"(%a, %a, %s, %s) ({  // ([i, j, k], [i, j, k], [], [])->([j], [j]) {i=2, j=3, k=5} reduction={i, k}
  ^bb0(%x0: tensor<f32>, %x1: tensor<f32>, %y0: tensor<f32>, %y1: tensor<f32>):
    %z0 = stablehlo.add %x0, %y0 : tensor<f32>
    %z1 = stablehlo.add %x1, %y1 : tensor<f32>
    stablehlo.return %z0, %z1 : tensor<f32>, tensor<f32>
  }) {dimensions = array<i64: 2, 0>} : (tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
  return
}

// -----
// sort
func.func @f(%a: tensor<2x3x5xf32>, %v: tensor<7xf32>, %o: tensor<1x7xf32>) {
  %middle = "stablehlo.sort"(%a) ({  // ([i, j, k])->([i, j, k]) {i=2, j=3, k=5} need_replication={j}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z = stablehlo.compare LT, %x0, %y0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }) {dimension = 1 : i64, is_stable = true} : (tensor<2x3x5xf32>) -> (tensor<2x3x5xf32>)
  %pair:2 = "stablehlo.sort"(%a, %a) ({  // ([i, j, k], [i, j, k])->([i, j, k], [i, j, k]) {i=2, j=3, k=5} need_replication={i}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>, %x1: tensor<f32>, %y1: tensor<f32>):
    %z = stablehlo.compare LT, %x0, %y0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> (tensor<2x3x5xf32>, tensor<2x3x5xf32>)
  %default = "stablehlo.sort"(%a) ({  // ([i, j, k])->([i, j, k]) {i=2, j=3, k=5}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z = stablehlo.compare LT, %x0, %y0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }) {} : (tensor<2x3x5xf32>) -> (tensor<2x3x5xf32>)
  %only = "stablehlo.sort"(%v) ({  // ([i])->([i]) {i=7} need_replication={i} blocked_propagation={i}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z = stablehlo.compare LT, %x0, %y0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<7xf32>) -> (tensor<7xf32>)
  %no_batch = "stablehlo.sort"(%o) ({  // ([i, j])->([i, j]) {i=1, j=7} need_replication={j} blocked_propagation={j}
  ^bb0(%x0: tensor<f32>, %y0: tensor<f32>):
    %z = stablehlo.compare LT, %x0, %y0 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %z : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<1x7xf32>) -> (tensor<1x7xf32>)
  return
}

// batch_norm_inference
func.func @f(%a: tensor<8x4x2xf32>, %s: tensor<4xf32>) {
  %0 = "stablehlo.batch_norm_inference"(%a, %s, %s, %s, %s) {epsilon = 0.001 : f32, feature_index = 1 : i64} : (tensor<8x4x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x2xf32>  // ([i, j, k], [j], [j], [j], [j])->([i, j, k]) {i=8, j=4, k=2}
  return
}

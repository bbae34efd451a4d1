// rng_bit_generator
func.func @f(%s: tensor<3xui64>) {
  %state, %bits = stablehlo.rng_bit_generator %s, algorithm = PHILOX : (tensor<3xui64>) -> (tensor<3xui64>, tensor<8x4xui32>)  // ([i])->([i], [j, k]) {i=3, j=8, k=4} need_replication={i} blocked_propagation={i}
  return
}

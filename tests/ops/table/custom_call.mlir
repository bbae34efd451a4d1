// Custom calls that are pointwise
func.func @f(%a: tensor<8x4xf32>) {
  %0 = stablehlo.custom_call @annotate_device_placement(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %1 = stablehlo.custom_call @Cholesky(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %2 = stablehlo.custom_call @CompactWyHelper(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %3 = stablehlo.custom_call @InspectSharding(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %4 = stablehlo.custom_call @InvertDiagBlocksLowerTriangular(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %5 = stablehlo.custom_call @InvertDiagBlocksUpperTriangular(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %6 = stablehlo.custom_call @LayoutConstraint(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %7 = stablehlo.custom_call @mhlo.erf(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %8 = stablehlo.custom_call @MoveToDevice(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %9 = stablehlo.custom_call @MoveToHost(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %10 = stablehlo.custom_call @X64SplitHigh(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %11 = stablehlo.custom_call @X64SplitLow(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %12 = stablehlo.custom_call @xla.megascale.provide_metadata(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %13 = stablehlo.custom_call @_SPMDInternalOp_MultiPad(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %14 = stablehlo.custom_call @_SPMDInternalOp_RotateRight(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %15 = stablehlo.custom_call @_SPMDInternalOp_MultiRotate(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %16 = stablehlo.custom_call @_SPMDInternalOp_MultiSlice(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %17 = stablehlo.custom_call @_SPMDInternalOp_Wrap(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %18 = stablehlo.custom_call @X64Combine(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %multi:2 = stablehlo.custom_call @_SPMDInternalOp_MultiRotate(%a) : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)  // ([i, j])->([i, j], [i, j]) {i=8, j=4}
  return
}

// -----
// Custom calls without a rule
func.func @f(%a: tensor<8x4xf32>) {
  %0 = stablehlo.custom_call @sdy_testonly(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: the call is opaque
  %1 = stablehlo.custom_call @tpu_custom_call(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: the call is opaque
  %2 = stablehlo.custom_call @xla_python_cpu_callback(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: the call is opaque
  %3 = stablehlo.custom_call @xla_python_gpu_callback(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: the call is opaque
  %4 = stablehlo.custom_call @xla_ffi_python_cpu_callback(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: the call is opaque
  %5 = stablehlo.custom_call @xla_ffi_python_gpu_callback(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: the call is opaque
  %6 = stablehlo.custom_call @xla.debug.Log(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: the target is not known; an sdy.sharding_rule attribute can say how to shard it
  %7 = stablehlo.custom_call @Sharding(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: the target is not known; an sdy.sharding_rule attribute can say how to shard it
  %8 = stablehlo.custom_call @SPMDFullToShardShape(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: the target is not known; an sdy.sharding_rule attribute can say how to shard it
  %9 = stablehlo.custom_call @unheard_of(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // no rule: the target is not known; an sdy.sharding_rule attribute can say how to shard it
  return
}

// -----
// The largest elements
func.func @f(%a: tensor<8x16xf32>, %i: tensor<8x16xi32>, %s: tensor<f32>, %j: tensor<i32>) {
  %topk:2 = stablehlo.custom_call @mhlo.topk(%a) : (tensor<8x16xf32>) -> (tensor<8x2xf32>, tensor<8x2xi32>)  // ([i, j])->([i, j], [i, j]) {i=8, j=16} need_replication={j} blocked_propagation={j}
  %topk_all:2 = stablehlo.custom_call @mhlo.topk(%a) : (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xi32>)  // ([i, j])->([i, j], [i, j]) {i=8, j=16}
  %approximate:2 = stablehlo.custom_call @ApproxTopK(%a, %i, %s, %j) : (tensor<8x16xf32>, tensor<8x16xi32>, tensor<f32>, tensor<i32>) -> (tensor<8x2xf32>, tensor<8x2xi32>)  // ([i, j], [i, j], [], [])->([i, k], [i, k]) {i=8, j=16, k=2} need_replication={k} blocked_propagation={k}
  %partial:2 = stablehlo.custom_call @PartialReduce(%a, %i, %s, %j) : (tensor<8x16xf32>, tensor<8x16xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x16xf32>, tensor<2x16xi32>)  // ([i, k], [i, k], [], [])->([j, k], [j, k]) {i=8, j=2, k=16} need_replication={j} blocked_propagation={j}
  return
}

// -----
// X64Combine makes the state of a random number generator
func.func @f(%a: tensor<2xui32>) {
  %state = stablehlo.custom_call @X64Combine(%a, %a) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui64>  // ([i], [i])->([i]) {i=2} need_replication={i} blocked_propagation={i}
  %new, %bits = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8x4xui32>)  // ([i])->([i], [j, k]) {i=2, j=8, k=4} need_replication={i} blocked_propagation={i}
  return
}

// -----
// A sharding rule of its own
func.func @f(%a: tensor<8x6xf32>, %b: tensor<6xf32>) {
  %0 = stablehlo.custom_call @mine(%a, %b) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk], [jk])->([i, k]) {i=8, j=2, k=3} reduction={j} permutation={i} blocked_propagation={k}, custom>} : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x3xf32>  // ([i, jk], [jk])->([i, k]) {i=8, j=2, k=3} reduction={j} permutation={i} blocked_propagation={k}
  return
}

// An example of every op that has a rule, by family: what `shardlog rules show` and the table of ops work out.

sdy.mesh @mesh = <["x"=2]>

func.func @chlo_0(%a: tensor<8x4xf32>, %i: tensor<8x4xi32>, %m: tensor<11x5xf32>, %r: tensor<3x5x7xf32>, %g: tensor<3xi64>, %v: tensor<4xf32>, %one: tensor<8x1xf32>, %x: tensor<f32>, %rows: tensor<8xf32>) {
  %acos = chlo.acos %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %acosh = chlo.acosh %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %asin = chlo.asin %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %asinh = chlo.asinh %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %atan = chlo.atan %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %atanh = chlo.atanh %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %bessel_i1e = chlo.bessel_i1e %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %conj = chlo.conj %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %cosh = chlo.cosh %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %digamma = chlo.digamma %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %erf_inv = chlo.erf_inv %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %erfc = chlo.erfc %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %lgamma = chlo.lgamma %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %sinh = chlo.sinh %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %square = chlo.square %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %tan = chlo.tan %a : tensor<8x4xf32> -> tensor<8x4xf32>
  %is_inf = chlo.is_inf %a : tensor<8x4xf32> -> tensor<8x4xi1>
  %is_neg_inf = chlo.is_neg_inf %a : tensor<8x4xf32> -> tensor<8x4xi1>
  %is_pos_inf = chlo.is_pos_inf %a : tensor<8x4xf32> -> tensor<8x4xi1>
  %bvector = chlo.broadcast_add %a, %v : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %batan2 = chlo.broadcast_atan2 %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bdivide = chlo.broadcast_divide %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bmaximum = chlo.broadcast_maximum %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bminimum = chlo.broadcast_minimum %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bmultiply = chlo.broadcast_multiply %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bnext_after = chlo.broadcast_next_after %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bpolygamma = chlo.broadcast_polygamma %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bpower = chlo.broadcast_power %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bremainder = chlo.broadcast_remainder %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bsubtract = chlo.broadcast_subtract %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %bzeta = chlo.broadcast_zeta %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %band = chlo.broadcast_and %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %bor = chlo.broadcast_or %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %bxor = chlo.broadcast_xor %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %bshift_left = chlo.broadcast_shift_left %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %bshift_right_arithmetic = chlo.broadcast_shift_right_arithmetic %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %bshift_right_logical = chlo.broadcast_shift_right_logical %i, %i : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %next_after = chlo.next_after %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  %polygamma = chlo.polygamma %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  %zeta = chlo.zeta %a, %a : tensor<8x4xf32>, tensor<8x4xf32> -> tensor<8x4xf32>
  %complex = chlo.broadcast_complex %a, %a : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xcomplex<f32>>
  %kernel = chlo._asin_acos_kernel %complex : tensor<8x4xcomplex<f32>> -> tensor<8x4xcomplex<f32>>
  %compare = chlo.broadcast_compare %a, %a {comparison_direction = #chlo<comparison_direction LT>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %select = chlo.broadcast_select %compare, %a, %a : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %constant = chlo.constant dense<1.0> : tensor<8x4xf32>
  %constant_like = "chlo.constant_like"(%a) {value = 1.0 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %mulhi = chlo.mulhi %i, %i : tensor<8x4xi32>, tensor<8x4xi32> -> tensor<8x4xi32>
  %topk:2 = chlo.top_k(%a, k = 2) : tensor<8x4xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)
  return
}

func.func @chlo_1(%a0: tensor<16x8xf32>, %b0: tensor<4x8x32xf32>, %g0: tensor<4xi32>) {
  %0 = "chlo.ragged_dot"(%a0, %b0, %g0) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<16x8xf32>, tensor<4x8x32xf32>, tensor<4xi32>) -> tensor<16x32xf32>
  return
}

func.func @chlo_2(%x: tensor<8x64x4xf32>, %c: tensor<8x4xf32>) {
  %sum:2 = "chlo.scan"(%x, %c) <{dimension = 1 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%i: tensor<8x4xf32>, %k: tensor<8x4xf32>):
    %s = stablehlo.add %i, %k : tensor<8x4xf32>
    stablehlo.return %s, %s : tensor<8x4xf32>, tensor<8x4xf32>
  }) : (tensor<8x64x4xf32>, tensor<8x4xf32>) -> (tensor<8x64x4xf32>, tensor<8x4xf32>)
  return
}

func.func @mhlo_0(%a: tensor<8x4xf32>, %b: tensor<8x4x2xf32>, %r: tensor<3x4x7xf32>, %g: tensor<3xi64>, %c: tensor<8x2xf32>) {
  %copy = mhlo.copy %a : tensor<8x4xf32>
  %topk:2 = mhlo.topk(%a, k = 2) : tensor<8x4xf32> -> (tensor<8x2xf32>, tensor<8x2xi32>)
  %ragged = "mhlo.ragged_dot"(%a, %r, %g) {ragged_dot_dimension_numbers = #mhlo.ragged_dot<dot_dimension_numbers = #mhlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<8x4xf32>, tensor<3x4x7xf32>, tensor<3xi64>) -> tensor<8x7xf32>
  %scan:2 = "mhlo.scan"(%b, %c) <{dimension = 1 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>}> ({
  ^bb0(%i: tensor<8x2xf32>, %k: tensor<8x2xf32>):
    "mhlo.return"(%i, %k) : (tensor<8x2xf32>, tensor<8x2xf32>) -> ()
  }) : (tensor<8x4x2xf32>, tensor<8x2xf32>) -> (tensor<8x4x2xf32>, tensor<8x2xf32>)
  return
}

func.func @collectives_0(%arg0: tensor<8x4xf32>) {
  %0 = "stablehlo.all_reduce"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %7 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %7 : tensor<f32>
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<8x8xf32>
  %2 = "stablehlo.all_to_all"(%arg0) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<8x4xf32>) -> tensor<16x2xf32>
  %3 = "stablehlo.reduce_scatter"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %7 = stablehlo.add %arg1, %arg2 : tensor<f32>
    stablehlo.return %7 : tensor<f32>
  }) : (tensor<8x4xf32>) -> tensor<4x4xf32>
  %4 = "stablehlo.collective_broadcast"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = "stablehlo.collective_permute"(%arg0) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = "stablehlo.cross-replica-sum"(%arg0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

func.func @contraction_0(%arg0: tensor<2x3x5x7xf32>, %arg1: tensor<5x2x11x7xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [2, 0] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x5x7xf32>, tensor<5x2x11x7xf32>) -> tensor<5x2x3x11xf32>
  return
}

func.func @contraction_1(%arg0: tensor<8x4xf32>, %arg1: tensor<4x2xf32>) {
  %0 = stablehlo.dot %arg0, %arg1 : (tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  return
}

func.func @convolution_0(%arg0: tensor<2x16x16x8xf32>, %arg1: tensor<3x3x8x32xf32>) {
  %0 = stablehlo.convolution(%arg0, %arg1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x16x16x8xf32>, tensor<3x3x8x32xf32>) -> tensor<2x16x16x32xf32>
  return
}

func.func @custom_call_0(%arg0: tensor<8x4xf32>) {
  %0 = stablehlo.custom_call @annotate_device_placement(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.custom_call @Cholesky(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.custom_call @CompactWyHelper(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = stablehlo.custom_call @InspectSharding(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = stablehlo.custom_call @InvertDiagBlocksLowerTriangular(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = stablehlo.custom_call @InvertDiagBlocksUpperTriangular(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = stablehlo.custom_call @LayoutConstraint(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = stablehlo.custom_call @mhlo.erf(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %8 = stablehlo.custom_call @MoveToDevice(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %9 = stablehlo.custom_call @MoveToHost(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %10 = stablehlo.custom_call @X64SplitHigh(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %11 = stablehlo.custom_call @X64SplitLow(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %12 = stablehlo.custom_call @xla.megascale.provide_metadata(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %13 = stablehlo.custom_call @_SPMDInternalOp_MultiPad(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %14 = stablehlo.custom_call @_SPMDInternalOp_RotateRight(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %15 = stablehlo.custom_call @_SPMDInternalOp_MultiRotate(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %16 = stablehlo.custom_call @_SPMDInternalOp_MultiSlice(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %17 = stablehlo.custom_call @_SPMDInternalOp_Wrap(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %18 = stablehlo.custom_call @X64Combine(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %19 = stablehlo.custom_call @PinToDevice(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %20 = stablehlo.custom_call @PinToDeviceSram(%arg0) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  stablehlo.custom_call @dce_sink(%arg0) {has_side_effect = true} : (tensor<8x4xf32>) -> ()
  return
}

func.func @custom_call_2(%arg0: tensor<8x16xf32>, %arg1: tensor<8x16xi32>, %arg2: tensor<f32>, %arg3: tensor<i32>) {
  %0:2 = stablehlo.custom_call @mhlo.topk(%arg0) : (tensor<8x16xf32>) -> (tensor<8x2xf32>, tensor<8x2xi32>)
  %1:2 = stablehlo.custom_call @ApproxTopK(%arg0, %arg1, %arg2, %arg3) : (tensor<8x16xf32>, tensor<8x16xi32>, tensor<f32>, tensor<i32>) -> (tensor<8x2xf32>, tensor<8x2xi32>)
  %2:2 = stablehlo.custom_call @PartialReduce(%arg0, %arg1, %arg2, %arg3) : (tensor<8x16xf32>, tensor<8x16xi32>, tensor<f32>, tensor<i32>) -> (tensor<2x16xf32>, tensor<2x16xi32>)
  return
}

func.func @custom_call_3(%arg0: tensor<2xui32>) {
  %0 = stablehlo.custom_call @X64Combine(%arg0, %arg0) : (tensor<2xui32>, tensor<2xui32>) -> tensor<2xui64>
  %output_state, %output = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8x4xui32>)
  return
}

func.func @elementwise_0(%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<8x4xi32>, %arg3: tensor<f32>, %arg4: tensor<i1>) {
  %0 = stablehlo.abs %arg0 : tensor<8x4xf32>
  %1 = stablehlo.cbrt %arg0 : tensor<8x4xf32>
  %2 = stablehlo.ceil %arg0 : tensor<8x4xf32>
  %3 = stablehlo.cosine %arg0 : tensor<8x4xf32>
  %4 = stablehlo.exponential %arg0 : tensor<8x4xf32>
  %5 = stablehlo.exponential_minus_one %arg0 : tensor<8x4xf32>
  %6 = stablehlo.floor %arg0 : tensor<8x4xf32>
  %7 = stablehlo.log %arg0 : tensor<8x4xf32>
  %8 = stablehlo.log_plus_one %arg0 : tensor<8x4xf32>
  %9 = stablehlo.logistic %arg0 : tensor<8x4xf32>
  %10 = stablehlo.negate %arg0 : tensor<8x4xf32>
  %11 = stablehlo.round_nearest_afz %arg0 : tensor<8x4xf32>
  %12 = stablehlo.round_nearest_even %arg0 : tensor<8x4xf32>
  %13 = stablehlo.rsqrt %arg0 : tensor<8x4xf32>
  %14 = stablehlo.sign %arg0 : tensor<8x4xf32>
  %15 = stablehlo.sine %arg0 : tensor<8x4xf32>
  %16 = stablehlo.sqrt %arg0 : tensor<8x4xf32>
  %17 = stablehlo.tan %arg0 : tensor<8x4xf32>
  %18 = stablehlo.tanh %arg0 : tensor<8x4xf32>
  %19 = stablehlo.add %arg0, %arg1 : tensor<8x4xf32>
  %20 = stablehlo.atan2 %arg0, %arg1 : tensor<8x4xf32>
  %21 = stablehlo.divide %arg0, %arg1 : tensor<8x4xf32>
  %22 = stablehlo.maximum %arg0, %arg1 : tensor<8x4xf32>
  %23 = stablehlo.minimum %arg0, %arg1 : tensor<8x4xf32>
  %24 = stablehlo.multiply %arg0, %arg1 : tensor<8x4xf32>
  %25 = stablehlo.power %arg0, %arg1 : tensor<8x4xf32>
  %26 = stablehlo.remainder %arg0, %arg1 : tensor<8x4xf32>
  %27 = stablehlo.subtract %arg0, %arg1 : tensor<8x4xf32>
  %28 = stablehlo.and %arg2, %arg2 : tensor<8x4xi32>
  %29 = stablehlo.or %arg2, %arg2 : tensor<8x4xi32>
  %30 = stablehlo.shift_left %arg2, %arg2 : tensor<8x4xi32>
  %31 = stablehlo.shift_right_arithmetic %arg2, %arg2 : tensor<8x4xi32>
  %32 = stablehlo.shift_right_logical %arg2, %arg2 : tensor<8x4xi32>
  %33 = stablehlo.xor %arg2, %arg2 : tensor<8x4xi32>
  %34 = stablehlo.not %arg2 : tensor<8x4xi32>
  %35 = stablehlo.popcnt %arg2 : tensor<8x4xi32>
  %36 = stablehlo.count_leading_zeros %arg2 : tensor<8x4xi32>
  %37 = stablehlo.compare LT, %arg0, %arg1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %38 = stablehlo.complex %arg0, %arg1 : tensor<8x4xcomplex<f32>>
  %39 = stablehlo.convert %arg0 : (tensor<8x4xf32>) -> tensor<8x4xbf16>
  %40 = stablehlo.real %38 : (tensor<8x4xcomplex<f32>>) -> tensor<8x4xf32>
  %41 = stablehlo.imag %38 : (tensor<8x4xcomplex<f32>>) -> tensor<8x4xf32>
  %42 = stablehlo.is_finite %arg0 : (tensor<8x4xf32>) -> tensor<8x4xi1>
  %43 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<8x4xf32>
  %44 = stablehlo.clamp %arg3, %arg0, %arg3 : (tensor<f32>, tensor<8x4xf32>, tensor<f32>) -> tensor<8x4xf32>
  %45 = stablehlo.select %arg4, %arg0, %arg1 : tensor<i1>, tensor<8x4xf32>
  return
}

func.func @elementwise_1(%arg0: tensor<8x4xf32>) {
  %0 = stablehlo.bitcast_convert %arg0 : (tensor<8x4xf32>) -> tensor<8x4xui32>
  return
}

func.func @indexing_0(%arg0: tensor<8x4xf32>, %arg1: tensor<8x1xf32>, %arg2: tensor<i32>) {
  %0 = stablehlo.dynamic_slice %arg0, %arg2, %arg2, sizes = [8, 1] : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x1xf32>
  %1 = stablehlo.dynamic_update_slice %arg0, %arg1, %arg2, %arg2 : (tensor<8x4xf32>, tensor<8x1xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
  return
}

func.func @indexing_1(%arg0: tensor<16x8x4xf32>, %arg1: tensor<5x2xi32>) {
  %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<16x8x4xf32>, tensor<5x2xi32>) -> tensor<5x4xf32>
  return
}

func.func @indexing_2(%arg0: tensor<16x8xf32>, %arg1: tensor<5xi32>, %arg2: tensor<5x8xf32>) {
  %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<16x8xf32>, tensor<5xi32>, tensor<5x8xf32>) -> tensor<16x8xf32>
  return
}

func.func @linear_algebra_0(%arg0: tensor<2x8x8xf32>, %arg1: tensor<2x8x3xf32>, %arg2: tensor<2x3x8xf32>, %arg3: tensor<2x6x8xcomplex<f32>>) {
  %0 = stablehlo.cholesky %arg0, lower = true : tensor<2x8x8xf32>
  %1 = "stablehlo.triangular_solve"(%arg0, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x8x8xf32>, tensor<2x8x3xf32>) -> tensor<2x8x3xf32>
  %2 = stablehlo.fft %arg3, type = FFT, length = [8] : (tensor<2x6x8xcomplex<f32>>) -> tensor<2x6x8xcomplex<f32>>
  %3:2 = stablehlo.custom_call @Eigh(%arg0) : (tensor<2x8x8xf32>) -> (tensor<2x8x8xf32>, tensor<2x8xf32>)
  %4:2 = stablehlo.custom_call @Qr(%arg1) : (tensor<2x8x3xf32>) -> (tensor<2x8x3xf32>, tensor<2x3xf32>)
  %5:2 = stablehlo.custom_call @QrDecompositionBlock(%arg2) : (tensor<2x3x8xf32>) -> (tensor<2x3x8xf32>, tensor<2x3xf32>)
  %6 = stablehlo.custom_call @ProductOfElementaryHouseholderReflectors(%arg1, %4#1) : (tensor<2x8x3xf32>, tensor<2x3xf32>) -> tensor<2x8x3xf32>
  return
}

func.func @no_rule_0(%arg0: tensor<8x4xf32>, %arg1: tensor<i32>, %arg2: !stablehlo.token) {
  %cst = stablehlo.constant dense<1.000000e+00> : tensor<8x4xf32>
  %0:2 = stablehlo.optimization_barrier %arg0, %arg2 : tensor<8x4xf32>, !stablehlo.token
  %1:2 = "stablehlo.case"(%arg1) ({
    stablehlo.return %arg0, %arg2 : tensor<8x4xf32>, !stablehlo.token
  }, {
    stablehlo.return %cst, %arg2 : tensor<8x4xf32>, !stablehlo.token
  }) : (tensor<i32>) -> (tensor<8x4xf32>, !stablehlo.token)
  %2:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8x4xf32>, tensor<i32>
  cond {
    %3 = stablehlo.compare LT, %iterArg_0, %arg1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %3 = stablehlo.add %iterArg, %iterArg : tensor<8x4xf32>
    stablehlo.return %3, %iterArg_0 : tensor<8x4xf32>, tensor<i32>
  }
  return
}

func.func @normalization_0(%arg0: tensor<8x4x2xf32>, %arg1: tensor<4xf32>) {
  %0 = "stablehlo.batch_norm_inference"(%arg0, %arg1, %arg1, %arg1, %arg1) <{epsilon = 1.000000e-03 : f32, feature_index = 1 : i64}> : (tensor<8x4x2xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<8x4x2xf32>
  return
}

func.func @reduction_0(%arg0: tensor<2x4x5xf32>, %arg1: tensor<f32>) {
  %0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : (tensor<2x4x5xf32>, tensor<f32>) -> tensor<2x5xf32>
  return
}

func.func @reduction_1(%arg0: tensor<2x3x5xf32>) {
  %0 = "stablehlo.sort"(%arg0) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%arg1: tensor<f32>, %arg2: tensor<f32>):
    %1 = stablehlo.compare LT, %arg1, %arg2 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return
}

func.func @reshape_0(%arg0: tensor<8x4xf32>) {
  %0 = stablehlo.reshape %arg0 : (tensor<8x4xf32>) -> tensor<32xf32>
  return
}

func.func @sdy_0(%arg0: tensor<8x4xf32>) {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {}]> : tensor<8x4xf32>
  %1 = sdy.propagation_barrier %arg0 allowed_direction=FORWARD : tensor<8x4xf32>
  %2 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%arg1: tensor<4x4xf32>) {
    sdy.return %arg1 : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = sdy.named_computation<"g">(%arg0) (%arg1: tensor<8x4xf32>) {
    sdy.return %arg1 : tensor<8x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = sdy.data_flow_edge %3 : tensor<8x4xf32>
  return
}

func.func @shape_0(%arg0: tensor<f32>) {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  return
}

func.func @shape_1(%arg0: tensor<2x3x5xf32>) {
  %0 = stablehlo.transpose %arg0, dims = [2, 0, 1] : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32>
  %1 = stablehlo.reverse %arg0, dims = [0, 2] : tensor<2x3x5xf32>
  return
}

func.func @shape_2(%arg0: tensor<8x4x2xf32>, %arg1: tensor<f32>) {
  %0 = stablehlo.slice %arg0 [0:8, 1:3, 0:2:2] : (tensor<8x4x2xf32>) -> tensor<8x2x1xf32>
  %1 = stablehlo.pad %arg0, %arg1, low = [0, 1, 0], high = [0, 0, 3], interior = [0, 0, 0] : (tensor<8x4x2xf32>, tensor<f32>) -> tensor<8x5x5xf32>
  return
}

func.func @shape_3(%arg0: tensor<8x4xf32>, %arg1: tensor<8x2xf32>) {
  %0 = stablehlo.concatenate %arg0, %arg1, dim = 1 : (tensor<8x4xf32>, tensor<8x2xf32>) -> tensor<8x6xf32>
  return
}

func.func @windows_0(%arg0: tensor<4x8x8xf32>, %arg1: tensor<f32>) {
  %0 = "stablehlo.reduce_window"(%arg0, %arg1) <{window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>}> ({
  ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
    %1 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x4x8xf32>
  return
}

func.func @windows_1(%arg0: tensor<4x8x8xf32>, %arg1: tensor<4x4x8xf32>, %arg2: tensor<f32>) {
  %0 = "stablehlo.select_and_scatter"(%arg0, %arg1, %arg2) <{window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>}> ({
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.compare GE, %arg3, %arg4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%arg3: tensor<f32>, %arg4: tensor<f32>):
    %1 = stablehlo.add %arg3, %arg4 : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8x8xf32>, tensor<4x4x8xf32>, tensor<f32>) -> tensor<4x8x8xf32>
  return
}

func.func @arith_0(%a: tensor<8x4xf32>, %i: tensor<8x4xi32>, %p: tensor<8x4xi1>, %h: tensor<8x4xf16>, %bit: i1, %s: tensor<8x4xi8>, %index: tensor<8x4xindex>, %l: tensor<8x4xi64>, %d: tensor<8x4xf64>) {
  %c = arith.constant dense<1.0> : tensor<8x4xf32>
  %1 = "arith.addf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "arith.divf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = "arith.maximumf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = "arith.maxnumf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = "arith.minimumf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = "arith.minnumf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = "arith.mulf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %8 = "arith.remf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %9 = "arith.subf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %10 = "arith.negf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %11 = "arith.addi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %12 = "arith.andi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %13 = "arith.ceildivsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %14 = "arith.ceildivui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %15 = "arith.divsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %16 = "arith.divui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %17 = "arith.floordivsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %18 = "arith.maxsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %19 = "arith.maxui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %20 = "arith.minsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %21 = "arith.minui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %22 = "arith.muli"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %23 = "arith.ori"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %24 = "arith.remsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %25 = "arith.remui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %26 = "arith.shli"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %27 = "arith.shrsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %28 = "arith.shrui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %29 = "arith.subi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %30 = "arith.xori"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %31:2 = "arith.addui_extended"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> (tensor<8x4xi32>, tensor<8x4xi1>)
  %32:2 = "arith.mulsi_extended"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> (tensor<8x4xi32>, tensor<8x4xi32>)
  %33:2 = "arith.mului_extended"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> (tensor<8x4xi32>, tensor<8x4xi32>)
  %34 = "arith.cmpf"(%a, %a) {predicate = 1 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %35 = "arith.cmpi"(%i, %i) {predicate = 0 : i64} : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi1>
  %36 = "arith.bitcast"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi32>
  %37 = "arith.extf"(%h) : (tensor<8x4xf16>) -> tensor<8x4xf32>
  %38 = "arith.extsi"(%s) : (tensor<8x4xi8>) -> tensor<8x4xi32>
  %39 = "arith.extui"(%s) : (tensor<8x4xi8>) -> tensor<8x4xi32>
  %40 = "arith.fptosi"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi32>
  %41 = "arith.fptoui"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi32>
  %42 = "arith.index_cast"(%index) : (tensor<8x4xindex>) -> tensor<8x4xi32>
  %43 = "arith.index_castui"(%index) : (tensor<8x4xindex>) -> tensor<8x4xi32>
  %44 = "arith.sitofp"(%i) : (tensor<8x4xi32>) -> tensor<8x4xf32>
  %45 = "arith.uitofp"(%i) : (tensor<8x4xi32>) -> tensor<8x4xf32>
  %46 = "arith.truncf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf16>
  %47 = "arith.trunci"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi8>
  %48 = "arith.select"(%p, %a, %a) : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %scalar = arith.select %bit, %a, %a : tensor<8x4xf32>
  return
}

func.func @linalg_0(%a: tensor<8x4xf32>, %p: tensor<8x4xi1>, %x: f32, %row: tensor<4xf32>, %m: tensor<4x8xf32>) {
  %1 = "linalg.abs"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "linalg.ceil"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = "linalg.copy"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = "linalg.erf"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = "linalg.exp"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = "linalg.floor"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = "linalg.log"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %8 = "linalg.negf"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %9 = "linalg.reciprocal"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %10 = "linalg.round"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %11 = "linalg.rsqrt"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %12 = "linalg.sqrt"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %13 = "linalg.square"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %14 = "linalg.tanh"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %15 = "linalg.add"(%a, %a, %a) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %16 = "linalg.div"(%a, %a, %a) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %17 = "linalg.div_unsigned"(%a, %a, %a) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %18 = "linalg.max"(%a, %a, %a) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %19 = "linalg.min"(%a, %a, %a) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %20 = "linalg.mul"(%a, %a, %a) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %21 = "linalg.powf"(%a, %a, %a) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %22 = "linalg.sub"(%a, %a, %a) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %23 = "linalg.select"(%p, %a, %a, %a) ({
  ^bb0(%b0: i1, %b1: f32, %b2: f32, %b3: f32):
    "linalg.yield"(%b3) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 3, 1>} : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %24 = "linalg.elementwise"(%a, %row, %a) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], kind = "add", operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %25 = "linalg.map"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %26 = "linalg.fill"(%x, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<8x4xf32>) -> tensor<8x4xf32>
  %27 = "linalg.transpose"(%m, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {permutation = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %28 = "linalg.broadcast"(%row, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {dimensions = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %softmax = "linalg.softmax"(%a, %a) {dimension = 1 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return
}

func.func @linalg_1(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x32xf32>, %v: tensor<8xf32>, %s: tensor<f32>, %w: tensor<3xf32>, %l: tensor<10xf32>, %q: tensor<8x8xf32>, %r: tensor<128xf32>, %i: tensor<8x16xi32>) {
  %29 = "linalg.generic"(%a, %b, %c) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %30 = "linalg.generic"(%a, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %31 = "linalg.generic"(%a, %v) ({
  ^bb0(%b0: f32, %b1: f32):
    %m = arith.maximumf %b0, %b1 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xf32>, tensor<8xf32>) -> tensor<8xf32>
  %32 = "linalg.generic"(%a, %v) ({
  ^bb0(%b0: f32, %b1: f32):
    %m = arith.subf %b0, %b1 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xf32>, tensor<8xf32>) -> tensor<8xf32>
  %33 = "linalg.generic"(%a, %s) ({
  ^bb0(%b0: f32, %b1: f32):
    %m = arith.addf %b0, %b1 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>], iterator_types = [#linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
  %34 = "linalg.generic"(%l, %w, %v) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0 + d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<10xf32>, tensor<3xf32>, tensor<8xf32>) -> tensor<8xf32>
  %35 = "linalg.generic"(%q, %v) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0, d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %36 = "linalg.generic"(%r, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0 * 16 + d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<128xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %37 = "linalg.generic"(%r, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0 floordiv 2)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<128xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %38 = "linalg.generic"(%v, %a) ({
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %39 = "linalg.generic"(%i, %i) ({
  ^bb0(%b0: i32, %b1: i32):
    %m = "linalg.index"() {dim = 1 : i64} : () -> index
    %n = arith.index_cast %m : index to i32
    "linalg.yield"(%n) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xi32>, tensor<8x16xi32>) -> tensor<8x16xi32>
  %40 = "linalg.contract"(%a, %b, %c) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %41 = "linalg.reduce"(%a, %v) ({
  ^bb0(%b0: f32, %b1: f32):
    %m = arith.addf %b0, %b1 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dimensions = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xf32>, tensor<8xf32>) -> tensor<8xf32>
  %42 = "linalg.matmul"(%a, %b, %c) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %43 = "linalg.matmul"(%a, %c, %b) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16xf32>, tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  return
}

func.func @linalg_2(%t2_8_16: tensor<2x8x16xf32>, %t2_16_32: tensor<2x16x32xf32>, %t2_8_32: tensor<2x8x32xf32>, %t2_16: tensor<2x16xf32>, %t2_8: tensor<2x8xf32>, %t2_3_5_8_4: tensor<2x3x5x8x4xf32>, %t2_7_5_6_4: tensor<2x7x5x6x4xf32>, %t2_3_7_8_6: tensor<2x3x7x8x6xf32>, %t8_32: tensor<8x32xf32>, %t2_32: tensor<2x32xf32>, %t16: tensor<16xf32>, %t: tensor<f32>, %t8_16: tensor<8x16xf32>, %t8: tensor<8xf32>, %t3_5_8_4: tensor<3x5x8x4xf32>, %t7_5_6_4: tensor<7x5x6x4xf32>, %t3_7_8_6: tensor<3x7x8x6xf32>, %t16_32: tensor<16x32xf32>, %t32: tensor<32xf32>, %zp: i32, %ia: tensor<8x16xi8>, %ib: tensor<16x32xi8>, %ic: tensor<8x32xi32>, %ba: tensor<2x8x16xi8>, %bb: tensor<2x16x32xi8>, %bc: tensor<2x8x32xi32>, %t20: tensor<20xf32>, %t3: tensor<3xf32>, %t18: tensor<18xf32>, %t2_8_20: tensor<2x8x20xf32>, %t32_8_3: tensor<32x8x3xf32>, %t2_32_18: tensor<2x32x18xf32>, %t2_20_8: tensor<2x20x8xf32>, %t3_8_32: tensor<3x8x32xf32>, %t2_18_32: tensor<2x18x32xf32>, %t18_20: tensor<18x20xf32>, %t3_3: tensor<3x3xf32>, %t16_18: tensor<16x18xf32>, %t2_8_18_20: tensor<2x8x18x20xf32>, %t32_8_3_3: tensor<32x8x3x3xf32>, %t2_32_16_18: tensor<2x32x16x18xf32>, %t2_4_8_18_20: tensor<2x4x8x18x20xf32>, %t32_4_8_3_3: tensor<32x4x8x3x3xf32>, %t2_4_32_16_18: tensor<2x4x32x16x18xf32>, %t4_32_8_3_3: tensor<4x32x8x3x3xf32>, %t2_18_20_8: tensor<2x18x20x8xf32>, %t32_3_3_8: tensor<32x3x3x8xf32>, %t2_16_18_32: tensor<2x16x18x32xf32>, %t3_3_8_32: tensor<3x3x8x32xf32>, %t2_18_20_4_8: tensor<2x18x20x4x8xf32>, %t4_32_3_3_8: tensor<4x32x3x3x8xf32>, %t2_16_18_4_32: tensor<2x16x18x4x32xf32>, %t12_18_20: tensor<12x18x20xf32>, %t3_3_3: tensor<3x3x3xf32>, %t10_16_18: tensor<10x16x18xf32>, %t2_8_12_18_20: tensor<2x8x12x18x20xf32>, %t32_8_3_3_3: tensor<32x8x3x3x3xf32>, %t2_32_10_16_18: tensor<2x32x10x16x18xf32>, %t2_12_18_20_8: tensor<2x12x18x20x8xf32>, %t3_3_3_8_32: tensor<3x3x3x8x32xf32>, %t2_10_16_18_32: tensor<2x10x16x18x32xf32>, %t8_3: tensor<8x3xf32>, %t2_8_18: tensor<2x8x18xf32>, %t3_8: tensor<3x8xf32>, %t2_18_8: tensor<2x18x8xf32>, %t3_8_6: tensor<3x8x6xf32>, %t2_18_8_6: tensor<2x18x8x6xf32>, %t8_3_3: tensor<8x3x3xf32>, %t2_8_16_18: tensor<2x8x16x18xf32>, %t3_3_8: tensor<3x3x8xf32>, %t2_16_18_8: tensor<2x16x18x8xf32>, %t3_3_8_6: tensor<3x3x8x6xf32>, %t2_16_18_8_6: tensor<2x16x18x8x6xf32>, %t8_3_3_3: tensor<8x3x3x3xf32>, %t2_8_10_16_18: tensor<2x8x10x16x18xf32>, %t3_3_3_8: tensor<3x3x3x8xf32>, %t2_10_16_18_8: tensor<2x10x16x18x8xf32>, %t3_3_3_8_6: tensor<3x3x3x8x6xf32>, %t2_10_16_18_8_6: tensor<2x10x16x18x8x6xf32>) {
  %44 = "linalg.batch_matmul"(%t2_8_16, %t2_16_32, %t2_8_32) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x16xf32>, tensor<2x16x32xf32>, tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
  %45 = "linalg.batch_matvec"(%t2_8_16, %t2_16, %t2_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x16xf32>, tensor<2x16xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %46 = "linalg.batch_mmt4d"(%t2_3_5_8_4, %t2_7_5_6_4, %t2_3_7_8_6) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x3x5x8x4xf32>, tensor<2x7x5x6x4xf32>, tensor<2x3x7x8x6xf32>) -> tensor<2x3x7x8x6xf32>
  %47 = "linalg.batch_reduce_matmul"(%t2_8_16, %t2_16_32, %t8_32) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x16xf32>, tensor<2x16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %48 = "linalg.batch_vecmat"(%t2_16, %t2_16_32, %t2_32) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x16xf32>, tensor<2x16x32xf32>, tensor<2x32xf32>) -> tensor<2x32xf32>
  %49 = "linalg.dot"(%t16, %t16, %t) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %50 = "linalg.matvec"(%t8_16, %t16, %t8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16xf32>, tensor<16xf32>, tensor<8xf32>) -> tensor<8xf32>
  %51 = "linalg.mmt4d"(%t3_5_8_4, %t7_5_6_4, %t3_7_8_6) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<3x5x8x4xf32>, tensor<7x5x6x4xf32>, tensor<3x7x8x6xf32>) -> tensor<3x7x8x6xf32>
  %52 = "linalg.vecmat"(%t16, %t16_32, %t32) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %53 = "linalg.quantized_matmul"(%ia, %ib, %zp, %zp, %ic) ({
  ^bb0(%b0: i8, %b1: i8, %b2: i32, %b3: i32, %b4: i32):
    "linalg.yield"(%b4) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 4, 1>} : (tensor<8x16xi8>, tensor<16x32xi8>, i32, i32, tensor<8x32xi32>) -> tensor<8x32xi32>
  %54 = "linalg.quantized_batch_matmul"(%ba, %bb, %zp, %zp, %bc) ({
  ^bb0(%b0: i8, %b1: i8, %b2: i32, %b3: i32, %b4: i32):
    "linalg.yield"(%b4) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 4, 1>} : (tensor<2x8x16xi8>, tensor<2x16x32xi8>, i32, i32, tensor<2x8x32xi32>) -> tensor<2x8x32xi32>
  %55 = "linalg.conv_1d"(%t20, %t3, %t18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<20xf32>, tensor<3xf32>, tensor<18xf32>) -> tensor<18xf32>
  %56 = "linalg.conv_1d_ncw_fcw"(%t2_8_20, %t32_8_3, %t2_32_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x20xf32>, tensor<32x8x3xf32>, tensor<2x32x18xf32>) -> tensor<2x32x18xf32>
  %57 = "linalg.conv_1d_nwc_wcf"(%t2_20_8, %t3_8_32, %t2_18_32) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3x8x32xf32>, tensor<2x18x32xf32>) -> tensor<2x18x32xf32>
  %58 = "linalg.conv_2d"(%t18_20, %t3_3, %t16_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<18x20xf32>, tensor<3x3xf32>, tensor<16x18xf32>) -> tensor<16x18xf32>
  %59 = "linalg.conv_2d_nchw_fchw"(%t2_8_18_20, %t32_8_3_3, %t2_32_16_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x18x20xf32>, tensor<32x8x3x3xf32>, tensor<2x32x16x18xf32>) -> tensor<2x32x16x18xf32>
  %60 = "linalg.conv_2d_ngchw_fgchw"(%t2_4_8_18_20, %t32_4_8_3_3, %t2_4_32_16_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x4x8x18x20xf32>, tensor<32x4x8x3x3xf32>, tensor<2x4x32x16x18xf32>) -> tensor<2x4x32x16x18xf32>
  %61 = "linalg.conv_2d_ngchw_gfchw"(%t2_4_8_18_20, %t4_32_8_3_3, %t2_4_32_16_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x4x8x18x20xf32>, tensor<4x32x8x3x3xf32>, tensor<2x4x32x16x18xf32>) -> tensor<2x4x32x16x18xf32>
  %62 = "linalg.conv_2d_nhwc_fhwc"(%t2_18_20_8, %t32_3_3_8, %t2_16_18_32) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<32x3x3x8xf32>, tensor<2x16x18x32xf32>) -> tensor<2x16x18x32xf32>
  %63 = "linalg.conv_2d_nhwc_hwcf"(%t2_18_20_8, %t3_3_8_32, %t2_16_18_32) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3x8x32xf32>, tensor<2x16x18x32xf32>) -> tensor<2x16x18x32xf32>
  %64 = "linalg.conv_2d_nhwgc_gfhwc"(%t2_18_20_4_8, %t4_32_3_3_8, %t2_16_18_4_32) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x4x8xf32>, tensor<4x32x3x3x8xf32>, tensor<2x16x18x4x32xf32>) -> tensor<2x16x18x4x32xf32>
  %65 = "linalg.conv_3d"(%t12_18_20, %t3_3_3, %t10_16_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<12x18x20xf32>, tensor<3x3x3xf32>, tensor<10x16x18xf32>) -> tensor<10x16x18xf32>
  %66 = "linalg.conv_3d_ncdhw_fcdhw"(%t2_8_12_18_20, %t32_8_3_3_3, %t2_32_10_16_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x12x18x20xf32>, tensor<32x8x3x3x3xf32>, tensor<2x32x10x16x18xf32>) -> tensor<2x32x10x16x18xf32>
  %67 = "linalg.conv_3d_ndhwc_dhwcf"(%t2_12_18_20_8, %t3_3_3_8_32, %t2_10_16_18_32) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3x8x32xf32>, tensor<2x10x16x18x32xf32>) -> tensor<2x10x16x18x32xf32>
  %68 = "linalg.depthwise_conv_1d_ncw_cw"(%t2_8_20, %t8_3, %t2_8_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x20xf32>, tensor<8x3xf32>, tensor<2x8x18xf32>) -> tensor<2x8x18xf32>
  %69 = "linalg.depthwise_conv_1d_nwc_wc"(%t2_20_8, %t3_8, %t2_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3x8xf32>, tensor<2x18x8xf32>) -> tensor<2x18x8xf32>
  %70 = "linalg.depthwise_conv_1d_nwc_wcm"(%t2_20_8, %t3_8_6, %t2_18_8_6) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3x8x6xf32>, tensor<2x18x8x6xf32>) -> tensor<2x18x8x6xf32>
  %71 = "linalg.depthwise_conv_2d_nchw_chw"(%t2_8_18_20, %t8_3_3, %t2_8_16_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x18x20xf32>, tensor<8x3x3xf32>, tensor<2x8x16x18xf32>) -> tensor<2x8x16x18xf32>
  %72 = "linalg.depthwise_conv_2d_nhwc_hwc"(%t2_18_20_8, %t3_3_8, %t2_16_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3x8xf32>, tensor<2x16x18x8xf32>) -> tensor<2x16x18x8xf32>
  %73 = "linalg.depthwise_conv_2d_nhwc_hwcm"(%t2_18_20_8, %t3_3_8_6, %t2_16_18_8_6) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3x8x6xf32>, tensor<2x16x18x8x6xf32>) -> tensor<2x16x18x8x6xf32>
  %74 = "linalg.depthwise_conv_3d_ncdhw_cdhw"(%t2_8_12_18_20, %t8_3_3_3, %t2_8_10_16_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x12x18x20xf32>, tensor<8x3x3x3xf32>, tensor<2x8x10x16x18xf32>) -> tensor<2x8x10x16x18xf32>
  %75 = "linalg.depthwise_conv_3d_ndhwc_dhwc"(%t2_12_18_20_8, %t3_3_3_8, %t2_10_16_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3x8xf32>, tensor<2x10x16x18x8xf32>) -> tensor<2x10x16x18x8xf32>
  %76 = "linalg.depthwise_conv_3d_ndhwc_dhwcm"(%t2_12_18_20_8, %t3_3_3_8_6, %t2_10_16_18_8_6) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3x8x6xf32>, tensor<2x10x16x18x8x6xf32>) -> tensor<2x10x16x18x8x6xf32>
  %77 = "linalg.pooling_ncw_max"(%t2_8_20, %t3, %t2_8_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.maximumf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x20xf32>, tensor<3xf32>, tensor<2x8x18xf32>) -> tensor<2x8x18xf32>
  %78 = "linalg.pooling_ncw_sum"(%t2_8_20, %t3, %t2_8_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.addf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x20xf32>, tensor<3xf32>, tensor<2x8x18xf32>) -> tensor<2x8x18xf32>
  %79 = "linalg.pooling_nwc_max"(%t2_20_8, %t3, %t2_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.maximumf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3xf32>, tensor<2x18x8xf32>) -> tensor<2x18x8xf32>
  %80 = "linalg.pooling_nwc_min"(%t2_20_8, %t3, %t2_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.minimumf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3xf32>, tensor<2x18x8xf32>) -> tensor<2x18x8xf32>
  %81 = "linalg.pooling_nwc_sum"(%t2_20_8, %t3, %t2_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.addf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3xf32>, tensor<2x18x8xf32>) -> tensor<2x18x8xf32>
  %82 = "linalg.pooling_nchw_max"(%t2_8_18_20, %t3_3, %t2_8_16_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.maximumf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x18x20xf32>, tensor<3x3xf32>, tensor<2x8x16x18xf32>) -> tensor<2x8x16x18xf32>
  %83 = "linalg.pooling_nchw_sum"(%t2_8_18_20, %t3_3, %t2_8_16_18) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.addf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x18x20xf32>, tensor<3x3xf32>, tensor<2x8x16x18xf32>) -> tensor<2x8x16x18xf32>
  %84 = "linalg.pooling_nhwc_max"(%t2_18_20_8, %t3_3, %t2_16_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.maximumf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3xf32>, tensor<2x16x18x8xf32>) -> tensor<2x16x18x8xf32>
  %85 = "linalg.pooling_nhwc_min"(%t2_18_20_8, %t3_3, %t2_16_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.minimumf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3xf32>, tensor<2x16x18x8xf32>) -> tensor<2x16x18x8xf32>
  %86 = "linalg.pooling_nhwc_sum"(%t2_18_20_8, %t3_3, %t2_16_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.addf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3xf32>, tensor<2x16x18x8xf32>) -> tensor<2x16x18x8xf32>
  %87 = "linalg.pooling_ndhwc_max"(%t2_12_18_20_8, %t3_3_3, %t2_10_16_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.maximumf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3xf32>, tensor<2x10x16x18x8xf32>) -> tensor<2x10x16x18x8xf32>
  %88 = "linalg.pooling_ndhwc_min"(%t2_12_18_20_8, %t3_3_3, %t2_10_16_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.minimumf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3xf32>, tensor<2x10x16x18x8xf32>) -> tensor<2x10x16x18x8xf32>
  %89 = "linalg.pooling_ndhwc_sum"(%t2_12_18_20_8, %t3_3_3, %t2_10_16_18_8) ({
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.addf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3xf32>, tensor<2x10x16x18x8xf32>) -> tensor<2x10x16x18x8xf32>
  return
}

func.func @math_0(%a: tensor<8x4xf32>, %i: tensor<8x4xi32>) {
  %1 = "math.absf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "math.acos"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = "math.acosh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = "math.asin"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = "math.asinh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = "math.atan"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = "math.atanh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %8 = "math.cbrt"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %9 = "math.ceil"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %10 = "math.cos"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %11 = "math.cosh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %12 = "math.erf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %13 = "math.erfc"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %14 = "math.exp"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %15 = "math.exp2"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %16 = "math.expm1"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %17 = "math.floor"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %18 = "math.log"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %19 = "math.log10"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %20 = "math.log1p"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %21 = "math.log2"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %22 = "math.round"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %23 = "math.roundeven"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %24 = "math.rsqrt"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %25 = "math.sin"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %26 = "math.sinh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %27 = "math.sqrt"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %28 = "math.tan"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %29 = "math.tanh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %30 = "math.trunc"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %31 = "math.absi"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>
  %32 = "math.ctlz"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>
  %33 = "math.ctpop"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>
  %34 = "math.cttz"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>
  %35 = "math.atan2"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %36 = "math.copysign"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %37 = "math.powf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %38 = "math.ipowi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %39 = "math.fpowi"(%a, %i) : (tensor<8x4xf32>, tensor<8x4xi32>) -> tensor<8x4xf32>
  %40 = "math.fma"(%a, %a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %41 = "math.clampf"(%a, %a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %42 = "math.isfinite"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi1>
  %43 = "math.isinf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi1>
  %44 = "math.isnan"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi1>
  %45 = "math.isnormal"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi1>
  %46:2 = "math.sincos"(%a) : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  return
}

func.func @tensor_0(%a: tensor<8x4x6xf32>, %x: f32, %i: index, %m: tensor<8x24xf32>, %d: tensor<2xindex>, %s: tensor<8x2x6xf32>, %row: tensor<4x6xf32>) {
  %0 = tensor.empty() : tensor<8x4xf32>
  %1 = tensor.splat %x : tensor<8x4xf32>
  %2 = tensor.from_elements %x, %x : tensor<2xf32>
  %3 = tensor.expand_shape %m [[0], [1, 2]] output_shape [8, 4, 6] : tensor<8x24xf32> into tensor<8x4x6xf32>
  %4 = tensor.collapse_shape %a [[0], [1, 2]] : tensor<8x4x6xf32> into tensor<8x24xf32>
  %5 = tensor.reshape %m(%d) : (tensor<8x24xf32>, tensor<2xindex>) -> tensor<32x6xf32>
  %6 = tensor.bitcast %a : tensor<8x4x6xf32> to tensor<8x4x6xi32>
  %7 = tensor.cast %a : tensor<8x4x6xf32> to tensor<8x4x6xf32>
  %8 = tensor.concat dim(1) %a, %s : (tensor<8x4x6xf32>, tensor<8x2x6xf32>) -> tensor<8x6x6xf32>
  %9 = tensor.pad %a low[0, 1, 0] high[0, 1, 0] {
  ^bb0(%j: index, %k: index, %l: index):
    tensor.yield %x : f32
  } : tensor<8x4x6xf32> to tensor<8x6x6xf32>
  %10 = tensor.extract_slice %a[0, 1, 0] [8, 2, 6] [1, 1, 1] : tensor<8x4x6xf32> to tensor<8x2x6xf32>
  %11 = tensor.extract_slice %a[%i, 0, 0] [1, 4, 6] [1, 1, 1] : tensor<8x4x6xf32> to tensor<4x6xf32>
  %12 = tensor.insert_slice %s into %a[0, 1, 0] [8, 2, 6] [1, 1, 1] : tensor<8x2x6xf32> into tensor<8x4x6xf32>
  %13 = tensor.insert_slice %row into %a[0, 0, 0] [1, 4, 6] [1, 1, 1] : tensor<4x6xf32> into tensor<8x4x6xf32>
  %14 = tensor.extract %a[%i, %i, %i] : tensor<8x4x6xf32>
  %15 = tensor.insert %x into %a[%i, %i, %i] : tensor<8x4x6xf32>
  %16 = tensor.dim %a, %i : tensor<8x4x6xf32>
  %17 = tensor.rank %a : tensor<8x4x6xf32>
  %indices = tensor.empty() : tensor<10x1xindex>
  %20 = tensor.gather %a[%indices] gather_dims([1]) : (tensor<8x4x6xf32>, tensor<10x1xindex>) -> tensor<10x8x6xf32>
  %21 = affine.apply affine_map<(d0) -> (d0 * 2)>(%i)
  %18 = "bufferization.alloc_tensor"() {operandSegmentSizes = array<i32: 0, 0, 0>} : () -> tensor<8x4xf32>
  %19 = "bufferization.materialize_in_destination"(%a, %a) : (tensor<8x4x6xf32>, tensor<8x4x6xf32>) -> tensor<8x4x6xf32>
  return
}

func.func @tosa_0(%a: tensor<8x4xf32>, %i: tensor<8x4xi32>, %p: tensor<8x4xi1>, %row: tensor<1x4xf32>, %one: tensor<1x1xf32>, %z: tensor<1xf32>, %shift: tensor<1xi8>, %s: tensor<8x4xi8>, %zi: tensor<1xi8>, %zo: tensor<1xi32>, %lut: tensor<512xi16>, %h: tensor<8x4xi16>, %m: tensor<4xi32>, %sm: tensor<4xi8>) {
  %1 = "tosa.abs"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "tosa.ceil"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = "tosa.cos"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = "tosa.erf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = "tosa.exp"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = "tosa.floor"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = "tosa.identity"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %8 = "tosa.log"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %9 = "tosa.reciprocal"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %10 = "tosa.rsqrt"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %11 = "tosa.sigmoid"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %12 = "tosa.sin"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %13 = "tosa.tanh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %14 = "tosa.clamp"(%a) {max_val = 1.0 : f32, min_val = 0.0 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %15 = "tosa.negate"(%a, %z, %z) : (tensor<8x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<8x4xf32>
  %16 = "tosa.bitwise_not"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>
  %17 = "tosa.clz"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>
  %18 = "tosa.logical_not"(%p) : (tensor<8x4xi1>) -> tensor<8x4xi1>
  %19 = "tosa.add"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %20 = "tosa.maximum"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %21 = "tosa.minimum"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %22 = "tosa.pow"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %23 = "tosa.sub"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %24 = "tosa.add"(%row, %a) : (tensor<1x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %25 = "tosa.sub"(%a, %one) : (tensor<8x4xf32>, tensor<1x1xf32>) -> tensor<8x4xf32>
  %26 = "tosa.add"(%row, %one) : (tensor<1x4xf32>, tensor<1x1xf32>) -> tensor<1x4xf32>
  %27 = "tosa.mul"(%a, %row, %shift) : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<1xi8>) -> tensor<8x4xf32>
  %28 = "tosa.arithmetic_right_shift"(%i, %i) {round = false} : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %29 = "tosa.bitwise_and"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %30 = "tosa.bitwise_or"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %31 = "tosa.bitwise_xor"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %32 = "tosa.intdiv"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %33 = "tosa.logical_left_shift"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %34 = "tosa.logical_right_shift"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %35 = "tosa.int_div"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %36 = "tosa.div"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>
  %37 = "tosa.logical_and"(%p, %p) : (tensor<8x4xi1>, tensor<8x4xi1>) -> tensor<8x4xi1>
  %38 = "tosa.logical_or"(%p, %p) : (tensor<8x4xi1>, tensor<8x4xi1>) -> tensor<8x4xi1>
  %39 = "tosa.logical_xor"(%p, %p) : (tensor<8x4xi1>, tensor<8x4xi1>) -> tensor<8x4xi1>
  %40 = "tosa.equal"(%a, %row) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xi1>
  %41 = "tosa.greater"(%a, %row) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xi1>
  %42 = "tosa.greater_equal"(%a, %row) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xi1>
  %43 = "tosa.select"(%p, %a, %row) : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  %44 = "tosa.cast"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi32>
  %45 = "tosa.apply_scale"(%i, %i, %s) {rounding_mode = "SINGLE_ROUND"} : (tensor<8x4xi32>, tensor<8x4xi32>, tensor<8x4xi8>) -> tensor<8x4xi32>
  %46 = "tosa.table"(%h, %lut) : (tensor<8x4xi16>, tensor<512xi16>) -> tensor<8x4xi32>
  %47 = "tosa.rescale"(%i, %m, %sm, %zo, %zi) {per_channel = true, rounding_mode = "SINGLE_ROUND", scale32 = true, input_unsigned = false, output_unsigned = false} : (tensor<8x4xi32>, tensor<4xi32>, tensor<4xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<8x4xi8>
  return
}

func.func @tosa_1(%a: tensor<2x8x16xf32>, %b: tensor<2x16x32xf32>, %t: tensor<2x32x16xf32>, %z: tensor<1xf32>, %x: tensor<2x16x16x8xf32>, %k: tensor<32x3x3x8xf32>, %v: tensor<2x16x16x16x8xf32>, %kv: tensor<32x3x3x3x8xf32>, %dk: tensor<3x3x8x4xf32>, %bias: tensor<32xf32>, %one: tensor<1xf32>, %k1: tensor<32x1x1x8xf32>, %q: tensor<8x16xf32>, %r: tensor<32x16xf32>) {
  %48 = "tosa.matmul"(%a, %b, %z, %z) : (tensor<2x8x16xf32>, tensor<2x16x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x32xf32>
  %49 = "tosa.matmul"(%a, %b) : (tensor<2x8x16xf32>, tensor<2x16x32xf32>) -> tensor<2x8x32xf32>
  %50 = "tosa.matmul_t"(%a, %t, %z, %z) : (tensor<2x8x16xf32>, tensor<2x32x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x32xf32>
  %51 = "tosa.conv2d"(%x, %k, %bias, %z, %z) {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<2x16x16x8xf32>, tensor<32x3x3x8xf32>, tensor<32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x16x16x32xf32>
  %52 = "tosa.conv2d"(%x, %k1, %one, %z, %z) {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x16x16x8xf32>, tensor<32x1x1x8xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x16x16x32xf32>
  %53 = "tosa.conv3d"(%v, %kv, %bias, %z, %z) {acc_type = f32, dilation = array<i64: 1, 1, 1>, pad = array<i64: 1, 1, 1, 1, 1, 1>, stride = array<i64: 1, 1, 1>} : (tensor<2x16x16x16x8xf32>, tensor<32x3x3x3x8xf32>, tensor<32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x16x16x16x32xf32>
  %54 = "tosa.depthwise_conv2d"(%x, %dk, %bias, %z, %z) {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<2x16x16x8xf32>, tensor<3x3x8x4xf32>, tensor<32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x16x16x32xf32>
  %55 = "tosa.transpose_conv2d"(%x, %k, %bias, %z, %z) {acc_type = f32, out_pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x16x16x8xf32>, tensor<32x3x3x8xf32>, tensor<32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x18x18x32xf32>
  %56 = "tosa.fully_connected"(%q, %r, %bias) : (tensor<8x16xf32>, tensor<32x16xf32>, tensor<32xf32>) -> tensor<8x32xf32>
  %57 = "tosa.max_pool2d"(%x) {kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>} : (tensor<2x16x16x8xf32>) -> tensor<2x8x8x8xf32>
  %58 = "tosa.avg_pool2d"(%x, %z, %z) {acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>} : (tensor<2x16x16x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x8x8xf32>
  return
}

func.func @tosa_2(%a: tensor<8x4x6xf32>, %p: tensor<8x4x6xi1>, %two: !tosa.shape<2>, %three: !tosa.shape<3>, %six: !tosa.shape<6>, %z: tensor<1xf32>, %v: tensor<2x8x6xf32>, %i: tensor<2x4xi32>, %u: tensor<2x4x6xf32>, %x: tensor<2x16x16x8xf32>, %four: !tosa.shape<4>, %w: tensor<8x4x1xf32>) {
  %59 = "tosa.reduce_max"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x1x6xf32>
  %60 = "tosa.reduce_min"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x1x6xf32>
  %61 = "tosa.reduce_prod"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x1x6xf32>
  %62 = "tosa.reduce_product"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x1x6xf32>
  %63 = "tosa.reduce_sum"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x1x6xf32>
  %64 = "tosa.reduce_all"(%p) {axis = 2 : i32} : (tensor<8x4x6xi1>) -> tensor<8x4x1xi1>
  %65 = "tosa.reduce_any"(%p) {axis = 2 : i32} : (tensor<8x4x6xi1>) -> tensor<8x4x1xi1>
  %66 = "tosa.argmax"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x6xi32>
  %67 = "tosa.reshape"(%a, %two) : (tensor<8x4x6xf32>, !tosa.shape<2>) -> tensor<32x6xf32>
  %68 = "tosa.reshape"(%a) {new_shape = array<i64: 8, 24>} : (tensor<8x4x6xf32>) -> tensor<8x24xf32>
  %69 = "tosa.transpose"(%a) {perms = array<i32: 2, 0, 1>} : (tensor<8x4x6xf32>) -> tensor<6x8x4xf32>
  %70 = "tosa.concat"(%a, %a) {axis = 1 : i32} : (tensor<8x4x6xf32>, tensor<8x4x6xf32>) -> tensor<8x8x6xf32>
  %71 = "tosa.pad"(%a, %six, %z) : (tensor<8x4x6xf32>, !tosa.shape<6>, tensor<1xf32>) -> tensor<8x6x6xf32>
  %72 = "tosa.slice"(%a, %three, %three) : (tensor<8x4x6xf32>, !tosa.shape<3>, !tosa.shape<3>) -> tensor<8x4x3xf32>
  %73 = "tosa.reverse"(%a) {axis = 0 : i32} : (tensor<8x4x6xf32>) -> tensor<8x4x6xf32>
  %74 = "tosa.tile"(%a, %three) : (tensor<8x4x6xf32>, !tosa.shape<3>) -> tensor<8x8x6xf32>
  %75 = "tosa.gather"(%v, %i) : (tensor<2x8x6xf32>, tensor<2x4xi32>) -> tensor<2x4x6xf32>
  %76 = "tosa.scatter"(%v, %i, %u) : (tensor<2x8x6xf32>, tensor<2x4xi32>, tensor<2x4x6xf32>) -> tensor<2x8x6xf32>
  %77:2 = "tosa.fft2d"(%a, %a) : (tensor<8x4x6xf32>, tensor<8x4x6xf32>) -> (tensor<8x4x6xf32>, tensor<8x4x6xf32>)
  %78:2 = "tosa.rfft2d"(%a) : (tensor<8x4x6xf32>) -> (tensor<8x4x4xf32>, tensor<8x4x4xf32>)
  %79 = "tosa.resize"(%x, %four, %two, %two) {mode = "BILINEAR"} : (tensor<2x16x16x8xf32>, !tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<2x32x32x8xf32>
  %c = "tosa.const"() {values = dense<1.0> : tensor<8x4xf32>} : () -> tensor<8x4xf32>
  %s = "tosa.const_shape"() {values = dense<[8, 4]> : tensor<2xindex>} : () -> !tosa.shape<2>
  return
}

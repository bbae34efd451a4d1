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

// linalg: elementwise
func.func @linalg_0(%a: tensor<8x4xf32>, %p: tensor<8x4xi1>, %x: f32, %row: tensor<4xf32>, %m: tensor<4x8xf32>) {
  %1 = "linalg.abs"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %2 = "linalg.ceil"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %3 = "linalg.copy"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = "linalg.erf"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %5 = "linalg.exp"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = "linalg.floor"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %7 = "linalg.log"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %8 = "linalg.negf"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %9 = "linalg.reciprocal"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %10 = "linalg.round"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %11 = "linalg.rsqrt"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %12 = "linalg.sqrt"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %13 = "linalg.square"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %14 = "linalg.tanh"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %15 = "linalg.add"(%a, %a, %a) ({  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %16 = "linalg.div"(%a, %a, %a) ({  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %17 = "linalg.div_unsigned"(%a, %a, %a) ({  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %18 = "linalg.max"(%a, %a, %a) ({  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %19 = "linalg.min"(%a, %a, %a) ({  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %20 = "linalg.mul"(%a, %a, %a) ({  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %21 = "linalg.powf"(%a, %a, %a) ({  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %22 = "linalg.sub"(%a, %a, %a) ({  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %23 = "linalg.select"(%p, %a, %a, %a) ({  // ([i, j], [i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: i1, %b1: f32, %b2: f32, %b3: f32):
    "linalg.yield"(%b3) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 3, 1>} : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %24 = "linalg.elementwise"(%a, %row, %a) ({  // ([i, j], [j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    "linalg.yield"(%b2) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0, d1)>], kind = "add", operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x4xf32>, tensor<4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %25 = "linalg.map"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %26 = "linalg.fill"(%x, %a) ({  // ([], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 1, 1>} : (f32, tensor<8x4xf32>) -> tensor<8x4xf32>
  %27 = "linalg.transpose"(%m, %a) ({  // ([j, i], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {permutation = array<i64: 1, 0>, operandSegmentSizes = array<i32: 1, 1>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %28 = "linalg.broadcast"(%row, %a) ({  // ([j], [i, j])->([i, j]) {i=8, j=4}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {dimensions = array<i64: 0>, operandSegmentSizes = array<i32: 1, 1>} : (tensor<4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  %softmax = "linalg.softmax"(%a, %a) {dimension = 1 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4} need_replication={j}
  return
}
// -----
// linalg: loops and maps
func.func @linalg_1(%a: tensor<8x16xf32>, %b: tensor<16x32xf32>, %c: tensor<8x32xf32>, %v: tensor<8xf32>, %s: tensor<f32>, %w: tensor<3xf32>, %l: tensor<10xf32>, %q: tensor<8x8xf32>, %r: tensor<128xf32>, %i: tensor<8x16xi32>) {
  %29 = "linalg.generic"(%a, %b, %c) ({  // ([i, k], [k, j], [i, j])->([i, j]) {i=8, j=32, k=16} reduction={k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], iterator_types = ["parallel", "parallel", #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %30 = "linalg.generic"(%a, %a) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=16}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %31 = "linalg.generic"(%a, %v) ({  // ([i, j], [i])->([i]) {i=8, j=16} reduction={j}
  ^bb0(%b0: f32, %b1: f32):
    %m = arith.maximumf %b0, %b1 : f32  // ([], [])->([])
    "linalg.yield"(%m) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xf32>, tensor<8xf32>) -> tensor<8xf32>
  %32 = "linalg.generic"(%a, %v) ({  // ([i, j], [i])->([i]) {i=8, j=16} reduction={j}
  ^bb0(%b0: f32, %b1: f32):
    %m = arith.subf %b0, %b1 : f32  // ([], [])->([])
    "linalg.yield"(%m) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xf32>, tensor<8xf32>) -> tensor<8xf32>
  %33 = "linalg.generic"(%a, %s) ({  // ([i, j], [])->([]) {i=8, j=16} reduction={i, j}
  ^bb0(%b0: f32, %b1: f32):
    %m = arith.addf %b0, %b1 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> ()>], iterator_types = [#linalg.iterator_type<reduction>, #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
  %34 = "linalg.generic"(%l, %w, %v) ({  // ([i], [j], [i])->([i]) {i=8, j=3} reduction={j} permutation={i}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0 + d1)>, affine_map<(d0, d1) -> (d1)>, affine_map<(d0, d1) -> (d0)>], iterator_types = ["parallel", #linalg.iterator_type<reduction>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<10xf32>, tensor<3xf32>, tensor<8xf32>) -> tensor<8xf32>
  %35 = "linalg.generic"(%q, %v) ({  // ([i, j], [i])->([i]) {i=8, j=1} need_replication={i}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0) -> (d0, d0)>, affine_map<(d0) -> (d0)>], iterator_types = ["parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8xf32>
  %36 = "linalg.generic"(%r, %a) ({  // ([ij], [i, j])->([i, j]) {i=8, j=16}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0 * 16 + d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<128xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %37 = "linalg.generic"(%r, %a) ({  // ([k], [i, j])->([i, j]) {i=8, j=16, k=1}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0 floordiv 2)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<128xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %38 = "linalg.generic"(%v, %a) ({  // ([i], [i, j])->([i, j]) {i=8, j=16}
  ^bb0(%b0: f32, %b1: f32):
    "linalg.yield"(%b1) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %39 = "linalg.generic"(%i, %i) ({  // ([i, j], [i, j])->([i, j]) {i=8, j=16}
  ^bb0(%b0: i32, %b1: i32):
    %m = "linalg.index"() {dim = 1 : i64} : () -> index  // no rule: it says where an element is
    %n = arith.index_cast %m : index to i32  // ([])->([])
    "linalg.yield"(%n) : (i32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0, d1)>], iterator_types = ["parallel", "parallel"], operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xi32>, tensor<8x16xi32>) -> tensor<8x16xi32>
  %40 = "linalg.contract"(%a, %b, %c) ({  // ([i, k], [k, j], [i, j])->([i, j]) {i=8, j=32, k=16} reduction={k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %41 = "linalg.reduce"(%a, %v) ({  // ([i, j], [i])->([i]) {i=8, j=16} reduction={j}
  ^bb0(%b0: f32, %b1: f32):
    %m = arith.addf %b0, %b1 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dimensions = array<i64: 1>, operandSegmentSizes = array<i32: 1, 1>} : (tensor<8x16xf32>, tensor<8xf32>) -> tensor<8xf32>
  %42 = "linalg.matmul"(%a, %b, %c) ({  // ([i, k], [k, j], [i, j])->([i, j]) {i=8, j=32, k=16} reduction={k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16xf32>, tensor<16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %43 = "linalg.matmul"(%a, %c, %b) ({  // ([k, i], [k, j], [i, j])->([i, j]) {i=16, j=32, k=8} reduction={k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {indexing_maps = [affine_map<(d0, d1, d2) -> (d2, d0)>, affine_map<(d0, d1, d2) -> (d2, d1)>, affine_map<(d0, d1, d2) -> (d0, d1)>], operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16xf32>, tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<16x32xf32>
  return
}
// -----
// linalg: named products and windows
func.func @linalg_2(%t2_8_16: tensor<2x8x16xf32>, %t2_16_32: tensor<2x16x32xf32>, %t2_8_32: tensor<2x8x32xf32>, %t2_16: tensor<2x16xf32>, %t2_8: tensor<2x8xf32>, %t2_3_5_8_4: tensor<2x3x5x8x4xf32>, %t2_7_5_6_4: tensor<2x7x5x6x4xf32>, %t2_3_7_8_6: tensor<2x3x7x8x6xf32>, %t8_32: tensor<8x32xf32>, %t2_32: tensor<2x32xf32>, %t16: tensor<16xf32>, %t: tensor<f32>, %t8_16: tensor<8x16xf32>, %t8: tensor<8xf32>, %t3_5_8_4: tensor<3x5x8x4xf32>, %t7_5_6_4: tensor<7x5x6x4xf32>, %t3_7_8_6: tensor<3x7x8x6xf32>, %t16_32: tensor<16x32xf32>, %t32: tensor<32xf32>, %zp: i32, %ia: tensor<8x16xi8>, %ib: tensor<16x32xi8>, %ic: tensor<8x32xi32>, %ba: tensor<2x8x16xi8>, %bb: tensor<2x16x32xi8>, %bc: tensor<2x8x32xi32>, %t20: tensor<20xf32>, %t3: tensor<3xf32>, %t18: tensor<18xf32>, %t2_8_20: tensor<2x8x20xf32>, %t32_8_3: tensor<32x8x3xf32>, %t2_32_18: tensor<2x32x18xf32>, %t2_20_8: tensor<2x20x8xf32>, %t3_8_32: tensor<3x8x32xf32>, %t2_18_32: tensor<2x18x32xf32>, %t18_20: tensor<18x20xf32>, %t3_3: tensor<3x3xf32>, %t16_18: tensor<16x18xf32>, %t2_8_18_20: tensor<2x8x18x20xf32>, %t32_8_3_3: tensor<32x8x3x3xf32>, %t2_32_16_18: tensor<2x32x16x18xf32>, %t2_4_8_18_20: tensor<2x4x8x18x20xf32>, %t32_4_8_3_3: tensor<32x4x8x3x3xf32>, %t2_4_32_16_18: tensor<2x4x32x16x18xf32>, %t4_32_8_3_3: tensor<4x32x8x3x3xf32>, %t2_18_20_8: tensor<2x18x20x8xf32>, %t32_3_3_8: tensor<32x3x3x8xf32>, %t2_16_18_32: tensor<2x16x18x32xf32>, %t3_3_8_32: tensor<3x3x8x32xf32>, %t2_18_20_4_8: tensor<2x18x20x4x8xf32>, %t4_32_3_3_8: tensor<4x32x3x3x8xf32>, %t2_16_18_4_32: tensor<2x16x18x4x32xf32>, %t12_18_20: tensor<12x18x20xf32>, %t3_3_3: tensor<3x3x3xf32>, %t10_16_18: tensor<10x16x18xf32>, %t2_8_12_18_20: tensor<2x8x12x18x20xf32>, %t32_8_3_3_3: tensor<32x8x3x3x3xf32>, %t2_32_10_16_18: tensor<2x32x10x16x18xf32>, %t2_12_18_20_8: tensor<2x12x18x20x8xf32>, %t3_3_3_8_32: tensor<3x3x3x8x32xf32>, %t2_10_16_18_32: tensor<2x10x16x18x32xf32>, %t8_3: tensor<8x3xf32>, %t2_8_18: tensor<2x8x18xf32>, %t3_8: tensor<3x8xf32>, %t2_18_8: tensor<2x18x8xf32>, %t3_8_6: tensor<3x8x6xf32>, %t2_18_8_6: tensor<2x18x8x6xf32>, %t8_3_3: tensor<8x3x3xf32>, %t2_8_16_18: tensor<2x8x16x18xf32>, %t3_3_8: tensor<3x3x8xf32>, %t2_16_18_8: tensor<2x16x18x8xf32>, %t3_3_8_6: tensor<3x3x8x6xf32>, %t2_16_18_8_6: tensor<2x16x18x8x6xf32>, %t8_3_3_3: tensor<8x3x3x3xf32>, %t2_8_10_16_18: tensor<2x8x10x16x18xf32>, %t3_3_3_8: tensor<3x3x3x8xf32>, %t2_10_16_18_8: tensor<2x10x16x18x8xf32>, %t3_3_3_8_6: tensor<3x3x3x8x6xf32>, %t2_10_16_18_8_6: tensor<2x10x16x18x8x6xf32>) {
  %44 = "linalg.batch_matmul"(%t2_8_16, %t2_16_32, %t2_8_32) ({  // ([i, j, l], [i, l, k], [i, j, k])->([i, j, k]) {i=2, j=8, k=32, l=16} reduction={l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x16xf32>, tensor<2x16x32xf32>, tensor<2x8x32xf32>) -> tensor<2x8x32xf32>
  %45 = "linalg.batch_matvec"(%t2_8_16, %t2_16, %t2_8) ({  // ([i, j, k], [i, k], [i, j])->([i, j]) {i=2, j=8, k=16} reduction={k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x16xf32>, tensor<2x16xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %46 = "linalg.batch_mmt4d"(%t2_3_5_8_4, %t2_7_5_6_4, %t2_3_7_8_6) ({  // ([i, j, n, l, o], [i, k, n, m, o], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=3, k=7, l=8, m=6, n=5, o=4} reduction={n, o}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x3x5x8x4xf32>, tensor<2x7x5x6x4xf32>, tensor<2x3x7x8x6xf32>) -> tensor<2x3x7x8x6xf32>
  %47 = "linalg.batch_reduce_matmul"(%t2_8_16, %t2_16_32, %t8_32) ({  // ([k, i, l], [k, l, j], [i, j])->([i, j]) {i=8, j=32, k=2, l=16} reduction={k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x16xf32>, tensor<2x16x32xf32>, tensor<8x32xf32>) -> tensor<8x32xf32>
  %48 = "linalg.batch_vecmat"(%t2_16, %t2_16_32, %t2_32) ({  // ([i, k], [i, k, j], [i, j])->([i, j]) {i=2, j=32, k=16} reduction={k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x16xf32>, tensor<2x16x32xf32>, tensor<2x32xf32>) -> tensor<2x32xf32>
  %49 = "linalg.dot"(%t16, %t16, %t) ({  // ([i], [i], [])->([]) {i=16} reduction={i}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<16xf32>, tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %50 = "linalg.matvec"(%t8_16, %t16, %t8) ({  // ([i, j], [j], [i])->([i]) {i=8, j=16} reduction={j}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<8x16xf32>, tensor<16xf32>, tensor<8xf32>) -> tensor<8xf32>
  %51 = "linalg.mmt4d"(%t3_5_8_4, %t7_5_6_4, %t3_7_8_6) ({  // ([i, m, k, n], [j, m, l, n], [i, j, k, l])->([i, j, k, l]) {i=3, j=7, k=8, l=6, m=5, n=4} reduction={m, n}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<3x5x8x4xf32>, tensor<7x5x6x4xf32>, tensor<3x7x8x6xf32>) -> tensor<3x7x8x6xf32>
  %52 = "linalg.vecmat"(%t16, %t16_32, %t32) ({  // ([j], [j, i], [i])->([i]) {i=32, j=16} reduction={j}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {operandSegmentSizes = array<i32: 2, 1>} : (tensor<16xf32>, tensor<16x32xf32>, tensor<32xf32>) -> tensor<32xf32>
  %53 = "linalg.quantized_matmul"(%ia, %ib, %zp, %zp, %ic) ({  // ([i, k], [k, j], [], [], [i, j])->([i, j]) {i=8, j=32, k=16} reduction={k}
  ^bb0(%b0: i8, %b1: i8, %b2: i32, %b3: i32, %b4: i32):
    "linalg.yield"(%b4) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 4, 1>} : (tensor<8x16xi8>, tensor<16x32xi8>, i32, i32, tensor<8x32xi32>) -> tensor<8x32xi32>
  %54 = "linalg.quantized_batch_matmul"(%ba, %bb, %zp, %zp, %bc) ({  // ([i, j, l], [i, l, k], [], [], [i, j, k])->([i, j, k]) {i=2, j=8, k=32, l=16} reduction={l}
  ^bb0(%b0: i8, %b1: i8, %b2: i32, %b3: i32, %b4: i32):
    "linalg.yield"(%b4) : (i32) -> ()
  }) {operandSegmentSizes = array<i32: 4, 1>} : (tensor<2x8x16xi8>, tensor<2x16x32xi8>, i32, i32, tensor<2x8x32xi32>) -> tensor<2x8x32xi32>
  %55 = "linalg.conv_1d"(%t20, %t3, %t18) ({  // ([i], [j], [i])->([i]) {i=18, j=3} reduction={j} permutation={i}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<20xf32>, tensor<3xf32>, tensor<18xf32>) -> tensor<18xf32>
  %56 = "linalg.conv_1d_ncw_fcw"(%t2_8_20, %t32_8_3, %t2_32_18) ({  // ([i, l, k], [j, l, m], [i, j, k])->([i, j, k]) {i=2, j=32, k=18, l=8, m=3} reduction={l, m} permutation={k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x20xf32>, tensor<32x8x3xf32>, tensor<2x32x18xf32>) -> tensor<2x32x18xf32>
  %57 = "linalg.conv_1d_nwc_wcf"(%t2_20_8, %t3_8_32, %t2_18_32) ({  // ([i, j, l], [m, l, k], [i, j, k])->([i, j, k]) {i=2, j=18, k=32, l=8, m=3} reduction={l, m} permutation={j}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3x8x32xf32>, tensor<2x18x32xf32>) -> tensor<2x18x32xf32>
  %58 = "linalg.conv_2d"(%t18_20, %t3_3, %t16_18) ({  // ([i, j], [k, l], [i, j])->([i, j]) {i=16, j=18, k=3, l=3} reduction={k, l} permutation={i, j}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<18x20xf32>, tensor<3x3xf32>, tensor<16x18xf32>) -> tensor<16x18xf32>
  %59 = "linalg.conv_2d_nchw_fchw"(%t2_8_18_20, %t32_8_3_3, %t2_32_16_18) ({  // ([i, m, k, l], [j, m, n, o], [i, j, k, l])->([i, j, k, l]) {i=2, j=32, k=16, l=18, m=8, n=3, o=3} reduction={m, n, o} permutation={k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x18x20xf32>, tensor<32x8x3x3xf32>, tensor<2x32x16x18xf32>) -> tensor<2x32x16x18xf32>
  %60 = "linalg.conv_2d_ngchw_fgchw"(%t2_4_8_18_20, %t32_4_8_3_3, %t2_4_32_16_18) ({  // ([i, j, n, l, m], [k, j, n, o, p], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=4, k=32, l=16, m=18, n=8, o=3, p=3} reduction={n, o, p} permutation={l, m}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x4x8x18x20xf32>, tensor<32x4x8x3x3xf32>, tensor<2x4x32x16x18xf32>) -> tensor<2x4x32x16x18xf32>
  %61 = "linalg.conv_2d_ngchw_gfchw"(%t2_4_8_18_20, %t4_32_8_3_3, %t2_4_32_16_18) ({  // ([i, j, n, l, m], [j, k, n, o, p], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=4, k=32, l=16, m=18, n=8, o=3, p=3} reduction={n, o, p} permutation={l, m}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x4x8x18x20xf32>, tensor<4x32x8x3x3xf32>, tensor<2x4x32x16x18xf32>) -> tensor<2x4x32x16x18xf32>
  %62 = "linalg.conv_2d_nhwc_fhwc"(%t2_18_20_8, %t32_3_3_8, %t2_16_18_32) ({  // ([i, j, k, m], [l, n, o, m], [i, j, k, l])->([i, j, k, l]) {i=2, j=16, k=18, l=32, m=8, n=3, o=3} reduction={m, n, o} permutation={j, k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<32x3x3x8xf32>, tensor<2x16x18x32xf32>) -> tensor<2x16x18x32xf32>
  %63 = "linalg.conv_2d_nhwc_hwcf"(%t2_18_20_8, %t3_3_8_32, %t2_16_18_32) ({  // ([i, j, k, m], [n, o, m, l], [i, j, k, l])->([i, j, k, l]) {i=2, j=16, k=18, l=32, m=8, n=3, o=3} reduction={m, n, o} permutation={j, k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3x8x32xf32>, tensor<2x16x18x32xf32>) -> tensor<2x16x18x32xf32>
  %64 = "linalg.conv_2d_nhwgc_gfhwc"(%t2_18_20_4_8, %t4_32_3_3_8, %t2_16_18_4_32) ({  // ([i, j, k, l, n], [l, m, o, p, n], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=16, k=18, l=4, m=32, n=8, o=3, p=3} reduction={n, o, p} permutation={j, k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x4x8xf32>, tensor<4x32x3x3x8xf32>, tensor<2x16x18x4x32xf32>) -> tensor<2x16x18x4x32xf32>
  %65 = "linalg.conv_3d"(%t12_18_20, %t3_3_3, %t10_16_18) ({  // ([i, j, k], [l, m, n], [i, j, k])->([i, j, k]) {i=10, j=16, k=18, l=3, m=3, n=3} reduction={l, m, n} permutation={i, j, k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<12x18x20xf32>, tensor<3x3x3xf32>, tensor<10x16x18xf32>) -> tensor<10x16x18xf32>
  %66 = "linalg.conv_3d_ncdhw_fcdhw"(%t2_8_12_18_20, %t32_8_3_3_3, %t2_32_10_16_18) ({  // ([i, n, k, l, m], [j, n, o, p, q], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=32, k=10, l=16, m=18, n=8, o=3, p=3, q=3} reduction={n, o, p, q} permutation={k, l, m}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x12x18x20xf32>, tensor<32x8x3x3x3xf32>, tensor<2x32x10x16x18xf32>) -> tensor<2x32x10x16x18xf32>
  %67 = "linalg.conv_3d_ndhwc_dhwcf"(%t2_12_18_20_8, %t3_3_3_8_32, %t2_10_16_18_32) ({  // ([i, j, k, l, n], [o, p, q, n, m], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=10, k=16, l=18, m=32, n=8, o=3, p=3, q=3} reduction={n, o, p, q} permutation={j, k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3x8x32xf32>, tensor<2x10x16x18x32xf32>) -> tensor<2x10x16x18x32xf32>
  %68 = "linalg.depthwise_conv_1d_ncw_cw"(%t2_8_20, %t8_3, %t2_8_18) ({  // ([i, j, k], [j, l], [i, j, k])->([i, j, k]) {i=2, j=8, k=18, l=3} reduction={l} permutation={k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x20xf32>, tensor<8x3xf32>, tensor<2x8x18xf32>) -> tensor<2x8x18xf32>
  %69 = "linalg.depthwise_conv_1d_nwc_wc"(%t2_20_8, %t3_8, %t2_18_8) ({  // ([i, j, k], [l, k], [i, j, k])->([i, j, k]) {i=2, j=18, k=8, l=3} reduction={l} permutation={j}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3x8xf32>, tensor<2x18x8xf32>) -> tensor<2x18x8xf32>
  %70 = "linalg.depthwise_conv_1d_nwc_wcm"(%t2_20_8, %t3_8_6, %t2_18_8_6) ({  // ([i, j, k], [m, k, l], [i, j, k, l])->([i, j, k, l]) {i=2, j=18, k=8, l=6, m=3} reduction={m} permutation={j}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3x8x6xf32>, tensor<2x18x8x6xf32>) -> tensor<2x18x8x6xf32>
  %71 = "linalg.depthwise_conv_2d_nchw_chw"(%t2_8_18_20, %t8_3_3, %t2_8_16_18) ({  // ([i, j, k, l], [j, m, n], [i, j, k, l])->([i, j, k, l]) {i=2, j=8, k=16, l=18, m=3, n=3} reduction={m, n} permutation={k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x18x20xf32>, tensor<8x3x3xf32>, tensor<2x8x16x18xf32>) -> tensor<2x8x16x18xf32>
  %72 = "linalg.depthwise_conv_2d_nhwc_hwc"(%t2_18_20_8, %t3_3_8, %t2_16_18_8) ({  // ([i, j, k, l], [m, n, l], [i, j, k, l])->([i, j, k, l]) {i=2, j=16, k=18, l=8, m=3, n=3} reduction={m, n} permutation={j, k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3x8xf32>, tensor<2x16x18x8xf32>) -> tensor<2x16x18x8xf32>
  %73 = "linalg.depthwise_conv_2d_nhwc_hwcm"(%t2_18_20_8, %t3_3_8_6, %t2_16_18_8_6) ({  // ([i, j, k, l], [n, o, l, m], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=16, k=18, l=8, m=6, n=3, o=3} reduction={n, o} permutation={j, k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3x8x6xf32>, tensor<2x16x18x8x6xf32>) -> tensor<2x16x18x8x6xf32>
  %74 = "linalg.depthwise_conv_3d_ncdhw_cdhw"(%t2_8_12_18_20, %t8_3_3_3, %t2_8_10_16_18) ({  // ([i, j, k, l, m], [j, n, o, p], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=8, k=10, l=16, m=18, n=3, o=3, p=3} reduction={n, o, p} permutation={k, l, m}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x12x18x20xf32>, tensor<8x3x3x3xf32>, tensor<2x8x10x16x18xf32>) -> tensor<2x8x10x16x18xf32>
  %75 = "linalg.depthwise_conv_3d_ndhwc_dhwc"(%t2_12_18_20_8, %t3_3_3_8, %t2_10_16_18_8) ({  // ([i, j, k, l, m], [n, o, p, m], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=10, k=16, l=18, m=8, n=3, o=3, p=3} reduction={n, o, p} permutation={j, k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3x8xf32>, tensor<2x10x16x18x8xf32>) -> tensor<2x10x16x18x8xf32>
  %76 = "linalg.depthwise_conv_3d_ndhwc_dhwcm"(%t2_12_18_20_8, %t3_3_3_8_6, %t2_10_16_18_8_6) ({  // ([i, j, k, l, m], [o, p, q, m, n], [i, j, k, l, m, n])->([i, j, k, l, m, n]) {i=2, j=10, k=16, l=18, m=8, n=6, o=3, p=3, q=3} reduction={o, p, q} permutation={j, k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.mulf %b0, %b1 : f32
    %n = arith.addf %b2, %m : f32
    "linalg.yield"(%n) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3x8x6xf32>, tensor<2x10x16x18x8x6xf32>) -> tensor<2x10x16x18x8x6xf32>
  %77 = "linalg.pooling_ncw_max"(%t2_8_20, %t3, %t2_8_18) ({  // ([i, j, k], [l], [i, j, k])->([i, j, k]) {i=2, j=8, k=18, l=3} reduction={l} permutation={k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.maximumf %b2, %b0 : f32  // ([], [])->([])
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x20xf32>, tensor<3xf32>, tensor<2x8x18xf32>) -> tensor<2x8x18xf32>
  %78 = "linalg.pooling_ncw_sum"(%t2_8_20, %t3, %t2_8_18) ({  // ([i, j, k], [l], [i, j, k])->([i, j, k]) {i=2, j=8, k=18, l=3} reduction={l} permutation={k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.addf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x20xf32>, tensor<3xf32>, tensor<2x8x18xf32>) -> tensor<2x8x18xf32>
  %79 = "linalg.pooling_nwc_max"(%t2_20_8, %t3, %t2_18_8) ({  // ([i, j, k], [l], [i, j, k])->([i, j, k]) {i=2, j=18, k=8, l=3} reduction={l} permutation={j}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.maximumf %b2, %b0 : f32  // ([], [])->([])
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3xf32>, tensor<2x18x8xf32>) -> tensor<2x18x8xf32>
  %80 = "linalg.pooling_nwc_min"(%t2_20_8, %t3, %t2_18_8) ({  // ([i, j, k], [l], [i, j, k])->([i, j, k]) {i=2, j=18, k=8, l=3} reduction={l} permutation={j}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.minimumf %b2, %b0 : f32  // ([], [])->([])
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3xf32>, tensor<2x18x8xf32>) -> tensor<2x18x8xf32>
  %81 = "linalg.pooling_nwc_sum"(%t2_20_8, %t3, %t2_18_8) ({  // ([i, j, k], [l], [i, j, k])->([i, j, k]) {i=2, j=18, k=8, l=3} reduction={l} permutation={j}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.addf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<1xi64>, strides = dense<1> : tensor<1xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x20x8xf32>, tensor<3xf32>, tensor<2x18x8xf32>) -> tensor<2x18x8xf32>
  %82 = "linalg.pooling_nchw_max"(%t2_8_18_20, %t3_3, %t2_8_16_18) ({  // ([i, j, k, l], [m, n], [i, j, k, l])->([i, j, k, l]) {i=2, j=8, k=16, l=18, m=3, n=3} reduction={m, n} permutation={k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.maximumf %b2, %b0 : f32  // ([], [])->([])
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x18x20xf32>, tensor<3x3xf32>, tensor<2x8x16x18xf32>) -> tensor<2x8x16x18xf32>
  %83 = "linalg.pooling_nchw_sum"(%t2_8_18_20, %t3_3, %t2_8_16_18) ({  // ([i, j, k, l], [m, n], [i, j, k, l])->([i, j, k, l]) {i=2, j=8, k=16, l=18, m=3, n=3} reduction={m, n} permutation={k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.addf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x8x18x20xf32>, tensor<3x3xf32>, tensor<2x8x16x18xf32>) -> tensor<2x8x16x18xf32>
  %84 = "linalg.pooling_nhwc_max"(%t2_18_20_8, %t3_3, %t2_16_18_8) ({  // ([i, j, k, l], [m, n], [i, j, k, l])->([i, j, k, l]) {i=2, j=16, k=18, l=8, m=3, n=3} reduction={m, n} permutation={j, k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.maximumf %b2, %b0 : f32  // ([], [])->([])
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3xf32>, tensor<2x16x18x8xf32>) -> tensor<2x16x18x8xf32>
  %85 = "linalg.pooling_nhwc_min"(%t2_18_20_8, %t3_3, %t2_16_18_8) ({  // ([i, j, k, l], [m, n], [i, j, k, l])->([i, j, k, l]) {i=2, j=16, k=18, l=8, m=3, n=3} reduction={m, n} permutation={j, k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.minimumf %b2, %b0 : f32  // ([], [])->([])
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3xf32>, tensor<2x16x18x8xf32>) -> tensor<2x16x18x8xf32>
  %86 = "linalg.pooling_nhwc_sum"(%t2_18_20_8, %t3_3, %t2_16_18_8) ({  // ([i, j, k, l], [m, n], [i, j, k, l])->([i, j, k, l]) {i=2, j=16, k=18, l=8, m=3, n=3} reduction={m, n} permutation={j, k}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.addf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x18x20x8xf32>, tensor<3x3xf32>, tensor<2x16x18x8xf32>) -> tensor<2x16x18x8xf32>
  %87 = "linalg.pooling_ndhwc_max"(%t2_12_18_20_8, %t3_3_3, %t2_10_16_18_8) ({  // ([i, j, k, l, m], [n, o, p], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=10, k=16, l=18, m=8, n=3, o=3, p=3} reduction={n, o, p} permutation={j, k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.maximumf %b2, %b0 : f32  // ([], [])->([])
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3xf32>, tensor<2x10x16x18x8xf32>) -> tensor<2x10x16x18x8xf32>
  %88 = "linalg.pooling_ndhwc_min"(%t2_12_18_20_8, %t3_3_3, %t2_10_16_18_8) ({  // ([i, j, k, l, m], [n, o, p], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=10, k=16, l=18, m=8, n=3, o=3, p=3} reduction={n, o, p} permutation={j, k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.minimumf %b2, %b0 : f32  // ([], [])->([])
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3xf32>, tensor<2x10x16x18x8xf32>) -> tensor<2x10x16x18x8xf32>
  %89 = "linalg.pooling_ndhwc_sum"(%t2_12_18_20_8, %t3_3_3, %t2_10_16_18_8) ({  // ([i, j, k, l, m], [n, o, p], [i, j, k, l, m])->([i, j, k, l, m]) {i=2, j=10, k=16, l=18, m=8, n=3, o=3, p=3} reduction={n, o, p} permutation={j, k, l}
  ^bb0(%b0: f32, %b1: f32, %b2: f32):
    %m = arith.addf %b2, %b0 : f32
    "linalg.yield"(%m) : (f32) -> ()
  }) {dilations = dense<1> : tensor<3xi64>, strides = dense<1> : tensor<3xi64>, operandSegmentSizes = array<i32: 2, 1>} : (tensor<2x12x18x20x8xf32>, tensor<3x3x3xf32>, tensor<2x10x16x18x8xf32>) -> tensor<2x10x16x18x8xf32>
  return
}

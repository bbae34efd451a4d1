// tosa: elementwise
func.func @tosa_0(%a: tensor<8x4xf32>, %i: tensor<8x4xi32>, %p: tensor<8x4xi1>, %row: tensor<1x4xf32>, %one: tensor<1x1xf32>, %z: tensor<1xf32>, %shift: tensor<1xi8>, %s: tensor<8x4xi8>, %zi: tensor<1xi8>, %zo: tensor<1xi32>, %lut: tensor<512xi16>, %h: tensor<8x4xi16>, %m: tensor<4xi32>, %sm: tensor<4xi8>) {
  %1 = "tosa.abs"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %2 = "tosa.ceil"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %3 = "tosa.cos"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %4 = "tosa.erf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %5 = "tosa.exp"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %6 = "tosa.floor"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %7 = "tosa.identity"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %8 = "tosa.log"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %9 = "tosa.reciprocal"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %10 = "tosa.rsqrt"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %11 = "tosa.sigmoid"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %12 = "tosa.sin"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %13 = "tosa.tanh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %14 = "tosa.clamp"(%a) {max_val = 1.0 : f32, min_val = 0.0 : f32} : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %15 = "tosa.negate"(%a, %z, %z) : (tensor<8x4xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<8x4xf32>  // ([i, j], [k], [l])->([i, j]) {i=8, j=4, k=1, l=1}
  %16 = "tosa.bitwise_not"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %17 = "tosa.clz"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %18 = "tosa.logical_not"(%p) : (tensor<8x4xi1>) -> tensor<8x4xi1>  // ([i, j])->([i, j]) {i=8, j=4}
  %19 = "tosa.add"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %20 = "tosa.maximum"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %21 = "tosa.minimum"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %22 = "tosa.pow"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %23 = "tosa.sub"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %24 = "tosa.add"(%row, %a) : (tensor<1x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([k, j], [i, j])->([i, j]) {i=8, j=4, k=1}
  %25 = "tosa.sub"(%a, %one) : (tensor<8x4xf32>, tensor<1x1xf32>) -> tensor<8x4xf32>  // ([i, j], [k, l])->([i, j]) {i=8, j=4, k=1, l=1}
  %26 = "tosa.add"(%row, %one) : (tensor<1x4xf32>, tensor<1x1xf32>) -> tensor<1x4xf32>  // ([i, j], [i, k])->([i, j]) {i=1, j=4, k=1}
  %27 = "tosa.mul"(%a, %row, %shift) : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<1xi8>) -> tensor<8x4xf32>  // ([i, j], [k, j], [l])->([i, j]) {i=8, j=4, k=1, l=1}
  %28 = "tosa.arithmetic_right_shift"(%i, %i) {round = false} : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %29 = "tosa.bitwise_and"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %30 = "tosa.bitwise_or"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %31 = "tosa.bitwise_xor"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %32 = "tosa.intdiv"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %33 = "tosa.logical_left_shift"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %34 = "tosa.logical_right_shift"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %35 = "tosa.int_div"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %36 = "tosa.div"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %37 = "tosa.logical_and"(%p, %p) : (tensor<8x4xi1>, tensor<8x4xi1>) -> tensor<8x4xi1>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %38 = "tosa.logical_or"(%p, %p) : (tensor<8x4xi1>, tensor<8x4xi1>) -> tensor<8x4xi1>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %39 = "tosa.logical_xor"(%p, %p) : (tensor<8x4xi1>, tensor<8x4xi1>) -> tensor<8x4xi1>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %40 = "tosa.equal"(%a, %row) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xi1>  // ([i, j], [k, j])->([i, j]) {i=8, j=4, k=1}
  %41 = "tosa.greater"(%a, %row) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xi1>  // ([i, j], [k, j])->([i, j]) {i=8, j=4, k=1}
  %42 = "tosa.greater_equal"(%a, %row) : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xi1>  // ([i, j], [k, j])->([i, j]) {i=8, j=4, k=1}
  %43 = "tosa.select"(%p, %a, %row) : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j], [k, j])->([i, j]) {i=8, j=4, k=1}
  %44 = "tosa.cast"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %45 = "tosa.apply_scale"(%i, %i, %s) {rounding_mode = "SINGLE_ROUND"} : (tensor<8x4xi32>, tensor<8x4xi32>, tensor<8x4xi8>) -> tensor<8x4xi32>  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  %46 = "tosa.table"(%h, %lut) : (tensor<8x4xi16>, tensor<512xi16>) -> tensor<8x4xi32>  // ([i, j], [k])->([i, j]) {i=8, j=4, k=1}
  %47 = "tosa.rescale"(%i, %m, %sm, %zo, %zi) {per_channel = true, rounding_mode = "SINGLE_ROUND", scale32 = true, input_unsigned = false, output_unsigned = false} : (tensor<8x4xi32>, tensor<4xi32>, tensor<4xi8>, tensor<1xi32>, tensor<1xi8>) -> tensor<8x4xi8>  // ([i, j], [j], [j], [k], [l])->([i, j]) {i=8, j=4, k=1, l=1}
  return
}
// -----
// tosa: products and windows
func.func @tosa_1(%a: tensor<2x8x16xf32>, %b: tensor<2x16x32xf32>, %t: tensor<2x32x16xf32>, %z: tensor<1xf32>, %x: tensor<2x16x16x8xf32>, %k: tensor<32x3x3x8xf32>, %v: tensor<2x16x16x16x8xf32>, %kv: tensor<32x3x3x3x8xf32>, %dk: tensor<3x3x8x4xf32>, %bias: tensor<32xf32>, %one: tensor<1xf32>, %k1: tensor<32x1x1x8xf32>, %q: tensor<8x16xf32>, %r: tensor<32x16xf32>) {
  %48 = "tosa.matmul"(%a, %b, %z, %z) : (tensor<2x8x16xf32>, tensor<2x16x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x32xf32>  // ([i, j, l], [i, l, k], [m], [n])->([i, j, k]) {i=2, j=8, k=32, l=16, m=1, n=1} reduction={l}
  %49 = "tosa.matmul"(%a, %b) : (tensor<2x8x16xf32>, tensor<2x16x32xf32>) -> tensor<2x8x32xf32>  // ([i, j, l], [i, l, k])->([i, j, k]) {i=2, j=8, k=32, l=16} reduction={l}
  %50 = "tosa.matmul_t"(%a, %t, %z, %z) : (tensor<2x8x16xf32>, tensor<2x32x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x32xf32>  // ([i, j, l], [i, k, l], [m], [n])->([i, j, k]) {i=2, j=8, k=32, l=16, m=1, n=1} reduction={l}
  %51 = "tosa.conv2d"(%x, %k, %bias, %z, %z) {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<2x16x16x8xf32>, tensor<32x3x3x8xf32>, tensor<32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x16x16x32xf32>  // ([i, j, k, m], [l, n, o, m], [l], [p], [q])->([i, j, k, l]) {i=2, j=16, k=16, l=32, m=8, n=3, o=3, p=1, q=1} reduction={m, n, o} permutation={j, k}
  %52 = "tosa.conv2d"(%x, %k1, %one, %z, %z) {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x16x16x8xf32>, tensor<32x1x1x8xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x16x16x32xf32>  // ([i, j, k, m], [l, n, o, m], [p], [q], [r])->([i, j, k, l]) {i=2, j=16, k=16, l=32, m=8, n=1, o=1, p=1, q=1, r=1} reduction={m, n, o}
  %53 = "tosa.conv3d"(%v, %kv, %bias, %z, %z) {acc_type = f32, dilation = array<i64: 1, 1, 1>, pad = array<i64: 1, 1, 1, 1, 1, 1>, stride = array<i64: 1, 1, 1>} : (tensor<2x16x16x16x8xf32>, tensor<32x3x3x3x8xf32>, tensor<32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x16x16x16x32xf32>  // ([i, j, k, l, n], [m, o, p, q, n], [m], [r], [s])->([i, j, k, l, m]) {i=2, j=16, k=16, l=16, m=32, n=8, o=3, p=3, q=3, r=1, s=1} reduction={n, o, p, q} permutation={j, k, l}
  %54 = "tosa.depthwise_conv2d"(%x, %dk, %bias, %z, %z) {acc_type = f32, dilation = array<i64: 1, 1>, pad = array<i64: 1, 1, 1, 1>, stride = array<i64: 1, 1>} : (tensor<2x16x16x8xf32>, tensor<3x3x8x4xf32>, tensor<32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x16x16x32xf32>  // ([i, j, k, l], [m, n, l, o], [lo], [p], [q])->([i, j, k, lo]) {i=2, j=16, k=16, l=8, m=3, n=3, o=4, p=1, q=1} reduction={m, n} permutation={j, k}
  %55 = "tosa.transpose_conv2d"(%x, %k, %bias, %z, %z) {acc_type = f32, out_pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 1, 1>} : (tensor<2x16x16x8xf32>, tensor<32x3x3x8xf32>, tensor<32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x18x18x32xf32>  // ([i, l, m, k], [j, n, o, k], [j], [p], [q])->([i, r, s, j]) {i=2, j=32, k=8, l=1, m=1, n=1, o=1, p=1, q=1, r=1, s=1} reduction={k}
  %56 = "tosa.fully_connected"(%q, %r, %bias) : (tensor<8x16xf32>, tensor<32x16xf32>, tensor<32xf32>) -> tensor<8x32xf32>  // ([i, k], [j, k], [j])->([i, j]) {i=8, j=32, k=16} reduction={k}
  %57 = "tosa.max_pool2d"(%x) {kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>} : (tensor<2x16x16x8xf32>) -> tensor<2x8x8x8xf32>  // ([i, jm, kn, l])->([i, j, k, l]) {i=2, j=8, k=8, l=8, m=2, n=2} reduction={m, n}
  %58 = "tosa.avg_pool2d"(%x, %z, %z) {acc_type = f32, kernel = array<i64: 2, 2>, pad = array<i64: 0, 0, 0, 0>, stride = array<i64: 2, 2>} : (tensor<2x16x16x8xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x8x8x8xf32>  // ([i, jm, kn, l], [o], [p])->([i, j, k, l]) {i=2, j=8, k=8, l=8, m=2, n=2, o=1, p=1} reduction={m, n}
  return
}
// -----
// tosa: reductions, and ops that move elements
func.func @tosa_2(%a: tensor<8x4x6xf32>, %p: tensor<8x4x6xi1>, %two: !tosa.shape<2>, %three: !tosa.shape<3>, %six: !tosa.shape<6>, %z: tensor<1xf32>, %v: tensor<2x8x6xf32>, %i: tensor<2x4xi32>, %u: tensor<2x4x6xf32>, %x: tensor<2x16x16x8xf32>, %four: !tosa.shape<4>, %w: tensor<8x4x1xf32>) {
  %59 = "tosa.reduce_max"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x1x6xf32>  // ([i, j, k])->([i, l, k]) {i=8, j=4, k=6, l=1} reduction={j}
  %60 = "tosa.reduce_min"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x1x6xf32>  // ([i, j, k])->([i, l, k]) {i=8, j=4, k=6, l=1} reduction={j}
  %61 = "tosa.reduce_prod"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x1x6xf32>  // ([i, j, k])->([i, l, k]) {i=8, j=4, k=6, l=1} reduction={j}
  %62 = "tosa.reduce_product"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x1x6xf32>  // ([i, j, k])->([i, l, k]) {i=8, j=4, k=6, l=1} reduction={j}
  %63 = "tosa.reduce_sum"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x1x6xf32>  // ([i, j, k])->([i, l, k]) {i=8, j=4, k=6, l=1} reduction={j}
  %64 = "tosa.reduce_all"(%p) {axis = 2 : i32} : (tensor<8x4x6xi1>) -> tensor<8x4x1xi1>  // ([i, j, k])->([i, j, l]) {i=8, j=4, k=6, l=1} reduction={k}
  %65 = "tosa.reduce_any"(%p) {axis = 2 : i32} : (tensor<8x4x6xi1>) -> tensor<8x4x1xi1>  // ([i, j, k])->([i, j, l]) {i=8, j=4, k=6, l=1} reduction={k}
  %66 = "tosa.argmax"(%a) {axis = 1 : i32} : (tensor<8x4x6xf32>) -> tensor<8x6xi32>  // ([i, j, k])->([i, k]) {i=8, j=4, k=6} need_replication={j}
  %67 = "tosa.reshape"(%a, %two) : (tensor<8x4x6xf32>, !tosa.shape<2>) -> tensor<32x6xf32>  // ([i, j, k], [])->([ij, k]) {i=8, j=4, k=6}
  %68 = "tosa.reshape"(%a) {new_shape = array<i64: 8, 24>} : (tensor<8x4x6xf32>) -> tensor<8x24xf32>  // ([i, j, k])->([i, jk]) {i=8, j=4, k=6}
  %69 = "tosa.transpose"(%a) {perms = array<i32: 2, 0, 1>} : (tensor<8x4x6xf32>) -> tensor<6x8x4xf32>  // ([j, k, i])->([i, j, k]) {i=6, j=8, k=4}
  %70 = "tosa.concat"(%a, %a) {axis = 1 : i32} : (tensor<8x4x6xf32>, tensor<8x4x6xf32>) -> tensor<8x8x6xf32>  // ([i, j, k], [i, j, k])->([i, j, k]) {i=8, j=8, k=6} need_replication={j}
  %71 = "tosa.pad"(%a, %six, %z) : (tensor<8x4x6xf32>, !tosa.shape<6>, tensor<1xf32>) -> tensor<8x6x6xf32>  // ([i, j, k], [], [l])->([i, j, k]) {i=8, j=4, k=6, l=1} permutation={j}
  %72 = "tosa.slice"(%a, %three, %three) : (tensor<8x4x6xf32>, !tosa.shape<3>, !tosa.shape<3>) -> tensor<8x4x3xf32>  // ([i, j, k], [], [])->([i, j, k]) {i=8, j=4, k=6} permutation={k}
  %73 = "tosa.reverse"(%a) {axis = 0 : i32} : (tensor<8x4x6xf32>) -> tensor<8x4x6xf32>  // ([i, j, k])->([i, j, k]) {i=8, j=4, k=6} permutation={i}
  %74 = "tosa.tile"(%a, %three) : (tensor<8x4x6xf32>, !tosa.shape<3>) -> tensor<8x8x6xf32>  // ([i, k, j], [])->([i, l, j]) {i=8, j=6, k=1, l=1}
  %75 = "tosa.gather"(%v, %i) : (tensor<2x8x6xf32>, tensor<2x4xi32>) -> tensor<2x4x6xf32>  // ([i, l, k], [i, j])->([i, j, k]) {i=2, j=4, k=6, l=8} need_replication={l}
  %76 = "tosa.scatter"(%v, %i, %u) : (tensor<2x8x6xf32>, tensor<2x4xi32>, tensor<2x4x6xf32>) -> tensor<2x8x6xf32>  // ([i, j, k], [i, l], [i, l, k])->([i, j, k]) {i=2, j=8, k=6, l=4} need_replication={j, l}
  %77:2 = "tosa.fft2d"(%a, %a) : (tensor<8x4x6xf32>, tensor<8x4x6xf32>) -> (tensor<8x4x6xf32>, tensor<8x4x6xf32>)  // ([i, j, k], [i, j, k])->([i, j, k], [i, j, k]) {i=8, j=4, k=6} need_replication={j, k}
  %78:2 = "tosa.rfft2d"(%a) : (tensor<8x4x6xf32>) -> (tensor<8x4x4xf32>, tensor<8x4x4xf32>)  // ([i, j, k])->([i, j, l], [i, j, m]) {i=8, j=4, k=1, l=1, m=1} need_replication={j}
  %79 = "tosa.resize"(%x, %four, %two, %two) {mode = "BILINEAR"} : (tensor<2x16x16x8xf32>, !tosa.shape<4>, !tosa.shape<2>, !tosa.shape<2>) -> tensor<2x32x32x8xf32>  // ([i, k, l, j], [], [], [])->([i, m, n, j]) {i=2, j=8, k=1, l=1, m=1, n=1}
  %c = "tosa.const"() {values = dense<1.0> : tensor<8x4xf32>} : () -> tensor<8x4xf32>  // no rule: a constant is sharded as its use asks
  %s = "tosa.const_shape"() {values = dense<[8, 4]> : tensor<2xindex>} : () -> !tosa.shape<2>  // no rule: a constant is sharded as its use asks
  return
}

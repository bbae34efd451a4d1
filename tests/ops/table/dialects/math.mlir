// math
func.func @math_0(%a: tensor<8x4xf32>, %i: tensor<8x4xi32>) {
  %1 = "math.absf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %2 = "math.acos"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %3 = "math.acosh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %4 = "math.asin"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %5 = "math.asinh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %6 = "math.atan"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %7 = "math.atanh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %8 = "math.cbrt"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %9 = "math.ceil"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %10 = "math.cos"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %11 = "math.cosh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %12 = "math.erf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %13 = "math.erfc"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %14 = "math.exp"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %15 = "math.exp2"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %16 = "math.expm1"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %17 = "math.floor"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %18 = "math.log"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %19 = "math.log10"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %20 = "math.log1p"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %21 = "math.log2"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %22 = "math.round"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %23 = "math.roundeven"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %24 = "math.rsqrt"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %25 = "math.sin"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %26 = "math.sinh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %27 = "math.sqrt"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %28 = "math.tan"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %29 = "math.tanh"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %30 = "math.trunc"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %31 = "math.absi"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %32 = "math.ctlz"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %33 = "math.ctpop"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %34 = "math.cttz"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %35 = "math.atan2"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %36 = "math.copysign"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %37 = "math.powf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %38 = "math.ipowi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %39 = "math.fpowi"(%a, %i) : (tensor<8x4xf32>, tensor<8x4xi32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %40 = "math.fma"(%a, %a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  %41 = "math.clampf"(%a, %a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  %42 = "math.isfinite"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi1>  // ([i, j])->([i, j]) {i=8, j=4}
  %43 = "math.isinf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi1>  // ([i, j])->([i, j]) {i=8, j=4}
  %44 = "math.isnan"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi1>  // ([i, j])->([i, j]) {i=8, j=4}
  %45 = "math.isnormal"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi1>  // ([i, j])->([i, j]) {i=8, j=4}
  %46:2 = "math.sincos"(%a) : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)  // ([i, j])->([i, j], [i, j]) {i=8, j=4}
  return
}

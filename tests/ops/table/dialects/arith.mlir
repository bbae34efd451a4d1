// arith
func.func @arith_0(%a: tensor<8x4xf32>, %i: tensor<8x4xi32>, %p: tensor<8x4xi1>, %h: tensor<8x4xf16>, %bit: i1, %s: tensor<8x4xi8>, %index: tensor<8x4xindex>, %l: tensor<8x4xi64>, %d: tensor<8x4xf64>) {
  %c = arith.constant dense<1.0> : tensor<8x4xf32>  // no rule: a constant is sharded as its use asks
  %1 = "arith.addf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %2 = "arith.divf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %3 = "arith.maximumf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %4 = "arith.maxnumf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %5 = "arith.minimumf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %6 = "arith.minnumf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %7 = "arith.mulf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %8 = "arith.remf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %9 = "arith.subf"(%a, %a) : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %10 = "arith.negf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %11 = "arith.addi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %12 = "arith.andi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %13 = "arith.ceildivsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %14 = "arith.ceildivui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %15 = "arith.divsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %16 = "arith.divui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %17 = "arith.floordivsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %18 = "arith.maxsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %19 = "arith.maxui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %20 = "arith.minsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %21 = "arith.minui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %22 = "arith.muli"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %23 = "arith.ori"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %24 = "arith.remsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %25 = "arith.remui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %26 = "arith.shli"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %27 = "arith.shrsi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %28 = "arith.shrui"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %29 = "arith.subi"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %30 = "arith.xori"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi32>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %31:2 = "arith.addui_extended"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> (tensor<8x4xi32>, tensor<8x4xi1>)  // ([i, j], [i, j])->([i, j], [i, j]) {i=8, j=4}
  %32:2 = "arith.mulsi_extended"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> (tensor<8x4xi32>, tensor<8x4xi32>)  // ([i, j], [i, j])->([i, j], [i, j]) {i=8, j=4}
  %33:2 = "arith.mului_extended"(%i, %i) : (tensor<8x4xi32>, tensor<8x4xi32>) -> (tensor<8x4xi32>, tensor<8x4xi32>)  // ([i, j], [i, j])->([i, j], [i, j]) {i=8, j=4}
  %34 = "arith.cmpf"(%a, %a) {predicate = 1 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %35 = "arith.cmpi"(%i, %i) {predicate = 0 : i64} : (tensor<8x4xi32>, tensor<8x4xi32>) -> tensor<8x4xi1>  // ([i, j], [i, j])->([i, j]) {i=8, j=4}
  %36 = "arith.bitcast"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %37 = "arith.extf"(%h) : (tensor<8x4xf16>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %38 = "arith.extsi"(%s) : (tensor<8x4xi8>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %39 = "arith.extui"(%s) : (tensor<8x4xi8>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %40 = "arith.fptosi"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %41 = "arith.fptoui"(%a) : (tensor<8x4xf32>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %42 = "arith.index_cast"(%index) : (tensor<8x4xindex>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %43 = "arith.index_castui"(%index) : (tensor<8x4xindex>) -> tensor<8x4xi32>  // ([i, j])->([i, j]) {i=8, j=4}
  %44 = "arith.sitofp"(%i) : (tensor<8x4xi32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %45 = "arith.uitofp"(%i) : (tensor<8x4xi32>) -> tensor<8x4xf32>  // ([i, j])->([i, j]) {i=8, j=4}
  %46 = "arith.truncf"(%a) : (tensor<8x4xf32>) -> tensor<8x4xf16>  // ([i, j])->([i, j]) {i=8, j=4}
  %47 = "arith.trunci"(%i) : (tensor<8x4xi32>) -> tensor<8x4xi8>  // ([i, j])->([i, j]) {i=8, j=4}
  %48 = "arith.select"(%p, %a, %a) : (tensor<8x4xi1>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>  // ([i, j], [i, j], [i, j])->([i, j]) {i=8, j=4}
  %scalar = arith.select %bit, %a, %a : tensor<8x4xf32>  // ([], [i, j], [i, j])->([i, j]) {i=8, j=4}
  return
}

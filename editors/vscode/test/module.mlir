// SYNTAX TEST "source.mlir" "A StableHLO module"

  %0 = stablehlo.dot_general %arg0, %w#1 : (tensor<8x4xbf16>) -> tensor<8xf32> loc("a.py":7:9)
//^^ variable.other.mlir
//     ^^^^^^^^^^^^^^^^^^^^^ keyword.operator.op.mlir
//                           ^^^^^ variable.other.mlir
//                                  ^^^^ variable.other.mlir
//                                          ^^^^^^ support.type.mlir
//                                                     ^^^^ support.type.primitive.mlir
//                                                                        ^^^ support.type.primitive.mlir
//                                                                             ^^^ keyword.other.mlir
//                                                                                 ^^^^^^ string.quoted.double.mlir
func.func @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
// <--------- keyword.operator.op.mlir
//        ^^^^^ entity.name.function.mlir
//                                                ^^^^^^^^^^^^^ constant.other.attribute.mlir

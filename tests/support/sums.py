"""Two partial sums, as tests ask about their collectives and pin them."""

from __future__ import annotations

# Two sums that are subtracted: summed once, if the products stay partial sums.
SUMS = """\
sdy.mesh @mesh = <["x"=4]>
#rows = #sdy.sharding<@mesh, [{"x"}, {}]>
#columns = #sdy.sharding<@mesh, [{}, {"x"}]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #columns}, %b: tensor<16x8xf32> {sdy.sharding = #rows},
                %c: tensor<8x16xf32> {sdy.sharding = #columns}, %d: tensor<16x8xf32> {sdy.sharding = #rows})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot_general %c, %d, contracting_dims = [1] x [0]
     : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
"""

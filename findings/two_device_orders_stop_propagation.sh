#!/usr/bin/env bash
# Expected: an addition whose operands are sharded alike, along axis x of two meshes that differ in the order
# of devices, takes the sharding of one of them, or is refused.
# What happens: the addition and all that follows from it alone have no sharding: it is computed whole on
# every device, without a message. Other users of the same operands are sharded. Two meshes of different names
# with the same order are made one, and then the sharding passes.
# Versions: Shardy of jaxlib 0.10.2 and 0.12.0, pass sdy-propagation-pipeline.
# Why it matters: meshes of modules that are linked from two programs may differ in nothing but this order,
# and all that follows from the first op where both meet is then replicated.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"

JAX_PLATFORMS=cpu "$folder/venv/bin/python" -I - <<'PY'
import jaxlib.version
from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager

print("jaxlib", jaxlib.version.__version__)
MODULE = """
sdy.mesh @one = <["x"=2]>
sdy.mesh @other = <["x"=2]{order}>
func.func @main(%a: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@one, [{{"x"}}]>}},
                %b: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@other, [{{"x"}}]>}}) -> (tensor<4xf32>, tensor<4xf32>) {{
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  %1 = stablehlo.negate %a : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}}
"""


def sharded(order):
    with mlir.make_ir_context():
        module = ir.Module.parse(MODULE.format(order=order))
        passmanager.PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module.operation)
        add, negate, _ = module.body.operations[-1].body.blocks[0].operations
        return ["sdy.sharding" in op.operation.attributes for op in (add, negate)]


found = {order: sharded(order) for order in ("", ", device_ids=[1, 0]")}
for order, (add, negate) in found.items():
    print(order or ", the same order", "add sharded:", add, "negate sharded:", negate)
assert found == {"": [True, True], ", device_ids=[1, 0]": [False, True]}, "meshes are reconciled otherwise now"
PY

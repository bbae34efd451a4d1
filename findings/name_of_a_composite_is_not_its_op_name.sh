#!/usr/bin/env bash
# Expected: op.name of an op in jaxlib's MLIR bindings is the name of the op, as ir.Operation.name is, and a
# str.
# What happens: of an op whose definition has an attribute called "name", op.name is that attribute:
# StringAttr("my.op") for stablehlo.composite. The generated class (OpView) has a property for each attribute,
# and it shadows the inherited one. value.owner, use.owner and iteration over a block give OpViews, so op.name
# is a str for most ops of a module. op.operation.name is always the name of the op.
# Versions: jaxlib 0.10.2 and 0.12.0.
# Why it matters: a table keyed by op.name works on all programs until one has a composite; comparing with a
# str is then False, without an error.
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
from jaxlib.mlir import ir

print("jaxlib", jaxlib.version.__version__)
MODULE = """
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.negate %a : tensor<2xf32>
  %1 = stablehlo.composite "my.op" %0 {decomposition = @f} : (tensor<2xf32>) -> tensor<2xf32>
  return %1 : tensor<2xf32>
}
func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> { return %a : tensor<2xf32> }
"""
with mlir.make_ir_context():
    module = ir.Module.parse(MODULE)
    negate, composite, _ = module.body.operations[0].body.blocks[0].operations
    for op in (negate, composite):
        print(type(op).__name__, "name", repr(op.name), "operation.name", repr(op.operation.name))
    assert negate.name == "stablehlo.negate"
    assert isinstance(composite.name, ir.StringAttr), "op.name is the name of the op now"
    assert composite.name != "stablehlo.composite" and composite.operation.name == "stablehlo.composite"
    (use,) = negate.result.uses
    assert isinstance(use.owner.name, ir.StringAttr)
PY

#!/usr/bin/env bash
# Expected: an ir.Operation of MLIR's Python bindings hashes by what it is equal by: the op that it stands for. So a set or dict
# of ops finds an op again, whatever is done to it.
# What happens: __eq__ compares which op it is, and __hash__ hashes what the op says. Once an attribute is set, or an operand
# replaced, a set that holds the op does not find it any more. Values hash by what they are.
# Versions: jaxlib 0.10.2; 0.12.0.1 does the same.
# Why it matters: a pass that collects ops in a set and annotates them as it goes loses those that it has annotated, without
# an error. Keys have to be taken from a result, or the op's position.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"

JAX_PLATFORMS=cpu "$folder/venv/bin/python" -I - <<'PY'
import jaxlib
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

TEXT = """
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
print("jaxlib", jaxlib.__version__)
with mlir.make_ir_context():
    module = ir.Module.parse(TEXT)
    block = module.body.operations[0].regions[0].blocks[0]
    op = block.operations[0].operation
    result, ops, values = op.results[0], {op}, {op.results[0]}
    assert op in ops and result in values

    op.attributes["note"] = ir.UnitAttr.get()
    print("after an attribute is set: the same op", op == block.operations[0].operation, "- found", op in ops)
    assert op == block.operations[0].operation
    assert op not in ops, "the op is found again"
    assert op.results[0] in values

    ops = {op}
    op.operands[1] = block.arguments[1]
    print("after an operand is replaced: found", op in ops, "- its result", op.results[0] in values)
    assert op not in ops, "the op is found again"
    assert op.results[0] in values
PY

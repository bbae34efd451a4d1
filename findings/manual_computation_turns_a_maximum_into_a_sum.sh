#!/usr/bin/env bash
# Expected: the shardings at the boundary of an sdy.manual_computation leave Shardy's propagation pipeline as they came in:
# a value that is the maximum of what devices hold along "x" (unreduced=max{"x"}) stays that.
# What happens: in_shardings says unreduced={"x"} afterwards, a sum. out_shardings of the same op, and the
# sharding of the argument that goes in, keep the maximum. The op was not even propagated: nothing had to be decided.
# Versions: jaxlib 0.12.0.1; 0.11.2 does the same. (0.10 has sums alone.)
# Why it matters: whoever partitions the program by its in_shardings adds up what should be compared; the result is
# wrong by more than rounding, and nothing says so.
set -euo pipefail

for python in python3 python3.13 python3.12 ""; do
  if [ -n "$python" ] && "$python" -c "import sys; sys.exit(sys.version_info < (3, 12))" 2>/dev/null; then break; fi
done
[ -n "$python" ] || { echo "needs Python 3.12 or later, as python3, python3.12 or python3.13"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$python" -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.12.0.1" "jaxlib==0.12.0.1" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"

JAX_PLATFORMS=cpu "$folder/venv/bin/python" -I - <<'PY'
import jaxlib
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

MODULE = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced=max{"x"}>}) -> tensor<8x4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{}, {}], unreduced=max{"x"}>]
      out_shardings=[<@mesh, [{}, {}], unreduced=max{"x"}>] manual_axes={"x"} (%b: tensor<8x4xf32>) {
    sdy.return %b : tensor<8x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {}]> : tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
"""

with mlir.make_ir_context():
    module = ir.Module.parse(MODULE)
    PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module.operation)
    text = str(module)
(line,) = (line.strip() for line in text.splitlines() if "sdy.manual_computation" in line)
print("jaxlib", jaxlib.__version__)
print(line)
assert 'in_shardings=[<@mesh, [{}, {}], unreduced={"x"}>]' in line, "in_shardings keeps the maximum now"
assert 'out_shardings=[<@mesh, [{}, {}], unreduced=max{"x"}>]' in line
assert '%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced=max{"x"}>}' in text
PY

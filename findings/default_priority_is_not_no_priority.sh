#!/usr/bin/env bash
# Expected: in Shardy's notation [{?}] and [{?}p0] are the same sharding: no axes, open, and 0 is the priority of what
# names none.
# What happens: a closed constraint on a value without a sharding becomes the sharding of that value. Since 0.12 that
# holds too where the value has [{?}], which says nothing; where it has [{?}p0] it does not.
# Versions: jaxlib 0.12.0.1. (In 0.10.2 and 0.11.2 either of the two keeps the constraint away.)
# Why it matters: tools that write shardings leave default priorities out, or spell them, and either may change how
# the program is sharded.
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


def negated(sharding):
    """The op whose result is constrained to "x", after constraints are applied."""
    said = f"{{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{sharding}]>]>}}" if sharding else ""
    text = f"""
      sdy.mesh @mesh = <["x"=2]>
      func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
        %0 = stablehlo.negate %a {said} : tensor<8xf32>
        %1 = sdy.sharding_constraint %0 <@mesh, [{{"x"}}]> : tensor<8xf32>
        %2 = stablehlo.tanh %0 : tensor<8xf32>
        %3 = stablehlo.add %1, %2 : tensor<8xf32>
        return %3 : tensor<8xf32>
      }}"""
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        PassManager.parse("builtin.module(sdy-apply-sharding-constraints)").run(module.operation)
        (line,) = (line.strip() for line in str(module).splitlines() if "stablehlo.negate" in line)
        return line


print("jaxlib", jaxlib.__version__)
found = {sharding: negated(sharding) for sharding in ("", "{?}", "{?}p0")}
for sharding, line in found.items():
    print(f"{sharding or 'none':6}", line)
applied = [sharding for sharding, line in found.items() if '[{"x"}]' in line]
assert applied == ["", "{?}"], f"the constraint becomes the sharding of {applied}"
PY

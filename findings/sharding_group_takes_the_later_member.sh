#!/usr/bin/env bash
# Expected: two arguments that are annotated with different shardings and put into one sdy.sharding_group are
# refused, or both keep what they are annotated with, and so do their users; in any case the order in which
# the group's ops stand has no meaning.
# What happens: the arguments keep their own shardings, and all uses of both take the sharding of the member
# whose sdy.sharding_group op stands last. With the two ops in the other order all results have the other
# sharding. A diagnostic warns that the shardings of the group do not match; it does not say which one is
# used, and code that runs passes through the Python bindings sees it only if it attached a handler.
# Versions: Shardy of jaxlib 0.10.2 and 0.12.0, pass sdy-propagation-pipeline.
# Why it matters: shard_alike makes such groups; a tool that canonicalises or sorts ops without results may
# change what every device holds.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"

JAX_PLATFORMS=cpu "$folder/venv/bin/python" -I - <<'PY'
import re

import jaxlib.version
from jax._src.interpreters import mlir
from jaxlib.mlir import ir, passmanager

print("jaxlib", jaxlib.version.__version__)
MODULE = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}},
                %b: tensor<4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}]>}}) -> (tensor<4xf32>, tensor<4xf32>) {{
  sdy.sharding_group {first} group_id = 0 : tensor<4xf32>
  sdy.sharding_group {second} group_id = 0 : tensor<4xf32>
  %0 = stablehlo.negate %a : tensor<4xf32>
  %1 = stablehlo.negate %b : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}}
"""


def propagated(first, second):
    with mlir.make_ir_context():
        module = ir.Module.parse(MODULE.format(first=first, second=second))
        passmanager.PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module.operation)
        text = str(module)
    signature = next(line for line in text.splitlines() if "@main" in line)
    return re.findall(r'<@\w+, \[\{"(.)"\}', signature)


for order, axis in ((("%a", "%b"), "y"), (("%b", "%a"), "x")):
    arguments_then_results = propagated(*order)
    print("group of", *order, "gives", arguments_then_results)
    assert arguments_then_results == ["x", "y", axis, axis], "groups are resolved otherwise now"
PY

#!/usr/bin/env bash
# Expected: a value annotated with replicated={"a"} is not sharded along "a" by propagation. That is what explicitly
# replicated axes are for, and alone they do that: "a" from its operand stops there.
# What happens: in an sdy.sharding_group this holds only until another member of the group is sharded. "a" from the
# operand is stopped as before; "a" that comes to the other member shards both, and replicated={"a"} is gone.
# No diagnostic says so.
# Versions: Shardy of jaxlib 0.10.2, pass sdy-propagation-pipeline; 0.12.0.1 does the same.
# Why it matters: shard_alike makes such groups, and the annotation is how a user keeps an axis away from one tensor.
# Whether it holds depends on tensors elsewhere, and on which of them is reached first.
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
sdy.mesh @mesh = <["a"=2]>
func.func @main(%x: tensor<8xf32>{x}, %y: tensor<8xf32>{y}) -> (tensor<8xf32>, tensor<8xf32>) {{
  %0 = stablehlo.negate %x {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{?}}], replicated={{"a"}}>]>}} : tensor<8xf32>
  %1 = stablehlo.tanh %y : tensor<8xf32>
  {group}
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}}
"""
GROUP = "".join(f"sdy.sharding_group %{i} group_id = 0 : tensor<8xf32>\n  " for i in (0, 1))
ON_A = ' {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}'


def sharding_of_the_replicated_value(x, y, group):
    with mlir.make_ir_context():
        module = ir.Module.parse(MODULE.format(x=x, y=y, group=group))
        passmanager.PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module.operation)
        (line,) = (line for line in str(module).splitlines() if "stablehlo.negate" in line)
    return re.search(r"\[<@mesh, (\[.*?\])", line).group(1)


for said, x, y, group, expected in (
    ("its operand has a, no group", ON_A, "", "", "[{}]"),
    ("its operand has a, in a group", ON_A, "", GROUP, "[{}]"),
    ("the operand of the other member has a", "", ON_A, GROUP, '[{"a"}]'),
    ("both have a", ON_A, ON_A, GROUP, '[{"a"}]'),
):
    found = sharding_of_the_replicated_value(x, y, group)
    print(f"{said}: {found}")
    assert found == expected, "groups treat replicated axes otherwise now"
PY

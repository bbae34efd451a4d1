#!/usr/bin/env bash
# Expected: a sdy.sharding_constraint whose result nothing uses is dead code, without effect on the program.
# What happens: it shards its operand, and from there the argument, the other users of the operand and the
# result of the function. The op is gone afterwards, so the module shows no reason for the sharding. MLIR's
# canonicalizer keeps it, for it is not marked as pure. Without the op nothing is sharded.
# Versions: Shardy of jaxlib 0.10.2 and 0.12.0. JAX never hands such an op to Shardy, for it drops unused
# results when it traces; modules of other producers, or modules cut to a smaller function, have it.
# Why it matters: an importer or a reducer that removes ops without uses changes the decision.
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
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %unused = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<4xf32>
  %0 = stablehlo.negate %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""


def main_after(passes, text=MODULE):
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        passmanager.PassManager.parse(f"builtin.module({passes})").run(module.operation)
        return next(line.strip() for line in str(module).splitlines() if "@main" in line)


without = "".join(line for line in MODULE.splitlines(keepends=True) if "%unused" not in line)
as_written = main_after("sdy-propagation-pipeline")
canonical = main_after("canonicalize,sdy-propagation-pipeline")
removed = main_after("sdy-propagation-pipeline", without)
print("as written:", as_written)
print("without the op:", removed)
assert as_written.count('[{"x"}]') == 2, "the unused constraint has no effect any more"
assert canonical == as_written and "sdy.sharding" not in removed
PY

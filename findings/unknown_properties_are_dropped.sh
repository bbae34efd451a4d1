#!/usr/bin/env bash
# Expected: a name between <{ and }> that an op does not have is an error, as a missing required one is; or it is kept, as a name
# between { and } is.
# What happens: it is read and dropped without a word. So a dot_general whose generic form says "precision", as its
# pretty form does, in place of "precision_config", loses its precision.
# Versions: jaxlib 0.10.2; 0.12.0.1 does the same.
# Why it matters: modules of other producers, or of a newer version whose op has one property more, parse and mean something
# else. The text that is printed afterwards is the only sign.
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

DIMENSIONS = (
    "dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>"
)
HIGHEST = "[#stablehlo<precision HIGHEST>, #stablehlo<precision HIGHEST>]"


def printed(properties, attributes=""):
    """The op as MLIR prints it once it has read its generic form."""
    types = "(tensor<8x4xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>"
    text = f"""
      func.func @main(%a: tensor<8x4xf32>, %b: tensor<4x2xf32>) -> tensor<8x2xf32> {{
        %0 = "stablehlo.dot_general"(%a, %b) <{{{properties}}}> {attributes} : {types}
        return %0 : tensor<8x2xf32>
      }}"""
    with mlir.make_ir_context():
        module = ir.Module.parse(text)
        assert module.operation.verify()
        (line,) = (line.strip() for line in str(module).splitlines() if "dot_general" in line)
        return line


print("jaxlib", jaxlib.__version__)
known = printed(f"{DIMENSIONS}, precision_config = {HIGHEST}")
unknown = printed(f"{DIMENSIONS}, precision = {HIGHEST}")
discardable = printed(DIMENSIONS, f"{{precision = {HIGHEST}}}")
for line in (known, unknown, discardable):
    print(line.partition(" : ")[0])
assert "precision = [HIGHEST, HIGHEST]" in known
assert unknown == printed(DIMENSIONS), "the unknown property is no longer dropped"
assert "precision = [#stablehlo<precision HIGHEST>" in discardable
try:
    printed(f"precision_config = {HIGHEST}")
except ir.MLIRError:
    print("a property that is missing is an error")
else:
    raise AssertionError("a missing property is no error")
PY

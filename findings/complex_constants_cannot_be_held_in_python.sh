#!/usr/bin/env bash
# Expected: in jaxlib's MLIR bindings the value of a stablehlo.constant with complex elements is an
# ir.Attribute, perhaps without a class of its own and not convertible to NumPy; it can be printed, compared
# and handed to another op.
# What happens: reading the attribute raises TypeError, by op.value, by op.attributes["value"] and by
# ir.Attribute.parse of its text. The op prints, can be cloned and has its name, so only walking over
# attributes fails. bfloat16 and int4 constants are held, and fail when they become an array.
# Versions: jaxlib 0.10.2 and 0.12.0.
# Why it matters: any tool that walks over all ops and their attributes ends in a traceback at the first FFT
# or complex program, after it has worked on everything else.
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


def constant(element, value):
    text = f"tensor<2x{element}>"
    module = ir.Module.parse(
        f"func.func @main() -> {text} {{ %0 = stablehlo.constant dense<{value}> : {text}  return %0 : {text} }}"
    )
    return module, module.body.operations[0].body.blocks[0].operations[0]


def outcome(read):
    try:
        return type(read()).__name__
    except TypeError as error:
        return f"TypeError: {str(error)[:44]}"


with mlir.make_ir_context():
    module, op = constant("complex<f32>", "(1.0, 2.0)")
    reads = {
        "op.value": lambda: op.value,
        "op.attributes": lambda: op.attributes["value"],
        "Attribute.parse": lambda: ir.Attribute.parse("dense<(1.0, 2.0)> : tensor<2xcomplex<f32>>"),
    }
    for name, read in reads.items():
        print(name, "->", outcome(read))
        assert outcome(read).startswith("TypeError"), "complex constants can be held now"
    assert op.operation.name == "stablehlo.constant" and "complex<f32>" in str(op.operation.clone())
    for element in ("bf16", "i4", "f32"):
        module, op = constant(element, "1.0" if element != "i4" else "1")
        print(element, "->", outcome(lambda: op.value))
        assert outcome(lambda: op.value).startswith("Dense")
PY

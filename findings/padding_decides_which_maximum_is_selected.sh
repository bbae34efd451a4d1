#!/usr/bin/env bash
# Expected: of equal elements in a window stablehlo.select_and_scatter, the gradient of a max pool, selects one by their
# places alone: the first, row by row, if it selects by GE. Padding adds elements that are never selected.
# What happens: on CPUs the first row by row is selected where the last dimension has no padding, and the first column by column
# where it has some. The window that is looked at has no padding in it either time.
# Versions: jaxlib 0.10.2; 0.11.2 and 0.12.0.1 do the same.
# Why it matters: the StableHLO specification leaves the order open, so this is no error; but a device's part of
# a tensor, which has padding at other edges than the whole, has its gradients elsewhere. Tools that compare a partitioned
# program with the whole see other results where values are equal, as after a relu or in bfloat16. (jax.grad of a
# max pool pads before it selects, and is the same in both.)
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"

JAX_PLATFORMS=cpu "$folder/venv/bin/python" -I - <<'PY'
import jax
import jaxlib
import numpy as np
from jax._src import compiler
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jax._src.lib.mlir import ir

MODULE = """
func.func @main(%x: tensor<2x2xf32>, %s: tensor<{rows}x{columns}xf32>) -> tensor<2x2xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%x, %s, %zero) <{{window_dimensions = array<i64: 2, 2>,
      padding = dense<{padding}> : tensor<2x2xi64>}}> ({{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
  }}, {{
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
  }}) : (tensor<2x2xf32>, tensor<{rows}x{columns}xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}}
"""


def selected(padding):
    """Where the gradient of the last window goes, which is all of x."""
    rows, columns = (1 + sum(each) for each in padding)
    text = MODULE.format(rows=rows, columns=columns, padding=padding)
    device = jax.devices()[0]
    with mlir.make_ir_context():
        options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
        program = device.client.compile_and_load(ir.Module.parse(text), _jax.DeviceList((device,)), options)
    x = np.array([[-3, -1], [-1, -1]], np.float32)  # three are the largest
    source = np.zeros((rows, columns), np.float32)
    source[-1, -1] = 1
    (result,) = program.execute_sharded(list(map(jax.device_put, (x, source)))).disassemble_into_single_device_arrays()
    return tuple(int(i) for i in np.argwhere(np.asarray(result[0]))[0])


print("jaxlib", jaxlib.__version__)
found = {name: selected(padding) for name, padding in {
    "none": [[0, 0], [0, 0]], "before the rows": [[1, 0], [0, 0]], "before the columns": [[0, 0], [1, 0]],
}.items()}  # fmt: skip
for name, place in found.items():
    print(f"padding {name:18} selects {place}")
assert [*found.values()] == [(0, 1), (0, 1), (1, 0)], "padding decides otherwise now"
PY

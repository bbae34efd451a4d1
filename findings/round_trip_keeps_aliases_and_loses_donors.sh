#!/usr/bin/env bash
# Expected: StableHLO that goes to HLO and back has the same boundary: shardings of arguments and results are
# sdy's or GSPMD's, but of one kind, and of a donated argument both ways to say it (tf.aliasing_output, and
# jax.buffer_donor where input and output are sharded differently) come back.
# What happens: arguments come back with Shardy's sharding, mesh axes by name, in a frontend attribute, and
# GSPMD's beside it. Results have GSPMD's alone: which axis shards them is no longer said. An alias comes back
# as an attribute of the module, with another name; a donor, which the HLO has, is gone without a message.
# Versions: jax 0.10.2 and jax 0.12.0.1, with the converters of jaxlib (compiler_ir("hlo") and
# hlo_to_stablehlo).
# Why it matters: tools that read dumps of HLO lose the memory that donation saves, and have to find axes for
# the results of programs whose mesh has two axes of one size.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"

JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 \
"$folder/venv/bin/python" -I - <<'PY'
import jax
import jax.numpy as jnp
from jax._src.interpreters import mlir
from jax._src.lib import _jax
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from jaxlib.mlir import ir

print("jax", jax.__version__)
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))
rows, columns = NamedSharding(mesh, P("x")), NamedSharding(mesh, P(None, "x"))
matrix = jax.ShapeDtypeStruct((64, 64), jnp.float32)


def there_and_back(out):
    lowered = jax.jit(lambda x: (x + 1, x.sum()), donate_argnums=0, in_shardings=rows, out_shardings=(out, None)).lower(matrix)
    hlo = lowered.compiler_ir("hlo")
    with mlir.make_ir_context():
        text = str(ir.Module.parse(_jax.mlir.hlo_to_stablehlo(hlo.as_serialized_hlo_module_proto())))
    return lowered.as_text(), hlo.as_hlo_text(), text


before, hlo, after = there_and_back(rows)
assert "tf.aliasing_output" in before and "input_output_alias={ {0}: (0" in hlo
assert "mhlo.input_output_alias = [{alias" in after and "tf.aliasing_output" not in after
print("alias: comes back as mhlo.input_output_alias")
arguments, results = next(line for line in after.splitlines() if "@main" in line).split(") -> ")
print("argument:", arguments.split("%arg0: ")[1])
print("result:", results)
assert 'xla.sdy.sharding = "#sdy.sharding<@mesh, [{\\22x\\22}, {}]>"' in arguments
assert "sdy" not in results and 'mhlo.sharding = "{devices=[8,1]<=[8]}"' in results, "results come back otherwise now"

before, hlo, after = there_and_back(columns)
assert "jax.buffer_donor = true" in before and "buffer_donor={ (0, {}) }" in hlo
print("donor: comes back", "donor" in after)
assert "donor" not in after and "mhlo.input_output_alias = []" in after, "donors come back now"
PY

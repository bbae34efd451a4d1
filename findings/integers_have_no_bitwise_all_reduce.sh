#!/usr/bin/env bash
# Expected: all_reduce of StableHLO takes a computation, and MPI has MPI_BAND, MPI_BOR and MPI_BXOR; so bit masks of
# integers are combined over devices by an all_reduce whose computation is stablehlo.or, as within one device by a
# reduce with that computation.
# What happens: the module verifies, and XLA does not compile it: "Unsupported reduction computation". Of
# booleans `and` and `or` compile, and `xor` does not. A gather of the masks and a reduce with the same
# computation give the answer.
# Versions: jax and jaxlib 0.10.2, and 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: a partitioner that splits a bitwise reduction, or lowers shard.all_reduce with reduction =
# bitwise_or of MLIR, cannot send it as it is: it gathers or exchanges what is reduced, which is more bytes.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
versions=(0.10.2)
if python3 -c 'import sys; sys.exit(sys.version_info < (3, 12))'; then versions+=(0.12.0.1); fi
for version in "${versions[@]}"; do
  python3 -m venv "$folder/$version"
  "$folder/$version/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
    "jax==$version" "jaxlib==$version" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"
  JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=4 \
  "$folder/$version/bin/python" -I - <<'PY'
import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxlib import _jax, xla_client
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import stablehlo

MODULE = """
module attributes {{mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 1 : i32}} {{
  func.func @main(%x: tensor<2x{type}>) -> tensor<2x{type}> {{
    %0 = "stablehlo.all_reduce"(%x) <{{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}}> ({{
    ^bb0(%a: tensor<{type}>, %b: tensor<{type}>):
      %1 = stablehlo.{op} %a, %b : tensor<{type}>
      stablehlo.return %1 : tensor<{type}>
    }}) : (tensor<2x{type}>) -> tensor<2x{type}>
    return %0 : tensor<2x{type}>
  }}
}}
"""
devices = jax.devices()
sharding = NamedSharding(Mesh(np.array(devices), ("d",)), PartitionSpec("d"))


def all_reduced(op, masks):
    """What the first device has of an all_reduce of one row of masks a device; the message if it fails."""
    kind = "i1" if masks.dtype == np.bool_ else "i32"
    text = MODULE.format(op=op, type=kind)
    with ir.Context() as context, ir.Location.unknown():
        registry = ir.DialectRegistry()
        _jax_mlir_ext.register_dialects(registry)
        context.append_dialect_registry(registry)
        context.load_all_available_dialects()
        stablehlo.register_dialect(context)
        assert ir.Module.parse(text).operation.verify()
    options = xla_client.CompileOptions()
    options.num_replicas, options.num_partitions = 4, 1
    options.device_assignment = xla_client.DeviceAssignment.create(np.arange(4)[:, None])
    try:
        compiled = devices[0].client.compile_and_load(text, _jax.DeviceList(tuple(devices)), options)
    except Exception as error:
        return str(error).partition("\n")[0]
    rows = [jax.device_put(row, device) for row, device in zip(masks, devices)]
    given = jax.make_array_from_single_device_arrays((8,), sharding, rows)
    (parts,) = compiled.execute_sharded([given]).disassemble_into_single_device_arrays()
    return np.asarray(parts[0])


print("jax", jax.__version__)
masks = np.array([[1, 8], [2, 8], [4, 8], [1, 0]], np.int32)
for op in ("and", "or", "xor"):
    of_numbers, of_booleans = all_reduced(op, masks), all_reduced(op, masks > 1)
    print(op, "of i32:", of_numbers)
    print(op, "of i1:", of_booleans)
    assert "Unsupported reduction computation" in of_numbers, "it compiles now"
    if op == "xor":
        assert "Unsupported reduction computation" in of_booleans, "it compiles now"
    else:
        wanted = {"and": np.logical_and, "or": np.logical_or}[op].reduce(masks > 1)
        assert np.array_equal(of_booleans, wanted)
mesh = jax.make_mesh((4,), ("d",), axis_types=(AxisType.Auto,))
gathered = jax.jit(
    jax.shard_map(
        lambda x: jax.lax.reduce_or(jax.lax.all_gather(x, "d", tiled=True), axes=(0,)),
        mesh=mesh, in_specs=PartitionSpec("d"), out_specs=PartitionSpec(), check_vma=False,
    )
)(masks)
print("or of i32, gathered first:", gathered)
assert np.array_equal(gathered, np.bitwise_or.reduce(masks))
PY
done

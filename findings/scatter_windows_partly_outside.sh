#!/usr/bin/env bash
# Expected: a scatter of StableHLO means the same for all that run StableHLO. If a window of updates lies partly outside of the tensor, either
# the part inside is written, or nothing is; StableHLO's own reference interpreter shows which.
# What happens: the interpreter writes the part inside, element by element. XLA drops the whole window, as lax.GatherScatterMode promises
# for FILL_OR_DROP. dynamic_update_slice is a third way, the same in both: it moves the window until all of it is inside.
# There is no message from any of them. Windows within bounds agree.
# Versions: jax and jaxlib 0.10.2, and 0.12.0.1 where Python is 3.12 or later (the interpreter is jaxlib's stablehlo.eval_module).
# Why it matters: whoever takes a scatter apart must decide for whole windows first. A window of four rows is not four windows of a row: the
# rows inside would be written. A partitioner meets this wherever a window crosses from one device's part into another's.
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
  JAX_PLATFORMS=cpu XLA_FLAGS=--xla_force_host_platform_device_count=8 \
  "$folder/$version/bin/python" -I - <<'PY'
import jax
import numpy as np
from jax import lax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

SIZE, ROWS = 8, 4
tensor, updates = np.zeros(SIZE, np.float32), np.arange(1, ROWS + 1, dtype=np.float32)
numbers = lax.ScatterDimensionNumbers(
    update_window_dims=(0,), inserted_window_dims=(), scatter_dims_to_operand_dims=(0,)
)


def scatter(x, place, updates):
    return lax.scatter(x, place, updates, numbers, mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def dropped(x, place, updates):
    return lax.scatter(x, place, updates, numbers, mode=lax.GatherScatterMode.FILL_OR_DROP)


def update(x, place, updates):
    return lax.dynamic_update_slice(x, updates, (place[0],), allow_negative_indices=False)


def interpreted(function, *arrays):
    module = jax.jit(function).lower(*arrays).compiler_ir()
    with module.context, ir.Location.unknown(module.context):
        (result,) = stablehlo.eval_module(module, [ir.DenseElementsAttr.get(array) for array in arrays])
        return np.array(ir.DenseElementsAttr(result))


def written(place):
    """The elements inside of the tensor, each where its index points."""
    expected = tensor.copy()
    for row in range(ROWS):
        if 0 <= place + row < SIZE:
            expected[place + row] = updates[row]
    return expected


print("jax", jax.__version__)
for place in (-2, 0, 3, SIZE - ROWS, SIZE - 2):
    arrays = tensor, np.array([place], np.int32), updates
    whole_inside = 0 <= place <= SIZE - ROWS
    by_xla, by_interpreter = np.asarray(jax.jit(scatter)(*arrays)), interpreted(scatter, *arrays)
    moved = np.asarray(jax.jit(update)(*arrays))
    print(f"window at {place}: XLA {by_xla.tolist()}, interpreter {by_interpreter.tolist()}, update {moved.tolist()}")
    assert np.array_equal(by_interpreter, written(place)), "the interpreter writes something else now"
    assert np.array_equal(by_xla, written(place) if whole_inside else tensor), "XLA writes something else now"
    assert np.array_equal(by_xla, jax.jit(dropped)(*arrays))
    expected = written(min(max(place, 0), SIZE - ROWS))
    assert np.array_equal(moved, expected) and np.array_equal(interpreted(update, *arrays), expected)
PY
done

#!/usr/bin/env bash
# Expected: need_replication_factors of custom_partitioning is a set of factor names; their order has no
# meaning.
# What happens: ("i", "j") is accepted and ("j", "i") fails when the program is lowered: "indices of special
# factors must be sorted". The indices are those of the factors in the order in which the rule first names
# them, so the message is about Shardy's attribute and names neither the argument nor the factors.
# Versions: jax 0.10.2 and jax 0.12.0.1.
# Why it matters: def_partition accepts both; the error comes later, in the program of whoever uses the op,
# and a rule in which someone swaps two operands may break an argument that was in order before.
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
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

print("jax", jax.__version__)
mesh = jax.make_mesh((8,), ("x",), axis_types=(AxisType.Auto,))


def lower(rule, factors):
    @custom_partitioning
    def double(x):
        return 2 * x

    double.def_partition(
        partition=lambda mesh, operands, result: (mesh, lambda x: 2 * x, result.sharding, (operands[0].sharding,)),
        infer_sharding_from_operands=lambda mesh, operands, result: operands[0].sharding,
        sharding_rule=rule,
        need_replication_factors=factors,
    )
    jax.jit(double, in_shardings=NamedSharding(mesh, P("x"))).lower(jnp.zeros((8, 8)))


def refused(rule, factors):
    try:
        lower(rule, factors)
    except ValueError as error:
        assert "indices of special factors must be sorted" in str(error), error
        return True
    return False


found = {
    (rule, factors): refused(rule, factors)
    for rule in ("i j -> i j", "j i -> j i")
    for factors in (("i", "j"), ("j", "i"))
}
for (rule, factors), failed in found.items():
    print(rule, factors, "refused" if failed else "accepted")
assert list(found.values()) == [False, True, True, False], "the order no longer decides"
PY

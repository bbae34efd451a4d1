#!/usr/bin/env bash
# Expected: need_replication_factors=("d",) of custom_partitioning, "a dimension that shouldn't be sharded", has the operand arrive whole along d; or
# at least no sharding propagates along d. So a softmax over d that is computed on what each device holds is right.
# What happens: d propagates like any other factor, and the partition function is asked with an operand and a result that are sharded along
# d. If it hands these shardings back, as examples do, each device normalises its own columns: with d on 2 devices each row
# sums to 2. There is no message. Without need_replication_factors the program and its result are the same.
# The function has to give a sharding without d itself, for the operand; then XLA gathers.
# Versions: jax 0.10.2, and jax 0.12.0.1 where Python is 3.12 or later, on CPU devices.
# Why it matters: kernels of a softmax, a norm or a sort are wrapped like this. Tests along the batch pass, and results are wrong as soon as
# tensor parallelism reaches the dimension. Whoever runs such a program in another partitioner has to know that the rule does not say how
# operands arrive.
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
import jax.numpy as jnp
import numpy as np
from jax.experimental.custom_partitioning import custom_partitioning
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
values = np.random.default_rng(0).normal(size=(16, 8)).astype(np.float32)
asked = []


def softmax_of(whole: bool, **special):
    """A softmax along the last dimension; ``whole``: its partition function asks for whole rows."""

    @custom_partitioning
    def softmax(x):
        return jax.nn.softmax(x)

    def partition(mesh, operands, result):
        asked.append((operands[0].sharding.spec, result.sharding.spec))
        sharding = NamedSharding(mesh, P("data", None)) if whole else operands[0].sharding
        return mesh, jax.nn.softmax, sharding, (sharding,)

    softmax.def_partition(partition, sharding_rule="b d -> b d", **special)
    return softmax


print("jax", jax.__version__)
for whole, special, rows in (
    (False, {"need_replication_factors": ("d",)}, 2),
    (False, {}, 2),
    (True, {"need_replication_factors": ("d",)}, 1),
):
    softmax = softmax_of(whole, **special)
    for spec, expected in ((P("data", None), 1), (P("data", "model"), rows)):
        asked.clear()
        compiled = jax.jit(softmax, in_shardings=NamedSharding(mesh, spec)).lower(values).compile()
        found = np.asarray(compiled(jax.device_put(values, NamedSharding(mesh, spec)))).sum(1)
        gathers = "all-gather(" in compiled.as_text()
        print(f"{special}, whole rows asked for: {whole}; operand {spec}: rows sum to {found.min():.3f} to {found.max():.3f}, asked with {asked}")
        assert np.allclose(found, expected), "its results are other ones now"
        if "model" in spec:
            assert asked == [(P("data", "model"), P("data", "model"))], "it is asked in another way now"
            assert gathers == whole, "it is sent in another way now"
        else:
            assert not gathers
PY
done

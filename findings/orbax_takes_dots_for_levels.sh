#!/usr/bin/env bash
# Expected: the leaves of a pytree that orbax saves come back at their own places: {"a.b": 1, "a": {"b": 0}} has two leaves, and
# orbax's list of them has two paths. A key with a dot in it is escaped in the names of files, or refused.
# What happens: both leaves are stored as "a.b", one over the other, and both come back with the same numbers. Which ones
# depends on who wrote last. Nothing is said, on saving or restoring; the list of leaves that is stored beside them has both paths. Only if
# their shapes differ saving fails. A list is a level, too: {"a.0": ..., "a": [...]}. A slash does not do this: {"a/b": ...} is kept apart.
# Versions: orbax-checkpoint 0.12.8 with jax 0.10.2, by StandardCheckpointer and by the functions of orbax.checkpoint.v1.
# Why it matters: names of PyTorch and flax.traverse_util.flatten_dict(sep=".") have dots. A tree that keeps such a flat copy
# of some weights beside the nested ones (adapters, averages) loses one of the two, with the right shapes and shardings.
set -euo pipefail

python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "needs Python 3.11 or later as python3"; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile \
  "orbax-checkpoint==0.12.8" "tensorstore==0.1.86" \
  "jax==0.10.2" "jaxlib==0.10.2" "ml_dtypes==0.6.0" "numpy==2.4.6" "scipy==1.17.1" "opt_einsum==3.4.0"

JAX_PLATFORMS=cpu "$folder/venv/bin/python" -I - "$folder" <<'PY'
import logging
import sys
import warnings

import jax.numpy as jnp
import orbax.checkpoint as ocp
from orbax.checkpoint import v1

logging.disable(logging.WARNING)
warnings.simplefilter("ignore")
checkpointer = ocp.StandardCheckpointer()


def save(path, tree):
    checkpointer.save(path, tree)
    checkpointer.wait_until_finished()


ones, zeros = jnp.ones(2), jnp.zeros(2)
ways = {"StandardCheckpointer": (save, checkpointer.restore), "v1": (v1.save_pytree, v1.load_pytree)}
print("orbax", ocp.__version__)
for name, (write, read) in ways.items():
    path = f"{sys.argv[1]}/{name}"
    write(path + "1", {"a.b": ones, "a": {"b": zeros}})
    found = read(path + "1")
    print(f"{name}: a.b is {found['a.b']}, a, b is {found['a']['b']}")
    assert (found["a.b"] == found["a"]["b"]).all(), "dots and levels are kept apart now"

    write(path + "2", {"a.0": ones, "a": [zeros]})
    found = read(path + "2")
    print(f"{name}: a.0 is {found['a.0']}, a, 0 is {found['a'][0]}")
    assert (found["a.0"] == found["a"][0]).all(), "dots and levels are kept apart now"

    write(path + "3", {"a/b": ones, "a": {"b": zeros}})
    found = read(path + "3")
    print(f"{name}: a/b is {found['a/b']}, a, b is {found['a']['b']}")
    assert (found["a/b"] == ones).all() and (found["a"]["b"] == zeros).all()
PY

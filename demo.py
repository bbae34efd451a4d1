"""The main job on a real program: a transformer's train step goes in, every tensor's sharding comes out.

``make demo`` runs it in a clone: it compares the result with Shardy's, which only tests and this file do.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from . import Result, run
from .cli.programs import stages_table
from .exporters.table import table
from .tests import oracle
from .tests.bench.bench import fixpoint, whole
from .tests.compare import differences

LAYERS, VOCABULARY, WIDTH, HEADS, HIDDEN, BATCH, SEQUENCE = 24, 4096, 512, 8, 2048, 16, 128
MESH = AbstractMesh((2, 2, 2), ("data", "fsdp", "model"))
FOLDER = Path("build/demo")


def array(shape: tuple[int, ...], *spec: Any, dtype: Any = jnp.float32) -> jax.ShapeDtypeStruct:
    """An abstract array, annotated where a ``spec`` says how."""
    if not spec:
        return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]
    sharding = NamedSharding(MESH, PartitionSpec(*spec))  # type: ignore[no-untyped-call]
    return jax.ShapeDtypeStruct(shape, dtype, sharding=sharding)  # type: ignore[no-untyped-call]


# Tensor parallel over "model" as in Megatron, fully sharded data parallel over "fsdp".
LAYER = {
    "query": array((WIDTH, WIDTH), "fsdp", "model"),
    "key": array((WIDTH, WIDTH), "fsdp", "model"),
    "value": array((WIDTH, WIDTH), "fsdp", "model"),
    "out": array((WIDTH, WIDTH), "model", "fsdp"),
    "up": array((WIDTH, HIDDEN), "fsdp", "model"),
    "down": array((HIDDEN, WIDTH), "model", "fsdp"),
    "gains": array((2, WIDTH)),
}
PARAMS = {"embedding": array((VOCABULARY, WIDTH), "model", "fsdp"), "layers": [LAYER] * LAYERS}
TOKENS = array((BATCH, SEQUENCE), ("data", "fsdp"), None, dtype=jnp.int32)


def norm(x: jax.Array, gain: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * gain


def attention(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    q, k, v = ((x @ p[name]).reshape(BATCH, -1, HEADS, WIDTH // HEADS) for name in ("query", "key", "value"))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (WIDTH // HEADS) ** -0.5
    causal = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    weights = jax.nn.softmax(jnp.where(causal, scores, -1e9), -1)
    return jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(x.shape) @ p["out"]


def loss(params: dict[str, Any], tokens: jax.Array) -> jax.Array:
    """The next-token loss of a decoder-only transformer."""
    x = params["embedding"][tokens[:, :-1]]
    for p in params["layers"]:
        x = x + attention(norm(x, p["gains"][0]), p)
        x = x + jax.nn.gelu(norm(x, p["gains"][1]) @ p["up"]) @ p["down"]
    logits = jax.nn.log_softmax(x @ params["embedding"].T)
    return -jnp.mean(jnp.take_along_axis(logits, tokens[:, 1:, None], -1))


def train_step(params: Any, m: Any, v: Any, tokens: jax.Array) -> Any:
    """One step of Adam."""
    value, grads = jax.value_and_grad(loss)(params, tokens)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, v, grads)
    params = jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, m, v)
    return value, params, m, v


def lower() -> tuple[jax.stages.Lowered, list[str]]:
    """The train step and the names of its arguments. Only parameters and tokens are annotated."""
    moments = jax.tree.map(lambda a: array(a.shape), PARAMS)
    arguments = (PARAMS, moments, moments, TOKENS)
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(arguments)]
    names = [f"{('params', 'm', 'v', 'tokens')[p[0].idx]}{jax.tree_util.keystr(p[1:])}" for p in paths]
    return jax.jit(train_step).trace(*arguments).lower(lowering_platforms=("cpu",)), names


def written(result: Result) -> Counter[str]:
    """How many tensors that are no scalars have which sharding."""
    ranks = Counter(v for v, _, _ in result.facts["dim"])
    axes: dict[tuple[str, int], list[str]] = {}
    for v, d, _, x in result.facts["sharded"]:
        axes.setdefault((v, d), []).append(x)
    return Counter(
        "[" + ", ".join("{" + ", ".join(axes.get((v, d), [])) + "}" for d in range(rank)) + "]"
        for v, rank in ranks.items()
    )


def main() -> None:
    """Runs the demo; fails where our module is not Shardy's."""
    start = perf_counter()
    lowered, names = lower()
    text = lowered.as_text()
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "train_step.mlir").write_text(text)
    annotated = sum(argument.sharding is not None for argument in [*jax.tree.leaves(PARAMS), TOKENS])
    print(
        f"A transformer's train step with {LAYERS} layers, lowered by JAX in {perf_counter() - start:.1f} s"
    )
    ops = sum(line.lstrip().startswith("%") for line in text.splitlines())
    print(f"  {ops:,} ops; {annotated} of {len(names)} arguments are annotated")
    print(f"  mesh {', '.join(f'{name}={size}' for name, size in MESH.shape.items())}")
    print(f"  written to {FOLDER / 'train_step.mlir'}\n")

    start = perf_counter()
    result = run(lowered)
    annotated_text = result.text()
    seconds = perf_counter() - start
    (FOLDER / "annotated.mlir").write_text(annotated_text)
    print(f"shardlog reads it, propagates and writes the annotated module in {seconds:.2f} s")
    print(f"  written to {FOLDER / 'annotated.mlir'}\n")
    print(stages_table(result))

    counts = written(result)
    print(f"\n{counts.total():,} tensors have {len(counts)} different shardings:\n")
    print(table(("tensors", "sharding"), [(f"{n:,}", sharding) for sharding, n in counts.most_common(8)]))

    print("\nArguments, the parameters as annotated, the moments of Adam as decided:\n")
    shown = ("['embedding']", "['layers'][0]['query']", "['layers'][0]['down']", "['layers'][0]['gains']")
    specs = {
        name: str(sharding.spec) if sharding else "none"
        for name, sharding in zip(names, jax.tree.leaves(result.argument_shardings), strict=True)
    }
    print(table(("argument", "sharding"), [(a + b, specs[a + b]) for b in shown for a in ("params", "m")]))

    print("\nShardy, in this process, on the same module:\n")
    found = differences(annotated_text, oracle.propagate(text))
    if found:
        raise SystemExit("\n".join(["the modules differ:", *found]))
    print(f"  equal on every value, {len(result.facts['value']):,} of them, and on every op")
    for what, pair in (("fixpoint alone", fixpoint(text, 3)), ("from text to text", whole(text, 3))):
        print(f"  {what}: {pair.ours:.3f} s, Shardy {pair.theirs:.3f} s, ratio {pair.ratio:.2f}")


if __name__ == "__main__":
    main()

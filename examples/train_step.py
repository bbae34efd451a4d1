"""A train step goes in, every tensor's sharding comes out: ``python examples/train_step.py``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import shardlog
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

LAYERS, VOCABULARY, WIDTH, HEADS, HIDDEN, BATCH, SEQUENCE = 24, 4096, 512, 8, 2048, 16, 128
MESH = AbstractMesh((2, 2, 2), ("data", "fsdp", "model"), axis_types=(AxisType.Auto,) * 3)
FOLDER = Path("build/demo")
NEXT = """
What to look at next:
  {page}
      the page, in a browser: the program, every tensor's sharding, what must move
  .venv/bin/shardlog why {run} "m['layers'][0]['query']"
      why the first moment of a weight is sharded as it is, step by step back to an annotation
  .venv/bin/shardlog why {run} train_step.py:{line} --axis model
      the same of what a line of the program computes: the scores of attention
  .venv/bin/shardlog why-not {run} "params['embedding']" --dim 1 --axis model
      what stopped an axis
  .venv/bin/shardlog conflicts {run}
      which tensors must move between devices, most bytes first"""


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


def written(result: shardlog.Session) -> Counter[str]:
    """The number of tensors with each sharding, scalars left out."""
    ranks = Counter(v for v, _, _ in result.facts["dim"])
    axes: dict[tuple[str, int], list[str]] = {}
    for v, d, _, x in result.facts["sharded"]:
        axes.setdefault((v, d), []).append(x)
    return Counter(
        "[" + ", ".join("{" + ", ".join(axes.get((v, d), [])) + "}" for d in range(rank)) + "]"
        for v, rank in ranks.items()
    )


def say(text: str) -> None:
    """Prints at once what comes next, which may take a while."""
    print(text, flush=True)


def main(then: Callable[[str, str], None] = lambda program, annotated: None) -> None:
    """Runs the example in ``build/demo``. ``then`` is given the texts of the module, before and after."""
    say(f"JAX lowers a train step of a transformer: {LAYERS} layers, Adam, gradients and all ...")
    lowered, names = lower()
    FOLDER.mkdir(parents=True, exist_ok=True)
    program, decided = FOLDER / "train_step.mlir", FOLDER / "annotated.mlir"
    text = lowered.as_text(debug_info=True)  # with the lines of this file
    program.write_text(text)
    given = sum(argument.sharding is not None for argument in [*jax.tree.leaves(PARAMS), TOKENS])
    ops = sum(line.lstrip().startswith("%") for line in text.splitlines())
    mesh = ", ".join(f"{name}={size}" for name, size in MESH.shape.items())
    say(f"  {ops:,} ops; {given} of {len(names)} arguments are annotated, for the mesh {mesh}: {program}")

    say("\nshardlog reads it, propagates, and writes the annotated module ...")
    start = perf_counter()
    result = shardlog.run(lowered)
    annotated = result.text()
    say(f"  in {perf_counter() - start:.2f} s: {decided}\n")
    decided.write_text(annotated)
    show_result(result, names)
    then(lowered.as_text(), annotated)

    say("\nThe run is kept in a file, and shown on a page ...")
    saved, page = FOLDER / "train_step.run", FOLDER / "report.html"
    result.save(saved)
    result.report(page)
    say(f"  {saved}, {page}")
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    scores = next(number for number, line in enumerate(lines, 1) if "scores = " in line)
    print(NEXT.format(page=page, run=saved, line=scores))


def show_result(result: shardlog.Session, names: list[str]) -> None:
    """Prints what was decided: stages, how many tensors have which sharding, some arguments."""
    for stage in result.stages:
        print(
            f"  priority {stage.priority}, {stage.strategy}: {stage.turns:,} turns, {stage.changes:,} changes"
        )
    counts = written(result)
    print(f"\n{counts.total():,} tensors have {len(counts)} different shardings:\n")
    for sharding, number in counts.most_common(8):
        print(f"  {number:6,}  {sharding}")

    print("\nArguments, the parameters as annotated, the moments of Adam as decided:\n")
    specs = {
        name: str(sharding.spec) if sharding else "none"
        for name, sharding in zip(names, jax.tree.leaves(result.argument_shardings), strict=True)
    }
    for path in (
        "['embedding']",
        "['layers'][0]['query']",
        "['layers'][0]['down']",
        "['layers'][0]['gains']",
    ):
        for name in (f"params{path}", f"m{path}"):
            print(f"  {name:32}{specs[name]}")


if __name__ == "__main__":
    main()

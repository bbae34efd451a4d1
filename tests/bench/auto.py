"""Found shardings beside those by hand, on eight devices: `python -m shardlog.tests.bench.auto [MODEL ...]`.

For each model the best expert plan (known strategies on three meshes, and what is particular to a model) and
the plan that `shardlog auto` finds: seconds of a step and bytes at the peak, both as `shardlog cost` has
them, with state sharded alike on both ends; their ratio; the gap to the bound; and the time of the search, in
relation to one `partition()` of the same program.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from math import exp, log
from typing import Any, NamedTuple

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp

TOPOLOGY = "v5e"
MESHES = "data=8", "data=2,model=4", "data=4,model=2"
Specs = Mapping[str, tuple[Any, ...]]


class Model(NamedTuple):
    """A function with its arguments, and experts of its own: the mesh, and specs by patterns of paths."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    experts: Mapping[str, tuple[str, Specs]] = {}


def array(*shape: int, dtype: Any = jnp.float32) -> Any:
    """An abstract array."""
    return jax.ShapeDtypeStruct(shape, dtype)  # type: ignore[no-untyped-call]


def tokens(*shape: int) -> Any:
    """Abstract tokens."""
    return array(*shape, dtype=jnp.int32)


def momentum(loss: Callable[..., Any]) -> Callable[..., Any]:
    """A train step with a momentum: (params, moments, batch) -> (loss, params, moments)."""

    def step(params: Any, moments: Any, batch: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(params, batch)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, slopes)
        return value, jax.tree.map(lambda p, m: p - 1e-3 * m, params, moments), moments

    return step


def norm(x: Any, gain: Any) -> Any:
    """Root-mean-square normalisation."""
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * gain


def entropy(logits: Any, labels: Any) -> Any:
    """The mean negative log-likelihood of labels."""
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1))


def attend(x: Any, p: Any, *, causal: bool = True) -> Any:
    """Attention of several heads."""
    q, k, v = (jnp.einsum("bsd,dhk->bshk", x, p[name]) for name in ("q", "k", "v"))
    weights = jnp.einsum("bqhk,bshk->bhqs", q, k) / q.shape[-1] ** 0.5
    if causal:
        weights = jnp.where(jnp.tril(jnp.ones(weights.shape[-2:], bool)), weights, -1e9)
    return jnp.einsum("bqhk,hkd->bqd", jnp.einsum("bhqs,bshk->bqhk", jax.nn.softmax(weights), v), p["o"])


def attention(width: int, heads: int) -> dict[str, Any]:
    """Its parameters."""
    return {name: array(width, heads, width // heads) for name in "qkv"} | {
        "o": array(heads, width // heads, width)
    }


def trained(loss: Callable[..., Any], params: Any, batch: Any, experts: Any = None) -> Model:
    """A model that is trained."""
    return Model(momentum(loss), (params, params, batch), experts or {})


def perceptron() -> Model:
    """Dense layers."""

    def loss(params: Any, batch: Any) -> Any:
        x = batch["x"]
        for up, down in params:
            x = x + jax.nn.gelu(x @ up) @ down
        return jnp.mean((x - batch["y"]) ** 2)

    layers = [(array(2048, 8192), array(8192, 2048)) for _ in range(4)]
    return trained(loss, layers, {"x": array(8192, 2048), "y": array(8192, 2048)})


def transformer(width: int = 1024, heads: int = 16, depth: int = 4, *, gated: bool = False) -> Model:
    """A decoder-only transformer, with or without gates."""
    hidden, vocabulary = 4 * width, 16384

    def loss(params: Any, batch: Any) -> Any:
        x = params["embed"][batch["x"]]
        for p in params["layers"]:
            x = x + attend(norm(x, p["n1"]), p)
            h = norm(x, p["n2"])
            up = h @ p["up"]
            x = x + (jax.nn.silu(h @ p["gate"]) * up if gated else jax.nn.gelu(up)) @ p["down"]
        return entropy(norm(x, params["last"]) @ params["embed"].T, batch["y"])

    layer = attention(width, heads) | {"n1": array(width), "n2": array(width)}
    layer |= {"up": array(width, hidden), "down": array(hidden, width)}
    layer |= {"gate": array(width, hidden)} if gated else {}
    params = {"embed": array(vocabulary, width), "last": array(width), "layers": [layer] * depth}
    return trained(loss, params, {"x": tokens(32, 512), "y": tokens(32, 512)})


def experts() -> Model:
    """A mixture of experts; each takes its best tokens."""
    width, hidden, count, capacity = 512, 2048, 8, 1024

    def loss(params: Any, batch: Any) -> Any:
        x = params["embed"][batch["x"]].reshape(-1, width)
        for p in params["layers"]:
            scores = jax.nn.softmax(x @ p["router"])
            weight, chosen = jax.lax.top_k(scores.T, capacity)
            taken = x[chosen]
            given = jnp.einsum(
                "ech,ehd->ecd", jax.nn.gelu(jnp.einsum("ecd,edh->ech", taken, p["up"])), p["down"]
            )
            x = x.at[chosen.reshape(-1)].add((given * weight[..., None]).reshape(-1, width))
        return entropy(x @ params["embed"].T, batch["y"].reshape(-1))

    layer = {
        "router": array(width, count),
        "up": array(count, width, hidden),
        "down": array(count, hidden, width),
    }
    params = {"embed": array(8192, width), "layers": [layer] * 2}
    by_expert = {r"\['(up|down)'\]": ("data",), r"^batch": ("data",)}
    return trained(
        loss, params, {"x": tokens(16, 512), "y": tokens(16, 512)}, {"experts": ("data=8", by_expert)}
    )


def convolutions() -> Model:
    """A small U-Net."""

    def convolve(x: Any, kernel: Any, stride: int = 1) -> Any:
        return jax.lax.conv_general_dilated(
            x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def loss(params: Any, batch: Any) -> Any:
        a = jax.nn.relu(convolve(batch["x"], params["in"]))
        b = jax.nn.relu(convolve(a, params["down"], 2))
        c = jax.nn.relu(convolve(b, params["middle"]))
        up = jax.image.resize(c, (c.shape[0], c.shape[1] * 2, c.shape[2] * 2, c.shape[3]), "nearest")
        out = convolve(jnp.concatenate([a, up], -1), params["out"])
        return jnp.mean((out - batch["y"]) ** 2)

    params = {
        "in": array(3, 3, 4, 128),
        "down": array(3, 3, 128, 256),
        "middle": array(3, 3, 256, 256),
        "out": array(3, 3, 384, 4),
    }
    return trained(loss, params, {"x": array(32, 64, 64, 4), "y": array(32, 64, 64, 4)})


def vision() -> Model:
    """A vision transformer."""
    width, heads = 768, 12

    def loss(params: Any, batch: Any) -> Any:
        x = batch["x"] @ params["patch"] + params["places"]
        for p in params["layers"]:
            x = x + attend(norm(x, p["n1"]), p, causal=False)
            x = x + jax.nn.gelu(norm(x, p["n2"]) @ p["up"]) @ p["down"]
        return entropy(x.mean(1) @ params["head"], batch["y"])

    layer = attention(width, heads) | {"n1": array(width), "n2": array(width)}
    layer |= {"up": array(width, 4 * width), "down": array(4 * width, width)}
    params = {"patch": array(768, width), "places": array(256, width), "head": array(width, 1024)}
    return trained(loss, params | {"layers": [layer] * 4}, {"x": array(64, 256, 768), "y": tokens(64)})


def state_space() -> Model:
    """Diagonal state space layers, which scan over time."""
    width, states = 1024, 16

    def loss(params: Any, batch: Any) -> Any:
        x = batch["x"]
        for p in params:

            def turn(h: Any, u: Any, p: Any = p) -> Any:
                h = h * jax.nn.sigmoid(p["a"]) + u[..., None] * p["b"]
                return h, (h * p["c"]).sum(-1)

            _, y = jax.lax.scan(turn, jnp.zeros((x.shape[0], width, states)), (x @ p["in"]).swapaxes(0, 1))
            x = x + jax.nn.gelu(y.swapaxes(0, 1)) @ p["out"]
        return jnp.mean((x - batch["y"]) ** 2)

    layer = {name: array(width, states) for name in "abc"} | {
        "in": array(width, width),
        "out": array(width, width),
    }
    return trained(loss, [layer] * 2, {"x": array(32, 256, width), "y": array(32, 256, width)})


def decoding() -> Model:
    """A step of decoding with a cache of keys and values."""
    width, heads, depth, length, batch, vocabulary = 2048, 16, 4, 2048, 32, 16384
    head = width // heads

    def step(params: Any, cache: Any, token: Any, place: Any) -> Any:
        x, kept = params["embed"][token], []
        for p, c in zip(params["layers"], cache, strict=True):
            h = norm(x, p["n1"])
            q, k, v = (jnp.einsum("bd,dhk->bhk", h, p[name]) for name in "qkv")
            k, v = (
                jax.lax.dynamic_update_slice(c[n], new[:, :, None], (0, 0, place, 0))
                for n, new in (("k", k), ("v", v))
            )
            kept.append({"k": k, "v": v})
            weights = jnp.where(jnp.arange(length) <= place, jnp.einsum("bhk,bhsk->bhs", q, k), -1e9)
            x = x + jnp.einsum("bhs,bhsk,hkd->bd", jax.nn.softmax(weights), v, p["o"])
            x = x + jax.nn.gelu(norm(x, p["n2"]) @ p["up"]) @ p["down"]
        return (x @ params["embed"].T).argmax(-1), kept

    layer = attention(width, heads) | {"n1": array(width), "n2": array(width)}
    layer |= {"up": array(width, 4 * width), "down": array(4 * width, width)}
    cache = [{"k": array(batch, heads, length, head), "v": array(batch, heads, length, head)}] * depth
    by_head = {
        r"\['[qkv]'\]$": (None, "data"),
        r"\['o'\]": ("data",),
        r"\['up'\]": (None, "data"),
        r"\['down'\]": ("data",),
        r"embed": ("data",),
        r"^cache": (None, "data"),
    }
    arguments = {"embed": array(vocabulary, width), "layers": [layer] * depth}, cache, tokens(batch), tokens()
    return Model(step, arguments, {"heads": ("data=8", by_head)})


def recommender() -> Model:
    """Tables of embeddings, dot interactions, and small dense networks."""

    def loss(params: Any, batch: Any) -> Any:
        x = jax.nn.relu(batch["dense"] @ params["bottom"])
        every = jnp.stack([x, *(t[batch["ids"][:, n]] for n, t in enumerate(params["tables"]))], 1)
        dots = jnp.einsum("bnd,bmd->bnm", every, every).reshape(x.shape[0], -1)
        out = jax.nn.relu(jnp.concatenate([x, dots], -1) @ params["top"]) @ params["last"]
        return jnp.mean((out[:, 0] - batch["y"]) ** 2)

    count, width = 4, 64
    tables = [array(1 << 20, width)] * count
    params = {"bottom": array(16, width), "tables": tables, "last": array(512, 1)}
    params |= {"top": array(width + (count + 1) ** 2, 512)}
    batch = {"dense": array(8192, 16), "ids": tokens(8192, count), "y": array(8192)}
    rows = {"tables": ("data",), "^batch": ("data",)}
    columns = {"tables": (None, "data"), "^batch": ("data",)}
    return trained(loss, params, batch, {"rows": ("data=8", rows), "columns": ("data=8", columns)})


MODELS: dict[str, Callable[[], Model]] = {
    "perceptron": perceptron,
    "GPT": transformer,
    "LLaMA": lambda: transformer(2048, 16, 2, gated=True),
    "experts": experts,
    "U-Net": convolutions,
    "ViT": vision,
    "state space": state_space,
    "decoding": decoding,
    "recommender": recommender,
}


def lowered(model: Model) -> str:
    """A model's program as text."""
    traced = jax.jit(model.function, keep_unused=True).trace(*model.arguments)
    return str(traced.lower(lowering_platforms=("cpu",)).as_text(debug_info=True))


def measured(name: str) -> tuple[Any, ...]:
    """The row of a model."""
    import shardlog
    from shardlog.autosharding.options import AutoOptions
    from shardlog.autosharding.searching import Search, SpecCandidate
    from shardlog.partition.reshards import planning
    from shardlog.session import Session

    model = MODELS[name]()
    text = lowered(model)
    by_hand = dict[str, Any]()
    partitioned = 0.0
    for mesh in MESHES:
        search = Search(text, mesh, AutoOptions(topology=TOPOLOGY), lambda what, done: None)
        for each in search.strategies():
            if each.candidate.name == "ZeRO-3":
                planning._KEPT.clear()  # what the search before has decided
                begin = time.perf_counter()
                Session(search.run(each.candidate)).partition(topology=TOPOLOGY)
                partitioned = max(partitioned, time.perf_counter() - begin)
            by_hand[f"{each.candidate.name} {mesh}"] = each.cost
        for label, (own, specs) in model.experts.items():
            if own == mesh:
                candidate = SpecCandidate(label, *_specs(search, specs))
                by_hand[f"{label} {mesh}"] = search.cost(candidate)
    expert = min(by_hand, key=lambda label: by_hand[label].seconds)
    planning._KEPT.clear()
    begin = time.perf_counter()
    found = shardlog.auto(text, devices=8, topology=TOPOLOGY)
    took = time.perf_counter() - begin
    best = by_hand[expert]
    return name, expert, best.seconds, best.peak, found.plan, took / partitioned


def _specs(search: Any, given: Specs) -> tuple[Any, Any]:
    ends = search.ends
    arguments = []
    for end in ends.arguments:
        spec = next((spec for pattern, spec in given.items() if re.search(pattern, end.name)), ())
        arguments.append((*spec, *[None] * len(end.shape))[: len(end.shape)])
    results = [arguments[ends.state[n]] if n in ends.state else None for n in range(len(ends.results))]
    return tuple(arguments), tuple(results)


def main(names: list[str]) -> None:
    """Prints the table."""
    print("| model | best by hand | ms | GiB | found on | ms | GiB | ratio | gap | search / partition |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    ratios = []
    for name in names or MODELS:
        name, expert, seconds, peak, plan, took = measured(name)
        ratios.append(plan.seconds / seconds)
        cells = [
            name,
            expert,
            f"{seconds * 1e3:.2f}",
            f"{peak / 2**30:.2f}",
            plan.mesh,
            f"{plan.seconds * 1e3:.2f}",
        ]
        cells += [f"{plan.peak / 2**30:.2f}", f"{ratios[-1]:.3f}", f"{plan.gap:.2%}", f"{took:.1f}"]
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"geometric mean of the ratios: {exp(sum(map(log, ratios)) / len(ratios)):.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""Image models: a vision transformer and a residual network with batch norm."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from . import dense
from .common import BATCH, array, constrain, cross_entropy, layers, lower_loss, norm, stack

IMAGE, PATCH, CHANNELS, CLASSES, BATCH_SIZE = 16, 4, 3, 10, 8


def vit_block(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """One encoder layer, all tokens attending to all tokens."""
    y = norm(x, p["norm1"])
    q, k, v = (
        (y @ p[w]).reshape(*x.shape[:2], dense.HEADS, -1).transpose(0, 2, 1, 3)
        for w in ("query", "key", "value")
    )
    scores = jax.nn.softmax(q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5, -1)
    x = x + (scores @ v).transpose(0, 2, 1, 3).reshape(x.shape) @ p["out"]
    return x + jax.nn.gelu(norm(x, p["norm2"]) @ p["up"], approximate=False) @ p["down"]


def vit_loss(params: dict[str, Any], images: jax.Array, labels: jax.Array) -> jax.Array:
    """The classification loss of patches, a class token and learned positions."""
    batch, n = images.shape[0], IMAGE // PATCH
    patches = images.reshape(batch, n, PATCH, n, PATCH, CHANNELS).transpose(0, 1, 3, 2, 4, 5)
    x = patches.reshape(batch, n * n, -1) @ params["patch"]
    token = jnp.broadcast_to(params["class"], (batch, 1, x.shape[-1]))
    x = jnp.concatenate([token, x], 1) + params["position"]
    x = layers(vit_block, x, params["layers"])
    return cross_entropy(x[:, 0] @ params["head"], labels)


def vit(*, depth: int = 2, scan: bool = False, train: bool = True) -> jax.stages.Lowered:
    """Lowers the vision transformer with `depth` layers."""
    width = dense.WIDTH
    params = {
        "patch": array((PATCH * PATCH * CHANNELS, width), None, "model"),
        "class": array((width,), None),
        "position": array(((IMAGE // PATCH) ** 2 + 1, width), None, "fsdp"),
        "layers": stack(dense.LAYER, depth) if scan else [dense.LAYER] * depth,
        "head": array((width, CLASSES), "model", None),
    }
    images = array((BATCH_SIZE, IMAGE, IMAGE, CHANNELS), BATCH, None, None, None)
    return lower_loss(vit_loss, params, images, array((BATCH_SIZE,), BATCH, dtype=jnp.int32), train=train)


def convolve(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
    """A two-dimensional convolution of (batch, height, width, channels) that keeps the image's size."""
    layout = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, kernel, (stride, stride), "SAME", dimension_numbers=layout)


def batch_norm(x: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
    """Normalisation by the statistics of the batch."""
    mean = jnp.mean(x, (0, 1, 2))
    variance = jnp.mean(jnp.square(x), (0, 1, 2)) - jnp.square(mean)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["bias"]


def residual(x: jax.Array, p: dict[str, Any], stride: int = 1) -> jax.Array:
    """A basic block; where it halves the image the shortcut is a strided 1x1 convolution."""
    y = jax.nn.relu(batch_norm(convolve(x, p["conv1"], stride), p["norm1"]))
    y = batch_norm(convolve(y, p["conv2"]), p["norm2"])
    shortcut = convolve(x, p["shortcut"], stride) if "shortcut" in p else x
    return jax.nn.relu(y + shortcut)


def resnet_loss(params: dict[str, Any], images: jax.Array, labels: jax.Array) -> jax.Array:
    """The classification loss with a max-pooled stem and a mean-pooled head."""
    x = jax.nn.relu(batch_norm(convolve(images, params["stem"]), params["norm"]))
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    x = layers(residual, x, params["narrow"])
    x = constrain(residual(x, params["widen"], 2), BATCH, None, None, "model")
    x = layers(residual, x, params["wide"])
    return cross_entropy(jnp.mean(x, (1, 2)) @ params["head"], labels)


def resnet_block(inputs: int, outputs: int) -> dict[str, Any]:
    """The parameters of a basic block, output channels split over `model`."""
    scale = {"scale": array((outputs,), "model"), "bias": array((outputs,), "model")}
    block: dict[str, Any] = {
        "conv1": array((3, 3, inputs, outputs), None, None, None, "model"),
        "conv2": array((3, 3, outputs, outputs), None, None, "model", None),
        "norm1": scale,
        "norm2": {"scale": array((outputs,)), "bias": array((outputs,))},
    }
    if inputs != outputs:
        block["shortcut"] = array((1, 1, inputs, outputs), None, None, None, "model")
    return block


def resnet(*, depth: int = 2, scan: bool = False, train: bool = True) -> jax.stages.Lowered:
    """Lowers the residual network with `depth` blocks at each of two widths."""
    narrow, wide = resnet_block(8, 8), resnet_block(16, 16)
    params = {
        "stem": array((3, 3, CHANNELS, 8), None, None, None, None),
        "norm": {"scale": array((8,)), "bias": array((8,))},
        "narrow": stack(narrow, depth) if scan else [narrow] * depth,
        "widen": resnet_block(8, 16),
        "wide": stack(wide, depth) if scan else [wide] * depth,
        "head": array((16, CLASSES), "model", None),
    }
    images = array((BATCH_SIZE, IMAGE, IMAGE, CHANNELS), BATCH, None, None, None)
    return lower_loss(resnet_loss, params, images, array((BATCH_SIZE,), BATCH, dtype=jnp.int32), train=train)

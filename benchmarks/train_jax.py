"""Child process, in JAX's own environment: the step of `train_torch.py`, jitted whole. Prints one JSON object."""

import argparse
import json
from typing import Any

from benchmarks import clock

clock.pin_to_one_core()

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

LAYERS, WIDTH, HEADS, HIDDEN, VOCABULARY, BATCH, LENGTH = 2, 256, 4, 1024, 512, 4, 128
RATE, BETA1, BETA2, EPS, DECAY = 3e-4, 0.9, 0.999, 1e-8, 1e-2

Tree = Any


def linear_parameters(key: jax.Array, inputs: int, outputs: int) -> dict[str, jax.Array]:
    bound = inputs**-0.5
    return {"w": jax.random.uniform(key, (inputs, outputs), minval=-bound, maxval=bound), "b": jnp.zeros(outputs)}


def norm_parameters() -> dict[str, jax.Array]:
    return {"w": jnp.ones(WIDTH), "b": jnp.zeros(WIDTH)}


def make_parameters(key: jax.Array) -> Tree:
    keys = iter(jax.random.split(key, 4 * LAYERS + 3))
    blocks = [
        {
            "norm1": norm_parameters(),
            "qkv": linear_parameters(next(keys), WIDTH, 3 * WIDTH),
            "out": linear_parameters(next(keys), WIDTH, WIDTH),
            "norm2": norm_parameters(),
            "up": linear_parameters(next(keys), WIDTH, HIDDEN),
            "down": linear_parameters(next(keys), HIDDEN, WIDTH),
        }
        for _ in range(LAYERS)
    ]
    return {
        "tokens": jax.random.normal(next(keys), (VOCABULARY, WIDTH)),
        "positions": jax.random.normal(next(keys), (LENGTH, WIDTH)),
        "blocks": blocks,
        "norm": norm_parameters(),
        "head": linear_parameters(next(keys), WIDTH, VOCABULARY),
    }


def linear(p: Tree, x: jax.Array) -> jax.Array:
    return x @ p["w"] + p["b"]


def norm(p: Tree, x: jax.Array) -> jax.Array:
    mean = x.mean(-1, keepdims=True)
    variance = ((x - mean) ** 2).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["w"] + p["b"]


def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((LENGTH, LENGTH), bool)), scores, -jnp.inf)
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores, axis=-1), v)


def loss_of(p: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
    h = p["tokens"][x] + p["positions"]
    for block in p["blocks"]:
        qkv = jnp.split(linear(block["qkv"], norm(block["norm1"], h)), 3, axis=-1)
        q, k, v = (part.reshape(BATCH, LENGTH, HEADS, WIDTH // HEADS) for part in qkv)
        h = h + linear(block["out"], attention(q, k, v).reshape(BATCH, LENGTH, WIDTH))
        hidden = jax.nn.gelu(linear(block["up"], norm(block["norm2"], h)), approximate=False)
        h = h + linear(block["down"], hidden)
    logits = linear(p["head"], norm(p["norm"], h))
    return -jnp.take_along_axis(jax.nn.log_softmax(logits, axis=-1), y[..., None], axis=-1).mean()


def adamw(p: jax.Array, g: jax.Array, m: jax.Array, v: jax.Array, t: jax.Array) -> tuple[jax.Array, ...]:
    m = BETA1 * m + (1 - BETA1) * g
    v = BETA2 * v + (1 - BETA2) * g * g
    update = (m / (1 - BETA1**t)) / (jnp.sqrt(v / (1 - BETA2**t)) + EPS)
    return p * (1 - RATE * DECAY) - RATE * update, m, v


def step(p: Tree, m: Tree, v: Tree, t: jax.Array, x: jax.Array, y: jax.Array) -> tuple[Tree, ...]:
    loss, gradients = jax.value_and_grad(loss_of)(p, x, y)
    t = t + 1
    triples = jax.tree.map(lambda *leaf: adamw(leaf[0], leaf[1], leaf[2], leaf[3], t), p, gradients, m, v)
    p, m, v = jax.tree.transpose(jax.tree.structure(p), jax.tree.structure((0, 0, 0)), triples)
    return p, m, v, t, loss


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=12)
    arguments = parser.parse_args()
    key = jax.random.key(0)
    parameters = make_parameters(key)
    first = jax.tree.map(jnp.zeros_like, parameters)
    second = jax.tree.map(jnp.zeros_like, parameters)
    data = jax.random.randint(key, (BATCH, LENGTH + 1), 0, VOCABULARY)
    x, y = jax.block_until_ready((data[:, :-1], data[:, 1:]))
    t = jnp.zeros(())
    compiled = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    jax.block_until_ready((parameters, first, second))
    steps: list[clock.Cost] = []
    losses: list[float] = []
    for _ in range(arguments.steps):
        start = clock.now()
        parameters, first, second, t, loss = compiled(parameters, first, second, t, x, y)
        losses.append(float(loss))
        steps.append(clock.now() - start)
    print(json.dumps({"steps": steps, "losses": losses, "peak_mb": clock.peak_mb()}))


if __name__ == "__main__":
    main()

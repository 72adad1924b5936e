"""SAC of a population in JAX, vmapped and jitted: a peer that peer.py and deploy/dev/gpu_trial measure.

Does the same work as learner/sac/obs16 of datacom-bench-learner: observation 16, action 3, nets of 2 x 128, batch 64, a policy step in
every update; 16 updates per call (lax.scan) of all members (vmap). `torso`: the nets for mean and log-deviation share their hidden layers,
as in most libraries, which is less work than the separate nets of datacom.
"""

import jax
import jax.numpy as jnp

OBS, ACTION, WIDTH, BATCH, SCAN = 16, 3, 128, 64, 16
RATE, TAU, DISCOUNT, TARGET_ENTROPY = 5e-4, 0.001, 0.99, -3.0


def net(key, widths):
    keys = jax.random.split(key, len(widths) - 1)
    return [(jax.random.uniform(k, (i, o), minval=-1, maxval=1) / i**0.5, jnp.zeros(o)) for k, i, o in zip(keys, widths, widths[1:])]


def run(layers, x):
    for w, b in layers[:-1]:
        x = jax.nn.relu(x @ w + b)
    return x @ layers[-1][0] + layers[-1][1]


def start(key, torso):
    keys = jax.random.split(key, 4)
    heads = [net(keys[0], (OBS, WIDTH, WIDTH, 2 * ACTION))] if torso else [net(k, (OBS, WIDTH, WIDTH, ACTION)) for k in keys[:2]]
    critics = [net(k, (OBS + ACTION, WIDTH, WIDTH, 1)) for k in keys[2:]]
    learned = {"actor": heads, "critics": critics, "log_alpha": jnp.zeros(())}
    zeros = lambda: jax.tree.map(jnp.zeros_like, learned)
    return {"p": learned, "m": zeros(), "v": zeros(), "targets": critics, "step": jnp.zeros(())}


def act(actor, observation, noise):
    out = jnp.concatenate([run(layers, observation) for layers in actor], axis=-1)
    mean, log_std = out[:, :ACTION], jnp.clip(out[:, ACTION:], -20, 2)
    action = jnp.tanh(mean + jnp.exp(log_std) * noise)
    log_pi = -0.5 * noise**2 - log_std - 0.9189385 - jnp.log(1 - action**2 + 1e-6)
    return action, log_pi.sum(-1)


def value(critics, observation, action):
    x = jnp.concatenate([observation, action], axis=-1)
    return [run(layers, x)[:, 0] for layers in critics]


def adam(state, part, gradient):
    step = state["step"] + 1
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"][part], gradient)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["v"][part], gradient)
    size, root = RATE / (1 - 0.9**step), 1 / jnp.sqrt(1 - 0.999**step)
    p = jax.tree.map(lambda p, m, v: p - size * m / (jnp.sqrt(v) * root + 1e-8), state["p"][part], m, v)
    return {**state, "p": {**state["p"], part: p}, "m": {**state["m"], part: m}, "v": {**state["v"], part: v}}


def update(state, batch):
    learned, alpha = state["p"], jnp.exp(state["p"]["log_alpha"])

    def actor_loss(actor):
        action, log_pi = act(actor, batch["s"], batch["noise"])
        return jnp.mean(alpha * log_pi - jnp.minimum(*value(learned["critics"], batch["s"], action))), jnp.mean(log_pi)

    (loss, log_pi), gradient = jax.value_and_grad(actor_loss, has_aux=True)(learned["actor"])
    state = adam(state, "actor", gradient)
    state = adam(state, "log_alpha", -alpha * (log_pi + TARGET_ENTROPY))
    action, next_log_pi = act(state["p"]["actor"], batch["next"], batch["next_noise"])
    soft = jnp.minimum(*value(state["targets"], batch["next"], action)) - jnp.exp(state["p"]["log_alpha"]) * next_log_pi
    y = jax.lax.stop_gradient(batch["reward"] + DISCOUNT * soft)
    critic_loss = lambda critics: sum(jnp.mean((q - y) ** 2) for q in value(critics, batch["s"], batch["a"]))
    state = adam(state, "critics", jax.grad(critic_loss)(learned["critics"]))
    targets = jax.tree.map(lambda t, p: TAU * p + (1 - TAU) * t, state["targets"], state["p"]["critics"])
    return {**state, "targets": targets, "step": state["step"] + 1}, loss


def described():
    """(name and version, device)"""
    return f"jax {jax.__version__}", jax.default_backend()


def population(members, torso=False):
    """Returns a function that does SCAN updates of every member and waits for them."""
    keys = jax.random.split(jax.random.key(0), members)
    sizes = {"s": OBS, "next": OBS, "a": ACTION, "noise": ACTION, "next_noise": ACTION}
    batch = {name: jax.random.normal(jax.random.key(i), (members, SCAN, BATCH, n)) for i, (name, n) in enumerate(sizes.items())}
    batch["reward"] = jnp.ones((members, SCAN, BATCH))
    updates = jax.jit(jax.vmap(lambda state, batches: jax.lax.scan(update, state, batches)), donate_argnums=0)
    held = [jax.tree.map(jnp.copy, jax.vmap(lambda key: start(key, torso))(keys))]  # copies, because every array may be overwritten

    def call():
        held[0], losses = updates(held[0], batch)
        losses.block_until_ready()

    return call
# SPDX-License-Identifier: Apache-2.0

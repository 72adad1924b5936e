"""One library in a process of its own, which run.py starts and asks: peer.py (jax | sb3 | sbx | fsrl).

The first answer is a JSON object with the versions. Then each line of standard input is a request, {"what": ..., "seconds": ...}, and each
answer a JSON object: {"us": microseconds of an update of a member} or {"steps_per_s": steps of a whole training with one update each}. The
environment variable PEER_THREADS is the number of threads that the library may use.
"""

import importlib.metadata
import json
import os
import statistics
import sys
import time
import warnings

THREADS = int(os.environ["PEER_THREADS"])
WARM_UP = 3  # calls that are not counted
NETS, BATCH, ROWS, RATE = [128, 128], 64, 10000, 5e-4
LEARNING_STARTS, WARM_STEPS = 200, 400


def microseconds(call, updates, seconds):
    """The median time of a call, per update."""
    for _ in range(WARM_UP):
        call()
    times, end = [], time.monotonic() + seconds
    while len(times) < 5 or time.monotonic() < end:
        begin = time.perf_counter()
        call()
        times.append((time.perf_counter() - begin) / updates * 1e6)
    return {"us": statistics.median(times)}


def jax_peer():
    import jax_sac

    calls = {}

    def answer(what, seconds, members, torso=False):
        if (members, torso) not in calls:
            calls[members, torso] = jax_sac.population(members, torso)
        return microseconds(calls[members, torso], members * jax_sac.SCAN, seconds)

    return ["jax"], answer


def baselines(library, make):
    """Stable-Baselines3 and SBX have the same interface."""
    import numpy as np
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import configure

    from cartpole_env import CartPole, Nothing

    class Clock(BaseCallback):
        def __init__(self, seconds):
            super().__init__()
            self.seconds, self.begin = seconds, None

        def _on_step(self):
            if self.n_calls == WARM_STEPS:
                self.begin = time.perf_counter()
            self.elapsed = time.perf_counter() - self.begin if self.begin else 0
            return self.elapsed < self.seconds

        def rate(self):
            return (self.n_calls - WARM_STEPS) / self.elapsed

    def model(env, updates):
        made = make(
            "MlpPolicy", env, learning_rate=RATE, batch_size=BATCH, tau=0.001, learning_starts=LEARNING_STARTS, train_freq=updates,
            gradient_steps=updates, policy_kwargs={"net_arch": NETS}, buffer_size=100000, seed=0)
        made.set_logger(configure(None, []))
        return made

    filled = {}

    def updates_of(per_call):
        if per_call not in filled:
            made, draw = model(Nothing(), per_call), np.random.default_rng(0)
            for _ in range(ROWS):
                row = draw.standard_normal((1, 16), np.float32), draw.standard_normal((1, 16), np.float32)
                made.replay_buffer.add(*row, draw.uniform(-1, 1, (1, 3)), np.ones(1), np.zeros(1), [{}])
            filled[per_call] = made
        return lambda: filled[per_call].train(gradient_steps=per_call, batch_size=BATCH)

    def answer(what, seconds, per_call=1):
        if what == "update":
            return microseconds(updates_of(per_call), per_call, seconds)
        clock = Clock(seconds)
        model(CartPole(), per_call).learn(10**9, callback=clock)
        return {"steps_per_s": clock.rate()}

    return library, answer


def sb3_peer():
    import torch
    from stable_baselines3 import SAC

    torch.set_num_threads(THREADS)
    return baselines(["stable-baselines3", "torch", "gymnasium", "mujoco"], lambda *a, **k: SAC(*a, device="cpu", **k))


def sbx_peer():
    import torch
    from sbx import SAC

    torch.set_num_threads(THREADS)
    return baselines(["sbx-rl", "jax", "gymnasium", "mujoco"], SAC)


def fsrl_peer():
    import numpy as np
    from fsrl.agent import SACLagAgent
    from fsrl.utils import BaseLogger
    from tianshou.data import Batch, ReplayBuffer

    from cartpole_env import CartPole, Nothing

    def agent(env):
        return SACLagAgent(
            env, BaseLogger(), cost_limit=5, thread=THREADS, seed=0, actor_lr=RATE, critic_lr=RATE, alpha_lr=RATE, hidden_sizes=tuple(NETS),
            tau=0.001, n_step=1)

    made, buffer, draw = agent(Nothing()), ReplayBuffer(ROWS), np.random.default_rng(0)
    made.policy.train()
    for _ in range(ROWS):
        row = draw.standard_normal((2, 16), np.float32)
        ends = {"terminated": False, "truncated": False, "done": False}
        buffer.add(Batch(obs=row[0], obs_next=row[1], act=draw.uniform(-1, 1, 3), rew=1.0, info={"cost": 0.0}, **ends))

    def answer(what, seconds=0, steps=1000):
        if what == "update":
            return microseconds(lambda: made.policy.update(BATCH, buffer), 1, seconds)
        env, begin = CartPole(steps), time.perf_counter()  # one episode, then one update per step
        agent(env).learn(
            env, epoch=1, episode_per_collect=1, step_per_epoch=steps, update_per_step=1.0, batch_size=BATCH, save_ckpt=False,
            verbose=False, show_progress=False)
        return {"steps_per_s": steps / (time.perf_counter() - begin)}

    return ["fast-safe-rl", "tianshou", "torch", "gymnasium", "mujoco"], answer


def main():
    warnings.simplefilter("ignore")
    answers = os.fdopen(os.dup(1), "w")  # libraries may print
    os.dup2(2, 1)
    packages, answer = {"jax": jax_peer, "sb3": sb3_peer, "sbx": sbx_peer, "fsrl": fsrl_peer}[sys.argv[1]]()
    print(json.dumps({name: importlib.metadata.version(name) for name in packages}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(**json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

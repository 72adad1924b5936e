#!/usr/bin/env python3
"""Steps per second of `datacom.make_vec` beside Gymnasium, EnvPool and bare MuJoCo, on one robot: the half cheetah, the same model in all.

  PYTHONPATH=deploy/python python3 tests/bench/python_envs.py [--envs 64] [--threads 2] [--rounds 5] [--seconds 1]

Needs gymnasium[mujoco], envpool and mujoco 4 in this Python. Every peer takes the same random actions; all are measured in turn in each round,
and the medians are printed. "bare MuJoCo" is mujoco.batch: it steps the physics and copies positions and velocities, without reward, cost, time limit
or resets; so it is a floor for the time, not an environment. A step is a control step: 5 time steps.
"""

import argparse
import statistics
import time
from pathlib import Path

import datacom
import gymnasium
import numpy as np

TASK = Path(__file__).resolve().parents[2] / "deploy/examples/velocity/velocity.textproto"


def gymnasium_env(envs, mode):
    env = gymnasium.make_vec("HalfCheetah-v5", num_envs=envs, vectorization_mode=mode)
    env.reset(seed=0)
    return env.step


def envpool_env(envs, threads):
    import envpool

    env = envpool.make_gymnasium("HalfCheetah-v5", num_envs=envs, num_threads=threads, seed=0)
    env.reset()
    return env.step


def bare(envs, threads):
    import mujoco
    import mujoco.batch

    model = mujoco.MjModel.from_xml_path(str(Path(gymnasium.__file__).parent / "envs/mujoco/assets/half_cheetah.xml"))
    batch = mujoco.batch.Batch(model, nsim=envs, nthread=threads)
    control, position, velocity = batch.bind("ctrl"), batch.bind("qpos"), batch.bind("qvel")

    def step(actions):
        control[:] = actions
        batch.step(nstep=5)
        return np.concatenate([position, velocity], axis=1)

    return step


def ours(envs, threads):
    env = datacom.make_vec(TASK, envs, threads=threads)
    env.reset(seed=0)
    return env.step


def rate(step, actions, envs, seconds):
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions:
            step(action)
        count += len(actions)
    return envs * count / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1)
    flags = parser.parse_args()
    peers = {
        "datacom": ours(flags.envs, flags.threads),
        "bare MuJoCo (mujoco.batch)": bare(flags.envs, flags.threads),
        "EnvPool": envpool_env(flags.envs, flags.threads),
        "Gymnasium, one process": gymnasium_env(flags.envs, "sync"),
        "Gymnasium, a process for each": gymnasium_env(flags.envs, "async"),
    }
    actions = np.random.default_rng(0).uniform(-1, 1, (20, flags.envs, 6)).astype(np.float32)
    rates = [{name: rate(step, actions, flags.envs, flags.seconds) for name, step in peers.items()} for _ in range(flags.rounds)]
    print(f"half cheetah, {flags.envs} environments, {flags.threads} threads, medians of {flags.rounds} rounds of {flags.seconds} s")
    for name in peers:
        median = statistics.median(one[name] for one in rates)
        ratio = statistics.median(one["datacom"] / one[name] for one in rates)
        print(f"{name:32}{median:12,.0f} steps/s   datacom is {ratio:5.2f} times as fast")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

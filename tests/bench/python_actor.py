#!/usr/bin/env python3
"""What an actor adds to the step of a Python environment, beside a bare loop of the same environment in the same Python.

  python3 tests/bench/python_actor.py MODULE:CALLABLE [--envs 1,16] [--rounds 5] [--seconds 2] [--build build/release]

Run it with the environment's Python, in its folder or with PYTHONPATH. The loop steps as many environments as the actor with random actions
and resets them at their ends; the actor also evaluates policy and safety filter, and fills rows. Both are measured in turn in each round; the
medians are printed.
"""

import argparse
import importlib
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np


def bare(make, envs, seconds):
    """Steps per second of the loop that a user would write, over `envs` environments in turn."""
    all_envs = [make() for _ in range(envs)]
    for env in all_envs:
        env.reset(seed=0)
    space = all_envs[0].action_space
    actions = np.random.default_rng(0).uniform(space.low, space.high, (256,) + space.shape).astype(np.float32)
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        action = actions[count // envs % 256]
        for env in all_envs:
            outcome = env.step(action)
            if outcome[-3] or outcome[-2]:
                env.reset()
        count += envs
    return count / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environment")
    parser.add_argument("--envs", default="1,16")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[2] / "build/release")
    flags = parser.parse_args()
    sys.path.insert(0, os.getcwd())
    module, _, name = flags.environment.partition(":")
    make = getattr(importlib.import_module(module), name)
    environment = {**os.environ, "DATACOM_PYTHON": sys.executable}
    counts = [int(count) for count in flags.envs.split(",")]
    rates = {count: ([], []) for count in counts}
    for _ in range(flags.rounds):
        for envs, (loops, actors) in rates.items():
            loops.append(bare(make, envs, flags.seconds))
            done = subprocess.run([flags.build / "bin/datacom-bench-python-actor", flags.environment, str(envs), str(flags.seconds)], text=True,
                                  stdout=subprocess.PIPE, check=True, env=environment)
            actors.append(float(done.stdout))
    print(f"{'environments':>12} {'bare loop':>16} {'actor':>16} {'difference':>16}")
    for envs, values in rates.items():
        loop, actor = (1e6 / statistics.median(rate) for rate in values)
        print(f"{envs:12} {loop:10,.1f} us/step {actor:8,.1f} us/step {actor - loop:8,.1f} us/step")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

#!/usr/bin/env python3
"""What an actor adds to the step of a Python environment, beside a bare loop of the same environment in the same Python.

  python3 tests/bench/python_actor.py MODULE:CALLABLE [--envs 1,16] [--rounds 5] [--seconds 2] [--build build/release]

Run it with the environment's Python, in its folder or with PYTHONPATH. The loop steps one environment with random actions and resets it at its
end; the actor also evaluates policy and safety filter, and fills rows. Both are measured in turn in each round; the medians are printed.
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


def bare(make, seconds):
    env = make()
    env.reset(seed=0)
    actions = np.random.default_rng(0).uniform(env.action_space.low, env.action_space.high, (1024,) + env.action_space.shape).astype(np.float32)
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for action in actions[:256]:
            outcome = env.step(action)
            count += 1
            if outcome[-3] or outcome[-2]:
                env.reset()
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
    rates = {"bare loop": []}
    for _ in range(flags.rounds):
        rates["bare loop"].append(bare(make, flags.seconds))
        for envs in flags.envs.split(","):
            done = subprocess.run([flags.build / "bin/datacom-bench-python-actor", flags.environment, envs, str(flags.seconds)], text=True,
                                  stdout=subprocess.PIPE, check=True, env=environment)
            rates.setdefault(f"actor, {envs} environments", []).append(float(done.stdout))
    loop = statistics.median(rates["bare loop"])
    for peer, values in rates.items():
        rate = statistics.median(values)
        print(f"{peer:24} {rate:10,.0f} steps/s  {1e6 / rate:8.1f} us a step  {1e6 / rate - 1e6 / loop:+8.1f} us")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

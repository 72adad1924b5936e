#!/usr/bin/env python3
"""Trains a policy, reads what the run recorded, and plays the policy in many environments at once.

  python quickstart.py [RUN_DIR] [STEPS]
"""

import sys

import datacom
import numpy as np

folder, steps = (sys.argv[1:] + ["runs/quickstart", "6000"][len(sys.argv) - 1:])[:2]

training = datacom.train("cartpole/from_scratch", seeds="0-1", steps=int(steps), run_dir=folder, settings={"run.steps_per_epoch": 2000})
for progress in training:
    print(f"{progress.share:4.0%}  return {progress.train_return:6.2f}  cost {progress.train_cost:6.1f}")

run = training.run
last = run.progress.groupby("member").last()
print(last[["eval_discounted_return", "eval_sum_cost", "delta"]])
print("J:", datacom.interquartile_mean(last["eval_discounted_return"]))
print("rows with a cost:", sum(int((run.transitions(member)["cost"] > 0).sum()) for member in (0, 1)))

policy = datacom.Policy.load(run.path, member=1)
env = datacom.make_vec("CartPole", 16)
observation, info = env.reset(seed=0)
total, unsafe = np.zeros(16), np.zeros(16)
for _ in range(env.horizon):
    decision = policy.decide(observation)
    observation, reward, terminated, truncated, info = env.step(policy.clip(decision.action))
    total, unsafe = total + reward, unsafe + np.maximum(info["cost"], 0)
print(f"16 episodes: return {total.mean():.1f}, cost {unsafe.mean():.1f}, largest constraint {np.max(decision.constraint):.2f}")
# SPDX-License-Identifier: Apache-2.0

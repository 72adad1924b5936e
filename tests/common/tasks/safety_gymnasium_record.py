"""Records Safety-Gymnasium's velocity tasks: safety_gymnasium_record.py OUT.csv.xz, with Python 3.10 and

    pip install safety-gymnasium==1.0.0        # brings Gymnasium 0.28.1 and MuJoCo 2.3.3

For every task it plays 1,000 random actions in the package itself. A line is NAME,start,POSITION...,VELOCITY... or
NAME,step,ACTION...,OBSERVATION...,REWARD,COST,TERMINATED, where actions are in [-1, 1]. A `start` line stands where an episode
begins, and where the package's state was set to itself (`set_state`): every SEGMENT steps, because the contacts of some robots
multiply differences between versions of MuJoCo. safety_gymnasium_test.py compares datacom with this.
"""
import lzma
import random
import sys

import numpy
import safety_gymnasium

STEPS = 1000
TASKS = {"half_cheetah": "HalfCheetah", "hopper": "Hopper", "swimmer": "Swimmer", "walker2d": "Walker2d"}
SEGMENT = {"half_cheetah": 25}  # control steps; the others go on to the end of the episode


def record(name):
    task = safety_gymnasium.make(f"Safety{TASKS[name]}Velocity-v1").unwrapped
    generator, episode, age = random.Random(7), 0, 0
    task.reset(seed=episode)
    for _ in range(STEPS):
        if age % SEGMENT.get(name, STEPS) == 0:
            positions, velocities = task.data.qpos.copy(), task.data.qvel.copy()
            task.set_state(positions, velocities)
            yield [name, "start", *(repr(float(value)) for value in [*positions, *velocities])]
        action = [generator.randint(-1024, 1024) / 1024 for _ in range(task.action_space.shape[0])]  # exact in float32
        observation, reward, cost, terminated, _, _ = task.step(numpy.array(action) * task.action_space.high)
        yield [name, "step", *(f"{value:.10g}" for value in [*action, *observation, reward, cost, terminated])]
        age += 1
        if terminated:
            episode, age = episode + 1, 0
            task.reset(seed=episode)


def main():
    lines = [",".join(line) for name in TASKS for line in record(name)]
    with lzma.open(sys.argv[1], "wt", preset=9 | lzma.PRESET_EXTREME, encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

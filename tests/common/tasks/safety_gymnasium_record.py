"""Records Safety-Gymnasium's velocity tasks: safety_gymnasium_record.py OUT.csv.xz [TASKS], with Python 3.10 and

    pip install safety-gymnasium==1.0.0        # brings Gymnasium 0.28.1 and MuJoCo 2.3.3

For every task it plays 1,000 random actions in the package itself. A line is NAME,start,POSITION...,VELOCITY... or
NAME,step,ACTION...,OBSERVATION...,REWARD,COST,TERMINATED, where actions are in [-1, 1]. A `start` line stands where an episode
begins, and where the package's state was set to itself (`set_state`): every SEGMENT steps, because the contacts of some robots
multiply differences between versions of MuJoCo. safety_gymnasium_test.py compares datacom with this.

TASKS, a folder of deploy/examples/velocity/write_tasks.py, is for the Ant: newer versions of MuJoCo integrate the orientation of a
free body with Runge-Kutta in another way. The package's code for the Ant then runs with the model of that folder and the MuJoCo that
is installed, without the rest of the package, which needs the old one (Python 3.11; pip install mujoco==4.0.0 "numpy<2" and, with
--no-deps, safety-gymnasium==1.0.0 gymnasium==0.28.1, and what these then miss).
"""
import importlib
import importlib.util
import lzma
import os
import random
import sys
import types

import mujoco
import numpy

STEPS = 1000
TASKS = {"half_cheetah": "HalfCheetah", "hopper": "Hopper", "swimmer": "Swimmer", "walker2d": "Walker2d"}
SEGMENT = {"ant": 25, "half_cheetah": 25}  # control steps; the others go on to the end of the episode


def whole_package(name):
    import safety_gymnasium
    return safety_gymnasium.make(f"Safety{TASKS[name]}Velocity-v1").unwrapped


def ant_alone(tasks):
    """The package's Ant with the written model. Empty modules stand for the packages around its file."""
    folder = os.path.dirname(importlib.util.find_spec("safety_gymnasium").origin)
    for name in ("safety_gymnasium", "safety_gymnasium.tasks", "safety_gymnasium.tasks.safe_velocity"):
        sys.modules[name] = types.ModuleType(name)
        sys.modules[name].__path__ = [os.path.join(folder, *name.split(".")[1:])]
    from gymnasium.envs.mujoco import mujoco_env, mujoco_rendering

    def load(environment):
        environment.model = mujoco.MjModel.from_xml_path(os.path.join(tasks, "ant", "model.xml"))
        environment.data = mujoco.MjData(environment.model)

    mujoco_env.MujocoEnv._initialize_simulation = load
    mujoco_rendering.MujocoRenderer = lambda *_: types.SimpleNamespace(viewer=None, close=lambda: None)
    return importlib.import_module("safety_gymnasium.tasks.safe_velocity.safety_ant_velocity_v1").SafetyAntVelocityEnv()


def record(name, task):
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
    tasks = {name: whole_package(name) for name in TASKS} if len(sys.argv) == 2 else {"ant": ant_alone(sys.argv[2])}
    lines = [",".join(line) for name, task in tasks.items() for line in record(name, task)]
    with lzma.open(sys.argv[1], "wt", preset=9 | lzma.PRESET_EXTREME, encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

"""Records Safety-Gymnasium's velocity tasks: safety_gymnasium_record.py OUT.csv.xz [TASKS], with Python 3.10 and

    pip install safety-gymnasium==1.0.0        # brings Gymnasium 0.28.1 and MuJoCo 2.3.3

For every task it plays 1,000 random actions in the package itself. A line is NAME,start,POSITION...,VELOCITY... or
NAME,step,ACTION...,OBSERVATION...,REWARD,COST,TERMINATED, where actions are in [-1, 1]; some steps are without observation. A `start` line stands where an episode
begins, and where the package's state was set to itself (`set_state`): every SEGMENT steps, because the contacts of some robots
multiply differences between versions of MuJoCo. safety_gymnasium_test.py compares datacom with this.

TASKS, a folder of deploy/examples/velocity/write_tasks.py, is for the Ant and the Humanoid: newer versions of MuJoCo integrate the
orientation of a free body with Runge-Kutta in another way. The package's code for these two then runs with the model of that folder and
the MuJoCo that is installed, without the rest of the package, which needs the old one (Python 3.11; pip install mujoco==4.0.0 "numpy<2"
and, with --no-deps, safety-gymnasium==1.0.0 gymnasium==0.28.1, and what these then miss). The Humanoid's solver stops after 50
iterations, so its result depends on the last one; there a `start` line also stands for a solver that starts from 0 (mj_resetData).
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
ALONE = {"ant": "Ant", "humanoid": "Humanoid"}
SEGMENT = {"ant": 25, "half_cheetah": 25, "humanoid": 25}  # control steps; the others go on to the end of the episode
OBSERVED = {"humanoid": 5}  # its 376 numbers are recorded after every fifth step; without an entry after each


def whole_package(name):
    import safety_gymnasium
    return safety_gymnasium.make(f"Safety{TASKS[name]}Velocity-v1").unwrapped


def alone(tasks):
    """The tasks of ALONE with the written models. Empty modules stand for the packages around their files."""
    folder = os.path.dirname(importlib.util.find_spec("safety_gymnasium").origin)
    for module in ("safety_gymnasium", "safety_gymnasium.tasks", "safety_gymnasium.tasks.safe_velocity"):
        sys.modules[module] = types.ModuleType(module)
        sys.modules[module].__path__ = [os.path.join(folder, *module.split(".")[1:])]
    from gymnasium.envs.mujoco import mujoco_env, mujoco_rendering

    def load(environment):
        name = os.path.basename(environment.fullpath).removesuffix(".xml")
        environment.model = mujoco.MjModel.from_xml_path(os.path.join(tasks, name, "model.xml"))
        environment.data = mujoco.MjData(environment.model)

    mujoco_env.MujocoEnv._initialize_simulation = load
    mujoco_rendering.MujocoRenderer = lambda *_: types.SimpleNamespace(viewer=None, close=lambda: None)
    for name, title in ALONE.items():
        module = importlib.import_module(f"safety_gymnasium.tasks.safe_velocity.safety_{name}_velocity_v1")
        yield name, getattr(module, f"Safety{title}VelocityEnv")()


def record(name, task):
    generator, episode, age = random.Random(7), 0, 0
    task.reset(seed=episode)
    for _ in range(STEPS):
        if age % SEGMENT.get(name, STEPS) == 0:
            positions, velocities = task.data.qpos.copy(), task.data.qvel.copy()
            if name == "humanoid":
                mujoco.mj_resetData(task.model, task.data)
            task.set_state(positions, velocities)
            yield [name, "start", *(repr(float(value)) for value in [*positions, *velocities])]
        action = [generator.randint(-1024, 1024) / 1024 for _ in range(task.action_space.shape[0])]  # exact in float32
        observation, reward, cost, terminated, _, _ = task.step(numpy.array(action) * task.model.actuator_ctrlrange[:, 1])
        age += 1
        observed = observation if age % OBSERVED.get(name, 1) == 0 else []
        yield [name, "step", *(f"{value:.10g}" for value in [*action, *observed, reward, cost, terminated])]
        if terminated:
            episode, age = episode + 1, 0
            task.reset(seed=episode)


def main():
    tasks = {name: whole_package(name) for name in TASKS} if len(sys.argv) == 2 else dict(alone(sys.argv[2]))
    lines = [",".join(line) for name, task in tasks.items() for line in record(name, task)]
    with lzma.open(sys.argv[1], "wt", preset=9 | lzma.PRESET_EXTREME, encoding="ascii") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

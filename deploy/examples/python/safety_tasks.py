"""Two tasks of Safety-Gymnasium (Python 3.8 to 3.10, pip install safety-gymnasium==1.0.0). In this folder:

    DATACOM_PYTHON=python3.10 datacom train --python safety_tasks:point_goal --algorithm ppo_lag --steps 1000000 \\
        --set run.steps_per_epoch=20000 --set hyper.cost_budget=25 --set hyper.multiplier_lr=0.035
"""

import safety_gymnasium


def make(task):
    env = safety_gymnasium.make(task)
    env.control_dt = 0.02  # s: a step is ten of MuJoCo's
    return env


def point_goal():
    return make("SafetyPointGoal1-v0")


def car_goal():
    return make("SafetyCarGoal1-v0")
# SPDX-License-Identifier: Apache-2.0

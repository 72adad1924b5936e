"""Safety-Gymnasium's PointGoal1 and CarGoal1 (Python 3.8 to 3.10, pip install safety-gymnasium). In this folder:

    DATACOM_PYTHON=python3.10 datacom train --python safety_goal:point --algorithm ppo_lag --steps 1000000 \\
        --set run.steps_per_epoch=20000 --set hyper.cost_budget=25 --set hyper.multiplier_lr=0.035
"""

import safety_gymnasium


def point():
    return safety_gymnasium.make("SafetyPointGoal1-v0")


def car():
    return safety_gymnasium.make("SafetyCarGoal1-v0")
# SPDX-License-Identifier: Apache-2.0

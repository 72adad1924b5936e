"""The task cartpole as a Gymnasium environment: the same model file, steps, observation, reward and cost (common/tasks/cartpole)."""

import math
import pathlib

import gymnasium
import mujoco
import numpy as np

MODEL = pathlib.Path(__file__).resolve().parents[3] / "common" / "tasks" / "cartpole" / "model.xml"
SUBSTEPS, REWARD_DISTANCE, SAFE_ANGLE = 2, 4.0, 1.5707


class CartPole(gymnasium.Env):
    def __init__(self, horizon=1000):
        self.horizon = horizon
        self.model = mujoco.MjModel.from_xml_path(str(MODEL))
        self.data = mujoco.MjData(self.model)
        self.tip, self.goal = (self.model.site(name).id for name in ("pole_tip", "goal"))
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (5,), np.float32)
        self.action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float32)
        self.steps = 0

    def reset(self, seed=None, options=None):
        mujoco.mj_resetData(self.model, self.data)
        self.data.qpos[0] = -1
        mujoco.mj_forward(self.model, self.data)
        self.steps = 0
        return self.observe(), {}

    def step(self, action):
        self.data.ctrl[0] = min(max(float(action[0]), -1.0), 1.0)
        mujoco.mj_step(self.model, self.data, SUBSTEPS)
        self.steps += 1
        distance = math.dist(self.data.site_xpos[self.tip], self.data.site_xpos[self.goal])
        theta = self.data.qpos[1]
        cost = abs(math.atan2(math.sin(theta), math.cos(theta))) / SAFE_ANGLE - 1
        reward = min(max(1 - distance / REWARD_DISTANCE, 0.0), 1.0)
        return self.observe(), reward, False, self.steps == self.horizon, {"cost": max(cost, 0.0)}

    def observe(self):
        (x, theta), (x_dot, theta_dot) = self.data.qpos, self.data.qvel
        return np.array([x, math.sin(theta), math.cos(theta), x_dot, theta_dot], np.float32)


class Nothing(gymnasium.Env):
    """Observations of 16 numbers and actions of 3, for updates that are measured without an environment."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (16,), np.float32)
    action_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)

    def reset(self, seed=None, options=None):
        return np.zeros(16, np.float32), {}

    def step(self, action):
        return np.zeros(16, np.float32), 0.0, False, False, {"cost": 0.0}
# SPDX-License-Identifier: Apache-2.0

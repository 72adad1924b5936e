"""A point mass drives to a target and must stay out of a disc. In this folder:

    datacom train --python point_env:make --steps 30000 --set hyper.cost_budget=0.02
"""

import gymnasium
import numpy as np

DISC, RADIUS, TARGET, FORCE = np.array([0.0, 0.0]), 0.3, np.array([1.0, 0.0]), 2.0


class Point(gymnasium.Env):
    max_episode_steps = 150
    control_dt = 0.05  # s
    observation_names = ["x / m", "y / m", "x velocity / (m/s)", "y velocity / (m/s)"]
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (4,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)  # force, in units of FORCE

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = np.array([-1.0, self.np_random.uniform(-0.3, 0.3)])
        self.velocity = np.zeros(2)
        return self.observe(), {"cost": self.cost()}

    def step(self, action):
        before = np.linalg.norm(self.position - TARGET)
        self.velocity += FORCE * np.clip(action, -1, 1) * self.control_dt
        self.position += self.velocity * self.control_dt
        after = np.linalg.norm(self.position - TARGET)
        reached = bool(after < 0.1)
        reward = 10 * (before - after) + (5 if reached else 0)
        return self.observe(), reward, reached, False, {"cost": self.cost(), "success": reached}

    def observe(self):
        return np.concatenate([self.position, self.velocity]).astype(np.float32)

    def cost(self):
        return RADIUS - np.linalg.norm(self.position - DISC)  # above 0: inside

    def dynamics(self, observation):
        """q = [position, velocity] moves with q_dot = f + G action; a method without a safety filter needs none of this."""
        return {"q": observation, "f": [*observation[2:], 0, 0], "G": [[0, 0], [0, 0], [FORCE, 0], [0, FORCE]]}


def make():
    return Point()
# SPDX-License-Identifier: Apache-2.0

"""Somebody else's agent behind the shield of a D-ATACOM policy: plays a task with and without it, and counts violations.

  python foreign_agent.py

The agent here draws its actions at random. Any function from observations to actions can take its place, for example
`lambda observation: agent.predict(observation, deterministic=True)[0]` of Stable-Baselines3. A shield has learned where its own policy went:
measure what it does for yours, as here, before you trust it.
"""
import datacom
import numpy as np


def play(env, agent, steps):
    """The violating steps and the cost of `steps` steps, as means over the environments."""
    observation, _ = env.reset(seed=0)
    violations, cost = np.zeros(env.num_envs), np.zeros(env.num_envs)
    for _ in range(steps):
        observation, _, _, _, info = env.step(agent(observation))
        violations, cost = violations + (info["cost"] > 0), cost + np.maximum(info["cost"], 0)
    return violations.mean(), cost.mean()


def main(task="AirHockey", shield="shipped:air_hockey/datacom", environments=50, steps=300):
    shield = datacom.Shield.load(shield)
    env = datacom.make_vec(task, environments)
    for name, one in [("with the shield", shield.wrap(env)), ("without it", env)]:
        env.action_space.seed(0)
        violations, cost = play(one, lambda observation: env.action_space.sample(), steps)
        print(f"{name}: cost {cost:.2f}, violating steps {violations:.2f}")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

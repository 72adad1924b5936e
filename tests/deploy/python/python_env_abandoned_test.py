"""Python environments whose episodes are abandoned, because a number is not finite."""

import re

import datacom
import pytest
from python_env_test import cart, command, train  # noqa: F401  cart is a fixture

BREAKS = '''
    def reset(self, *, seed=None, options=None):
        self.steps, self.sound = 0, self.np_random.uniform() < %s
        return super().reset(seed=seed)

    def step(self, action):
        self.steps += 1
        observation, reward, *rest = super().step(action)
        return observation, reward if self.steps < 21 or self.sound else float("nan"), *rest
'''
WHY = "the first one because in step 21 the reward is not finite or above 1e+18"


def test_a_run_without_a_complete_episode_ends_with_an_error_that_says_why(cart):
    cart(BREAKS % 0)
    with pytest.raises(datacom.CommandFailed, match=f"all [0-9]+ training episodes of member 0 were abandoned, {re.escape(WHY)}") as failed:
        train("run", algorithm="sac")
    assert failed.value.code == 2


def test_a_model_with_a_number_that_is_not_finite_is_named_by_its_entry(cart):
    cart("""
    action_space = gymnasium.spaces.Box(-2.0, 2.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        self.gain = 1.0
        return super().reset(seed=seed)

    def step(self, action):
        self.gain = self.gain + 1 if self.gain < 21 else np.nan
        return super().step(action)

    def dynamics(self, observation):
        return {"q": observation, "f": [observation[1], 0.0], "G": [[0.0], [self.gain]]}
""")
    with pytest.raises(datacom.CommandFailed, match=re.escape("the first one because in step 21 number 7 of the observation, G[1][0] is not finite")):
        train("run", algorithm="datacom")


def test_a_run_that_lost_many_episodes_says_so_in_its_records_and_its_status(cart):
    cart(BREAKS % 0.6)
    rows = train("run", algorithm="sac").progress
    assert rows["status"].iloc[-1] == "abandoned" and rows["abandoned_reason"].iloc[-1] == WHY.removeprefix("the first one because ")
    lost, all_ = rows["train_abandoned"].sum(), (rows["train_abandoned"] + rows["train_episodes"]).sum()
    assert lost > all_ / 10
    assert f"member 0: {lost} of {all_} training episodes were abandoned, {WHY}\n" in command("status", "run").stdout
    assert command("verify", "run").returncode == 0
# SPDX-License-Identifier: Apache-2.0

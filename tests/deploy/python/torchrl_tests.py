import datacom
import numpy as np
import pytest
from torchrl.envs.gym_like import default_info_dict_reader
from torchrl.envs.libs.gym import GymEnv, GymWrapper
from torchrl.envs.utils import check_env_specs

SHORT = {"horizon": 20}


def test_a_rollout_has_the_environments_own_numbers_and_its_cost():
    env, plain = GymWrapper(datacom.make("AirHockey", options=SHORT)), datacom.make("AirHockey", options=SHORT)
    env.set_info_dict_reader(default_info_dict_reader(["cost"]))
    env.set_seed(5)
    rollout = env.rollout(30)
    assert rollout.batch_size[0] == 20 and rollout["next", "truncated"].ravel().tolist() == [False] * 19 + [True]
    plain.reset(seed=5)
    plain.reset()  # the rollout is the second episode since the seed
    for i in range(20):
        observation, reward, *_, info = plain.step(rollout["action"][i].numpy())
        np.testing.assert_array_equal(rollout["next", "observation"][i], observation)
        assert rollout["next", "reward"][i].item() == np.float32(reward)
        assert rollout["next", "cost"][i].item() == pytest.approx(info["cost"], rel=1e-6)


@pytest.mark.parametrize("name", ["CartPole", "AirHockey"])
def test_its_checker_accepts_the_name_of_a_task(name):
    check_env_specs(GymEnv(f"datacom/{name}-v0"))


def test_a_vector_is_a_batch():
    rollout = GymWrapper(datacom.make_vec("CartPole", 3, options=SHORT, autoreset_mode="same_step")).rollout(7)
    assert rollout.batch_size == (3, 7) and rollout["observation"].shape == (3, 7, 5)
# SPDX-License-Identifier: Apache-2.0

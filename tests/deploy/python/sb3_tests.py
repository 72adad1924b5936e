import datacom
import gymnasium
import numpy as np
import pytest
from datacom.sb3 import VecEnv
from stable_baselines3 import SAC
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecMonitor

SHORT = {"horizon": 20}


def train(env, steps=300):
    return SAC("MlpPolicy", env, learning_starts=50, policy_kwargs={"net_arch": [16]}, seed=1).learn(steps)


def test_sac_trains_on_the_name_of_a_task():
    agent = train("datacom/CartPole-v0")
    assert agent.num_timesteps >= 300 and np.isfinite(agent.predict(np.zeros(5, np.float32))[0]).all()


def test_sac_trains_on_its_own_vector_of_a_task():
    assert train(make_vec_env("datacom/CartPole-v0", 2)).num_timesteps >= 300


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["CartPole", "AirHockey", "Navigation"])
def test_its_checker_accepts_the_tasks(name):
    check_env(datacom.make(name, render_mode="rgb_array"))


def test_sac_trains_on_our_vector_and_its_monitor_counts_episodes():
    env = VecMonitor(VecEnv("CartPole", 4, options=SHORT))
    agent = train(env, 400)
    assert len(agent.ep_info_buffer) >= 400 // 20 - 4 and agent.ep_info_buffer[0]["l"] == 20
    assert len(agent.ep_success_buffer) == len(agent.ep_info_buffer)
    mean, _ = evaluate_policy(agent, env, n_eval_episodes=4)
    assert np.isfinite(mean)


def test_sac_trains_on_what_make_vec_gives():
    """With the defaults of both, past learning_starts: one update for 16 steps, so that 5,000 steps take seconds."""
    agent = SAC("MlpPolicy", VecEnv(datacom.make_vec("CartPole", 16, autoreset_mode="same_step")), seed=1).learn(5000)
    assert agent.num_timesteps >= 5000 and agent._n_updates > 300
    assert all(parameter.isfinite().all() for parameter in agent.policy.parameters())


def test_a_vector_that_resets_or_copies_otherwise_is_refused():
    for options in ({}, {"autoreset_mode": "same_step", "copy": False}):
        with pytest.raises(ValueError, match="autoreset_mode=\"same_step\""):
            VecEnv(datacom.make_vec("CartPole", 2, **options))
    vector = datacom.make_vec("CartPole", 2, autoreset_mode="same_step")
    for given in ({"num_envs": 2}, {"width": 32}):
        with pytest.raises(ValueError, match="are those of the vector"):
            VecEnv(vector, **given)
    env = VecEnv(vector, threads=None, render_mode=None)
    env.seed(7)
    np.testing.assert_array_equal(env.reset(), vector.reset(seed=7)[0])
    assert env.num_envs == 2


def test_our_vector_steps_as_the_environment_of_gymnasium():
    ours, theirs = VecEnv("AirHockey", 3, options=SHORT), datacom.make_vec("AirHockey", 3, options=SHORT, autoreset_mode="same_step")
    ours.seed(7)
    np.testing.assert_array_equal(ours.reset(), theirs.reset(seed=7)[0])
    draws = np.random.default_rng(0).uniform(-1, 1, (45, *theirs.action_space.shape)).astype(np.float32)
    for action in draws:
        observation, reward, done, infos = ours.step(action)
        same, paid, terminated, truncated, info = theirs.step(action)
        np.testing.assert_array_equal(observation, same)
        np.testing.assert_array_equal(reward, paid.astype(np.float32))
        np.testing.assert_array_equal(done, terminated | truncated)
        assert [one["cost"] for one in infos] == info["cost"].tolist()
        for i in np.flatnonzero(done):
            np.testing.assert_array_equal(infos[i]["terminal_observation"], info["final_obs"][i])
            assert infos[i]["TimeLimit.truncated"] == (truncated[i] and not terminated[i])


def test_a_start_value_is_an_option_of_the_next_reset():
    env = VecEnv("CartPole", 2)
    env.set_options({"init": {"x": 0.5, "theta": 0}})
    assert env.reset()[:, 0].tolist() == [0.5, 0.5]
    assert env.reset()[0, 0] != 0.5


def test_pictures_are_drawn_on_request():
    env = VecEnv("CartPole", 2, render_mode="rgb_array", width=32, height=18)
    env.reset()
    assert [frame.shape for frame in env.get_images()] == [(18, 32, 3)] * 2


def test_an_agent_acts_behind_the_shield_of_a_policy():
    shield = datacom.Shield.load("shipped:air_hockey/datacom")
    env = VecEnv("AirHockey", 2, shield=shield)
    train(env, 120)
    observation = env.reset()
    action = np.full((2, 3), 1, np.float32)
    _, _, _, infos = env.step(action)
    said = shield(observation, action)
    for i in range(2):
        np.testing.assert_array_equal(infos[i]["shield/action"], said.action[i])
        assert infos[i]["shield/constraint"] == said.constraint[i] and infos[i]["shield/change"] == said.intervention[i]


def test_one_environment_behind_a_shield_is_an_environment_of_gymnasium():
    env = datacom.Shield.load("shipped:air_hockey/datacom").wrap(gymnasium.make("datacom/AirHockey-v0"))
    assert train(env, 120).num_timesteps >= 120
# SPDX-License-Identifier: Apache-2.0

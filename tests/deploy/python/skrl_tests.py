import datacom
import numpy as np
import pytest
import torch
from skrl import config
from skrl.agents.torch.sac import SAC
from skrl.envs.wrappers.torch import wrap_env
from skrl.memories.torch import RandomMemory
from skrl.models.torch import DeterministicMixin, GaussianMixin, Model
from skrl.trainers.torch import SequentialTrainer
from skrl.utils import set_seed

SHORT = {"horizon": 20}


class Actor(GaussianMixin, Model):
    def __init__(self, env):
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
        GaussianMixin.__init__(self, clip_actions=True)
        self.mean = torch.nn.Linear(self.num_observations, self.num_actions)
        self.log_deviation = torch.nn.Parameter(torch.zeros(self.num_actions))

    def compute(self, inputs, role=""):
        return torch.tanh(self.mean(inputs["observations"])), {"log_std": self.log_deviation}


class Critic(DeterministicMixin, Model):
    def __init__(self, env):
        Model.__init__(self, observation_space=env.observation_space, action_space=env.action_space, device="cpu")
        DeterministicMixin.__init__(self)
        self.value = torch.nn.Linear(self.num_observations + self.num_actions, 1)

    def compute(self, inputs, role=""):
        return self.value(torch.cat([inputs["observations"], inputs["taken_actions"]], dim=1)), {}


def test_its_wrapper_gives_the_vectors_own_numbers():
    wrapped, plain = wrap_env(datacom.make_vec("AirHockey", 3, options=SHORT)), datacom.make_vec("AirHockey", 3, options=SHORT)
    np.testing.assert_array_equal(wrapped.reset()[0], plain.reset(seed=config.torch.key)[0])
    for action in np.random.default_rng(0).uniform(-1, 1, (45, 3, 3)).astype(np.float32):
        told, same = wrapped.step(torch.from_numpy(action)), plain.step(action)
        for theirs, ours in zip(told[:4], same[:4]):
            np.testing.assert_array_equal(theirs, ours.reshape(3, -1).astype(theirs.numpy().dtype))
        assert told[4]["cost"].tolist() == same[4]["cost"].tolist()


def test_its_wrapper_takes_one_environment():
    wrapped, plain = wrap_env(datacom.make("CartPole")), datacom.make("CartPole")
    np.testing.assert_array_equal(wrapped.reset()[0][0], plain.reset(seed=config.torch.key)[0])
    np.testing.assert_array_equal(wrapped.step(torch.full((1, 1), 0.5))[0][0], plain.step([0.5])[0])


def test_its_wrapper_draws_a_picture_of_every_environment():
    env = wrap_env(datacom.make_vec("CartPole", 2, render_mode="rgb_array", width=32, height=18))
    env.reset()
    assert [picture.shape for picture in env.render()] == [(18, 32, 3), (18, 32, 3)]


@pytest.mark.filterwarnings("ignore")
def test_its_sac_trains_and_its_memory_holds_three_episodes():
    set_seed(1)
    env = wrap_env(datacom.make_vec("CartPole", 4, options=SHORT))
    models = {"policy": Actor(env), **{name: Critic(env) for name in ("critic_1", "critic_2", "target_critic_1", "target_critic_2")}}
    before = models["policy"].mean.weight.detach().clone()
    agent = SAC(models=models, memory=RandomMemory(memory_size=100, num_envs=4), observation_space=env.observation_space,
                action_space=env.action_space, device="cpu",
                cfg={"batch_size": 16, "learning_starts": 10, "experiment": {"write_interval": 0, "checkpoint_interval": 0}})
    SequentialTrainer(env=env, agents=agent, cfg={"timesteps": 50, "headless": True, "disable_progressbar": True, "close_environment_at_exit": False}).train()
    assert torch.isfinite(models["policy"].mean.weight).all() and not torch.equal(models["policy"].mean.weight, before)
    speeds = agent.memory.get_tensor_by_name("observations").numpy().reshape(100, 4, 5)[:50, :, 3:]
    # An episode starts at rest. The first ends with step 20, step 21 resets, so the second starts with step 22 and the third with step 43.
    assert np.flatnonzero((np.abs(speeds) < 1e-9).all(axis=(1, 2))).tolist() == [0, 21, 42]
# SPDX-License-Identifier: Apache-2.0

import runpy
from pathlib import Path

import datacom
import gymnasium
import numpy as np
import pytest
from datacom.shielded import ShieldedEnv

ROOT = Path(__file__).resolve().parents[3]
SHIPPED = "shipped:air_hockey/datacom"


@pytest.fixture(scope="module")
def shield():
    return datacom.Shield.load(SHIPPED)


@pytest.fixture(scope="module")
def observations():
    env = datacom.make_vec("AirHockey", 20)
    env.reset(seed=1)
    for _ in range(30):
        seen = env.step(env.action_space.sample())[0]
    return seen


def test_a_policys_own_action_becomes_what_the_policy_would_execute(shield, observations):
    policy = datacom.Policy.load(SHIPPED)
    policy.shield = False
    own = policy.act(observations)
    policy.shield = True
    decided, said = policy.decide(observations), shield(observations, own)
    assert decided.intervention.max() > 0.1
    np.testing.assert_array_equal(said.action, policy.clip(decided.action))
    np.testing.assert_array_equal(said.constraint, decided.constraint)
    np.testing.assert_array_equal(said.intervention, decided.intervention)


def test_one_observation_is_treated_as_a_batch_of_one(shield, observations):
    action = np.array([1, -1, 0.5])
    one, batch = shield(observations[3], action), shield(observations[3:4], action[None])
    assert one.action.tolist() == batch.action[0].tolist() and one.constraint == batch.constraint[0]


def test_a_wrong_shape_or_a_policy_without_a_filter_is_refused(shield, observations):
    with pytest.raises(ValueError, match=r"the action has shape \(2,\), not \[3\]"):
        shield(observations[0], [0, 0])
    with pytest.raises(ValueError, match="number 1 of the proposed action is nan"):
        shield(observations[0], [0, float("nan"), 0])
    with pytest.raises(NotImplementedError, match="gaussian_policy, which has no filter"):
        datacom.Shield.load("shipped:air_hockey/sac")
    with pytest.raises(NotImplementedError, match="the rule gaussian_policy has no filter"):
        datacom.Policy.load("shipped:air_hockey/sac").filter(observations[0], [0, 0, 0])


def test_a_wrapped_environment_executes_the_shields_actions_and_says_so(shield):
    env, bare = shield.wrap(gymnasium.make("datacom/AirHockey-v0")), datacom.make("AirHockey")
    observation, _ = env.reset(seed=4)
    bare.reset(seed=4)
    changed = 0
    for step in range(60):
        action = np.array([1, -1, 1], np.float32) * (1 if step % 20 < 10 else -1)
        said = shield(observation, action)
        observation, reward, _, _, info = env.step(action)
        same, paid, *_ = bare.step(said.action)
        np.testing.assert_array_equal(observation, same)
        assert reward == paid and info["shield/action"].tolist() == said.action.tolist()
        assert (info["shield/constraint"], info["shield/change"]) == (said.constraint, said.intervention)
        changed += said.intervention > 0.02
    assert 0 < changed


@pytest.mark.parametrize("mode", ["next_step", "same_step"])
def test_many_environments_behind_a_shield_step_as_single_ones(shield, mode):
    env = shield.wrap(datacom.make_vec("AirHockey", 3, autoreset_mode=mode, options={"horizon": 15}))
    with pytest.raises(gymnasium.error.ResetNeeded, match="before its first step"):
        env.step(np.zeros((3, 3)))
    observation, _ = env.reset(seed=2)
    draws = np.random.default_rng(0).uniform(-1, 1, (40, 3, 3)).astype(np.float32)
    for action in draws:
        said = shield(observation, action)
        observation, *_, info = env.step(action)
        np.testing.assert_array_equal(info["shield/action"], said.action)
        assert info["_shield/action"].all()


def test_the_filter_of_a_python_environments_policy_reads_its_units_and_its_model():
    class Bound:
        acting_rule, action_dim, observation_dim, seen_dim, observation_names = "gaussian_policy", 2, 3, 3, ["x", "y", "z"]
        action_names = ["a, -1 to 1 for 0 to 10", "b, -1 to 1 for -4 to 4"]

        def filter(self, row, action, previous_cost):
            assert row.tolist() == [1, 2, 3]
            return datacom.Decision(np.asarray(action) / 2, 0, 0, 0, 0)

    class Env:
        action_space = gymnasium.spaces.Box(np.array([0, -4], np.float32), np.array([10, 4], np.float32))
        observation_space = gymnasium.spaces.Box(-1, 1, (3,))

    bound = datacom.EnvPolicy(Bound(), Env())
    # 10 and -4 are 1 and -1 for the policy; half of that is 7.5 and -2.
    assert bound.filter([1, 2, 3], [10, -4]).action.tolist() == [7.5, -2]
    with pytest.raises(ValueError, match="the action has 1 numbers, the environment takes 2"):
        bound.filter([1, 2, 3], [10])


class Counting(gymnasium.Env):
    """Counts its steps; returns the array that it goes on writing into, and Safety-Gymnasium's six values if so told."""

    action_space = gymnasium.spaces.Box(-1, 1, (1,))
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,))
    six = False

    def reset(self, *, seed=None, options=None):
        self.count = np.zeros(1)
        return self.count, {}

    def step(self, action):
        self.count += 1
        cost = 0.5 * self.count[0]
        return (self.count, 0.0, *((cost,) if self.six else ()), False, False, {} if self.six else {"cost": cost})


@pytest.mark.parametrize("six", [False, True])
def test_a_shield_reads_what_the_environment_has_returned_whatever_the_caller_does_with_it(six):
    asked = []

    def shield(observation, action, info, previous_cost):
        asked.append((observation.tolist(), previous_cost))
        return datacom.Decision(action, 0, 0, 0, 0)

    env = ShieldedEnv(Counting(), shield)
    env.unwrapped.six = six
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step(np.zeros(1))
    seen, _ = env.reset()
    for step in range(3):
        seen[:] = step  # what the caller has changed, and the environment goes on with
        seen, *rest, info = env.step(np.zeros(1))
        assert len(rest) == (4 if six else 3) and "shield/action" in info
    assert asked == [([0.0], 0.0), ([1.0], 0.5), ([2.0], 1.0)]


class Tensor:
    """As one of PyTorch that is on another device or needs a gradient: NumPy cannot read it."""

    def __init__(self, value):
        self.value, self.shape = np.asarray(value), np.shape(value)

    def __array__(self, *_, **__):
        raise RuntimeError("use tensor.detach().cpu() first")

    def __float__(self):
        return float(self.value)

    def __or__(self, other):
        return Tensor(self.value | other.value)

    def detach(self):
        return self

    def cpu(self):
        return self.value


class Clipping(Counting):
    """Writes into the action that it gets."""

    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.float64)

    def step(self, action):
        action[:] = 7
        return super().step(action)


def test_the_action_of_the_shield_stays_what_it_was_whatever_the_environment_does_with_it():
    env = ShieldedEnv(Clipping(), lambda *_: datacom.Decision(np.full(1, 0.5), 0, 0, 0, 0))
    env.reset()
    assert env.step(np.zeros(1))[-1]["shield/action"].tolist() == [0.5]


class Asserting(gymnasium.Env):
    """Takes what its space contains alone, as Gymnasium's own environments do, and always gives the same."""

    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (16,))
    action_space = gymnasium.spaces.Box(-1, 1, (3,))

    def __init__(self, observation, cost):
        self.given = observation, 0.0, False, False, {"cost": cost}

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.given[0], {}

    def step(self, action):
        assert self.action_space.contains(action)
        return self.given


@pytest.mark.parametrize("cost", [0.5, True, np.float32(0.5), np.array([0.5]), np.array([[0.5]])], ids=repr)
def test_a_foreign_environment_gets_actions_of_its_space_and_may_give_its_cost_in_any_form(shield, observations, cost):
    wanted = np.zeros((2, 3), np.float32)
    alone, several = (shield.wrap(env) for env in (Asserting(observations[0], cost), gymnasium.vector.SyncVectorEnv(
        [lambda: Asserting(observations[0], cost)] * 2)))
    expected = shield(observations[0], wanted[0], previous_cost=float(cost if np.isscalar(cost) else cost.item())).action
    for env, action in ((alone, wanted[0]), (several, wanted)):
        env.reset()
        env.step(action)
        np.testing.assert_array_equal(env.step(action)[-1]["shield/action"], np.broadcast_to(expected, action.shape))


def test_tensors_that_numpy_cannot_read_are_taken_as_their_numbers(shield, observations):
    wanted = np.full((2, 3), 0.5, np.float32)
    expected = shield(observations[:2], wanted, previous_cost=[0.5, 0])
    for said, same in zip(shield(Tensor(observations[:2]), Tensor(wanted), previous_cost=Tensor([0.5, 0])), expected):
        np.testing.assert_array_equal(said, same)
    several = gymnasium.vector.SyncVectorEnv([lambda: Asserting(observations[0], 0.5)] * 2)
    ends = Tensor([False, False])
    several.step = lambda _: (Tensor(observations[:2]), Tensor([0.0, 0.0]), ends, ends, {"cost": Tensor([0.5, 0])})
    alone = shield.wrap(Asserting(Tensor(observations[0]), Tensor(0.5)))
    for env, action in ((shield.wrap(several), wanted), (alone, wanted[0])):
        env.reset()
        env.step(action)
        np.testing.assert_array_equal(env.step(action)[-1]["shield/action"], expected.action if env is not alone else expected.action[0])


@pytest.mark.parametrize("cost, words", [("x", "previous_cost is 'x', not a number"), (np.zeros(2), r"previous_cost is array\(\[0., 0.\]\), not a number"),
                                         (None, "previous_cost is not finite")], ids=repr)
def test_a_cost_that_is_no_number_is_refused_by_the_step_that_reads_it(shield, observations, cost, words):
    env = shield.wrap(Asserting(observations[0], cost))
    env.reset()
    env.step(np.zeros(3, np.float32))
    with pytest.raises(ValueError, match=words):
        env.step(np.zeros(3, np.float32))


@pytest.mark.parametrize("space", [gymnasium.spaces.Discrete(3), gymnasium.spaces.Box(-1, 1, (3,), np.int64)], ids=repr)
def test_an_environment_whose_actions_are_no_box_of_real_numbers_has_no_shield(shield, observations, space):
    env = Asserting(observations[0], 0.0)
    env.action_space = space
    with pytest.raises(ValueError, match=r"action space, (Discrete\(3\)|Box\(.*int64\)), is no Box of real numbers"):
        shield.wrap(env)


@pytest.mark.parametrize("wrap, actions", [
    (lambda env: gymnasium.wrappers.RescaleAction(env, np.float32(-2), np.float32(2)), 3),
    (lambda env: gymnasium.wrappers.vector.RescaleAction(gymnasium.vector.SyncVectorEnv([lambda: env]), np.float32(-2), np.float32(2)), 3),
    (lambda env: gymnasium.wrappers.TransformAction(env, lambda action: action[:3], gymnasium.spaces.Box(-1, 1, (4,))), 4)], ids=["one", "many", "more"])
def test_an_environment_whose_actions_have_other_bounds_has_no_shield(shield, observations, wrap, actions):
    with pytest.raises(ValueError, match=rf"the environment takes {actions} actions from .* to .*, the shield 3 from \[-1. -1. -1.\] to \[1. 1. 1.\]: wrap the env"):
        shield.wrap(wrap(Asserting(observations[0], 0.0)))


def test_the_example_shows_fewer_violations_with_the_shield(capsys):
    runpy.run_path(str(ROOT / "deploy/examples/python/foreign_agent.py"))["main"](environments=20)
    with_shield, without = (float(line.split()[-1]) for line in capsys.readouterr().out.splitlines() if "violating steps" in line)
    assert with_shield < without / 2
# SPDX-License-Identifier: Apache-2.0

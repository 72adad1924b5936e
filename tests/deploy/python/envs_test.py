import copy
import gc
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import datacom
import gymnasium
import numpy as np
import pytest
from datacom import envs
from gymnasium.utils.env_checker import check_env

ROOT = Path(__file__).resolve().parents[3]
ARM = ROOT / "deploy/examples/arm_reach/task.textproto"
TASKS = sorted(path.parent.name for path in (ROOT / "common/tasks").glob("*/task.cc"))
NAMES = [name.removeprefix("datacom/").removesuffix("-v0") for name in gymnasium.registry if name.startswith("datacom/")]


def play(env, actions, seed=5):
    """Observations, rewards, costs and ends of the steps."""
    observation, info = env.reset(seed=seed)
    told = [(observation, np.zeros(env.num_envs), info["cost"], np.zeros(env.num_envs, bool))]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        told.append((observation, reward, info["cost"], terminated | truncated))
    return [np.array(column) for column in zip(*told)]


def draws(env, steps, seed=0):
    return np.random.default_rng(seed).uniform(-1, 1, (steps, *env.action_space.shape)).astype(np.float32)


def test_every_task_has_a_name_in_gymnasium():
    assert sorted(envs._task_name(name) for name in NAMES) == TASKS


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore")
def test_gymnasiums_checker_accepts_every_task(name):
    env = gymnasium.make(f"datacom:datacom/{name}-v0")
    check_env(env.unwrapped)


@pytest.mark.parametrize("name", NAMES)
def test_make_vec_of_gymnasium_makes_our_vector_environment(name):
    env = gymnasium.make_vec(f"datacom/{name}-v0", num_envs=3, vectorization_mode="vector_entry_point")
    assert isinstance(env.unwrapped, datacom.VectorEnv) and env.num_envs == 3


def test_a_step_equals_the_recorded_trajectory(golden):
    rows = golden("cartpole_const_plus1.csv.gz")
    env = datacom.make("CartPole")
    observation, _ = env.reset(options={"init": {"x": np.array([-1]), "theta": np.float32(0)}})
    for row in rows[1:200]:
        observation, reward, terminated, _, info = env.step([float(row["action"])])
        expected = [float(row[name]) for name in ("obs0_x", "obs1_sin", "obs2_cos", "obs3_xdot", "obs4_thetadot")]
        np.testing.assert_allclose(observation, expected, rtol=1e-5, atol=1e-6)
        assert info["cost"] == pytest.approx(float(row["cost"]), abs=1e-6)
        assert terminated == bool(int(row["absorbing"]))


def test_threads_do_not_change_a_number():
    env = datacom.make_vec("AirHockey", 7, threads=1)
    actions = draws(env, 150)
    for one, many in zip(play(env, actions), play(datacom.make_vec("AirHockey", 7, threads=4), actions)):
        np.testing.assert_array_equal(one, many)


class HeldAction:
    """An action that keeps a thread inside `step` until it may go on."""

    def __init__(self, action):
        self.action, self.inside, self.go_on = action, threading.Event(), threading.Event()

    def __array__(self, dtype=None, copy=None):
        self.inside.set()
        self.go_on.wait()
        return self.action


@pytest.mark.parametrize("make", [lambda: datacom.make_vec("AirHockey", 2, threads=2), lambda: datacom.make("AirHockey")])
def test_an_environment_refuses_a_thread_while_another_is_in_it(make):
    env, alone = make(), make()
    env.reset(seed=3)
    alone.reset(seed=3)
    action = np.full(env.action_space.shape, 0.3, np.float32)
    held = HeldAction(action)
    with ThreadPoolExecutor(1, thread_name_prefix="stepping") as other:
        stepped = other.submit(env.step, held)
        held.inside.wait()
        for call in (lambda: env.step(action), lambda: env.reset(seed=0)):
            with pytest.raises(RuntimeError, match="used by another thread, stepping_0: give MainThread an environment of its own"):
                call()
        held.go_on.set()
        np.testing.assert_array_equal(stepped.result()[0], alone.step(action)[0])
    np.testing.assert_array_equal(env.step(action)[0], alone.step(action)[0])  # one after the other they may


@pytest.mark.parametrize("again", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("make", [lambda: datacom.make_vec("CartPole", 2, options={"horizon": 5}, autoreset_mode="same_step"),
                                  lambda: datacom.make("CartPole", options={"horizon": 5})])
def test_a_copied_environment_is_a_new_one_with_the_same_arguments(make, again):
    env = make()
    env.reset(seed=4)
    env.step(np.ones(env.action_space.shape, np.float32))
    told = again(env)
    np.testing.assert_array_equal(told.reset(seed=9)[0], env.reset(seed=9)[0])
    for _ in range(5):
        for ours, theirs in zip(told.step(np.ones(env.action_space.shape))[:4], env.step(np.ones(env.action_space.shape))[:4]):
            np.testing.assert_array_equal(ours, theirs)


def test_a_task_file_of_a_copied_environment_needs_no_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(ARM.parent)
    env = datacom.make("task.textproto")
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(copy.deepcopy(env).reset(seed=1)[0], env.reset(seed=1)[0])


def test_environment_i_of_a_seed_is_the_single_environment_of_seed_plus_i():
    many = datacom.make_vec("CartPole", 3)
    actions = draws(many, 50)
    observations = play(many, actions, seed=11)[0]
    for i in range(3):
        single = datacom.make("CartPole")
        np.testing.assert_array_equal(single.reset(seed=11 + i)[0], observations[0, i])
        for step, action in enumerate(actions):
            np.testing.assert_array_equal(single.step(action[i])[0], observations[step + 1, i])


@pytest.mark.parametrize("seed", [np.uint8(255), np.int64(255), [255, 256], np.array([255, 256]), (np.int32(255), 256)])
def test_a_seed_may_come_from_numpy(seed):
    env = datacom.make_vec("CartPole", 2)
    np.testing.assert_array_equal(env.reset(seed=seed)[0], env.reset(seed=255)[0])


def test_without_a_seed_environments_differ():
    first, _ = datacom.make_vec("AirHockey", 4).reset()
    second, _ = datacom.make_vec("AirHockey", 4).reset()
    assert not np.array_equal(first, second)
    assert len(np.unique(first[:, 0])) == 4


def test_an_episode_is_truncated_at_the_horizon_and_the_next_step_resets():
    env = datacom.make_vec("CartPole", 2, options={"horizon": 4})
    env.reset(seed=0)
    for step in range(1, 5):
        observation, _, terminated, truncated, _ = env.step(np.ones((2, 1)))
        assert list(truncated) == [step == 4] * 2 and not terminated.any()
    start, reward, terminated, truncated, info = env.step(np.ones((2, 1)))
    assert not truncated.any() and not reward.any()
    np.testing.assert_allclose(start[:, 3:], 0, atol=1e-9)  # at rest
    assert not np.array_equal(start, observation)


def test_the_same_step_resets_and_keeps_the_last_observation():
    waiting = datacom.make_vec("CartPole", 2, options={"horizon": 4})
    env = datacom.make_vec("CartPole", 2, options={"horizon": 4}, autoreset_mode="same_step")
    assert env.metadata["autoreset_mode"] == gymnasium.vector.AutoresetMode.SAME_STEP
    waiting.reset(seed=0)
    env.reset(seed=0)
    action = np.full((2, 1), 0.5)
    for _ in range(4):
        last, _, _, _, last_info = waiting.step(action)
        observation, _, _, truncated, info = env.step(action)
    assert truncated.all()
    for i in range(2):
        np.testing.assert_array_equal(info["final_obs"][i], last[i])
    np.testing.assert_array_equal(info["cost"], last_info["cost"])
    np.testing.assert_array_equal(info["final_info"]["cost"], last_info["cost"])
    np.testing.assert_array_equal(observation, waiting.step(action)[0])  # the start of the second episode
    assert "final_obs" not in env.step(action)[4]


def test_without_automatic_resets_a_mask_chooses_who_starts():
    env = datacom.make_vec("AirHockey", 2, options={"horizon": 2}, autoreset_mode=gymnasium.vector.AutoresetMode.DISABLED)
    env.reset(seed=0)
    env.step(np.zeros((2, 3)))
    before = env.step(np.zeros((2, 3)))[0]
    with pytest.raises(RuntimeError, match="environment 0 has ended"):
        env.step(np.zeros((2, 3)))
    after, _ = env.reset(options={"reset_mask": np.array([False, True])})
    np.testing.assert_array_equal(after[0], before[0])
    assert not np.array_equal(after[1], before[1])


def test_gymnasiums_wrappers_work():
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(datacom.make_vec("CartPole", 2, options={"horizon": 5}))
    env.reset(seed=0)
    for _ in range(5):
        info = env.step(np.zeros((2, 1)))[4]
    np.testing.assert_array_equal(info["episode"]["l"], [5, 5])


def test_gymnasiums_wrappers_around_a_vector_report_its_own_numbers():
    plain = datacom.make_vec("CartPole", 3, options={"horizon": 6})
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(datacom.make_vec("CartPole", 3, options={"horizon": 6}))
    env = gymnasium.wrappers.vector.ClipAction(gymnasium.wrappers.vector.FlattenObservation(env))
    env = gymnasium.wrappers.vector.NormalizeObservation(env)
    env = gymnasium.wrappers.vector.TransformObservation(env, lambda seen: np.clip(seen, -10, 10))
    env = gymnasium.wrappers.vector.NormalizeReward(env, gamma=0.99)
    env = gymnasium.wrappers.vector.TransformReward(env, lambda paid: np.clip(paid, -10, 10))
    actions = draws(plain, 20) * 3  # ClipAction limits them to -1 to 1
    plain.reset(seed=3)
    assert np.abs(env.reset(seed=3)[0]).max() <= 10
    returns, told = np.zeros((20, 3)), []
    for step, action in enumerate(actions):
        returns[step] = plain.step(np.clip(action, -1, 1))[1]
        observation, reward, _, truncated, info = env.step(action)
        assert np.isfinite(observation).all() and np.isfinite(reward).all()
        if "episode" in info:
            assert truncated.all()
            told.append((step, info["episode"]["r"], info["episode"]["l"].tolist()))
    assert [(step, length) for step, _, length in told] == [(5, [6, 6, 6]), (12, [6, 6, 6]), (19, [6, 6, 6])]  # a step between them resets
    for step, total, _ in told:
        np.testing.assert_allclose(total, returns[step - 5:step + 1].sum(axis=0), rtol=1e-6)


def test_a_vector_says_its_reset_mode_and_calls_like_gymnasiums_own():
    env = datacom.make_vec("CartPole", 2, autoreset_mode="disabled", render_mode="rgb_array", width=32, height=18)
    assert env.autoreset_mode == gymnasium.vector.AutoresetMode.DISABLED
    env.reset(seed=0)
    for shown, drawn in zip(env.call("render"), env.render()):
        np.testing.assert_array_equal(shown, drawn)
    assert env.call("horizon") == (env.horizon, env.horizon)
    with pytest.raises(AttributeError, match="they step together"):
        env.call("step", np.zeros((2, 1)))


def test_results_are_copies_unless_told_otherwise():
    env = datacom.make_vec("CartPole", 2)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    env.step(np.ones((2, 1)))
    np.testing.assert_array_equal(first, kept)
    shared = datacom.make_vec("CartPole", 2, copy=False)
    assert shared.reset(seed=0)[0] is shared.step(np.ones((2, 1)))[0]


def test_a_task_file_has_named_costs_and_dynamics():
    env = datacom.make_vec(ARM, 3)
    observation, info = env.reset(seed=0)
    for _ in range(20):
        observation, _, _, _, info = env.step(draws(env, 1)[0])
    named = [info[f"cost/{name}"] for name in env.cost_names]
    if named:
        np.testing.assert_allclose(np.max(named, axis=0), info["cost"], rtol=1e-6, atol=1e-7)
    model = env.dynamics(observation)
    assert model.G.shape == (3, model.q.shape[1], env.single_action_space.shape[0])


def test_the_dynamics_of_cartpole_predict_its_next_step():
    env = datacom.make_vec("CartPole", 8)
    observation, _ = env.reset(seed=1)
    for _ in range(40):
        observation = env.step(draws(env, 1)[0])[0]
    model = env.dynamics(observation)
    action = np.full((8, 1), 0.7, np.float32)
    after = env.dynamics(env.step(action)[0])
    slope = (after.q - model.q) / env.control_period
    np.testing.assert_allclose(slope, model.f + np.einsum("nqa,na->nq", model.G, action), rtol=0.1, atol=0.3)
    single = env.dynamics(observation[2])
    np.testing.assert_array_equal(single.G, model.G[2])


def test_safety_gymnasiums_interface_has_six_values():
    env = datacom.SafetyGymnasium(datacom.make("CartPole"))
    env.reset(seed=0)
    values = env.step([0.0])
    assert len(values) == 6 and values[2] >= 0


@pytest.mark.parametrize("call, error, words", [
    (lambda: datacom.make_vec("Tennis"), ValueError, f'task "tennis" does not exist; there are: {", ".join(TASKS)}'),
    (lambda: datacom.make_vec("CartPole", options={"frames": 3}), ValueError, 'no field named "frames"'),
    (lambda: datacom.make_vec("CartPole", options={"horizn": 3}), ValueError, "did you mean horizon"),
    (lambda: datacom.make_vec("CartPol"), ValueError, "did you mean cartpole"),
    (lambda: datacom.make_vec("CartPole", 0), ValueError, "num_envs is 0"),
    (lambda: datacom.make_vec("CartPole", 2, threads=0), ValueError, "threads is 0"),
    (lambda: datacom.make_vec("CartPole", 2.0), ValueError, "num_envs is 2.0, no whole number"),
    (lambda: datacom.make_vec("CartPole", 2, threads="2"), ValueError, "threads is '2', no whole number"),
    (lambda: datacom.make_vec("CartPole", autoreset_mode="never"), ValueError, "'never'"),
    (lambda: datacom.make_vec("missing/task.textproto"), ValueError, "missing/task.textproto"),
    (lambda: datacom.make("CartPole").reset(options={"init": {"mass": 1}}), ValueError, "mass"),
    (lambda: datacom.make("CartPole").reset(options={"init": {"x": None}}), ValueError, "start value x = nan"),
    (lambda: datacom.make("CartPole").reset(options={"init": {"x": [1, 2]}}), ValueError, r"start value x = \[1, 2\], no number"),
    (lambda: datacom.make("CartPole").reset(options={"start": 1, 2: 3}), ValueError, "unknown options of reset: 2, start"),
    (lambda: datacom.make_vec("CartPole", 2).reset(seed=[1]), ValueError, "1 seeds for 2"),
    (lambda: datacom.make_vec("CartPole", 2).reset(seed=-1), ValueError, "the seed -1 is no whole number of 0 to"),
    (lambda: datacom.make_vec("CartPole", 2).reset(seed=2**64 - 1), ValueError, "the seed 18446744073709551616 is no whole number"),
    (lambda: datacom.make("CartPole").reset(seed=2**64), ValueError, "the seed 18446744073709551616 is no whole number"),
    (lambda: datacom.make_vec("CartPole", 2).reset(seed=1.5), ValueError, "the seed 1.5 is no whole number"),
    (lambda: datacom.make_vec("CartPole", 2).reset(seed=[1, 2.5]), ValueError, "the seed 2.5 is no whole number"),
    (lambda: stepped([[np.nan]]), ValueError, "the action of environment 0 has the value nan at index 0"),
    (lambda: stepped([[0.0], [0.0]]), ValueError, r"shape \(2, 1\)"),
])
def test_an_error_names_the_thing(call, error, words):
    with pytest.raises(error, match=words):
        call()


def stepped(actions):
    env = datacom.make_vec("CartPole")
    env.reset()
    env.step(actions)


def test_ids_name_every_task_of_the_library():
    with pytest.raises(ValueError) as refused:
        datacom.make("nothing")
    tasks = str(refused.value).split("there are: ")[1].split(", ")
    registered = [spec.kwargs["task"] for name, spec in gymnasium.registry.items() if name.startswith("datacom/")]
    assert sorted(datacom.make(task)._environments.info.task.decode() for task in registered) == tasks


def test_a_thousand_vectors_are_freed():
    for _ in range(1000):
        datacom.make_vec("CartPole", 2, threads=1)
    gc.collect()


@pytest.mark.parametrize("last", ["", "env.step(env.action_space.sample()); del env; gc.collect()"])
def test_a_process_that_a_program_forks_ends_for_itself(last):
    script = f"""
import datacom, gc, os, sys
env = datacom.make_vec("CartPole", 4, threads=3)
env.reset(seed=0)
if os.fork() == 0:
    {last or "pass"}
    sys.exit(7)
env.step(env.action_space.sample())
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status := os.wait()[1]) else -os.WTERMSIG(status))
"""
    assert subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=False).returncode == 7


def test_a_window_shows_every_state(monkeypatch):
    pygame = pytest.importorskip("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    look = {"width": 64, "height": 36}
    env, pictures = datacom.make("CartPole", render_mode="human", **look), datacom.make("CartPole", render_mode="rgb_array", **look)
    for one in (env, pictures):
        one.reset(seed=4)
    for _ in range(3):
        shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
        np.testing.assert_array_equal(shown, pictures.render())
        assert env.render() is None
        env.step([0.5])
        pictures.step([0.5])
    assert pygame.display.get_caption()[0] == "CartPole"
    assert copy.deepcopy(env).render_mode == "human" and pickle.loads(pickle.dumps(env))._window is None
    env.close()
    assert not pygame.display.get_init()
    env.close()
    with pytest.raises(ValueError, match="'rgb_array' or None"):
        datacom.make_vec("CartPole", 2, render_mode="human")
# SPDX-License-Identifier: Apache-2.0

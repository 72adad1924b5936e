"""Trainings in Python environments: what datacom asks of them, and what holds when one of the processes dies."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import datacom
import numpy as np
import pytest
from datacom import _files

SMALL = {"run.steps_per_epoch": 500, "run.eval_episodes": 2, "replay.min_size": 100}

# A cart on a rail, pushed by a force: observation [x, v], cost |x| - 1. What a test changes follows as TRAITS.
CART = """
import os, signal
import gymnasium, numpy as np

class Cart(gymnasium.Env):
    control_dt = 0.1
    max_episode_steps = 40
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.v = self.np_random.uniform(-0.5, 0.5), 0.0
        return self.observe(), {"cost": self.cost()}

    def step(self, action):
        self.v += 0.1 * float(action[0])
        self.x += 0.1 * self.v
        return self.observe(), -abs(self.x - 0.9), abs(self.x) > 2, False, {"cost": self.cost()}

    def observe(self):
        return np.array([self.x, self.v], np.float32)

    def cost(self):
        return abs(self.x) - 1

class Traits(Cart):
    pass
"""
MODEL = """
    def dynamics(self, observation):
        return {"q": observation, "f": [observation[1], 0.0], "G": [[0.0], [1.0]]}
"""
# Ends a process, once, after this many steps of an actor's environments.
ENDS = """
    steps = 0

    def step(self, action):
        acts = b"\\0run\\0" in open(f"/proc/{os.getppid()}/cmdline", "rb").read()
        Traits.steps += acts
        if Traits.steps == 700 and not os.path.exists("ended"):
            open("ended", "w").close()
            os.kill(%s, signal.SIGKILL)
        return super().step(action)
"""


@pytest.fixture
def cart(tmp_path, monkeypatch):
    """cart(*traits): makes cart_env in the working directory, a new folder."""
    monkeypatch.chdir(tmp_path)

    def write(*traits):
        text = CART + "".join(traits) + "\ndef make():\n    return Traits()\n"
        (tmp_path / "cart_env.py").write_text(text)

    return write


def train(name, **more):
    """A finished training of cart_env in a new folder."""
    settings = {**SMALL, **more.pop("settings", {})}
    return datacom.train(python="cart_env:make", run_dir=name, settings=settings, **{"steps": 1500, **more}).wait()


def command(*words):
    return subprocess.run([str(_files.program("datacom")), *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          check=False, env={**os.environ, "DATACOM_PYTHON": sys.executable})


def test_the_default_is_datacom_with_a_model_and_lag_sac_without(cart):
    cart(MODEL)
    with_model = train("model")
    assert with_model.experiment["algorithm"] == "datacom" and with_model.progress["env_steps"].max() == 1500
    cart()
    assert train("none").experiment["algorithm"] == "lag_sac"


def test_a_method_with_a_map_is_refused_by_name_without_a_model(cart):
    cart()
    with pytest.raises(datacom.CommandFailed, match="cart_env has no control-affine model .*, which this algorithm needs") as refused:
        train("run", algorithm="datacom")
    assert refused.value.code == 2


def test_rows_hold_the_model_for_actions_of_one(cart):
    cart('    action_space = gymnasium.spaces.Box(0.0, 4.0, (1,), np.float32)\n', MODEL)
    rows = train("run").transitions()
    x, v = rows["observation"][:, 0], rows["observation"][:, 1]
    # [x, v | q | f | G]: f = [v, 0] + G 2, G = [0, 1] 2
    expected = np.stack([x, v, x, v, v, np.full_like(v, 2), np.zeros_like(v), np.full_like(v, 2)], axis=1)
    np.testing.assert_array_equal(rows["observation"], expected)
    pushed = rows["next_observation"][:, 1] - v
    np.testing.assert_allclose(pushed, 0.1 * (2 + 2 * rows["action"][:, 0]), atol=1e-6)
    assert abs(rows["action"]).max() <= 1
    policy = datacom.Policy.load("run")
    in_units = policy.bind(runpy.run_path("cart_env.py")["make"]()).decide(rows["observation"][-1, :2]).action
    np.testing.assert_allclose(in_units, 2 + 2 * policy.decide(rows["observation"][-1]).action, rtol=1e-6)
    assert in_units.shape == (1,) and in_units.dtype == np.float32
    with pytest.raises(ValueError, match="has 1 numbers"):
        policy.bind(runpy.run_path("cart_env.py")["make"]()).decide([0.5])


def test_six_values_and_a_truncation_make_rows_that_end_without_being_absorbing(cart):
    cart("""
    count = 0

    def reset(self, **more):
        self.count = 0
        return super().reset(**more)

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.count += 1
        return observation, reward, info.pop("cost"), terminated, self.count == 7, info
""")
    rows = train("run", algorithm="sac").transitions()
    last = rows["last"].astype(bool)
    assert last.sum() > 100 and not rows["absorbing"].any()
    assert rows["step"][last].max() == 6 and (rows["step"] <= 6).all()
    np.testing.assert_allclose(rows["cost"], abs(rows["next_observation"][:, 0]) - 1, atol=1e-6)


def test_named_costs_are_recorded(cart):
    cart("""
    def step(self, action):
        *rest, info = super().step(action)
        return (*rest, {**info, "cost": max(self.x, self.v), "cost/place": self.x, "cost/speed": self.v})
""")
    run = train("run", algorithm="sac")
    assert {"eval_sum_cost.place", "eval_sum_cost.speed"} <= set(run.progress.columns)
    rows = run.transitions()
    np.testing.assert_array_equal(rows["next_observation"][:, 2:], rows["next_observation"][:, :2])


def test_an_exception_ends_the_training_with_its_words(cart):
    cart("""
    def step(self, action):
        Traits.total = getattr(Traits, "total", 0) + 1
        if Traits.total > 200:
            raise ValueError("the belt is off")
        return super().step(action)
""")
    with pytest.raises(datacom.CommandFailed, match=r"raised ValueError: the belt is off \(.*cart_env.py:\d+\)"):
        train("run", algorithm="sac")


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


def test_a_run_that_lost_many_episodes_says_so_in_its_records_and_its_status(cart):
    cart(BREAKS % 0.6)
    rows = train("run", algorithm="sac").progress
    assert rows["status"].iloc[-1] == "abandoned" and rows["abandoned_reason"].iloc[-1] == WHY.removeprefix("the first one because ")
    lost, all_ = rows["train_abandoned"].sum(), (rows["train_abandoned"] + rows["train_episodes"]).sum()
    assert lost > all_ / 10
    assert f"member 0: {lost} of {all_} training episodes were abandoned, {WHY}\n" in command("status", "run").stdout
    assert command("verify", "run").returncode == 0


@pytest.mark.parametrize("message, expected", [("'x' * 400_000", "xxxx"), ("chr(0xdcff)", r"raised ValueError: \?")], ids=["long", "odd"])
def test_an_error_is_reported_whatever_its_text_and_however_the_environment_closes(cart, message, expected):
    cart(f"""
    def step(self, action):
        Traits.total = getattr(Traits, "total", 0) + 1
        if Traits.total > 200:
            raise ValueError({message})
        return super().step(action)

    def close(self):
        raise RuntimeError("closed badly")
""")
    with pytest.raises(datacom.CommandFailed, match=expected):
        train("run", algorithm="sac")


def test_the_end_of_a_python_process_is_noticed_while_its_children_live(cart):
    cart(ENDS % "os.getpid()", """
    def __init__(self):
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "1000"])
""")
    run = train("run", algorithm="sac", settings={"run.steps_per_epoch": 1000}, steps=1000)
    assert os.path.exists("ended") and run.transitions().end == 1000


def test_a_model_in_info_must_reach_the_policy(cart):
    cart("""
    def reset(self, **more):
        observation, info = super().reset(**more)
        return observation, {**info, "dynamics": self.model(observation)}

    def step(self, action):
        *rest, info = super().step(action)
        return (*rest, {**info, "dynamics": self.model(rest[0])})

    def model(self, observation):
        return {"q": observation, "f": [observation[1], 0.0], "G": [[0.0], [1.0]]}
""")
    rows = train("run").transitions()
    policy = datacom.Policy.load("run")
    bound = policy.bind(runpy.run_path("cart_env.py")["make"]())
    x, v = rows["observation"][-1, :2]
    with pytest.raises(ValueError, match="pass the info that has"):
        bound.decide([x, v])
    decision = bound.decide([x, v], {"dynamics": {"q": [x, v], "f": [v, 0.0], "G": [[0.0], [1.0]]}})
    assert decision.constraint == policy.decide(rows["observation"][-1]).constraint


@pytest.mark.parametrize("trait, words", [
    ("    def step(self, action):\n        self.x = float('nan')\n        return super().step(action)\n", "its observation is not finite"),
    ("    def cost(self):\n        return None\n", "its cost is None, no number"),
    ("    def dynamics(self, observation):\n        return {'q': observation, 'f': [float('nan'), 0.0], 'G': [1.0, 1.0]}\n", "f of its dynamics is not finite"),
    ("    observation_space = gymnasium.spaces.Discrete(3)\n", "is no Box; wrap the environment"),
    ("    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.int32)\n", "has whole numbers"),
    ("    max_episode_steps = -3\n", "its time limit is -3 steps"),
    ("    def step(self, action):\n        return super().step(action)[:4] + ({},)\n", 'the info of step has no "cost"'),
    ("    action_space = gymnasium.spaces.Discrete(3)\n", "its action space, Discrete(3), has whole numbers"),
    ("    action_space = gymnasium.spaces.Box(-np.inf, 1, (1,), np.float32)\n", "is no Box with finite bounds"),
    ("    control_dt = None\n", "it states no control period"),
    ("    def dynamics(self, observation):\n        return {'q': observation, 'f': [0.0]}\n", "its dynamics have no G"),
    ("    def dynamics(self, observation):\n        return {'q': observation, 'f': [0.0], 'G': [1.0, 1.0]}\n", "f of its dynamics has 1 numbers, not 2"),
    ("    max_episode_steps = None\n", "--set task_options.horizon=N"),
])
def test_what_an_environment_lacks_is_said_before_anything_starts(cart, trait, words):
    cart(trait)
    with pytest.raises(datacom.CommandFailed) as refused:
        train("run", algorithm="sac")
    assert words in str(refused.value) and refused.value.code == 2
    assert not os.path.exists("run")


def test_an_unlimited_environment_takes_a_horizon(cart):
    cart("    max_episode_steps = None\n")
    rows = train("run", algorithm="sac", settings={"task_options.horizon": 11}).transitions()
    assert rows["step"].max() == 10


@pytest.mark.parametrize("victim", ["os.getppid()", "os.getpid()"], ids=["actor", "environment"])
def test_every_step_is_recorded_once_when_a_process_is_killed(cart, victim):
    cart(ENDS % victim)
    run = train("run", algorithm="sac", seeds=[1, 2], settings={"run.steps_per_epoch": 1000}, steps=1000)
    assert os.path.exists("ended")
    assert [run.transitions(member).end for member in (0, 1)] == [1000, 1000]
    checked = command("verify", "run")
    assert checked.returncode == 0, checked.stdout


def test_lockstep_continues_an_episode_after_a_kill_with_equal_records(cart):
    cart()
    whole = train("whole", algorithm="sac", lockstep=True)
    cart(ENDS % "os.getppid()")
    cut = train("cut", algorithm="sac", lockstep=True)
    assert os.path.exists("ended")
    for column in ("observation", "action", "reward", "cost", "episode", "step", "last"):
        np.testing.assert_array_equal(whole.transitions()[column], cut.transitions()[column])
    numbers = [run.progress.select_dtypes("number").drop(columns="wall_seconds", errors="ignore") for run in (whole, cut)]
    equal = [column for column in numbers[0] if not column.startswith("wall")]
    assert numbers[0][equal].equals(numbers[1][equal])


def test_lockstep_is_refused_where_the_seed_does_not_decide(cart):
    cart("""
    def reset(self, **more):
        super().reset(**more)
        self.x = np.random.default_rng().uniform(-0.5, 0.5)
        return self.observe(), {"cost": self.cost()}
""")
    with pytest.raises(datacom.CommandFailed, match="cart_env:make is not repeatable"):
        train("run", algorithm="sac", lockstep=True)


def test_several_actors_have_a_python_process_each(cart):
    cart("""
    def step(self, action):
        open(f"pid-{os.getpid()}", "w").close()
        return super().step(action)
""")
    train("run", algorithm="sac", seeds="0-3", actors=2, steps=1000)
    assert len([name for name in os.listdir() if name.startswith("pid-")]) >= 4  # two actors, the evaluator, and the one that stated the facts


def test_a_run_is_played_violated_and_exported_like_any_other(cart):
    cart(MODEL)
    run = train("run", settings={"hyper.init_delta": 50})  # so loose that it violates
    played = command("eval", "run", "--python", "cart_env:make", "--episodes", 2)
    assert played.returncode == 0 and "cart_env" in played.stdout, played.stdout
    violations = run.violations
    assert len(violations) > 0
    replayed = command("replay-violation", "run", int(violations["id"].iloc[0]), "--python", "cart_env:make")
    assert "equals the record bit for bit" in replayed.stdout, replayed.stdout
    policy = datacom.Policy.load("run")
    rows = run.transitions()
    decision = policy.decide(np.ascontiguousarray(rows["observation"][-5:]), noise=None)
    assert decision.action.shape == (5, 1) and np.isfinite(decision.constraint).all()
    film = command("render", "run", "--python", "cart_env:make", "--out", "film.mp4")
    assert film.returncode == 2 and "cart_env has no simulation to draw" in film.stdout


def test_the_example_keeps_the_promises_of_every_task():
    """Of tests/contract; a Python environment has no physics for datacom to scale, and no options of other tasks to refuse."""
    build, root = Path(os.environ["DATACOM_BUILD"]), Path(__file__).resolve().parents[3]
    tests = "*python_environment:-*Scaled*:*RandomisationOff*:*EveryOption*"
    done = subprocess.run([build / "tests/task_contract_test", "--gtest_filter=" + tests], cwd=root, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, env={
                              **os.environ, "DATACOM_EXAMPLE": "python:point_env:make", "DATACOM_PYTHON": sys.executable,
                              "DATACOM_PYTHON_TASK": "point_env:make", "PYTHONPATH": str(root / "deploy/examples/python"),
                              "GTEST_TOTAL_SHARDS": "1", "GTEST_SHARD_INDEX": "0"})
    assert done.returncode == 0 and "[  PASSED  ] 10 tests" in done.stdout, done.stdout


def test_too_many_environments_are_refused_before_anything_starts(cart):
    cart()
    with pytest.raises(datacom.CommandFailed, match="--envs 5000: an actor steps at most 4096 environments in Python") as refused:
        train("run", algorithm="sac", envs=5000)
    assert refused.value.code == 2


def test_a_file_in_the_working_directory_replaces_no_module_of_python(cart):
    cart()
    Path("json.py").write_text("raise SystemExit('the wrong json')")
    assert train("run", algorithm="sac").task == "cart_env"


def test_a_run_folder_runs_only_the_environment_that_the_command_names(cart):
    cart()
    train("run", algorithm="sac")
    experiment, planted = Path("run/experiment.textproto"), Path("run/planted.py")
    planted.write_text("from cart_env import make\nopen('PLANTED', 'w').close()\n")
    experiment.write_text(experiment.read_text().replace('"cart_env:make"', '"run.planted:make"'))
    verbs = [("eval", "run", "--episodes", 1), ("replay-violation", "run", 1), ("export", "run", "--out", "run.policy"),
             ("train", "--run-dir", "run", "--resume", "--steps", 3000), ("train", "run/experiment.textproto", "--run-dir", "other"),
             ("join", "run"), ("status", "run"), ("verify", "run"), ("report", "run", "--out", "report.html"), ("config", "run/experiment.textproto")]
    for words in verbs:
        done = command(*words)
        assert not Path("PLANTED").exists(), words
        assert words[0] not in ("eval", "replay-violation", "train") or (done.returncode == 2 and "run.planted:make" in done.stdout), done.stdout
    done = command("eval", "run", "--python", "cart_env:make", "--episodes", 1)
    assert done.returncode == 2 and "run.planted:make, but the command names cart_env:make" in done.stdout
    assert command("eval", "run", "--python", "run.planted:make", "--episodes", 1).returncode == 0
    assert Path("PLANTED").exists(), "the test must notice code that runs"


@pytest.mark.parametrize("named", [["left,right", "b"], ["a\nb", "b"]])
def test_names_of_costs_that_records_cannot_hold_are_refused_before_the_start(cart, named):
    cart(f"""
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        return observation, reward, terminated, truncated, {{**info, **{{"cost/" + name: info["cost"] for name in {named}}}}}
""")
    with pytest.raises(datacom.CommandFailed, match="letters, digits and _ only") as refused:
        train("run", algorithm="sac")
    assert refused.value.code == 2 and not Path("run").exists()


@pytest.mark.parametrize("missing, said", [("DATACOM_PYTHON", "set DATACOM_PYTHON to the interpreter that may run it"),
                                           ("DATACOM_PYTHON_TASK", "or set DATACOM_PYTHON_TASK")])
def test_a_program_runs_python_only_with_both_variables(cart, missing, said):
    cart()
    environment = {**os.environ, "DATACOM_PYTHON": sys.executable, "DATACOM_PYTHON_TASK": "cart_env:make"}
    del environment[missing]
    done = subprocess.run([str(_files.program("datacom-tools")), "load-task", "python:cart_env:make"], text=True, stdout=subprocess.PIPE,
                          env=environment, check=False)
    assert done.returncode == 2 and said in done.stdout
# SPDX-License-Identifier: Apache-2.0

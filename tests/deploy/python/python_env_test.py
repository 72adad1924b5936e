"""Trainings in Python environments: what datacom asks of them, and what holds when one of the processes dies."""

import os
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
    with pytest.raises(datacom.CommandFailed, match="cart_env has no f and G, which this algorithm needs: it states none; give it dynamics") as refused:
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
    with pytest.raises(ValueError, match=r"has shape \(2,\), not \[8\] or \[batch, 8\]; bind\(env\) adds what the filter reads"):
        policy.decide(rows["observation"][-1, :2])
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
    ("    observation_space = gymnasium.spaces.Discrete(3)\n", "is no Box; wrap the environment"),
    ("    action_space = gymnasium.spaces.Box(-1, 1, (1,), np.int32)\n", "has whole numbers"),
    ("    max_episode_steps = -3\n", "its time limit is -3 steps"),
    ("    def step(self, action):\n        return super().step(action)[:4] + ({},)\n", 'the info of step has no "cost"'),
    ("    action_space = gymnasium.spaces.Discrete(3)\n", "its action space, Discrete(3), has whole numbers"),
    ("    action_space = gymnasium.spaces.Box(-np.inf, 1, (1,), np.float32)\n", "is no Box with finite bounds"),
    ("    action_space = gymnasium.spaces.Box(-3.4e38, 3.4e38, (1,), np.float32)\n", "has a bound beyond 1,000,000"),
    ("    max_episode_steps = None\n", "--set task_options.horizon=N"),
    ("    max_episode_steps = None\n    horizon = 5\n", "states no time limit (it states none; its horizon of 5 may mean something else)"),
    ("    spec = gymnasium.envs.registration.EnvSpec('Cart-v0', max_episode_steps=30)\n",
     "it states several: max_episode_steps 40, spec.max_episode_steps 30"),
    ("    def max_episode_steps(self):\n        return 40\n", "its time limit is <bound method"),
    ("    control_dt = None\n", "--set task_options.control_dt=S"),
    ("    control_dt = None\n    metadata = {'render_fps': 30}\n", "states no control period (it states none; its render_fps of 30 is a film's)"),
    ("    control_dt, dt = None, 0.002\n    metadata = {'render_fps': 30}\n", "its dt is 0.002; its render_fps of 30 is a film's"),
    ("    control_dt = None\n    def dt(self):\n        return 0.1\n", "its dt is <bound method"),
    ("    def step(self, action):\n        *rest, info = super().step(action)\n        return (*rest, {'cost': 0.0, 'cost/a': 5.0, 'cost/b': 0.0})\n",
     'its cost, info["cost"], is 0, but cost/a is 5'),
    ("    def cost(self):\n        return np.array([0.1, 0.2])\n", "its cost is array([0.1, 0.2]), no number"),
])
def test_what_an_environment_lacks_is_said_before_anything_starts(cart, trait, words):
    cart(trait)
    with pytest.raises(datacom.CommandFailed) as refused:
        train("run", algorithm="sac")
    assert words in str(refused.value) and refused.value.code == 2
    assert not os.path.exists("run")


@pytest.mark.parametrize("algorithm", ["datacom", None])
@pytest.mark.parametrize("returned, words", [
    ("{'q': observation, 'f': [float('nan'), 0.0], 'G': [1.0, 1.0]}", "f of its dynamics is not finite"),
    ("{'q': observation, 'f': [0.0]}", "its dynamics have no G: give it dynamics(observation)"),
    ("{'q': observation, 'f': [0.0], 'G': [1.0, 1.0]}", "f of its dynamics has 1 numbers, not 2"),
    ("0.9 * observation", "its dynamics have no q: give it dynamics(observation)"),
], ids=["nan", "part", "short", "state"])
def test_a_model_that_is_none_is_refused_where_it_may_be_needed(cart, algorithm, returned, words):
    cart(f"    def dynamics(self, observation):\n        return {returned}\n")
    with pytest.raises(datacom.CommandFailed) as refused:
        train("run", **({"algorithm": algorithm} if algorithm else {}))
    assert words in str(refused.value) and refused.value.code == 2


OTHER_DYNAMICS = ["    def dynamics(self, state, action):\n        return state + action\n", "    dynamics = 'kinematic'\n",
                  "    def dynamics(self, *state):\n        return state\n"]


@pytest.mark.parametrize("trait", [*OTHER_DYNAMICS, "    def dynamics(self, state):\n        raise AssertionError('called')\n"],
                         ids=["two arguments", "text", "any number", "one state"])
def test_what_an_algorithm_without_a_model_does_not_read_is_not_called(cart, trait):
    cart(trait)
    run = train("run", algorithm="sac", steps=500)
    assert run.transitions()["observation"].shape[1] == 2
    policy = datacom.Policy.load("run").bind(runpy.run_path("cart_env.py")["make"]())
    assert policy.decide(np.zeros(2)).action.shape == (1,)


@pytest.mark.parametrize("trait", OTHER_DYNAMICS, ids=["two arguments", "text", "any number"])
def test_dynamics_of_another_form_are_no_model(cart, trait):
    cart(trait)
    with pytest.raises(datacom.CommandFailed, match="does not take exactly one observation; give it dynamics") as refused:
        train("run", algorithm="datacom")
    assert refused.value.code == 2
    assert train("run", steps=500).experiment["algorithm"] == "lag_sac"


def test_what_decides_is_printed_with_its_source_and_a_setting_replaces_it(cart):
    cart("    control_dt = None\n    max_episode_steps = None\n    dt = 0.1\n    metadata = {'render_fps': 30}\n")
    done = command("train", "--python", "cart_env:make", "--algorithm", "sac", "--steps", 500, "--run-dir", "run", "--set", "replay.min_size=100",
                   "--set", "task_options.horizon=11", "--set", "task_options.control_dt=0.25")
    assert done.returncode == 0, done.stdout
    for line in ("actions: 1, (1,) float32, -1 to 1, from action_space", "time limit: it states none; task_options.horizon sets 11 steps",
                 'cost: info["cost"]', "task_options.control_dt sets 0.25 s", "control-affine model: not asked for"):
        assert line in done.stdout, done.stdout
    assert datacom.Policy.load("run").control_period == 0.25 and datacom.Run("run").transitions()["step"].max() == 10


@pytest.mark.parametrize("trait, period, limit", [
    ("    control_dt = None\n    dt = 0.05\n", "0.05 s, from dt", "40 steps, from max_episode_steps"),
    ("    control_dt = None\n    dt = np.float32(0.05)\n    metadata = {'render_fps': 20}\n", "0.05 s, from dt", "40 steps, from max_episode_steps"),
    ("    max_episode_steps = None\n    spec = gymnasium.envs.registration.EnvSpec('Cart-v0', max_episode_steps=30)\n", "0.1 s, from control_dt",
     "30 steps, from spec.max_episode_steps"),
], ids=["dt", "dt and film", "spec"])
def test_each_source_of_a_fact_is_named(cart, trait, period, limit):
    cart(trait)
    shown = command("config", "python:cart_env:make", "--algorithm", "sac")
    assert shown.returncode == 0 and f"control period: {period}" in shown.stdout and f"time limit: {limit}" in shown.stdout, shown.stdout


def test_a_cost_below_a_named_one_ends_the_training_by_name(cart):
    cart("""
    def step(self, action):
        *rest, info = super().step(action)
        Traits.total = getattr(Traits, "total", 0) + 1
        return (*rest, {**info, "cost/a": 7.0 if Traits.total > 200 else info["cost"]})
""")
    with pytest.raises(datacom.CommandFailed, match="but cost/a is 7; make it the largest named cost"):
        train("run", algorithm="sac")


@pytest.mark.parametrize("form", ["np.array(%s)", "np.array([%s])", "np.array([[%s]], np.float32)", "np.float32(%s)"])
def test_a_cost_and_a_reward_may_be_an_array_of_one_number(cart, form):
    cart("""
    def step(self, action):
        observation, reward, *ends, info = super().step(action)
        return (observation, FORM, *ends, {"cost": COST})
""".replace("FORM", form % "reward").replace("COST", form % 'info["cost"]'))
    rows = train("run", algorithm="sac", steps=500).transitions()
    np.testing.assert_allclose(rows["cost"], abs(rows["next_observation"][:, 0]) - 1, atol=1e-6)


def test_step_gets_the_shape_of_the_action_space_everywhere(cart):
    cart("""
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2, 2), np.float32)

    def step(self, action):
        assert isinstance(action, np.ndarray) and action.dtype == np.float32
        open("shape-" + "-".join(map(str, action.shape)), "w").close()
        return super().step(action[0, :1])
""")
    rows = train("run", algorithm="sac", steps=500).transitions()
    assert command("eval", "run", "--python", "cart_env:make", "--episodes", 1).returncode == 0
    assert [name for name in os.listdir() if name.startswith("shape-")] == ["shape-2-2"]
    policy = datacom.Policy.load("run")
    bound = policy.bind(runpy.run_path("cart_env.py")["make"]())
    np.testing.assert_array_equal(bound.decide(rows["observation"][0]).action.ravel(),
                                  policy.decide(rows["observation"][0]).action.astype(np.float32))


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
    assert command("eval", "run", "--python", "run.planted:make", "--episodes", 1, "--accept-environment").returncode == 0
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

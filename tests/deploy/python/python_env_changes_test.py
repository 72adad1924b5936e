"""What tells a Python environment from the one of a run."""

import sys
from pathlib import Path

import datacom
import numpy as np
from python_env_test import cart, command, train  # noqa: F401  cart is a fixture

CHANGED = """
    control_dt, max_episode_steps = 0.2, 50
    observation_names = ["place", "speed"]

    def cost(self):
        return 1 - abs(self.x)
"""
DIFFERENCES = ["is not the one of the run: time limit 40 -> 50, control period 0.1 -> 0.2, names of observations none -> place, speed",
               "the cost after the same seed and actions ", "file cart_env.py changed", "--accept-environment"]


def test_a_changed_environment_is_refused_by_every_verb_that_steps_it_and_can_be_accepted(cart):
    cart()
    train("run", algorithm="sac", steps=1000, settings={"replay.capacity": 1000})
    before = Path("run/experiment.textproto").read_text()
    verbs = [("train", "--run-dir", "run", "--resume", "--steps", 1500), ("eval", "run", "--episodes", 1), ("export", "run", "--out", "policy"),
             ("export", "run", "--out", "policy.onnx", "--format", "onnx"), ("render", "run", "--out", "film.mp4")]
    assert command(*verbs[1], "--python", "cart_env:make").returncode == 0
    cart(CHANGED)
    for words in verbs:
        done = command(*words, "--python", "cart_env:make")
        assert done.returncode == 2 and all(words in done.stdout for words in DIFFERENCES), done.stdout
    for words in verbs[:4]:
        done = command(*words, "--python", "cart_env:make", "--accept-environment")
        assert done.returncode == 0 and DIFFERENCES[0] in done.stdout, done.stdout
    assert datacom.Policy.load("run").control_period == 0.1
    assert Path("run/experiment.textproto").read_text() == before.replace("env_steps: 1000", "env_steps: 1500")


def test_an_environment_of_other_sizes_cannot_be_accepted(cart):
    cart()
    train("run", algorithm="sac", steps=500)
    cart("    action_space = gymnasium.spaces.Box(-1.0, 1.0, (2,), np.float32)\n")
    done = command("eval", "run", "--python", "cart_env:make", "--accept-environment")
    assert done.returncode == 2 and "numbers of an action 1 -> 2" in done.stdout and "begin a new run" in done.stdout, done.stdout


def test_every_file_of_the_environments_code_and_its_interpreter_identify_it(cart):
    Path("parts").mkdir()
    Path("parts/__init__.py").write_text("")
    Path("parts/reward.py").write_text("FAR = 0.9\n")
    cart("""
    def step(self, action):
        import parts.reward
        return super().step(action)
""")
    train("run", algorithm="sac", steps=500)
    build = Path("run/build.txt").read_text()
    assert f"numpy {np.__version__}" in build and "parts/reward.py" in build and "cart_env.py " in build
    assert command("eval", "run", "--python", "cart_env:make", "--episodes", 1).returncode == 0
    Path("parts/reward.py").write_text("FAR = 0.90\n")
    experiment = Path("run/experiment.textproto")
    text = experiment.read_text().replace(f'interpreter: "{sys.executable}"', 'interpreter: "/opt/python"')
    experiment.write_text(text.replace(f'"numpy {np.__version__}"', '"numpy 1.0"'))
    done = command("eval", "run", "--python", "cart_env:make", "--episodes", 1)
    expected = f"file parts/reward.py changed, interpreter /opt/python -> {sys.executable}, numpy 1.0 -> {np.__version__}; to step"
    assert done.returncode == 2 and "run: " + expected in done.stdout, done.stdout


def test_numbers_that_no_seed_decides_do_not_identify_an_environment(cart):
    cart("""
    def reset(self, **more):
        super().reset(**more)
        self.x = np.random.default_rng().uniform(-0.5, 0.5)
        return self.observe(), {"cost": self.cost()}
""")
    run = train("run", algorithm="sac", steps=500)
    assert "repeatable: false" in Path("run/experiment.textproto").read_text() and run.transitions().end == 500
    assert command("eval", "run", "--python", "cart_env:make", "--episodes", 1).returncode == 0


def test_the_order_of_a_set_of_words_is_the_same_in_every_process(cart, monkeypatch):
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    cart("""
    def observe(self):
        words = list({"wall", "ball", "door", "key", "lamp", "cat", "tree", "road"})
        return np.array([self.x, 10 * words.index("wall") + words.index("ball")], np.float32)
""")
    assert train("run", algorithm="sac", steps=500).transitions().end == 500
# SPDX-License-Identifier: Apache-2.0

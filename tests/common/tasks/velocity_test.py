"""Compares the example `velocity` with Gymnasium's HalfCheetah-v5 on the same MuJoCo over 1,000 steps with random actions.

    velocity_test.py BIN TESTS MUJOCO_VERSION

Gymnasium and MuJoCo's Python package of that version come from PyPI into a virtual environment of the build folder. A version may
have packages for certain Pythons only, so each python3.N of the path and of pyenv is tried; DATACOM_GYMNASIUM_PYTHON names another
one. Exit code 77, with the reason: none fits, and nothing was compared. Then the tests over all examples run with this one.
"""
import csv
import glob
import os
import random
import shutil
import subprocess
import sys
import tempfile

BIN, TESTS, MUJOCO = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3]
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "testing"))
from skipped import SKIPPED  # noqa: E402  the path comes first

TASK = os.path.join(SOURCE, "deploy", "examples", "velocity", "velocity.textproto")
PACKAGES = [f"mujoco=={MUJOCO}", "gymnasium==1.2.0", "numpy==2.2.6", "packaging", "imageio"]
ACTIONS, POSITIONS, SEEN = 6, 9, 17
STEPS, TOLERANCE, SPEED_LIMIT = 1000, 1e-9, 3.2096


def call(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)[:200]}: {result.stderr[-600:]}")
    return result.stdout


def environment():
    """The Python of a virtual environment with the packages; None, after a message, when there is none."""
    folder = os.path.join(os.getcwd(), "python", "velocity")
    done, python = os.path.join(folder, "installed.txt"), os.path.join(folder, "bin", "python")
    wanted = "\n".join(PACKAGES)
    if os.path.exists(done) and open(done, encoding="utf-8").read() == wanted:
        return python
    named = [os.environ.get("DATACOM_GYMNASIUM_PYTHON")]
    for minor in range(10, 14):  # the first with packages of an old MuJoCo comes first
        named += [f"python3.{minor}", *glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3"))]
    for candidate in filter(shutil.which, filter(None, named)):
        try:
            call(candidate, "-m", "venv", "--clear", folder)
            call(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--only-binary", ":all:", *PACKAGES)
        except RuntimeError as error:
            print(f"{candidate}: {error}")
            continue
        with open(done, "w", encoding="utf-8") as file:
            file.write(wanted)
        return python
    return None


def ours(task, actions):
    """Rows of `datacom rollout`: observation, q, q_dot, ..., reward, cost. Row 0 is the start."""
    text = call(os.path.join(BIN, "datacom"), "rollout", task, "--actions", actions, "--seed", "3", "--csv")
    return [{name: float(value or "nan") for name, value in row.items()} for row in csv.DictReader(text.splitlines())]


def worst_difference(rows, expected):
    worst = 0
    for row, (observation, reward, speed) in zip(rows[1:], expected, strict=True):
        worst = max([worst, abs(row["reward"] - reward), abs(row["cost"] - (speed / SPEED_LIMIT - 1)),
                     *(abs(row[f"obs{i}"] - value) for i, value in enumerate(observation))])
    return worst


def main():
    python = environment()
    if python is None:
        print(f"SKIPPED: no Python of this machine can install {', '.join(PACKAGES)}; DATACOM_GYMNASIUM_PYTHON may name one")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="datacom-velocity-") as folder:
        os.environ["PATH"] = os.path.dirname(python) + os.pathsep + os.environ["PATH"]  # the task's model is in this Python's packages
        actions, peer = os.path.join(folder, "actions.csv"), os.path.join(folder, "peer.csv")
        generator = random.Random(7)
        with open(actions, "w", encoding="utf-8") as file:
            file.write(",".join(f"action{i}" for i in range(ACTIONS)) + "\n")
            for _ in range(STEPS):
                file.write(",".join(str(generator.randint(-1024, 1024) / 1024) for _ in range(ACTIONS)) + "\n")  # exact in float32
        rows = ours(TASK, actions)
        start = [repr(rows[0][f"obs{SEEN + i}"]) for i in range(2 * POSITIONS)]
        call(python, os.path.join(SOURCE, "tests", "common", "tasks", "half_cheetah.py"), actions, peer, *start)
        with open(peer, encoding="utf-8") as file:
            lines = [[float(value) for value in line.split(",")] for line in file]
        worst = worst_difference(rows, [(line[:SEEN], line[SEEN], line[SEEN + 1]) for line in lines])
        print(f"MuJoCo {MUJOCO}, {len(lines)} steps: the largest difference of observations, rewards and costs is {worst:.3g}")
        for test, tests in (("tasks_test", "*AllExamples*"), ("task_contract_test", "*/velocity")):
            told = call(os.path.join(TESTS, test), f"--gtest_filter={tests}", cwd=SOURCE, env={**os.environ, "DATACOM_EXAMPLE": TASK})
            if "PASSED  ] 0 tests" in told:
                raise RuntimeError(f"{test} has no test {tests}")
        return 0 if len(lines) == STEPS and worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
# SPDX-License-Identifier: Apache-2.0

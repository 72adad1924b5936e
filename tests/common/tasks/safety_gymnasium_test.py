"""Compares the velocity tasks of deploy/examples/velocity with what Safety-Gymnasium itself did over 1,000 random actions.

    safety_gymnasium_test.py BIN MUJOCO_VERSION

tests/golden/tasks/safety_gymnasium.csv.xz holds observations, rewards, costs and terminations of the package with its own MuJoCo,
2.3.3, and safety_gymnasium_4.csv.xz those of its Ant and Humanoid with MuJoCo 4.0.0 (safety_gymnasium_record.py).

The models come from Gymnasium, which pip unpacks into the build folder. Exit code 77, with the reason: pip cannot fetch it, and
nothing was compared. DATACOM_SAFETY_GYMNASIUM_PYTHON may name a Python that has Safety-Gymnasium; then the first recording is made
again and must be the same to the same tolerance.
"""
import collections
import csv
import lzma
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BIN, MUJOCO = os.path.abspath(sys.argv[1]), sys.argv[2]
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
RECORDINGS = [os.path.join(SOURCE, "tests", "golden", "tasks", f"safety_gymnasium{name}.csv.xz") for name in ("", "_4")]
EXAMPLE = os.path.join(SOURCE, "deploy", "examples", "velocity")
sys.path.insert(0, os.path.join(SOURCE, "tests", "testing"))
from skipped import SKIPPED  # noqa: E402  the path comes first

GYMNASIUM = "gymnasium==0.28.1"  # its Hopper and Walker2d have places in the world, which the script converts
STEPS, TOLERANCE = 1000, 1e-6
ACTIONS = {"ant": 8, "half_cheetah": 6, "hopper": 3, "humanoid": 17, "swimmer": 2, "walker2d": 6}
# The rest of a `start` line are velocities.
POSITIONS = {"ant": 15, "half_cheetah": 9, "hopper": 6, "humanoid": 24, "swimmer": 5, "walker2d": 9}
# m/s, of the package's v1
LIMITS = {"ant": 2.6222, "half_cheetah": 3.2096, "hopper": 0.7402, "humanoid": 1.4149, "swimmer": 0.2282, "walker2d": 2.3415}
Segment = collections.namedtuple("Segment", "start steps")  # numbers of the lines


def call(*command, **options):
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(command)[:200]}: {result.stderr[-600:]}")
    return result.stdout


def gymnasium():
    """A folder with Gymnasium; None, after a message, when pip cannot fetch it."""
    folder = os.path.join(os.getcwd(), "python", "safety_gymnasium")
    if not os.path.exists(os.path.join(folder, "gymnasium", "envs", "mujoco", "assets", "hopper.xml")):
        try:
            call(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--no-deps",
                 "--no-compile", "--target", folder, GYMNASIUM)
        except RuntimeError as error:
            print(error)
            return None
    return folder


def read(path):
    """The segments of each task of a recording."""
    tasks = collections.defaultdict(list)
    with lzma.open(path, "rt", encoding="ascii") as file:
        for name, kind, *numbers in csv.reader(file):
            numbers = [float(number) for number in numbers]
            if kind == "start":
                tasks[name].append(Segment(numbers, []))
            else:
                tasks[name][-1].steps.append(numbers)
    return tasks


def begin_at(folder, text, positions, velocities):
    """Writes segment.textproto: the task with this start, a keyframe of the model, instead of a random one."""
    with open(os.path.join(folder, "model.xml"), encoding="utf-8") as file:
        model = file.read()
    key = f'<keyframe><key name="segment" qpos="{" ".join(map(repr, positions))}" qvel="{" ".join(map(repr, velocities))}"/></keyframe>'
    fixed, starts = re.subn(r"\nstart \{(.*\}|\n(  .*\n)+\})\n", '\nstart { keyframe: "segment" }\n', text)
    assert starts == 1, text
    for name, content in (("segment.xml", model.replace("</mujoco>", key + "</mujoco>")),
                          ("segment.textproto", fixed.replace('"model.xml"', '"segment.xml"'))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(content)


def play(folder, text, name, segment):
    """The rows of `datacom rollout` after the start."""
    begin_at(folder, text, segment.start[:POSITIONS[name]], segment.start[POSITIONS[name]:])
    actions = os.path.join(folder, "actions.csv")
    with open(actions, "w", encoding="ascii") as file:
        file.write(",".join(f"action{i}" for i in range(ACTIONS[name])) + "\n")
        file.writelines(",".join(map(repr, step[:ACTIONS[name]])) + "\n" for step in segment.steps)
    printed = call(os.path.join(BIN, "datacom"), "rollout", os.path.join(folder, "segment.textproto"), "--actions", actions, "--csv")
    return list(csv.DictReader(printed.splitlines()))[1:]


def compare(folder, name, segments, text, cost):
    """The worst differences of observations and rewards, and how many steps were compared. `cost` makes 0 or 1 of ours."""
    worst, steps = [0.0, 0.0], 0
    for segment in segments:
        rows = play(folder, text, name, segment)
        if len(rows) != len(segment.steps):
            raise AssertionError(f"{name}: {len(rows)} steps, not {len(segment.steps)}: the episode ends elsewhere")
        for row, step in zip(rows, segment.steps, strict=True):
            *observation, reward, violated, terminated = step[ACTIONS[name]:]
            if cost(float(row["cost"])) != violated or float(row["absorbing"]) != terminated:
                raise AssertionError(f"{name}: cost {row['cost']}, absorbing {row['absorbing']}; the package has {violated}, {terminated}")
            worst[0] = max([worst[0], *(abs(float(row[f"obs{i}"]) - value) for i, value in enumerate(observation))])
            worst[1] = max(worst[1], abs(float(row["reward"]) - reward))
            steps += 1
    return *worst, steps


def recorded_again(python, tasks, folder):
    path = os.path.join(folder, "again.csv.xz")
    call(python, os.path.join(HERE, "safety_gymnasium_record.py"), path)
    again = read(path)
    pairs = [(one, other) for name in again for a, b in zip(tasks[name], again[name], strict=True)
             for one, other in zip([*a.start, *sum(a.steps, [])], [*b.start, *sum(b.steps, [])], strict=True)]
    worst = max(abs(one - other) for one, other in pairs)
    print(f"recorded again with {python}: the largest difference of {len(pairs)} numbers is {worst:.3g}")
    return worst <= TOLERANCE


def main():
    package = gymnasium()
    if package is None:
        print(f"SKIPPED: pip cannot fetch {GYMNASIUM}, which has the models")
        return SKIPPED
    older, newer = (read(path) for path in RECORDINGS)
    tasks, failed = {**older, **newer}, False
    with tempfile.TemporaryDirectory(prefix="datacom-safety-gymnasium-") as folder:
        call(sys.executable, os.path.join(EXAMPLE, "write_tasks.py"), folder, env={**os.environ, "PYTHONPATH": package})
        for name, limit in LIMITS.items():
            if name in newer and not MUJOCO.startswith("4."):
                print(f"{name}: not compared, because it was recorded with MuJoCo 4.0.0 and this is {MUJOCO}")
                continue
            own = os.path.join(folder, name)
            text, signed = ((pathlib.Path(own) / file).read_text(encoding="utf-8") for file in ("task.textproto", "signed.textproto"))
            observation, reward, steps = compare(own, name, tasks[name], text, float)
            also = compare(own, name, tasks[name][:3], signed, lambda cost: float(cost > 0))
            print(f"{name}, limit {limit} m/s: {steps} steps from {len(tasks[name])} starts, largest difference of observations "
                  f"{observation:.3g}, of rewards {reward:.3g}")
            failed |= f'name: "limit" value: {limit} ' not in text or steps != STEPS
            failed |= max(observation, also[0], reward, also[1]) > TOLERANCE
        python = os.environ.get("DATACOM_SAFETY_GYMNASIUM_PYTHON")
        failed |= python is not None and not recorded_again(python, tasks, folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
# SPDX-License-Identifier: Apache-2.0

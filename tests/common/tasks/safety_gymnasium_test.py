"""Compares the velocity tasks of deploy/examples/velocity with what Safety-Gymnasium itself did over 1,000 random actions.

    safety_gymnasium_test.py BIN

tests/golden/tasks/safety_gymnasium.csv.xz holds observations, rewards, costs and terminations of the package with its own MuJoCo,
2.3.3 (safety_gymnasium_record.py). The models come from Gymnasium, which pip unpacks into the build folder. Exit code 77, with
the reason: pip cannot fetch it, and nothing was compared. DATACOM_SAFETY_GYMNASIUM_PYTHON may name a Python that has
Safety-Gymnasium; then the recording is made again and must be the same to the same tolerance.
"""
import collections
import csv
import lzma
import os
import subprocess
import sys
import tempfile

BIN = os.path.abspath(sys.argv[1])
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
RECORDING = os.path.join(SOURCE, "tests", "golden", "tasks", "safety_gymnasium.csv.xz")
EXAMPLE = os.path.join(SOURCE, "deploy", "examples", "velocity")
sys.path.insert(0, os.path.join(SOURCE, "tests", "testing"))
from skipped import SKIPPED  # noqa: E402  the path comes first

GYMNASIUM = "gymnasium==0.28.1"  # its Hopper and Walker2d have places in the world, which the script converts
STEPS, TOLERANCE = 1000, 1e-6
ACTIONS = {"half_cheetah": 6, "hopper": 3, "swimmer": 2, "walker2d": 6}
JOINTS = {  # positions and velocities of a `start` line
    "half_cheetah": ["rootx", "rootz", "rooty", "bthigh", "bshin", "bfoot", "fthigh", "fshin", "ffoot"],
    "hopper": ["rootx", "rootz", "rooty", "thigh_joint", "leg_joint", "foot_joint"],
    "swimmer": ["slider1", "slider2", "free_body_rot", "motor1_rot", "motor2_rot"],
    "walker2d": ["rootx", "rootz", "rooty", "thigh_joint", "leg_joint", "foot_joint", "thigh_left_joint", "leg_left_joint",
                 "foot_left_joint"],
}
LIMITS = {"half_cheetah": 3.2096, "hopper": 0.7402, "swimmer": 0.2282, "walker2d": 2.3415}  # m/s, of the package's v1
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
            call(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--no-deps", "--no-compile",
                 "--target", folder, GYMNASIUM)
        except RuntimeError as error:
            print(error)
            return None
    return folder


def read(path):
    """The segments of each task."""
    tasks = collections.defaultdict(list)
    with lzma.open(path, "rt", encoding="ascii") as file:
        for name, kind, *numbers in csv.reader(file):
            numbers = [float(number) for number in numbers]
            if kind == "start":
                tasks[name].append(Segment(numbers, []))
            else:
                tasks[name][-1].steps.append(numbers)
    return tasks


def begin_at(text, names, state):
    """The task file with this start instead of a random one."""
    head, _, rest = text.partition("\nstart {")
    rest = rest[rest.index("\n\n"):]
    joints = "".join(f'  joint {{ joint: "{name}" position {{ low: {position!r} high: {position!r} }} '
                     f"velocity {{ low: {speed!r} high: {speed!r} }} }}\n"
                     for name, position, speed in zip(names, state[:len(names)], state[len(names):], strict=True))
    return f"{head}\nstart {{\n{joints}}}{rest}"


def play(folder, text, name, segment):
    """The rows of `datacom rollout` after the start."""
    task, actions = os.path.join(folder, "segment.textproto"), os.path.join(folder, "actions.csv")
    with open(task, "w", encoding="utf-8") as file:
        file.write(begin_at(text, JOINTS[name], segment.start))
    with open(actions, "w", encoding="ascii") as file:
        file.write(",".join(f"action{i}" for i in range(ACTIONS[name])) + "\n")
        file.writelines(",".join(map(repr, step[:ACTIONS[name]])) + "\n" for step in segment.steps)
    printed = call(os.path.join(BIN, "datacom"), "rollout", task, "--actions", actions, "--csv")
    return list(csv.DictReader(printed.splitlines()))[1:]


def compare(folder, name, segments, cost):
    """The worst difference, and how many steps were compared. `cost` makes the package's 0 or 1 of ours."""
    worst, steps = 0.0, 0
    with open(os.path.join(folder, ("task" if cost is float else "signed") + ".textproto"), encoding="utf-8") as file:
        text = file.read()
    for segment in segments:
        rows = play(folder, text, name, segment)
        if len(rows) != len(segment.steps):
            raise AssertionError(f"{name}: {len(rows)} steps, not {len(segment.steps)}: the episode ends elsewhere")
        for row, step in zip(rows, segment.steps, strict=True):
            *observation, reward, violated, terminated = step[ACTIONS[name]:]
            if cost(float(row["cost"])) != violated or float(row["absorbing"]) != terminated:
                raise AssertionError(f"{name}: cost {row['cost']}, absorbing {row['absorbing']}; the package has {violated}, {terminated}")
            worst = max([worst, abs(float(row["reward"]) - reward),
                         *(abs(float(row[f"obs{i}"]) - value) for i, value in enumerate(observation))])
            steps += 1
    return worst, steps


def recorded_again(python, tasks, folder):
    path = os.path.join(folder, "again.csv.xz")
    call(python, os.path.join(HERE, "safety_gymnasium_record.py"), path)
    again = read(path)
    pairs = [(one, other) for name in tasks for a, b in zip(tasks[name], again[name], strict=True)
             for one, other in zip([*a.start, *sum(a.steps, [])], [*b.start, *sum(b.steps, [])], strict=True)]
    worst = max(abs(one - other) for one, other in pairs)
    print(f"recorded again with {python}: the largest difference of {len(pairs)} numbers is {worst:.3g}")
    return worst <= TOLERANCE


def main():
    package = gymnasium()
    if package is None:
        print(f"SKIPPED: pip cannot fetch {GYMNASIUM}, which has the models")
        return SKIPPED
    tasks, failed = read(RECORDING), False
    with tempfile.TemporaryDirectory(prefix="datacom-safety-gymnasium-") as folder:
        call(sys.executable, os.path.join(EXAMPLE, "write_tasks.py"), folder, env={**os.environ, "PYTHONPATH": package})
        for name, limit in LIMITS.items():
            own = os.path.join(folder, name)
            worst, steps = compare(own, name, tasks[name], float)
            signed, _ = compare(own, name, tasks[name][:3], lambda cost: float(cost > 0))
            print(f"{name}, limit {limit} m/s: {steps} steps from {len(tasks[name])} starts, largest difference {max(worst, signed):.3g}")
            with open(os.path.join(own, "task.textproto"), encoding="utf-8") as file:
                failed |= f'name: "limit" value: {limit} ' not in file.read()
            failed |= steps != STEPS or max(worst, signed) > TOLERANCE
        python = os.environ.get("DATACOM_SAFETY_GYMNASIUM_PYTHON")
        failed |= python is not None and not recorded_again(python, tasks, folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
# SPDX-License-Identifier: Apache-2.0

"""Changes the files of interrupted runs, resumes them, and checks that each resume is refused by name or changes nothing.

usage: changed_run.py BIN [--changes N] [--seed S] [--jobs J] [--keep]

Change i takes every choice from the seed S + i. A resume is either refused (exit code 2, a file of the run is named, and all files that it
would continue are as before), or it ends, and then the records and the replay's rows equal those of a run that nothing disturbed. The files
are read by formats.py, which shares no code with the programs.
"""
import argparse
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import typing
import unittest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(TESTS, "e2e"), os.path.join(TESTS, "testing")]
import formats  # noqa: E402  the path comes first
import run_checks  # noqa: E402
from package_python import package_python  # noqa: E402
from running import BIN, PATIENCE, SOURCE, Training, wait_for_end  # noqa: E402

MEMBERS, STEPS = 2, 1600  # off-policy 700 updates, interrupted at 100 and 200, long before the end; on-policy 8 and 2, 4
SETTINGS = ["network.actor_hidden=[16,16]", "network.critic_hidden=[16,16]", "network.constraint_hidden=[16,16]", "replay.min_size=200",
            "run.steps_per_epoch=200", "run.eval_episodes=1", "run.checkpoint_updates=50", "task_options.horizon=60",
            "hyper.delta_warmup=300", "schedule.updates_per_step=0.5"]
ON_POLICY = ["network.actor_hidden=[16,16]", "network.critic_hidden=[16,16]", "run.steps_per_epoch=200", "run.eval_episodes=1",
             "run.checkpoint_updates=1", "task_options.horizon=50", "learner.passes=2"]


class Kind(typing.NamedTuple):
    """What is trained, always in lockstep, so that a disturbed run can be compared with an undisturbed one."""

    name: str
    experiment: str = "cartpole/datacom"
    arguments: tuple = ()
    settings: tuple = tuple(SETTINGS)
    reader: formats.RowReader = formats.RowReader(observation=5, actions=1)
    interrupts: tuple = (100, 200)  # updates


POINT = os.path.join(SOURCE, "deploy", "examples", "python")
POINT_ROWS = formats.RowReader(observation=20, actions=2)  # observations of foreign tasks end with their dynamics
KINDS = (Kind("lockstep"), Kind("wrapped", settings=(*SETTINGS, "replay.capacity=200", "replay.failure_capacity=60")),
         Kind("from_scratch", "cartpole/from_scratch"), Kind("ppo_lag", "cartpole/ppo_lag", settings=tuple(ON_POLICY),
              reader=formats.RowReader(observation=5, actions=1, on_policy=True), interrupts=(2, 4)),
         Kind("python", "--python=point_env:make", ("--algorithm", "datacom"), reader=POINT_ROWS),
         Kind("text", os.path.join(SOURCE, "deploy", "examples", "cartpole", "task.textproto"), ("--algorithm", "datacom"),
              reader=formats.RowReader(observation=13, actions=1)))

# Below these a refused resume may write: addresses, logs and locks.
FREE = ("cluster", "logs", "targets.json", "checkpoints/lock", "replay/lock")
NAMES = ("member_", "credit", "sessions", "progress.csv", "episodes.csv", "violations.csv", "tensorboard/", "checkpoint", "incarnation",
         "epoch_", "belongs to", "experiment", "--resume may change only")  # a refusal has one of them
FOLDERS = ["replay", "ledger", "checkpoints", "tensorboard", "policies"]


class Run(Training):
    settings = ()

    def __init__(self, folder, kind):
        test = unittest.TestCase()
        test.folder, self.kind, self.experiment = folder, kind, kind.experiment
        super().__init__(test, "run", *kind.arguments, "--seeds", "0-1", "--steps", str(STEPS), "--lockstep", overrides=kind.settings)
        python = os.path.join(os.path.dirname(BIN), "python", "package", "bin")
        self.environment = {**os.environ, "PYTHONPATH": POINT, "PATH": python + os.pathsep + os.environ["PATH"]}

    def interrupt(self, update):
        """Kills the command and its roles after the checkpoint of this update."""
        self.wait_for_checkpoint(update)
        roles = self.processes()
        for process in roles:
            os.kill(process, signal.SIGKILL)
        self.process.wait()
        for process in roles[1:]:
            wait_for_end(process)

    def content(self):
        """The state of the run as an independent reader finds it."""
        return run_checks.lockstep_records(self.folder, MEMBERS), formats.check_run(self.folder, MEMBERS, self.kind.reader)


def copy(source, target):
    shutil.copytree(source, target, symlinks=True)


def files_of(folder):
    found = {}
    for base, _, names in os.walk(folder):
        for name in names:
            path = os.path.relpath(os.path.join(base, name), folder)
            if not path.startswith(FREE):
                with open(os.path.join(folder, path), "rb") as file:
                    found[path] = file.read()
    return found


class Base:
    """An interrupted run, an older copy of it, a fork of that copy, another run that nothing disturbed, and what that one has."""

    def __init__(self, folder, kind):
        self.folder, self.kind = folder, kind
        calm = Run(self.path("calm"), kind)
        calm.start().finish()
        self.expected = calm.content()
        run = Run(self.path("ours"), kind)
        run.start().interrupt(kind.interrupts[0])
        copy(run.folder, os.path.join(self.path("older"), "run"))
        run.start("--resume").interrupt(kind.interrupts[1])
        copy(os.path.join(self.path("older"), "run"), os.path.join(self.path("fork"), "run"))
        Run(self.path("fork"), kind).start("--resume").interrupt(kind.interrupts[1])

    def path(self, name):
        path = os.path.join(self.folder, name)
        os.makedirs(path, exist_ok=True)
        return path

    def run(self, name):
        return os.path.join(self.folder, name, "run")


class Change:
    """One change of a copy of an interrupted run."""

    def __init__(self, base, seed):
        self.base, self.random = base, random.Random(seed)
        self.test_folder = tempfile.mkdtemp(prefix="change-", dir=base.folder)
        self.run = Run(self.test_folder, base.kind)
        copy(base.run("ours"), self.run.folder)
        self.name = f"change {seed}, {base.kind.name}: "
        self.make()

    def part(self):
        """Any file of the run, so that no kind of file can be forgotten."""
        return self.random.choice(sorted(files_of(self.run.folder)))

    def exchange_members(self):
        """Exchanges a file of a member with the other member's."""
        mine = self.random.choice(sorted(path for path in files_of(self.run.folder) if "member_0" in path))
        one, other = (os.path.join(self.run.folder, path) for path in (mine, mine.replace("member_0", "member_1")))
        os.rename(one, one + ".exchanged")
        os.rename(other, one)
        os.rename(one + ".exchanged", other)
        self.name += f"{mine} and the other member's exchanged"

    def exchange(self, name):
        """Puts the part or the folder of the older copy or of the fork."""
        other = self.random.choice(["older", "fork", "calm"])
        source, target = os.path.join(self.base.run(other), name), os.path.join(self.run.folder, name)
        if os.path.isdir(source):
            shutil.rmtree(target)
            copy(source, target)
        elif os.path.exists(source):
            shutil.copyfile(source, target)
        else:
            os.remove(target)
        self.name += f"{name} of the copy {other}"

    def make(self):
        kind = self.random.choice(["exchange"] * 4 + ["exchange folder", "exchange members", "delete", "empty"] + ["bytes"] * 5)
        if kind == "exchange members":
            return self.exchange_members()
        if kind == "exchange folder":
            return self.exchange(self.random.choice(FOLDERS))
        name = self.part()
        path = os.path.join(self.run.folder, name)
        if kind == "exchange":
            return self.exchange(name)
        if kind == "delete":
            os.remove(path)
            self.name += f"{name} deleted"
            return None
        if kind == "empty":
            os.truncate(path, 0)
            self.name += f"{name} emptied"
            return None
        with open(path, "rb") as file:
            before = file.read()
        after, how = self.changed(before)
        with open(path, "wb") as file:
            file.write(after)
        self.name += f"{name}: {how}"
        return None

    def changed(self, data):
        choose = self.random
        used = len(data.rstrip(b"\0")) or 1
        at, size = choose.randrange(used), choose.choice([1, 16, 64, 1024, 4096])
        kind = choose.choice(["flip", "flip", "flip", "zero", "cut", "append", "double", "swap", "digit", "lines"])
        if kind == "flip":
            bit = choose.randrange(8)
            return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1:], f"bit {bit} of byte {at}"
        if kind == "zero":
            return data[:at] + b"\0" * len(data[at:at + size]) + data[at + size:], f"{size} zeros at {at}"
        if kind == "cut":
            return data[:at], f"cut at {at}"
        if kind == "append":
            return data + data[at:at + size], f"{size} bytes appended"
        if kind == "double":
            return data[:at + size] + data[at:], f"{size} bytes twice at {at}"
        if kind == "swap":
            first, second = sorted((at, choose.randrange(used)))
            size = min(size, second - first, len(data) - second)
            middle = data[first + size:second]
            swapped = data[:first] + data[second:second + size] + middle + data[first:first + size] + data[second + size:]
            return swapped, f"{size} bytes at {first} and {second} swapped"
        lines = data.splitlines(keepends=True)
        if kind == "lines" and len(lines) > 2:
            first, second = choose.sample(range(1, len(lines)), 2)
            lines[first], lines[second] = lines[second], lines[first]
            return b"".join(lines), f"lines {first} and {second} swapped"
        digits = [index for index, byte in enumerate(data[:used]) if 48 <= byte < 58]
        if not digits:
            return data[:at], f"cut at {at}"
        at = choose.choice(digits)
        return data[:at] + bytes([48 + (data[at] - 47) % 10]) + data[at + 1:], f"digit at {at}"

    def check(self):
        """What happened: "refused" or "undisturbed"; raises otherwise."""
        before = files_of(self.run.folder)
        process = self.run.start("--resume").process
        try:
            output, _ = process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired as error:
            raise AssertionError(f"the resumed run has not ended after {PATIENCE} s\n{self.run.logs()}") from error
        text = output + self.run.logs()
        if process.returncode == 2:
            after = files_of(self.run.folder)
            different = sorted(path for path in {*before, *after} if before.get(path) != after.get(path))
            run_checks.require(not different, "the refused resume changed", different, text)
            named = any(word in output for word in NAMES)
            run_checks.require(named, "the refusal names no file:", output)
            return "refused"
        run_checks.require(process.returncode == 0, "exit code", process.returncode, text)
        records, rows = self.run.content()
        expected_records, expected_rows = self.base.expected
        for name in sorted({*records, *expected_records}):
            run_checks.require(records.get(name) == expected_records.get(name), name, "differs from the undisturbed run's")
        run_checks.require(rows == expected_rows, "the rows differ from the undisturbed run's")
        return "undisturbed"

    def play(self, keep):
        try:
            result, why = self.check(), ""
        except (AssertionError, formats.Damaged, OSError, ValueError, IndexError) as error:
            result, why = "WRONG", str(error)
        finally:
            self.run.end()
        if not (keep and result == "WRONG"):
            shutil.rmtree(self.test_folder)
        return result, self.name, why


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--changes", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", action="store_true", help="keeps the folders of resumes that went wrong")
    options = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="datacom-changed-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    counts = {"refused": 0, "undisturbed": 0, "WRONG": 0}
    try:
        kinds = KINDS if package_python(os.path.dirname(BIN)) else [kind for kind in KINDS if kind.name != "python"]
        bases = [Base(os.path.join(folder, kind.name), kind) for kind in kinds]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            seeds = range(options.seed, options.seed + options.changes)
            for result, name, why in pool.map(lambda seed: Change(bases[seed % len(bases)], seed).play(options.keep), seeds):
                counts[result] += 1
                print(f"{result:12} {name}{chr(10) + why if why else ''}", flush=True)
    finally:
        if not (options.keep and counts["WRONG"]):
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.changes} changes: {counts['refused']} refused, {counts['undisturbed']} without effect, {counts['WRONG']} wrong")
    return 1 if counts["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
# SPDX-License-Identifier: Apache-2.0

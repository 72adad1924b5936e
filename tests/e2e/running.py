"""Helpers of the end-to-end tests: a `datacom train` in its own folder, its records, and its processes."""
import collections
import csv
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first
from watching import Watch  # noqa: E402

BIN = os.path.abspath(sys.argv.pop(1))
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHECK_ROWS = os.path.join(os.path.dirname(BIN), "tests", "check_rows")
FAILING_DISK = os.path.join(os.path.dirname(BIN), "tests", "chaos", "libfailing_disk.so")
TINY = ["network.actor_hidden=[16,16]", "network.critic_hidden=[16,16]", "network.constraint_hidden=[16,16]",
        "replay.min_size=500", "run.steps_per_epoch=1000", "run.eval_episodes=2", "task_options.horizon=50"]
ROLES = {"replay": "datacom-replay", "learner": "datacom-learner", "actor": "actor-0", "evaluator": "evaluator-0"}
STEP_HEADER = 296  # bytes of a step file before its records; they name the run


def run(*arguments, **options):
    return subprocess.run([os.path.join(BIN, "datacom"), *arguments], capture_output=True, text=True, timeout=PATIENCE,
                          check=False, cwd=SOURCE, **options)


def wait_for_end(process, seconds=PATIENCE):
    """Waits for the end of a process, which need not be a child of this one."""
    try:
        end = os.pidfd_open(process)
    except ProcessLookupError:
        return
    select.select([end], [], [], seconds)
    os.close(end)


class RunFolder:
    """The files of a run in its own folder."""

    def __init__(self, test, name):
        self.test = test
        self.folder = os.path.join(test.folder, name)

    def logs(self):
        text = ""
        folder = os.path.join(self.folder, "logs")
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                text += f"\n--- {name}\n" + "".join(file.readlines()[-15:])
        return text

    def checkpoints(self):
        """The updates of the existing checkpoints."""
        folder = os.path.join(self.folder, "checkpoints")
        return [name for name in os.listdir(folder) if name.isdigit()] if os.path.isdir(folder) else []

    def rows(self, name):
        try:
            with open(os.path.join(self.folder, name), encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        return list(csv.DictReader(text[:text.rfind("\n") + 1].splitlines()))

    def check_complete(self, seeds, steps, epochs):
        """Checks that progress.csv holds every epoch of every member with exact counts."""
        test, rows = self.test, self.rows("progress.csv")
        expected = [(epoch, member) for epoch in range(epochs + 1) for member in range(len(seeds))]
        test.assertEqual(sorted((int(row["epoch"]), int(row["member"])) for row in rows), expected)
        for row in rows:
            test.assertEqual(int(row["seed"]), seeds[int(row["member"])])
            test.assertEqual(int(row["env_steps"]), min(steps, 1000 * int(row["epoch"])))
            test.assertEqual(int(row["updates"]), max(0, int(row["env_steps"]) - 500))
            test.assertEqual(int(row["eval_episodes"]), 2)
            test.assertNotEqual(row["status"], "diverged")
            if int(row["updates"]) > 0:
                test.assertAlmostEqual(float(row["samples_per_insert"]), 1, delta=0.15)
        for member in range(len(seeds)):
            episodes = [row for row in self.rows("episodes.csv") if int(row["member"]) == member]
            keys = [(row["session"], row["environment"], row["episode"]) for row in episodes]
            test.assertEqual(len(keys), len(set(keys)), "an episode was recorded twice")
            test.assertLessEqual(sum(int(row["length"]) for row in episodes), steps)
            test.assertTrue(all(int(row["env_steps"]) <= steps for row in episodes))

    def check_rows(self, address, command=list):
        """Checks that every row in the replay at this address was sent once and in order, and that all acknowledged rows are there.

        `command` turns words into a command on a host that reaches the address. Returns the number of rows of each session.
        """
        test = self.test
        checked = subprocess.run(command([CHECK_ROWS, address]), capture_output=True, text=True, timeout=PATIENCE, check=False)
        test.assertEqual(checked.returncode, 0, checked.stderr + self.logs())
        kept = collections.Counter()
        for session, rows in re.findall(r"session=(\d+) rows=(\d+)", checked.stdout):
            kept[session] += int(rows)
        folder = os.path.join(self.folder, "logs")
        for name in sorted(os.listdir(folder)):
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                for session, acknowledged in re.findall(r"left session=(\d+) acknowledged_rows=(\d+)", file.read()):
                    test.assertGreaterEqual(kept[session], int(acknowledged), f"rows of session {session}, {name}" + self.logs())
        return kept


class Training(RunFolder):
    """One `datacom train`, possibly over several resumes."""

    experiment = "cartpole/datacom"
    settings = TINY

    def __init__(self, test, name, *arguments, overrides=()):
        super().__init__(test, name)
        self.arguments = [*arguments, *(word for item in [*self.settings, *overrides] for word in ("--set", item))]
        self.process = None
        self.environment = None  # None: this program's

    def start(self, *more):
        if self.process is not None:
            self.end()
        command = [os.path.join(BIN, "datacom"), "train", self.experiment, "--no-film", "--run-dir", self.folder, *self.arguments, *more]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", cwd=SOURCE,
                                        env=self.environment)
        self.test.addCleanup(self.end)
        return self

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def finish(self, code=0):
        """Waits for the end and returns the output."""
        output, _ = self.process.communicate(timeout=PATIENCE)
        self.test.assertEqual(self.process.returncode, code, output + self.logs())
        return output

    def wait_for_checkpoint(self, update):
        def written():
            folder = os.path.join(self.folder, "checkpoints")
            return os.path.isdir(folder) and any(int(name) >= update for name in self.checkpoints())
        self.wait(written, f"checkpoint {update}")

    def wait(self, condition, what):
        def ended_or_true():
            return self.process.poll() is not None or condition()
        with Watch(self.test.folder) as watch:
            in_time = watch.wait(ended_or_true, PATIENCE, self.process.pid)
        if self.process.poll() is not None:
            self.test.fail(f"the run ended before {what}\n" + self.process.stdout.read() + self.logs())
        self.test.assertTrue(in_time, f"no {what}\n" + self.logs())

    def wait_for_episodes(self, count):
        self.wait(lambda: len(self.rows("episodes.csv")) >= count, f"episode {count}")

    def processes(self):
        """The process ids of the command and of all its roles."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="utf-8") as file:
            return [self.process.pid, *map(int, file.read().split())]

    def role(self, role):
        """The process id of a role, or of one of several actors ("actor-2"); None when it does not run."""
        process_name = ROLES.get(role, role)
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            try:
                with open(f"/proc/{entry}/stat", encoding="utf-8") as file:
                    fields = file.read().rsplit(")", 1)[1].split()
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    words = file.read().decode().split("\0")
            except (FileNotFoundError, ProcessLookupError):
                continue
            named = any(word == process_name or os.path.basename(word) == process_name for word in words)
            if int(fields[1]) == self.process.pid and fields[0] != "Z" and named:
                return int(entry)
        return None

    def kill_role(self, role, number=signal.SIGKILL):
        """Sends the signal and waits for the restarted process."""
        self.wait(lambda: self.role(role) is not None, role)
        victim = self.role(role)
        os.kill(victim, number)
        self.wait(lambda: self.role(role) not in (None, victim), f"successor of the {role}")

    def check_rows_kept(self):
        """check_rows of an ended run, whose replay is started again for it."""
        with open(os.path.join(self.folder, "run_id"), encoding="utf-8") as file:
            run_id = file.read().strip()
        address = os.path.join(self.test.folder, "kept.address")
        replay = subprocess.Popen([os.path.join(BIN, "datacom-replay"), "--experiment", os.path.join(self.folder, "experiment.textproto"),
                                   "--run-id", run_id, "--dir", os.path.join(self.folder, "replay"), "--address-file", address],
                                  stderr=subprocess.DEVNULL)
        self.test.addCleanup(replay.wait)
        self.test.addCleanup(replay.kill)
        with Watch(self.test.folder) as watch:
            self.test.assertTrue(watch.wait(lambda: os.path.exists(address) or replay.poll() is not None, PATIENCE, replay.pid))
        with open(address, encoding="utf-8") as file:
            return self.check_rows(file.read().strip())


class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="datacom-e2e-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def use(self, training):
        """The commands that read a finished run work on it."""
        for command in (["eval", training.folder, "--episodes", "2"], ["status", training.folder],
                        ["export", training.folder, "--out", os.path.join(self.folder, "robot.policy")],
                        ["report", training.folder, "--out", os.path.join(self.folder, "report.html")]):
            done = run(*command)
            self.assertEqual(done.returncode, 0, f"{command[0]}: {done.stdout}{done.stderr}")
# SPDX-License-Identifier: Apache-2.0

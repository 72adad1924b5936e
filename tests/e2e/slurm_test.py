"""Sweeps and runs as jobs of a real Slurm cluster of three nodes: arrays, actors of other jobs, the end of the time, preemption, a cancelled job."""
import csv
import glob
import os
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testing"))
from skipped import SKIPPED  # noqa: E402
from slurm import Slurm, enter, unavailable  # noqa: E402

if __name__ == "__main__":  # before the arguments are read, which are needed again inside of the namespaces
    if reason := unavailable():
        print("skipped:", reason)
        sys.exit(SKIPPED)
    enter()
from running import TINY, RunTest, run  # noqa: E402

STEPS, SHORT = 40000, 10000
SWEEP = """
name: "mine"
experiments: "cartpole/datacom"
seeds: "0-1"
axes { name: "H" points { label: "50" set: "task_options.horizon=50" } points { label: "40" set: "task_options.horizon=40" } }
"""
POPULATIONS = ["cartpole-datacom_H-50", "cartpole-datacom_H-40"]
SETTINGS = [item for item in TINY if not item.startswith("task_options.horizon")]


class SlurmTest(RunTest):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="datacom-slurm-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.slurm = Slurm(folder, nodes=3, processors=3, settings=["MaxArraySize=3"])
        cls.addClassCleanup(cls.slurm.close)

    def until(self, what, condition):
        self.assertTrue(self.slurm.until(condition, self.folder), f"{what}\n{self.slurm.run('squeue', '--array', '--states=all')}{self.text()}")

    def text(self):
        """What the jobs have said."""
        text = ""
        for path in sorted(glob.glob(os.path.join(self.folder, "*", "slurm", "*.log")) + glob.glob(os.path.join(self.folder, "*", "*", "logs", "*.log"))
                           + glob.glob(os.path.join(self.folder, "*", "logs", "*.log"))):
            with open(path, encoding="utf-8", errors="replace") as file:
                text += f"\n--- {path}\n" + "".join(file.readlines()[-12:])
        return text

    def sweep(self, *words):
        path = os.path.join(self.folder, "mine.textproto")
        with open(path, "w", encoding="utf-8") as file:
            file.write(SWEEP + "".join(f'set: "{item}"\n' for item in SETTINGS))
        return run("sweep", path, "--run-dir", os.path.join(self.folder, "sweep"), *words)

    def log(self, run_dir, name="train.log"):
        path = os.path.join(run_dir, "logs", name)
        if not os.path.exists(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()

    @staticmethod
    def rows(run_dir, name):
        path = os.path.join(run_dir, name)
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            text = file.read()
        return list(csv.DictReader(text[:text.rfind("\n") + 1].splitlines()))

    def check_complete(self, run_dir, steps):
        ends = [row for row in self.rows(run_dir, "progress.csv") if row["env_steps"] == str(steps)]
        self.assertEqual(sorted(row["member"] for row in ends), ["0", "1"], self.text())
        keys = [(row["member"], row["session"], row["environment"], row["episode"]) for row in self.rows(run_dir, "episodes.csv")]
        self.assertEqual(len(keys), len(set(keys)), "an episode was recorded twice")
        checked = run("verify", run_dir)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)

    def test_a_sweep_survives_the_end_of_its_time_and_preemption_and_gets_actors_of_other_jobs(self):
        folder = os.path.join(self.folder, "sweep")
        runs = [os.path.join(folder, name) for name in POPULATIONS]
        made = self.sweep("--backend", "slurm", "--steps", str(STEPS), "--jobs", "2", "--join", "2", "--sbatch=--time=2:00:00")
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        scripts = re.findall(r"^  sbatch (\S+)$", made.stdout, re.MULTILINE)
        self.assertEqual([os.path.basename(script) for script in scripts], ["sweep.sbatch", "actors.sbatch"])
        self.assertEqual(oct(os.stat(os.path.join(folder, "tls", "tls.key")).st_mode & 0o777), "0o600")
        job, actors = (self.slurm.submit(script) for script in scripts)
        for run_dir in runs:
            self.until("rows of both runs", lambda run_dir=run_dir: len(self.rows(run_dir, "episodes.csv")) > 20)
        shown = run("sweep", os.path.join(self.folder, "mine.textproto"), "--run-dir", folder, "--status")
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertRegex(shown.stdout, r"2 populations, 4 members: 2 running")
        self.assertRegex(shown.stdout, r"cartpole-datacom_H-50 +2 +40,000 +\d+ %  running: on n\d for ")

        # What Slurm does 90 s before the end of the job's time.
        self.slurm.run("scancel", "--signal=TERM", "--batch", f"{job}_0")
        # This job needs a whole node, and takes it from a run.
        node = self.slurm.states(job)[f"{job}_1"][1]
        urgent = self.slurm.submit("--partition=high", f"--nodelist={node}", "--exclusive", "--output=/dev/null", "--wrap=true")
        self.until("the urgent job has run", lambda: self.slurm.states(urgent).get(urgent, ("",))[0] == "COMPLETED")
        self.until("the jobs have ended", lambda: all(state[0] == "COMPLETED" for one in (job, actors) for state in self.slurm.states(one).values()))
        for run_dir in runs:
            self.check_complete(run_dir, STEPS)
            log = self.log(run_dir)
            self.assertEqual(re.findall(r"attempt (\d): started", log), ["1", "2"], log)
            self.assertIn("ended with exit code 75", log)
            self.assertIn("back in the queue", log)
            self.assertIn("ended with exit code 0", log)
            self.assertRegex(self.log(run_dir, "learner.log"), r"incarnation=2 update=[1-9]")
        joined = [path for run_dir in runs for path in glob.glob(os.path.join(run_dir, "logs", "n?-*.log"))]
        self.assertTrue(joined, self.text())
        rows = 0
        for path in joined:
            with open(path, encoding="utf-8") as file:
                rows += sum(int(count) for count in re.findall(r"acknowledged_rows=(\d+)", file.read()))
        self.assertGreater(rows, 0, "actors of other jobs sent no rows")
        shown = run("status", folder)
        self.assertIn("2 populations, 4 members: 2 complete", shown.stdout)
        figure = run("report", folder, "--out", os.path.join(self.folder, "report.html"))
        self.assertEqual(figure.returncode, 0, figure.stderr)

    def test_a_sweep_that_is_larger_than_an_array_gets_a_second_one(self):
        folder = os.path.join(self.folder, "sweep")
        path = os.path.join(self.folder, "mine.textproto")
        with open(path, "w", encoding="utf-8") as file:
            points = "".join(f'points {{ label: "{size}" set: "learner.batch_size={size}" }} ' for size in (8, 16, 24, 32))
            file.write(f'name: "mine" experiments: "cartpole/datacom" seeds: "0-1" axes {{ name: "batch" {points} }}\n'
                       + "".join(f'set: "{item}"\n' for item in TINY))
        made = run("sweep", path, "--run-dir", folder, "--backend", "slurm", "--steps", str(SHORT))
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        scripts = re.findall(r"^  sbatch (\S+)$", made.stdout, re.MULTILINE)
        self.assertEqual([os.path.basename(script) for script in scripts], ["sweep.sbatch", "sweep-2.sbatch"])
        second = self.slurm.submit("--hold", scripts[1])
        shown = run("status", folder)
        self.assertIn("4 populations, 8 members: 3 not started, 1 waiting", shown.stdout)
        self.assertRegex(shown.stdout, r"cartpole-datacom_batch-32 +2 +10,000 +0 %  waiting: JobHeldUser")
        first = self.slurm.submit(scripts[0])
        self.slurm.run("scontrol", "release", second)
        self.until("the jobs have ended", lambda: all(state[0] == "COMPLETED" for one in (first, second) for state in self.slurm.states(one).values()))
        self.assertIn("4 populations, 8 members: 4 complete", run("status", folder).stdout)
        for size in (8, 32):
            self.check_complete(os.path.join(folder, f"cartpole-datacom_batch-{size}"), SHORT)

    def test_a_cancelled_run_stays_away_and_a_new_job_resumes_it_and_a_failed_one_is_not_repeated(self):
        folder = os.path.join(self.folder, "run")
        made = run("train", "cartpole/datacom", "--backend", "slurm", "--run-dir", folder, "--steps", str(SHORT), "--seeds", "0-1",
                   *(word for item in TINY for word in ("--set", item)))
        self.assertEqual(made.returncode, 0, made.stdout + made.stderr)
        script = os.path.join(folder, "train.sbatch")
        job = self.slurm.submit(script)
        self.until("rows", lambda: len(self.rows(folder, "episodes.csv")) > 20)
        self.slurm.run("scancel", job)
        self.until("the job is cancelled", lambda: self.slurm.states(job)[job][0] == "CANCELLED")
        self.assertNotIn("back in the queue", self.log(folder))
        again = self.slurm.submit(script)
        self.until("the new job is complete", lambda: self.slurm.states(again)[again][0] == "COMPLETED")
        self.check_complete(folder, SHORT)

        broken = os.path.join(self.folder, "broken")
        self.assertEqual(run("train", "cartpole/datacom", "--backend", "slurm", "--run-dir", broken).returncode, 0)
        with open(os.path.join(broken, "replay"), "w", encoding="utf-8"):
            pass  # a file where the run needs a folder
        job = self.slurm.submit(os.path.join(broken, "train.sbatch"))
        self.until("the job has failed", lambda: self.slurm.states(job)[job][0] == "FAILED")
        self.assertRegex(self.log(broken), r"attempt 1: ended with exit code [12]")


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

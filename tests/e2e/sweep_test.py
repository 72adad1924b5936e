"""Tests `datacom sweep` with real roles: its refusals, its files, and resuming."""
import csv
import os
import re
import signal
import subprocess
import unittest

from running import BIN, PATIENCE, SOURCE, TINY, RunTest, run
from watching import Watch

SETTINGS = [item for item in TINY if not item.startswith("task_options.horizon")]
AXES = """
axes {
  name: "budget"
  points { label: "low" set: "hyper.cost_budget=1" }
  points { label: "high" set: "hyper.cost_budget=9" }
}
axes {
  name: "H"
  points { label: "50" set: "task_options.horizon=50" }
  points { label: "40" set: "task_options.horizon=40" }
}
"""
POPULATIONS = ["cartpole-datacom_H-50", "cartpole-datacom_H-40"]


class SweepTest(RunTest):
    def setUp(self):
        super().setUp()
        self.dir = os.path.join(self.folder, "sweep")
        self.file = self.write("mine.textproto", AXES)

    def write(self, name, axes):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write('name: "mine"\nexperiments: "cartpole/datacom"\nseeds: "0-1"\n')
            file.writelines(f'set: "{item}"\n' for item in SETTINGS)
            file.write(axes)
        return path

    def sweep(self, *more, file=None):
        return run("sweep", file or self.file, "--run-dir", self.dir, *more)

    def start(self, *more):
        process = subprocess.Popen([os.path.join(BIN, "datacom"), "sweep", self.file, "--run-dir", self.dir, *more],
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=SOURCE)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()

    def path(self, population, name):
        return os.path.join(self.dir, population, name)

    def rows(self, population, name):
        try:
            with open(self.path(population, name), encoding="utf-8") as file:
                text = file.read()
        except FileNotFoundError:
            return []
        return list(csv.DictReader(text[:text.rfind("\n") + 1].splitlines()))

    def test_an_interrupted_sweep_resumes_and_skips_finished_populations(self):
        first, second = POPULATIONS
        process = self.start("--steps", "8000")
        with Watch(self.folder) as watch:
            watch.wait(lambda: process.poll() is not None or len(self.rows(second, "episodes.csv")) > 0, PATIENCE, process.pid)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, 75, output)
        self.assertIn(f"[1/2] {first}: complete", output)
        self.assertIn(f"[2/2] {second}: interrupted and drained", output)
        finished = os.stat(self.path(first, "progress.csv")).st_mtime_ns

        result = self.sweep("--steps", "8000")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.assertNotIn("[1/2]", result.stdout)
        self.assertIn(f"[2/2] {second}: complete", result.stdout)
        self.assertEqual(os.stat(self.path(first, "progress.csv")).st_mtime_ns, finished)
        for title in ("budget low, H 50", "budget high, H 50", "budget low, H 40", "budget high, H 40"):
            self.assertIn(title, result.stdout)
        self.assertTrue(os.path.exists(os.path.join(self.dir, "report.html")))
        for population in POPULATIONS:
            ends = [row for row in self.rows(population, "progress.csv") if row["epoch"] == "8"]
            self.assertEqual([(row["member"], row["seed"], row["env_steps"]) for row in ends],
                             [(str(member), str(member % 2), "8000") for member in range(4)])
            keys = [(row["member"], row["session"], row["environment"], row["episode"])
                    for row in self.rows(population, "episodes.csv")]
            self.assertEqual(len(keys), len(set(keys)), "an episode was recorded twice")

        again = self.sweep("--steps", "8000")
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertEqual(again.stdout.count("  complete"), 2)
        page = os.path.join(self.folder, "page.html")
        self.assertEqual(run("report", self.dir, "--out", page).returncode, 0)

        longer = self.sweep("--steps", "9000", "--jobs", "2")
        self.assertEqual(longer.returncode, 0, longer.stdout + longer.stderr)
        for population in POPULATIONS:
            self.assertEqual({row["env_steps"] for row in self.rows(population, "progress.csv") if row["epoch"] == "9"}, {"9000"})
        shorter = self.sweep("--steps", "8000")
        self.assertEqual(shorter.returncode, 2, shorter.stdout)
        self.assertIn("has already made 9000 steps", shorter.stderr)

    def test_render_only_writes_experiments_that_train_can_resume(self):
        result = self.sweep("--render-only", "--steps", "600")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("2 populations, 8 members", result.stdout)
        for population in POPULATIONS:
            self.assertFalse(os.path.exists(self.path(population, "progress.csv")))
        train = run("train", "--no-film", "--resume", "--run-dir", os.path.join(self.dir, POPULATIONS[1]), "--quiet")
        self.assertEqual(train.returncode, 0, train.stdout + train.stderr)
        self.assertEqual({row["env_steps"] for row in self.rows(POPULATIONS[1], "progress.csv")}, {"0", "600"})
        again = self.sweep("--render-only", "--steps", "600")
        self.assertEqual([again.stdout.count("  complete"), again.stdout.count("  not started")], [1, 1])

    def test_a_list_has_a_command_for_each_population_that_trains_and_resumes_it(self):
        result = self.sweep("--backend", "list", "--steps", "1000", "--envs", "8")
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(os.path.join(self.dir, "jobs.txt"), encoding="utf-8") as file:
            commands = file.read().splitlines()
        self.assertEqual([re.search(r"--run-dir (\S+)", command).group(1) for command in commands], [os.path.join(self.dir, name) for name in POPULATIONS])
        for command in [*commands, commands[0]]:  # a complete run that is started again ends at once
            done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        shown = run("status", self.dir)
        self.assertIn("2 populations, 8 members: 2 complete\n", shown.stdout)
        self.assertEqual(shown.stdout.count("100 %  complete\n"), 2, shown.stdout)

    def test_each_population_has_the_given_number_of_environments(self):
        result = self.sweep("--steps", "1000", "--envs", "8", "--jobs", "2")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for population in POPULATIONS:
            places = {(row["member"], row["environment"]) for row in self.rows(population, "episodes.csv")}
            self.assertEqual([len([place for place in places if place[0] == str(member)]) for member in range(4)], [2, 2, 2, 2])

    def test_a_failed_population_is_named_and_the_others_are_trained(self):
        self.assertEqual(self.sweep("--render-only", "--steps", "600").returncode, 0)
        with open(self.path(POPULATIONS[0], "replay"), "w", encoding="utf-8"):
            pass  # a file where the run needs a folder
        result = self.sweep("--steps", "600")
        self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
        self.assertIn(f"[1/2] {POPULATIONS[0]}: failed", result.stdout)
        self.assertIn(f"[2/2] {POPULATIONS[1]}: complete", result.stdout)

    def test_wrong_sweeps_and_options_are_refused_before_anything_runs(self):
        wrong = self.write("wrong.textproto", AXES.replace("budget=9", "budget=-9"))
        other = self.write("other.textproto", AXES.replace("budget=9", "budget=8"))
        self.assertEqual(self.sweep("--render-only").returncode, 0)
        for result, parts in ((self.sweep("--backend", "moon"), ("moon", "local")),
                              (self.sweep(file=wrong), ("wrong.textproto", 'axis "budget", point "high"', "-9 is below 0")),
                              (self.sweep(file=other), (POPULATIONS[0], "members[2].hyper.cost_budget", "choose another --run-dir")),
                              (self.sweep("--join", "2"), ("--join", "--backend slurm")),
                              (self.sweep("--backend", "list", "--jobs", "2"), ("--jobs", "the program that reads the list")),
                              (self.sweep("--backend", "slurm", "--images", "x"), ("--images", "slurm", "kubernetes")),
                              (self.sweep("--program", "x"), ("--program", "--backend slurm or list")),
                              (self.sweep("--max-members", "2"), ("other populations", POPULATIONS[0] + "_part-1")),
                              (self.sweep("--seeds", "0-1-2"), ("mine.textproto", "seeds")),
                              (self.sweep(file="cartpole/none"), ("unknown sweep", "cartpole/cost_budgets"))):
            self.assertEqual(result.returncode, 2, result.stdout + result.stderr)
            for part in parts:
                self.assertIn(part, result.stderr)
        self.assertFalse(os.path.exists(self.path(POPULATIONS[0], "progress.csv")))


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

"""A sweep goes on from the archives of its populations on an empty machine."""
import os
import shutil
import subprocess
import unittest

from running import BIN, SOURCE, TINY, RunFolder, RunTest, Training, run, wait_for_end

SETTINGS = [*(item for item in TINY if not item.startswith("task_options.horizon")), "replay.capacity=600", "run.checkpoint_updates=400"]
POPULATIONS = ["cartpole-datacom_H-50", "cartpole-datacom_H-40"]
SWEEP = """
name: "mine"
experiments: "cartpole/datacom"
seeds: "3-4"
axes { name: "H" points { label: "50" set: "task_options.horizon=50" } points { label: "40" set: "task_options.horizon=40" } }
"""


def content(*names):
    with open(os.path.join(*names), "rb") as file:
        return file.read()


class Sweep(Training):
    """One `datacom sweep`, possibly over several starts."""

    def __init__(self, test, name, *arguments):
        super().__init__(test, name)
        self.arguments = list(arguments)
        self.file = os.path.join(test.folder, "mine.textproto")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(SWEEP + "".join(f'set: "{item}"\n' for item in SETTINGS))

    def words(self, *more):
        return ["sweep", self.file, "--run-dir", self.folder, *self.arguments, *more]

    def start(self, *more):
        if self.process is not None:
            self.end()
        self.process = subprocess.Popen([os.path.join(BIN, "datacom"), *self.words(*more)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        text=True, errors="replace", cwd=SOURCE)
        self.test.addCleanup(self.end)
        return self

    def path(self, population, *names):
        return os.path.join(self.folder, population, *names)

    def logs(self):
        return "".join(RunFolder(self.test, self.path(population)).logs() for population in POPULATIONS)

    def log(self, population):
        return content(self.path(population, "logs", "train.log")).decode()

    def descendants(self, process):
        try:
            with open(f"/proc/{process}/task/{process}/children", encoding="utf-8") as file:
                children = [int(child) for child in file.read().split()]
        except FileNotFoundError:  # it has ended
            return []
        return [*children, *(later for child in children for later in self.descendants(child))]

    def kill_and_lose(self):
        processes = self.descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        for process in processes:
            wait_for_end(process)
        shutil.rmtree(self.folder)


class SweepArchiveTest(RunTest):
    def setUp(self):
        super().setUp()
        self.place = os.path.join(self.folder, "archive")

    def cuts(self, population):
        folder = os.path.join(self.place, population, "cuts")
        return sorted(name for name in os.listdir(folder) if not name.endswith(".tmp")) if os.path.isdir(folder) else []

    def sweep(self, name, steps, *arguments):
        return Sweep(self, name, "--steps", steps, "--archive", self.place, *arguments)

    def check(self, sweep, steps, epochs):
        for population in POPULATIONS:
            RunFolder(self, sweep.path(population)).check_complete(seeds=[3, 4], steps=steps, epochs=epochs)
            verified = run("verify", sweep.path(population))
            self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertTrue(os.path.exists(os.path.join(sweep.folder, "report.html")))

    def test_a_sweep_whose_machine_is_lost_trains_only_what_its_archives_lack(self):
        first, second = POPULATIONS
        sweep = self.sweep("sweep", "8000").start()
        sweep.wait(lambda: any(not cut.endswith("-0") for cut in self.cuts(second)), "a cut of the second population")
        records = {name: content(sweep.path(first, name)) for name in ("run_id", "progress.csv", "episodes.csv")}
        sweep.kill_and_lose()

        output = sweep.start().finish()
        for number, population in enumerate(POPULATIONS, 1):
            self.assertIn(f"[{number}/2] {population}: complete", output)
        self.assertIn("copied update 7,500 of run " + records["run_id"].decode().strip(), sweep.log(first))
        self.assertEqual({name: content(sweep.path(first, name)) for name in records}, records)
        self.assertFalse(os.path.exists(sweep.path(first, "logs", "replay.log")), "a role was started for a complete population")
        self.assertRegex(sweep.log(second), "copied update [1-9][0-9,]* of run ")
        self.assertTrue(os.path.exists(sweep.path(second, "logs", "replay.log")))
        self.check(sweep, 8000, epochs=8)

        again = sweep.start().finish()
        self.assertEqual(again.count("copying its end to the archive"), 2, again)
        self.assertEqual(content(sweep.path(second, "logs", "train.log")).count(b"copied update"), 1)

    def test_a_population_that_is_prepared_is_brought_again_after_an_interrupted_copy(self):
        first, second = POPULATIONS
        sweep = self.sweep("sweep", "1000").start()
        sweep.finish()
        shutil.rmtree(sweep.folder)
        prepared = run(*sweep.words("--render-only"))
        self.assertEqual(prepared.returncode, 0, prepared.stderr)
        half = (".restoring/objects/parts/run_id/0-0", "policies/epoch_0001.snapshot", "checkpoints/500/learner.state", "progress.csv")
        for name in (*half, "notes.txt"):
            os.makedirs(os.path.dirname(sweep.path(first, name)), exist_ok=True)
            with open(sweep.path(first, name), "w", encoding="utf-8") as file:
                file.write("half")
        sweep.start().finish()
        for population in POPULATIONS:
            self.assertIn("copied update 500 of run ", sweep.log(population))
            self.assertFalse(os.path.exists(sweep.path(population, ".restoring")))
        self.assertEqual(content(sweep.path(first, "notes.txt")), b"half")
        self.check(sweep, 1000, epochs=1)

    def test_a_folder_that_has_lost_the_name_of_its_run_keeps_its_state(self):
        sweep = self.sweep("sweep", "1000").start()
        sweep.finish()
        damaged = sweep.path(POPULATIONS[0])
        os.unlink(os.path.join(damaged, "run_id"))
        os.unlink(os.path.join(damaged, "report.html"))  # so that it is not complete
        rows = content(damaged, "replay", "member_0.rows")
        sweep.start().finish(2)
        self.assertIn("not empty", sweep.log(POPULATIONS[0]))
        self.assertEqual(content(damaged, "replay", "member_0.rows"), rows)

    def test_archives_of_another_experiment_are_refused_by_their_places_and_keep_their_owner(self):
        self.sweep("one", "1000", "--set", "hyper.cost_budget=9").start().finish()
        cuts = {population: self.cuts(population) for population in POPULATIONS}
        other = self.sweep("two", "1000", "--set", "hyper.cost_budget=8")
        self.assertEqual(run(*other.words("--render-only")).returncode, 0)
        planned = {population: content(other.path(population, "experiment.textproto")) for population in POPULATIONS}
        output = other.start().finish(2)
        for population in POPULATIONS:
            self.assertRegex(output, f"{self.place}/{population} holds run .* of another experiment than {other.path(population)}: "
                                     "modified: hyper.cost_budget: 9 -> 8; name another place")
            self.assertEqual(content(other.path(population, "experiment.textproto")), planned[population])
            self.assertFalse({"run_id", ".restoring"} & set(os.listdir(other.path(population))))
            self.assertEqual(self.cuts(population), cuts[population])
        longer = self.sweep("three", "2000", "--set", "hyper.cost_budget=9").start()  # only the steps differ
        longer.finish()
        self.check(longer, 2000, epochs=2)

    def test_a_place_is_checked_before_a_sweep_begins_and_stands_in_the_commands_of_a_list(self):
        sweep = Sweep(self, "sweep")
        refused = run(*sweep.words("--archive", "ftp://host/x"))
        self.assertEqual(refused.returncode, 2, refused.stderr)
        self.assertIn("ftp://host/x: unknown scheme", refused.stderr)
        self.assertFalse(os.path.exists(sweep.folder))
        for place, named in (("s3://bucket/x/", "s3://bucket/x/"), ("here", os.path.join(SOURCE, "here/")), ("store:", "store:")):
            written = run(*sweep.words("--backend", "list", "--archive", place))
            self.assertEqual(written.returncode, 0, written.stderr)
            lines = content(sweep.folder, "jobs.txt").decode().splitlines()
            self.assertEqual([line.split(" --archive ")[1].split()[0] for line in lines], [named + population for population in POPULATIONS])


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

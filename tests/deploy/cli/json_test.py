"""Tests what the built commands print for programs: one schema of a run's state, means, lists and errors."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first

BIN = os.path.abspath(sys.argv.pop(1))
RUN = {"run", "state", "waiting", "done", "env_steps", "goal_steps", "update", "target_update", "pretrain_update", "pretrain_target",
       "repeated_updates", "steps_per_second", "updates_per_second", "elapsed_seconds", "eta_seconds", "actors", "restarts",
       "pending_evaluations", "checkpoint_update", "members", "replay", "learner"}
POPULATION = RUN | {"population", "detail"}
MEANS = {"member", "seed", "epoch", "shield", "episode", "discounted_return", "return", "max_violation", "sum_cost", "violating_steps",
         "mean_cost", "length", "success", "reached", "absorbed", "abandoned", "shield_share", "shield_change", "infeasible_share",
         "largest_constraint", "costs", "logs"}
ROWS = "member,seed,epoch,env_steps,updates,eval_max_violation,status\n0,3,1,1000,900,0.125,ok\n"
SWEEP = ("sweep", "cartpole/cost_budgets", "--seeds", "0", "--steps", "5000", "--run-dir", "swept")


class JsonTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="datacom-json-")
        self.addCleanup(shutil.rmtree, self.folder)

    def say(self, *arguments, code=0):
        """The value that the command prints: all of its standard output."""
        result = subprocess.run([os.path.join(BIN, "datacom"), *arguments, "--json"], capture_output=True, text=True, timeout=PATIENCE,
                                check=False, cwd=self.folder)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return json.loads(result.stdout)

    def write_run(self, name, steps):
        folder = os.path.join(self.folder, name)
        experiment = os.path.join(folder, "experiment.textproto")
        subprocess.run([os.path.join(BIN, "datacom"), "config", "cartpole/datacom", "--seeds", "3", "--steps", str(steps), "--out", experiment],
                       check=True)
        with open(os.path.join(folder, "progress.csv"), "w", encoding="utf-8") as file:
            file.write(ROWS.replace("1000", str(min(steps, 10000))))
        return folder

    def test_the_state_of_a_run_has_the_same_keys_however_it_ended(self):
        stopped = self.say("status", self.write_run("stopped", 20000))
        self.assertEqual(set(stopped), RUN)
        self.assertEqual((stopped["state"], stopped["done"], stopped["env_steps"], stopped["goal_steps"]), ("interrupted", 0.5, 10000, 20000))
        self.assertEqual((stopped["members"][0]["seed"], stopped["members"][0]["status"], stopped["members"][0]["eval_max_violation"]),
                         (3, "ok", 0.125))
        self.assertIsInstance(stopped["members"][0]["env_steps"], int)
        folder = self.write_run("complete", 10000)
        with open(os.path.join(folder, "report.html"), "w", encoding="utf-8"):
            pass
        complete = self.say("status", folder)
        self.assertEqual(set(complete), RUN)
        self.assertEqual((complete["state"], complete["done"], complete["eta_seconds"]), ("complete", 1, 0))
        said = subprocess.run([os.path.join(BIN, "datacom"), "status", folder], capture_output=True, text=True, check=True, timeout=PATIENCE).stdout
        self.assertIn(f"{folder}: complete\n", said)
        self.assertNotIn("--resume", said)

    def test_a_plan_and_the_state_of_a_sweep_are_the_states_of_its_populations(self):
        plan = self.say(*SWEEP, "--render-only")
        self.assertEqual(set(plan), {"sweep", "populations"})
        population, = plan["populations"]
        self.assertEqual(set(population), POPULATION | {"memory_bytes", "disk_bytes"})
        self.assertGreater(min(population["memory_bytes"], population["disk_bytes"]), 1_000_000)
        for state in (self.say(*SWEEP, "--status"), self.say("status", "swept")):
            population, = state["populations"]
            self.assertEqual(set(population), POPULATION)
            self.assertEqual((population["state"], population["env_steps"], population["goal_steps"]), ("not started", 0, 5000))
            self.assertEqual(population["run"], os.path.join("swept", population["population"]))

    def test_an_evaluation_lists_its_episodes_and_their_means(self):
        first, second, mean = self.say("eval", "cartpole", "--policy", "random", "--episodes", "2")
        self.assertEqual(set(first), MEANS | {"attempts"})
        self.assertEqual(set(mean), MEANS | {"episodes", "violated"})
        self.assertEqual([one["episode"] for one in (first, second, mean)], [0, 1, None])
        self.assertEqual(mean["episodes"], 2)
        for key in ("discounted_return", "return", "max_violation", "sum_cost", "violating_steps", "length"):
            self.assertAlmostEqual(mean[key], (first[key] + second[key]) / 2)
        self.assertEqual((first["costs"], first["logs"]), ({}, {}))

    def test_the_costs_and_logs_of_an_evaluation_have_names(self):
        examples = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../../deploy/examples")
        first, mean = self.say("eval", os.path.join(examples, "arm_reach/task.textproto"), "--policy", "zeros", "--episodes", "1")
        self.assertEqual(set(first["costs"]), {"sphere", "limits"})
        for name, cost in first["costs"].items():
            self.assertEqual(set(cost), {"max_violation", "sum_cost", "violating_steps"})
            self.assertEqual(cost, mean["costs"][name])

    def test_a_list_says_with_which_experiments_to_begin(self):
        lists = self.say("list")
        self.assertEqual(list(lists), ["algorithms", "experiments", "sweeps", "tasks"])
        first = [one["name"] for one in lists["experiments"] if one["first_choice"]]
        self.assertEqual(first, ["air_hockey/from_scratch", "air_hockey/limits_known", "air_hockey_7dof/from_scratch", "air_hockey_7dof/limits_known",
                                 "cartpole/from_scratch", "navigation/from_scratch", "navigation/limits_known"])
        said = subprocess.run([os.path.join(BIN, "datacom"), "list", "experiments"], capture_output=True, text=True, check=True, timeout=PATIENCE)
        lines = said.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[:-1] if line.split()[1] == "*"], first)
        self.assertEqual(lines[-1], "* begin with one of these")

    def test_names_of_any_bytes_are_listed(self):
        experiments = os.path.join(self.folder, "experiments")
        os.mkdir(experiments)
        with open(os.path.join(os.fsencode(experiments), b"caf\xe9.textproto"), "w", encoding="utf-8") as file:
            file.write('name: "coffee" task: "cartpole" algorithm: "datacom"\n')
        result = subprocess.run([os.path.join(BIN, "datacom"), "list", "experiments", "--json"], capture_output=True, check=False, timeout=PATIENCE,
                                env={**os.environ, "DATACOM_EXPERIMENTS": experiments})
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([one["name"] for one in json.loads(result.stdout)["experiments"]], ["caf\ufffd"])

    def test_a_refusal_is_an_object_with_the_exit_code(self):
        for arguments, code, words in (
                (("train", "cartpole/dataco"), 2, 'unknown experiment "cartpole/dataco"; did you mean cartpole/datacom?'),
                (("train", "cartpole/datacom", "--set", "hyper.accepted_risk=2"), 2, "hyper.accepted_risk: 2 is not below 1"),
                (("sweep", "cartpole/cost_budget"), 2, "did you mean cartpole/cost_budgets?"),
                (("sweep", "cartpole/cost_budgets", "--status", "--run-dir", "none"), 2, "none is not the folder of a sweep"),
                (("status", "nosuch/run"), 2, "e.g. datacom status runs/first"),
                (("train", "cartpole/datacom", "--colour"), 2, "The following argument was not expected: --colour"),
                (("status",), 2, "target is required"),
                (("frobnicate",), 2, 'unknown verb "frobnicate"'),
                (("--plugin", "nosuch.so", "list"), 2, "plug-in "),
                (("copy", ""), 2, "an archive needs a place"),
                (("copy", "s3://"), 2, "names no bucket"),
                (("eval", "nosuch", "--member", "-1"), 2, "must be a whole number"),
                (("eval", "nosuch"), 2, "nosuch is no"),
                (("eval", "cartpole"), 2, "cartpole is a task, not a run")):
            with self.subTest(arguments):
                said = self.say(*arguments, code=code)
                self.assertEqual(set(said), {"error", "code"})
                self.assertEqual(said["code"], code)
                self.assertIn(words, said["error"])


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

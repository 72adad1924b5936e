"""Tests the other verbs of `datacom` with real roles, and its refusals."""
import csv
import ctypes
import glob
import gzip
import io
import math
import os
import signal
import socket
import subprocess
import tempfile
import unittest

from running import BIN, PATIENCE, SOURCE, RunTest, Training, run


GOLDEN = os.path.join(SOURCE, "tests", "golden", "tasks")


class CommandTest(RunTest):
    def unpacked(self, name):
        """A recorded trajectory as an open file with a name."""
        file = tempfile.NamedTemporaryFile("w+", suffix=".csv", encoding="utf-8")  # pylint: disable=consider-using-with
        self.addCleanup(file.close)
        with gzip.open(os.path.join(GOLDEN, name + ".csv.gz"), "rt", encoding="utf-8") as packed:
            file.write(packed.read())
        file.flush()
        file.seek(0)
        return file

    def test_every_verb_has_help_with_an_example(self):
        for verb in ("train", "status", "task", "eval", "rollout", "render", "replay-violation", "export", "export-dataset", "verify", "config", "list", "bench", "report",
                     "sweep"):
            result = run(verb, "--help")
            self.assertEqual(result.returncode, 0)
            self.assertIn(f"Example: datacom {verb}", result.stdout)
        self.assertEqual(run("--version").returncode, 0)

    def test_list_and_config_show_tasks_experiments_and_overrides(self):
        self.assertIn("cartpole  ", run("list", "tasks").stdout)
        everything = run("list").stdout
        for kind in ("tasks", "algorithms", "experiments", "sweeps"):
            self.assertIn(kind + ":\n" + run("list", kind).stdout, everything)
        self.assertIn("datacom", run("list", "algorithms").stdout)
        self.assertIn("cartpole/datacom", run("list", "experiments").stdout)
        self.assertIn("cartpole/cost_budgets", run("list", "sweeps").stdout)
        self.assertIn("cost_budget: 10", run("config", "cartpole/datacom", "--set", "hyper.cost_budget=10").stdout)

    def test_wrong_usage_exits_2(self):
        for arguments in (("list", "colours"), ("config", "cartpole/none"), ("train", "cartpole/none"), ("fly",), (),
                          ("rollout", "cartpole"), ("rollout", "moon", "--actions", "x.csv"), ("eval", "nowhere"),
                          ("render", "nowhere", "--out", "x.png"), ("render", "cartpole"),
                          ("export", "nowhere", "--out", "x.policy"), ("config", "cartpole/datacom", "--set", "hyper.none=1")):
            result = run(*arguments)
            self.assertEqual(result.returncode, 2, (arguments, result.stdout, result.stderr))
            self.assertNotEqual(result.stderr + result.stdout, "")

    def test_a_rollout_of_recorded_actions_equals_the_golden_trajectory(self):
        golden = self.unpacked("cartpole_lcg")
        result = run("rollout", "cartpole", "--actions", golden.name, "--csv")
        self.assertEqual(result.returncode, 0, result.stderr)
        rows = list(csv.DictReader(io.StringIO(result.stdout)))
        wanted = list(csv.DictReader(line for line in golden if not line.startswith("#")))
        self.assertEqual(len(rows), len(wanted))
        pairs = [(f"obs{i}", next(name for name in wanted[0] if name.startswith(f"obs{i}_"))) for i in range(5)]
        for row, want in zip(rows, wanted):
            for mine, theirs in pairs + [("cost", "cost"), ("absorbing", "absorbing")]:
                self.assertAlmostEqual(float(row[mine]), float(want[theirs]), delta=1e-9, msg=f"step {row['step']} {mine}")

    def test_navigation_follows_recorded_wheel_steps_like_the_recorded_robot(self):
        files = sorted(glob.glob("nav_bullet_step_*.csv.gz", root_dir=GOLDEN))
        self.assertTrue(files)
        for name in files:
            golden = self.unpacked(name.removesuffix(".csv.gz"))
            wanted = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(golden)]
            start = {"tiago_x": "tx", "tiago_y": "ty", "tiago_yaw": "tyaw", "fetch_x": "fx", "fetch_y": "fy", "fetch_yaw": "fyaw"}
            init = ",".join([f"{key}={wanted[0][column]}" for key, column in start.items()] + ["fetch_idle=1"])
            result = run("rollout", "navigation", "--init", init, "--actions", golden.name, "--csv")
            self.assertEqual(result.returncode, 0, result.stderr)
            rows = [{key: float(value or 0) for key, value in row.items()} for row in csv.DictReader(io.StringIO(result.stdout))]
            self.assertEqual(len(rows), len(wanted))
            speed = turn = 0.0
            for mine, theirs in zip(rows, wanted):
                forward = mine["obs6"] * mine["obs4"] + mine["obs7"] * mine["obs5"]
                speed += (forward - theirs["tvx"] * math.cos(theirs["tyaw"]) - theirs["tvy"] * math.sin(theirs["tyaw"])) ** 2
                turn += (mine["obs8"] - theirs["twz"]) ** 2
            self.assertLessEqual(math.sqrt(speed / len(wanted)), 0.03, name)
            self.assertLessEqual(math.sqrt(turn / len(wanted)), 0.15, name)

    def test_a_trained_policy_can_be_evaluated_and_reported(self):
        training = Training(self, "a", "--seeds", "0", "--steps", "1500").start()
        training.finish()
        result = run("eval", training.folder, "--epoch", "last", "--episodes", "2", "--csv")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertGreaterEqual(len(result.stdout.splitlines()), 3)
        self.check_export(training)
        page = os.path.join(self.folder, "compare.html")
        result = run("report", training.folder, training.folder, "--out", page)
        self.assertEqual(result.returncode, 0, result.stderr)
        with open(page, encoding="utf-8") as file:
            self.assertNotIn("src=", file.read().split("<script")[0])
        self.assertEqual(run("report", self.folder, "--out", page).returncode, 2)

    def check_export(self, training):
        """Exports a policy, loads it with the robot's library, and acts with it."""
        file = os.path.join(self.folder, "robot.policy")
        self.assertEqual(run("export", training.folder).returncode, 2)
        self.assertEqual(run("export", training.folder, "--member", "1", "--out", file).returncode, 2)
        self.assertFalse(os.path.exists(file))
        result = run("export", training.folder, "--out", file)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("member 0 (seed 0), epoch 2, update 1000, acting rule safe_map", result.stdout)
        library = ctypes.CDLL(os.path.join(BIN, "..", "lib", "libdatacom_policy.so"))
        library.datacom_policy_free.argtypes = [ctypes.c_void_p]
        library.datacom_policy_act.argtypes = [ctypes.c_void_p] * 4
        policy, why = ctypes.c_void_p(), ctypes.create_string_buffer(256)
        self.assertEqual(library.datacom_policy_load(file.encode(), ctypes.byref(policy), why, 256), 0, why.value)
        action, observation = ctypes.c_double(77), (ctypes.c_double * 5)(0.1, 0.05, 0.99, 0, 0)

        class Input(ctypes.Structure):
            _fields_ = [("observation", ctypes.c_void_p), ("noise", ctypes.c_void_p), ("previous_cost", ctypes.c_double)]
        given = Input(ctypes.cast(observation, ctypes.c_void_p), None, 0)
        self.assertEqual(library.datacom_policy_act(policy, ctypes.byref(given), ctypes.byref(action), None), 0)
        self.assertLess(abs(action.value), 10)
        library.datacom_policy_free(policy)

    def test_a_role_names_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            experiment = os.path.join(self.folder, "e.textproto")
            with open(experiment, "w", encoding="utf-8") as file:
                file.write(run("config", "cartpole/datacom").stdout)
            result = subprocess.run([os.path.join(BIN, "datacom-replay"), "--experiment", experiment, "--run-id", "x", "--dir",
                                     os.path.join(self.folder, "ring"), "--listen", address],
                                    capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertEqual(result.returncode, 1, result.stderr)
        self.assertIn(address, result.stdout + result.stderr)

    def test_a_second_train_in_the_folder_is_refused_and_the_first_continues(self):
        training = Training(self, "a", "--seeds", "0", "--steps", "20000").start()
        training.wait_for_episodes(1)
        second = run("train", "cartpole/datacom", "--run-dir", training.folder, "--resume")
        self.assertEqual(second.returncode, 2)
        self.assertIn("in use", second.stderr)
        training.process.send_signal(signal.SIGINT)
        training.finish(75)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

"""Tests that a task of two text files trains, and that its run needs no file outside its folder."""
import csv
import gzip
import hashlib
import os
import random
import re
import shutil
import struct
import unittest

from running import SOURCE, TINY, RunFolder, RunTest, run

EXAMPLE = os.path.join(SOURCE, "deploy", "examples", "cartpole")
SMALL = [word for item in TINY for word in ("--set", item)]


class OwnTaskTest(RunTest):
    def expect(self, *arguments, code=0):
        result = run(*arguments)
        self.assertEqual(result.returncode, code, (arguments, result.stdout, result.stderr))
        return result.stdout + result.stderr

    def test_a_run_of_a_task_file_can_be_resumed_played_drawn_and_checked_without_the_file(self):
        robot, folder = os.path.join(self.folder, "robot"), os.path.join(self.folder, "run")
        shutil.copytree(EXAMPLE, robot)
        task = os.path.join(robot, "task.textproto")
        with open(task, "a", encoding="utf-8") as file:
            file.write('known { name: "track" site: "pole_tip" box { size { x: 4.5 } } viability_gain: 0.3 }\n')
        self.expect("train", "--no-film", task, "--algorithm", "datacom", "--steps", "1500", "--seeds", "0-1", "--run-dir", folder,
                    "--set", "constraints.known=[track]", "--set", "hyper.delta_mode=fixed", "--set", "hyper.init_delta=1000",
                    *SMALL, "--set", "task_options.horizon=500")  # nothing is forbidden, and the pole has the time to fall
        experiment = os.path.join(self.folder, "mine.textproto")
        with open(experiment, "w", encoding="utf-8") as file:
            file.write('name: "mine"\ntask: "robot/task.textproto"\nalgorithm: "sac"\n')
        self.assertIn('task: "cartpole_text"', self.expect("config", experiment))
        self.assertIn("uniform actions", self.expect("eval", task, "--policy", "random", "--episodes", "1"))
        shutil.rmtree(robot)
        self.expect("train", "--no-film", "--run-dir", folder, "--resume", "--steps", "2000")
        self.assertEqual(len(self.expect("eval", folder, "--episodes", "1", "--csv").splitlines()), 3)
        played = ("eval", folder, "--episodes", "1", "--csv", "--set")
        self.assertEqual(len(self.expect(*played, "constraints.known=[]").splitlines()), 3)
        self.assertIn("has the groups track and", self.expect(*played, "constraints.known=[wall]", code=2))
        self.expect("render", folder, "--map", "--out", os.path.join(self.folder, "map.png"))
        self.assertIn("no damage", self.expect("verify", folder))
        self.assertIn("bit for bit", self.expect("replay-violation", folder, "1", "--out", os.path.join(self.folder, "violation.png")))

    def with_mesh(self):
        """A copy of the example with a mesh of 1.5 MB that only draws. Returns the task file."""
        robot = os.path.join(self.folder, "robot")
        shutil.copytree(EXAMPLE, robot)
        number = random.Random(1)
        with open(os.path.join(robot, "hull.stl"), "wb") as file:  # binary STL: head, number of triangles, 50 bytes each
            file.write(bytes(80) + struct.pack("<I", 30_000))
            for _ in range(30_000):
                file.write(struct.pack("<12fH", 0, 0, 0, *(number.random() for _ in range(9)), 0))
        path = os.path.join(robot, "model.xml")
        with open(path, encoding="utf-8") as file:
            model = file.read().replace("<worldbody>", '<asset><mesh name="hull" file="hull.stl"/></asset><worldbody>'
                                        '<geom type="mesh" mesh="hull" contype="0" conaffinity="0" pos="0 9 0"/>', 1)
        with open(path, "w", encoding="utf-8") as file:
            file.write(model)
        return os.path.join(robot, "task.textproto")

    def test_the_large_files_of_a_model_are_beside_the_experiment_and_reach_every_role(self):
        task, folder = self.with_mesh(), os.path.join(self.folder, "run")
        self.assertLess(len(self.expect("config", task, "--algorithm", "datacom")), 20_000)
        self.expect("train", "--no-film", task, "--algorithm", "datacom", "--steps", "1500", "--seeds", "0-1", "--run-dir", folder, *SMALL)
        shutil.rmtree(os.path.dirname(task))
        self.assertLess(os.path.getsize(os.path.join(folder, "experiment.textproto")), 20_000)
        files = os.listdir(os.path.join(folder, "task_files"))
        self.assertEqual(len(files), 1, files)
        path = os.path.join(folder, "task_files", files[0])
        with gzip.open(path) as file:
            self.assertEqual(hashlib.sha256(file.read()).hexdigest() + ".gz", files[0])
        self.expect("train", "--no-film", "--run-dir", folder, "--resume", "--steps", "2000")
        self.assertEqual(len(self.expect("eval", folder, "--episodes", "1", "--csv").splitlines()), 3)
        self.assertIn("no damage", self.expect("verify", folder))
        self.assertLess(os.path.getsize(os.path.join(folder, "report.html")), 1_000_000)
        os.rename(path, path + ".away")
        self.assertIn(f"there is no task_files/{files[0]}", self.expect("eval", folder, "--episodes", "1", code=2))

    def test_config_writes_an_experiment_and_its_large_files_to_another_folder(self):
        task, other = self.with_mesh(), os.path.join(self.folder, "other")
        experiment = os.path.join(other, "mine.textproto")
        self.expect("config", task, "--algorithm", "sac", *SMALL, "--set", "run.env_steps=1500", "--out", experiment)
        shutil.rmtree(os.path.dirname(task))
        self.expect("train", "--no-film", experiment, "--run-dir", os.path.join(self.folder, "run"))
        shutil.rmtree(os.path.join(other, "task_files"))
        self.assertIn(f"there is no {other}/task_files/",
                      self.expect("train", "--no-film", experiment, "--run-dir", os.path.join(self.folder, "more"), code=2))

    def test_the_rows_of_an_algorithm_that_reads_neither_f_nor_g_do_not_have_them(self):
        task = os.path.join(EXAMPLE, "task.textproto")
        self.assertNotIn("without_map", self.expect("config", task, "--algorithm", "datacom"))
        self.assertNotIn("without_map", self.expect("config", task, "--algorithm", "cbf_sac"))
        for algorithm in ("sac", "ppo_lag"):
            self.assertIn("without_map", self.expect("config", task, "--algorithm", algorithm))

    def test_each_of_several_costs_is_recorded_by_its_name(self):
        robot, folder = os.path.join(self.folder, "robot"), os.path.join(self.folder, "run")
        shutil.copytree(EXAMPLE, robot)
        task = os.path.join(robot, "task.textproto")
        with open(task, "a", encoding="utf-8") as file:
            file.write('cost { name: "right" value: "slider + 1" }\n'
                       'log { name: "effort" value: "norm1(\\"action.*\\")" } log { name: "goal" value: "command.goal" }\n'
                       'command { name: "goal" low: 2 high: 3 }\n'
                       'observation { joint: "slider" scale: 0.5 history: 2 name: "past" } observation { number: "command.*" }\n'
                       'push { joint: "slider" every { low: 0.1 high: 0.5 } velocity { low: -1 high: 1 } }\n'
                       'randomise { body: "*" factor { low: 0.9 high: 1.1 } }\n')
        self.expect("train", "--no-film", task, "--algorithm", "datacom", "--steps", "1500", "--seeds", "0-1", "--run-dir", folder, *SMALL)
        self.expect("train", "--no-film", "--run-dir", folder, "--resume", "--steps", "2000")
        records = RunFolder(self, "run")
        columns = [f"{kind}.{name}" for name in self.costs(task) for kind in ("max_violation", "sum_cost", "violating_steps")]
        logs = ["log.effort", "log.goal"]
        self.assertEqual(list(records.rows("episodes.csv")[0])[-8:], columns + logs)
        for row in records.rows("episodes.csv"):
            self.assertTrue(0 <= float(row["log.effort"]) <= 1 and 2 <= float(row["log.goal"]) <= 3, row)
            violating = [int(row[column]) for column in columns[2::3]]
            self.assertTrue(max(violating) <= int(row["violating_steps"]) <= min(sum(violating), int(row["length"])), row)
            largest = [float(row[column]) for column in columns[::3]]
            self.assertEqual(max(largest), float(row["max_violation"]))
            sums = [float(row[column]) for column in columns[1::3]]
            self.assertLessEqual(max(sums), float(row["sum_cost"]))
            self.assertGreaterEqual(sum(sums) * (1 + 1e-12), float(row["sum_cost"]))
        self.assertTrue(any(float(row["sum_cost.right"]) > 0 for row in records.rows("episodes.csv")))
        last = [row for row in records.rows("progress.csv") if row["env_steps"] == "2000"]
        self.assertEqual(len(last), 2)
        played = list(csv.DictReader(self.expect("eval", folder, "--episodes", "2", "--csv").splitlines()))
        for member, row in enumerate(last):  # eval plays the episodes of the evaluation again
            for column in [*columns, *logs, "violating_steps"]:
                mean = sum(float(one[column]) for one in played if int(one["member"]) == member) / 2
                self.assertAlmostEqual(float(row["eval_" + column]), mean, places=9)
        self.assertRegex(self.expect("eval", folder, "--episodes", "1"), r"(?m)^right +0 ")
        self.assertRegex(self.expect("eval", folder, "--episodes", "1"), r"(?m)^effort +0 ")
        self.assertIn("no damage", self.expect("verify", folder))
        self.assertIn("bit for bit", self.expect("replay-violation", folder, "1"))  # with command, pushes and factors
        path = os.path.join(folder, "episodes.csv")
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        cells = lines[1].split(",")
        cells[lines[0].split(",").index("violating_steps.right")] = "77"
        lines[1] = ",".join(cells)
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
        self.assertIn("column violating_steps.right: 77, the rows of the ring say", self.expect("verify", folder, code=1))

    def costs(self, task):
        with open(task, encoding="utf-8") as file:
            return re.findall(r'cost \{ name: "(\w+)"', file.read())

    def test_a_new_task_of_a_model_passes_its_check_and_trains_as_it_is(self):
        robot, folder = os.path.join(self.folder, "robot"), os.path.join(self.folder, "run")
        printed = self.expect("task", "new", robot, "--model", os.path.join(EXAMPLE, "model.xml"))
        task = os.path.join(robot, "task.textproto")
        self.assertIn(f"datacom task check {task}", printed)
        self.assertIn("is not empty", self.expect("task", "new", robot, "--model", os.path.join(EXAMPLE, "model.xml"), code=2))
        self.expect("task", "check", task, "--steps", "1")
        self.assertEqual(sorted(os.listdir(robot)), ["model.xml", "task.textproto"], "a check writes only what is asked for")
        picture = os.path.join(self.folder, "start.png")
        printed = self.expect("task", "check", task, "--steps", "200", "--picture", picture)
        self.assertIn("All numbers were finite", printed)
        self.assertTrue(os.path.exists(picture) or "no picture: " in printed, printed)
        bounded = ("--set", "learner.bound_returns=true", *SMALL)
        trained = ("train", "--no-film", task, "--algorithm", "datacom", "--steps", "1500", "--seeds", "0", "--run-dir", folder)
        self.assertIn("does not state the range of its rewards (reward_range of a task file)", self.expect(*trained, *bounded, code=2))
        with open(task, "a", encoding="utf-8") as file:
            file.write("reward_range { low: -20 high: 0 }\n")
        self.assertIn("f + G u predicts the change of q's velocities over a control step", self.expect(*trained, *bounded))
        means = self.expect("eval", folder, "--episodes", "1").splitlines()
        head = next(i for i, line in enumerate(means) if "reached" in line)
        cells = dict(zip(means[head].replace("violating steps", "violating").split(), means[head + 1].split()))
        self.assertEqual((cells["success"], cells["reached"]), ("-", "-"), means)  # the task defines no success
        with open(task, "a", encoding="utf-8") as file:
            file.write('success: "log(-1)"\nextra { name: "broken" sensor: "none" }\n')
        self.assertIn('extra[', self.expect("task", "check", task, code=2))
        self.assertEqual(run("task").returncode, 2)

    def test_a_training_whose_cost_is_never_finite_ends_and_names_the_cost(self):
        robot, folder = os.path.join(self.folder, "robot"), os.path.join(self.folder, "run")
        shutil.copytree(EXAMPLE, robot)
        task = os.path.join(robot, "task.textproto")
        with open(task, encoding="utf-8") as file:
            text = re.sub(r"^cost .*$", 'cost { name: "speed" value: "0/0" }', file.read(), flags=re.MULTILINE)
        with open(task, "w", encoding="utf-8") as file:
            file.write(text)
        printed = self.expect("train", "--no-film", task, "--algorithm", "datacom", "--steps", "1500", "--run-dir", folder, *SMALL, code=2)
        self.assertIn("1000 episodes were abandoned and none gave a row", printed)
        self.assertIn("cost speed is not finite", printed)

    def test_a_task_file_next_to_an_experiment_is_found_by_the_experiments_name(self):
        shutil.copytree(EXAMPLE, os.path.join(self.folder, "experiments", "mine"))
        for name, text in (("experiments/mine/run.textproto", 'name: "mine/run"\ntask: "task.textproto"\nalgorithm: "sac"\n'),
                           ("sweep.textproto", 'name: "both"\nexperiments: "mine/run"\nseeds: "0-1"\n')):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        environment = dict(os.environ, DATACOM_EXPERIMENTS=os.path.join(self.folder, "experiments"))
        for arguments in (("config", "mine/run"), ("config", os.path.join(self.folder, "experiments", "mine", "run.textproto"))):
            result = run(*arguments, env=environment)
            self.assertIn('task: "cartpole_text"', result.stdout, (arguments, result.stderr))
        result = run("sweep", os.path.join(self.folder, "sweep.textproto"), "--render-only", "--run-dir",
                     os.path.join(self.folder, "sweep"), env=environment)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_a_wrong_task_file_is_refused_with_its_line(self):
        robot = os.path.join(self.folder, "robot")
        shutil.copytree(EXAMPLE, robot)
        task = os.path.join(robot, "task.textproto")
        self.assertIn("is a task; name an algorithm", self.expect("train", "--no-film", task, code=2))
        with open(task, encoding="utf-8") as file:
            text = file.read()
        with open(task, "w", encoding="utf-8") as file:
            file.write(text.replace('site: "pole_tip"', 'site: "tip"'))
        line = next(i for i, words in enumerate(text.splitlines(), 1) if "pole_tip" in words)
        for arguments in (("train", task, "--algorithm", "datacom"), ("eval", task, "--policy", "zeros"), ("rollout", task, "--policy", "zeros")):
            message = self.expect(*arguments, code=2)
            self.assertIn(f"task.textproto:{line}:", message)
            self.assertIn('no site of the model matches "tip"; there are: goal, pole_tip', message)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

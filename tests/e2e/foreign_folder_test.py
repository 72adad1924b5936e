"""Run folders that were changed, moved or made by somebody else: what a command must refuse by name, and must not do."""
import os
import shutil
import signal
import subprocess
import unittest

from running import BIN, PATIENCE, SOURCE, RunTest, Training

POLE = os.path.join(SOURCE, "deploy/examples/cartpole")
FILE = """name: "foo" task: "cartpole" algorithm: "sac" run { env_steps: 100000 steps_per_epoch: 300 eval_episodes: 1 }
replay { min_size: 200 } network { actor_hidden: 16 critic_hidden: 16 } task_options { horizon: 50 }"""


class ForeignFolderTest(RunTest):
    def path(self, *names):
        return os.path.join(self.folder, *names)

    def run_here(self, *words):
        done = subprocess.run([os.path.join(BIN, "datacom"), *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE,
                              check=False, cwd=self.folder)
        return done.returncode, done.stdout

    def write(self, name, text):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def test_an_experiment_file_is_resumed_in_the_folder_of_its_name(self):
        file = self.write("e.textproto", FILE)
        self.write("runs/foo-1/experiment.textproto", "")  # of a run that was lost
        code, said = self.run_here("train", file, "--resume")
        self.assertEqual(code, 2, said)
        self.assertIn("runs/foo-1", said)
        self.assertNotIn("e.textproto-1", said)

    def test_a_name_that_is_no_name_makes_no_folder(self):
        for name in ("..", ".", r"a\nb", r"\033[2J"):
            file = self.write("e.textproto", FILE.replace('"foo"', f'"{name}"'))
            code, said = self.run_here("train", file)
            self.assertEqual(code, 2, said)
            self.assertIn("name: ", said)
            self.assertNotIn("\033", said)
            self.assertEqual(os.listdir(self.folder), ["e.textproto"])

    def test_a_folder_that_cannot_be_looked_into_is_refused_and_aborts_nothing(self):
        os.symlink("loop", self.path("loop"))
        for name in ("loop", "a" * 300):
            for words in (("status",), ("report",), ("eval",), ("watch",), ("join",), ("train", "cartpole/sac", "--run-dir")):
                code, said = self.run_here(*words, name)
                self.assertIn(code, (1, 2), f"{words}: {said}")
                self.assertIn("datacom: ", said)

    def test_a_strangers_records_do_not_steer_the_terminal(self):
        self.write("a/experiment.textproto", FILE)
        self.write("a/progress.csv", "member,env_steps,epoch\n\033[2Jx,300,1\n")
        for words in (("status", "a"), ("report", "a")):
            code, said = self.run_here(*words)
            self.assertEqual(code, 2, said)
            self.assertIn(r"\x1b[2Jx", said)
            self.assertNotIn("\033", said)

    def test_a_pipe_in_the_place_of_a_file_is_named_and_not_waited_for(self):
        self.write("a/experiment.textproto", FILE + "members { seed: 0 }")
        for name in ("progress.csv", "episodes.csv", "run_id", "cluster/layout", "ledger/violations.csv", "ledger/member_0.steps", "replay/sessions",
                     "replay/credit", "replay/member_0.rows", "replay/member_0.failures", "policies/epoch_0001.snapshot", "checkpoints/100/learner.state"):
            os.makedirs(os.path.dirname(self.path("a", name)), exist_ok=True)
            os.mkfifo(self.path("a", name))
        for words in (("verify", "a"), ("status", "a"), ("report", "a"), ("eval", "a"), ("export", "a", "--out", "p"), ("replay-violation", "a", "1"),
                      ("export-dataset", "a", "--out", "d"), ("copy", "a", "place"), ("train", "--run-dir", "a", "--resume")):
            code, said = self.run_here(*words)
            self.assertEqual(code, 1 if words[0] == "verify" else 2, f"{words}: {said}")
            self.assertIn("is not a regular file", " ".join(said.split()))

    def test_a_folder_that_slurm_cannot_name_is_refused_before_it_is_made(self):
        code, said = self.run_here("train", "cartpole/sac", "--backend", "slurm", "--run-dir", "two words")
        self.assertEqual(code, 2, said)
        code, said = self.run_here("sweep", "cartpole/cost_budgets", "--backend", "slurm", "--run-dir", "100%")
        self.assertEqual(code, 2, said)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_lost_policy_of_an_epoch_is_named_at_the_resume(self):
        training = Training(self, "run", "--seeds", "0", "--steps", "1000000").start()

        def interrupt_after(epoch):
            path = os.path.join(training.folder, "policies", f"epoch_{epoch:04}.snapshot")
            training.wait(lambda: os.path.exists(path), f"the policies of epoch {epoch}")
            training.process.send_signal(signal.SIGINT)
            training.finish(75)
        interrupt_after(2)
        for epoch, change in ((0, os.remove), (1, lambda path: os.truncate(path, 0)),
                              (1, lambda path: shutil.copyfile(os.path.join(training.folder, "policies/epoch_0000.snapshot"), path))):
            path = os.path.join(training.folder, f"policies/epoch_{epoch:04}.snapshot")
            shutil.copyfile(path, self.path("kept"))
            change(path)
            self.assertIn(f"policies/epoch_{epoch:04}.snapshot", training.start("--resume").finish(2))
            shutil.copyfile(self.path("kept"), path)
        last = max(os.listdir(os.path.join(training.folder, "policies")))
        training.start("--resume")
        interrupt_after(int(last[len("epoch_"):-len(".snapshot")]) + 1)

    def test_verify_reads_the_files_of_a_text_task(self):
        shutil.copytree(POLE, self.path("task"))
        model = self.path("task/model.xml")
        with open(model, encoding="utf-8") as file:
            text = file.read()
        comment = "<!-- " + " ".join(str(number * 7919 % 100003) for number in range(60000)) + " -->"
        self.write("task/model.xml", text.replace("</mujoco>", comment + "\n</mujoco>"))

        class Own(Training):
            experiment = self.path("task/task.textproto")

        training = Own(self, "run", "--algorithm", "datacom", "--seeds", "0", "--steps", "600")
        training.start().finish()
        code, said = self.run_here("verify", training.folder)
        self.assertEqual(code, 0, said)
        name, = os.listdir(os.path.join(training.folder, "task_files"))
        path = os.path.join(training.folder, f"task_files/{name}")
        with open(path, "rb") as file:
            sound = file.read()
        for damaged in (None, sound[:len(sound) // 2], sound[:60] + bytes([sound[60] ^ 1]) + sound[61:]):
            os.remove(path)
            if damaged is not None:
                with open(path, "wb") as file:
                    file.write(damaged)
            code, said = self.run_here("verify", training.folder)
            self.assertEqual(code, 1, said)
            self.assertIn("damage: task_files: ", said)
            with open(path, "wb") as file:
                file.write(sound)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

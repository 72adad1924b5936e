"""Pre-trains a run with the dataset of another: repeatable, also after a kill in the middle; wrong datasets are refused."""
import os
import unittest

from lockstep_test import records
from running import RunTest, Training, run


class PretrainTest(RunTest):
    def recorded(self):
        """Trains two members and exports the dataset of their rows."""
        source = Training(self, "source", "--seeds", "0-1", "--steps", "1500").start()
        source.finish()
        dataset = os.path.join(self.folder, "dataset")
        exported = run("export-dataset", source.folder, "--out", dataset)
        self.assertEqual(exported.returncode, 0, exported.stderr)
        self.assertIn("dataset of 3000 rows of task cartpole", exported.stdout)
        return dataset

    def training(self, name, dataset):
        return Training(self, name, "--seeds", "3-4", "--steps", "1200", "--lockstep",
                        overrides=[f"pretrain.dataset={dataset}", "pretrain.updates=6000", "run.checkpoint_updates=300"])

    def test_a_pretrained_run_repeats_exactly_also_after_a_kill(self):
        dataset = self.recorded()
        reference = self.training("reference", dataset).start()
        reference.finish()
        reference.check_complete(seeds=[3, 4], steps=1200, epochs=2)
        first = [row for row in reference.rows("progress.csv") if row["epoch"] == "0"]
        self.assertTrue(all(row["critic_loss"] and row["constraint_loss"] and not row["policy_loss"] for row in first), first)

        killed = self.training("killed", dataset).start()
        killed.wait(lambda: "0" in killed.checkpoints(), "checkpoint of the pre-training")
        self.assertEqual(killed.rows("progress.csv"), [], "the pre-training ended before it could be killed")
        killed.process.kill()
        killed.process.wait()
        killed.start("--resume").finish()
        self.assertEqual(records(killed), records(reference))

    def test_a_wrong_dataset_is_refused_before_anything_starts(self):
        dataset = self.recorded()
        folder = os.path.join(self.folder, "refused")
        cases = [
            (["air_hockey/datacom", "--set", f"pretrain.dataset={dataset}", "--set", "pretrain.updates=10"],
             "is of task cartpole, the run of air_hockey"),
            (["cartpole/datacom", "--set", "pretrain.dataset=/nowhere", "--set", "pretrain.updates=10"], "/nowhere"),
            (["cartpole/datacom", "--set", f"pretrain.dataset={dataset}"], "pretrain.updates: must be set"),
        ]
        for words, message in cases:
            refused = run("train", *words, "--run-dir", folder)
            self.assertEqual(refused.returncode, 2, refused.stderr)
            self.assertIn(message, refused.stderr)
            self.assertFalse(os.path.exists(folder))
        again = run("export-dataset", os.path.join(self.folder, "source"), "--out", dataset)
        self.assertEqual(again.returncode, 2)
        self.assertIn("already exists", again.stderr)
        nothing = run("export-dataset", self.folder, "--out", dataset + "2")
        self.assertEqual(nothing.returncode, 2)
        self.assertIn("not a run folder", nothing.stderr)
        self.assertIn("export-dataset", run("--help").stdout)
        self.assertIn("--rows", run("export-dataset", "--help").stdout)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

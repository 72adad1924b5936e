"""Trains shipped experiments with three seeds and checks that they reach their known scores. Takes hours (label soak)."""
import math
import os
import subprocess
import typing
import unittest

from running import BIN, PATIENCE, SOURCE, RunFolder, RunTest


class Goal(typing.NamedTuple):
    steps: int           # per member
    epochs: range        # epochs whose evaluations count; an epoch has 10,000 steps
    above: dict          # column of progress.csv -> lower bound of each member's mean over the epochs
    below: dict          # the same for upper bounds


SEEDS = (0, 1, 2)
EVALUATION_EPISODES = 25  # per epoch, the schema's default
# Measured on 2026-11-22 (two cores of an AMD EPYC): air hockey, ten members (seeds 0-4 with 1 and with 16 lanes), means of epochs
# 8 to 12: violation 0.002 to 0.113 (median 0.007), cost sum 0.04 to 15.9 (median 0.26), against 1.2 and 158 before training. CartPole,
# thirteen members (five runs with one or with 16 lanes), means of the last five epochs: J 12.2 to 18.7, mean 16.3, standard deviation
# 1.8. Air hockey's bounds are about twice the worst member, which was seed 4; CartPole's is 3.4 standard deviations below the mean.
GOALS = {
    "cartpole/datacom": Goal(steps=300_000, epochs=range(26, 31), above={"eval_discounted_return": 10}, below={}),
    "air_hockey/datacom": Goal(steps=120_000, epochs=range(8, 13), above={},
                               below={"eval_max_violation": 0.25, "eval_sum_cost": 30}),
}


class LearningTest(RunTest):
    def train(self, experiment, steps):
        run = RunFolder(self, experiment.replace("/", "_"))
        command = [os.path.join(BIN, "datacom"), "train", experiment, "--no-film", "--run-dir", run.folder, "--quiet",
                   "--seeds", ",".join(map(str, SEEDS)), "--steps", str(steps)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=12 * PATIENCE, check=False, cwd=SOURCE)
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr + run.logs())
        return run

    def check(self, experiment):
        goal = GOALS[experiment]
        rows = self.train(experiment, goal.steps).rows("progress.csv")
        self.assertEqual({(int(row["member"]), int(row["seed"])) for row in rows}, set(enumerate(SEEDS)))
        for member, seed in enumerate(SEEDS):
            counted = [row for row in rows if int(row["member"]) == member and int(row["epoch"]) in goal.epochs]
            self.assertEqual([int(row["epoch"]) for row in counted], list(goal.epochs))
            self.assertEqual(int(counted[-1]["env_steps"]), goal.steps)
            for row in counted:
                self.assertNotEqual(row["status"], "diverged", row)
                self.assertEqual(int(row["eval_episodes"]), EVALUATION_EPISODES, row)
            for column, bound in (goal.above | goal.below).items():
                values = [float(row[column]) for row in counted]
                mean = sum(values) / len(values)
                with self.subTest(experiment=experiment, seed=seed, column=column):
                    print(f"{experiment} seed {seed}: {column} {mean:.4g}, of {values}", flush=True)
                    self.assertTrue(math.isfinite(mean), values)
                    if column in goal.above:
                        self.assertGreater(mean, bound, values)
                    else:
                        self.assertLess(mean, bound, values)

    def test_datacom_balances_the_cart_pole_near_its_goal(self):
        self.check("cartpole/datacom")

    def test_ppo_lag_improves_the_return_of_the_cart_pole(self):
        rows = self.train("cartpole/ppo_lag", 400_000).rows("progress.csv")
        for member, seed in enumerate(SEEDS):
            own = {int(row["epoch"]): row for row in rows if int(row["member"]) == member}
            self.assertEqual(sorted(own), list(range(21)))
            self.assertTrue(all(row["status"] != "diverged" for row in own.values()))
            first, last = ([float(own[epoch]["train_return"]) for epoch in epochs] for epochs in (range(1, 4), range(18, 21)))
            with self.subTest(seed=seed):
                print(f"cartpole/ppo_lag seed {seed}: train_return {first}, then {last}", flush=True)
                self.assertGreater(sum(last) / 3, sum(first) / 3)

    def test_datacom_keeps_the_air_hockey_arm_within_its_constraints(self):
        self.check("air_hockey/datacom")


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

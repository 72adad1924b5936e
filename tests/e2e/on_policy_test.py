"""PPOLag and RCPO: every row of an epoch is acted by the policy of the update before, also after any kill."""
import os
import unittest

from lockstep_test import records
from running import RunTest, Training, run

EPOCH = 1000


class OnPolicyTraining(Training):
    settings = ["network.actor_hidden=[16,16]", "network.critic_hidden=[16,16]", f"run.steps_per_epoch={EPOCH}", "run.eval_episodes=2",
                "task_options.horizon=50", "learner.passes=3", "replay.capacity=100000"]

    def __init__(self, test, name, experiment, *arguments, overrides=()):
        self.experiment = experiment
        super().__init__(test, name, *arguments, overrides=overrides)

    def check(self, members, epochs):
        """Every epoch has one update and all its rows; `verify` checks which policy acted in each row."""
        test, rows = self.test, self.rows("progress.csv")
        test.assertEqual(sorted((int(row["epoch"]), int(row["member"])) for row in rows),
                         [(epoch, member) for epoch in range(epochs + 1) for member in range(members)])
        for row in rows:
            test.assertEqual(int(row["env_steps"]), EPOCH * int(row["epoch"]))
            test.assertEqual(int(row["updates"]), int(row["epoch"]))
            test.assertNotEqual(row["status"], "diverged")
            if int(row["epoch"]) > 0:
                test.assertEqual(float(row["policy_lag"]), 0)
                test.assertGreaterEqual(float(row["multiplier"]), 0)
        verified = run("verify", self.folder)
        test.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def check_rows_of(self, members, epochs):
        """Every row was sent once. Starts the replay, which then holds the folder."""
        self.test.assertEqual(sum(self.check_rows_kept().values()), members * epochs * EPOCH)


class OnPolicyTest(RunTest):
    def test_several_actors_and_lanes_share_the_epochs_of_a_population(self):
        training = OnPolicyTraining(self, "a", "cartpole/ppo_lag", "--seeds", "3-5", "--steps", "6000", "--actors", "2",
                                    "--envs", "6").start()
        training.finish()
        self.assertEqual({row["lanes"] for row in training.rows("progress.csv") if row["epoch"] == "6"}, {"4"})
        training.check(members=3, epochs=6)
        training.check_rows_of(members=3, epochs=6)
        self.use(training)

    def test_a_run_survives_kill_9_of_every_role(self):
        training = OnPolicyTraining(self, "a", "navigation/rcpo", "--seeds", "0-1", "--steps", "30000").start()
        for epoch, role in ((2, "actor"), (5, "learner"), (8, "replay"), (11, "actor"), (14, "evaluator"), (17, "learner")):
            training.wait_for_episodes(2 * 20 * epoch)
            training.kill_role(role)
        training.finish()
        training.check(members=2, epochs=30)
        training.check_rows_of(members=2, epochs=30)

    def test_a_run_can_be_resumed_after_kill_9_of_the_command_and_extended(self):
        training = OnPolicyTraining(self, "a", "cartpole/rcpo", "--seeds", "0-1", "--steps", "10000").start()
        training.wait_for_episodes(2 * 20 * 3)
        training.process.kill()
        training.process.wait()
        training.start("--resume").finish()
        training.check(members=2, epochs=10)
        training.arguments[training.arguments.index("10000")] = "12000"
        training.start("--resume").finish()
        training.check(members=2, epochs=12)
        training.check_rows_of(members=2, epochs=12)

    def test_a_run_of_incomplete_epochs_is_refused(self):
        refused = run("train", "cartpole/ppo_lag", "--steps", "30000", "--run-dir", os.path.join(self.folder, "a"))
        self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
        self.assertIn("30000 is not a multiple of run.steps_per_epoch 20000", refused.stdout + refused.stderr)

    def test_a_lockstep_run_is_repeated_exactly_also_after_kills(self):
        def training(name, threads):
            return OnPolicyTraining(self, name, "cartpole/ppo_lag", "--seeds", "3-4", "--steps", "6000", "--lockstep",
                                    overrides=[f"learner.threads={threads}"])
        reference = training("reference", threads=1).start()
        reference.finish()
        reference.check(members=2, epochs=6)
        wanted = records(reference)
        killed = training("killed", threads=2).start()
        for epoch, role in ((1, "actor"), (2, "learner"), (3, "replay")):
            killed.wait_for_episodes(2 * 20 * epoch)
            killed.kill_role(role)
        killed.wait_for_episodes(2 * 20 * 4)
        killed.process.kill()
        killed.process.wait()
        killed.start("--resume", "--set", "learner.threads=3").finish()
        self.assertEqual(records(killed), wanted)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

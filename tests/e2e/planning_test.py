"""SafeLOOP: the learner keeps all rows and the actor plans, also after any kill."""
import os
import unittest

from lockstep_test import records
from running import RunTest, Training, run

EPOCH = 200


class PlanningTraining(Training):
    experiment = "air_hockey/safe_loop"
    settings = ["network.actor_hidden=[16,16]", "network.critic_hidden=[16,16]", f"run.steps_per_epoch={EPOCH}", "run.eval_episodes=2",
                "learner.batch_size=32", "replay.capacity=2000", "planning.random_rows=400", "planning.policy_updates=5",
                "planning.model_period=100", "planning.ensemble=2", "planning.hidden=[16,16]", "planning.samples=20",
                "planning.particles=2", "planning.iterations=2"]

    def check(self, members, epochs):
        """Ten rows an update, no member diverged, the folder is consistent, every row was sent once."""
        test, rows = self.test, self.rows("progress.csv")
        test.assertEqual(sorted((int(row["epoch"]), int(row["member"])) for row in rows),
                         [(epoch, member) for epoch in range(epochs + 1) for member in range(members)])
        for row in rows:
            test.assertEqual(int(row["env_steps"]), EPOCH * int(row["epoch"]))
            test.assertEqual(int(row["updates"]), EPOCH // 10 * int(row["epoch"]))
            test.assertNotEqual(row["status"], "diverged")
        verified = run("verify", self.folder)
        test.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        test.assertEqual(sum(self.check_rows_kept().values()), members * epochs * EPOCH)


class PlanningTest(RunTest):
    def test_a_run_survives_kill_9_of_every_role_and_its_policy_can_be_used(self):
        training = PlanningTraining(self, "a", "--seeds", "0-1", "--steps", "1200").start()
        for episodes, role in ((6, "actor"), (12, "learner"), (20, "replay"), (30, "evaluator")):
            training.wait_for_episodes(episodes)
            training.kill_role(role)
        training.finish()
        training.check(members=2, epochs=6)
        self.use(training)

    def test_a_lockstep_run_is_repeated_exactly_also_after_kills(self):
        def training(name, threads):
            return PlanningTraining(self, name, "--seeds", "3-4", "--steps", "1000", "--lockstep",
                                    overrides=[f"learner.threads={threads}"])
        reference = training("reference", threads=1).start()
        reference.finish()
        wanted = records(reference)
        killed = training("killed", threads=2).start()
        for episodes, role in ((8, "actor"), (14, "learner"), (20, "actor"), (24, "replay")):
            killed.wait_for_episodes(episodes)
            killed.kill_role(role)
        killed.wait_for_episodes(28)
        killed.process.kill()
        killed.process.wait()
        killed.start("--resume", "--set", "learner.threads=3").finish()
        self.assertEqual(records(killed), wanted)

    def test_a_task_without_a_known_cost_is_refused(self):
        refused = run("train", "air_hockey/safe_loop", "--set", "task=navigation", "--steps", "1000",
                      "--run-dir", os.path.join(self.folder, "a"))
        self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
        self.assertIn("acting rule planner: task navigation has no known cost of an observation", refused.stderr)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

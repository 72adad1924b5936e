"""--lockstep: two runs have equal records and learner state, on any number of threads, also when one was killed and resumed."""
import os
import unittest

from running import STEP_HEADER, RunTest, Training


def records(training):
    """The files that must be equal: progress.csv without wall_seconds, episodes.csv, the ledger, the newest state.sha256."""
    progress = [{key: value for key, value in row.items() if key != "wall_seconds"} for row in training.rows("progress.csv")]
    newest = max(training.checkpoints(), key=int)
    ledger = {}
    for name in ("violations.csv", "member_0.steps", "member_1.steps"):
        with open(os.path.join(training.folder, "ledger", name), "rb") as file:
            ledger[name] = file.read()[STEP_HEADER if name.endswith(".steps") else 0:]
    with open(os.path.join(training.folder, "checkpoints", newest, "state.sha256"), encoding="utf-8") as file:
        return {"progress": progress, "episodes": training.rows("episodes.csv"), "ledger": ledger, "update": newest, "state": file.read()}


class LockstepTest(RunTest):
    def training(self, name, threads):
        return Training(self, name, "--seeds", "3-4", "--steps", "2600", "--lockstep",
                        overrides=["hyper.delta_warmup=1500", "run.checkpoint_updates=300", "task_options.horizon=150",
                                   f"learner.threads={threads}"])

    def test_a_lockstep_run_is_repeated_exactly_and_a_kill_changes_nothing(self):
        reference = self.training("reference", threads=1).start()
        reference.finish()
        reference.check_complete(seeds=[3, 4], steps=2600, epochs=3)
        wanted = records(reference)
        self.assertGreater(len(wanted["episodes"]), 4)
        self.assertEqual(len(wanted["ledger"]["member_1.steps"]), 2600 * 32)
        self.assertGreater(wanted["ledger"]["violations.csv"].count(b"\n"), 100)

        with self.subTest("again, on more threads"):
            again = self.training("again", threads=3).start()
            again.finish()
            self.assertEqual(records(again), wanted)

        with self.subTest("kill -9 of everything, then --resume on another number of threads"):
            killed = self.training("killed", threads=2).start()
            killed.wait_for_episodes(len(wanted["episodes"]) // 2)
            killed.process.kill()
            killed.process.wait()
            killed.start("--resume", "--set", "learner.threads=4").finish()
            self.assertEqual(records(killed), wanted)

        with self.subTest("kill -9 of each role in turn"):
            hurt = self.training("hurt", threads=2).start()
            for place, role in enumerate(("actor", "learner", "replay"), start=1):
                hurt.wait_for_episodes(len(wanted["episodes"]) * place // 4)
                hurt.kill_role(role)
            hurt.finish()
            self.assertEqual(records(hurt), wanted)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

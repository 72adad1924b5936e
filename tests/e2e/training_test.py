"""Small real runs with the built command: the counts are exact after any kill."""
import os
import re
import signal
import unittest

from running import FAILING_DISK, RunTest, Training, run


class TrainingTest(RunTest):
    def test_a_population_trains_exactly_to_the_end_and_writes_all_records(self):
        training = Training(self, "a", "--seeds", "4-5", "--steps", "2600").start()
        output = training.finish()
        training.check_complete(seeds=[4, 5], steps=2600, epochs=3)
        self.assertIn("eval J", output)
        for name in ("experiment.textproto", "build.txt", "episodes.csv", "targets.json", "report.html", "tensorboard",
                     "policies/epoch_0003.snapshot", "logs/learner.log"):
            self.assertTrue(os.path.exists(os.path.join(training.folder, name)), name)
        self.assertIn("2100", [name.lstrip("0") for name in training.checkpoints()])
        self.assertLessEqual(len(training.checkpoints()), 2)

    def test_a_run_survives_kill_9_of_every_role(self):
        training = Training(self, "a", "--seeds", "0-1", "--steps", "30000", overrides=["run.checkpoint_updates=500"]).start()
        for episodes, role in ((50, "learner"), (250, "actor"), (450, "replay"), (650, "evaluator"), (850, "learner")):
            training.wait_for_episodes(episodes)
            training.kill_role(role)
        output = training.finish()
        self.assertIn("learner ended (killed by signal 9); restarting", output)
        training.check_complete(seeds=[0, 1], steps=30000, epochs=30)

    def test_actors_divide_the_members_and_a_killed_one_gets_its_members_back(self):
        training = Training(self, "a", "--seeds", "0-5", "--steps", "12000", "--actors", "3", overrides=["replay.capacity=12000"]).start()
        served = {}  # the sessions of connected actors: number and members

        def all_serve(former):
            """Whether three sessions serve members, and the victim has another one than before."""
            self.status = run("status", training.folder).stdout
            found = re.findall(r"^session (\d+): (actor-\d), \d+ environments, members ([-,\d]+); [\d,]+ rows, connected", self.status, re.M)
            served.clear()
            served.update({actor: (number, members) for number, actor, members in found})
            return len(found) == len(served) == 3 and (former is None or served[victim][0] != former)
        for round_, victim in enumerate(("actor-0", "actor-2", "replay", "actor-1"), start=1):
            training.wait_for_episodes(100 * round_)
            training.wait(lambda: all_serve(None), "sessions of all actors")
            former = served[victim][0] if victim in served else None
            process = training.role(victim)
            os.kill(process, signal.SIGKILL)
            training.wait(lambda: training.role(victim) not in (None, process), f"successor of {victim}")
            training.wait(lambda: all_serve(former), f"members for {victim}")
            numbers = []
            for first, last in re.findall(r"(\d+)(?:-(\d+))?", ",".join(members for _, members in served.values())):
                numbers.extend(range(int(first), int(last or first) + 1))
            self.assertEqual(sorted(numbers), list(range(6)), self.status)
        training.finish()
        training.check_complete(seeds=range(6), steps=12000, epochs=12)
        self.assertEqual(sum(training.check_rows_kept().values()), 6 * 12000)

    def test_a_run_can_be_resumed_after_kill_9_of_the_command(self):
        training = Training(self, "a", "--seeds", "0-1", "--steps", "20000", overrides=["run.checkpoint_updates=500"]).start()
        training.wait_for_episodes(60)
        training.process.kill()
        training.process.wait()
        training.start("--resume").finish()
        training.check_complete(seeds=[0, 1], steps=20000, epochs=20)

    def test_an_interrupted_run_exits_75_and_can_be_resumed_and_extended(self):
        training = Training(self, "a", "--seeds", "0-1", "--steps", "20000").start()
        training.wait_for_episodes(60)
        training.process.send_signal(signal.SIGINT)
        self.assertIn("--resume", training.finish(75))
        training.start("--resume").finish()
        training.check_complete(seeds=[0, 1], steps=20000, epochs=20)
        training.arguments[training.arguments.index("20000")] = "21000"
        training.start("--resume").finish()
        training.check_complete(seeds=[0, 1], steps=21000, epochs=21)

    def test_sigterm_to_every_process_at_once_still_writes_the_drain_checkpoint(self):
        training = Training(self, "a", "--seeds", "0-31", "--steps", "200000")
        for interruptions in (1, 2, 3):
            before = len(training.rows("episodes.csv"))
            training.start(*(["--resume"] if interruptions > 1 else []))
            training.wait_for_episodes(before + 400)
            for process in training.processes():
                os.kill(process, signal.SIGTERM)
            training.finish(75)
            with open(os.path.join(training.folder, "logs", "learner.log"), encoding="utf-8") as file:
                written = re.findall(r"interrupted; checkpoint written update=(\d+)", file.read())
            self.assertEqual(len(written), interruptions)
            self.assertEqual(int(written[-1]), max(int(name) for name in training.checkpoints()))

    def test_a_run_survives_a_disk_that_fails_for_a_moment(self):
        failing = os.path.join(self.folder, "disk_fails")
        training = Training(self, "a", "--seeds", "0-1", "--steps", "6000", overrides=["replay.sync=true"])
        training.environment = dict(os.environ, LD_PRELOAD=FAILING_DISK, DATACOM_TEST_DISK_FAILS=failing)
        training.start().wait_for_episodes(60)
        replay = training.role("replay")
        with open(failing, "w", encoding="utf-8"):
            pass
        training.wait(lambda: training.role("replay") != replay, "end of the replay")
        os.unlink(failing)
        self.assertIn("replay ended (exit code 1); restarting", training.finish())
        with open(os.path.join(training.folder, "logs", "replay.log"), encoding="utf-8") as file:
            self.assertIn("the replay's disk failed; no more rows are accepted: msync", file.read())
        training.check_complete(seeds=[0, 1], steps=6000, epochs=6)

    def test_a_run_whose_learner_is_frozen_ends_with_1_and_the_reason_and_can_be_resumed(self):
        training = Training(self, "a", "--seeds", "0", "--steps", "20000").start("--stall-minutes", "0.3")
        training.wait_for_episodes(50)
        os.kill(training.role("learner"), signal.SIGSTOP)
        output = training.finish(1)
        self.assertIn("no row, update or evaluation for 0.3 minutes; learner: no answer; replay: actor-0 waits for learner", output)
        training.start("--resume").finish()
        training.check_complete(seeds=[0], steps=20000, epochs=20)

    def test_a_run_without_its_rows_or_checkpoints_is_not_restarted(self):
        training = Training(self, "a", "--seeds", "0", "--steps", "2000").start()
        training.finish()
        for lost in ("replay", "checkpoints"):
            folder = os.path.join(training.folder, lost)
            os.rename(folder, folder + ".kept")
            self.assertIn("has lost", training.start("--resume").finish(2))
            self.assertFalse(os.path.exists(folder))
            os.rename(folder + ".kept", folder)
        training.start("--resume").finish()
        training.check_complete(seeds=[0], steps=2000, epochs=2)

    def test_delta_is_updated_after_the_warm_up(self):
        training = Training(self, "a", "--seeds", "0-1", "--steps", "6000", overrides=["hyper.delta_warmup=2000"]).start()
        training.finish()
        for member in ("0", "1"):
            delta = {int(row["epoch"]): float(row["delta"]) for row in training.rows("progress.csv") if row["member"] == member}
            self.assertEqual(delta[0], delta[1])
            self.assertNotEqual(delta[1], delta[6])

    def test_status_shows_a_running_and_an_ended_run(self):
        training = Training(self, "a", "--seeds", "0", "--steps", "20000").start()
        training.wait_for_episodes(2)
        live = run("status", training.folder)
        self.assertEqual(live.returncode, 0, live.stderr)
        self.assertIn("samples/insert", live.stdout)
        self.assertIn("actor-0", live.stdout)
        training.process.send_signal(signal.SIGTERM)
        training.finish(75)
        after = run("status", training.folder)
        self.assertEqual(after.returncode, 0, after.stderr)
        self.assertIn("not running", after.stdout)
        update = max(int(name) for name in training.checkpoints())
        self.assertIn(f"newest checkpoint, where --resume continues: update {update:,}\n", after.stdout)
        self.assertIn("values of the last evaluated epoch:\nmember     state       steps", after.stdout)
        self.assertEqual(run("status", "127.0.0.1:9").returncode, 1)
        self.assertEqual(run("status", self.folder).returncode, 2)

    def test_sac_trains_through_the_same_command(self):
        training = Training(self, "a", "--seeds", "0", "--steps", "2000")
        folder = training.folder
        result = run("train", "cartpole/sac", "--no-film", "--run-dir", folder, "--quiet", *training.arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr + training.logs())
        self.assertEqual(training.rows("progress.csv")[-1]["delta"], "")


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

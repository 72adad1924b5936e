"""Preempts roles repeatedly as a cluster does: with SIGTERM and a grace period, or with kill -9."""
import os
import re
import signal
import time
import unittest

from running import RunTest, Training, run
from patience import FACTOR, PATIENCE
from watching import Watch

# As in deploy/kubernetes/base, times the factor of all time limits.
GRACE_SECONDS = {role: FACTOR * seconds for role, seconds in {"actor": 15, "evaluator": 15, "replay": 30, "learner": 60}.items()}
ACTORS = 4
# The long form kills half the actors every ten seconds for three minutes: DATACOM_PREEMPTIONS=18
# DATACOM_PREEMPTION_EPISODES=1230 on two idle cores that play 120 episodes per second. Faster kills are a crash loop to `train`,
# which gives up at the sixth exit of one actor within 60 s.
PREEMPTIONS = int(os.environ.get("DATACOM_PREEMPTIONS", "4"))
CHECKPOINT_UPDATES = 300
# `train` gives up at the sixth exit of one process within 60 s.
SPOT = (("learner", signal.SIGKILL), ("actor-0", signal.SIGTERM), ("learner", signal.SIGTERM), ("replay", signal.SIGKILL),
        ("actor-1", signal.SIGKILL), ("learner", signal.SIGKILL), ("replay", signal.SIGTERM), ("learner", signal.SIGTERM),
        ("actor-0", signal.SIGKILL), ("learner", signal.SIGKILL))
EPISODES_BETWEEN = int(os.environ.get("DATACOM_PREEMPTION_EPISODES", "200"))


class PreemptionTest(RunTest):
    def leave(self, training, role):
        """Sends SIGTERM and returns the seconds until the process ended."""
        training.wait(lambda: training.role(role) is not None, role)
        process, begin = training.role(role), time.monotonic()
        os.kill(process, signal.SIGTERM)
        with Watch(training.folder) as watch:
            self.assertTrue(watch.wait(lambda: training.role(role) != process, GRACE_SECONDS[role.split("-")[0]], process), f"{role} stays" + training.logs())
        return time.monotonic() - begin

    def log(self, training, role):
        with open(os.path.join(training.folder, "logs", role + ".log"), encoding="utf-8") as file:
            return file.read()

    def test_every_role_drains_within_its_grace_period_and_loses_nothing(self):
        training = Training(self, "a", "--seeds", "0-1", "--steps", "24000", "--actors", "2").start()
        asked = ("actor-0", "replay", "learner", "evaluator", "actor-1", "learner", "replay")
        for place, role in enumerate(asked, start=1):
            training.wait_for_episodes(100 * place)
            print(f"{role} left within {self.leave(training, role):.2f} s")
        output = training.finish()
        training.check_complete(seeds=[0, 1], steps=24000, epochs=24)
        self.assertIn("work repeated: 0 updates (0.0 %) in 2 restarts of the learner\n", output)
        for role in ("actor-0", "actor-1", "replay", "learner", "evaluator-0"):
            self.assertIn(f"{role} ended (exit code 75); restarting", output)
        kept = training.check_rows_kept()
        for actor in ("actor-0", "actor-1"):
            log = self.log(training, actor)
            self.assertNotIn("unacknowledged", log)
            left = re.findall(r"left session=(\d+) acknowledged_rows=(\d+)", log)
            self.assertEqual(len(left), 2, log)  # stopped by SIGTERM, then finished
            for session, acknowledged in left:
                self.assertEqual(kept[session], int(acknowledged))
        updates = re.findall(r"checkpoint written update=(\d+)|listening .* update=(\d+) of", self.log(training, "learner"))
        self.assertEqual([written or taken_up for written, taken_up in updates][1:], [update for update, _ in updates if update for _ in (0, 1)])

    def updates(self, training):
        """The updates that the learner has reached, and those that its starts have repeated."""
        with open(os.path.join(training.folder, "checkpoints", "updates"), encoding="utf-8") as file:
            return tuple(map(int, re.fullmatch(r"reached (\d{20})\nrepeated (\d{20})\n", file.read()).groups()))

    def wait_until_stopped(self, process):
        """The kernel stops a process within milliseconds, and nothing tells when."""
        deadline = time.monotonic() + PATIENCE
        state = ""
        while state != "T":
            self.assertLess(time.monotonic(), deadline, f"state {state}")
            os.sched_yield()
            with open(f"/proc/{process}/stat", encoding="utf-8") as file:
                state = file.read().rsplit(")", 1)[1].split()[0]

    def test_ten_preemptions_repeat_no_more_than_a_checkpoint_interval_for_each_kill_of_the_learner(self):
        training = Training(self, "a", "--seeds", "0-1", "--steps", "30000", "--actors", "2",
                            overrides=[f"run.checkpoint_updates={CHECKPOINT_UPDATES}"]).start()
        expected = 0
        for place, (role, number) in enumerate(SPOT, start=1):
            training.wait_for_episodes(100 * place)
            training.wait(lambda role=role: training.role(role) is not None, role)
            victim = training.role(role)
            if (role, number) == ("learner", signal.SIGKILL):
                os.kill(victim, signal.SIGSTOP)  # so that the update which it has reached is known
                self.wait_until_stopped(victim)
                reached, repeated = self.updates(training)
                self.assertEqual(repeated, expected, "SIGTERM, or another role, repeats no update")
                lost = reached - max(map(int, training.checkpoints()))
                self.assertLessEqual(lost, CHECKPOINT_UPDATES)
                expected += lost
            os.kill(victim, number)
            training.wait(lambda role=role, victim=victim: training.role(role) not in (None, victim), f"successor of the {role}")
        output = training.finish()
        training.check_complete(seeds=[0, 1], steps=30000, epochs=30)
        reached, repeated = self.updates(training)
        self.assertEqual((reached, repeated), (29500, expected))
        share = 100 * expected / (29500 + expected)
        told = f"work repeated: {expected:,} update{'s' if expected != 1 else ''} ({share:.1f} %) in 5 restarts of the learner\n"
        self.assertIn(told, output)
        self.assertIn(told, run("status", training.folder).stdout)
        print(f"{len(SPOT)} preemptions: {told}", end="")
        self.assertEqual(sum(training.check_rows_kept().values()), 2 * 30000)
        verified = run("verify", training.folder)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def test_repeated_kills_of_half_the_actors_only_slow_the_run_down(self):
        steps = (PREEMPTIONS + 1) * EPISODES_BETWEEN * 25 // 1000 * 1000  # two members, episodes of 50 steps
        training = Training(self, "a", "--seeds", "0-1", "--steps", str(steps), "--actors", str(ACTORS), "--envs", "4",
                            overrides=[f"replay.capacity={steps}"]).start()  # all rows are checked at the end
        training.wait_for_episodes(1)
        begin = time.monotonic()
        for round_ in range(PREEMPTIONS):
            training.wait_for_episodes((round_ + 1) * EPISODES_BETWEEN)
            victims = [f"actor-{number}" for number in range(ACTORS) if number % 2 == round_ % 2]
            processes = [training.role(victim) for victim in victims]
            for process in processes:
                os.kill(process, signal.SIGKILL)
            for victim, process in zip(victims, processes):
                training.wait(lambda: training.role(victim) not in (None, process), f"successor of {victim}")
        status = run("status", training.folder).stdout
        self.assertEqual(sorted(re.findall(r"^session \d+: (\S+),", status, re.M)), [f"actor-{number}" for number in range(ACTORS)], status)
        training.finish()
        print(f"{PREEMPTIONS} preemptions: {steps} steps per member in {time.monotonic() - begin:.1f} s")
        training.check_complete(seeds=[0, 1], steps=steps, epochs=steps // 1000)
        for row in training.rows("progress.csv"):
            self.assertLessEqual(float(row["policy_lag"] or 0), 128)  # schedule.max_policy_lag
        kept = training.check_rows_kept()
        self.assertEqual(sum(kept.values()), 2 * steps)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

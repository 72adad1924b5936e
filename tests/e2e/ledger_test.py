"""Checks the safety ledger of real runs: every violation is recorded once and simulated again bit for bit, also after kills."""
import collections
import csv
import io
import os
import shutil
import struct
import unittest

from running import RunTest, STEP_HEADER, Training, run

RECORD = 32  # bytes of a task with one action
LONG = "task_options.horizon=150"  # the pole takes about 80 steps to fall into the unsafe region


def step_file(training, member):
    """(session, environment, episode, step, cost, check, action, checksum) of every recorded transition."""
    with open(os.path.join(training.folder, "ledger", f"member_{member}.steps"), "rb") as file:
        content = file.read()
    return list(struct.iter_unpack("<4IfIfI", content[STEP_HEADER:]))


class LedgerTest(RunTest):
    def check_complete(self, training, members, steps):
        """Checks that each transition is in its step file, each violation is a row, and the finished episodes agree with both."""
        rows = training.rows("ledger/violations.csv")
        self.assertEqual([int(row["id"]) for row in rows], list(range(1, len(rows) + 1)))
        order = [(int(row["env_steps"]), int(row["member"])) for row in rows]
        self.assertEqual(order, sorted(set(order)))
        sums, largest = collections.defaultdict(float), collections.defaultdict(float)
        for member in range(members):
            recorded = step_file(training, member)
            self.assertEqual(len(recorded), steps)
            mine = {int(row["env_steps"]): row for row in rows if int(row["member"]) == member}
            self.assertEqual(set(mine), {number for number, step in enumerate(recorded, start=1) if step[4] > 0})
            for number, row in mine.items():
                session, environment, episode, step, cost, _, action, _ = recorded[number - 1]
                self.assertEqual([int(row[name]) for name in ("session", "environment", "episode", "step")],
                                 [session, environment, episode, step])
                self.assertEqual(struct.pack("<f", float(row["cost"])), struct.pack("<f", cost))
                self.assertEqual(struct.pack("<f", float(row["executed_action0"])), struct.pack("<f", action))
                key = (member, session, environment, episode)
                sums[key] += cost
                largest[key] = max(largest[key], cost)
        finished = set()
        for row in training.rows("episodes.csv"):
            key = tuple(int(row[name]) for name in ("member", "session", "environment", "episode"))
            finished.add(key)
            self.assertEqual(float(row["sum_cost"]), sums.get(key, 0.0), key)
            self.assertEqual(float(row["max_violation"]), largest.get(key, 0.0), key)
        return rows, set(sums) - finished

    def replay(self, training, row, *more):
        result = run("replay-violation", training.folder, row["id"], *more)
        self.assertEqual(result.returncode, 0, (row, result.stdout, result.stderr))
        self.assertIn("bit for bit", result.stdout + result.stderr)
        return result

    def check_excerpt(self, training, rows):
        """Checks that the largest violation of the run is the first of an excerpt, and has the same steps there."""
        kept = os.path.join(self.folder, "kept")
        result = run("export", training.folder, "--format", "violations", "--largest", "2", "--out", kept)
        self.assertEqual(result.returncode, 0, result.stderr)
        shutil.copy(os.path.join(training.folder, "experiment.textproto"), kept)
        with open(os.path.join(kept, "ledger", "violations.csv"), encoding="utf-8") as file:
            excerpt = list(csv.DictReader(file))
        self.assertEqual([row["id"] for row in excerpt], ["1", "2"])
        largest = max(float(row["cost"]) for row in rows)
        self.assertEqual(float(excerpt[0]["cost"]), largest)
        place = ("member", "session", "environment", "episode", "step")
        original = next(row for row in rows if all(row[name] == excerpt[0][name] for name in place))
        result = run("replay-violation", kept, "1", "--csv")
        self.assertEqual(result.returncode, 0, result.stderr)
        again = self.replay(training, original, "--csv").stdout.splitlines()[:int(original["step"]) + 3]
        self.assertEqual(result.stdout.splitlines()[:len(again)], again)
        self.assertEqual(run("export", training.folder, "--format", "violations", "--out", training.folder).returncode, 2)

    def test_every_violation_of_a_run_is_recorded_and_can_be_simulated_again(self):
        training = Training(self, "run", "--seeds", "0-1", "--steps", "3000", overrides=[LONG]).start()
        training.finish()
        rows, _ = self.check_complete(training, members=2, steps=3000)
        self.assertGreater(len(rows), 100)
        for row in (rows[0], rows[len(rows) // 2], rows[-1]):
            self.replay(training, row)
            states = list(csv.DictReader(io.StringIO(self.replay(training, row, "--csv").stdout)))
            state = states[int(row["step"]) + 1]
            self.assertEqual(struct.pack("<f", float(state["cost"])), struct.pack("<f", float(row["cost"])))
            self.assertEqual(struct.pack("<f", float(state["action0"])), struct.pack("<f", float(row["executed_action0"])))
            # The recorded constraint: the slack belongs to k = CVaR - delta, with the member's delta at that time.
            k = float(row["cvar"]) - float(row["delta"])
            self.assertAlmostEqual(float(row["slack"]), max(-k, 1e-5), delta=1e-6)
        picture = os.path.join(self.folder, "violation.png")
        self.assertIn("violation.png", self.replay(training, rows[-1], "--out", picture).stdout)
        with open(picture, "rb") as file:
            self.assertEqual(file.read(8), b"\x89PNG\r\n\x1a\n")
        untrained = [row for row in training.rows("progress.csv") if row["epoch"] == "0"]
        self.assertAlmostEqual(float(rows[0]["delta"]), float(untrained[0]["delta"]), delta=1e-6)

        self.check_excerpt(training, rows)

        self.assertEqual(run("replay-violation", training.folder, str(len(rows) + 1)).returncode, 2)
        self.assertEqual(run("replay-violation", training.folder, "first").returncode, 2)
        self.assertEqual(run("replay-violation", self.folder, "1").returncode, 2)
        self.assertEqual(run("replay-violation", training.folder, "1", "--set", "task_options.horizon=9").returncode, 2)

        # Change one action of the last violation's episode.
        row = rows[-1]
        path = os.path.join(training.folder, "ledger", f"member_{row['member']}.steps")
        with open(path, "r+b") as file:
            file.seek(STEP_HEADER + (int(row["env_steps"]) - 1) * RECORD + 24)
            file.write(struct.pack("<f", -0.5 * float(row["executed_action0"]) + 0.1))
        result = run("replay-violation", training.folder, row["id"])
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn(f"record {int(row['env_steps']) - 1}: its checksum is wrong", result.stderr)

    def test_kills_neither_lose_nor_duplicate_a_violation(self):
        # Four lanes per member: at update 400 some are inside an episode.
        training = Training(self, "run", "--seeds", "0-1", "--steps", "6000", "--envs", "8",
                            overrides=["task_options.horizon=400", "run.checkpoint_updates=400"]).start()
        for update, role in ((400, "actor"), (1600, "learner"), (2400, "replay")):
            training.wait_for_checkpoint(update)
            training.kill_role(role)
        training.wait_for_checkpoint(3600)
        training.process.kill()
        training.process.wait()
        training.start("--resume").finish()
        rows, cut = self.check_complete(training, members=2, steps=6000)
        sessions = {int(row["session"]) for row in rows}
        self.assertGreater(len(sessions), 1)
        self.assertEqual({row["actor"] for row in rows}, {"actor-0"}, "ended sessions keep their actor's name")
        for row in (rows[0], rows[len(rows) // 2], rows[-1]):
            self.replay(training, row)
        # Violations in the killed actor's unfinished episodes are recorded too.
        cut = {key for key in cut if key[1] != max(sessions)}
        self.assertTrue(cut)
        key = min(cut)
        names = ("member", "session", "environment", "episode")
        self.replay(training, next(row for row in rows if tuple(int(row[name]) for name in names) == key))


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

#!/usr/bin/env python3
"""Resumes of run folders that were damaged or rolled back between two starts. usage: damage_test.py BIN_FOLDER"""
import os
import shutil
import signal
import unittest

from running import RunTest, Training


class DamageTest(RunTest):
    def interrupted(self, name, steps="6000"):
        """A run of 2 members, drained after checkpoint 500, with the folder as it was then."""
        training = Training(self, name, "--seeds", "0-1", "--steps", steps, overrides=["run.checkpoint_updates=250"]).start()
        training.wait_for_checkpoint(500)
        training.process.send_signal(signal.SIGINT)
        training.finish(75)
        return training

    def refused(self, training, *words):
        output = training.start("--resume").finish(2)
        for word in words:
            self.assertIn(word, output)

    def test_a_replay_older_than_the_checkpoint_is_refused_and_the_right_one_resumes(self):
        training = self.interrupted("run")
        replay = os.path.join(training.folder, "replay")
        shutil.copytree(replay, replay + ".older")
        first = max(int(name) for name in training.checkpoints())
        training.start("--resume").wait_for_checkpoint(first + 1000)
        training.process.send_signal(signal.SIGINT)
        training.finish(75)
        os.rename(replay, replay + ".newer")
        os.rename(replay + ".older", replay)
        self.refused(training, "the newest checkpoint was last used by start", "or one is older")
        shutil.rmtree(replay)
        os.rename(replay + ".newer", replay)
        training.start("--resume").finish()
        training.check_complete(seeds=[0, 1], steps=6000, epochs=6)

    def test_lost_sessions_and_damaged_rows_are_refused(self):
        training = self.interrupted("run")
        sessions = os.path.join(training.folder, "replay", "sessions")
        os.rename(sessions, sessions + ".lost")
        self.refused(training, "replay/sessions is missing")
        os.rename(sessions + ".lost", sessions)
        with open(os.path.join(training.folder, "replay", "member_1.rows"), "r+b") as file:
            file.seek(4096 + 16 + 100)
            byte = file.read(1)[0]
            file.seek(-1, os.SEEK_CUR)
            file.write(bytes([byte ^ 0x20]))
        self.refused(training, "member_1.rows: records 0 to 64 are damaged")

    def test_lines_after_the_recorded_length_of_a_record_are_cut(self):
        training = self.interrupted("run", steps="2500")
        for name in ("progress.csv", "episodes.csv", "ledger/violations.csv"):
            with open(os.path.join(training.folder, name), "a", encoding="utf-8") as file:
                file.write("a damaged line\n")
        training.start("--resume").finish()
        training.check_complete(seeds=[0, 1], steps=2500, epochs=3)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

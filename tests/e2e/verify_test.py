"""Verifies real runs: sound while they run, damaged after every change that matters, sound again after a repair."""
import os
import random
import re
import shutil
import signal
import struct
import tempfile
import unittest

from running import PATIENCE, RunTest, STEP_HEADER, Training, run

LONG = "task_options.horizon=150"  # the pole takes about 80 steps to fall into the unsafe region
RECORD = 32  # bytes of a task with one action
# The parts that only a learner writes, and how many of their bits are flipped. The test of VerifyRun changes the others
# in a folder of its own.
PARTS = {"progress.csv": 30, "tensorboard/member_1/events.out.tfevents.0.datacom": 30, "policies/epoch_0001.snapshot": 20}


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def sealed(number, content):
    """A record of a step file with the checksum of its place."""
    return content + struct.pack("<I", crc32c(struct.pack("<Q", number) + content))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, content):
    with open(path, "wb") as file:
        file.write(content)


def flipped(content, times, chance):
    begin = min(len(content), 64)
    places = [chance.randrange(begin) for _ in range(times // 3)]
    places += [chance.randrange(len(content)) for _ in range(times - len(places))]
    for place in places:
        changed = bytearray(content)
        changed[place] ^= 1 << chance.randrange(8)
        yield f"bit of byte {place}", changed


def rearranged(content, older, chance):
    """Files with missing, repeated, exchanged, erased or added pieces, and with the content of an older file."""
    size = len(content)
    used = len(content.rstrip(b"\0"))  # files that are mapped end with reserved space
    block = max(1, min(4096, used // 8))
    at, to = sorted(block * number for number in chance.sample(range(used // block), 2))
    piece, other = content[at:at + block], content[to:to + block]
    yield "nothing", b""
    yield "the first half", content[:size // 2]
    yield "all but a byte", content[:-1]
    yield "a beginning", content[:chance.randrange(1, used)]
    yield f"no block at {at}", content[:at] + content[at + block:]
    yield f"block {at} twice", content[:at] + piece + content[at:]
    yield f"block {at} also at {to}", content[:to] + piece + content[to + block:]
    yield f"blocks {at} and {to} exchanged", content[:at] + other + content[at + block:to] + piece + content[to + block:]
    yield f"block {at} erased", content[:at] + bytes(block) + content[at + block:]
    yield f"block {to} erased", content[:to] + bytes(block) + content[to + block:]
    yield "random bytes at the end", content + chance.randbytes(9)
    yield "a zero page at the end", content + bytes(4096)
    yield "its last block again", content + content[-block:]
    yield "an older file", older


class DamageTest(RunTest):
    """One training of 1500 steps, resumed up to 3000, is copied, changed and verified again and again."""

    @classmethod
    def setUpClass(cls):
        cls.kept = tempfile.mkdtemp(prefix="datacom-verify-")
        cls.addClassCleanup(shutil.rmtree, cls.kept, ignore_errors=True)

    def setUp(self):
        super().setUp()
        self.whole, self.older = os.path.join(self.kept, "run"), os.path.join(self.kept, "older")
        if not os.path.exists(self.older):
            made = Training(self, "run", "--seeds", "0-1", "--steps", "1500", overrides=[LONG, "run.checkpoint_updates=300"])
            made.folder = self.whole
            made.start().finish()
            shutil.copytree(self.whole, self.older)
            made.arguments[made.arguments.index("1500")] = "3000"
            made.start("--resume").finish()
        self.copy = os.path.join(self.folder, "copy")
        shutil.copytree(self.whole, self.copy)
        result = run("verify", self.copy)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        self.sound = result.stdout

    def path(self, name, folder=None):
        return os.path.join(folder or self.copy, name)

    def put_back(self, *names):
        for name in names:
            write(self.path(name), read(self.path(name, self.whole)))

    def newest(self, folder=None):
        return max((name for name in os.listdir(self.path("checkpoints", folder)) if name.isdigit()), key=int)

    def expect_damage(self, name, why, words=""):
        result = run("verify", self.copy)
        self.assertEqual(result.returncode, 1, (why, result.stdout, result.stderr))
        lines = [line for line in result.stdout.splitlines() if line.startswith(f"damage: {name}")]
        self.assertTrue(lines, (why, result.stdout))
        self.assertTrue(any(words in line for line in lines), (why, result.stdout))
        self.assertIn("damaged: ", result.stdout)
        return result.stdout

    def test_a_sound_run_has_a_line_for_each_kind_of_part(self):
        kinds = [line.split()[0] for line in self.sound.splitlines()]
        self.assertEqual(kinds, ["experiment", "sessions", "ledger", "rings", "episodes", "progress", "tensorboard", "policies",
                                 "checkpoints", "sound:"])
        self.assertIn("6000 steps", self.sound)
        self.assertIn("6000 rows held", self.sound)
        rows = len(self.path("episodes.csv") and read(self.path("episodes.csv")).splitlines()) - 1
        self.assertIn(f"{rows} rows, {rows} recounted from the ledger, {rows} assembled from the rings", self.sound)

    def check_changes(self, name, changes):
        """Every change of the file is found, with the file's name, or verify prints the same as before. Returns both counts."""
        content, found, same = read(self.path(name)), 0, 0
        named = "" if name == "experiment.textproto" else name  # it may be named, or the parts that it does not describe
        for what, changed in changes:
            if changed == content:
                continue
            write(self.path(name), changed)
            result = run("verify", self.copy)
            if result.returncode == 0:
                self.assertEqual(result.stdout, self.sound, (name, what))
                same += 1
                continue
            found += 1
            self.assertEqual(result.returncode, 1, (name, what, result.stdout, result.stderr))
            self.assertIn(f"damage: {named}", result.stdout, (name, what))
        write(self.path(name), content)
        return found, same

    def test_a_flipped_bit_is_found_or_changes_nothing(self):
        chance = random.Random(1)
        for name, times in PARTS.items():
            found, same = self.check_changes(name, flipped(read(self.path(name)), times, chance))
            self.assertEqual(found + same, times, name)
            self.assertGreaterEqual(found, times // 4, name)
            if name != "progress.csv":
                self.assertEqual(same, 0, f"every byte of {name} counts")
        self.assertEqual(run("verify", self.copy).stdout, self.sound)

    def test_a_file_with_other_pieces_is_found_or_changes_nothing(self):
        chance, total = random.Random(2), 0
        for name in [*PARTS, "experiment.textproto"]:
            source = name.replace("epoch_0001", "epoch_0000")
            found, same = self.check_changes(name, rearranged(read(self.path(name)), read(self.path(source, self.older)), chance))
            total += found + same
            if name != "experiment.textproto":
                self.assertEqual(same, 0, name)
        self.assertEqual(run("verify", self.copy).stdout, self.sound)
        self.assertGreaterEqual(total, 50)

    def test_a_part_that_is_older_than_the_others_is_named(self):
        newest = f"checkpoints/{self.newest()}"
        cases = [(["replay/member_0.rows", "replay/member_0.failures"], "replay/member_0.rows", "older than the ledger"),
                 (["replay/member_1.failures"], "replay/member_1.failures", "has cost > 0 and no copy"),
                 (["replay/sessions"], "replay/sessions", "older than the rows"),
                 (["ledger/member_1.steps"], "ledger/member_1.steps", "were recorded; checkpoints/"),
                 (["ledger/violations.csv"], "ledger/violations.csv", "were recorded; checkpoints/"),
                 (["episodes.csv"], "episodes.csv", "were recorded; checkpoints/"),
                 (["progress.csv"], "progress.csv", "were recorded; checkpoints/")]
        for names, damaged, words in cases:
            for name in names:
                write(self.path(name), read(self.path(name, self.older)))
            self.expect_damage(damaged, names, words)
            self.put_back(*names)
        for name in ("learner.state", "algorithm.state", "state.sha256"):
            source = self.path(f"checkpoints/{self.newest(self.older)}/{name}", self.older)
            write(self.path(f"{newest}/{name}"), read(source))
            self.expect_damage(newest, name)
            self.put_back(f"{newest}/{name}")
        for name in ("learner.state", "algorithm.state", "state.sha256"):
            write(self.path(f"{newest}/{name}"), read(self.path(f"checkpoints/{self.newest(self.older)}/{name}", self.older)))
        self.expect_damage(newest, "a whole older checkpoint", "holds update")

    def test_a_line_or_record_that_occurs_twice_or_not_at_all_is_named(self):
        for name in ("episodes.csv", "ledger/violations.csv", "progress.csv"):
            lines = read(self.path(name)).splitlines(keepends=True)
            middle = len(lines) // 2
            for changed in (lines[:middle] + lines[middle - 1:], lines[:middle] + lines[middle + 1:], lines + lines[-1:], lines[:-1]):
                write(self.path(name), b"".join(changed))
                self.expect_damage(name, f"{len(changed)} instead of {len(lines)} lines")
            self.put_back(name)
        name = "ledger/member_0.steps"
        content = read(self.path(name))
        record = content[STEP_HEADER + 700 * RECORD:STEP_HEADER + 701 * RECORD]
        self.assertEqual(sealed(700, record[:-4]), record, "the checksum of this test")
        begin = STEP_HEADER + 701 * RECORD
        write(self.path(name), content[:begin] + sealed(701, record[:-4]) + content[begin + RECORD:])
        self.expect_damage(name, "twice", "record 701")
        write(self.path(name), content + sealed(3000, content[-RECORD:-4]))
        self.expect_damage(name, "appended", "record 3000")
        self.expect_damage("replay/member_0.rows", "appended", "older than the ledger")
        self.put_back(name)

    def test_a_missing_part_that_another_part_proves_is_named(self):
        for name in ("replay/member_0.rows", "replay/member_0.failures", "replay/sessions", "replay/credit", "ledger/violations.csv",
                     "ledger/member_1.steps", "episodes.csv", "progress.csv", "policies/epoch_0002.snapshot",
                     "tensorboard/member_0/events.out.tfevents.0.datacom"):
            os.remove(self.path(name))
            self.expect_damage(name, "missing")
            self.put_back(name)
        shutil.rmtree(self.path("checkpoints"))
        self.expect_damage("checkpoints", "missing", "has begun to learn")
        write(self.path("checkpoints"), b"a file")
        self.expect_damage("checkpoints", "no folder", "has begun to learn")
        os.remove(self.path("checkpoints"))
        write(self.path("not_fetched"), b"checkpoints\n")
        fetched = run("verify", self.copy)
        self.assertEqual(fetched.returncode, 0, fetched.stdout)
        self.assertRegex(fetched.stdout, r"checkpoints +not fetched")

    def test_an_experiment_that_differs_from_the_checkpoints_is_named(self):
        name = "experiment.textproto"
        content = read(self.path(name)).decode()
        write(self.path(name), re.sub(r"discount: [\d.]+", "discount: 0.5", content).encode())
        self.expect_damage(name, "discount", "the experiment differs from the one of the checkpoint at update ")
        write(self.path(name), b"nonsense")
        self.expect_damage(name, "nonsense")

    def test_what_has_one_right_answer_is_repaired_and_the_run_continues(self):
        for name in ("ledger/violations.csv", "episodes.csv", "progress.csv"):
            write(self.path(name), read(self.path(name)) + b"7,1,2")
        for name in ("ledger/member_0.steps", "tensorboard/member_0/events.out.tfevents.0.datacom"):
            write(self.path(name), read(self.path(name)) + b"\0" * 7)
        write(self.path("progress.csv.tmp"), b"x")
        os.makedirs(self.path("checkpoints/99999.tmp"))
        newest = self.newest()
        state = bytearray(read(self.path(f"checkpoints/{newest}/algorithm.state")))
        state[1000] ^= 1
        write(self.path(f"checkpoints/{newest}/algorithm.state"), state)
        os.remove(self.path("replay/member_0.failures"))
        copies = bytearray(read(self.path("replay/member_1.failures")))
        copies[4096 + 500] ^= 4
        write(self.path("replay/member_1.failures"), copies)
        self.assertEqual(run("verify", self.copy).returncode, 1)

        result = run("verify", self.copy, "--repair")
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        for words in ("violations.csv: cut 5 bytes", "episodes.csv: cut 5 bytes", "progress.csv: cut 5 bytes", "member_0.steps: cut 7 bytes",
                      "progress.csv.tmp: removed", "checkpoints/99999.tmp: removed", f"checkpoints/{newest}: renamed",
                      "replay/member_0.failures: rebuilt", "replay/member_1.failures: rebuilt", "sound: no damage"):
            self.assertIn(words, result.stdout)
        rings = next(line for line in self.sound.splitlines() if line.startswith("rings"))
        self.assertIn(rings, result.stdout)
        self.assertEqual(run("verify", self.copy).returncode, 0)
        training = Training(self, "copy", "--seeds", "0-1", "--steps", "3500", overrides=[LONG, "run.checkpoint_updates=300"])
        training.start("--resume").finish()
        result = run("verify", self.copy)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("7000 steps", result.stdout)

    def test_what_has_no_right_answer_stays_and_is_named(self):
        path = self.path("replay/member_0.rows")
        content = bytearray(read(path))
        content[4096 + 1000] ^= 1
        write(path, content)
        result = run("verify", self.copy, "--repair")
        self.assertEqual(result.returncode, 1)
        self.assertIn("damage: replay/member_0.rows: records 0 to 64 are damaged", result.stdout)
        self.assertEqual(read(path), bytes(content))

    @unittest.skipIf(os.geteuid() != 0, "only root can try it")
    def test_what_another_user_may_not_read_is_not_repaired(self):
        other, parts = 10001, [f"checkpoints/{self.newest()}/algorithm.state", "replay/member_0.failures"]
        os.chmod(self.folder, 0o755)
        for folder, _, names in os.walk(self.copy):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                os.chown(path, other, other)
        for part in parts:
            os.chown(self.path(part), 0, 0)
            os.chmod(self.path(part), 0o600)
        result = run("verify", self.copy, "--repair", user=other, group=other, extra_groups=[])
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        for part in parts:
            self.assertIn(f"{part}: Permission denied", result.stdout)
            self.assertEqual(os.stat(self.path(part)).st_uid, 0, "it was not made anew")

    def test_a_folder_that_is_not_a_run_is_wrong_usage(self):
        for arguments in ((self.folder,), (), (self.copy, "--fix")):
            self.assertEqual(run("verify", *arguments).returncode, 2, arguments)


class RunningTest(RunTest):
    def test_a_running_run_is_sound_all_the_time_also_when_its_processes_are_killed(self):
        # Small rings, which are overwritten several times; rows and copies that are older are gone.
        training = Training(self, "run", "--seeds", "0-1", "--steps", "6000", "--envs", "8",
                            overrides=[LONG, "replay.capacity=800", "replay.failure_capacity=100", "run.checkpoint_updates=200",
                                       "schedule.tolerance_steps=64", "run.steps_per_epoch=500"]).start()
        training.wait(lambda: os.path.exists(os.path.join(training.folder, "experiment.textproto")), "the experiment")
        count, kills = 0, {1200: "actor", 2200: "learner", 3200: "replay"}
        while training.process.poll() is None:
            result = run("verify", training.folder)
            self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
            count += "running" in result.stdout
            reached = max(map(int, training.checkpoints()), default=0)
            for update in [update for update in kills if update <= reached]:
                victim = training.role(kills.pop(update))
                if victim is not None:
                    os.kill(victim, 9)
            if count == 3:
                refused = run("verify", training.folder, "--repair")
                self.assertEqual(refused.returncode, 2, refused.stdout + refused.stderr)
                self.assertIn("stop them first", refused.stderr)
        training.finish()
        self.assertGreater(count, 10)
        result = run("verify", training.folder)
        self.assertEqual(result.returncode, 0, result.stdout)
        held = int(re.search(r"(\d+) rows held", result.stdout).group(1))
        self.assertLess(held, 12000, "the rings were overwritten")
        print(f"{count} verifications while the run was running, {held} rows held at its end")

    def test_a_run_that_was_killed_is_sound_and_continues(self):
        training = Training(self, "run", "--seeds", "0-1", "--steps", "4000", overrides=[LONG, "run.checkpoint_updates=200"]).start()
        for update in (400, 1200):
            training.wait_for_checkpoint(update)
            training.process.kill()
            training.process.wait()
            result = run("verify", training.folder)
            while "running" in result.stdout:  # its roles are ending
                result = run("verify", training.folder)
            self.assertEqual(result.returncode, 0, result.stdout)
            training.start("--resume")
        training.finish()
        self.assertEqual(run("verify", training.folder).returncode, 0)

    def test_a_longer_run_that_continues_a_cut_epoch_is_sound(self):
        training = Training(self, "run", "--seeds", "0", "--steps", "1600",
                            overrides=[LONG, "run.checkpoint_updates=200", "run.steps_per_epoch=10000"]).start()
        training.finish()
        cut = max(map(int, training.checkpoints()))
        training.arguments[training.arguments.index("1600")] = "20000"
        training.start("--resume")
        training.wait_for_checkpoint(cut + 1)
        training.process.send_signal(signal.SIGTERM)
        self.assertEqual(training.process.wait(timeout=PATIENCE), 75)
        self.assertLess(max(map(int, training.checkpoints())), 9000, "the cut epoch had not ended again")
        result = run("verify", training.folder)
        self.assertEqual(result.returncode, 0, result.stdout)


if __name__ == "__main__":
    unittest.main()
# SPDX-License-Identifier: Apache-2.0

"""A run goes on from its archive on an empty machine: from a folder, and from an object store that fails."""
import fcntl
import hashlib
import os
import shutil
import signal
import struct
import subprocess
import unittest

from lockstep_test import records
from package_python import package_python
from running import BIN, PATIENCE, RunTest, Training, run, wait_for_end
from verify_test import crc32c
from watching import Watch

PYTHON = package_python(os.path.dirname(BIN))
SMALL_RING = ["replay.capacity=600", "run.checkpoint_updates=400"]  # rows are overwritten many times


def objects(place):
    """The size of each object by its name. Objects come and go meanwhile."""
    found = {}
    for folder, _, names in os.walk(place):
        for path in (os.path.join(folder, name) for name in names if not name.endswith((".tmp", ".partial"))):
            try:
                found[os.path.relpath(path, place)] = os.stat(path).st_size
            except FileNotFoundError:
                pass
    return found


def cuts(place):
    return sorted(name for name in objects(place) if name.startswith("cuts/"))


class ArchivedRunTest(RunTest):
    def training(self, name, *arguments, place=None, overrides=SMALL_RING):
        place = os.path.join(self.folder, "archive") if place is None else place
        return Training(self, name, "--seeds", "3-4", *(arguments or ("--steps", "8000")), "--archive", place, overrides=overrides)

    def check_copy(self, place, name):
        """Copies the archive to a new folder, which must be a sound run."""
        folder = os.path.join(self.folder, name)
        copied = run("copy", place, folder)
        self.assertEqual(copied.returncode, 0, copied.stderr)
        verified = run("verify", folder)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        return folder

    def kill_and_lose(self, training):
        processes = training.processes()
        training.process.kill()
        training.process.wait()
        for process in processes[1:]:
            wait_for_end(process)
        shutil.rmtree(training.folder)

    def copy_standing(self, training, to):
        """A copy of the run folder as it is at one moment."""
        processes = training.processes()
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        shutil.copytree(training.folder, to)
        for process in reversed(processes):
            os.kill(process, signal.SIGCONT)

    def refused(self, *words):
        done = run(*words)
        self.assertIn(done.returncode, (1, 2), done.stdout)
        return done.stderr


class ArchiveTest(ArchivedRunTest):
    def test_a_run_whose_machine_is_lost_goes_on_from_its_archive(self):
        place = os.path.join(self.folder, "archive")
        training = self.training("a").start()
        for count in (3, 6):
            training.wait(lambda: cuts(place) and int(cuts(place)[-1].split("/")[1][:9]) >= count, f"cut {count}")
            self.kill_and_lose(training)
            training.start("--resume")
        output = training.finish()
        self.assertIn(f"archive: {place} holds update 7,500", output)
        training.check_complete(seeds=[3, 4], steps=8000, epochs=8)
        self.assertEqual(len(cuts(place)), 2)
        copy = self.check_copy(place, "copy/")
        for name in ("progress.csv", "episodes.csv", "report.html", "ledger/member_1.steps", "run_id"):
            with open(os.path.join(training.folder, name), "rb") as one, open(os.path.join(copy, name), "rb") as other:
                self.assertEqual(one.read(), other.read(), name)

    def test_a_lockstep_run_that_goes_on_from_its_archive_has_the_same_bits(self):
        settings = ["hyper.delta_warmup=1500", "run.checkpoint_updates=300", "task_options.horizon=150"]
        arguments = ("--lockstep", "--steps", "2600")
        reference = Training(self, "reference", "--seeds", "3-4", *arguments, overrides=settings).start()
        reference.finish()
        place = os.path.join(self.folder, "archive")
        training = Training(self, "a", "--seeds", "3-4", *arguments, "--archive", place, overrides=settings).start()
        training.wait(lambda: cuts(place) and int(cuts(place)[-1].split("-")[1]) > 0, "a cut of an update")
        self.kill_and_lose(training)
        self.assertRegex(training.start("--resume").finish(), "copied update [1-9]")
        self.assertEqual(records(training), records(reference))
        # The run ends within an epoch, whose policies no checkpoint names.
        copy = Training(self, "copy")
        self.check_copy(place, "copy")
        self.assertEqual(records(copy), records(reference))
        self.assertTrue(os.path.exists(os.path.join(copy.folder, "policies/epoch_0003.snapshot")))

    def test_copies_of_a_running_run_are_sound_and_a_later_one_copies_only_what_is_new(self):
        training = Training(self, "a", "--seeds", "3-4", "--steps", "60000", overrides=["run.checkpoint_updates=400"]).start()
        place = os.path.join(self.folder, "there")
        sizes = []
        for count in range(1, 6):
            training.wait_for_checkpoint(1500 * count)
            both = [subprocess.Popen([os.path.join(BIN, "datacom"), "copy", training.folder, to], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                    for to in ("file://" + place, os.path.join(self.folder, "elsewhere"))]
            for process in both:
                said = process.communicate(timeout=PATIENCE)[0]
                self.assertEqual(process.returncode, 0, said)
            before = objects(place)
            self.check_copy(place, f"copy{count}")
            sizes.append(before)
        new = [sum(bytes_ for name, bytes_ in after.items() if name not in before) for before, after in zip(sizes, sizes[1:])]
        steps = [sum(bytes_ for name, bytes_ in held.items() if "/member_0.rows/" in name) for held in sizes]
        self.assertGreater(steps[-1], 2 * steps[0])
        whole = sum(sizes[-1].values())
        self.assertLess(min(new), whole / 3)
        self.assertLess(sum(new), 2 * whole)  # copying all each time: more than twice
        self.check_copy(os.path.join(self.folder, "elsewhere"), "other copy")
        training.process.send_signal(signal.SIGTERM)
        training.finish(75)

    def test_only_what_belongs_to_a_run_is_copied(self):
        place = os.path.join(self.folder, "archive")
        training = self.training("a").start()
        training.wait_for_checkpoint(400)
        for name in ("tls/tls.key", "tls/token", "notes.txt"):
            os.makedirs(os.path.dirname(os.path.join(training.folder, name)), exist_ok=True)
            with open(os.path.join(training.folder, name), "w", encoding="utf-8") as file:
                file.write("a secret")
        training.finish()
        copy = self.check_copy(place, "copy")
        self.assertFalse({"tls", "notes.txt", "logs", "targets.json"} & set(os.listdir(copy)))
        for name in objects(place):
            with open(os.path.join(place, name), "rb") as file:
                self.assertNotIn(b"a secret", file.read())

    def test_an_interrupted_copy_to_a_run_folder_is_made_again(self):
        place, folder = os.path.join(self.folder, "archive"), os.path.join(self.folder, "mounted")
        self.training("a").start().finish()
        os.makedirs(os.path.join(folder, ".restoring/run"))
        for name in ("policies/epoch_0001.snapshot", "progress.csv"):
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write("half")
        self.check_copy(place, "mounted")
        notes = os.path.join(self.folder, "noted", "notes.txt")
        os.makedirs(os.path.join(os.path.dirname(notes), ".restoring/run"))
        with open(notes, "w", encoding="utf-8") as file:
            file.write("of the user")
        self.assertIn("not empty", self.refused("copy", place, os.path.dirname(notes)))
        self.assertTrue(os.path.exists(notes))
        os.makedirs(os.path.join(folder, ".restoring"))  # a call that died after its last file: the run is whole
        self.assertIn("not empty", self.refused("copy", place, folder))
        self.assertTrue(os.path.exists(os.path.join(folder, "progress.csv")))
        os.rmdir(os.path.join(folder, ".restoring"))
        self.assertNotIn(".restoring", os.listdir(folder))

    def test_an_older_copy_of_the_folder_does_not_replace_a_newer_archive(self):
        place, old = os.path.join(self.folder, "archive"), os.path.join(self.folder, "old")
        training = self.training("a", "--steps", "30000").start()
        training.wait(lambda: len(cuts(place)) > 1, "two cuts")
        self.copy_standing(training, old)
        training.finish()
        newest = cuts(place)
        for refused in (self.refused("copy", old, place), self.refused("train", "--run-dir", old, "--resume", "--no-film", "--archive", place)):
            self.assertIn("is an older copy of run", refused)
        self.assertEqual(cuts(place), newest)
        self.check_copy(place, "copy")

    def test_policies_that_a_resumed_run_writes_again_are_copied_again(self):
        place = os.path.join(self.folder, "archive")
        settings = [*SMALL_RING, "run.steps_per_epoch=15000"]

        def policies():
            with open(os.path.join(self.folder, "a", "policies/epoch_0002.snapshot"), "rb") as file:
                return hashlib.sha256(file.read()).hexdigest()
        self.training("a", "--steps", "15400", overrides=settings).start().finish()  # its end cuts epoch 2 short
        first = policies()
        last = cuts(place)[-1]
        training = self.training("a", "--steps", "31000", overrides=settings).start("--resume")
        training.wait(lambda: cuts(place)[-1] > last, "a cut of the second learner")
        self.assertEqual(policies(), first)
        training.finish()
        self.assertNotEqual(policies(), first)
        self.check_copy(place, "copy")

    def test_pretraining_is_archived_although_its_update_stays_0(self):
        place, data = os.path.join(self.folder, "archive"), os.path.join(self.folder, "data")
        self.training("a").start().finish()
        self.assertEqual(run("export-dataset", os.path.join(self.folder, "a"), "--out", data).returncode, 0)
        pretraining = Training(self, "b", "--seeds", "3-4", "--steps", "2000", "--archive", place + "2",
                               overrides=["run.checkpoint_updates=400", f"pretrain.dataset={data}", "pretrain.updates=60000"]).start()
        pretraining.wait(lambda: len(cuts(place + "2")) > 1, "two cuts")
        old, count = os.path.join(self.folder, "old"), int(cuts(place + "2")[-1].split("/")[1][:9])
        self.copy_standing(pretraining, old)
        pretraining.wait(lambda: int(cuts(place + "2")[-1].split("/")[1][:9]) > count + 1, "newer cuts")
        self.assertTrue(cuts(place + "2")[-1].endswith("-0"))
        self.assertIn("is an older copy of run", self.refused("copy", old, place + "2"))
        self.kill_and_lose(pretraining)
        pretraining.start("--resume").finish()
        self.assertEqual(len(pretraining.rows("progress.csv")), 2 * 3)

    def test_a_cut_that_lacks_a_part_is_passed_over(self):
        place = os.path.join(self.folder, "archive")
        training = self.training("a").start()
        training.finish()
        newest = self.check_copy(place, "whole")
        with open(os.path.join(newest, "run_id"), encoding="utf-8") as file:
            identity = file.read().strip()
        self.assertIn(f"holds update 7,500 of run {identity}", self.refused("train", "cartpole/datacom", "--archive", place))
        self.assertIn("not empty", self.refused("copy", place, newest))
        older, last = cuts(place)
        report = next(name for name in objects(place) if name.startswith("parts/report.html/"))
        os.truncate(os.path.join(place, report), 1000)  # only the last cut has the report
        copy = self.check_copy(place, "older")
        self.assertFalse(os.path.exists(os.path.join(copy, "report.html")))
        left = [os.path.join(place, name) for name in ("parts/report.html/0-0123456789abcdef.tmp", f"{last}.tmp")]  # by a copy that was killed
        others = [os.path.join(place, name) for name in ("parts/gears/wheel.step", "cuts/000000009.mov")]  # of the user
        os.makedirs(os.path.join(place, "parts/gears"))
        for path in left + others:
            with open(path, "wb") as file:
                file.write(b"half")
        mended = run("copy", training.folder, place)  # the owner goes on behind the cut that is not whole
        self.assertEqual(mended.returncode, 0, mended.stderr)
        self.assertEqual([path for path in left + others if os.path.exists(path)], others)
        self.assertTrue(os.path.exists(os.path.join(self.check_copy(place, "mended"), "report.html")))
        for path in others:
            os.unlink(path)
        older, last = cuts(place)
        report = next(name for name in objects(place) if name.startswith("parts/report.html/"))
        os.truncate(os.path.join(place, report), 1000)
        os.unlink(os.path.join(place, older))
        self.assertIn(f"no cut is whole; the newest, {last} lacks {report}", self.refused("copy", place, os.path.join(self.folder, "none")))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "none")))

    def test_a_part_with_other_bytes_of_the_same_length_is_refused_by_name(self):
        place = os.path.join(self.folder, "archive")
        self.training("a").start().finish()
        part = next(name for name in objects(place) if name.startswith("parts/progress.csv/"))
        with open(os.path.join(place, part), "r+b") as file:
            byte = file.read(1)
            file.seek(0)
            file.write(bytes([byte[0] ^ 1]))
        self.assertIn(f"object {part}: other bytes than were archived", self.refused("copy", place, os.path.join(self.folder, "none")))

    def test_a_cut_that_names_a_file_outside_the_run_folder_is_refused(self):
        place = os.path.join(self.folder, "archive")
        self.training("a").start().finish()
        for name in cuts(place):
            with open(os.path.join(place, name), "r+b") as file:
                content = file.read().replace(b"progress.csv", b"../../xx.csv")
                head, payload = content[:8], content[24:]
                check = struct.pack("<I", crc32c(content[8:12] + content[16:24] + payload))
                file.seek(0)
                file.write(head + content[8:12] + check + content[16:24] + payload)
        self.assertIn('path "../../xx.csv" or a sum of its parts is none of a run folder', self.refused("copy", place, os.path.join(self.folder, "b/c")))
        self.assertFalse(os.path.exists(os.path.join(self.folder, "xx.csv")))

    def test_what_is_wrong_with_a_folder_is_named_and_the_archive_stays_as_it_is(self):
        place = os.path.join(self.folder, "archive")
        os.makedirs(os.path.join(place, "lost+found"), mode=0)  # as at the root of a disk
        training = self.training("a").start()
        training.finish()
        before = objects(place)
        sessions, report = (os.path.join(training.folder, name) for name in ("replay/sessions", "report.html"))
        os.rename(sessions, sessions + ".kept")
        self.assertIn("replay/sessions is missing, but the archive has it", self.refused("copy", training.folder, place))
        self.assertIn("replay/sessions is missing, but a resume needs it", self.refused("copy", training.folder, place + "_new"))
        os.rename(sessions + ".kept", sessions)
        os.remove(report)
        os.mkfifo(report)
        self.assertIn("report.html is not a regular file", self.refused("copy", training.folder, place))
        os.remove(report)
        os.symlink(os.path.abspath(__file__), report)  # as a stranger's folder may name a secret of the user's
        self.assertIn("report.html may not be a link", self.refused("copy", training.folder, place))
        self.assertIn(f"{training.folder} is a run folder", self.refused("copy", self.check_copy(place, "copy"), training.folder))
        state = os.path.join(training.folder, "archive")
        os.rename(state, state + ".kept")
        os.symlink(self.folder, state)
        self.assertIn("archive is a link", self.refused("copy", training.folder, place))
        locked = os.path.join(self.folder, "locked")
        os.mkdir(locked)
        handle = os.open(locked, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_EX)  # as another copy to the same folder
        self.assertIn("another process copies a run to it", self.refused("copy", place, locked))
        os.close(handle)
        self.check_copy(place, "locked")
        self.assertEqual(objects(place), before)

    def test_two_copies_of_a_run_cannot_write_one_archive(self):
        place = os.path.join(self.folder, "archive")
        first = self.training("a").start()
        first.wait(lambda: len(cuts(place)) > 1, "two cuts")
        second = self.training("b").start("--resume")
        second.wait_for_checkpoint(4000)
        output = first.process.communicate(timeout=PATIENCE)[0]
        self.assertEqual(first.process.returncode, 2, output)
        self.assertIn("which went on without " + first.folder, output)
        second.finish()
        self.assertIn("which went on without", self.refused("copy", first.folder, place))
        self.check_copy(place, "copy")

    def test_a_place_that_cannot_be_used_is_refused_before_the_run_begins(self):
        inside = os.path.join(self.folder, "a/archive")
        for place, reason in (("ftp://host/x", "unknown scheme"), ("s3://", "names no bucket"), ("file://x", "an absolute path"),
                              (inside, f"archive {inside} and run folder {os.path.dirname(inside)}: one is the other or lies in it")):
            with self.subTest(place):
                self.assertIn(reason, self.refused("train", "cartpole/datacom", "--run-dir", os.path.join(self.folder, "a"), "--archive", place))
                self.assertFalse(os.path.exists(os.path.join(self.folder, "a")))
        missing = self.refused("copy", os.path.join(self.folder, "nothing"), os.path.join(self.folder, "a"))
        self.assertIn("no archive of a run", missing)
        without = dict(os.environ, DATACOM_RCLONE="/nonexistent/rclone")
        done = run("train", "cartpole/datacom", "--run-dir", os.path.join(self.folder, "a"), "--archive", "s3://bucket/x", env=without)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("the program /nonexistent/rclone is missing", done.stderr)


class ObjectStore:
    """An S3 server with signatures on loopback, over a folder; it can be killed and started again."""

    def __init__(self, test, rclone):
        self.test, self.rclone, self.process = test, rclone, None
        self.buckets = os.path.join(test.folder, "buckets")
        os.makedirs(os.path.join(self.buckets, "bucket"))
        self.log, self.port = os.path.join(test.folder, "store.log"), "0"
        self.start()
        test.addCleanup(self.kill)
        self.environment = dict(os.environ, DATACOM_RCLONE=rclone, AWS_ACCESS_KEY_ID="someone", AWS_SECRET_ACCESS_KEY="a secret",
                                AWS_ENDPOINT_URL=f"http://127.0.0.1:{self.port}", RCLONE_CONFIG=os.path.join(test.folder, "none.conf"))

    def start(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([self.rclone, "serve", "s3", "--addr", f"127.0.0.1:{self.port}", "--auth-key", "someone,a secret",
                                             "--config", "/dev/null", "--cache-dir", os.path.join(self.test.folder, "cache"), self.buckets], stderr=log)

        def listens():
            with open(self.log, encoding="utf-8") as log:
                found = [line for line in log if "http://127.0.0.1:" in line]
            if found:
                self.port = found[0].split("http://127.0.0.1:")[1].split("/")[0]
            return bool(found)
        with Watch(self.test.folder) as watch:
            self.test.assertTrue(watch.wait(listens, PATIENCE, self.process.pid))

    def kill(self):
        self.process.kill()
        self.process.wait()


@unittest.skipIf(PYTHON is None, "PyPI cannot be reached: it has rclone; or the build has a sanitizer")
class ObjectStoreTest(ArchivedRunTest):
    """The same store as a bucket. Uploads are cut short by kills, and the store is away for a while."""

    def setUp(self):
        super().setUp()
        self.store = ObjectStore(self, os.path.join(os.path.dirname(PYTHON), "rclone"))

    def test_a_run_goes_on_from_a_bucket_after_kills_and_a_store_that_was_away(self):
        bucket, there = "s3://bucket/runs/five", os.path.join(self.store.buckets, "bucket/runs/five")
        training = self.training("a", "--steps", "30000", place=bucket)
        training.environment = self.store.environment
        training.start()
        training.wait(lambda: len(cuts(there)) > 0, "a cut")
        before = objects(there)
        training.wait(lambda: objects(there) != before, "a part of the next copy")  # then it is cut short
        self.kill_and_lose(training)
        training.start("--resume")
        training.wait_for_checkpoint(3000)
        self.store.kill()
        state = os.path.join(training.folder, "archive/state")

        def fails():
            with open(state, "rb") as file:
                return b"127.0.0.1" in file.read()
        training.wait(fails, "a copy that fails")
        status = run("status", training.folder)
        self.assertIn("the newest copy failed: s3://bucket/runs/five: ", status.stdout + status.stderr)
        self.store.start()
        output = training.finish()
        self.assertIn("; the copy is tried again", output)
        self.assertIn(f"archive: {bucket} holds update 29,500", output)
        training.check_complete(seeds=[3, 4], steps=30000, epochs=30)
        folder = os.path.join(self.folder, "copy")
        copied = run("copy", bucket, folder, env=self.store.environment)
        self.assertEqual(copied.returncode, 0, copied.stderr)
        verified = run("verify", folder)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)

    def test_a_bucket_that_forbids_deletion_keeps_old_parts_and_says_so(self):
        forbids = os.path.join(self.folder, "rclone")
        with open(forbids, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncase \" $* \" in *\" delete \"*) echo AccessDenied >&2; exit 1;; esac\nexec {self.store.rclone} \"$@\"\n")
        os.chmod(forbids, 0o755)
        bucket, there = "s3://bucket/kept", os.path.join(self.store.buckets, "bucket/kept")
        training = self.training("a", "--steps", "30000", place=bucket)
        training.environment = dict(self.store.environment, DATACOM_RCLONE=forbids)
        training.start().wait(lambda: len(cuts(there)) > 2, "a third cut")
        output = training.finish()
        self.assertEqual(output.count(f"archive: old parts stay: {bucket}: delete: AccessDenied"), 1, output)
        self.assertNotIn("is tried again", output)
        self.assertGreater(len(cuts(there)), 2)
        status = run("status", training.folder)
        self.assertIn("; old parts stay: " + bucket, status.stdout + status.stderr)
        longer = self.training("a", "--steps", "32000", place=bucket)
        longer.environment = self.store.environment  # with the right to delete
        longer.start("--resume").finish()
        self.assertEqual(len(cuts(there)), 2)
        status = run("status", training.folder)
        self.assertNotIn("old parts stay", status.stdout + status.stderr)

    def test_an_upload_that_outlives_its_run_keeps_nothing_locked(self):
        slow, begun = os.path.join(self.folder, "rclone"), os.path.join(self.folder, "begun")
        with open(slow, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncase \" $* \" in *\" --no-traverse {self.folder}\"*) echo $$ > {begun}; exec sleep {PATIENCE};; esac\nexec {self.store.rclone} \"$@\"\n")
        os.chmod(slow, 0o755)
        training = self.training("a", place="s3://bucket/slow")
        training.environment = dict(self.store.environment, DATACOM_RCLONE=slow)
        training.start().wait(lambda: os.path.exists(begun) and os.path.getsize(begun) > 0, "an upload")
        processes = training.processes()
        training.process.kill()
        training.process.wait()
        for process in processes[1:]:
            wait_for_end(process)
        with open(begun, encoding="utf-8") as file:
            upload = int(file.read())
        self.addCleanup(os.kill, upload, signal.SIGKILL)
        training.environment = self.store.environment
        training.start("--resume").finish()
        os.kill(upload, 0)  # it is still there

    def test_a_download_that_is_killed_is_made_again(self):
        training = self.training("a", place="s3://bucket/again")
        training.environment = self.store.environment
        training.start().finish()
        experiment = os.path.join(training.folder, "experiment.textproto")
        with open(experiment, "rb") as file:
            prepared = file.read()
        shutil.rmtree(training.folder)
        os.makedirs(training.folder)
        with open(experiment, "wb") as file:
            file.write(prepared)
        slow, begun = os.path.join(self.folder, "rclone"), os.path.join(self.folder, "begun")
        taken = os.path.join(training.folder, ".restoring/run/archive/owner")
        with open(slow, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncase \" $* \" in *\"/.restoring/objects \") if [ -e {taken} ]; then echo $$ > {begun}; exec sleep {PATIENCE}; fi;; esac\n"
                       f"exec {self.store.rclone} \"$@\"\n")
        os.chmod(slow, 0o755)
        training.environment = dict(self.store.environment, DATACOM_RCLONE=slow)
        training.start("--resume").wait(lambda: os.path.exists(begun) and os.path.getsize(begun) > 0, "a download")
        copy = training.processes()[1]
        training.process.kill()
        training.process.wait()
        wait_for_end(copy)  # or it would go on beside the next one
        with open(begun, encoding="utf-8") as file:
            self.addCleanup(os.kill, int(file.read()), signal.SIGKILL)
        self.assertTrue(os.path.exists(taken))
        self.assertFalse(os.path.exists(os.path.join(training.folder, "run_id")))
        training.environment = self.store.environment
        self.assertIn("copied update 7,500", training.start("--resume").finish())
        verified = run("verify", training.folder)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        folder = os.path.join(self.folder, "noted")  # a user writes into it before the download fails
        with open(slow, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\ncase \" $* \" in *\"/.restoring/objects \") echo mine > {folder}/notes.txt; exit 1;; esac\n"
                       f"exec {self.store.rclone} \"$@\"\n")
        failed = run("copy", "s3://bucket/again", folder, env=dict(self.store.environment, DATACOM_RCLONE=slow))
        self.assertEqual((failed.returncode, os.listdir(folder)), (1, ["notes.txt"]), failed.stderr)

    def test_a_wrong_secret_is_refused_before_the_run_begins(self):
        wrong = dict(self.store.environment, AWS_SECRET_ACCESS_KEY="another")
        done = run("train", "cartpole/datacom", "--run-dir", os.path.join(self.folder, "a"), "--archive", "s3://bucket/x", env=wrong)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("s3://bucket/x: list: ", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "a")))


if __name__ == "__main__":
    unittest.main(verbosity=2)  # tests/allowed_skips.txt has the names of skipped tests
# SPDX-License-Identifier: Apache-2.0

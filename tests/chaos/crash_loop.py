"""Trains a tiny population again and again, disturbs each run, resumes it to the end and checks its records.

usage: crash_loop.py BIN [--rounds N] [--seed S] [--only KIND] [--jobs J] [--long] [--keep]

Round i takes every choice from the seed S + i, so the seed alone repeats it (the processes' timing stays the machine's).
  kill       SIGKILL for a role, two roles, the command, or all of them, at random times
  failpoint  SIGKILL at the N-th pass of a place in the code (common/base/failpoint.h), in tests/failpoints
  power      SIGKILL for the replay, the learner or all; of what they had not synced (pages, new files, renames), all or a random half
             is lost
  disk       msync, fsync, rename or all writing fails for some time
  stop       SIGSTOP for some time
"""
import argparse
import collections
import concurrent.futures
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e")]
import run_checks  # noqa: E402  the path comes first
from lost_power import Disk  # noqa: E402
from running import BIN, FAILING_DISK, SOURCE, RunFolder, Training, run, wait_for_end  # noqa: E402
from watching import Watch  # noqa: E402

KINDS = ("kill", "failpoint", "power", "disk", "failpoint", "stop")  # in turn
ROLES = ("replay", "learner", "actor-0", "evaluator-0")
MEMBERS, EPOCH, CHECKPOINT = 2, 500, 50
LIMIT = 90  # seconds without a disturbance in which a run must end
NOT_THE_LEARNERS = ("replay", "cluster", "logs")  # in the run's folder
TESTS = os.path.join(os.path.dirname(BIN), "tests")
# Failpoints and about how often a run passes them. `trainer` passes once per update, `records.*cut` once per start of the learner.
FAILPOINTS = {"file.written": 60, "file.renamed": 60, "ring.records": 400, "ring.cursor": 400, "table.rows": 60, "table.failures": 200,
              "store.rows": 200, "store.credit": 200, "group.rows": 200, "group.cursors": 200, "group.credit": 200,
              "trainer.episodes": 600, "trainer.announced": 600, "records.flushed": 14, "records.uncut": 2, "records.cut": 2, "checkpoint.replaced": 16, "checkpoint.renamed": 16}
ERRORS = ("msync EIO", "msync ENOSPC", "fsync EIO", "fsync ENOSPC", "rename EIO", "rename ENOSPC", "write ENOSPC\nfallocate ENOSPC\nfsync ENOSPC")
PLAYING = set()  # the rounds that run


class Failed(Exception):
    pass


class Round(Training):
    """One run with its disturbances. `events` tells what was done."""

    def __init__(self, seed, kind, long, lockstep=None):
        test = unittest.TestCase()
        test.folder = tempfile.mkdtemp(prefix="datacom-chaos-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        RunFolder.__init__(self, test, os.path.join("disk", "run"))
        self.seed, self.kind, self.long, self.random = seed, kind, long, random.Random(f"{kind} {seed}")
        self.process, self.bin, self.environment, self.events, self.hits, self.place = None, BIN, dict(os.environ), [], 0, 0
        choose = self.random.random
        self.lockstep = choose() < 0.5 if lockstep is None else lockstep
        self.wrap = not self.lockstep and choose() < 0.25  # the rings' first rows are overwritten
        self.steps = 2500 if self.wrap else 1500
        name = list(FAILPOINTS)[seed // 3 % len(FAILPOINTS)]  # of the first failpoint: every third round, each in turn
        self.sync = kind in ("power", "disk") or choose() < 0.3 or (kind == "failpoint" and name.startswith("group."))
        settings = ["network.actor_hidden=[16,16]", "network.critic_hidden=[16,16]", "network.constraint_hidden=[16,16]", "replay.min_size=200",
                    f"run.steps_per_epoch={EPOCH}", "run.eval_episodes=1", f"run.checkpoint_updates={CHECKPOINT}", "task_options.horizon=120",
                    "hyper.delta_warmup=600", f"schedule.updates_per_step={0.25 if self.wrap else 0.5}", f"replay.sync={str(self.sync).lower()}"]
        if self.wrap:
            settings += ["replay.capacity=200", "replay.failure_capacity=50"]
        self.arguments = ["--seeds", "0-1", "--steps", str(self.steps), *(word for item in settings for word in ("--set", item))]
        self.actors = 1
        if self.lockstep:
            self.arguments.append("--lockstep")
        else:
            self.actors = self.random.choice((1, 2))
            self.arguments += ["--actors", str(self.actors), "--envs", str(self.random.choice((2, 6)))]
        self.roles = ROLES + ("actor-1",) * (self.actors - 1)
        PLAYING.add(self)

    def path(self, *names):
        return os.path.join(self.test.folder, *names)

    def start(self, *_):
        self.end_all()
        resume = ["--resume"] if os.path.exists(os.path.join(self.folder, "experiment.textproto")) else []
        command = [os.path.join(self.bin, "datacom"), "train", "cartpole/datacom", "--no-film", "--run-dir", self.folder, *self.arguments, *resume]
        with open(self.path("output"), "ab") as output:
            output.write((" ".join(command) + "\n").encode())
            output.flush()
            self.process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=SOURCE, env=self.environment)

    def end_all(self):
        """Kills the command and its roles at once."""
        if self.process is None or self.process.poll() is not None:
            return
        roles = self.running()
        self.process.kill()
        for process in roles.values():
            signal_process(process, signal.SIGKILL)
        self.process.wait()
        for process in roles.values():
            wait_for_end(process)

    def running(self):
        return {role: process for role in self.roles if (process := self.role(role)) is not None}

    def pause(self, seconds):
        """Waits, but not longer than the run; returns whether it still runs."""
        if self.process.poll() is None:
            wait_for_end(self.process.pid, seconds)
        return self.process.poll() is None

    def wait_until(self, condition, seconds=LIMIT):
        with Watch(self.path()) as watch:
            return watch.wait(lambda: self.process.poll() is not None or condition(), seconds, self.process.pid) and self.process.poll() is None

    def reach(self):
        """Waits for a random later place in the run; returns whether the run still goes on there."""
        if self.random.random() < 0.2:
            seconds = self.random.uniform(0, 1)
            self.events.append(f"after {seconds:.2f} s")
            return self.pause(seconds)
        self.place = self.random.uniform(self.place, 1)
        updates = (self.steps - 200) // (4 if self.wrap else 2)
        update, seconds = int(self.place * updates) // CHECKPOINT * CHECKPOINT, self.random.uniform(0, 0.2)
        self.events.append(f"{seconds:.2f} s after checkpoint {update}")
        return self.wait_until(lambda: any(int(name) >= update for name in self.checkpoints())) and self.pause(seconds)

    def hit(self, names, number):
        """Sends the signal to roles ("command" is the command itself)."""
        self.events.append(f"{signal.Signals(number).name} for {', '.join(names)}")
        running = {**self.running(), "command": self.process.pid}
        for name in names:
            if name in running:
                self.hits += signal_process(running[name], number)

    def victims(self):
        how = self.random.choice(("one", "one", "two", "command", "all"))
        if how == "command":
            return ["command"]
        return ["command", *self.roles] if how == "all" else self.random.sample(self.roles, 1 if how == "one" else 2)

    # The kinds.

    def kill(self):
        self.start()
        for _ in range(self.random.randint(1, 3)):
            if not self.reach():
                return
            victims = self.victims()
            self.hit(victims, signal.SIGKILL)
            if "command" in victims:
                self.process.wait()
                self.start()

    def failpoint(self):
        self.bin = os.path.join(TESTS, "failpoints")
        second, names = self.random.random() < 0.4, list(FAILPOINTS)
        reached = [name for name in names if self.sync or not name.startswith("group.")]  # a group is committed with replay.sync only
        for count in range(1 + second):
            name = self.random.choice(reached) if count else names[self.seed // 3 % len(names)]
            order = f"{name}:{self.random.randint(1, FAILPOINTS[name] if count == 0 else max(2, FAILPOINTS[name] // 4))}"
            self.events.append(order)
            counter = self.path(f"passes_{count}")
            self.environment.update(DATACOM_FAILPOINT=order, DATACOM_FAILPOINT_COUNTER=counter)
            self.start()
            if name.endswith("cut") and self.reach():
                self.hit(["learner"], signal.SIGKILL)
            self.wait_until(lambda counter=counter: os.path.exists(counter + ".reached"))
            self.hits += os.path.exists(counter + ".reached")
            if self.process.poll() == 0:
                return

    def power(self):
        disk = Disk(self.path("disk"), self.path("shadow"), FAILING_DISK, self.random)
        self.environment.update(disk.environment)
        self.start()
        for _ in range(self.random.randint(1, 2)):
            victim, kept = self.random.choice(("all", "all", "replay", "learner")), self.random.choice((0, 0.5))
            if not self.reach():
                return
            if victim == "all":
                self.lose_all_power(disk, kept)
                self.start()
            elif victim in self.running():
                signal_process(self.process.pid, signal.SIGSTOP)  # so that it does not start the successor yet
                process = self.running()[victim]
                signal_process(process, signal.SIGKILL)
                wait_for_end(process)
                folder, spared = (self.folder, NOT_THE_LEARNERS) if victim == "learner" else (os.path.join(self.folder, "replay"), ())
                self.events.append(f"power of the {victim} lost: {disk.lose_power(folder, kept, spared)} pages and lists of entries")
                self.hits += 1
                signal_process(self.process.pid, signal.SIGCONT)

    def lose_all_power(self, disk, kept):
        """The logs stay, because the checks need them. Once a role has begun, the run's own files must be on the disk."""
        self.end_all()
        logs, aside = os.path.join(self.folder, "logs"), self.path("logs")
        begun = os.path.isdir(logs) and os.listdir(logs)
        if begun:
            os.rename(logs, aside)
        self.events.append(f"power of all lost: {disk.lose_power(self.path('disk'), kept)} pages and lists of entries")
        self.hits += 1
        if begun:
            for name in ("experiment.textproto", "run_id"):
                run_checks.require(os.path.exists(os.path.join(self.folder, name)), name, "is lost although the roles had begun")
            shutil.rmtree(logs, ignore_errors=True)
            os.rename(aside, logs)

    def disk(self):
        trigger = self.path("disk_fails")
        self.environment.update(LD_PRELOAD=FAILING_DISK, DATACOM_TEST_DISK_FAILS=trigger)
        self.start()
        errors, seconds = self.random.choice(ERRORS), self.random.uniform(0.3, 2)
        if not self.reach():
            return
        with open(trigger + ".new", "w", encoding="utf-8") as file:
            file.write(errors)
        os.rename(trigger + ".new", trigger)
        self.events.append(f"{errors.splitlines()} for {seconds:.2f} s")
        self.hits += 1
        self.pause(seconds)
        os.remove(trigger)

    def stop(self):
        self.start()
        for _ in range(self.random.randint(1, 2)):
            victims, seconds = self.victims(), self.random.uniform(0.2, 2)
            if self.long and self.random.random() < 0.05:
                seconds = 60
            if not self.reach():
                return
            self.hit(victims, signal.SIGSTOP)
            stopped = {**self.running(), "command": self.process.pid}
            self.pause(seconds)
            self.events.append(f"SIGCONT after {seconds:.1f} s")
            for name in victims:
                if name in stopped:
                    signal_process(stopped[name], signal.SIGCONT)

    # To the end.

    def finish(self):
        for _ in range(8):
            self.wait_until(lambda: False)
            code = self.process.poll()
            if code is None:
                raise Failed(f"the run does not end within {LIMIT} s\n" + run("status", self.folder).stdout)
            if code == 0:
                return
            if not (code == -signal.SIGKILL or (code == 1 and self.kind == "disk")):
                raise Failed(f"`train` ended with {code}")
            self.events.append(f"resumed after {code}")
            self.start()
        raise Failed("`train` ended again and again")

    def check(self, reference):
        run_checks.check_run(self.folder, MEMBERS, self.steps, EPOCH)
        if not self.wrap:
            kept = self.check_rows_kept()
            run_checks.require(sum(kept.values()) == MEMBERS * self.steps, "the replay holds", kept)
        if VERIFIES:
            verified = run("verify", self.folder)
            run_checks.require(verified.returncode == 0, "datacom verify:", verified.stdout, verified.stderr)
        if self.lockstep and reference is not None:
            found = run_checks.lockstep_records(self.folder, MEMBERS)
            for name in sorted({*found, *reference}):
                run_checks.require(found.get(name) == reference.get(name), name, "differs from the file of an undisturbed lockstep run")


def signal_process(process, number):
    try:
        os.kill(process, number)
    except ProcessLookupError:
        return False
    return True


def leave(*_):
    """On SIGTERM or Ctrl-C: leaves neither processes nor folders."""
    for one in list(PLAYING):
        one.end_all()
        shutil.rmtree(one.path(), ignore_errors=True)
    os._exit(1)


REFERENCE, REFERENCE_LOCK = {}, threading.Lock()  # made by lockstep_reference


def lockstep_reference():
    """The records of an undisturbed lockstep run; made once."""
    with REFERENCE_LOCK:
        if not REFERENCE:
            calm = Round(0, "kill", long=False, lockstep=True)
            calm.start()
            calm.finish()
            REFERENCE.update(run_checks.lockstep_records(calm.folder, MEMBERS))
            PLAYING.discard(calm)
            shutil.rmtree(calm.path())
    return REFERENCE


def play(seed, kind, options):
    """Returns (kind, failure or None, disturbances that hit)."""
    begin = time.monotonic()
    one, failure = Round(seed, kind, options.long), None
    try:
        reference = lockstep_reference() if one.lockstep else None
        getattr(one, kind)()
        one.finish()
        one.check(reference)
    except Exception as error:  # noqa: BLE001  every failure is reported with the command that repeats it
        failure = f"{type(error).__name__}: {error}"
    finally:
        one.end_all()
        one.test.doCleanups()
    what = " ".join(("lockstep",) * one.lockstep + ("wrapping",) * one.wrap + ("undisturbed",) * (one.hits == 0))
    print(f"{'FAILED' if failure else 'ok    '} {kind:9} seed {seed:4} {time.monotonic() - begin:5.1f} s {what} ({'; '.join(one.events)})")
    if failure:
        with open(one.path("output"), encoding="utf-8", errors="replace") as file:
            print(failure, "--- output", "".join(file.readlines()[-30:]), one.logs(), sep="\n")
        print(f"repeat it with: {sys.argv[0]} {BIN} --rounds 1 --seed {seed} --only {kind}{' --long' * options.long}")
    PLAYING.discard(one)
    if failure and options.keep:
        print("kept:", one.path())
    else:
        shutil.rmtree(one.path(), ignore_errors=True)
    sys.stdout.flush()
    return kind, failure, one.hits


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=sorted(set(KINDS)))
    parser.add_argument("--jobs", type=int, default=max(2, os.cpu_count() or 2), help="rounds at a time")
    parser.add_argument("--long", action="store_true", help="some stops last 60 s")
    parser.add_argument("--keep", action="store_true", help="keep the folders of failed rounds")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave)
    begin, results = time.monotonic(), collections.defaultdict(list)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        seeds = range(options.seed, options.seed + options.rounds)
        rounds = [pool.submit(play, seed, options.only or KINDS[seed % len(KINDS)], options) for seed in seeds]
        for kind, failure, hits in (future.result() for future in rounds):
            results[kind].append((failure, hits))
    for kind, played in results.items():
        failures = sum(failure is not None for failure, _ in played)
        print(f"{kind}: {len(played)} rounds, {sum(hits > 0 for _, hits in played)} of them disturbed, {failures} failed")
    print(f"{options.rounds} rounds in {time.monotonic() - begin:.0f} s")
    return 1 if any(failure is not None for played in results.values() for failure, _ in played) else 0


VERIFIES = run("verify", "--help").returncode == 0

if __name__ == "__main__":
    sys.exit(main())
# SPDX-License-Identifier: Apache-2.0

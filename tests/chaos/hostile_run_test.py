"""Hostile peers and a real training: the memory of replay and learner stays bounded and the run goes on.

One run is measured in windows of equally many updates, with and without hostile peers (hostile_peers.cc, reset_flood.py). Speed is updates per
second of processor time of the run's own processes (replay, learner, actor, evaluator). Wall time would count the processor time
of the hostile peers, which belong on other machines, and of everything else that this machine does. What hostile peers make replay and
learner compute counts in full, as if it could not run on another core. Waiting does not count; `wall` shows it on a quiet machine.
"""
import collections
import os
import signal
import statistics
import subprocess
import sys
import time
import unittest

sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e")]
from running import BIN, SOURCE, RunTest, Training  # noqa: E402  the path comes first

HOSTILE_PEERS = os.path.join(os.path.dirname(BIN), "tests", "hostile_peers")
PAIRS = 5
CHECKPOINT = 1000
WINDOW = 6  # checkpoints: three rounds of the hostile peers
ALLOWED_KILOBYTES = 64 << 10
LEAST_SPEED = 0.8
FLOODED_KILOBYTES = 128 << 10  # without the limit of calls it is above 2 GB
LEAST_SPEED_IN_FLOOD = 0.5
RUN = ("replay", "learner", "actor-0", "evaluator-0")
MEASURED = ("replay", "learner")
Window = collections.namedtuple("Window", "processor wall memory")


def processor_seconds(process):
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def private_kilobytes(process):
    with open(f"/proc/{process}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))


class HostileRunTest(RunTest):
    def begin(self, *arguments):
        self.training = Training(self, "run", "--seeds", "0", "--steps", "1000000", "--quiet", *arguments, overrides=(
            "network.actor_hidden=[128,128]", "network.critic_hidden=[128,128]", "network.constraint_hidden=[128,128]",
            f"run.checkpoint_updates={CHECKPOINT}", "run.steps_per_epoch=100000"))
        self.training.start()
        self.addCleanup(self.stop)
        self.checkpoint = 0
        self.next_checkpoint()
        self.processes = {role: self.training.role(role) for role in RUN}

    def stop(self):
        self.training.process.send_signal(signal.SIGTERM)
        self.training.process.communicate()

    def next_checkpoint(self):
        self.training.wait_for_checkpoint(self.checkpoint + CHECKPOINT)
        self.checkpoint = max(map(int, self.training.checkpoints()))

    def address(self, role):
        with open(os.path.join(self.training.folder, "cluster", role + ".address"), encoding="utf-8") as file:
            return file.read().strip()

    def window(self):
        """Seconds per update, and the most private memory of each process seen."""
        self.next_checkpoint()
        first, begin, memory = self.checkpoint, time.monotonic(), collections.Counter()
        spent = sum(map(processor_seconds, self.processes.values()))
        for _ in range(WINDOW):
            self.next_checkpoint()
            for role in MEASURED:
                memory[role] = max(memory[role], private_kilobytes(self.processes[role]))
        updates = self.checkpoint - first
        spent = sum(map(processor_seconds, self.processes.values())) - spent
        return Window(spent / updates, (time.monotonic() - begin) / updates, memory)

    def hostile_window(self, program, *arguments):
        peers = subprocess.Popen([*program, self.address("replay"), self.address("learner"), *arguments], stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(peers.stdout.readline(), "ready\n")
            window = self.window()
            self.assertIsNone(peers.poll(), "the hostile peers ended")
            return window
        finally:
            peers.kill()
            peers.communicate()

    def check_roles(self):
        for role in RUN:
            self.assertEqual(self.training.role(role), self.processes[role], f"the {role} was started again")

    def test_hostile_peers_neither_slow_a_run_down_nor_grow_its_memory(self):
        self.begin()
        with open(os.path.join(self.training.folder, "run_id"), encoding="utf-8") as file:
            run_id = file.read().strip()
        self.window()  # the run's own memory has grown by then
        before = {role: private_kilobytes(self.processes[role]) for role in MEASURED}
        speeds, rises = collections.defaultdict(list), collections.Counter()
        for _ in range(PAIRS):
            hostile, alone = self.hostile_window([HOSTILE_PEERS], run_id), self.window()
            for role in MEASURED:
                rises[role] = max(rises[role], hostile.memory[role] - before[role])
            speeds["processor"].append(alone.processor / hostile.processor)
            speeds["wall"].append(alone.wall / hostile.wall)
            print(f"with hostile peers: {1e6 * hostile.processor:.0f} us of processor time per update, without {1e6 * alone.processor:.0f};",
                  f"memory rose by {({role: hostile.memory[role] - before[role] for role in MEASURED})} kB")
        print("speed with hostile peers, without = 1:", {name: round(statistics.median(values), 3) for name, values in speeds.items()})
        print("largest rise of private memory:", dict(rises), "kB")
        self.check_roles()
        for role in MEASURED:
            self.assertLess(rises[role], ALLOWED_KILOBYTES, role)
        self.assertGreater(statistics.median(speeds["processor"]), LEAST_SPEED)

    def check_flood(self, *credentials):
        self.window()
        before = {role: private_kilobytes(self.processes[role]) for role in MEASURED}
        flood = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "reset_flood.py")]
        flooded = self.hostile_window(flood, *credentials)
        alone = self.window()
        print(f"in the flood {flooded.wall / alone.wall:.2f} times the time per update, {flooded.processor / alone.processor:.2f} of a processor;",
              f"most memory {dict(flooded.memory)} kB, before {before}")
        self.check_roles()
        for role in MEASURED:
            self.assertLess(flooded.memory[role], FLOODED_KILOBYTES, role)
        while any(private_kilobytes(self.processes[role]) > before[role] + ALLOWED_KILOBYTES / 4 for role in MEASURED):
            self.next_checkpoint()  # its memory returns
        self.assertLess(flooded.processor / alone.processor, 1 / LEAST_SPEED_IN_FLOOD)

    def test_a_run_goes_on_while_peers_begin_and_reset_calls(self):
        self.begin()
        self.check_flood()

    def test_a_run_goes_on_while_peers_with_its_certificate_begin_and_reset_calls(self):
        folder = os.path.join(self.folder, "tls")
        subprocess.run([os.path.join(SOURCE, "deploy", "dev", "make_tls.sh"), folder], check=True)
        self.begin("--tls", folder)
        self.check_flood("--tls", folder)


if __name__ == "__main__":
    unittest.main(verbosity=2)
# SPDX-License-Identifier: Apache-2.0

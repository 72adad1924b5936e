#!/usr/bin/env python3
"""The whole road: member updates per second of `datacom train` beside those of the learner alone, on the same threads.

usage: tests/bench/train.py [--datacom build/release/bin/datacom] [--members 1,2,8,32] [--lanes 1,16] [--seconds 20]

Trains D-ATACOM on air hockey with all roles on this machine: one actor, replay, learner with as many threads as the
machine has processors. When learning has begun, it compares the metrics of the learner and the processor times of all
roles at the start and at the end of a window. Just before, `datacom-bench-learner --threads` measures the same updates
from memory. The share is the first rate over the second. It prints one line for each pair of members and lanes, with
the processors that each role keeps busy. Epochs, evaluations and checkpoints lie outside the window.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

from load import ROOT, scrape, wait, wait_until

EXPERIMENT = """
name: "road"
description: "A whole run beside the learner alone: tests/bench/train.py"
task: "air_hockey"
algorithm: "datacom"
run { env_steps: 10000000 steps_per_epoch: 10000000 eval_episodes: 1 checkpoint_updates: 1000000 }
replay { capacity: 50000 failure_capacity: 5000 min_size: 500 }
"""
WARM_UP = 500  # updates of each member before the window
ROLES = ("learner", "actor", "replay")


def processors():
    return len(os.sched_getaffinity(0))


def learner_alone(datacom, members, seconds):
    """Member updates per second of a learner with all processors, from memory."""
    threads = processors()
    command = [os.path.join(os.path.dirname(datacom), "datacom-bench-learner"), "--threads", str(threads), "--members",
               str(members), "--seconds", str(seconds), "--only", "datacom"]
    results = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["benchmarks"]
    name = f"learner/datacom/obs16/M={members}/threads={threads}"
    return next(result["value"] for result in results if result["name"] == name)


def busy_seconds(folder):
    """Processor time of each role of the run so far."""
    tick, found = os.sysconf("SC_CLK_TCK"), dict.fromkeys(ROLES, 0.0)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                words = file.read().split("\0")
            with open(f"/proc/{pid}/stat") as file:
                fields = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        role = os.path.basename(words[0]).removeprefix("datacom-")
        if role in found and any(folder in word for word in words):
            found[role] += (int(fields[11]) + int(fields[12])) / tick
    return found


def updates_of(known):
    return scrape(known["learner"])[("datacom_learner_updates_total", "")]


def whole_run(datacom, members, lanes, seconds):
    """Member updates per second, and the processors that each role keeps busy."""
    base = tempfile.mkdtemp(prefix="datacom-road-")
    folder, path = os.path.join(base, "run"), os.path.join(base, "road.textproto")
    with open(path, "w") as file:
        file.write(EXPERIMENT)
    with open(folder + ".log", "w") as log:
        train = subprocess.Popen([datacom, "train", path, "--no-film", "--seeds", f"0-{members - 1}", "--envs", str(members * lanes),
                                  "--run-dir", folder], stdout=log, stderr=subprocess.STDOUT)
    try:
        known = wait_until(train, folder, lambda known: updates_of(known) >= WARM_UP, f"fewer than {WARM_UP} updates")
        begin, busy, start = updates_of(known), busy_seconds(folder), time.monotonic()
        wait(train, folder, seconds)
        end, after, span = updates_of(known), busy_seconds(folder), time.monotonic() - start
        return members * (end - begin) / span, {role: (after[role] - busy[role]) / span for role in ROLES}
    finally:
        train.send_signal(signal.SIGTERM)
        train.wait()
        shutil.rmtree(base)


def numbers(text):
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datacom", default=os.path.join(ROOT, "build/release/bin/datacom"))
    parser.add_argument("--members", type=numbers, default=[1, 2, 8, 32])
    parser.add_argument("--lanes", type=numbers, default=[1, 16])
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    print(f"{processors()} processors, load {os.getloadavg()[0]:.1f}, windows of {options.seconds:.0f} s; member updates per second")
    print("members lanes    train  learner alone  share   processors: " + "  ".join(ROLES), flush=True)
    for members in options.members:
        for lanes in options.lanes:
            alone = learner_alone(options.datacom, members, options.seconds / 4)
            rate, busy = whole_run(options.datacom, members, lanes, options.seconds)
            used = "  ".join(f"{busy[role]:{len(role)}.2f}" for role in ROLES)
            print(f"{members:7} {lanes:5} {rate:8,.0f} {alone:14,.0f} {rate / alone:6.2f}               {used}", flush=True)


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

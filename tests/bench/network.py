#!/usr/bin/env python3
"""Rows and updates per second of a run over networks that lose frames, are far or are slow.

usage: tests/bench/network.py [BIN] [--seconds 15] [--experiment cartpole/datacom] [--schedules 16/4,64/16,256/64]

BIN is the folder of the programs, by default build/release/bin. Needs root. Each role of a run of two members and two actors is on a host
of its own (tests/testing/hosts.py). A schedule is tolerance_steps/publish_period. The window begins after the first 500 updates. The
network runs in this process and competes with the roles for the processors.
"""
import argparse
import os
import re
import shutil
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
    sys.argv.insert(1, os.path.join(ROOT, "build", "release", "bin"))  # running.py takes it
sys.path[:0] = [os.path.join(ROOT, "tests", "e2e"), os.path.join(ROOT, "tests", "testing")]
from hosts import Link, unavailable  # noqa: E402  the path comes first
from hosts_running import RunOnHosts  # noqa: E402

LINKS = {"none": Link(), "1 % loss": Link(loss=0.01), "100 ms round trip": Link(delay=0.05), "10 Mbit/s": Link(rate=10e6),
         "all three": Link(loss=0.01, delay=0.05, rate=10e6)}
BASE = ["replay.min_size=500", "run.eval_episodes=1", "run.steps_per_epoch=1000000", "run.checkpoint_updates=1000000"]


def made(run_):
    """Updates that the learner has reached, and rows in the replay."""
    with open(os.path.join(run_.folder, "checkpoints", "updates"), encoding="utf-8") as file:
        updates = int(re.match(r"reached (\d+)", file.read())[1])
    return updates, sum(run_.status("replay")["inserted"])


def measure(link, tolerance, publish, seconds, experiment):
    """Updates and rows per second."""
    test = unittest.TestCase()
    test.folder = tempfile.mkdtemp(prefix="datacom-network-")
    test.addCleanup(shutil.rmtree, test.folder, ignore_errors=True)
    try:
        run_ = RunOnHosts(test, link)
        lag = max(128, 2 * (tolerance + publish))
        run_.start(1000000, f"schedule.tolerance_steps={tolerance}", f"schedule.publish_period={publish}", f"schedule.max_policy_lag={lag}",
                   base=BASE, experiment=experiment)
        run_.wait(lambda: os.path.exists(os.path.join(run_.folder, "checkpoints", "updates")))
        while made(run_)[0] < 500:
            run_.wait(lambda: False, 0.5)
        begin, before = time.monotonic(), made(run_)
        run_.wait(lambda: time.monotonic() - begin >= seconds, seconds)
        after, elapsed = made(run_), time.monotonic() - begin
        return [(now - then) / elapsed for then, now in zip(before, after)]
    finally:
        test.doCleanups()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--experiment", default="cartpole/datacom")
    parser.add_argument("--schedules", default="16/4,64/16,256/64")
    arguments = parser.parse_args()
    if unavailable():
        sys.exit(unavailable())
    schedules = [tuple(map(int, schedule.split("/"))) for schedule in arguments.schedules.split(",")]
    print("| network | " + " | ".join(f"{tolerance}/{publish}" for tolerance, publish in schedules) + " |")
    print("|---|" + "---:|" * len(schedules))
    for name, link in LINKS.items():
        cells = []
        for tolerance, publish in schedules:
            updates, rows = measure(link, tolerance, publish, arguments.seconds, arguments.experiment)
            cells.append(f"{updates:.0f} / {rows:.0f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

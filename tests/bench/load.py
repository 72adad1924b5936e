#!/usr/bin/env python3
"""Many light actors on one replay and one learner: rows per second, time of a draw, memory and fairness.

usage: tests/bench/load.py [--datacom build/release/bin/datacom] [--actors 200] [--members 1] [--seconds 30] [--fair 1.5] [--keep]

Trains SAC with small nets on CartPole with `datacom train --actors N`, so every session is a real actor process with its
own connections. When all actors are connected, it compares the metrics of all processes at the start and at the end of a
window. Fairness is the rows of the busiest over those of the idlest actor in the window: every actor has the same
demand. With several members each actor serves some of them, and the figure compares all actors. The actors share the machine with the learner, so rows per second is a figure of the whole.
"""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first

EXPERIMENT = """
name: "load"
description: "Many light actors: tests/bench/load.py"
task: "cartpole"
algorithm: "sac"
run { env_steps: 10000000 steps_per_epoch: 10000000 eval_episodes: 1 checkpoint_updates: 1000000 }
network { actor_hidden: 16 critic_hidden: 16 }
replay { capacity: 20000 failure_capacity: 2000 }
"""


def scrape(address):
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=PATIENCE) as reply:
        text = reply.read().decode()
    series = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, value = line.rsplit(" ", 1)
        bucket = re.search(r'le="([^"]+)"', name)
        series[(name.split("{")[0], bucket[1] if bucket else "")] = float(value)
    return series


def quantile(before, after, name, share):
    """The upper bound of the bucket that holds the quantile of what the window added."""
    added = sorted((float(le), after[key] - before[key]) for key in after for n, le in [key] if n == name + "_bucket")
    total = added[-1][1]
    return next((bound for bound, count in added if total and count >= share * total), float("nan"))


def memory(pid):
    with open(f"/proc/{pid}/status") as file:
        fields = dict(re.findall(r"^(\w+):\s+(\d+) kB", file.read(), re.M))
    return {key: int(fields[key]) / 1024 for key in ("VmRSS", "RssAnon")}


def processes(folder):
    """Process numbers of the run's replay and learner."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        role = os.path.basename(words[0])
        if role in ("datacom-replay", "datacom-learner") and any(folder in word for word in words):
            found[role.split("-")[1]] = pid
    return found


def targets(folder):
    with open(os.path.join(folder, "targets.json")) as file:
        return {entry["labels"]["process"]: entry["targets"][0] for entry in json.load(file)}


def give_up(folder, why):
    with open(folder + ".log") as log:
        sys.exit(f"load: {why}; the end of its output:\n" + "".join(log.readlines()[-5:]))


def wait(train, folder, seconds):
    """Waits while the training runs."""
    try:
        give_up(folder, f"datacom train ended with {train.wait(timeout=seconds)}")
    except subprocess.TimeoutExpired:
        pass


def wait_until(train, folder, ready, missing):
    """The run's targets, once ready(targets) is true; ends the program with what is missing otherwise."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            known = targets(folder)
            if ready(known):
                return known
        except (OSError, KeyError, ValueError):
            pass  # still starting
        wait(train, folder, seconds=0.5)
    give_up(folder, f"{missing} in {PATIENCE:.0f} s")


def wait_for_actors(train, folder, actors):
    def connected(known):
        acting = sum(name.startswith("actor-") for name in known)
        return acting == actors and scrape(known["replay"])[("datacom_replay_sessions", "")] == actors
    return wait_until(train, folder, connected, f"not all of {actors} actors connected")


def measure(train, folder, known, seconds):
    pids = processes(folder)
    begin, start = {name: scrape(address) for name, address in known.items()}, time.monotonic()
    held = {role: memory(pid) for role, pid in pids.items()}
    wait(train, folder, seconds)
    end, span = {name: scrape(address) for name, address in known.items()}, time.monotonic() - start
    added = lambda process, name: end[process][(name, "")] - begin[process][(name, "")]
    rows = [added(name, "datacom_actor_rows_total") for name in known if name.startswith("actor-")]
    replay = begin["replay"], end["replay"]
    return {
        "rows/s": added("replay", "datacom_replay_inserts_total") / span,
        "updates/s": added("learner", "datacom_learner_updates_total") / span,
        "draw, p99 at most (us)": 1e6 * quantile(*replay, "datacom_replay_draw_seconds", 0.99),
        "insert, p99 at most (us)": 1e6 * quantile(*replay, "datacom_replay_insert_seconds", 0.99),
        "rows of the idlest actor": min(rows),
        "rows of the busiest actor": max(rows),
        "busiest over idlest": max(rows) / min(rows) if min(rows) else float("inf"),
        **{f"{role} resident, start (MiB)": held[role]["VmRSS"] for role in pids},
        **{f"{role} resident, end (MiB)": memory(pid)["VmRSS"] for role, pid in pids.items()},
        **{f"{role} anonymous, end (MiB)": memory(pid)["RssAnon"] for role, pid in pids.items()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datacom", default=os.path.join(ROOT, "build/release/bin/datacom"))
    parser.add_argument("--actors", type=int, default=200)
    parser.add_argument("--members", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--fair", type=float, help="exit with 1 when the busiest actor has this many times the idlest's rows")
    parser.add_argument("--keep", action="store_true", help="keep the run folder")
    options = parser.parse_args()
    base = tempfile.mkdtemp(prefix="datacom-load-")
    folder = os.path.join(base, "run")
    path = os.path.join(base, "load.textproto")
    with open(path, "w") as file:
        # Each actor holds credit for one step at least, of half of the tolerance.
        file.write(EXPERIMENT + f"schedule {{ tolerance_steps: {4 * options.actors} publish_period: 16 }}\n")
    with open(folder + ".log", "w") as log:
        train = subprocess.Popen([options.datacom, "train", path, "--no-film", "--seeds", f"0-{options.members - 1}", "--actors",
                                  str(options.actors), "--run-dir", folder], stdout=log, stderr=subprocess.STDOUT)
    try:
        known = wait_for_actors(train, folder, options.actors)
        print(f"{options.actors} actors, {options.members} members, window of {options.seconds:.0f} s, "
              f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}", flush=True)
        measured = measure(train, folder, known, options.seconds)
        for name, value in measured.items():
            print(f"{name:<32} {value:12.4g}")
    finally:
        train.send_signal(signal.SIGTERM)
        train.wait()
        if options.keep:
            print(f"kept {base}")
        else:
            shutil.rmtree(base)
    if options.fair and not measured["busiest over idlest"] <= options.fair:
        sys.exit(f"load: the busiest actor has more than {options.fair} times the rows of the idlest")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

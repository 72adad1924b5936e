"""Trains a sweep of many populations as an array on a real Slurm cluster of eight nodes, and measures what grows with their number.

  python3 tests/bench/many_runs.py build/release/bin [--populations 40] [--members 25] [--steps 3000] [--json FILE]

The networks are tiny and the trainings short: the subject is launching, queues, files and reports, not learning. Needs what
tests/testing/slurm.py needs. The nodes share this machine's processors.
"""
import argparse
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "testing"))
from slurm import Slurm, enter, unavailable  # noqa: E402

SWEEP = """
name: "many"
experiments: "cartpole/datacom"
seeds: "0-{last}"
set: "network.actor_hidden=[16,16]"
set: "network.critic_hidden=[16,16]"
set: "network.constraint_hidden=[16,16]"
set: "replay.min_size=500"
set: "replay.capacity=5000"
set: "run.steps_per_epoch=1000"
set: "run.eval_episodes=2"
set: "learner.batch_size=16"
axes {{ name: "H" {points} }}
"""


def timed(words):
    """Seconds, processor seconds and peak resident bytes of a command."""
    start = time.monotonic()
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, (words, process.returncode)
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def seconds_of(process):
    """Processor seconds of a process so far."""
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def size(folder):
    files = [os.path.join(root, name) for root, _, names in os.walk(folder) for name in names]
    return len(files), sum(os.stat(file).st_blocks * 512 for file in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", help="folder of the programs")
    parser.add_argument("--populations", type=int, default=40)
    parser.add_argument("--members", type=int, default=25)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--json", help="also write the numbers there")
    flags = parser.parse_args()
    folder = tempfile.mkdtemp(prefix="datacom-many-")
    os.chmod(folder, 0o755)  # munged runs as a user of its own
    datacom = os.path.join(os.path.abspath(flags.bin), "datacom")
    slurm = Slurm(os.path.join(folder, "slurm"), nodes=8, processors=2, settings=["MinJobAge=86400"])
    found = {"populations": flags.populations, "members": flags.members, "steps": flags.steps}
    try:
        points = " ".join(f'points {{ label: "{50 + i}" set: "task_options.horizon={50 + i}" }}' for i in range(flags.populations))
        with open(os.path.join(folder, "many.textproto"), "w", encoding="utf-8") as file:
            file.write(SWEEP.format(last=flags.members - 1, points=points))
        runs = os.path.join(folder, "runs")
        found["write the sweep, s"], _, _ = timed([datacom, "sweep", os.path.join(folder, "many.textproto"), "--backend", "slurm", "--steps",
                                                   str(flags.steps), "--run-dir", runs])
        found["status before the start, s"], _, _ = timed([datacom, "status", runs])
        start = time.monotonic()
        job = slurm.submit(os.path.join(runs, "sweep.sbatch"))
        found["sbatch, s"] = time.monotonic() - start
        slowest = most = 0
        while True:
            states = [state[0] for state in slurm.states(job).values()]
            seconds, used, _ = timed([datacom, "status", runs])
            slowest, most = max(slowest, seconds), max(most, used)
            done = states.count("COMPLETED")
            print(f"{time.monotonic() - start:6.0f} s  {done} of {flags.populations} complete, status took {seconds:.2f} s", flush=True)
            if not any(state in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING") for state in states):
                break
            slurm.until(lambda before=done: [state[0] for state in slurm.states(job).values()].count("COMPLETED") >= before + max(1, flags.populations // 10)
                        or not any(state[0] in ("PENDING", "RUNNING", "COMPLETING") for state in slurm.states(job).values()), folder=slurm.path("log"))
        found["whole array, s"] = time.monotonic() - start
        assert done == flags.populations, slurm.run("squeue", "--states=all", "--array")
        found["slowest status, s"], found["status, most processor s"] = slowest, most
        found["launch: started to training, s (median)"] = median_launch(runs)
        controller = subprocess.run(["pidof", "-s", "slurmctld"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
        found["slurmctld, processor s"] = seconds_of(controller)
        files, taken = size(runs)
        found["files of a run"], found["MB of a run"] = files / flags.populations, taken / flags.populations / 1e6
        found["report, s"], found["report, processor s"], memory = timed([datacom, "report", runs, "--out", os.path.join(folder, "report.html")])
        found["report, MB of memory"], found["report, MB of page"] = memory / 1e6, os.path.getsize(os.path.join(folder, "report.html")) / 1e6
        for name, value in found.items():
            print(f"{name:45s} {value:10.3f}" if isinstance(value, float) else f"{name:45s} {value:10d}")
        if flags.json:
            with open(flags.json, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)
    finally:
        slurm.close()
        shutil.rmtree(folder, ignore_errors=True)


def median_launch(runs):
    """Seconds from the start of a job's script to the first line of its learner."""
    spans = []
    for log in glob.glob(os.path.join(runs, "*", "logs", "train.log")):
        with open(log, encoding="utf-8", errors="replace") as file:
            begun = re.search(r"^(\S+)Z job .* started", file.read(), re.MULTILINE)
        with open(os.path.join(os.path.dirname(log), "learner.log"), encoding="utf-8", errors="replace") as file:
            learned = re.search(r"^(\d\S+)\.\d+Z info", file.read(), re.MULTILINE)
        spans.append(time.mktime(time.strptime(learned.group(1), "%Y-%m-%dT%H:%M:%S")) - time.mktime(time.strptime(begun.group(1), "%Y-%m-%dT%H:%M:%S")))
    return float(sorted(spans)[len(spans) // 2])


if __name__ == "__main__":
    if reason := unavailable():
        sys.exit(reason)
    enter()
    main()
# SPDX-License-Identifier: Apache-2.0

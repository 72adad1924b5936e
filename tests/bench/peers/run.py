#!/usr/bin/env python3
"""Compares datacom with other libraries on the same problem, in alternation, and prints ratios: ./datacom bench peers

Updates: SAC, observation 16, action 3, nets of 2 x 128, batch 64, a policy step in every update. Whole trainings: the task cartpole at one
update per step. It makes two virtual environments in build/ (12 GB, from PyPI) on the first call; `--install` does only that. A measurement
takes about 5 minutes on two cores without other work. What is compared, and what is not, is printed with the table.
"""

import argparse
import csv
import json
import os
import pathlib
import platform
import select
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
BIN = ROOT / "build" / "release" / "bin"
CORES = sorted(os.sched_getaffinity(0))
VENVS = {"peers-venv": "requirements.txt", "peers-venv-safe": "requirements_safe.txt"}

NOTES = """
What is compared:
  "1 thread": the process may use one core. "all cores": every process of the row may use all of them.
  An update of datacom and of JAX reads a batch that lies in memory, with its noise. SB3, SBX and FSRL also draw the batch from their buffer
  and write their log; SBX and FSRL make their noise. datacom checks every loss and gradient, JAX nothing.
  One net for mean and log-deviation (SB3, SBX, FSRL, "one torso") is less work than the two nets of datacom.
  FSRL's SACLagrangian has four critics (two of reward, two of cost); datacom's lag_sac is compared with it.
  A whole training: one member, one environment, one update per step. datacom has a process per role, gRPC between them, rows on disk with
  checksums, checkpoints, records and an episode of evaluation per epoch; the others are one process with a buffer in memory and a Python
  environment around the same MuJoCo model. "16 per call": SBX acts 16 steps with one policy, then makes 16 updates.
  FSRL acts for an episode, which ends after 300 steps here, then makes 300 updates; its time includes making the agent.
Not compared: learning curves, memory, several machines, GPUs.
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def install():
    for name, requirements in VENVS.items():
        venv, wanted = ROOT / "build" / name, (HERE / requirements).read_text()
        stamp = venv / "installed.txt"
        if stamp.exists() and stamp.read_text() == wanted:
            continue
        say(f"installing {requirements} into build/{name} (some GB)")
        subprocess.run([sys.executable, "-m", "venv", "--clear", venv], check=True)
        subprocess.run([venv / "bin" / "pip", "install", "--quiet", "-r", HERE / requirements], check=True)
        stamp.write_text(wanted)


def affinity(threads):
    cores = set(CORES if threads > 1 else CORES[-1:])
    return lambda: os.sched_setaffinity(0, cores)


class Peer:
    """A process of peer.py."""

    def __init__(self, library, threads, patience):
        self.patience = patience  # seconds in which it must start, and answer
        self.name = f"{library}, {threads} thread(s)"
        self.venv = "peers-venv-safe" if library == "fsrl" else "peers-venv"
        flags = f"--xla_cpu_multi_thread_eigen={'true' if threads > 1 else 'false'} intra_op_parallelism_threads={threads}"
        environment = os.environ | {"PEER_THREADS": str(threads), "OMP_NUM_THREADS": str(threads), "XLA_FLAGS": flags,
                                    "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "", "WANDB_MODE": "disabled"}
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [ROOT / "build" / self.venv / "bin" / "python", HERE / "peer.py", library], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.log, text=True, env=environment, preexec_fn=affinity(threads))
        self.versions = {}

    def read(self):
        ready, _, _ = select.select([self.process.stdout], [], [], self.patience)
        line = self.process.stdout.readline() if ready else ""
        if not line:
            self.process.kill()
            self.log.seek(0)
            raise RuntimeError(f"{self.name} ended or gave no answer:\n{self.log.read().decode()[-2000:]}")
        return json.loads(line)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        (value,) = self.read().values()
        return value

    def stop(self):
        self.process.kill()
        self.process.wait()


def our_update(algorithm, members, seconds, threads=1):
    """Microseconds. The benchmark's other half goes into its floor, or into the updates on one thread."""
    command = [BIN / "datacom-bench-learner", "--members", str(members), "--only", f"learner/{algorithm}/obs16",
               "--seconds", str(seconds if threads > 1 else 2 * seconds)] + (["--threads", str(threads)] if threads > 1 else [])
    output = subprocess.run(command, check=True, capture_output=True, text=True, preexec_fn=affinity(threads)).stdout
    return 1e6 / json.loads(output)["benchmarks"][1 if threads > 1 else 0]["value"]


def our_training(experiment, epoch_steps):
    """Steps per second between the end of the first and of the fourth epoch."""
    with tempfile.TemporaryDirectory() as folder:
        command = [BIN / "datacom", "train", experiment, "--no-film", "--quiet", "--seeds", "0", "--steps", str(4 * epoch_steps),
                   "--run-dir", f"{folder}/run", "--set", f"run.steps_per_epoch={epoch_steps}", "--set", "run.eval_episodes=1"]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        with open(f"{folder}/run/progress.csv", newline="") as file:
            rows = {int(row["epoch"]): row for row in csv.DictReader(file)}
    first, last = rows[1], rows[4]
    return (int(last["updates"]) - int(first["updates"])) / (float(last["wall_seconds"]) - float(first["wall_seconds"]))


def update_rows(peers, seconds):
    """(name, the row of datacom to compare with or None, threads, measurement)."""
    one, cores = peers["jax", 1], peers["jax", len(CORES)] if len(CORES) > 1 else None
    rows = []
    for members in (1, 8):
        ours = f"datacom sac, M = {members}"
        rows.append((ours, None, 1, lambda members=members: our_update("sac", members, seconds)))
        rows.append((f"JAX scan of 16, two nets, M = {members}", ours, 1,
                     lambda members=members: one.ask(what="update", seconds=seconds, members=members)))
    ours = "datacom sac, M = 8"
    rows.append(("JAX scan of 16, one torso, M = 8", ours, 1, lambda: one.ask(what="update", seconds=seconds, members=8, torso=True)))
    if cores:
        rows.append((ours, None, len(CORES), lambda: our_update("sac", 8, seconds, len(CORES))))
        rows.append(("JAX scan of 16, two nets, M = 8", ours, len(CORES), lambda: cores.ask(what="update", seconds=seconds, members=8)))
    ours = "datacom sac, M = 1"
    rows.append(("SBX, one update per call", ours, 1, lambda: peers["sbx", 1].ask(what="update", seconds=seconds)))
    rows.append(("SBX, 16 updates per call", ours, 1, lambda: peers["sbx", 1].ask(what="update", seconds=seconds, per_call=16)))
    rows.append(("Stable-Baselines3", ours, 1, lambda: peers["sb3", 1].ask(what="update", seconds=seconds)))
    rows.append(("datacom lag_sac, M = 1", None, 1, lambda: our_update("lag_sac", 1, seconds)))
    rows.append(("FSRL SACLagrangian", "datacom lag_sac, M = 1", 1, lambda: peers["fsrl", 1].ask(what="update", seconds=seconds)))
    return rows


def training_rows(peers, seconds, epoch_steps):
    threads, n = len(CORES), len(CORES)
    ours = "datacom train cartpole/sac"
    return [
        (ours, None, threads, lambda: our_training("cartpole/sac", epoch_steps)),
        ("SBX, one update per step", ours, threads, lambda: peers["sbx", n].ask(what="loop", seconds=seconds)),
        ("SBX, 16 per call", ours, threads, lambda: peers["sbx", n].ask(what="loop", seconds=seconds, per_call=16)),
        ("Stable-Baselines3", ours, threads, lambda: peers["sb3", n].ask(what="loop", seconds=seconds)),
        ("datacom train cartpole/lag_sac", None, threads, lambda: our_training("cartpole/lag_sac", epoch_steps)),
        ("FSRL SACLagrangian", "datacom train cartpole/lag_sac", threads, lambda: peers["fsrl", n].ask(what="loop", steps=300)),
    ]


def measure(rows, rounds, unit, end):
    """Values of each row by (name, threads); the rows take turns. A row that fails, or comes after `end`, has none."""
    values, failed = {(name, threads): [] for name, _, threads, _ in rows}, set()
    for number in range(rounds):
        for name, _, threads, measurement in rows:
            if (name, threads) in failed or time.monotonic() > end:
                continue
            label = f"round {number + 1} of {rounds}: {name}, {threads} thread(s)"
            try:
                values[name, threads].append(measurement())
                say(f"{label}: {values[name, threads][-1]:.1f} {unit}")
            except (RuntimeError, OSError, subprocess.CalledProcessError) as error:
                error = getattr(error, "stderr", None) or error
                failed.add((name, threads))
                say(f"{label} FAILED: {error}")
    return values


def table(title, rows, values, unit, ratio):
    print(f"\n{title}\n{'':<36} {'threads':>7} {unit:>12} {'lowest':>9} {'highest':>9} {'beside datacom':>15}")
    medians = {key: statistics.median(found) for key, found in values.items() if found}
    threads_of = {name: threads for name, _, threads, _ in rows}
    for name, ours, threads, _ in rows:
        found = values[name, threads]
        if not found:
            print(f"{name:<36} {threads:>7} {'not measured':>12}")
            continue
        other = medians.get((ours, threads)) or medians.get((ours, threads_of.get(ours)))
        beside = f"{ratio(medians[name, threads], other):.2f} x" if other else ""
        print(f"{name:<36} {threads:>7} {medians[name, threads]:>12.1f} {min(found):>9.1f} {max(found):>9.1f} {beside:>15}", flush=True)


def machine():
    with open("/proc/cpuinfo") as file:
        names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return f"{names[0] if names else platform.processor()}, {len(CORES)} cores used, load before the start {os.getloadavg()[0]:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--install", action="store_true", help="only install the packages")
    parser.add_argument("--rounds", type=int, default=3, help="rounds of the updates")
    parser.add_argument("--train-rounds", type=int, default=2, help="rounds of the whole trainings")
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement of updates; whole trainings take four times as long")
    parser.add_argument("--minutes", type=float, default=7, help="begin no measurement after this time")
    parser.add_argument("--patience", type=float, default=90, help="seconds in which a library must start, and answer")
    parser.add_argument("--epoch-steps", type=int, default=5000, help="a training of datacom has four epochs of so many steps (at least 1000)")
    options = parser.parse_args()
    install()
    if options.install:
        return
    print(machine())
    end = time.monotonic() + 60 * options.minutes
    wanted = [(library, threads) for library in ("jax", "sbx", "sb3", "fsrl") for threads in sorted({1, len(CORES)})]
    peers = {}
    try:
        for library, threads in wanted:
            say(f"starting {library} with {threads} thread(s)")
            peers[library, threads] = Peer(library, threads, options.patience)
        for peer in peers.values():
            try:
                peer.versions = peer.read()
            except RuntimeError as error:
                say(f"FAILED: {error}")
        versions = {name: version for peer in peers.values() for name, version in peer.versions.items() if "safe" not in peer.venv}
        old = {name: version for peer in peers.values() for name, version in peer.versions.items() if "safe" in peer.venv}
        print(subprocess.run([BIN / "datacom", "--version"], check=True, capture_output=True, text=True).stdout.strip())
        for found in (versions, old):
            print(f"Python {platform.python_version()}: " + ", ".join(f"{name} {version}" for name, version in found.items()), flush=True)
        rows = update_rows(peers, options.seconds)
        table("Updates of a member (a ratio above 1: datacom is faster)", rows, measure(rows, options.rounds, "us", end), "us",
              lambda theirs, ours: theirs / ours)
        rows = training_rows(peers, 4 * options.seconds, options.epoch_steps)
        table("Whole trainings of cartpole (a ratio above 1: datacom is faster)", rows,
              measure(rows, options.train_rounds, "steps/s", end), "steps/s", lambda theirs, ours: ours / theirs)
    finally:
        for peer in peers.values():
            peer.stop()
    print(NOTES)


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

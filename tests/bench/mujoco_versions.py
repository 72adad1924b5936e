#!/usr/bin/env python3
"""Compares how fast the tasks step in two builds: with MuJoCo 4 (preset release) and with Debian's MuJoCo 2.2.2 (preset mujoco2).

Runs datacom-bench-actor of both builds in turn and prints for each task the medians over the rounds: bare steps per
second of CPU time (what the benchmark calls the peer), steps of the acting loop, and the ratios of the first build's rates to the second's.
"""
import argparse
import json
import os
import statistics
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILDS = ("release", "mujoco2")


def measure(program, seconds):
    """{benchmark: {quantity: rate}}"""
    output = subprocess.run([program, f"--benchmark_min_time={seconds}", "--benchmark_format=json"], check=True, capture_output=True,
                            text=True).stdout
    return {entry["name"]: {"bare": entry["peer"], "acting": entry["value"]} for entry in json.loads(output)["benchmarks"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--builds", default=os.path.join(ROOT, "build"), help="folder of the two builds")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of each task, in each round")
    arguments = parser.parse_args()
    rounds = [[measure(os.path.join(arguments.builds, build, "bin", "datacom-bench-actor"), arguments.seconds) for build in BUILDS] for _ in range(arguments.rounds)]
    print(f"{'':40}{'release':>12}{'mujoco2':>12}{'ratio':>8}")
    for name in rounds[0][0]:
        for quantity in ("bare", "acting"):
            rates = [statistics.median(pair[i][name][quantity] for pair in rounds) for i in range(2)]
            ratio = statistics.median(pair[0][name][quantity] / pair[1][name][quantity] for pair in rounds)
            print(f"{name + ', ' + quantity:40}{rates[0]:12,.0f}{rates[1]:12,.0f}{ratio:8.2f}")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

#!/usr/bin/env python3
"""Compares how fast the tasks step with this build's MuJoCo and with the system's, which the build must have found, too.

Runs datacom-bench-actor and datacom-bench-actor_system in turn and prints for each task the medians over the rounds: bare steps per
second of CPU time (what the benchmark calls the peer), steps of the acting loop, and the ratios of this build's rates to the other's.
"""
import argparse
import json
import os
import statistics
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = ("datacom-bench-actor", "datacom-bench-actor_system")


def measure(program, seconds):
    """{benchmark: {quantity: rate}}"""
    output = subprocess.run([program, f"--benchmark_min_time={seconds}", "--benchmark_format=json"], check=True, capture_output=True,
                            text=True).stdout
    return {entry["name"]: {"bare": entry["peer"], "acting": entry["value"]} for entry in json.loads(output)["benchmarks"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=os.path.join(ROOT, "build", "release", "bin"), help="folder of the programs")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1, help="of each task, in each round")
    arguments = parser.parse_args()
    rounds = [[measure(os.path.join(arguments.bin, program), arguments.seconds) for program in PROGRAMS] for _ in range(arguments.rounds)]
    print(f"{'':40}{'this build':>12}{'system':>12}{'ratio':>8}")
    for name in rounds[0][0]:
        for quantity in ("bare", "acting"):
            rates = [statistics.median(pair[i][name][quantity] for pair in rounds) for i in range(2)]
            ratio = statistics.median(pair[0][name][quantity] / pair[1][name][quantity] for pair in rounds)
            print(f"{name + ', ' + quantity:40}{rates[0]:12,.0f}{rates[1]:12,.0f}{ratio:8.2f}")


if __name__ == "__main__":
    main()

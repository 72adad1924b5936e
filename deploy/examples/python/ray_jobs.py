"""Trains the runs of a sweep as tasks of Ray: each line of jobs.txt (datacom sweep FILE --backend list) is a task.

  python ray_jobs.py runs/cartpole-methods/jobs.txt [--processors 2]

Joins the Ray cluster that RAY_ADDRESS names, or starts one on this machine. A line starts or resumes its run, so Ray may repeat it on another
node that sees the same folders.
"""
import argparse
import subprocess

import ray


@ray.remote
def train(command):
    done = subprocess.run(["sh", "-c", "exec " + command], check=False)
    if done.returncode == 75 or done.returncode < 0:  # interrupted: Ray repeats the task
        raise RuntimeError(f"interrupted ({done.returncode}): {command}")
    return done.returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", help="the list of commands")
    parser.add_argument("--processors", type=int, default=2, help="of each run")
    flags = parser.parse_args()
    with open(flags.jobs, encoding="utf-8") as file:
        commands = file.read().splitlines()
    ray.init(include_dashboard=False)
    task = train.options(num_cpus=flags.processors, max_retries=100, retry_exceptions=True)
    waiting = {task.remote(command): command for command in commands}
    failed = 0
    while waiting:
        (ended,), _ = ray.wait(list(waiting))
        command, code = waiting.pop(ended), ray.get(ended)
        failed += code != 0
        print(f"{len(commands) - len(waiting)} of {len(commands)}: exit code {code}: {command}", flush=True)
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

"""Sends the progress of a run to an experiment tracker while it trains, or afterwards.

  python -m datacom.watch RUN (--wandb | --trackio | --mlflow) [--project datacom] [--seconds 10] [--once]

A population is one run of the tracker: for each column of progress.csv a curve of every seed (COLUMN/seed_S; COLUMN/member_M where members of a
sweep share seeds) and their interquartile mean (COLUMN/iqm), over environment steps. The configuration is the resolved experiment. It ends
with the run's last epoch; --once ends at once.
The tracker's own settings decide where the data goes, for example WANDB_MODE=offline or MLFLOW_TRACKING_URI. Installing the tracker is up to you.
"""

from __future__ import annotations

import argparse
import math
import re
import time
from typing import Any, Callable, Iterator, Mapping

from datacom import _files
from datacom.runs import Run, interquartile_mean

Log = Callable[[Mapping[str, float], int], Any]


def epochs(run: Run, first: int = 0) -> Iterator[tuple[int, int, dict[str, float]]]:
    """(epoch, environment steps, values) of the epochs that every member has finished, from `first` on."""
    try:
        rows = run.progress
    except FileNotFoundError:  # the run is about to begin
        return
    curve = "seed" if len(set(run.seeds)) == len(run.seeds) else "member"
    columns = [name for name in rows.select_dtypes("number") if name not in ("member", "seed", "epoch", "env_steps")]
    for epoch, part in rows[rows["epoch"] >= first].groupby("epoch"):
        if len(part) < len(run.seeds):
            return
        values = {f"{name}/{curve}_{number}": value for name in columns for number, value in zip(part[curve], part[name]) if math.isfinite(value)}
        values.update((f"{name}/iqm", interquartile_mean(part[name]).mean) for name in columns if part[name].notna().any())
        yield int(epoch), int(part["env_steps"].max()), values


def settings(experiment: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The experiment as one level of names, for example hyper.cost_budget."""
    flat: dict[str, Any] = {}
    for name, value in experiment.items():
        flat.update(settings(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value})
    return flat


def wandb(project: str, name: str, config: dict[str, Any]) -> tuple[Log, Callable[[], Any]]:
    import wandb as tracker

    run = tracker.init(project=project, name=name, config=config)
    run.define_metric("env_steps")
    run.define_metric("*", step_metric="env_steps")
    return lambda values, steps: run.log({"env_steps": steps, **values}), run.finish


def trackio(project: str, name: str, config: dict[str, Any]) -> tuple[Log, Callable[[], Any]]:
    import trackio as tracker

    tracker.init(project=project, name=name, config={key: str(value) for key, value in config.items()})
    return lambda values, steps: tracker.log(dict(values), step=steps), tracker.finish


def mlflow(project: str, name: str, config: dict[str, Any]) -> tuple[Log, Callable[[], Any]]:
    import mlflow as tracker

    tracker.set_experiment(project)
    tracker.start_run(run_name=name)
    # A name has no brackets, as "task_options.[datacom.v1.python_task].horizon" has.
    tracker.log_params({re.sub(r"[^\w./ -]", "", key): str(value)[:500] for key, value in config.items()})
    return lambda values, steps: tracker.log_metrics(dict(values), step=steps), tracker.end_run


def watch(run: Run, log: Log, seconds: float, once: bool) -> int:
    """Logs every finished epoch once, in order. Returns their number."""
    sent, goal = 0, run.experiment["run"]["env_steps"]
    while True:
        for epoch, steps, values in epochs(run, sent):
            log(values, steps)
            sent = epoch + 1
            if steps >= goal:
                return sent
        if once:
            return sent
        time.sleep(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m datacom.watch", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="run folder")
    which = parser.add_mutually_exclusive_group(required=True)
    for tracker in (wandb, trackio, mlflow):
        which.add_argument(f"--{tracker.__name__}", dest="tracker", action="store_const", const=tracker)
    parser.add_argument("--project", default="datacom", help="the tracker's project or experiment (datacom)")
    parser.add_argument("--seconds", type=float, default=10, help="between two looks at the run (10)")
    parser.add_argument("--once", action="store_true", help="send what is there, then end")
    flags = parser.parse_args()
    run = Run(flags.run)
    log, finish = flags.tracker(flags.project, run.path.resolve().name, settings(run.experiment))
    try:
        print(f"{watch(run, log, flags.seconds, flags.once)} epochs of {run.path} sent")
    finally:
        finish()


if __name__ == "__main__":
    _files.command(main)
# SPDX-License-Identifier: Apache-2.0

#!/usr/bin/env python3
"""Searches hyper-parameters with Optuna, one setting for each member: a population trains a whole batch of settings at once.

  python optuna_members.py RUN_DIR [--batches 4] [--members 25] [--steps 200000]

Optuna proposes `members` settings, one training runs them all, and Optuna gets the results. The objective is the discounted return of the last
evaluation if its cost is within the budget; otherwise how far the cost is above it, as a negative number. The study and the runs are in RUN_DIR; the
same command goes on where an earlier one ended. Needs optuna.
"""

import argparse
from pathlib import Path

import datacom
import optuna


def setting(trial):
    """The hyper-parameters of a trial, by their names in `hyper`."""
    return {
        "critic_lr": trial.suggest_float("critic_lr", 1e-4, 3e-3, log=True),
        "atacom_gain": trial.suggest_float("atacom_gain", 5, 100, log=True),
        "accepted_risk": trial.suggest_float("accepted_risk", 0.5, 1.0),
    }


def objective(row, budget):
    cost = float(row["eval_sum_cost"])
    return float(row["eval_discounted_return"]) if cost <= budget else budget - cost


def train(experiment, settings, folder, steps):
    """Trains a member for each setting and returns the last evaluation of each. A run that was interrupted is resumed."""
    if (folder / "run_id").is_file():
        run = datacom.train(run_dir=folder, resume=True).wait(show=True)
    else:
        overrides = {f"members[{m}].hyper.{name}": value for m, one in enumerate(settings) for name, value in one.items()}
        run = datacom.train(experiment, seeds=range(len(settings)), steps=steps, run_dir=folder, settings=overrides).wait(show=True)
    return run, [row for _, row in run.progress.groupby("member").last().iterrows()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run_dir", type=Path)
    parser.add_argument("--experiment", default="cartpole/datacom")
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--members", type=int, default=25)
    parser.add_argument("--steps", type=int, default=200_000)
    flags = parser.parse_args()
    flags.run_dir.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(study_name="members", direction="maximize", storage=f"sqlite:///{flags.run_dir / 'study.db'}", load_if_exists=True,
                                sampler=optuna.samplers.TPESampler(constant_liar=True))
    for batch in range(flags.batches):
        mine = [trial for trial in study.trials if trial.user_attrs.get("batch") == batch]
        if mine and all(trial.state.is_finished() for trial in mine):
            continue
        if not mine:
            asked = [study.ask() for _ in range(flags.members)]
            settings = [setting(trial) for trial in asked]
            for trial in asked:
                trial.set_user_attr("batch", batch)
            numbers = [trial.number for trial in asked]
        else:
            settings, numbers = [trial.params for trial in mine], [trial.number for trial in mine]
        run, rows = train(flags.experiment, settings, flags.run_dir / f"batch_{batch}", flags.steps)
        budget = run.experiment["hyper"]["cost_budget"]
        for number, row in zip(numbers, rows):
            study.tell(number, objective(row, budget))
        print(f"batch {batch}: best {study.best_value:.3f} with {study.best_params}")


if __name__ == "__main__":
    main()
# SPDX-License-Identifier: Apache-2.0

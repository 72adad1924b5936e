"""What the tests share: one short run, and golden trajectories."""

import csv
import gzip
from pathlib import Path

import datacom
import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    """A run of CartPole with two members, 3,000 steps each, of which the first 2,000 act with the first policy."""
    training = datacom.train("cartpole/datacom", seeds=[3, 7], steps=3000, run_dir=tmp_path_factory.mktemp("runs") / "run",
                             settings={"run.steps_per_epoch": 1000, "run.eval_episodes": 2, "hyper.cost_budget": 12})
    return training.wait()


@pytest.fixture
def golden():
    """The rows of a recorded trajectory as dictionaries of text."""
    def read(name):
        with gzip.open(ROOT / "tests/golden/tasks" / name, "rt", newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))
    return read
# SPDX-License-Identifier: Apache-2.0

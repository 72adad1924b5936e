import re
import subprocess
import sys

import pytest
from datacom import card


def test_a_card_has_the_numbers_of_the_records(run):
    text = card.card(run)
    rows = run.progress[run.progress["epoch"] == 3]
    mean = rows["eval_return"].mean()  # the interquartile mean of two values
    assert f"| return | {mean:.4g} [" in text
    total = run.episodes.groupby("member")["sum_cost"].sum().mean()
    assert f"| cost of the whole training, a seed | {total:.4g} [" in text
    violating = run.episodes.groupby("member")["violating_steps"].sum().mean()
    assert f"| violating steps of the whole training, a seed | {violating:.4g} [" in text
    assert f"| violating steps per episode | {rows['eval_violating_steps'].mean():.4g} [" in text
    assert "a cost budget of 12 an episode" in text and "Seeds 3, 7; 3,000 environment steps each" in text
    assert "cost_budget: 12" in text  # the resolved experiment


def test_a_card_of_records_without_violating_steps_says_so(run, monkeypatch):
    episodes = run.episodes.drop(columns="violating_steps")
    rows = run.progress.drop(columns=["eval_violating_steps", "train_violating_steps"])
    monkeypatch.setattr(type(run), "episodes", property(lambda _: episodes))
    monkeypatch.setattr(type(run), "progress", property(lambda _: rows))
    assert "| violating steps of the whole training, a seed | not recorded |" in card.card(run)


def test_a_card_says_what_limits_the_run(run, monkeypatch):
    text = card.card(run)
    assert f"largest violation of a training episode is {run.episodes['max_violation'].max():.4g}" in text
    assert "2 seeds say little" in text and "The learned constraint is an estimate" in text and "not finished" not in text
    monkeypatch.setitem(run.experiment["run"], "env_steps", 5000)
    rows = run.progress.assign(status="runaway")
    monkeypatch.setattr(type(run), "progress", property(lambda _: rows))
    text = card.card(run)
    assert "not finished: 3,000 of 5,000 steps" in text and "3 (runaway), 7 (runaway)" in text


def test_a_card_acts_in_the_units_of_a_python_environment(run, monkeypatch):
    assert "    action = policy.clip(policy.act(observation))\n" in card.card(run)
    monkeypatch.setitem(run.experiment, "task_options", {"[datacom.v1.python_task]": {"environment": "arm:make"}})
    assert "    action = policy.bind(env).decide(observation, info).action  # env, observation, info: of arm:make\n" in card.card(run)


def test_the_command_writes_a_file_with_metadata(run, tmp_path):
    file = tmp_path / "README.md"
    subprocess.run([sys.executable, "-m", "datacom.card", str(run.path), "--out", str(file)], check=True)
    text = file.read_text()
    assert re.match(r'---\nlibrary_name: datacom\npipeline_tag: reinforcement-learning\ntags: \[[\w, "-]+\]\nmodel-index:\n', text)
    mean = run.progress[run.progress["epoch"] == 3]["eval_sum_cost"].mean()
    assert re.search(rf'\n    - {{type: mean_cost, name: mean_cost, value: "{re.escape(f"{mean:.4g}")} \[[^\n]+\]"}}\n---\n', text)
    printed = subprocess.run([sys.executable, "-m", "datacom.card", str(run.path), "--out", "-"], check=True, stdout=subprocess.PIPE).stdout
    assert printed == file.read_bytes()
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run([sys.executable, "-m", "datacom.card", str(tmp_path)], check=True, stderr=subprocess.DEVNULL)


@pytest.mark.parametrize("module", ["card", "hub", "minari", "watch"])
def test_what_a_command_cannot_do_is_one_line(module, tmp_path):
    more = {"card": [], "hub": ["--out", str(tmp_path / "out")], "minari": ["a/b-v0"], "watch": ["--wandb"]}[module]
    done = subprocess.run([sys.executable, "-m", f"datacom.{module}", str(tmp_path), *more], text=True, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (2, f"datacom.{module}: {tmp_path} is no run folder: it has no experiment.textproto\n")


def test_a_run_without_an_evaluation_has_no_card(run, monkeypatch):
    rows = run.progress.head(0)
    monkeypatch.setattr(type(run), "progress", property(lambda _: rows))
    with pytest.raises(ValueError, match="has no evaluation yet"):
        card.card(run)
# SPDX-License-Identifier: Apache-2.0

import dataclasses
import subprocess
import sys
import types

import datacom
import minari
import numpy as np
import pytest
from datacom import minari as datacom_minari
from datacom import watch


def test_an_epoch_has_every_seed_and_the_interquartile_mean(run):
    sent = list(watch.epochs(run))
    assert [epoch for epoch, _, _ in sent] == [0, 1, 2, 3] and [steps for _, steps, _ in sent] == [0, 1000, 2000, 3000]
    rows = run.progress[run.progress["epoch"] == 3]
    values = sent[-1][2]
    assert values["eval_return/seed_7"] == rows[rows["seed"] == 7]["eval_return"].item()
    assert values["eval_return/iqm"] == pytest.approx(rows["eval_return"].mean())  # of two values
    assert "critic_loss/iqm" not in sent[0][2]  # nothing was learned yet


def test_members_that_share_a_seed_have_a_curve_each(run, monkeypatch):
    rows = run.progress
    monkeypatch.setattr(type(run), "progress", property(lambda _: rows.assign(seed=3)))
    monkeypatch.setattr(run, "seeds", [3, 3])
    values = list(watch.epochs(run))[-1][2]
    last = rows[rows["epoch"] == 3].set_index("member")["eval_return"]
    assert [values[f"eval_return/member_{member}"] for member in (0, 1)] == [last[0], last[1]] and "eval_return/seed_3" not in values


def test_an_epoch_that_one_member_has_not_finished_waits(run, monkeypatch):
    rows = run.progress
    monkeypatch.setattr(type(run), "progress", property(lambda _: rows.drop(rows[(rows["epoch"] == 2) & (rows["member"] == 1)].index)))
    assert [epoch for epoch, _, _ in watch.epochs(run)] == [0, 1]


def test_every_epoch_is_sent_once_and_the_last_one_ends_it(run, monkeypatch):
    rows, looks, sent = run.progress, [], []
    monkeypatch.setattr(type(run), "progress", property(lambda _: rows[rows["epoch"] <= len(looks)]))
    monkeypatch.setattr(watch.time, "sleep", looks.append)
    assert watch.watch(run, lambda values, steps: sent.append(steps), seconds=5, once=False) == 4
    assert sent == [0, 1000, 2000, 3000] and looks == [5, 5, 5]


@pytest.mark.parametrize("tracker", ["wandb", "trackio", "mlflow"])
def test_each_tracker_gets_configuration_and_values(run, monkeypatch, tracker):
    calls = []
    fake = types.ModuleType(tracker)
    said = types.SimpleNamespace(log=lambda values: calls.append(("log", values)), finish=lambda: calls.append(("end",)),
                                 define_metric=lambda *names, **more: None)
    fake.init = lambda **given: calls.append(("config", given["config"])) or said
    fake.log = lambda values, step: calls.append(("log", {"env_steps": step, **values}))
    fake.log_metrics = fake.log
    fake.log_params = lambda given: calls.append(("config", given))
    fake.finish = fake.end_run = said.finish
    fake.start_run = fake.set_experiment = lambda *_, **__: None
    monkeypatch.setitem(sys.modules, tracker, fake)
    monkeypatch.setattr(sys, "argv", ["watch", str(run.path), f"--{tracker}", "--once"])
    watch.main()
    assert calls[0][0] == "config" and str(calls[0][1]["hyper.cost_budget"]) == "12"
    logs = [values for kind, *rest in calls if kind == "log" for values in rest]
    assert [values["env_steps"] for values in logs] == [0, 1000, 2000, 3000] and calls[-1] == ("end",)


def test_mlflow_gets_names_that_it_takes(monkeypatch):
    given, fake = {}, types.ModuleType("mlflow")
    fake.log_params, fake.log_metrics, fake.end_run = given.update, None, None
    fake.start_run = fake.set_experiment = lambda *_, **__: None
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    watch.mlflow("datacom", "arm", watch.settings({"task_options": {"[datacom.v1.python_task]": {"horizon": 60}}, "hyper": {"actor_lr": 0.5}}))
    assert given == {"task_options.datacom.v1.python_task.horizon": "60", "hyper.actor_lr": "0.5"}


def test_minari_reads_back_the_episodes_of_the_rows(run, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    subprocess.run([sys.executable, "-m", "datacom.minari", str(run.path), "datacom/test-v0", "--member", "1"], check=True)
    dataset = minari.load_dataset("datacom/test-v0")
    again = dataset.recover_environment()
    assert again.unwrapped.horizon == 1000 and again.spec.max_episode_steps == 1000
    rows = run.transitions(1)
    assert dataset.total_steps == 3000
    first = dataset[0]
    length = len(first.rewards)
    np.testing.assert_array_equal(first.observations[:-1], rows["observation"][:length])
    np.testing.assert_array_equal(first.infos["cost"][1:], rows["cost"][:length])
    np.testing.assert_array_equal(np.ravel(first.actions), np.ravel(rows["action"][:length]))
    assert first.truncations[-1] and not first.truncations[:-1].any()
    assert sum(len(dataset[i].rewards) for i in range(dataset.total_episodes)) == 3000

    folder = tmp_path / "pretrain"
    made = subprocess.run([sys.executable, "-m", "datacom.minari", "datacom/test-v0", str(folder), "--into", "CartPole"], check=True, capture_output=True, text=True)
    assert made.stdout.startswith("3000 rows of datacom/test-v0")
    assert 'run_id: "datacom/test-v0"' in (folder / "manifest.textproto").read_text()
    datacom.train("cartpole/datacom", steps=2100, run_dir=tmp_path / "run",
                  settings={"pretrain.dataset": str(folder), "pretrain.updates": 20, "run.steps_per_epoch": 1000, "run.eval_episodes": 1}).wait()
    log = (tmp_path / "run" / "logs" / "learner.log").read_text()
    assert f"dataset={folder} of run=datacom/test-v0 algorithm=sac rows=3000" in log
    with pytest.raises(ValueError, match="exists"):
        datacom_minari.read(dataset, folder, "cartpole")
    with pytest.raises(ValueError, match="observations of 5 numbers, those of air_hockey have 16"):
        datacom_minari.read(dataset, tmp_path / "other", "air_hockey")
    with pytest.raises(ValueError, match="python:Some:Thing: datasets are written for"):
        datacom_minari.read(dataset, tmp_path / "other", "python:Some:Thing")
    nowhere = np.full_like(first.rewards, np.nan, dtype=np.float32)
    for change, what in (({"infos": {}}, "episode 0 has .* steps, and 0 costs"), ({"infos": {"cost": {"a": 1}}}, "episode 0: the \"cost\" .* no numbers"),
                         ({"rewards": nowhere}, "column reward, row 0"),
                         ({"rewards": np.stack([first.rewards] * 2, 1)}, "episode 0: its reward has 2 numbers in each step, not one"),
                         ({"actions": 1000 + first.actions}, "row 0: action 0 is 1000.*in the task's units"),
                         ({"actions": np.zeros(first.actions.shape, np.int64)}, "episode 0: its actions are int64, whole numbers"), ({"observations": {}}, "must be arrays")):
        monkeypatch.setattr(type(dataset), "iterate_episodes", lambda self, change=change: [dataclasses.replace(first, **change)])
        with pytest.raises(ValueError, match=what):
            datacom_minari.read(dataset, tmp_path / "other", "cartpole")
    assert not (tmp_path / "other").exists()


def navigation_run(width, **options):
    """A run of navigation with one episode of two rows, whose observations have `width` numbers."""
    row = np.dtype([("observation", "f4", (width,)), ("next_observation", "f4", (width,)), ("action", "f4", (2,)), ("reward", "f4"), ("cost", "f4"),
                    ("absorbing", "u1"), ("last", "u1"), *((name, "u4") for name in ("session", "environment", "episode", "step"))])
    rows = np.zeros(2, row)
    rows["step"], rows["last"] = [0, 1], [0, 1]
    return types.SimpleNamespace(path="runs/nav", name="nav", task="navigation", algorithm="sac", seeds=[0], experiment={"task_options": options},
                                 transitions=lambda member: rows)


def test_a_minari_dataset_has_the_spaces_of_the_runs_task_options(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    dataset = datacom_minari.write(navigation_run(31, observation="robot_frame_all"), "test/nav-v0")
    assert dataset.observation_space.shape == (31,) and dataset[0].observations.shape == (3, 31)
    assert dataset.recover_environment().observation_space == dataset.observation_space
    assert dataset.action_space == datacom.make("Navigation").action_space


def test_rows_of_other_sizes_than_those_of_the_task_make_no_minari_dataset(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    with pytest.raises(ValueError, match="runs/nav: its rows have observations of 22 numbers, those of navigation with its options have 31"):
        datacom_minari.write(navigation_run(22, observation="robot_frame_all"), "test/nav-v0")
    assert list(tmp_path.iterdir()) == []


def test_a_name_without_a_version_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    with pytest.raises(ValueError, match="mixed: a name of Minari ends with a version, as datacom/mixed-v0"):
        datacom_minari.write(navigation_run(31, observation="robot_frame_all"), "mixed")
    assert list(tmp_path.iterdir()) == []


def test_a_task_that_only_the_experiment_holds_has_unbounded_spaces(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    run = navigation_run(7, **{"[datacom.v1.text_task]": {"name": "arm"}})
    run.task = "arm"
    dataset = datacom_minari.write(run, "test/arm-v0")
    assert dataset.observation_space.shape == (7,) and not dataset.observation_space.is_bounded() and dataset.action_space.shape == (2,)


def test_a_minari_dataset_of_a_python_environment_has_its_observations_and_the_units_of_its_actions(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    run = navigation_run(7, **{"[datacom.v1.python_task]": {"name": "arm", "observation": 3, "action_low": [0, -1], "action_high": [4, 1]}})
    run.task, rows = "arm", run.transitions(0)
    rows["observation"], rows["next_observation"], rows["action"] = np.arange(7), np.arange(7), [[-1, 0.5], [0.5, 1.25]]
    dataset = datacom_minari.write(run, "test/arm-v0")
    assert dataset[0].observations.tolist() == [[0, 1, 2]] * 3 and dataset[0].actions.tolist() == [[0, 0.5], [3, 1]]
    assert dataset.observation_space.shape == (3,) and (dataset.action_space.low.tolist(), dataset.action_space.high.tolist()) == ([0, -1], [4, 1])


def test_a_run_that_has_not_begun_is_waited_for(tmp_path):
    (tmp_path / "experiment.textproto").write_text('name: "a" task: "cartpole" algorithm: "sac" run { env_steps: 5 } members { seed: 1 }\n')
    assert watch.watch(datacom.Run(tmp_path), print, seconds=0, once=True) == 0
# SPDX-License-Identifier: Apache-2.0

import subprocess
import sys
from types import ModuleType, SimpleNamespace

import datacom
import pytest
from datacom import _files

SMALL = {"run.steps_per_epoch": 1000, "run.eval_episodes": 1}


def test_the_package_states_the_version_of_the_programs():
    done = subprocess.run([str(_files.program("datacom")), "--version"], check=True, text=True, stdout=subprocess.PIPE)
    assert done.stdout.startswith(f"datacom {datacom.__version__} ")


def test_a_training_yields_progress_and_ends_with_its_run(tmp_path):
    training = datacom.train("cartpole", algorithm="sac", steps=6000, run_dir=tmp_path / "run", settings=SMALL)
    seen = list(training)
    shares = [progress.share for progress in seen]
    assert seen and shares == sorted(shares) and shares[-1] <= 1
    assert training.run.progress["env_steps"].max() == 6000 and not training.drained


def test_an_interrupted_training_is_drained_and_resumes(tmp_path):
    with datacom.train("cartpole", algorithm="sac", steps=2_000_000, run_dir=tmp_path / "run", settings=SMALL) as training:
        for progress in training:
            if progress.env_steps > 0:
                break
    assert training.drained
    before = training.run.progress["env_steps"].max()
    steps = int(datacom.Run(tmp_path / "run").transitions().end) + 1000
    resumed = datacom.train(run_dir=tmp_path / "run", resume=True, steps=steps).wait()
    assert resumed.progress["env_steps"].max() == steps > before


def test_a_keyboard_interrupt_drains_too(tmp_path):
    training = datacom.train("cartpole", algorithm="sac", steps=2_000_000, run_dir=tmp_path / "run", settings=SMALL)
    lines = iter(training)
    while next(lines).env_steps == 0:
        pass
    with pytest.raises(KeyboardInterrupt):
        lines.throw(KeyboardInterrupt())
    assert training.drained and training._process.poll() == 75


def test_a_condition_ends_a_training_after_saving_it(tmp_path):
    seen = []
    training = datacom.train("cartpole", algorithm="sac", steps=2_000_000, run_dir=tmp_path / "run", settings=SMALL)
    run = training.wait(each=lambda progress: seen.append(progress) or progress.env_steps > 0)
    assert training.drained and seen[-1].env_steps > 0 and all(progress.env_steps == 0 for progress in seen[:-1])
    assert run.progress["epoch"].min() == 0


def test_an_error_in_a_callback_ends_a_training_after_saving_it(tmp_path):
    training = datacom.train("cartpole", algorithm="sac", steps=2_000_000, run_dir=tmp_path / "run", settings=SMALL)
    with pytest.raises(ZeroDivisionError):
        training.wait(each=lambda progress: 1 / 0)
    assert training.drained and training._process.poll() == 75


def test_a_notebook_shows_one_bar_that_moves(monkeypatch):
    from datacom import commands

    class Bar(list):
        update = list.append

    bar, shown = Bar(), ModuleType("IPython.display")
    shown.HTML, shown.display = str, lambda first, display_id: bar
    shell = ModuleType("IPython")
    shell.get_ipython = lambda: SimpleNamespace(config={"IPKernelApp": {}})
    monkeypatch.setitem(sys.modules, "IPython", shell)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    show = commands._bar()
    for share in (0.25, 0.5):
        show(commands.Progress(share, 10, 1, 1, 2, 0, 3, 4, 5, {"state": "learning", "waiting": "<a>"}))
    assert len(bar) == 2 and 'value="0.5000"' in bar[1] and "learning, &lt;a&gt;" in bar[1]


def test_what_the_command_refuses_is_said_in_its_words(tmp_path):
    with pytest.raises(datacom.CommandFailed, match="hyper.speed") as refused:
        datacom.train("cartpole/datacom", run_dir=tmp_path / "run", settings={"hyper.speed": 3}).wait()
    assert refused.value.code == 2


@pytest.mark.parametrize("said", [
    ['{"message": "[1/1] a: 4 members"}', '{"population": "a", "error": "the disk is full", "code": 1}'],
    ['{"error": "the disk is full", "code": 1}', "datacom: the disk is full"]])
def test_an_error_is_said_once(said, tmp_path):
    from datacom import commands
    training = commands.Training(["sh", "-c", 'printf "%s\\n" "$@"; exit 1', "sh", *said], tmp_path)
    with pytest.raises(datacom.CommandFailed) as failed:
        list(training)
    assert failed.value.code == 1 and str(failed.value).split(" ended with 1:")[1].count("the disk is full") == 1


def test_a_sweep_makes_its_runs(tmp_path):
    for _ in datacom.sweep("cartpole/cost_budgets", run_dir=tmp_path, seeds=[0], steps=2100, settings=SMALL):
        pass
    runs = datacom.sweep_runs(tmp_path)
    assert runs and all(run.task == "cartpole" for run in runs)
# SPDX-License-Identifier: Apache-2.0

import json
import pickle
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import datacom
import numpy as np
import pytest
from datacom import _files, commands

SMALL = {"run.steps_per_epoch": 1000, "run.eval_episodes": 1}

# Fake of the command, which makes a run. Its second word says how it ends: "waits" for a signal to drain, "ends", or "fails" as an export does.
FAKE = """#!%s
import json, os, signal, sys
signals = [signal.SIGINT, signal.SIGTERM]
signal.pthread_sigmask(signal.SIG_BLOCK, signals)
if sys.argv[1] != "export":
    folder = sys.argv[sys.argv.index("--run-dir") + 1]
    os.makedirs(folder)
    for name, text in (("run_id", "1"), ("experiment.textproto", 'name: "fake" task: "cartpole" algorithm: "sac"')):
        open(os.path.join(folder, name), "w").write(text)
    for share in (0.25, 0.5):
        print(json.dumps({"done": share, "env_steps": 7, "steps_per_second": 1, "updates_per_second": 1, "members": []}), flush=True)
if sys.argv[2] == "waits":
    got = signal.sigwait(signals)
    open(os.path.join(folder, "drained"), "w").write(got.name)
    sys.exit(75)
if sys.argv[2] != "ends":
    sys.stdout.buffer.write(b"caf\\xe9 is closed\\nthe last line\\n")
    sys.exit(3)
"""


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """The folder of the fake's runs."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/datacom").write_text(FAKE % sys.executable)
    (tmp_path / "bin/datacom").chmod(0o755)
    monkeypatch.setenv("DATACOM_BUILD", str(tmp_path))
    return tmp_path


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


@pytest.mark.parametrize("start", [datacom.train, datacom.sweep])
def test_leaving_the_loop_drains(fake, start):
    for _ in start("waits", run_dir=fake / "left"):
        break
    with pytest.raises(ZeroDivisionError):
        for _ in start("waits", run_dir=fake / "failed"):
            1 / 0
    # Of SIGINT a second one would end the command without saving.
    assert [(fake / name / "drained").read_text() for name in ("left", "failed")] == ["SIGTERM"] * 2


def test_a_condition_may_be_a_truth_value_of_numpy(fake):
    training = datacom.train("waits", run_dir=fake / "run")
    training.wait(each=lambda progress: np.float64(progress.share) > 0.4)
    assert training.drained


@pytest.mark.parametrize("start, found", [(datacom.train, lambda run: run.path), (datacom.sweep, lambda runs: runs[0].path)])
def test_a_relative_folder_is_found_from_another_working_directory(fake, monkeypatch, start, found):
    monkeypatch.chdir(fake)
    running = start("ends", run_dir="läufe/my run")
    monkeypatch.chdir("/")
    assert found(running.wait()) == fake / "läufe/my run"


def test_a_command_that_nobody_reads_any_more_is_drained(fake):
    training = datacom.train("waits", run_dir=fake / "run")
    assert json.loads(training._line())["done"] == 0.25
    del training
    assert (fake / "run/drained").exists()


def test_the_end_of_python_drains_what_still_runs(fake):
    script = "import datacom, sys; lines = iter(datacom.train('waits', run_dir=sys.argv[1])); next(lines)"
    done = subprocess.run([sys.executable, "-c", script, fake / "run"], check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert (fake / "run/drained").exists() and done.stdout == b""


def test_a_command_that_has_ended_may_be_waited_for_and_drained_again(fake):
    training = datacom.train("ends", run_dir=fake / "run")
    assert [progress.share for progress in training] == [0.25, 0.5]
    training.drain()
    assert training.wait().path == fake / "run" and list(training) == [] and not training.drained
    assert [run.path for run in datacom.sweep("ends", run_dir=fake / "sweep").wait()] == [fake / "sweep"]


def test_a_command_that_nobody_reads_does_not_stop(tmp_path):
    says = """import json
for step in range(300):
    print(json.dumps({"done": step / 300, "env_steps": step, "steps_per_second": 1, "updates_per_second": 1, "members": [], "more": "x" * 1000}))
"""
    training = commands.Training([sys.executable, "-c", says], tmp_path)
    assert training._process.wait(timeout=600) == 0  # 300 kB are more than a pipe holds
    assert [progress.env_steps for progress in training] == list(range(300))


def test_a_loop_ends_where_its_command_is_drained(fake):
    training = datacom.train("waits", run_dir=fake / "run")
    for _ in training:
        training.drain()
    assert training.drained


def test_a_failure_is_told_again_and_with_bytes_that_are_no_text(fake):
    training = datacom.train("fails", run_dir=fake / "run")
    for call in (training.wait, training.wait, training.drain):
        with pytest.raises(datacom.CommandFailed, match="ended with 3:\ncaf\ufffd is closed\nthe last line") as failed:
            call()
    sent = pickle.loads(pickle.dumps(failed.value))
    assert (str(sent), sent.code) == (str(failed.value), 3)
    with pytest.raises(ValueError, match="caf\ufffd is closed\nthe last line"):
        datacom.Policy.load(fake)


def test_what_the_command_refuses_is_said_in_its_words(tmp_path):
    with pytest.raises(datacom.CommandFailed, match="hyper.speed") as refused:
        datacom.train("cartpole/datacom", run_dir=tmp_path / "run", settings={"hyper.speed": 3}).wait()
    assert refused.value.code == 2


@pytest.mark.parametrize("said", [
    ['{"message": "[1/1] a: 4 members"}', '{"population": "a", "error": "the disk is full", "code": 1}'],
    ['{"error": "the disk is full", "code": 1}', "datacom: the disk is full"]])
def test_an_error_is_said_once(said, tmp_path):
    training = commands.Training(["sh", "-c", 'printf "%s\\n" "$@"; exit 1', "sh", *said], tmp_path)
    with pytest.raises(datacom.CommandFailed) as failed:
        list(training)
    assert failed.value.code == 1 and str(failed.value).split(" ended with 1:")[1].count("the disk is full") == 1


def test_objects_that_an_environment_prints_say_nothing_of_the_run():
    said = ['{"members": 3}', '{"run": 5, "loss": 1}', '{"message": {"loss": 1}}', '{"run": "runs/mine"}',
            '{"done": 0.5, "env_steps": 7, "steps_per_second": 1, "updates_per_second": 1, "members": []}']
    training, seen = commands.Training(["sh", "-c", 'printf "%s\\n" "$@"; exit 1', "sh", *said], None), []
    with pytest.raises(datacom.CommandFailed, match="ended with 1"):
        training.wait(each=seen.append)
    assert [progress.env_steps for progress in seen] == [7] and training.folder == Path.cwd() / "runs/mine"


def test_a_sweep_makes_its_runs(tmp_path):
    for _ in datacom.sweep("cartpole/cost_budgets", run_dir=tmp_path, seeds=[0], steps=2100, settings=SMALL):
        pass
    runs = datacom.sweep_runs(tmp_path)
    assert runs and all(run.task == "cartpole" for run in runs)


@pytest.mark.parametrize("seeds", [[3, 5], (3, 5), {3: 0, 5: 0}.keys(), np.array([3, 5]), (seed for seed in (3, 5)), [np.int64(3), np.int64(5)]])
def test_seeds_may_be_any_numbers(seeds):
    words = commands._words("train", None, None, {}, {"seeds": seeds, "lockstep": np.bool_(False), "steps": 1e6, "envs": np.int64(7)})
    assert words[2:] == ["--seeds", "3,5", "--steps", "1000000", "--envs", "7", "--json"]


def test_no_seeds_are_refused():
    with pytest.raises(ValueError, match="seeds is empty"):
        datacom.train("cartpole/datacom", seeds=[])


@pytest.mark.parametrize("value, text", [(True, "true"), (np.bool_(False), "false"), (np.float64(0.5), "0.5"), (2e5, "200000"), (1e300, "1e+300"), ((64, 32), "[64, 32]"), (range(2), "[0, 1]"),
                                         ([np.int64(64)], "[64]"), (np.array([64, 32]), "[64, 32]"), ("ADAM", "ADAM"), (["a"], "['a']")])
def test_a_setting_may_come_from_numpy(value, text):
    assert commands._words("train", None, None, {"a.b": value}, {})[2:] == ["--set", f"a.b={text}", "--json"]
# SPDX-License-Identifier: Apache-2.0

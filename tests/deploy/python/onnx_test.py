"""`export --format onnx`: policy and filter as a graph, against the actor's own numbers in ONNX Runtime."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

ROWS = 10000
# What has a graph, with the settings of a short training. The last three are text tasks, with motors and with a free joint, and a Python
# environment.
SHORT = ["run.eval_episodes=2", "run.steps_per_epoch=2000"]
TRAINED = {"cartpole/datacom": SHORT, "air_hockey/datacom": SHORT, "navigation/datacom": SHORT, "cartpole/iqn_datacom": SHORT,
           "air_hockey/sac": [*SHORT, "replay.min_size=2000"], "cartpole/ppo_lag": SHORT, "arm_reach": SHORT, "flyer": SHORT, "point_env": SHORT}
ROOT = Path(__file__).resolve().parents[3]
FLYER = {
    "model.xml": """<mujoco>
      <option timestep="0.01"><flag contact="disable"/></option>
      <worldbody><body name="hull" pos="0 0 1"><joint name="float" type="free" damping="1"/>
        <geom type="box" size="0.2 0.1 0.05" mass="1"/><site name="left" pos="0 0.2 0"/><site name="right" pos="0 -0.2 0"/>
        <site name="centre"/></body></worldbody>
      <actuator><motor name="left" site="left" gear="0 0 10 0 1 0" ctrllimited="true" ctrlrange="0 1"/>
        <motor name="right" site="right" gear="0 0 10 1 0 0" ctrllimited="true" ctrlrange="0 1"/></actuator>
    </mujoco>""",
    "task.textproto": """name: "flyer" model: "model.xml" horizon: 50
      observation { joint: "float" } observation { joint: "float" quantity: "velocity" }
      extra { name: "height" site: "centre" quantity: "position" axes: "z" }
      reward: "height.z" cost { name: "low" value: "0.9 - height.z" }
      control { period: 0.02 }
     """,
}


def run(program, *words):
    done = subprocess.run([program, *map(str, words)], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          env={**os.environ, "DATACOM_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "deploy/examples/python")})
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Trains an experiment for a few updates and exports it; returns the exit code, what it printed, and the file."""
    folder = tmp_path_factory.mktemp("onnx")
    program = Path(os.environ["DATACOM_BUILD"]) / "bin/datacom"

    def export(experiment, *words):
        name = experiment.replace("/", "_")
        what = [experiment]
        if experiment == "arm_reach":
            what = [ROOT / "deploy/examples/arm_reach/task.textproto", "--algorithm", "datacom"]
        elif experiment == "flyer":
            for part, text in FLYER.items():
                (folder / part).write_text(text)
            what = [folder / "task.textproto", "--algorithm", "datacom"]
        elif experiment == "point_env":
            what = ["--python", "point_env:make"]
        if not (folder / name).is_dir():
            settings = [word for setting in TRAINED.get(experiment, SHORT) for word in ("--set", setting)]
            code, said = run(program, "train", *what, "--no-film", "--seeds", 1, "--steps", 4000, "--run-dir", folder / name, *settings)
            assert code == 0, said
        file = folder / f"{name}{'_noise' if '--noise' in words else '_filter' if '--filter' in words else ''}.onnx"
        named = what if experiment == "point_env" else []  # the pairs come from its episodes
        return (*run(program, "export", folder / name, *named, "--format", "onnx", "--out", file, *words), file)

    return export


def pairs(file):
    path = file.with_suffix(".pairs.csv")
    names = path.read_text().split("\n", 1)[0].split(",")
    rows = np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2)
    return lambda prefix: rows[:, [i for i, name in enumerate(names) if name.rsplit("_", 1)[0] == prefix or name == prefix]]


def play(file, recorded):
    session = onnxruntime.InferenceSession(str(file))
    inputs = {each.name: recorded(each.name).astype(np.float32) for each in session.get_inputs()}
    return dict(zip([each.name for each in session.get_outputs()], session.run(None, inputs)))


@pytest.mark.parametrize("experiment", TRAINED)
@pytest.mark.parametrize("flags", [(), ("--noise",), ("--filter",)])
def test_the_graph_acts_as_the_actor(exported, experiment, flags):
    code, said, file = exported(experiment, "--pairs", ROWS, *flags)
    if "--filter" in flags and experiment in ("air_hockey/sac", "cartpole/ppo_lag"):
        assert code == 2 and "has no filter" in said
        return
    assert code == 0, said
    model = onnx.load(file)
    onnx.checker.check_model(model, full_check=True)
    recorded = pairs(file)
    about = {each.key: each.value for each in model.metadata_props}
    for names, numbers in (("observation_names", "observation"), ("action_names", "action")):
        named = json.loads(about[names])
        assert all(named) and len(set(named)) == len(named) == recorded(numbers).shape[1]
    assert len(recorded("action")) == ROWS
    outputs = play(file, recorded)
    difference = np.abs(outputs["action"] - recorded("action")).max(axis=1)
    # Where the learned constraint is active, the map multiplies the float32 rounding of the nets, 1e-7, by its gain. On flyer
    # it acts in many of these states, with a gain of 50.
    assert np.quantile(difference, 0.9) <= (3e-6 if experiment == "flyer" else 1e-6)
    assert difference.max() <= 1e-3
    for name in set(outputs) - {"action"}:
        want = recorded(name)[:, 0]
        limit = 2e-3 if name == "intervention" else 1e-5 * max(1, np.abs(want).max())
        assert np.abs(outputs[name] - want).max() <= limit, name


def test_the_file_says_what_its_numbers_are(exported):
    code, said, file = exported("cartpole/datacom")
    assert code == 0, said
    model = onnx.load(file)
    about = {each.key: each.value for each in model.metadata_props}
    assert json.loads(about["observation_names"])[3:] == ["cart velocity / m/s", "pole angular velocity / rad/s"]
    assert json.loads(about["action_low"]) == [-1.0]
    assert float(about["control_period_s"]) == 1 / 120
    assert about["task"] == "cartpole" and about["acting_rule"] == "safe_map" and len(about["weights_sha256"]) == 64
    assert [each.name for each in model.graph.input] == ["observation"]
    assert [each.name for each in model.graph.output] == ["action", "constraint", "cvar", "intervention"]
    assert [each.version for each in model.opset_import] == [13]
    assert len(pairs(file)("action")) == 1000


@pytest.mark.parametrize("experiment, named", [
    ("air_hockey/atacom_fi", "acting rule atacom_fi has no ONNX graph"),
    ("air_hockey/datacom_known", "joins the known rows"),
])
def test_a_rule_without_a_graph_is_refused_by_name(exported, experiment, named):
    code, said, file = exported(experiment)
    assert code == 2 and named in said
    assert not file.exists() and not file.with_suffix(".pairs.csv").exists()
# SPDX-License-Identifier: Apache-2.0

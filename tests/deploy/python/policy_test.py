import copy
import ctypes
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import datacom
import gymnasium
import numpy as np
import pytest
from datacom import _files, _native

ROOT = Path(__file__).resolve().parents[3]
RAW = """
import ctypes, sys
ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
import os
if sys.argv[2] == "visible":
    os.RTLD_DEEPBIND = 0
import datacom
env = datacom.make_vec("AirHockey", 2, options={"horizon": 5})
env.reset(seed=0)
print(datacom.Policy(sys.argv[3]).task)
"""

ROBOT = """
import ctypes, os, sys
import numpy as np
library, file, folder = sys.argv[1:]
robot, handle = ctypes.CDLL(library), ctypes.c_void_p()
assert robot.datacom_policy_load(os.fsencode(file), ctypes.byref(handle), None, 0) == 0
given, told = np.load(folder + "/given.npz"), []
class Input(ctypes.Structure):
    _fields_ = [("observation", ctypes.c_void_p), ("noise", ctypes.c_void_p), ("previous_cost", ctypes.c_double)]
for row, noise in zip(given["observations"], given["noise"]):
    out = np.empty(4)
    assert robot.datacom_policy_act(handle, ctypes.byref(Input(row.ctypes.data, noise.ctypes.data, 0)),
                                    ctypes.c_void_p(out.ctypes.data), ctypes.c_void_p(out.ctypes.data + 8)) == 0
    told.append(out)
np.save(folder + "/told.npy", told)
"""


@pytest.fixture(scope="module")
def file(run, tmp_path_factory):
    path = tmp_path_factory.mktemp("policy") / "policy"
    subprocess.run([str(_files.program("datacom")), "export", str(run.path), "--member", "1", "--epoch", "0", "--out", str(path)], check=True)
    return path


def test_cvar_equals_bit_for_bit_what_the_actor_wrote_into_its_rows(run):
    for member in (0, 1):
        rows = run.transitions(member)
        first = rows["policy_update"] == 0
        assert first.sum() > 1500
        said = datacom.Policy.load(run.path, member, epoch=0).decide(rows["observation"][first])
        np.testing.assert_array_equal(said.cvar.astype(np.float32), rows["cvar"][first])
        np.testing.assert_array_equal(said.delta.astype(np.float32), rows["delta"][first])


def test_without_its_shield_a_policy_gives_its_sample_also_after_pickling(run, tmp_path):
    strict = datacom.train("cartpole/datacom", seeds=[3], steps=400, run_dir=tmp_path / "run",
                           settings={"run.steps_per_epoch": 200, "run.eval_episodes": 1, "replay.min_size": 100, "hyper.init_delta": 0}).wait()
    policy = datacom.Policy.load(strict.path, epoch=0)
    observations = run.transitions(1)["observation"][:50]
    said = policy.decide(observations)
    assert policy.shield and said.intervention.max() > 1e-3
    policy.shield = False
    for one in (policy, pickle.loads(pickle.dumps(policy))):
        bare = one.decide(observations)
        assert not one.shield and bare.intervention.max() == 0
        np.testing.assert_array_equal(bare.cvar, said.cvar)
        # |a - u| as the filter has said it.
        np.testing.assert_allclose(np.linalg.norm(said.action - bare.action, axis=1), said.intervention, atol=1e-7)
    policy.shield = True
    np.testing.assert_array_equal(policy.decide(observations).action, said.action)


def test_an_action_equals_that_of_the_robots_library(run, file, tmp_path):
    policy = datacom.Policy(file)
    observations = run.transitions(1)["observation"][:200].astype(np.float64)
    noise = np.random.default_rng(0).standard_normal((200, policy.noise_dim)).astype(np.float32)
    np.savez(tmp_path / "given.npz", observations=observations, noise=noise)
    # In a process of its own: Protocol Buffers cannot register the same messages twice.
    subprocess.run([sys.executable, "-c", ROBOT, str(_files.library("libdatacom_policy.so.1")), str(file), str(tmp_path)], check=True)
    told = np.load(tmp_path / "told.npy")
    decided = policy.decide(observations, noise)
    np.testing.assert_array_equal(told, np.column_stack([decided.action, decided.cvar, decided.constraint, decided.intervention]))


def test_a_control_loop_decides_at_every_tick(file):
    for program in ([_files.program("datacom-bench-control-loop")], [sys.executable, ROOT / "tests/bench/control_loop.py"]):
        told = subprocess.run([*program, file, "2000", "0.5"], check=True, text=True, stdout=subprocess.PIPE).stdout
        assert "cartpole/datacom, 2000 Hz, 1000 decisions" in told and "worst" in told


def test_a_decision_does_not_depend_on_the_ones_before(run, file):
    observations = run.transitions(1)["observation"][:50]
    policy = datacom.Policy(file)
    told = [policy.act(row) for row in observations]
    np.testing.assert_array_equal([policy.act(row) for row in observations[::-1]], told[::-1])


def test_threads_that_share_a_policy_get_the_actions_of_their_own_observations(run, file):
    policy = datacom.Policy(file)
    observations = run.transitions(1)["observation"][:8]
    alone = [policy.decide(row) for row in observations]
    start = threading.Barrier(8)

    def decide(k):
        start.wait()
        batch = policy.decide(observations)
        return [policy.decide(observations[k]) for _ in range(500)], batch

    with ThreadPoolExecutor(8) as threads:
        for k, (told, batch) in enumerate(threads.map(decide, range(8))):
            assert [one.action.tolist() for one in told] == [alone[k].action.tolist()] * 500
            assert {one.constraint for one in told} == {alone[k].constraint}
            np.testing.assert_array_equal(batch.action, [one.action for one in alone])


def test_a_process_that_is_forked_while_threads_act_can_act(file):
    policy, acting = datacom.Policy(file), threading.Event()
    rows, ends = np.zeros((200, policy.observation_dim)), []

    def act():
        while not acting.is_set():
            policy.act(rows)

    with ThreadPoolExecutor(3) as threads:
        told = [threads.submit(act) for _ in range(3)]
        while len(ends) < 10 and not any(ends):
            child = os.fork()
            if child == 0:
                signal.alarm(30)  # ends a process that waits forever
                policy.act(rows[0])
                os._exit(0)
            ends.append(os.waitpid(child, 0)[1])
        acting.set()
    assert ends == [0] * 10 and [one.result() for one in told] == [None] * 3


def test_the_c_library_acts_for_one_thread_and_tells_the_other(run, file):
    policy = datacom.Policy(file)
    observations = run.transitions(1)["observation"][:2].astype(np.float64)
    alone = [policy.act(row) for row in observations]
    start = threading.Barrier(2)

    def act(k):
        given, action, told = _native.PolicyInput(observations[k].ctypes.data, None, 0), np.empty(1), []
        start.wait()
        for _ in range(20000):
            action[0] = np.nan
            code = policy._library.datacom_policy_act(policy._handle, ctypes.byref(given), action.ctypes.data, None)
            told.append((code, action[0]))
        return told

    with ThreadPoolExecutor(2) as threads:
        for k, told in enumerate(threads.map(act, range(2))):
            assert {code for code, _ in told} <= {0, 7}
            assert {action for code, action in told if code == 0} == {alone[k][0]}
            assert all(np.isnan(action) for code, action in told if code == 7)


def test_an_episode_that_the_rule_remembers_belongs_to_one_thread(file):
    policy = datacom.Policy(file)
    policy.acting_rule = "planner"  # who may act does not depend on the nets
    policy.act(np.ones(5))
    with ThreadPoolExecutor(1, thread_name_prefix="second") as second:
        with pytest.raises(RuntimeError, match="used by another thread, MainThread.*give second_0 a policy of its own"):
            second.submit(policy.act, np.ones(5)).result()
        policy.begin()
        second.submit(policy.act, np.ones(5)).result()  # an episode of its own
        with pytest.raises(RuntimeError, match="used by another thread, second_0"):
            policy.act(np.ones(5))
    policy.act(np.ones(5))  # that thread has ended


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda policy: pickle.loads(pickle.dumps(policy))])
def test_a_copy_is_the_same_policy_without_its_file(run, file, tmp_path, again):
    policy = datacom.Policy(shutil.copy(file, tmp_path / "gone"))
    (tmp_path / "gone").unlink()
    policy.note = {"mine": 1}
    told = again(policy)
    observations = run.transitions(1)["observation"][:20]
    for ours, theirs in zip(told.decide(observations), policy.decide(observations)):
        np.testing.assert_array_equal(ours, theirs)
    assert told._handle.value != policy._handle.value and told.note == policy.note and repr(told) == repr(policy)


def test_a_pickled_policy_acts_in_another_process(run, tmp_path):
    policy = datacom.Policy.load(run.path, member=1, epoch=0)
    observations = run.transitions(1)["observation"][:20]
    (tmp_path / "pickled").write_bytes(pickle.dumps((policy, observations)))
    script = "import pickle, sys; policy, rows = pickle.load(open(sys.argv[1], 'rb')); print(policy.act(rows).ravel().tolist())"
    done = subprocess.run([sys.executable, "-c", script, tmp_path / "pickled"], check=True, text=True, stdout=subprocess.PIPE)
    assert done.stdout.strip() == str(policy.act(observations).ravel().tolist())


def test_one_observation_is_a_batch_of_one(run, file):
    policy = datacom.Policy(file)
    observations = run.transitions(1)["observation"][:5]
    batch = policy.decide(observations)
    single = policy.decide(observations[3])
    np.testing.assert_array_equal(single.action, batch.action[3])
    assert single.constraint == batch.constraint[3] and isinstance(single.cvar, float)
    np.testing.assert_array_equal(policy.act(observations), batch.action)


def test_a_policy_says_where_it_comes_from(run):
    policy = datacom.Policy.load(run.path, member=1, epoch="last")
    assert (policy.task, policy.experiment, policy.algorithm, policy.acting_rule) == ("cartpole", "cartpole/datacom", "datacom", "safe_map")
    assert (policy.member, policy.epoch, policy.observation_dim, policy.action_dim) == (1, 3, 5, 1)
    np.testing.assert_array_equal(policy.clip([3.0]), [1.0])
    assert policy.seen_dim == 5 and len(policy.observation_names) == 5 and policy.observation_names[0].startswith("cart")
    with pytest.raises(ValueError, match="number 1 of the observation, .* is nan"):
        policy.act([0, np.nan, 1, 0, 0])


@pytest.mark.parametrize("call, error, words", [
    (lambda policy: policy.act([1.0, 2.0]), ValueError, r"shape \(2,\), not \[5\]"),
    (lambda policy: policy.act([1, 2, 3, 4, np.inf]), ValueError, "number 4 of the observation, pole angular velocity .* is inf"),
    (lambda policy: policy.act([1, 2, 3, 4, 5], noise=[1, 2, 3]), ValueError, r"noise has shape \(3,\)"),
    (lambda policy: datacom.Policy("/nonexistent"), OSError, "/nonexistent"),
    (lambda policy: datacom.Policy(__file__), ValueError, "policy_test.py"),
])
def test_an_error_names_the_thing(file, call, error, words):
    with pytest.raises(error, match=words):
        call(datacom.Policy(file))


def bound(names, observations, dynamics=None):
    """A policy that sees two numbers and reads `names` of a model, bound to an environment of so many observations."""
    policy = SimpleNamespace(acting_rule="safe_map", seen_dim=2, action_dim=1, observation_dim=2 + len(names), observation_names=["place", "speed", *names],
                             action_names=["push, -1 to 1 for -1 to 3"])
    space = SimpleNamespace(low=np.full(1, -1.0), high=np.full(1, 3.0), shape=(1,), dtype=np.float64)
    return datacom.EnvPolicy(policy, SimpleNamespace(action_space=space, observation_space=SimpleNamespace(shape=(observations,)),
                                                     dynamics=lambda observation: dynamics))


MODEL_NAMES = ["q[0]", "x[0]", "x_dot[0]", "f[0]", "G[0][0]"]


def test_a_bound_policy_gets_the_observation_the_model_and_no_costs():
    model = {"q": [3.0], "x": [4.0], "x_dot": [5.0], "f": [6.0], "G": [[7.0]]}
    row = bound([*MODEL_NAMES, "cost a", "cost b"], 2, model)._row([1.0, 2.0], None)
    assert row.tolist() == [1, 2, 3, 4, 5, 6 + 7 * 1, 7 * 2, 0, 0]
    assert bound([], 2)._row([1.0, 2.0], None).tolist() == [1, 2]


@pytest.mark.parametrize("low, high, name", [(-1, 3, "push"), (-1, 1, "push, -1 to 1 for -1 to 3"), (-1, 4, "push, -1 to 1 for -1 to 3")])
def test_an_environment_with_other_bounds_of_actions_is_not_bound(low, high, name):
    space = SimpleNamespace(low=np.full(1, low), high=np.full(1, high), shape=(1,), dtype=np.float64)
    policy = SimpleNamespace(seen_dim=2, action_dim=1, observation_names=["place", "speed"], action_names=[name])
    with pytest.raises(ValueError, match=f"the environment has an action of {low} to {high} where the policy was trained with \"{name}\""):
        datacom.EnvPolicy(policy, SimpleNamespace(action_space=space, observation_space=SimpleNamespace(shape=(2,))))


FORMS = [(lambda observation: "one", True), (lambda observation, *, scale=1: "one", True), (lambda observation, **more: "one", True),
         (lambda state, action: "two", False), (lambda *states: "many", False), (lambda state, *, action: "two", False), ("kinematic", False), (None, False)]


@pytest.mark.parametrize("dynamics, is_model", FORMS)
@pytest.mark.parametrize("depth", [0, 2])
def test_the_model_is_the_function_of_one_observation_also_within_wrappers(dynamics, is_model, depth):
    space = SimpleNamespace(low=np.full(1, -1.0), high=np.full(1, 1.0), shape=(1,), dtype=np.float64)
    env = SimpleNamespace(action_space=space, observation_space=SimpleNamespace(shape=(2,)), dynamics=dynamics)
    for _ in range(depth):
        env = SimpleNamespace(action_space=space, observation_space=env.observation_space, dynamics=None, env=env)
    policy = SimpleNamespace(seen_dim=2, action_dim=1, observation_names=["place", "speed", *MODEL_NAMES], action_names=["push"])
    assert datacom.EnvPolicy(policy, env)._dynamics is (dynamics if is_model else None)


def test_a_model_that_a_class_leaves_to_others_is_looked_for_within():
    class Unread(gymnasium.Wrapper):
        dynamics = property(lambda _: {}["model"])

    env = gymnasium.Env()
    env.action_space, env.observation_space = gymnasium.spaces.Box(-1, 1, (1,)), gymnasium.spaces.Box(-1, 1, (2,))
    env.dynamics = lambda observation: {}
    policy = SimpleNamespace(seen_dim=2, action_dim=1, observation_names=["place", "speed", *MODEL_NAMES], action_names=["push"])
    assert datacom.EnvPolicy(policy, Unread(env))._dynamics is env.dynamics


class Named(gymnasium.Wrapper):
    """Passes everything on."""


@pytest.mark.parametrize("wrap, is_model", [(Named, True), (lambda env: Named(gymnasium.wrappers.RescaleAction(env, np.float32(-1), np.float32(1))), False),
                                            (lambda env: gymnasium.wrappers.RescaleObservation(env, np.float32(0), np.float32(1)), False)])
def test_a_model_of_other_actions_or_observations_than_the_outermost_ones_is_not_read(wrap, is_model):
    env = gymnasium.Env()
    env.action_space, env.observation_space = gymnasium.spaces.Box(-2, 2, (1,)), gymnasium.spaces.Box(-1, 1, (2,))
    env.dynamics = lambda observation: {}
    bounds = "-1 to 1" if wrap(env).action_space.high == 1 else "-2 to 2"
    policy = SimpleNamespace(seen_dim=2, action_dim=1, acting_rule="safe_map", action_names=[f"push, -1 to 1 for {bounds}"],
                             observation_names=["place", "speed", *MODEL_NAMES])
    bound_policy = datacom.EnvPolicy(policy, wrap(env))
    assert (bound_policy._dynamics is env.dynamics) == is_model
    if not is_model:
        with pytest.raises(ValueError, match="pass the info that has"):
            bound_policy._row([0.0, 0.0], {})


def test_an_environment_that_wraps_itself_or_has_no_box_is_no_trap():
    policy = SimpleNamespace(seen_dim=2, action_dim=1, observation_names=["place", "speed", *MODEL_NAMES], action_names=["push"])
    env = SimpleNamespace(action_space=SimpleNamespace(low=np.full(1, -1.0), high=np.full(1, 1.0)), observation_space=SimpleNamespace(shape=(2,)))
    env.env = env
    assert datacom.EnvPolicy(policy, env)._dynamics is None
    with pytest.raises(ValueError, match="observation space, .*shape=None.*, is no Box"):
        datacom.EnvPolicy(policy, SimpleNamespace(action_space=env.action_space, observation_space=SimpleNamespace(shape=None)))
    env.action_space = "Discrete(3)"
    with pytest.raises(ValueError, match=r"action space, Discrete\(3\), is no Box"):
        datacom.EnvPolicy(policy, env)


@pytest.mark.parametrize("observations", [1, 3])
def test_an_environment_of_other_observations_is_not_bound(observations):
    with pytest.raises(ValueError, match=f"has observations of {observations} numbers, the policy sees 2"):
        bound(MODEL_NAMES, observations)


@pytest.mark.parametrize("model, words", [
    ({"q": [1.0, 1.0], "f": [1.0], "G": [1.0]}, "q of the environment's model has 2 numbers, the policy reads 1"),
    # As many numbers as the policy reads, in other places.
    ({"q": [1.0, 1.0], "f": [1.0, 1.0], "G": [1.0]}, "q of the environment's model has 2 numbers, the policy reads 1"),
    ({"q": [1.0], "f": [1.0], "G": [1.0]}, "x of the environment's model has 0 numbers, the policy reads 1"),
    ({"q": [1.0], "x": [1.0], "x_dot": [1.0], "f": [1.0], "G": [1.0, 1.0]}, "G of the environment's model has 2 numbers, the policy reads 1"),
])
def test_a_model_of_other_sizes_is_refused_by_the_name_of_its_term(model, words):
    with pytest.raises(ValueError, match=words):
        bound(MODEL_NAMES, 2, model)._row([1.0, 2.0], None)


def test_a_run_without_the_epoch_is_refused_with_the_commands_words(run):
    with pytest.raises(ValueError, match="99"):
        datacom.Policy.load(run.path, epoch=99)


@pytest.mark.parametrize("other", [{"member": 0}, {"epoch": 3}])
def test_a_file_is_not_taken_for_another_member_or_epoch(file, other):
    assert datacom.Policy.load(file, member=1, epoch=0).update == datacom.Policy.load(file, epoch="best").update
    with pytest.raises(ValueError, match="holds the policy of member 1, epoch 0, alone"):
        datacom.Shield.load(file, **other)


@pytest.fixture(scope="module")
def impostor(tmp_path_factory):
    """A library that defines every symbol of Protocol Buffers and Abseil that ours uses; calling one ends the process."""
    folder = tmp_path_factory.mktemp("impostor")
    listed = subprocess.run(["nm", "-D", "--undefined-only", str(_files.library("libdatacom_python.so"))], check=True, text=True, stdout=subprocess.PIPE).stdout
    symbols = [line.split()[-1] for line in listed.splitlines() if "8protobuf" in line or "4absl" in line]
    assert len(symbols) > 50
    source = "#include <stdlib.h>\n" + "".join(
        f'void f{i}(void) __asm__("{name}");\nvoid f{i}(void) {{ _Exit(99); }}\n' for i, name in enumerate(symbols))
    (folder / "impostor.c").write_text(source)
    subprocess.run([shutil.which("cc") or "c++", "-shared", "-fPIC", "-x", "c", "-o", folder / "impostor.so", folder / "impostor.c"], check=True)
    return folder / "impostor.so"


def load_beside(impostor, how, file):
    return subprocess.run([sys.executable, "-c", RAW, impostor, how, file], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


def test_another_protocol_buffers_in_the_process_is_not_used(impostor, file):
    done = load_beside(impostor, "bound", file)
    assert (done.returncode, done.stdout.strip()) == (0, "cartpole"), done.stderr


def test_the_impostor_would_be_used_without_deep_binding(impostor, file):
    assert load_beside(impostor, "visible", file).returncode not in (0, 1)


def test_the_library_shows_only_its_own_names():
    listed = subprocess.run(["nm", "-D", "--defined-only", str(_files.library("libdatacom_python.so"))], check=True, text=True, stdout=subprocess.PIPE).stdout
    names = [line.split()[-1] for line in listed.splitlines()]
    functions = [name for name in names if name.startswith("datacom_")]
    assert sorted(functions) == sorted(_native._SIGNATURES)
    assert [name for name in names if name not in functions and "7datacom" not in name] == []  # what plug-ins use is in namespace datacom


def test_the_process_loads_no_grpc():
    script = "import datacom; datacom.make('CartPole'); print(open('/proc/self/maps').read())"
    maps = subprocess.run([sys.executable, "-c", script], check=True, text=True, stdout=subprocess.PIPE).stdout
    assert "libdatacom_python" in maps and "libgrpc" not in maps
    assert not Path("/proc/self/maps").read_text().count("libgrpc")
# SPDX-License-Identifier: Apache-2.0

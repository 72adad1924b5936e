"""The process that steps Python environments (common/tasks/python/host.py), without datacom on the other side."""

import importlib.util
import mmap
import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

HOST = Path(__file__).resolve().parents[3] / "common/tasks/python/host.py"

# After so many steps of an episode an info has these named costs; info["cost"] is the largest of them. What a test changes follows as TRAITS.
CONTACT = """
import gymnasium, numpy as np

class Contact(gymnasium.Env):
    control_dt, max_episode_steps = 0.1, 100
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
    named = {0: {"cost/a": -1.0, "cost/b": -2.0}}

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.steps += 1
        costs = {name: cost for after, some in self.named.items() if self.steps > after for name, cost in some.items()}
        return np.full(1, self.steps, np.float32), 0.0, False, False, {"cost": max(costs.values(), default=-1.0), **costs}

class make(Contact):
    pass
"""


@pytest.fixture
def host(tmp_path, monkeypatch):
    """host(traits): the module, whose environment is contact_env, a file in the working directory, a new folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def load(traits):
        (tmp_path / "contact_env.py").write_text(CONTACT + traits)
        monkeypatch.delitem(sys.modules, "contact_env", raising=False)
        spec = importlib.util.spec_from_file_location("host", HOST)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    yield load
    sys.modules.pop("contact_env", None)


def serving(module):
    """The facts of contact_env, and a Host with one of it, which is made and reset."""
    facts, named = module.facts("contact_env:make", True)
    memory = os.memfd_create("slots")
    os.ftruncate(memory, 8 * (module.SLOT_HEAD + 2 + len(facts["cost"])))
    serves = module.Host("contact_env:make", named, memory, 1, 1, 1, 0, 0, facts["cost"])
    os.close(memory)
    for operation in (module.MAKE, module.RESET):
        serves.heads[0, module.OPERATION] = operation
        serves.run(0)
    serves.heads[0, module.OPERATION] = module.STEP
    return facts, serves


def test_named_costs_are_those_of_every_info_of_the_first_look(host):
    facts, serves = serving(host("    named = {0: {'cost/a': -1.0}, 5: {'cost/wall': 2.0}}\n"))
    assert facts["cost"] == ["a", "wall"]
    recorded = []
    for _ in range(7):
        serves.run(0)
        recorded.append(serves.states[0].tolist())
    assert recorded == [*([steps, -1, 0] for steps in range(1, 6)), [6, -1, 2], [7, -1, 2]]


@pytest.mark.parametrize("before, recorded", [("{'cost/a': -1.0, 'cost/b': -1.0}", ["a", "b"]), ("{'cost/a': -1.0}", []), ("{}", [])],
                         ids=["several", "one", "none"])
def test_a_named_cost_that_the_first_look_did_not_see_is_refused_by_name(host, before, recorded):
    module = host(f"    named = {{0: {before}, 20: {{'cost/wall': 2.0}}}}\n")
    facts, serves = serving(module)
    assert facts["cost"] == recorded
    for _ in range(20):
        serves.run(0)
    with pytest.raises(module.Refused, match="its info has cost/wall of 2.0, which the first look did not see; put every named cost"):
        serves.run(0)


def test_the_process_tells_its_peer_what_it_refuses(host):
    module = host("    named = {0: {'cost/a': -1.0, 'cost/b': -1.0}, 20: {'cost/wall': 2.0}}\n")
    memory, (ours, theirs) = os.memfd_create("slots"), socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    os.ftruncate(memory, 8 * (module.SLOT_HEAD + 4))
    slot = np.frombuffer(mmap.mmap(memory, 8 * (module.SLOT_HEAD + 4)), np.float64)
    words = ["contact_env:make", theirs.fileno(), 0, memory, 1, 1, 1, 0, 0, "a", "b"]
    child = subprocess.Popen([sys.executable, HOST, *map(str, words)], pass_fds=[theirs.fileno(), memory], start_new_session=True)
    theirs.close()
    answers = [ours.recv(1 << 18)]
    for operation in [module.MAKE, module.RESET, *[module.STEP] * 21]:
        slot[module.OPERATION] = operation
        ours.send(bytes(4))
        answers.append(ours.recv(1 << 18))
    assert child.wait() == 2 and answers[0].startswith(b'kenvironment: "contact_env:make"\n') and answers[1:-1] == [b"k"] * 22
    assert answers[-1].startswith(b"rcontact_env:make: its info has cost/wall of 2.0")
    ours.close()


def test_a_named_cost_of_resets_alone_is_recorded(host):
    facts, serves = serving(host("""
    def reset(self, **more):
        return super().reset(**more)[0], {"cost": 3.0, "cost/start": 3.0}
"""))
    assert facts["cost"] == ["a", "b", "start"] and serves.states[0].tolist() == [0, 0, 0, 3]


@pytest.mark.parametrize("metadata", ['["human"]', '"human"', "None", "{}", "lambda self: {}"])
def test_metadata_of_another_form_state_no_rate(host, metadata):
    facts, _ = serving(host(f"    control_dt = None\n    dt = 0.05\n    metadata = {metadata}\n"))
    assert facts["control_dt"] == 0.05 and "control period: 0.05 s, from dt" in facts["fact"]


@pytest.mark.parametrize("attribute", ["observation_names", "action_names"])
@pytest.mark.parametrize("given, said", [("lambda self: ['x']", "<bound method"), ("'x'", "'x'"), ("7", "7")], ids=["method", "text", "number"])
def test_names_that_are_no_list_are_refused(host, attribute, given, said):
    module = host(f"    {attribute} = {given}\n")
    with pytest.raises(module.Refused, match=f"its {attribute} is {said}.*, no list of names"):
        module.facts("contact_env:make", True)


@pytest.mark.parametrize("given", ["np.array(['x / m'])", "('x / m',)", "{'x / m': 1}.keys()"])
def test_names_may_be_any_sequence(host, given):
    assert serving(host(f"    observation_names = {given}\n"))[0]["observation_name"] == ["x / m"]
# SPDX-License-Identifier: Apache-2.0

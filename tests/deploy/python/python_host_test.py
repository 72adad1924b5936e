"""The process that steps Python environments (common/tasks/python/host.py), without datacom on the other side."""

import importlib.util
import mmap
import os
import socket
import subprocess
import sys
import types
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


@pytest.mark.parametrize("attribute", ["observation_names", "action_names", "environment_files"])
@pytest.mark.parametrize("given, said", [("lambda self: ['x']", "<bound method"), ("'x'", "'x'"), ("7", "7")], ids=["method", "text", "number"])
def test_names_that_are_no_list_are_refused(host, attribute, given, said):
    module = host(f"    {attribute} = {given}\n")
    with pytest.raises(module.Refused, match=f"its {attribute} is {said}.*, no list of names"):
        module.facts("contact_env:make", True)


@pytest.mark.parametrize("given", ["np.array(['x / m'])", "('x / m',)", "{'x / m': 1}.keys()"])
def test_names_may_be_any_sequence(host, given):
    assert serving(host(f"    observation_names = {given}\n"))[0]["observation_name"] == ["x / m"]


def test_files_that_an_environment_names_identify_it_wherever_they_are(host, tmp_path):
    (tmp_path / "maps").mkdir()
    (tmp_path / "maps/city.csv").write_text("0,1")
    for named in ("['maps/city.csv']", f"('{tmp_path}/maps/city.csv',)", "[__import__('pathlib').Path(__file__).parent / 'maps/city.csv']"):
        facts, _ = serving(host(f"    environment_files = {named}\n"))
        assert facts["identity"]["file"][-1] == {"name": "maps/city.csv", "sha256": "83b97b859aa5f81b2f0f86ba2a675efaf515ad2d5e2b8652cf2de7e1c2267350"}
    module = host("    environment_files = ['maps/land.csv']\n")
    with pytest.raises(module.Refused, match="its environment_files has maps/land.csv, which is no file"):
        module.facts("contact_env:make", True)


def test_the_file_of_an_installed_environment_identifies_it_without_a_virtual_environment(host, tmp_path, monkeypatch):
    module = host("")
    installed = tmp_path / "python/site-packages"
    installed.mkdir(parents=True)
    (tmp_path / "contact_env.py").rename(installed / "contact_env.py")
    monkeypatch.syspath_prepend(installed)
    monkeypatch.setattr(module.sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path / "python")})
    monkeypatch.setattr(module, "MOST_FILES", 10**6)  # Python's own files, which are elsewhere, count as the environment's now
    names = {one["name"] for one in serving(module)[0]["identity"]["file"]}
    assert {"site-packages/contact_env.py", "socket.py"} <= names and "contact_env.py" not in names


RESETS = """
    def reset(self, **more):
        observation, info = super().reset(**more)
        {}
        return observation, info
"""
STEPS = """
    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        {}
        return observation, reward, terminated, truncated, info
"""


@pytest.mark.parametrize("trait, words", [
    (STEPS.format("info['cost'] = '0.5'"), "its cost is '0.5', no number"),
    (STEPS.format("info['cost'] = np.str_('0.5')"), "its cost is .*0.5.*, no number"),
    (STEPS.format("reward = b'1'"), "its reward is b'1', no number"),
    (STEPS.format("info['cost'] = 1e30"), "its cost is not finite or above 1e.18: number 0 is 1e.30"),
    (STEPS.format("reward = -np.inf"), "its reward is not finite or above 1e.18: number 0 is -inf"),
    (STEPS.format("info['cost/a'] = float('nan')"), "cost/a is not finite or above 1e.18: number 0 is nan"),
    (RESETS.format("self.action_space = gymnasium.spaces.Box(-2.0, 1.0, (1,))"), r"its action space is Box\(-2.0, 1.0.* after reset\(seed=0\), not as before"),
    (STEPS.format("observation = {'x': observation}"), "the observation of a step is a dict, no array of numbers"),
    (STEPS.format("observation = np.zeros(2)"), "the observation of a step has 2 numbers, not 1"),
    (STEPS.format("terminated = np.array([False, False])"), "terminated is array.*, no number"),
    (STEPS.format("truncated = 'False'"), "truncated is 'False', no number"),
    (STEPS.format("info['is_success'] = 'no'"), "its success is 'no', no number"),
    (STEPS.format("info['success'] = float('nan')"), "its success is nan, neither true nor false"),
    (STEPS.format("info = [('cost', 1.0)]"), "its info is a list, no dictionary"),
    ("    def step(self, action):\n        return np.zeros(5)\n", "step returns a ndarray, not 5 values"),
    ("    def step(self, action):\n        pass\n", "step returns a NoneType, not 5 values"),
    ("    def reset(self):\n        return np.zeros(1)\n", r"reset cannot be called as Gymnasium does, reset\(seed=0\): got an unexpected keyword"),
    (RESETS.format("observation = ['0']"), "its observation is a list, no array of numbers: it has the type <U1"),
    (RESETS.format("observation = observation + 1j"), "its observation is a ndarray, no array of numbers: it has the type complex"),
    (RESETS.format("observation = np.full(1, 1e30)"), r"its observation after reset\(seed=0\) is not finite or above 1e.18: number 0 is 1e.30"),
    (RESETS.format("info = [1]"), "its info is a list, no dictionary"),
    (RESETS.format("info['cost'] = None"), "its cost is None, no number"),
    (RESETS.format("info['cost'] = float('nan')"), r"its cost after reset\(seed=0\) is not finite"),
    (RESETS.format("info.update({'cost': 0.0, 'cost/a': 5.0})"), r"its cost, info\[.cost.\] after reset, is 0, but cost/a is 5"),
    ("    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (3,))\n", "its observation has 1 numbers, its observation space, Box.*, 3"),
    ("    action_space = gymnasium.spaces.Box(np.float32([-1, 0]), np.float32([1, 0]))\n", "no Box with finite bounds, each low one below its high one"),
    ("    action_space = gymnasium.spaces.Box(0, 1, (2,), bool)\n", "its action space, Box.*bool.*, has whole numbers"),
])
def test_what_no_row_can_hold_is_refused_by_the_first_look(host, trait, words):
    module = host(trait)
    with pytest.raises(module.Refused, match=words):
        module.facts("contact_env:make", True)


@pytest.mark.parametrize("ends", ["truncated", "terminated"])
@pytest.mark.parametrize("final", ["final_obs", "final_observation"])
def test_an_environment_that_resets_itself_is_refused_where_its_episode_ends(host, ends, final):
    module = host(STEPS.format(f"if self.steps == 20: info['{final}'], observation, {ends} = observation, np.zeros(1), True"))
    _, serves = serving(module)
    for _ in range(19):
        serves.run(0)
    with pytest.raises(module.Refused, match=f"it resets itself: its info has {final} at the end of an episode"):
        serves.run(0)


@pytest.mark.parametrize("trait", [
    *(STEPS.format(f"info['final_observation'], truncated = {form}, self.steps == 1") for form in (
        "observation.copy()", "observation.tolist()", "observation.astype(float) * (1 + 1e-9)", "{'x': observation}", "np.zeros(7)", "None")),
    STEPS.format("info['final_obs'], truncated = np.array([observation, None], object)[:1], self.steps == 1"),  # as of a vector of one
    STEPS.format("info['final_obs'], truncated = observation, self.steps == 1")
    + "Ends = make\ndef make():\n    return gymnasium.wrappers.NormalizeObservation(Ends())\n"], ids=range(8))
def test_an_environment_that_keeps_its_last_observation_is_taken_whatever_its_info_has(host, trait):
    _, serves = serving(host(trait))
    serves.run(0)
    assert serves.heads[0, 5] == 1


@pytest.mark.parametrize("trait", [STEPS.format("terminated, truncated = np.array([False]), None"), STEPS.format("info['success'] = np.bool_(True)"),
                                   STEPS.format("observation = observation.tolist()"), RESETS.format("info = None")])
def test_other_forms_of_a_truth_value_and_of_numbers_are_taken(host, trait):
    facts, serves = serving(host(trait))
    serves.run(0)
    assert facts["repeatable"] and serves.states[0].tolist() == [1, -1, -2]
    assert serves.heads[0].tolist()[2:7] == [0, -1, 0, 0, "success" in trait]


def test_without_a_cost_a_reset_has_the_largest_named_one(host):
    _, serves = serving(host(RESETS.format("info.update({'cost/a': 0.25, 'cost/b': -1.0})")))
    assert serves.heads[0, 3] == 0.25 and serves.states[0].tolist() == [0, 0.25, -1]


@pytest.mark.parametrize("attribute, value", [("cost", "float('nan')"), ("cost", "1e30"), ("observation", "np.full(1, 1e30)")])
def test_a_later_reset_with_a_number_that_is_not_finite_is_refused(host, attribute, value):
    changed = f"info['cost'] = {value}" if attribute == "cost" else f"observation = {value}"
    module = host(RESETS.format(f"if more['seed'] == 7: {changed}"))
    _, serves = serving(module)
    serves.heads[0, :2] = module.RESET, 7
    with pytest.raises(module.Refused, match=rf"its {attribute}.* after reset\(seed=7\) is not finite or above 1e.18"):
        serves.run(0)


@pytest.mark.parametrize("trait", [
    RESETS.format("self.state[:] = 0") + STEPS.format("self.state[:] += action; observation = self.state.copy()"),
    RESETS.format("self.state[:] = more['seed']") + STEPS.format("reward = float(self.state[0])")], ids=["by steps", "by resets"])
def test_environments_that_change_each_other_are_refused(host, trait):
    module = host("    state = np.zeros(1)  # of the class\n" + trait)
    with pytest.raises(module.Refused, match="its environments change each other: what one observes depends on what another in the same process does"):
        module.facts("contact_env:make", True)


@pytest.mark.parametrize("draw, repeatable", [
    ("np.random.seed(more['seed'])", True), ("np.random.seed(more['seed']); self.step = lambda action: (np.random.rand(1), *make.step(self, action)[1:])", False),
    ("import random; random.seed(more['seed']); self.step = lambda action: ([random.random()], *make.step(self, action)[1:])", False),
    ("DRAWS.seed(more['seed']); self.step = lambda action: ([DRAWS.random()], *make.step(self, action)[1:])", False),
    ("make.draws = np.random.default_rng(more['seed']); self.step = lambda action: (make.draws.random(1), *make.step(self, action)[1:])", False),
    ("make.draws = np.random.RandomState(more['seed']); self.step = lambda action: (make.draws.rand(1), *make.step(self, action)[1:])", False)], ids=range(6))
def test_environments_that_draw_from_a_generator_that_they_share_are_taken(host, draw, repeatable):
    facts, _ = host(RESETS.format(draw) + "\nimport random\nDRAWS = random.Random(0)\n").facts("contact_env:make", True)
    assert facts["repeatable"] == repeatable
    assert repeatable or "repeatable: no, two environments differ after the same seed and actions" in facts["fact"]


@pytest.mark.parametrize("trait", [
    "\nPlain = make\n\ndef make():\n    return gymnasium.wrappers.NormalizeObservation(Plain())\n",
    "    level = 0\n" + RESETS.format("self.level += 1; observation = observation + self.level"),
    "    side = 1\n" + RESETS.format("self.side *= -1; observation = observation + self.side")], ids=["mean", "curriculum", "sides"])
def test_an_environment_that_keeps_something_between_its_episodes_is_not_repeatable(host, trait):
    facts, _ = host(trait).facts("contact_env:make", True)
    assert not facts["repeatable"] and "reward" not in facts["identity"]
    assert any(fact.startswith("repeatable: no, its second episode differs from its first") for fact in facts["fact"])


@pytest.mark.parametrize("trait", ["", STEPS.format("observation = np.random.rand(1)")])
def test_a_module_that_fails_when_it_is_asked_for_anything_does_no_harm(host, monkeypatch, trait):
    class Lazy(types.ModuleType):
        def __getattribute__(self, name):
            raise ImportError("an optional part is missing")

    module = host(trait)
    for name, part in {"lazy_part": Lazy("lazy_part"), "no_part": None}.items():
        monkeypatch.setitem(sys.modules, name, part)
    assert serving(module)[0]["repeatable"] == (trait == "")


@pytest.mark.parametrize("change", ["self.action_space = gymnasium.spaces.Box(-1.0, 2.0, (1,))", "self.action_space.high[:] = 2.0"])
def test_bounds_of_actions_that_a_later_reset_changes_are_refused(host, change):
    module = host("    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float64)\n" + RESETS.format(f"if more['seed'] == 7: {change}"))
    _, serves = serving(module)
    serves.heads[0, :2] = module.RESET, 7
    with pytest.raises(module.Refused, match=r"its action space is Box\(.* after reset\(seed=7\), not as before"):
        serves.run(0)


@pytest.mark.parametrize("again", ["ONE", "gymnasium.wrappers.TimeLimit(ONE, 100)"])
def test_a_callable_that_gives_the_same_environment_again_is_refused(host, again):
    module = host(f"\nONE = make()\n\ndef make():\n    return {again}\n")
    with pytest.raises(module.Refused, match="it gives the same environment at every call"):
        module.facts("contact_env:make", True)


def test_an_environment_may_write_into_the_array_that_it_has_returned(host):
    facts, serves = serving(host("""
    def reset(self, **more):
        super().reset(**more)
        self.seen = np.zeros(1)
        return self.seen, {}

    def step(self, action):
        self.seen += 1
        return (self.seen, *super().step(action)[1:])
"""))
    assert facts["repeatable"] and facts["identity"]["observation"] == [0, 10]


def test_an_attribute_env_that_wraps_nothing_or_the_environment_itself_does_no_harm(host):
    for value in ("self", "'maze'", "{'dt': 3}"):
        facts, _ = serving(host(f"    def __init__(self):\n        self.env = {value}\n"))
        assert facts["control_dt"] == 0.1


@pytest.mark.parametrize("name", ["dynamics", "dt", "horizon", "observation_names", "spec", "metadata"])
def test_a_property_that_cannot_be_read_states_nothing(host, name):
    facts, _ = serving(host(f"    @property\n    def {name}(self):\n        raise NotImplementedError\n"))
    assert (facts["horizon"], facts["control_dt"], facts["q"]) == (100, 0.1, 0)


def answer_of(traits):
    """What the process says of contact_env, and its exit code."""
    Path("contact_env.py").write_text(CONTACT + traits)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    child = subprocess.Popen([sys.executable, HOST, "contact_env:make", str(theirs.fileno()), "0"], pass_fds=[theirs.fileno()], start_new_session=True)
    theirs.close()
    with ours:
        return ours.recv(1 << 18), child.wait()


@pytest.mark.parametrize("traits, said", [
    ("    def __init__(self):\n        raise SystemExit('no licence')\n", b"fcontact_env:make raised SystemExit: no licence ("),
    ("raise ModuleNotFoundError('pip install simulator')\n", b"fcontact_env:make raised ModuleNotFoundError: pip install simulator ("),
    ("import nothing_of_this_name\n", b"fcontact_env:make raised ModuleNotFoundError: No module named 'nothing_of_this_name' ("),
    (STEPS.format("import sys; sys.stderr.close(); raise ValueError('broken')"), b"fcontact_env:make raised ValueError: broken ("),
])
def test_the_process_tells_why_it_ends(host, traits, said):
    answer, code = answer_of(traits)
    assert answer.startswith(said) and code == 1


@pytest.mark.parametrize("traits, kind", [(STEPS.format("reward = None"), b"r"), (STEPS.format("raise RuntimeError('broken')"), b"f"), ("", b"k")])
def test_both_environments_of_the_first_look_are_closed_whatever_it_finds(host, traits, kind):
    answer, _ = answer_of(traits + """
    def close(self):
        with open("closed", "a") as file:
            file.write("c")
""")
    assert answer[:1] == kind and Path("closed").read_text() == "cc"


def test_a_process_that_an_environment_forks_ends_for_itself(host):
    answer, code = answer_of("""
    def __init__(self):
        import os, sys
        child = os.fork()
        if child == 0:
            sys.exit(7)
        assert os.WEXITSTATUS(os.waitpid(child, 0)[1]) == 7

    def close(self):
        with open("closed", "a") as file:
            file.write("c")
""")
    assert (answer[:1], code, Path("closed").read_text()) == (b"k", 0, "cc")


def test_a_file_is_refused_with_the_module_to_name(host, tmp_path):
    module = host("")
    (tmp_path / "robots/arm").mkdir(parents=True)
    for file in ("robots/arm/__init__.py", "robots/arm/env.py"):
        (tmp_path / file).touch()
    for file, folder, name in (("contact_env.py", tmp_path, "contact_env"), ("robots/arm/env.py", tmp_path / "robots", "arm.env")):
        with pytest.raises(module.Refused, match=f"{file} is a file: run the command in {folder}, or set PYTHONPATH, and name {name}:make"):
            module.load(f"{file}:make")


@pytest.mark.parametrize("name, words", [("__main__:make", "a notebook or script is no module .* name FILE:make"),
                                         ("contact_env:build", "the module contact_env, .*/contact_env.py, has no build"),
                                         ("sys:make", "the module sys, which has no file, has no make"),
                                         ("contact_env:Contact.step", r"Contact.step cannot be called without arguments, missing .*: write a function that"),
                                         (":make", '":make" is not MODULE:CALLABLE'), (".envs:make", '".envs:make" is not MODULE:CALLABLE'),
                                         *((name, f"{name} is a name of Gymnasium's registry: .* returns gymnasium.make") for name in (
                                             "Pendulum-v1", "contact_env:Contact-v0"))])
def test_a_module_without_the_callable_is_refused_by_its_place(host, name, words):
    module = host("")
    with pytest.raises(module.Refused, match=words):
        module.load(name)


def test_an_environment_does_not_see_the_arguments_of_the_process(host):
    answer, code = answer_of("import argparse\nargparse.ArgumentParser().parse_args()\n")
    assert answer.startswith(b'kenvironment: "contact_env:make"\n') and code == 0
# SPDX-License-Identifier: Apache-2.0

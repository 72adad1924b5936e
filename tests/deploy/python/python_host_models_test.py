"""What the process that steps Python environments asks of a control-affine model."""

import numpy as np
import pytest
from python_host_test import RESETS, STEPS, host  # noqa: F401  a fixture

CONTROLLED = """
    def dynamics(self, observation):
        return {"q": observation, "f": [0.0], "G": [[1.0]]}
"""


@pytest.mark.parametrize("wrapped, q", [
    ("wrappers.TimeLimit(Plain(), 100)", 1), ("wrappers.RescaleAction(Plain(), np.float32(-2), np.float32(2))", 0),
    ("wrappers.NormalizeObservation(Plain())", 0), ("wrappers.TimeLimit(wrappers.NormalizeObservation(Plain()), 100)", 0),
], ids=["limit", "actions", "observations", "inside"])
def test_a_model_of_other_actions_or_observations_than_the_outermost_ones_is_none(host, wrapped, q):
    facts, _ = host(CONTROLLED + f"""
Plain, wrappers = make, gymnasium.wrappers

def make():
    return {wrapped}
""").facts("contact_env:make", True)
    assert facts["q"] == q
    assert q or facts["without_model"].startswith("its dynamics is that of make, whose actions or observations ")


@pytest.mark.parametrize("reset, step, q", [
    ("", "", 1), ("", "super().step(action); outcome = super().step(action)", 1), ("", "outcome = super().step(action / 2)", 0),
    ("", "outcome = (2 * outcome[0], *outcome[1:])", 0), ("outcome = (1 + outcome[0], {})", "", 0)], ids=["same", "repeated", "actions", "steps", "resets"])
def test_a_model_within_a_wrapper_that_changes_what_its_spaces_do_not_tell_is_refused(host, reset, step, q):
    wrapper = RESETS.replace("observation, info", "outcome").format(reset) + STEPS.replace("observation, reward, terminated, truncated, info", "outcome").format(step)
    module = host(CONTROLLED + "\nPlain = make\n\nclass Own(gymnasium.Wrapper):" + wrapper + "\ndef make():\n    return Own(Plain())\n")
    if not q:
        with pytest.raises(module.Refused, match="its dynamics is that of make, but a wrapper around that changes observations or actions"):
            module.facts("contact_env:make", True)
    assert module.facts("contact_env:make", bool(q))[0]["q"] == q


@pytest.mark.parametrize("outer, refused", [("Scaled(Plain())", True), ("gymnasium.wrappers.TimeLimit(Scaled(Plain()), 100)", True), ("Plain()", False),
                                            ("Own(Scaled(Plain()))", True), ("gymnasium.wrappers.TimeLimit(Own(Plain()), 100)", False),
                                            ("Half(Plain())", True), ("Own(Halves(Plain()))", True), ("Stating(Halves(Plain()))", False)])
def test_a_model_in_an_info_belongs_to_the_actions_that_the_environment_takes(host, outer, refused):
    model, half = "info['dynamics'] = {'q': [0], 'f': [0], 'G': [1]}", "info['dynamics']['G'] = [0.5]"
    module = host(RESETS.format(model) + STEPS.format(model) + f"""
Plain, Scaled = make, lambda env: gymnasium.wrappers.RescaleAction(env, np.float32(-2), np.float32(2))

class Own(gymnasium.Wrapper):
    pass

class Half(gymnasium.ActionWrapper):
    def action(self, action):
        return action / 2

class Halves(gymnasium.Wrapper):
    def step(self, action):
        return super().step(action / 2)

class Stating(gymnasium.Wrapper):""" + RESETS.format(half) + STEPS.format(half) + f"""
def make():
    return {outer}
""")
    if refused:
        with pytest.raises(module.Refused, match="is that of make, whose actions a wrapper changes: put it into the info outside of that; or train"):
            module.facts("contact_env:make", True)
    assert module.facts("contact_env:make", not refused)[0]["q"] == (not refused)


@pytest.mark.parametrize("trait", ["    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float16)\n", """
    copied = False

    def step(self, action):
        import copy
        other = copy.deepcopy(self)
        other.copied = True
        ahead = 0 if self.copied else other.step(action)[0][0]
        observation, _, *others = super().step(action)
        return observation, ahead - observation[0], *others
"""], ids=["half precision", "looks ahead"])
def test_a_model_within_a_wrapper_is_taken_whatever_its_step_does(host, trait):
    facts, _ = host(CONTROLLED + trait + "\nPlain = make\n\ndef make():\n    return gymnasium.wrappers.TimeLimit(Plain(), 100)\n").facts("contact_env:make", True)
    assert facts["q"] == 1 and facts["identity"]["reward"] == [0] * 10


def test_a_flattened_dictionary_keeps_its_model(host):
    facts, _ = host(CONTROLLED + RESETS.format("observation = {'x': observation}") + STEPS.format("observation = {'x': observation}") + """
    observation_space = gymnasium.spaces.Dict({"x": gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float32)})

Plain = make

def make():
    return gymnasium.wrappers.FlattenObservation(Plain())
""").facts("contact_env:make", True)
    assert (facts["observation"], facts["q"]) == (1, 1)


THREE = "    action_space = gymnasium.spaces.Box(-1.0, 1.0, (3,), np.float32)\n"


@pytest.mark.parametrize("model, words", [
    ("{'q': [0, 0], 'f': [0, 0], 'G': np.ones((3, 2))}", r"G of its dynamics has the shape \(3, 2\), not \(2, 3\)"),
    ("{'q': [], 'f': [], 'G': []}", "q of its dynamics has no numbers"),
    ("{'q': [], 'f': [], 'G': [], 'x': [1], 'x_dot': [1]}", "q of its dynamics has no numbers"),
    ("{'q': ['a'], 'f': [0], 'G': [0, 0, 0]}", "q of its dynamics is a list, no array of numbers"),
])
def test_a_model_of_another_form_is_refused(host, model, words):
    module = host(THREE + f"    def dynamics(self, observation):\n        return {model}\n")
    with pytest.raises(module.Refused, match=words):
        module.facts("contact_env:make", True)


@pytest.mark.parametrize("G", ["np.ones((2, 3))", "np.ones(6)", "np.ones((1, 2, 3))", "[[1, 1, 1], [1, 1, 1]]"])
def test_a_model_may_have_its_numbers_in_a_row_or_for_a_batch_of_one(host, G):
    facts, _ = host(THREE + f"    def dynamics(self, observation):\n        return {{'q': [0, 0], 'f': [0, 0], 'G': {G}}}\n").facts("contact_env:make", True)
    assert facts["q"] == 2


@pytest.mark.parametrize("where, said", [(RESETS, "1 and an x of 0 numbers after reset, 0 and 0 after"), (STEPS, "0 and an x of 0 numbers after reset, 1 and 0 after")])
def test_a_model_that_only_some_infos_have_is_refused_by_the_first_look(host, where, said):
    module = host(where.format("info['dynamics'] = {'q': [0], 'f': [0], 'G': [1]}"))
    with pytest.raises(module.Refused, match=f"its dynamics have a q of {said} a step"):
        module.facts("contact_env:make", True)
    assert module.facts("contact_env:make", False)[0]["q"] == 0
# SPDX-License-Identifier: Apache-2.0

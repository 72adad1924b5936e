"""datacom.lerobot with LeRobot's own processors. What those import but never call here is replaced by stand-ins while they are imported: LeRobot's
data sets with the packages these need, and drivers of motors."""
import sys
from unittest import mock

import datacom
import numpy as np
import pytest
import torch

STAND_INS = ["accelerate", "datasets", "datasets.utils", "datasets.utils.logging", "deepdiff", "serial", "torchvision", "torchvision.transforms",
             "torchvision.transforms.functional", "lerobot.datasets.lerobot_dataset"]
for name in STAND_INS:
    sys.modules[name] = mock.MagicMock(name=name)
from datacom.lerobot import ShieldProcessorStep  # noqa: E402  the stand-ins come first
from lerobot.processor import (DataProcessorPipeline, ProcessorStepRegistry, RobotProcessorPipeline,  # noqa: E402
                               create_transition)
from lerobot.processor.converters import identity_transition, robot_action_observation_to_transition, transition_to_robot_action  # noqa: E402

for name in STAND_INS:
    del sys.modules[name]

SHIPPED = "shipped:air_hockey/datacom"


@pytest.fixture(scope="module")
def shield():
    return datacom.Shield.load(SHIPPED)


@pytest.fixture(scope="module")
def step():
    return ShieldProcessorStep(SHIPPED)


@pytest.fixture(scope="module")
def observations():
    env = datacom.make_vec("AirHockey", 20)
    env.reset(seed=1)
    for action in np.random.default_rng(1).uniform(-1, 1, (30, 20, 3)):
        seen = env.step(action)[0]
    return seen


def test_a_batch_of_tensors_becomes_the_shields_actions(step, shield, observations):
    wanted = np.full((20, 3), 0.9, np.float32)
    told = step(create_transition(observation={"observation.state": torch.from_numpy(observations)}, action=torch.from_numpy(wanted),
                                  info={"cost": np.zeros(20), "more": 1}))
    said = shield(observations, wanted)
    assert said.intervention.max() > 0.1 and told["action"].dtype == torch.float32
    np.testing.assert_array_equal(told["action"], said.action.astype(np.float32))
    np.testing.assert_array_equal(told["info"]["shield/constraint"], said.constraint)
    np.testing.assert_array_equal(told["info"]["shield/change"], said.intervention)
    assert told["info"]["more"] == 1


def test_an_array_stays_an_array(step, shield, observations):
    told = step(create_transition(observation={"observation.state": observations[0]}, action=np.full(3, 0.9)))
    assert told["action"].tolist() == shield(observations[0], np.full(3, 0.9)).action.tolist()
    assert isinstance(told["info"]["shield/constraint"], float)


@pytest.mark.parametrize("form", [list, np.array, torch.tensor])
def test_an_action_of_whole_numbers_does_not_cut_the_shields(step, shield, observations, form):
    said = shield(observations, np.tile([1, -1, 1], (20, 1)))
    most = int(said.intervention.argmax())
    told = step(create_transition(observation={"observation.state": observations[most]}, action=form([1, -1, 1])))
    assert 0 < abs(said.action[most]).min() < 1
    np.testing.assert_array_equal(told["action"], said.action[most])


def test_a_robots_action_is_a_dictionary_and_keeps_its_other_numbers(shield, observations):
    motors = ["a.pos", "b.pos", "c.pos"]
    sensors = [f"sensor{i}" for i in range(len(observations[0]))]
    robot = RobotProcessorPipeline([ShieldProcessorStep(SHIPPED, observation_names=sensors, action_names=motors)],
                                   to_transition=robot_action_observation_to_transition, to_output=transition_to_robot_action)
    seen = dict(zip(sensors, observations[7].tolist()))
    told = robot(({"c.pos": np.array([0.9]), "a.pos": -0.9, "b.pos": 0.5, "gripper": 4.0}, seen))
    said = shield(observations[7], [-0.9, 0.5, 0.9])
    assert told == {"a.pos": said.action[0], "b.pos": said.action[1], "c.pos": said.action[2], "gripper": 4.0}
    with pytest.raises(ValueError, match="has no b.pos; it has a.pos, c.pos"):
        robot(({"a.pos": 0.0, "c.pos": 0.0}, seen))


def test_a_saved_pipeline_acts_as_before(step, observations, tmp_path):
    assert ProcessorStepRegistry.get("datacom_shield") is ShieldProcessorStep
    both = {"to_transition": identity_transition, "to_output": identity_transition}
    before = DataProcessorPipeline([step], name="guard", **both)
    before.save_pretrained(tmp_path)
    after = DataProcessorPipeline.from_pretrained(tmp_path, "guard.json", **both)
    assert after.steps[0].get_config() == step.get_config() and step.get_config()["source"] == SHIPPED
    wanted = create_transition(observation={"observation.state": observations[4]}, action=torch.full((3,), -0.9))
    assert after(wanted)["action"].tolist() == before(wanted)["action"].tolist()


def test_what_does_not_fit_is_refused(step, observations):
    seen = {"observation.state": observations[0]}
    with pytest.raises(ValueError, match="has no observation: the shield needs both"):
        step(create_transition(action=torch.zeros(3)))
    with pytest.raises(ValueError, match="has no action: the shield needs both"):
        step(create_transition(observation=seen))
    with pytest.raises(ValueError, match=r"the action has shape \(2,\), not \[3\]"):
        step(create_transition(observation=seen, action=torch.zeros(2)))
    with pytest.raises(ValueError, match="number 1 of the proposed action is nan"):
        step(create_transition(observation=seen, action=torch.tensor([0, float("nan"), 0])))
    with pytest.raises(NotImplementedError, match="which has no filter"):
        ShieldProcessorStep("shipped:air_hockey/sac")
# SPDX-License-Identifier: Apache-2.0

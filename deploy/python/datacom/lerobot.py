"""The shield as a step of LeRobot's processors (0.4 or newer), in their registry as "datacom_shield"::

    from lerobot.processor import RobotProcessorPipeline
    from lerobot.processor.converters import robot_action_observation_to_transition, transition_to_robot_action
    from datacom.lerobot import ShieldProcessorStep
    RobotProcessorPipeline([ShieldProcessorStep("arm.policy")], to_transition=robot_action_observation_to_transition,
                           to_output=transition_to_robot_action)

Import this module before a saved pipeline with the step is loaded.
"""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from datacom.shield import Shield

try:
    import torch
    from lerobot.processor import ProcessorStep, ProcessorStepRegistry, TransitionKey
except ImportError as error:
    raise ImportError('datacom.lerobot needs LeRobot: pip install "lerobot>=0.4"') from error


def _numbers(values: Any, names: Sequence[str]) -> NDArray[np.float64]:
    """The numbers of a tensor, an array, or a dictionary that has the names."""
    if isinstance(values, Mapping):
        missing = [name for name in names if name not in values]
        if missing:
            raise ValueError(f"the dictionary has no {', '.join(missing)}; it has {', '.join(map(str, values))}")
        values = [_numbers(values[name], []).item() for name in names]
    return np.asarray(values.detach().to("cpu", torch.float64) if isinstance(values, torch.Tensor) else values, np.float64)


@ProcessorStepRegistry.register("datacom_shield")
class ShieldProcessorStep(ProcessorStep):
    """Puts the shield's action in the place of a transition's action, and "shield/constraint" (k of the observation, unsafe above 0) and
    "shield/change" (how far the action was moved) into its info; one number, or one for each row of a batch.

    The observation is observation[observation_key], [observation_dim] or [batch, observation_dim]; or, where that key is missing, one number
    under each of observation_names. The action is a tensor or an array, [action_dim] or [batch, action_dim], and keeps its type, except that
    whole numbers become real ones; or a dictionary with one number under each of action_names. Both are in order and units of the policy, not
    normalised: place the step after the one that unnormalises. info["cost"], where it is there, is the cost of the observation. LeRobot gives
    a policy's postprocessor the action alone; robot_action_processor, and an environment's action processor, get both.

    source, member, epoch: as of Shield.load. observation_names, action_names: default the policy's own.
    Raises ValueError for a transition without observation or action, for a missing name, and otherwise like Shield.
    """

    def __init__(self, source: str | os.PathLike[str], member: int | None = None, epoch: str | int | None = None,
                 observation_key: str = "observation.state", observation_names: Sequence[str] | None = None,
                 action_names: Sequence[str] | None = None) -> None:
        self.shield = Shield.load(source, member, epoch)
        self._config = {"source": os.fspath(source), "member": member, "epoch": epoch, "observation_key": observation_key,
                        "observation_names": list(observation_names or self.shield.policy.observation_names),
                        "action_names": list(action_names or self.shield.policy.action_names)}

    def __call__(self, transition: Mapping[Any, Any]) -> dict[Any, Any]:
        seen, wanted = transition.get(TransitionKey.OBSERVATION), transition.get(TransitionKey.ACTION)
        if seen is None or wanted is None:
            raise ValueError(f"the transition has no {'observation' if seen is None else 'action'}: the shield needs both")
        info, names = transition.get(TransitionKey.INFO) or {}, self._config["action_names"]
        said = self.shield(_numbers(seen.get(self._config["observation_key"], seen), self._config["observation_names"]), _numbers(wanted, names),
                           previous_cost=_numbers(info.get("cost", 0), []))
        action: Any = said.action
        if isinstance(wanted, Mapping):
            action = {**wanted, **dict(zip(names, action.tolist()))}
        elif isinstance(wanted, torch.Tensor):
            action = torch.as_tensor(action, dtype=wanted.dtype if wanted.is_floating_point() else None, device=wanted.device)
        elif np.asarray(wanted).dtype.kind == "f":
            action = action.astype(np.asarray(wanted).dtype)
        return {**transition, TransitionKey.ACTION: action,
                TransitionKey.INFO: {**info, "shield/constraint": said.constraint, "shield/change": said.intervention}}

    def get_config(self) -> dict[str, Any]:
        return dict(self._config)

    def transform_features(self, features: Any) -> Any:
        return features  # the action keeps its shape
# SPDX-License-Identifier: Apache-2.0

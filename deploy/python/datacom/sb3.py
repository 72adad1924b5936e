"""The tasks as vectorised environments of Stable-Baselines3 (2.4 or newer).

    from stable_baselines3 import SAC
    from datacom.sb3 import VecEnv
    SAC("MlpPolicy", VecEnv("CartPole", 8)).learn(50_000)  # or VecEnv(datacom.make_vec("CartPole", 8, autoreset_mode="same_step"))
"""

from __future__ import annotations

import os
from typing import Any, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from datacom.envs import VectorEnv
from datacom.shield import Shield

try:
    from stable_baselines3.common.vec_env import VecEnv as _VecEnv
except ImportError as error:
    raise ImportError('datacom.sb3 needs Stable-Baselines3: pip install "stable-baselines3>=2.4"') from error


class VecEnv(_VecEnv):
    """`num_envs` environments of a task, stepped by C++ threads, as Stable-Baselines3 wants them.

    An episode that ends resets by itself: its last observation is in the info's "terminal_observation", and "TimeLimit.truncated" says whether
    the time limit ended it. Every info has the values of datacom.envs ("cost", "success", ...) and, for Stable-Baselines3's records, "is_success".

    task: as for datacom.VectorEnv; or a vector of datacom.make_vec with autoreset_mode="same_step", which has num_envs and the like itself.
    shield: every action goes through it; see Shield.wrap for what the infos say then.
    The other parameters are those of datacom.VectorEnv. Raises ValueError for a vector that resets or copies in another way.
    """

    def __init__(self, task: str | os.PathLike[str] | VectorEnv, num_envs: int = 1, *, shield: Shield | None = None, **parameters: Any) -> None:
        if not isinstance(task, VectorEnv):
            task = VectorEnv(task, num_envs, autoreset_mode="same_step", **parameters)
        elif num_envs != 1 or any(value is not None for value in parameters.values()):
            raise ValueError(f"{', '.join(['num_envs', *parameters])} are those of the vector: give them to datacom.make_vec")
        if task._mode != "same_step" or not task._copy:
            raise ValueError('Stable-Baselines3 needs datacom.make_vec(..., autoreset_mode="same_step"), with copy=True')
        self.unwrapped_env = task
        self._env: Any = task if shield is None else shield.wrap(task)
        self._actions: NDArray[Any] = np.zeros(0)
        super().__init__(task.num_envs, self.unwrapped_env.single_observation_space, self.unwrapped_env.single_action_space)
        self.metadata = self.unwrapped_env.metadata

    def reset(self) -> NDArray[np.float32]:
        options = [one for one in self._options if one]
        if options and (len(options) != self.num_envs or any(one != options[0] for one in options)):
            raise ValueError("the options of a reset must be the same for all environments")
        seeds = self._seeds if any(seed is not None for seed in self._seeds) else None
        observation, info = self._env.reset(seed=seeds, options=options[0] if options else None)
        self.reset_infos = self._infos(info)
        self._reset_seeds()
        self._reset_options()
        return observation

    def step_async(self, actions: NDArray[Any]) -> None:
        self._actions = actions

    def step_wait(self) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.bool_], list[dict[str, Any]]]:
        observation, reward, terminated, truncated, info = self._env.step(self._actions)
        done = terminated | truncated
        infos = self._infos(info)
        for i in np.flatnonzero(done):
            infos[i].update({"terminal_observation": info["final_obs"][i], "TimeLimit.truncated": bool(truncated[i] and not terminated[i])})
        return observation, reward.astype(np.float32), done, infos

    def _infos(self, info: Mapping[str, Any]) -> list[dict[str, Any]]:
        columns = {name: values for name, values in info.items() if not name.startswith(("_", "final_"))}
        infos = [{name: values[i] for name, values in columns.items()} for i in range(self.num_envs)]
        for one in infos:
            one["is_success"] = one["success"]
        return infos

    def close(self) -> None:
        self._env.close()

    def get_images(self) -> Sequence[NDArray[np.uint8]]:
        return self.unwrapped_env.render() if self.render_mode == "rgb_array" else [None] * self.num_envs  # type: ignore[list-item]

    def get_attr(self, attr_name: str, indices: Any = None) -> list[Any]:
        return [getattr(self.unwrapped_env, attr_name)] * len(list(self._get_indices(indices)))

    def set_attr(self, attr_name: str, value: Any, indices: Any = None) -> None:
        raise AttributeError(f"{attr_name} cannot be set: the environments share one object")

    def env_method(self, method_name: str, *arguments: Any, indices: Any = None, **parameters: Any) -> list[Any]:
        raise AttributeError(f"{method_name} cannot be called on single environments: they share one object")

    def env_is_wrapped(self, wrapper_class: Any, indices: Any = None) -> list[bool]:
        return [False] * len(list(self._get_indices(indices)))
# SPDX-License-Identifier: Apache-2.0

"""Environments whose actions go through a shield: `Shield.wrap` makes them. Needs Gymnasium."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
from numpy.typing import ArrayLike, NDArray

from datacom.policy import Decision, Policy, detached

if TYPE_CHECKING:
    from datacom.shield import Shield


def is_vector(env: Any) -> bool:
    return isinstance(env, gymnasium.vector.VectorEnv)


def _said(decision: Decision) -> dict[str, Any]:
    return {"shield/action": decision.action, "shield/constraint": decision.constraint, "shield/change": decision.intervention}


def _seen(observation: Any) -> Any:
    if observation is None:
        raise gymnasium.error.ResetNeeded("reset the environment before its first step")
    return observation


def _action(decision: Decision, space: gymnasium.Space[Any]) -> NDArray[Any]:
    """A copy, which the environment may change, in the type of the space: it may take only what its space contains."""
    return np.asarray(decision.action).astype(space.dtype, casting="same_kind")


class ShieldedEnv(gymnasium.Wrapper):
    """One environment behind a shield."""

    def __init__(self, env: gymnasium.Env, shield: Shield) -> None:
        super().__init__(env)
        self._shield = shield
        self._observation: Any = None
        self._before: dict[str, Any] = {}
        self._cost: ArrayLike = 0.0

    def reset(self, **parameters: Any) -> tuple[Any, dict[str, Any]]:
        observation, self._before = self.env.reset(**parameters)
        self._observation, self._cost = np.array(detached(observation)), 0.0  # a copy: the caller may change its own
        return observation, self._before

    def step(self, action: Any) -> Any:
        """Five values; of an environment of Safety-Gymnasium six."""
        decision = self._shield(_seen(self._observation), action, self._before, self._cost)
        observation, *rest, info = self.env.step(_action(decision, self.action_space))
        self._observation, self._before = np.array(detached(observation)), info
        self._cost = rest[1] if len(rest) == 4 else info.get("cost", 0)
        return (observation, *rest, {**info, **_said(decision)})


class ShieldedVectorEnv(gymnasium.vector.VectorWrapper):
    """Many environments behind a shield. Not for Python environments that a policy was trained in: a shield reads their models one by one."""

    def __init__(self, env: gymnasium.vector.VectorEnv, shield: Shield) -> None:
        super().__init__(env)
        if not isinstance(shield.policy, Policy):
            raise NotImplementedError("a shield that is bound to a Python environment wraps one environment at a time")
        self._shield = shield
        self._observation: NDArray[Any] | None = None
        self._cost = np.zeros(env.num_envs)
        self._ended = np.zeros(env.num_envs, np.bool_)
        self._all = np.ones(env.num_envs, np.bool_)
        self._same_step = "same" in str(env.metadata.get("autoreset_mode", "")).lower()

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        mask = (options or {}).get("reset_mask")
        started = self._all if mask is None else np.asarray(mask, np.bool_)
        self._observation = np.array(detached(observation))
        self._cost = np.where(started, 0.0, self._cost)
        self._ended = self._ended & ~started
        return observation, info

    def step(self, actions: ArrayLike) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        decision = self._shield(_seen(self._observation), actions, None, self._cost)
        observation, reward, terminated, truncated, info = self.env.step(_action(decision, self.action_space))
        self._observation = np.array(detached(observation))
        ended = np.asarray(detached(terminated | truncated), np.bool_)
        fresh = ended if self._same_step else self._ended  # at the start of an episode
        cost = np.reshape(detached(info.get("cost", np.zeros(self.num_envs))), self.num_envs)  # of [num_envs, 1], too
        self._cost, self._ended = np.where(fresh, 0.0, cost), ended
        said = _said(decision)
        return observation, reward, terminated, truncated, {**info, **said, **{f"_{name}": self._all for name in said}}
# SPDX-License-Identifier: Apache-2.0

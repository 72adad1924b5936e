"""The safety filter of a trained policy, for the actions of anybody's policy."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Mapping

import numpy as np
from numpy.typing import ArrayLike

from datacom.policy import Decision, EnvPolicy, Policy

if TYPE_CHECKING:
    from datacom.shielded import ShieldedEnv, ShieldedVectorEnv


class Shield:
    """Takes an observation and an action that somebody else's policy wants, and gives the action that the filter of a trained policy makes of
    it. The policy itself is not asked. Threads may share a shield, as they may share a Policy."""

    def __init__(self, policy: Policy | EnvPolicy) -> None:
        """policy: whose filter to use; bound to a Python environment (`Policy.bind`) if it was trained in one.

        Raises NotImplementedError if the policy has no filter (SAC and the others without one)."""
        own = policy if isinstance(policy, Policy) else policy.policy
        if not own.filters:
            raise NotImplementedError(f"{own!r} acts by the rule {own.acting_rule}, which has no filter")
        self.policy = policy

    @classmethod
    def load(cls, source: str | os.PathLike[str], member: int | None = None, epoch: str | int | None = None) -> Shield:
        """The shield of a policy file or of a run folder; see Policy.load."""
        return cls(Policy.load(source, member, epoch))

    def __repr__(self) -> str:
        return f"Shield({self.policy!r})"

    def __call__(self, observation: ArrayLike, action: ArrayLike, info: Mapping[str, Any] | None = None, previous_cost: ArrayLike = 0.0) -> Decision:
        """The action to execute, and the filter's judgement: `constraint` is k, unsafe above 0, and `intervention` how far the action was moved.

        observation: [observation_dim] or [batch, observation_dim]. action: [action_dim] or [batch, action_dim], in units of the environment;
        first limited to its bounds. info: of the step or reset before, for a Python environment that puts its model into it.
        previous_cost: the cost of the present state, 0 after a reset; only SafeLayerTD3's filter reads it. Raises like Policy.decide.
        """
        if isinstance(self.policy, Policy):
            decision = self.policy.filter(observation, action, previous_cost)
            return decision._replace(action=self.policy.clip(decision.action))
        return self.policy.filter(observation, action, info, previous_cost)

    def wrap(self, env: Any) -> ShieldedEnv | ShieldedVectorEnv:
        """A Gymnasium environment, or one of many (`VectorEnv`), in which every action goes through the shield. Its `info` also has

        * "shield/action": the action that was executed;
        * "shield/constraint": k of the state in which it was chosen, unsafe above 0; NaN for filters without a learned constraint;
        * "shield/change": how far it was moved, 0 if the shield agreed.

        Wrap the environment itself, before wrappers that change observations or actions: the shield reads the environment's own. A policy that
        is trained in it learns from the actions that it chose. Raises ValueError for an action space that is no Box of real numbers, or has other
        bounds than the shield: their units would differ.
        """
        from datacom.shielded import ShieldedEnv, ShieldedVectorEnv, is_vector

        space = env.single_action_space if is_vector(env) else env.action_space
        if not hasattr(space, "low") or space.dtype.kind != "f":
            raise ValueError(f"the environment's action space, {space}, is no Box of real numbers")
        own, found = np.stack([self.policy.action_low, self.policy.action_high]), np.stack([np.ravel(space.low), np.ravel(space.high)])
        if own.shape != found.shape or not np.allclose(own, found):
            raise ValueError(f"the environment takes {found.shape[1]} actions from {found[0]} to {found[1]}, the shield {own.shape[1]} from {own[0]} to "
                             f"{own[1]}: wrap the environment itself, before wrappers that change actions")
        return ShieldedVectorEnv(env, self) if is_vector(env) else ShieldedEnv(env, self)
# SPDX-License-Identifier: Apache-2.0

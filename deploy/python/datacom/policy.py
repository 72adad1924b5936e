"""Trained policies with their safety filters."""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import os
import re
import subprocess
import tempfile
import threading
import weakref
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datacom import _files, _native

_STORED = ("shipped:", "results:")  # what `datacom export` finds by name
_TERMS = ("q", "x", "x_dot", "f", "G")  # of the control-affine model of a Python environment, in the order of a row
_BOUNDS = re.compile(", -1 to 1 for (.+ to .+)$")  # of an action's name, where they are not -1 and 1 (python_model.cc)
_CODES = {1: OSError, 2: ValueError, 3: NotImplementedError, 4: ValueError, 5: FloatingPointError, 6: ValueError, 7: RuntimeError}


class _Forks:
    """Delays a fork until no thread uses a policy. The child has only the forking thread: a lock that another one holds would never be released."""

    def __init__(self) -> None:
        self._policies: weakref.WeakSet[Policy] = weakref.WeakSet()
        self._one = threading.Lock()  # allows one fork at a time
        self._held: list[Any] = []
        os.register_at_fork(before=self._begin, after_in_parent=self._end, after_in_child=self._end)

    def add(self, policy: Policy) -> None:
        with self._one:
            self._policies.add(policy)

    def _begin(self) -> None:
        self._one.acquire()
        self._held = [policy._lock for policy in self._policies]
        for lock in self._held:
            lock.acquire()

    def _end(self) -> None:
        for lock in self._held:
            lock.release()
        self._one.release()


_forks = _Forks()


def detached(value: Any) -> Any:
    """What NumPy reads: of a PyTorch tensor its numbers, whatever device it is on and whether it needs a gradient."""
    return value.detach().cpu() if hasattr(value, "detach") else value


class Decision(NamedTuple):
    """What the filter says of an action; arrays [batch] for a batch of observations. NaN where the rule has no learned constraint."""

    action: NDArray[np.float64]  # [action_dim] or [batch, action_dim]
    cvar: NDArray[np.float64] | float  # conditional value at risk of the discounted future cost
    delta: NDArray[np.float64] | float  # its learned threshold
    constraint: NDArray[np.float64] | float  # k = cvar - delta; unsafe above 0
    intervention: NDArray[np.float64] | float  # |a - u|: how far the filter moved the policy's action; 0 without a filter


class Policy:
    """A policy file's nets and filter. An action equals, bit for bit, the one that an actor of the run would execute.

    Threads may share one object: it decides for one after the other. With the rule `planner`, which remembers an episode, an episode belongs
    to the thread that acts first in it. Copying and pickling carry the policy itself, so another process or machine needs no file; a copy
    remembers no episode.
    """

    def __init__(self, file: str | os.PathLike[str]) -> None:
        """Loads a file of `datacom export`. Raises OSError if it cannot be read, ValueError if it is damaged, and
        NotImplementedError if this version, or this processor, cannot use it."""
        self._open(file)
        self._content = Path(file).read_bytes()  # for copies: the file may have changed by then

    def _open(self, file: str | os.PathLike[str]) -> None:
        self._lock = threading.RLock()
        _forks.add(self)
        self._shield = True
        self._actor: threading.Thread | None = None  # who acts in the episode that `planner` remembers
        self._library = _native.library()
        self._handle: ctypes.c_void_p | None = ctypes.c_void_p()
        message = ctypes.create_string_buffer(_native.MESSAGE_BYTES)
        code = self._library.datacom_policy_load(os.fsencode(file), ctypes.byref(self._handle), message, len(message))
        if code != 0:
            raise _CODES[code](message.value.decode())
        info = self._library.datacom_policy_describe(self._handle).contents
        self.task: str = info.task.decode()  #: defines the meaning of observation and action
        self.experiment: str = info.experiment.decode()
        self.algorithm: str = info.algorithm.decode()
        self.acting_rule: str = info.acting_rule.decode()  #: the filter
        self.filters: bool = bool(info.filters)  #: whether `filter` can be used
        self.build: str = info.build.decode()  #: version and revision that exported the file
        self.member: int = info.member
        self.epoch: int = info.epoch
        self.update: int = info.update  #: gradient updates of the policy
        self.observation_dim: int = info.observation_dim
        self.action_dim: int = info.action_dim
        self.noise_dim: int = info.noise_dim
        #: The policy sees the first seen_dim numbers of an observation; the others are what the filter reads of the robot's model.
        self.seen_dim: int = info.seen_dim
        self.observation_names: list[str] = [info.observation_names[i].decode() for i in range(info.observation_dim)]
        self.action_names: list[str] = [info.action_names[i].decode() for i in range(info.action_dim)]
        self.control_period: float = info.control_period  #: seconds from one action to the next
        #: Bounds to which the task's environment clips. `act` does not clip: a robot must.
        self.action_low: NDArray[np.float64] = _native.numbers(info.action_low, info.action_dim)
        self.action_high: NDArray[np.float64] = _native.numbers(info.action_high, info.action_dim)

    @classmethod
    def load(cls, source: str | os.PathLike[str], member: int | None = None, epoch: str | int | None = None) -> Policy:
        """The policy of a file, of a run folder or of "shipped:TASK/NAME".

        member: default the first. epoch: "best" (highest return within the budget), "last" or a number; default "best", and "last" of a shipped
        one. Raises ValueError with the command's words if there is no such policy, and for a number that is not that of a file."""
        stored = os.fspath(source).startswith(_STORED)
        if not os.path.isdir(source) and not stored:
            policy = cls(source)
            if member not in (None, policy.member) or epoch not in (None, "best", "last", policy.epoch, str(policy.epoch)):
                raise ValueError(f"{os.fspath(source)} holds the policy of member {policy.member}, epoch {policy.epoch}, alone")
            return policy
        with tempfile.TemporaryDirectory(prefix="datacom-") as folder:
            file = Path(folder) / "policy"
            words = [str(_files.program("datacom")), "export", os.fspath(source), "--out", str(file), "--epoch", str(("last" if stored else "best") if epoch is None else epoch)]
            words += [] if member is None else ["--member", str(member)]
            done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", check=False)
            if done.returncode != 0:
                raise ValueError(done.stdout.strip())
            return cls(file)

    @property
    def content(self) -> bytes:
        """The bytes of the policy file."""
        return self._content

    def save(self, file: str | os.PathLike[str]) -> None:
        """Writes the policy file, as `datacom export` has written it. Raises OSError."""
        _native.write(file, self._content)

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self._library.datacom_policy_free(self._handle)
            self._handle = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name not in ("_library", "_handle", "_lock", "_actor")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory(prefix="datacom-") as folder:
            file = Path(folder) / "policy"
            file.write_bytes(state["_content"])
            self._open(file)
        self.__dict__.update(state)
        if not self._shield:
            self.shield = False

    def __repr__(self) -> str:
        return f"Policy({self.experiment}, member {self.member}, epoch {self.epoch})"

    @property
    def shield(self) -> bool:
        """Whether the filter uses its shield, the part that was learned. Without it an action is only limited by what is known of the task;
        `datacom eval --shield both` compares both. Raises ValueError where it is set and the policy's rule learns no filter."""
        return self._shield

    @shield.setter
    def shield(self, use: bool) -> None:
        with self._lock:
            if self._library.datacom_policy_use_shield(self._handle, int(use)) != 0:
                raise ValueError(f"the rule {self.acting_rule} learns no filter, so there is no shield")
            self._shield = bool(use)

    def bind(self, env: Any) -> EnvPolicy:
        """This policy for the Python environment that it was trained in: takes the environment's observations, gives its actions."""
        return EnvPolicy(self, env)

    def begin(self) -> None:
        """Forgets the episode so far; call it where an episode begins. Only the rule `planner` remembers anything."""
        with self._lock:
            self._actor = None
            self._library.datacom_policy_begin(self._handle)

    def _check_thread(self) -> None:
        """Whether this thread may go on with the episode that the rule remembers."""
        thread = threading.current_thread()
        if self._actor is None or not self._actor.is_alive():
            self._actor = thread
        if self._actor is not thread:
            raise RuntimeError(f"this policy is used by another thread, {self._actor.name}, and the rule planner remembers its episode: give "
                               f"{thread.name} a policy of its own (copy.copy), or call begin() between the episodes")

    def act(self, observation: ArrayLike, noise: ArrayLike | None = None, previous_cost: ArrayLike = 0.0) -> NDArray[np.float64]:
        """The action [action_dim] for an observation [observation_dim], or [batch, action_dim] for a batch. See `decide`."""
        return self.decide(observation, noise, previous_cost).action

    def decide(self, observation: ArrayLike, noise: ArrayLike | None = None, previous_cost: ArrayLike = 0.0) -> Decision:
        """The action and what the filter says of it.

        observation: [observation_dim] or [batch, observation_dim], units of the task, rounded to float32 once.
        noise: standard normal numbers [noise_dim] or [batch, noise_dim], as in training; None gives the deterministic action.
        previous_cost: the cost of the present state, 0 at the start of an episode; only the rule `safe_layer` reads it.

        Raises ValueError for a wrong shape, a number that is not finite, or a G of 0 (the model's numbers are missing), and
        FloatingPointError if the policy computed an action that is not finite; a robot must then act without the policy. RuntimeError with
        the rule `planner`, if another thread acts in the episode.
        """
        rows = self._rows(observation)
        if rows.ndim == 2 and self.acting_rule == "planner":
            raise ValueError("the rule planner remembers an episode, so it takes one observation at a time")
        draws = None
        if noise is not None:
            draws = np.ascontiguousarray(detached(noise), dtype=np.float32)
            if draws.shape != (*rows.shape[:-1], self.noise_dim):
                raise ValueError(f"the noise has shape {np.shape(noise)}, not [{self.noise_dim}] for each observation")
        return self._judge(rows, draws, None, previous_cost)

    def filter(self, observation: ArrayLike, action: ArrayLike, previous_cost: ArrayLike = 0.0) -> Decision:
        """What the filter makes of somebody else's action.

        observation, previous_cost: as for `decide`.
        action: [action_dim] or [batch, action_dim], in units of the task; first limited to the task's bounds, as the environment would.

        Raises like `decide`, and NotImplementedError if the rule has no filter.
        """
        rows = self._rows(observation)
        proposed = np.ascontiguousarray(detached(action), dtype=np.float64)
        if proposed.shape != (*rows.shape[:-1], self.action_dim):
            raise ValueError(f"the action has shape {proposed.shape}, not [{self.action_dim}] for each observation")
        return self._judge(rows, None, proposed, previous_cost)

    def _rows(self, observation: ArrayLike) -> NDArray[np.float64]:
        rows = np.ascontiguousarray(detached(observation), dtype=np.float64)
        if rows.ndim not in (1, 2) or rows.shape[-1] != self.observation_dim:
            model = "; bind(env) adds what the filter reads of a Python environment" if rows.shape[-1] == self.seen_dim < self.observation_dim else ""
            raise ValueError(f"the observation has shape {np.shape(observation)}, not [{self.observation_dim}] or [batch, {self.observation_dim}]{model}")
        return rows

    def _judge(self, rows: NDArray[np.float64], noise: NDArray[np.float32] | None, proposed: NDArray[np.float64] | None,
               previous_cost: ArrayLike) -> Decision:
        """The decision for observations, about the policy's own actions or proposed ones."""
        single = rows.ndim == 1
        rows, draws, given = (None if array is None else np.atleast_2d(array) for array in (rows, noise, proposed))
        try:
            costs = np.broadcast_to(np.ravel(np.asarray(detached(previous_cost), np.float64)), len(rows))
        except (TypeError, ValueError):
            raise ValueError(f"previous_cost is {previous_cost!r}, not a number, or one for each observation") from None
        action = np.empty((len(rows), self.action_dim))
        said = np.empty((len(rows), 3))
        inputs, judgement = _native.PolicyInput(), _native.PolicyJudgement()
        with self._lock:
            if self.acting_rule == "planner":
                self._check_thread()
            for i in range(len(rows)):
                inputs.observation, inputs.previous_cost = rows[i].ctypes.data, costs[i]
                inputs.noise = None if draws is None else draws[i].ctypes.data
                to = action[i].ctypes.data, ctypes.byref(judgement)
                if given is None:
                    code = self._library.datacom_policy_act(self._handle, ctypes.byref(inputs), *to)
                else:
                    code = self._library.datacom_policy_filter(self._handle, ctypes.byref(inputs), given[i].ctypes.data, *to)
                if code != 0:
                    raise _CODES[code](f"observation {i}: {self._library.datacom_policy_why(self._handle).decode()}")
                said[i] = judgement.cvar, judgement.constraint, judgement.intervention
        cvar, constraint, intervention = said.T
        if single:
            return Decision(action[0], float(cvar[0]), float(cvar[0] - constraint[0]), float(constraint[0]), float(intervention[0]))
        return Decision(action, cvar, cvar - constraint, constraint, intervention)

    def clip(self, action: ArrayLike) -> NDArray[np.float64]:
        """The action within the task's bounds, as the environment clips it."""
        return np.clip(action, self.action_low, self.action_high)


def _changes(layer: Any, inner: Any) -> bool:
    """Whether a wrapper takes other actions or gives other observations than what it wraps."""
    for name, kind in (("action_space", "ActionWrapper"), ("observation_space", "ObservationWrapper")):
        own = getattr(inner, name, None)
        if hasattr(own, "low") and (kind in {one.__name__ for one in type(layer).__mro__} or getattr(layer, name, own) != own):
            return True
    return False


def _dynamics(env: Any) -> Callable[[Any], Any] | None:
    """The control-affine model of an environment or of what it wraps; None if there is none, one of another form, or one of other actions or
    observations than the outermost ones, as for training (common/tasks/python/host.py)."""
    found, outside = None, []
    while env is not None:
        if "dynamics" in getattr(env, "__dict__", {}) or hasattr(type(env), "dynamics"):
            with contextlib.suppress(Exception):  # a property that cannot be read states nothing
                found = env.dynamics
        if found is not None:
            break
        outside.append(env)
        inner = getattr(env, "__dict__", {}).get("env")
        env = None if any(inner is one for one in outside) else inner
    if any(_changes(one, env) for one in outside):
        return None
    try:
        taken = list(inspect.signature(found).parameters.values()) if callable(found) else []
    except (TypeError, ValueError):  # of a function that is not written in Python
        return None
    needed = [one for one in taken if one.kind != one.VAR_KEYWORD and (one.kind != one.KEYWORD_ONLY or one.default is one.empty)]
    return found if len(needed) == 1 and needed[0].kind in (needed[0].POSITIONAL_ONLY, needed[0].POSITIONAL_OR_KEYWORD) else None


class EnvPolicy:
    """A policy and an environment of `datacom train --python`. Reads the environment's control-affine model, as training did."""

    def __init__(self, policy: Policy, env: Any) -> None:
        self.policy = policy
        space = env.action_space
        if not hasattr(space, "low"):
            raise ValueError(f"the environment's action space, {space}, is no Box")
        #: Bounds of the environment's actions, in its units.
        self.action_low, self.action_high = (np.array(side, np.float64).ravel() for side in (space.low, space.high))
        if self.action_low.size != policy.action_dim:
            raise ValueError(f"the environment has {self.action_low.size} actions, the policy {policy.action_dim}")
        self._space, self._middle, self._half = space, (self.action_high + self.action_low) / 2, (self.action_high - self.action_low) / 2
        for name, low, high in zip(policy.action_names, self.action_low, self.action_high):
            trained, own = _BOUNDS.search(name), f"{low:g} to {high:g}"
            if own != (trained[1] if trained else "-1 to 1"):
                raise ValueError(f"the environment has an action of {own} where the policy was trained with \"{name}\"")
        if env.observation_space.shape is None:
            raise ValueError(f"the environment's observation space, {env.observation_space}, is no Box; wrap it as for the training")
        observations = int(np.prod(env.observation_space.shape))
        if observations != policy.seen_dim:
            raise ValueError(f"the environment has observations of {observations} numbers, the policy sees {policy.seen_dim}")
        # Of the model that the policy reads, whose numbers are named "q[0]" to "G[0][0]" (common/tasks/python/python_model.cc).
        self._sizes = {term: sum(name.startswith(term + "[") for name in policy.observation_names[policy.seen_dim:]) for term in _TERMS}
        self._reads_model = any(self._sizes.values())
        self._dynamics = _dynamics(env) if self._reads_model else None

    def _row(self, observation: ArrayLike, info: Mapping[str, Any] | None) -> NDArray[np.float64]:
        """[observation | q | x | x_dot | f | G | costs], with f and G for actions of -1 to 1."""
        seen = np.asarray(detached(observation), np.float64).ravel()
        if seen.size != self.policy.seen_dim:
            raise ValueError(f"the observation has {seen.size} numbers, the policy sees {self.policy.seen_dim}")
        row = np.concatenate([seen, *(self._model(observation, info) if self._reads_model else [])])
        return np.concatenate([row, np.zeros(self.policy.observation_dim - row.size)])  # the costs, which no policy reads

    def _model(self, observation: ArrayLike, info: Mapping[str, Any] | None) -> list[NDArray[np.float64]]:
        """q, x, x_dot, f and G."""
        terms = (info or {}).get("dynamics") if self._dynamics is None else self._dynamics(observation)
        if terms is None:
            raise ValueError(f'the rule {self.policy.acting_rule} reads the control-affine model: pass the info that has info["dynamics"]')
        found = {}
        for name, size in self._sizes.items():
            value = terms.get(name) if isinstance(terms, Mapping) else getattr(terms, name, None)
            found[name] = np.asarray([] if value is None else value, np.float64).ravel()
            if found[name].size != size:
                raise ValueError(f"{name} of the environment's model has {found[name].size} numbers, the policy reads {size}")
        by_action = found["G"].reshape(found["q"].size, self.action_low.size)
        found["f"] = found["f"] + by_action @ self._middle
        found["G"] = (by_action * self._half).ravel()
        return list(found.values())

    def decide(self, observation: ArrayLike, info: Mapping[str, Any] | None = None, noise: ArrayLike | None = None,
               previous_cost: ArrayLike = 0.0) -> Decision:
        """The action in the environment's units and type and within its bounds, ready for `step`, and the filter's judgement.

        info: of the step or reset that gave the observation, for environments that put their model into info["dynamics"].
        noise, previous_cost: as for Policy.decide; previous_cost is info["cost"] of the step before, 0 after a reset.
        Raises ValueError if the observation or the model does not fit the policy.
        """
        return self._in_units(self.policy.decide(self._row(observation, info), noise, previous_cost))

    def filter(self, observation: ArrayLike, action: ArrayLike, info: Mapping[str, Any] | None = None, previous_cost: ArrayLike = 0.0) -> Decision:
        """What the filter makes of somebody else's action, which is in the environment's units and shape. Otherwise like `decide`."""
        wanted = np.asarray(detached(action), np.float64).ravel()
        if wanted.size != self.action_low.size:
            raise ValueError(f"the action has {wanted.size} numbers, the environment takes {self.action_low.size}")
        return self._in_units(self.policy.filter(self._row(observation, info), (wanted - self._middle) / self._half, previous_cost))

    def _in_units(self, decision: Decision) -> Decision:
        action = np.clip(self._middle + self._half * decision.action, self.action_low, self.action_high)
        return decision._replace(action=action.reshape(self._space.shape).astype(self._space.dtype))
# SPDX-License-Identifier: Apache-2.0

"""The tasks as Gymnasium environments. Needs Gymnasium 1.0 or newer (the extra "gymnasium").

Observations are float32 [observation_dim], actions float32 within [action_low, action_high]; both as in the rows of a run. `info` has

* "cost": the raw cost of the state that the step reached; above 0 is a violation. Also "cost/NAME" for tasks with several;
* "success": whether the episode so far is a success;
* "invalid": True where the simulator diverged; that episode is truncated, and its observation is the one before.

An episode is a pure function of (seed, number of the episode since the seed was set, actions).

An environment belongs to one thread at a time: a step or reset while another thread is in one raises RuntimeError and changes nothing. A copied or
unpickled environment is a new one with the same arguments: it does not continue the episode, so reset it first.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import re
import threading
from typing import Any, Mapping, NamedTuple, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datacom import _native

try:
    import gymnasium
except ImportError as error:
    raise ImportError('datacom.envs needs Gymnasium: pip install "gymnasium>=1.0"') from error

_MODES = ("next_step", "same_step", "disabled")
_ERRORS = {1: ValueError, 2: RuntimeError, 3: OSError}


class Dynamics(NamedTuple):
    """The control-affine model q_dot = f + G u at observations; every array begins with the observations' leading dimensions."""

    q: NDArray[np.float64]  # [..., q_dim] controllable constraint state
    x: NDArray[np.float64]  # [..., x_dim] uncontrollable constraint state
    x_dot: NDArray[np.float64]  # [..., x_dim] its velocity
    f: NDArray[np.float64]  # [..., q_dim]
    G: NDArray[np.float64]  # [..., q_dim, action_dim]


def _task_name(task: str | os.PathLike[str]) -> str:
    """air_hockey for AirHockey; a path of a task file stays."""
    name = os.fspath(task)
    if name.endswith(".textproto"):
        return name
    return "cartpole" if name.lower() == "cartpole" else re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[a-z])(?=[0-9])", "_", name).lower()


def _text(options: Mapping[str, Any]) -> str:
    """Task options in the text format of Protocol Buffers."""
    def value(field: Any) -> str:
        if isinstance(field, bool):
            return str(field).lower()
        if isinstance(field, str):
            return '"' + field.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        return repr(field.item() if isinstance(field, np.generic) else field)

    words = []
    for name, field in options.items():
        for one in field if isinstance(field, (list, tuple)) else [field]:
            words.append(f"{name} {{ {_text(one)} }}" if isinstance(one, Mapping) else f"{name}: {value(one)}")
    return " ".join(words)


class _Look(NamedTuple):
    """How pictures look."""

    width: int
    height: int
    camera: str


class _Window:
    """A window that shows pictures, at most `rate` a second. Needs pygame (the extra "human")."""

    def __init__(self, title: str, look: _Look, rate: float) -> None:
        import pygame

        self._pygame, self._rate, self._clock = pygame, rate, pygame.time.Clock()
        pygame.display.init()
        self._surface = pygame.display.set_mode((look.width, look.height))
        pygame.display.set_caption(title)

    def show(self, picture: NDArray[np.uint8]) -> None:
        self._pygame.event.pump()  # a window that reads no events seems to hang
        self._surface.blit(self._pygame.surfarray.make_surface(picture.swapaxes(0, 1)), (0, 0))
        self._pygame.display.flip()
        self._clock.tick(self._rate)

    def close(self) -> None:
        self._pygame.display.quit()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(None), ()  # a copy of an environment opens its own


class _Alone:
    """Lets one thread at a time in."""

    def __init__(self) -> None:
        self._inside: dict[None, threading.Thread] = {}

    def __enter__(self) -> None:
        thread = threading.current_thread()
        inside = self._inside.setdefault(None, thread)  # atomic
        if inside is not thread:
            raise RuntimeError(f"this environment is used by another thread, {inside.name}: give {thread.name} an environment of its own")

    def __exit__(self, *_: Any) -> None:
        self._inside.clear()


class _Environments:
    """The environments of the library, and the arrays into which it writes."""

    def __init__(self, task: str | os.PathLike[str], count: int, threads: int | None, mode: str, options: Mapping[str, Any] | None) -> None:
        if mode not in _MODES:
            raise ValueError(f"autoreset_mode is {mode!r}, not one of {', '.join(_MODES)}")
        name = _task_name(task)
        # A copy may be made in another working directory.
        self._arguments = (os.path.abspath(name) if name.endswith(".textproto") else name, count, threads, mode, options)
        self.alone = _Alone()
        self._process = os.getpid()
        self._library = _native.library()
        self._handle: ctypes.c_void_p | None = ctypes.c_void_p()
        self._message = ctypes.create_string_buffer(_native.MESSAGE_BYTES)
        threads = len(os.sched_getaffinity(0)) if threads is None else threads
        for what, number in (("num_envs", count), ("threads", threads)):
            if not isinstance(number, (int, np.integer)):
                raise ValueError(f"{what} is {number!r}, no whole number")
        self._check(self._library.datacom_env_make(os.fsencode(name), _text(options or {}).encode(), count, threads,
                                                   _MODES.index(mode), ctypes.byref(self._handle), self._message, len(self._message)))
        self.info = info = self._library.datacom_env_describe(self._handle).contents
        self.cost_names = [info.cost_names[i].decode() for i in range(info.costs)]
        self.init_names = [info.init_names[i].decode() for i in range(info.inits)]
        self.observation = np.zeros((count, info.observation_dim), np.float32)
        self.final_observation = np.zeros_like(self.observation)
        self.action = np.zeros((count, info.action_dim), np.float32)
        self.reward, self.cost = np.zeros(count), np.zeros(count)
        self.named_cost = np.zeros((count, info.costs), np.float32)
        self.terminated, self.truncated, self.success, self.invalid = np.zeros((4, count), np.bool_)
        self._result = _native.EnvResult(*(_native.address(getattr(self, name)) for name in _native.RESULT_ARRAYS))
        self._result_pointer = ctypes.byref(self._result)
        self._action_address = self.action.ctypes.data

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and os.getpid() == self._process:  # a fork has none of the threads that would be joined
            self._library.datacom_env_free(self._handle)
            self._handle = None

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    def _check(self, code: int) -> None:
        if code != 0:
            raise _ERRORS[code](self._message.value.decode())

    def step(self, actions: ArrayLike) -> None:
        if np.shape(actions) != self.action.shape:
            raise ValueError(f"the actions have shape {np.shape(actions)}, not {self.action.shape}")
        self.action[...] = actions
        self._check(self._library.datacom_env_step(self._handle, self._action_address, self._result_pointer, self._message, len(self._message)))

    def reset(self, seeds: Sequence[int | None] | None, mask: NDArray[np.bool_] | None, init: Mapping[str, float]) -> None:
        numbers = flags = None
        for one in seeds if seeds is not None else []:
            if one is not None and not (isinstance(one, (int, np.integer)) and 0 <= int(one) < 1 << 64):
                raise ValueError(f"the seed {one!r} is no whole number of 0 to 2^64 - 1")
        if seeds is not None:
            numbers = np.array([0 if seed is None else seed for seed in seeds], np.uint64)
            flags = np.array([seed is not None for seed in seeds], np.bool_)
        start = _native.EnvStart(_native.address(mask), _native.address(numbers), _native.address(flags), len(init),
                                 (ctypes.c_char_p * len(init))(*(name.encode() for name in init)),
                                 (ctypes.c_double * len(init))(*init.values()))
        self._check(self._library.datacom_env_reset(self._handle, ctypes.byref(start), self._result_pointer, self._message,
                                                    len(self._message)))

    def draw(self, look: _Look) -> list[NDArray[np.uint8]]:
        frames = [np.zeros((look.height, look.width, 3), np.uint8) for _ in self.reward]
        for i, frame in enumerate(frames):
            self._check(self._library.datacom_env_draw(self._handle, i, look.camera.encode(), look.width, look.height, frame.ctypes.data,
                                                       self._message, len(self._message)))
        return frames

    def dynamics(self, observation: ArrayLike) -> Dynamics:
        info = self.info
        rows = np.ascontiguousarray(observation, np.float32)
        if rows.shape[-1:] != (info.observation_dim,):
            raise ValueError(f"the observation has shape {rows.shape}, not [..., {info.observation_dim}]")
        leading = rows.shape[:-1]
        sizes = [(info.q_dim,), (info.x_dim,), (info.x_dim,), (info.q_dim,), (info.q_dim, info.action_dim)]
        arrays = Dynamics(*(np.zeros((*leading, *size)) for size in sizes))
        self._library.datacom_env_dynamics(self._handle, rows.size // info.observation_dim, rows.ctypes.data,
                                           *(array.ctypes.data for array in arrays))
        return arrays

    def spaces(self) -> tuple[gymnasium.spaces.Box, gymnasium.spaces.Box]:
        info = self.info
        low, high = (_native.numbers(bound, info.action_dim).astype(np.float32) for bound in (info.action_low, info.action_high))
        return gymnasium.spaces.Box(-np.inf, np.inf, (info.observation_dim,), np.float32), gymnasium.spaces.Box(low, high, dtype=np.float32)


def _init_of(options: dict[str, Any] | None) -> dict[str, float]:
    """The start values in the options of a reset. Raises ValueError for other options."""
    others = set(options or {}) - {"init", "reset_mask"}
    if others:
        raise ValueError(f"unknown options of reset: {', '.join(sorted(map(str, others)))}; there are init and reset_mask")
    init = dict((options or {}).get("init", {}))
    for name, value in init.items():
        try:
            init[name] = np.asarray(value, np.float64).item()
        except (TypeError, ValueError):
            raise ValueError(f"start value {name} = {value!r}, no number") from None
    return init


class _OfTask:
    """What one environment of a task and many have in common. Its `spec`, as Gymnasium calls it, has the horizon in it: the task ends its episodes
    itself, without a wrapper."""

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}
    _spec: Any = None

    def __init__(self, environments: _Environments, render_mode: str | None, look: _Look) -> None:
        modes = self.metadata["render_modes"]
        if render_mode is not None and render_mode not in modes:
            raise ValueError(f"render_mode is {render_mode!r}, not {', '.join(map(repr, modes))} or None")
        self.render_mode, self.look, self._environments = render_mode, look, environments
        self.horizon: int = environments.info.horizon  #: steps after which an episode is truncated
        self.control_period: float = environments.info.control_period  #: seconds from one action to the next
        self.cost_names: list[str] = environments.cost_names
        self.init_names: list[str] = environments.init_names  #: start values that reset can set
        self.metadata = {**self.metadata, "render_fps": round(1 / self.control_period)}

    @property
    def spec(self) -> Any:
        return self._spec

    @spec.setter
    def spec(self, spec: Any) -> None:
        self._spec = None if spec is None else dataclasses.replace(spec, max_episode_steps=self.horizon)

    def dynamics(self, observation: ArrayLike) -> Dynamics:
        """The task's control-affine model at observations [..., observation_dim]. Raises ValueError for another shape."""
        return self._environments.dynamics(observation)

    def _pictures(self) -> list[NDArray[np.uint8]] | None:
        """One of every environment; None in a mode that gives none: what "human" shows, reset and step have shown."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() draws only with render_mode='rgb_array'")
        if self.render_mode != "rgb_array":
            return None
        with self._environments.alone:
            return self._environments.draw(self.look)


class VectorEnv(_OfTask, gymnasium.vector.VectorEnv):
    """Environments of one task, stepped by C++ threads without the interpreter's lock. See the module for `info`.

    task: "CartPole", "AirHockey", "AirHockey7dof", "Navigation", or the path of a task.textproto.
    num_envs: number of environments.
    threads: threads that step them; None takes one for each processor that this process may use.
    autoreset_mode: "next_step" (the step after an episode's end resets; its reward is 0), "same_step" (the step resets; the last
    observation is in info["final_obs"], what belongs to it in info["final_info"]) or "disabled" (call reset with options["reset_mask"]).
    Gymnasium's AutoresetMode is taken, too. info["cost"] and info["success"] belong to the state that the step reached, in every mode.
    options: fields of the task's options, for example {"action_repeat": 10}.
    copy: False returns the arrays that the next step overwrites.
    render_mode: "rgb_array" lets `render` give pictures of width x height pixels, through a camera of the model ("": the first that is fixed).

    Raises ValueError, with the names that exist, for an unknown task or option.
    """

    def __init__(self, task: str | os.PathLike[str], num_envs: int = 1, *, threads: int | None = None, autoreset_mode: Any = "next_step",
                 options: Mapping[str, Any] | None = None, copy: bool = True, render_mode: str | None = None, width: int = 480,
                 height: int = 270, camera: str = "") -> None:
        mode = str(getattr(autoreset_mode, "name", autoreset_mode)).lower()
        super().__init__(_Environments(task, num_envs, threads, mode, options), render_mode, _Look(width, height, camera))
        self.num_envs = num_envs
        self._mode, self._copy = mode, copy
        modes = getattr(gymnasium.vector, "AutoresetMode", None)
        self.autoreset_mode: Any = mode if modes is None else modes[mode.upper()]  #: as Gymnasium's own vectors say it
        self.metadata["autoreset_mode"] = self.autoreset_mode
        self.single_observation_space, self.single_action_space = self._environments.spaces()
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, num_envs)
        self._all = np.ones(num_envs, np.bool_)
        self._all.flags.writeable = False

    def _arrays(self, *names: str) -> list[NDArray[Any]]:
        arrays = [getattr(self._environments, name) for name in names]
        return [array.copy() for array in arrays] if self._copy else arrays

    def _info(self) -> dict[str, Any]:
        cost, success = self._arrays("cost", "success")
        info: dict[str, Any] = {"cost": cost, "_cost": self._all, "success": success, "_success": self._all}
        for i, name in enumerate(self.cost_names):
            info[f"cost/{name}"] = self._environments.named_cost[:, i].astype(np.float64)
            info[f"_cost/{name}"] = self._all
        invalid = self._environments.invalid
        if invalid.any():
            info["invalid"], info["_invalid"] = invalid.copy(), invalid.copy()
        return info

    def reset(self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts episodes. seed: of the first environment (the others count up), or one for each; the episodes of an environment with a seed
        count from 0 again. options: "init" sets start values {name: value} (init_names), "reset_mask" [num_envs] chooses environments.
        Raises ValueError for unknown options or start values."""
        seeds: Any = seed
        if seed is not None and np.ndim(seed) == 0:
            seeds = [int(seed) + i for i in range(self.num_envs)] if isinstance(seed, (int, np.integer)) else [seed] * self.num_envs
        if seeds is not None and len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds for {self.num_envs} environments")
        init, mask = _init_of(options), (options or {}).get("reset_mask")
        if mask is not None:
            mask = np.asarray(mask)
            if mask.shape != (self.num_envs,) or mask.dtype != np.bool_ or not mask.any():
                raise ValueError(f"options['reset_mask'] must be {self.num_envs} booleans, one of them True, not {mask!r}")
            mask = np.ascontiguousarray(mask)
        with self._environments.alone:
            self._environments.reset(seeds, mask, init)
            return self._arrays("observation")[0], self._info()

    def step(self, actions: ArrayLike) -> tuple[NDArray[np.float32], NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Steps every environment with actions [num_envs, action_dim]; the task clips them.

        Raises ValueError for a wrong shape or a number that is not finite, and RuntimeError without automatic resets when an
        episode has ended; then nothing has stepped."""
        with self._environments.alone:
            self._environments.step(actions)
            observation, reward, terminated, truncated = self._arrays("observation", "reward", "terminated", "truncated")
            info, ended = self._info(), terminated | truncated
            if self._mode == "same_step" and ended.any():
                final = np.full(self.num_envs, None, dtype=object)
                for i in np.flatnonzero(ended):
                    final[i] = self._environments.final_observation[i].copy()
                of_end = {name: np.where(ended, values, np.zeros_like(values)) for name, values in info.items() if not name.startswith("_")}
                info.update(final_obs=final, _final_obs=ended, final_info={**of_end, **{f"_{name}": ended for name in of_end}}, _final_info=ended)
            return observation, reward, terminated, truncated, info

    def render(self) -> tuple[NDArray[np.uint8], ...] | None:  # type: ignore[override]
        """A picture [height, width, 3] of every environment, with the mode "rgb_array"."""
        pictures = self._pictures()
        return None if pictures is None else tuple(pictures)

    def call(self, name: str, *arguments: Any, **parameters: Any) -> tuple[Any, ...]:
        """What each environment's method or value `name` gives, as Gymnasium's own vectors do. The environments share one object, so every
        one gives the same; only "render" gives a picture of each. Raises AttributeError for other names, and for "step" and "reset"."""
        if name in ("step", "reset"):
            raise AttributeError(f"{name} cannot be called on single environments: they step together")
        if name == "render":
            return self.render() or (None,) * self.num_envs
        value = getattr(self, name)
        return (value(*arguments, **parameters) if callable(value) else value,) * self.num_envs


class Env(_OfTask, gymnasium.Env):
    """One environment of a task. See the module for `info`, and VectorEnv for the parameters. render_mode "human" shows every state in a window,
    in real time where the processor can draw so fast; it needs pygame."""

    metadata = {"render_modes": ["rgb_array", "human"]}

    def __init__(self, task: str | os.PathLike[str], *, options: Mapping[str, Any] | None = None, render_mode: str | None = None,
                 width: int = 480, height: int = 270, camera: str = "") -> None:
        super().__init__(_Environments(task, 1, 1, "disabled", options), render_mode, _Look(width, height, camera))
        self._title = str(task)
        self._window: _Window | None = None
        self.observation_space, self.action_space = self._environments.spaces()

    def _info(self) -> dict[str, Any]:
        envs = self._environments
        info: dict[str, Any] = {"cost": float(envs.cost[0]), "success": bool(envs.success[0])}
        info.update((f"cost/{name}", float(envs.named_cost[0, i])) for i, name in enumerate(self.cost_names))
        if envs.invalid[0]:
            info["invalid"] = True
        return info

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Starts an episode; options["init"] sets start values {name: value}. Raises ValueError for unknown ones."""
        with self._environments.alone:
            super().reset(seed=seed)
            self._environments.reset([seed], None, _init_of(options))
            self._show()
            return self._environments.observation[0].copy(), self._info()

    def step(self, action: ArrayLike) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        """Steps with an action [action_dim]. Raises like VectorEnv.step."""
        envs = self._environments
        with envs.alone:
            envs.step(np.asarray(action)[None])
            self._show()
            return envs.observation[0].copy(), float(envs.reward[0]), bool(envs.terminated[0]), bool(envs.truncated[0]), self._info()

    def render(self) -> NDArray[np.uint8] | None:  # type: ignore[override]
        """A picture [height, width, 3] of the present state, with the mode "rgb_array". Drawn by rays on the processor: about 40 ms."""
        pictures = self._pictures()
        return None if pictures is None else pictures[0]

    def _show(self) -> None:
        if self.render_mode != "human":
            return
        if self._window is None:
            self._window = _Window(self._title, self.look, 1 / self.control_period)
        self._window.show(self._environments.draw(self.look)[0])

    def close(self) -> None:
        """Closes the window, if there is one."""
        if self._window is not None:
            self._window.close()
            self._window = None


class SafetyGymnasium(gymnasium.Wrapper):
    """Safety-Gymnasium's interface: `step` returns observation, reward, cost, terminated, truncated, info. The cost is max(cost, 0)."""

    def step(self, action: Any) -> tuple[Any, float, float, bool, bool, dict[str, Any]]:  # type: ignore[override]
        observation, reward, terminated, truncated, info = self.env.step(action)
        return observation, float(reward), max(info["cost"], 0.0), terminated, truncated, info


def make(task: str | os.PathLike[str], **parameters: Any) -> Env:
    """One environment; parameters as of Env."""
    return Env(task, **parameters)


def make_vec(task: str | os.PathLike[str], num_envs: int = 1, **parameters: Any) -> VectorEnv:
    """`num_envs` environments that step together; parameters as of VectorEnv."""
    return VectorEnv(task, num_envs, **parameters)
# SPDX-License-Identifier: Apache-2.0

"""Writes the transitions that a run still holds as a Minari dataset (HDF5), and makes a dataset for pre-training from one. Needs minari and h5py.

  python -m datacom.minari RUN DATASET_ID [--member 0 ...]      for example datacom/cartpole/mixed-v0
  python -m datacom.minari DATASET_ID FOLDER --into TASK [--options TEXT]     then: datacom train TASK/datacom --set pretrain.dataset=FOLDER

An episode is what the replay holds of it from its first step on. Rewards are those of the task; infos have the cost of every state ("cost": after
the reset 0, then of the state that a step reached) and, of rules that filter, the policy's own action ("raw_action"). Of a Python environment
observations and actions are the environment's, in its units. MINARI_DATASETS_PATH is where Minari keeps its datasets.

A dataset that is read needs the same "cost" (one for each observation, or one for each step): the task's signed cost, above 0 for a violation.
Its observations and actions must be those of the task, in the task's units. SAC and the algorithms that extend it can pre-train on it.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
from typing import Any, Callable, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from datacom import _files, _native
from datacom.envs import _task_name, _text, make
from datacom.runs import PathLike, Run, Transitions, parse_textproto

_PYTHON = "[datacom.v1.python_task]"
_CARRIED = ("[datacom.v1.text_task]", _PYTHON)  # options with a whole task


def episodes(rows: Transitions) -> Iterator[np.ndarray]:
    """The rows of each episode, in the order of its steps; episodes whose beginning the replay has overwritten are left out."""
    key = np.stack([rows[name].astype(np.int64) for name in ("session", "environment", "episode", "step")])
    order = np.lexsort(key[::-1])
    ends = np.flatnonzero(np.diff(key[:3, order], axis=1).any(axis=0)) + 1
    for part in np.split(order, ends):
        if len(part) and key[3, part[0]] == 0:
            yield rows[part]


def _bounds(facts: Mapping[str, Any]) -> list[NDArray[np.float64]]:
    """Of the actions of a Python environment, in its units."""
    return [np.atleast_1d(np.asarray(facts[side], np.float64)) for side in ("action_low", "action_high")]


def _units(run: Run) -> tuple[int | None, Callable[[NDArray[Any]], NDArray[Any]]]:
    """How many numbers of a row's observation the environment gives, None for all, and what gives a row's actions in its units. In the rows of a
    Python environment actions are -1 to 1, and observations continue with its model (common/tasks/python/python_model.h)."""
    facts = run.experiment.get("task_options", {}).get(_PYTHON)
    if facts is None:
        return None, lambda actions: actions
    low, high = _bounds(facts)
    return facts["observation"], lambda actions: np.clip((high + low) / 2 + (high - low) / 2 * actions, low, high).astype(np.float32)


def write(run: Run, dataset_id: str, members: Iterable[int] | None = None) -> Any:
    """Writes the dataset and returns it. Raises ValueError if Minari has one of this name, if the name has no version, or if the replay holds no whole
    beginning of an episode."""
    import minari
    from minari.data_collector import EpisodeBuffer

    if re.search(r"-v\d+$", dataset_id) is None:
        raise ValueError(f"{dataset_id}: a name of Minari ends with a version, as datacom/mixed-v0")
    buffers: list[Any] = []
    seen, in_units = _units(run)
    for member in range(len(run.seeds)) if members is None else members:
        for rows in episodes(run.transitions(member)):
            executed = "executed_action" if "executed_action" in (rows.dtype.names or ()) else "action"
            infos = {"cost": np.concatenate([np.zeros(1, np.float32), rows["cost"]])}
            if "raw_action" in (rows.dtype.names or ()):  # an info has a value for each observation, and the last one has no action
                raw = in_units(rows["raw_action"].reshape(len(rows), -1))
                infos["raw_action"] = np.concatenate([raw, np.zeros_like(raw[:1])])
            ended, absorbed = rows["last"].astype(bool), rows["absorbing"].astype(bool)
            observations = np.concatenate([rows["observation"], rows["next_observation"][-1:]])[:, :seen]
            buffers.append(EpisodeBuffer(id=len(buffers), seed=None, observations=observations,
                                         actions=in_units(rows[executed].reshape(len(rows), -1)), rewards=list(rows["reward"].astype(float)),
                                         terminations=list(absorbed), truncations=list(ended & ~absorbed), infos=infos))
            buffers[-1].truncations[-1] |= not ended[-1]  # of an episode that the run did not finish
    if not buffers:
        raise ValueError(f"the replay of {run.path} holds no beginning of an episode")
    observation = buffers[0].observations.shape[1]
    action = buffers[0].actions.shape[1]
    spaces = _spaces(run, observation, action)
    return minari.create_dataset_from_buffers(dataset_id, buffers, env=_environment(run), observation_space=spaces[0], action_space=spaces[1], algorithm_name=run.algorithm,
                                              data_format="hdf5", description=f"{run.name}, seeds {', '.join(map(str, run.seeds))}")


def _environment(run: Run) -> Any:
    """What `recover_environment` makes the run's environment of; None for a task that is no part of this package."""
    import gymnasium

    for name, spec in gymnasium.registry.items():
        if name.startswith("datacom/") and _task_name(spec.kwargs["task"]) == run.task:
            return gymnasium.make(name, options=run.experiment.get("task_options", {})).spec
    return None


def _spaces(run: Run, observation: int, action: int) -> tuple[Any, Any]:
    """The spaces of the run's task with the run's options. A task that only the run's experiment holds has unbounded ones, but for the actions of a
    Python environment. Raises ValueError if the rows have other sizes."""
    import gymnasium

    options = run.experiment.get("task_options", {})
    if any(name in options for name in _CARRIED):
        unbounded = [gymnasium.spaces.Box(-np.inf, np.inf, (size,), np.float32) for size in (observation, action)]
        if _PYTHON in options:
            low, high = (side.astype(np.float32) for side in _bounds(options[_PYTHON]))
            unbounded[1] = gymnasium.spaces.Box(low, high)
        return unbounded[0], unbounded[1]
    env = make(run.task, options=options)
    for what, space, size in (("observations", env.observation_space, observation), ("actions", env.action_space, action)):
        if space.shape != (size,):
            raise ValueError(f"{run.path}: its rows have {what} of {size} numbers, those of {run.task} with its options have {space.shape[0]}")
    return env.observation_space, env.action_space


def _rows(dataset: Any) -> dict[str, NDArray[Any]]:
    """The episodes of a Minari dataset as columns, one row for each step. Raises ValueError, which names the episode, if one has no costs."""
    parts: dict[str, list[Any]] = {name: [] for name in ("observation", "next_observation", "action", "reward", "cost", "absorbing", "last")}
    for number, episode in enumerate(dataset.iterate_episodes()):
        steps = len(episode.rewards)
        if not isinstance(episode.observations, np.ndarray) or not isinstance(episode.actions, np.ndarray):
            raise ValueError(f"episode {number}: observations and actions must be arrays, not {type(episode.observations).__name__} and {type(episode.actions).__name__}")
        if episode.actions.dtype.kind != "f":
            raise ValueError(f"episode {number}: its actions are {episode.actions.dtype}, whole numbers, where the task takes real ones")
        if steps == 0:
            continue
        try:
            cost = np.asarray((episode.infos or {}).get("cost", ()), np.float32).reshape(-1)
        except (TypeError, ValueError) as error:
            raise ValueError(f"episode {number}: the \"cost\" of its infos holds no numbers: {error}") from None
        if len(cost) not in (steps, steps + 1):
            raise ValueError(f"episode {number} has {steps} steps, and {len(cost)} costs in its infos: there must be a \"cost\" for each step or observation")
        last = np.zeros(steps, np.uint8)
        last[-1:] = 1
        own = {"observation": episode.observations[:-1], "next_observation": episode.observations[1:], "action": episode.actions, "reward": episode.rewards,
               "cost": cost[-steps:], "absorbing": episode.terminations, "last": last}
        for name, values in own.items():
            rows = np.asarray(values).reshape(steps, -1)
            if name in ("reward", "absorbing") and rows.shape[1] != 1:
                raise ValueError(f"episode {number}: its {name} has {rows.shape[1]} numbers in each step, not one")
            if parts[name] and rows.shape[1] != parts[name][0].shape[1]:
                raise ValueError(f"episode {number}: {name} has {rows.shape[1]} numbers, in the episodes before {parts[name][0].shape[1]}")
            parts[name].append(rows)
    if not parts["reward"]:
        raise ValueError("the dataset has no steps")
    kinds = {"absorbing": np.uint8, "last": np.uint8}
    return {name: np.ascontiguousarray(np.concatenate(values), kinds.get(name, np.float32)) for name, values in parts.items()}


def read(dataset: Any, folder: PathLike, task: PathLike, options: Mapping[str, Any] | None = None) -> int:
    """Makes a dataset for pre-training (`pretrain.dataset`) in `folder`, which must not exist, from a Minari dataset of this task. Returns the number of
    rows. Raises ValueError if the dataset has no costs or does not fit the task."""
    rows = _rows(dataset)
    given = _native.RecordRows(len(rows["reward"]), rows["observation"].shape[1], rows["action"].shape[1], *(_native.address(rows[name]) for name in rows))
    text = ctypes.create_string_buffer(_native.MESSAGE_BYTES)
    name = os.fspath(task) if os.fspath(task).startswith("python:") else _task_name(task)
    if _native.library().datacom_records_write_dataset(os.fsencode(name), _text(options or {}).encode(), dataset.spec.dataset_id.encode(), ctypes.byref(given),
                                                       os.fsencode(folder), text, len(text)) != 0:
        raise ValueError(text.value.decode(errors="replace"))
    return int(given.count)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m datacom.minari", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", metavar="RUN", help="run folder; with --into Minari's name of a dataset")
    parser.add_argument("target", metavar="DATASET_ID", help="Minari's name, for example datacom/cartpole/mixed-v0; with --into the folder to make")
    parser.add_argument("--member", type=int, action="append", help="may be repeated; default: all members")
    parser.add_argument("--into", metavar="TASK", help="make a dataset for pre-training in this task, for example cartpole or my/task.textproto")
    parser.add_argument("--options", default="", metavar="TEXT", help="""with --into: task options, for example 'observation: "robot_frame_all"'""")
    flags = parser.parse_args()
    if flags.into:
        import minari

        if flags.member:
            parser.error("--member is of runs; with --into the whole dataset is read")
        count = read(minari.load_dataset(flags.source), flags.target, flags.into, parse_textproto(flags.options))
        print(f"{count} rows of {flags.source} in {flags.target}: pretrain.dataset={flags.target}")
        return
    dataset = write(Run(flags.source), flags.target, flags.member)
    print(f"{dataset.total_episodes} episodes with {dataset.total_steps} steps in {dataset.storage.data_path}")


if __name__ == "__main__":
    _files.command(main)
# SPDX-License-Identifier: Apache-2.0

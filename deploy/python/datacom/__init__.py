"""Safe reinforcement learning with D-ATACOM from Python.

* `make_vec`, `make`: the tasks as Gymnasium environments, stepped by C++ threads;
* `Policy`: a trained policy with its safety filter; `Shield`: that filter alone, for the actions of any policy;
* `Run`, `frame`: the records of runs as pandas frames, the transitions as NumPy arrays;
* `train`, `sweep`: runs of the `datacom` command, with progress;
* `interquartile_mean`: the report's mean and interval.

Names are loaded when they are first used. Where Gymnasium is installed, importing this package registers every task, for example
datacom/CartPole-v0.
"""

from __future__ import annotations

import importlib
import subprocess
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datacom.commands import CommandFailed as CommandFailed
    from datacom.commands import Progress as Progress
    from datacom.commands import Sweep as Sweep
    from datacom.commands import Training as Training
    from datacom.commands import sweep as sweep
    from datacom.commands import sweep_runs as sweep_runs
    from datacom.commands import train as train
    from datacom.envs import Dynamics as Dynamics
    from datacom.envs import Env as Env
    from datacom.envs import SafetyGymnasium as SafetyGymnasium
    from datacom.envs import VectorEnv as VectorEnv
    from datacom.envs import make as make
    from datacom.envs import make_vec as make_vec
    from datacom.policy import Decision as Decision
    from datacom.policy import EnvPolicy as EnvPolicy
    from datacom.policy import Policy as Policy
    from datacom.runs import Run as Run
    from datacom.runs import Transitions as Transitions
    from datacom.runs import frame as frame
    from datacom.runs import interquartile_mean as interquartile_mean
    from datacom.runs import plot as plot
    from datacom.shield import Shield as Shield

_MODULE_OF = {
    **dict.fromkeys(["CommandFailed", "Progress", "Sweep", "Training", "sweep", "sweep_runs", "train"], "commands"),
    **dict.fromkeys(["Dynamics", "Env", "SafetyGymnasium", "VectorEnv", "make", "make_vec"], "envs"),
    **dict.fromkeys(["Decision", "EnvPolicy", "Policy"], "policy"),
    "Shield": "shield",
    **dict.fromkeys(["Run", "Transitions", "frame", "interquartile_mean", "plot"], "runs"),
}
__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        program = importlib.import_module("datacom._files").program("datacom")
        said = subprocess.run([program, "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout
        return globals().setdefault(name, said.split()[1])
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'datacom' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(f"datacom.{_MODULE_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]


def _register() -> None:
    try:
        import gymnasium
    except ImportError:
        return
    for task in ["CartPole", "AirHockey", "AirHockey7dof", "Navigation"]:
        gymnasium.register(f"datacom/{task}-v0", entry_point="datacom.envs:Env", vector_entry_point="datacom.envs:VectorEnv", kwargs={"task": task})


_register()
# SPDX-License-Identifier: Apache-2.0

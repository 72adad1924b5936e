"""Runs of the `datacom` command: starts it, yields its progress, drains it on Ctrl-C."""

from __future__ import annotations

import collections
import html
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator, Mapping, NamedTuple

from datacom import _files
from datacom.runs import Run

_DRAINED = 75  # exit code of a run that was interrupted and can be resumed


class CommandFailed(RuntimeError):
    """The command ended with an error; the message has its last lines. `code` is its exit code."""

    def __init__(self, code: int, words: list[str], lines: Iterable[str]) -> None:
        super().__init__(f"{' '.join(words)} ended with {code}:\n" + "\n".join(lines))
        self.code = code


class Progress(NamedTuple):
    """A state of a run, every second ($DATACOM_PROGRESS_SECONDS). NaN where a number is not known."""

    share: float  # of the run, 0 to 1
    env_steps: int  # of the slowest member
    steps_per_second: float  # of all members
    updates_per_second: float
    train_return: float  # means over the members of the newest training episodes: discounted return,
    train_violation: float  # largest cost,
    train_cost: float  # sum of the positive costs,
    train_violating_steps: float  # steps with a cost above 0
    delta: float
    values: dict[str, Any]  # all that `datacom train --json` says; values["members"] has a dictionary for each member

    def __str__(self) -> str:
        values = self.values
        state = values["state"] + (f", {values['waiting']}" if values["waiting"] else "")
        return (f"{100 * self.share:.1f} %  {self.env_steps:,} steps  return {self.train_return:.2f}  cost {self.train_cost:.2f}  "
                f"delta {self.delta:.4f}  {state}")


def _progress(values: dict[str, Any]) -> Progress:
    def mean(name: str) -> float:
        numbers = [float("nan") if member.get(name) is None else member[name] for member in values["members"]]
        return sum(numbers) / len(numbers) if numbers else float("nan")

    means = (mean(name) for name in ("train_return", "train_max_violation", "train_sum_cost", "train_violating_steps", "delta"))
    return Progress(values["done"], values["env_steps"], values["steps_per_second"], values["updates_per_second"], *means, values)


def _bar() -> Callable[[Progress], None]:
    """Shows a Progress: in a notebook as a bar that moves, else as a line on standard error."""
    try:
        from IPython import get_ipython
        from IPython.display import HTML, display
        in_notebook = "IPKernelApp" in get_ipython().config
    except (ImportError, AttributeError):
        in_notebook = False
    if not in_notebook:
        return lambda progress: print(progress, file=sys.stderr)
    bar = display(HTML("starting"), display_id=True)
    return lambda progress: bar.update(HTML(f'<progress value="{progress.share:.4f}" max="1"></progress> {html.escape(str(progress))}'))


class Training:
    """A running command. Iterate over it for Progress, or call wait().

    Ctrl-C (KeyboardInterrupt) while it is iterated drains the run: it saves everything, and `resume=True` continues it. Leaving a `with`
    block early does the same. Keep the object until the command has ended: it reads what the command prints.
    """

    def __init__(self, words: list[str], folder: Path | None) -> None:
        self._words = words
        self.folder = folder  #: of the run; known at the latest with the first progress
        self.drained = False  #: whether the run was interrupted before its end
        self._tail: collections.deque[str] = collections.deque(maxlen=15)
        # A session of its own: Ctrl-C in a terminal must reach the command once, from here.
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True,
                                         start_new_session=True, env={"DATACOM_PROGRESS_SECONDS": "1", "DATACOM_PYTHON": sys.executable, **os.environ})

    def __enter__(self) -> Training:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._process.poll() is None:
            self.drain()

    def _lines(self) -> Iterator[dict[str, Any]]:
        """What the command says, an object a line; what is none, an error, is only kept."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                said = None
            if not isinstance(said, dict):
                self._tail.append(line.rstrip("\n"))
                continue
            # What ends the command itself comes on standard error, too; of a population of a sweep only its object comes.
            kept = said.get("message") or (said.get("error") if "population" in said else None)
            if kept:
                self._tail.append(kept)
            if self.folder is None and "run" in said:
                self.folder = Path(said["run"])
            yield said
        code = self._process.wait()
        self._process.stdout.close()
        self.drained = code == _DRAINED
        if code not in (0, _DRAINED):
            raise CommandFailed(code, self._words, self._tail)

    def __iter__(self) -> Iterator[Progress]:
        """Raises CommandFailed when the command fails."""
        try:
            for said in self._lines():
                if "members" in said:
                    yield _progress(said)
        except KeyboardInterrupt:
            self.drain()
            raise

    def drain(self) -> None:
        """Ends the run after saving it. Returns when its processes have ended."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        for _ in self._lines():
            pass

    def wait(self, show: bool = False, each: Callable[[Progress], Any] | None = None) -> Run:
        """Waits for the end and returns the run. Raises CommandFailed when the command fails.

        show: shows the progress, in a notebook as a bar.
        each: is called with every Progress. What it raises ends the run after saving it; when it returns True, the run ends so, too, and
        `resume=True` continues it.
        """
        shown = _bar() if show else None
        with self:
            for progress in self:
                if shown is not None:
                    shown(progress)
                if each is not None and each(progress) is True:
                    self.drain()
                    break
        return self.run

    @property
    def run(self) -> Run:
        """The run, once its folder is known. Raises RuntimeError before."""
        if self.folder is None:
            raise RuntimeError("the run has no folder yet: iterate over the training first")
        return Run(self.folder)


def _words(verb: str, what: str | os.PathLike[str] | None, run_dir: str | os.PathLike[str] | None, settings: Mapping[str, Any] | None,
           flags: Mapping[str, Any]) -> list[str]:
    words = [str(_files.program("datacom")), verb]
    if what is not None:
        words.append(os.fspath(what))
    if run_dir is not None:
        words += ["--run-dir", os.fspath(run_dir)]
    for name, value in (settings or {}).items():
        text = str(value).lower() if isinstance(value, bool) else str(list(value)) if isinstance(value, tuple) else str(value)
        words += ["--set", f"{name}={text}"]
    for name, value in flags.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(",".join(str(one) for one in value) if isinstance(value, (list, tuple, range)) else str(value))
    return [*words, "--json"]


def train(experiment: str | os.PathLike[str] | None = None, *, run_dir: str | os.PathLike[str] | None = None, settings: Mapping[str, Any] | None = None,
          algorithm: str | None = None, seeds: str | Iterable[int] | None = None, steps: int | None = None, resume: bool = False,
          lockstep: bool = False, **flags: Any) -> Training:
    """Starts `datacom train`: a population of seeds on this machine.

    experiment: a shipped one ("cartpole/from_scratch"), a file, or with `algorithm` a task ("cartpole", "robot/task.textproto").
    settings: {"hyper.cost_budget": 10, "members[1].hyper.actor_lr": 1e-3}.
    seeds: "0-4" or numbers, a member for each. steps: environment steps of each member. resume: go on with the run in run_dir.
    flags: other flags of the command with underscores, for example actors=2, max_hours=1.5, device="cuda".

    The command checks everything before it starts; what it refuses raises CommandFailed, with its words, at the first iteration.
    """
    words = _words("train", experiment, run_dir, settings, dict(algorithm=algorithm, seeds=seeds, steps=steps, resume=resume, lockstep=lockstep, **flags))
    return Training(words, None if run_dir is None else Path(run_dir))


def sweep(file: str | os.PathLike[str], *, run_dir: str | os.PathLike[str], settings: Mapping[str, Any] | None = None,
          seeds: str | Iterable[int] | None = None, steps: int | None = None, **flags: Any) -> Iterator[Progress]:
    """Runs `datacom sweep` and yields the progress of its populations; the same call resumes it. The runs are folders below run_dir
    (`sweep_runs`). Ctrl-C drains. Raises CommandFailed when the command fails."""
    return iter(Training(_words("sweep", file, run_dir, settings, dict(seeds=seeds, steps=steps, **flags)), Path(run_dir)))


def sweep_runs(run_dir: str | os.PathLike[str]) -> list[Run]:
    """The runs below a folder, in the order of their names."""
    return [Run(file.parent) for file in sorted(Path(run_dir).rglob("experiment.textproto")) if (file.parent / "run_id").is_file()]
# SPDX-License-Identifier: Apache-2.0

"""Runs of the `datacom` command: starts it, yields its progress, drains it when nobody reads on."""

from __future__ import annotations

import collections
import collections.abc
import html
import json
import os
import queue
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import IO, Any, Callable, Iterable, Iterator, Mapping, NamedTuple, TypeVar

import numpy as np

from datacom import _files
from datacom.runs import Run

_Self = TypeVar("_Self", bound="Command")
_STATE = {"members", "done", "env_steps", "steps_per_second", "updates_per_second"}  # what makes a Progress; an environment may print objects, too
_DRAINED = 75  # exit code of a run that was interrupted and can be resumed


class CommandFailed(RuntimeError):
    """The command ended with an error; the message has its last lines. `code` is its exit code."""

    def __init__(self, code: int, words: list[str], lines: Iterable[str]) -> None:
        self._given = code, words, list(lines)
        super().__init__(f"{' '.join(words)} ended with {code}:\n" + "\n".join(self._given[2]))
        self.code = code

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given  # for pools of processes, which send it to whoever waits


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


def _end(process: subprocess.Popen[str]) -> None:
    """Ends a command that nobody reads any more, after it has saved everything."""
    if process.poll() is None:
        process.terminate()
        process.wait()


def _read(stream: IO[str], lines: queue.SimpleQueue[str]) -> None:
    """Takes every line of a command as it comes, at last an empty one: a full pipe would stop the command until somebody reads."""
    with stream:
        for line in stream:
            lines.put(line)
    lines.put("")


class Command:
    """A running command. Iterate over it for Progress, or call wait().

    Ctrl-C (KeyboardInterrupt) drains it: it saves everything, and can be continued. So does leaving the loop over it or a `with` block early, and
    dropping the object. At the end of Python the commands that still run are drained, too.
    """

    def __init__(self, words: list[str], folder: Path | None) -> None:
        self._words = words
        self._started_in = Path.cwd()  # where the command looks for a relative path, also after a chdir here
        self.folder = None if folder is None else self._started_in / folder  #: of the run, or of the sweep; known at the latest with the first progress
        self.drained = False  #: whether the command was interrupted before its end
        self._tail: collections.deque[str] = collections.deque(maxlen=15)
        # A session of its own: Ctrl-C in a terminal must reach the command once, from here. The logs that it quotes may have any bytes.
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, encoding="utf-8",
                                         errors="replace", start_new_session=True,
                                         env={"DATACOM_PROGRESS_SECONDS": "1", "DATACOM_PYTHON": sys.executable, **os.environ})
        assert self._process.stdout is not None
        self._said: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=_read, args=(self._process.stdout, self._said), daemon=True).start()
        weakref.finalize(self, _end, self._process)

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: Any) -> None:
        if self._process.poll() is None:
            self.drain()

    def _line(self) -> str:
        """The next line; empty at the end, also when all has been read before."""
        line = self._said.get()
        if not line:
            self._said.put("")
        return line

    def _lines(self) -> Iterator[dict[str, Any]]:
        """What the command says, an object a line; what is none, an error, is only kept."""
        for line in iter(self._line, ""):
            try:
                said = json.loads(line)
            except ValueError:
                said = None
            if not isinstance(said, dict):
                self._tail.append(line.rstrip("\n"))
                continue
            # What ends the command itself comes on standard error, too; of a population of a sweep only its object comes.
            kept = said.get("message") or (said.get("error") if "population" in said else None)
            if isinstance(kept, str):
                self._tail.append(kept)
            if self.folder is None and list(said) == ["run"]:
                self.folder = self._started_in / str(said["run"])
            yield said
        code = self._process.wait()
        self.drained = code == _DRAINED
        if code not in (0, _DRAINED):
            raise CommandFailed(code, self._words, self._tail)

    def __iter__(self) -> Iterator[Progress]:
        """Raises CommandFailed when the command fails."""
        with self:  # it is left by KeyboardInterrupt, too, and where the loop is
            for said in self._lines():
                if _STATE <= said.keys():
                    yield _progress(said)

    def drain(self) -> None:
        """Ends the command after it has saved everything. Returns when its processes have ended. Raises CommandFailed when the command fails."""
        if self._process.poll() is None:
            self._process.terminate()  # as often as wanted, while a second SIGINT ends the command at once
        for _ in self._lines():
            pass

    def _watch(self, show: bool, each: Callable[[Progress], Any] | None) -> None:
        """See Training.wait."""
        shown = _bar() if show else None
        with self:
            for progress in self:
                if shown is not None:
                    shown(progress)
                said = None if each is None else each(progress)
                if isinstance(said, (bool, np.bool_)) and said:
                    self.drain()
                    break


class Training(Command):
    """A running `datacom train`; `train(run_dir=..., resume=True)` continues one that was drained."""

    def wait(self, show: bool = False, each: Callable[[Progress], Any] | None = None) -> Run:
        """Waits for the end and returns the run. Raises CommandFailed when the command fails.

        show: shows the progress, in a notebook as a bar.
        each: is called with every Progress. What it raises ends the run after saving it; when it returns True, the run ends so, too, and
        `resume=True` continues it.
        """
        self._watch(show, each)
        return self.run

    @property
    def run(self) -> Run:
        """The run, once its folder is known. Raises RuntimeError before."""
        if self.folder is None:
            raise RuntimeError("the run has no folder yet: iterate over the training first")
        return Run(self.folder)


class Sweep(Command):
    """A running `datacom sweep`; the same call of `sweep` continues one that was drained."""

    def wait(self, show: bool = False, each: Callable[[Progress], Any] | None = None) -> list[Run]:
        """Waits for the end and returns the runs, as Training.wait does the run."""
        self._watch(show, each)
        return self.runs

    @property
    def runs(self) -> list[Run]:
        """The runs that have begun."""
        return [] if self.folder is None else sweep_runs(self.folder)


def _plain(value: Any) -> Any:
    """A value of Python's own types: a list for every sequence, set or array; a whole number such as 1e6 as an int."""
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53:
        return int(value)
    several = isinstance(value, collections.abc.Iterable) and not isinstance(value, (str, bytes, os.PathLike, Mapping))
    return [_plain(one) for one in value] if several else value


def _words(verb: str, what: str | os.PathLike[str] | None, run_dir: str | os.PathLike[str] | None, settings: Mapping[str, Any] | None,
           flags: Mapping[str, Any]) -> list[str]:
    words = [str(_files.program("datacom")), verb]
    if what is not None:
        words.append(os.fspath(what))
    if run_dir is not None:
        words += ["--run-dir", os.fspath(run_dir)]
    for name, value in (settings or {}).items():
        value = _plain(value)
        words += ["--set", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    for name, value in flags.items():
        value = _plain(value)
        if value is None or value is False:
            continue
        if value == []:
            raise ValueError(f"{name} is empty")
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(",".join(map(str, value)) if isinstance(value, list) else str(value))
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
          seeds: str | Iterable[int] | None = None, steps: int | None = None, **flags: Any) -> Sweep:
    """Starts `datacom sweep`, whose Progress is that of its populations; the same call resumes it. The runs are folders below run_dir
    (`sweep_runs`)."""
    return Sweep(_words("sweep", file, run_dir, settings, dict(seeds=seeds, steps=steps, **flags)), Path(run_dir))


def sweep_runs(run_dir: str | os.PathLike[str]) -> list[Run]:
    """The runs below a folder, in the order of their names."""
    return [Run(file.parent) for file in sorted(Path(run_dir).rglob("experiment.textproto")) if (file.parent / "run_id").is_file()]
# SPDX-License-Identifier: Apache-2.0

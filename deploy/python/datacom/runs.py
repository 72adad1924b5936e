"""The records of runs. Frames need pandas, pictures matplotlib (the extra "records"); both are imported when they are first used."""

from __future__ import annotations

import ctypes
import io
import os
import re
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Iterator, NamedTuple, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike, NDArray

from datacom import _native

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

PathLike = Union[str, "os.PathLike[str]"]
_BLOCK = 64  # rows of a block of the ring (docs/formats.md 3)
_FIRST_BLOCK, _CURSOR = 4096, 320
_SKIPPED = re.compile(r"(?:\s|#[^\n]*)*")
_TOKEN = re.compile(r'("(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[\w.+\-/]+|\[[\w./]+\](?=\s*\{)|[{}:\[\],;<>])')


class InterquartileMean(NamedTuple):
    """Mean of the middle half of the values, and its 95 % percentile-bootstrap interval."""

    mean: float
    low: float
    high: float
    n: int  # finite values


def interquartile_mean(values: ArrayLike) -> InterquartileMean:
    """The report's interquartile mean of the finite values: without the lowest and the highest quarter (n // 4 values each). The same
    values always give the same interval. NaN without finite values."""
    numbers = np.ascontiguousarray(values, np.float64).ravel()
    out = (ctypes.c_double * 3)()
    count = _native.library().datacom_records_interquartile_mean(numbers.ctypes.data_as(ctypes.POINTER(ctypes.c_double)), len(numbers), out)
    return InterquartileMean(out[0], out[1], out[2], count)


def _value(token: str) -> Any:
    if token[0] in "\"'":
        return bytes(token[1:-1], "utf-8").decode("unicode_escape").encode("latin-1").decode("utf-8", "replace")
    if token in ("true", "false"):
        return token == "true"
    for number in (int, float):
        try:
            return number(token)
        except ValueError:
            pass
    return token


def parse_textproto(text: str) -> dict[str, Any]:
    """Text format of Protocol Buffers as dictionaries; a field that occurs several times is a list. Raises ValueError, with the place."""
    tokens, at = [], 0
    while (at := _SKIPPED.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # it matches everywhere
        match = _TOKEN.match(text, at)
        if match is None:
            raise ValueError(f"no text format at character {at}: {text[at:at + 40]!r}")
        tokens.append(match.group(1))
        at = match.end()
    stream = iter(tokens)

    def message(close: str) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name in stream:
            if name == close:
                return fields
            if name in ",;":
                continue
            token = next(stream)
            if token == ":":
                token = next(stream)
            if token == "[":
                value: Any = [message("}") if item == "{" else _value(item) for item in iter(lambda: next(stream), "]") if item != ","]
            else:
                value = message("}" if token == "{" else ">") if token in "{<" else _value(token)
            if name in fields:
                before = fields[name] if isinstance(fields[name], list) else [fields[name]]
                value = before + (value if isinstance(value, list) else [value])
            fields[name] = value
        if close:
            raise ValueError(f"{close} is missing")
        return fields

    try:
        return message("")
    except StopIteration:
        raise ValueError("the text ends within a field") from None
    except RecursionError:
        raise ValueError("its messages lie too deep in each other") from None


class Transitions:
    """The rows that a run's replay still holds for one member, mapped from its file without a copy. Read-only.

    `blocks` is a structured numpy.memmap [blocks, 64] in the file's order; `order` its row for each of the member's rows, oldest first.
    Indexing with a column's name copies that column only: transitions["reward"] is [rows], transitions["observation"]
    [rows, observation_dim], in the order in which the replay took the rows. A slice or an index gives structured rows.
    """

    def __init__(self, run: Path, member: int) -> None:
        file = run / "replay" / f"member_{member}.rows"
        text = ctypes.create_string_buffer(1 << 16)
        if _native.library().datacom_records_columns(os.fsencode(run / "experiment.textproto"), text, len(text)) != 0:
            raise ValueError(text.value.decode())
        first, *lines = (line.split() for line in text.value.decode().splitlines())
        columns = [(name, kind, int(width), int(offset)) for name, kind, width, offset in lines]
        row = np.dtype({"names": [name for name, *_ in columns], "offsets": [offset for *_, offset in columns], "itemsize": int(first[1]),
                        "formats": [(kind, (width,)) if width > 1 or name in ("observation", "next_observation", "action") else kind
                                    for name, kind, width, _ in columns]})
        with open(file, "rb") as stream:
            header = stream.read(_FIRST_BLOCK)
        whole = len(header) == _FIRST_BLOCK and header[:8] == b"DCRINGS\n"
        _, bytes_of_row, kept, guard = struct.unpack_from("<4Q", header, 24) if whole else (0, 0, 0, 0)
        if bytes_of_row != row.itemsize:
            raise ValueError(f"{file} is no ring of rows with {row.itemsize} bytes")
        self.end: int = struct.unpack_from("<Q", header, _CURSOR)[0] & (1 << 48) - 1  #: rows of the member since the start of the run
        self.begin: int = max(0, self.end - kept)  #: number of the oldest row that is here
        count = (kept + guard + _BLOCK - 1) // _BLOCK + 1
        present = min(count, (os.path.getsize(file) - _FIRST_BLOCK) // (16 + _BLOCK * row.itemsize))
        block = np.dtype([("sums", "V16"), ("rows", row, (_BLOCK,))])
        self.blocks: np.ndarray = np.memmap(file, block, "r", _FIRST_BLOCK, (present,))["rows"]
        number = np.arange(self.begin, self.end)
        self.order: NDArray[np.int64] = number // _BLOCK % count * _BLOCK + number % _BLOCK
        if self.order.max(initial=-1) >= present * _BLOCK:
            raise ValueError(f"{file} is truncated: it has {present * _BLOCK} of its rows")
        self.dtype = row
        self.columns: tuple[str, ...] = tuple(name for name, *_ in columns)

    def __len__(self) -> int:
        return self.end - self.begin

    def __getitem__(self, key: Any) -> NDArray[Any]:
        if isinstance(key, str):
            if key not in self.columns:
                raise KeyError(f"{key!r} is no column; there are {', '.join(self.columns)}")
            column: NDArray[Any] = self.blocks[key][self.order // _BLOCK, self.order % _BLOCK]
            return column
        at = self.order[key]
        rows: NDArray[Any] = self.blocks[at // _BLOCK, at % _BLOCK]
        return rows


class Run:
    """A run folder, or a copy of its records in deploy/results. Frames are read anew at every access, so they grow while the run goes on."""

    def __init__(self, path: PathLike) -> None:
        """Raises FileNotFoundError if the folder is no run, and ValueError if its experiment cannot be read."""
        self.path = Path(path)
        file = self.path / "experiment.textproto"
        if not file.is_file():
            raise FileNotFoundError(f"{self.path} is no run folder: it has no experiment.textproto")
        try:
            self.experiment: dict[str, Any] = parse_textproto(file.read_text(encoding="utf-8"))  #: the resolved experiment
            self.name: str = self.experiment["name"]
            self.task: str = self.experiment["task"]
            self.algorithm: str = self.experiment["algorithm"]
            members = self.experiment.get("members", [])
            members = members if isinstance(members, list) else [members]
            if not all(isinstance(member, dict) for member in members):
                raise ValueError("one of its members is no message")
        except (ValueError, KeyError) as error:
            why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise ValueError(f"{file} is no resolved experiment: {why}") from None
        self.seeds: list[int] = [member.get("seed", 0) for member in members]
        self.labels: list[str] = [member.get("label", "") for member in members]  #: settings of a sweep

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}: {self.name}, {len(self.seeds)} members)"

    def _table(self, name: str) -> pandas.DataFrame:
        import pandas

        files = [self.path / (name + suffix) for suffix in ("", ".gz", ".xz")]  # deploy/results has compressed ones
        file = next((file for file in files if file.is_file()), files[0])
        if file.suffix != ".csv":
            return pandas.read_csv(file)
        lines, line_break, _ = file.read_bytes().rpartition(b"\n")  # what follows it is not yet written, or of a process that was killed
        if not line_break:
            raise FileNotFoundError(f"{file} has no line yet")
        return pandas.read_csv(io.BytesIO(lines))

    @property
    def progress(self) -> pandas.DataFrame:
        """A row for each member and epoch: evaluation (eval_*), training episodes (train_*), losses; the columns of progress.csv."""
        return self._table("progress.csv")

    @property
    def episodes(self) -> pandas.DataFrame:
        """A row for each finished training episode: returns, length, largest violation, sum of positive costs, violating steps."""
        return self._table("episodes.csv")

    @property
    def violations(self) -> pandas.DataFrame:
        """A row for each training step with a cost above 0, with what the constraint said of it."""
        return self._table("ledger/violations.csv")

    def transitions(self, member: int = 0) -> Transitions:
        """The rows that the replay holds of a member. Raises FileNotFoundError for a member that the run does not have."""
        return Transitions(self.path, member)

    def plot(self, column: str = "eval_discounted_return", ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
        """Draws a column of `progress` over environment steps: every member, the interquartile mean and its interval. Returns the axes."""
        return plot([self], column, ax)


def frame(runs: Iterable[Run | PathLike], table: str = "progress") -> pandas.DataFrame:
    """The same table ("progress", "episodes" or "violations") of many runs, with the columns run (its folder), experiment, task and
    algorithm in front."""
    import pandas

    parts = []
    for run in _runs(runs):
        part = getattr(run, table)
        for at, (name, value) in enumerate([("run", str(run.path)), ("experiment", run.name), ("task", run.task), ("algorithm", run.algorithm)]):
            part.insert(at, name, value)
        parts.append(part)
    return pandas.concat(parts, ignore_index=True)


def _runs(runs: Iterable[Run | PathLike]) -> Iterator[Run]:
    return (run if isinstance(run, Run) else Run(run) for run in runs)


def plot(runs: Sequence[Run | PathLike], column: str = "eval_discounted_return", ax: matplotlib.axes.Axes | None = None) -> matplotlib.axes.Axes:
    """Draws a column of `progress` of several runs in one picture, a colour for each. Raises KeyError for an unknown column."""
    import matplotlib.pyplot

    ax = ax or matplotlib.pyplot.gca()
    for run in _runs(runs):
        rows = run.progress
        if column not in rows:
            raise KeyError(f"{column!r} is no column; there are {', '.join(rows.columns)}")
        table = rows.pivot(index="epoch", columns="member", values=column)
        steps = rows.groupby("epoch")["env_steps"].max()
        statistics = [interquartile_mean(values) for values in table.to_numpy(np.float64)]
        line, = ax.plot(steps, [one.mean for one in statistics], label=f"{run.name} ({table.shape[1]})")
        ax.plot(steps, table, color=line.get_color(), linewidth=0.6, alpha=0.4)
        ax.fill_between(steps, [one.low for one in statistics], [one.high for one in statistics], color=line.get_color(), alpha=0.2)
    ax.set_xlabel("environment steps of each member")
    ax.set_ylabel(column)
    ax.legend()
    return ax
# SPDX-License-Identifier: Apache-2.0

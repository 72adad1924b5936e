"""Score matrices of runs in one NumPy archive, for statistics such as rliable's.

  python -m datacom.scores deploy/results --out scores.npz

Every run folder below the given one, also a copy of its records such as deploy/results has, gets these arrays:

  FOLDER/seeds         [members]: seeds
  FOLDER/labels        [members]: settings of a sweep; empty words in other runs
  FOLDER/env_steps     [evaluations]: environment steps of each member
  FOLDER/COLUMN        [members, evaluations], float64; NaN where a member was not evaluated
"""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import Any, Sequence

import numpy as np
from numpy.typing import NDArray

from datacom import _files, _native
from datacom.runs import PathLike, Run

COLUMNS = ("eval_discounted_return", "eval_return", "eval_sum_cost", "eval_max_violation", "eval_success_rate")


def scores(folder: PathLike, columns: Sequence[str] = COLUMNS) -> dict[str, NDArray[Any]]:
    """The arrays by name. Runs without an evaluation are left out, and so are columns that a run does not have."""
    arrays: dict[str, NDArray[Any]] = {}
    for file in sorted(Path(folder).rglob("experiment.textproto")):
        run = Run(file.parent)
        try:
            progress = run.progress
        except FileNotFoundError:
            continue  # it has not begun
        rows = progress[progress["eval_episodes"] > 0]
        if rows.empty:
            continue
        name = file.parent.relative_to(folder).as_posix()
        arrays[f"{name}/seeds"] = np.array(run.seeds)
        arrays[f"{name}/labels"] = np.array(run.labels)
        arrays[f"{name}/env_steps"] = rows.groupby("epoch")["env_steps"].max().to_numpy(np.int64)
        for column in columns:
            if column in rows:
                table = rows.pivot(index="member", columns="epoch", values=column).reindex(range(len(run.seeds)))
                arrays[f"{name}/{column}"] = table.to_numpy(np.float64)
    return arrays


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m datacom.scores", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder with run folders, at any depth")
    parser.add_argument("--out", required=True, help="file to write, NAME.npz, or - for standard output")
    parser.add_argument("--columns", nargs="+", default=COLUMNS, help="columns of progress.csv (%(default)s)")
    flags = parser.parse_args()
    arrays = scores(flags.folder, flags.columns)
    if not arrays:
        parser.error(f"{flags.folder}: no run with an evaluation")
    archive = io.BytesIO()
    np.savez_compressed(archive, **arrays)  # type: ignore[arg-type]
    _native.write(flags.out, archive.getvalue())
    print(f"{flags.out}: {len(arrays)} arrays", file=sys.stderr if flags.out in _native.STANDARD_OUTPUT else sys.stdout)


if __name__ == "__main__":
    _files.command(main)
# SPDX-License-Identifier: Apache-2.0

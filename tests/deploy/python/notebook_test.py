"""The notebook of the examples, cell by cell, without Jupyter."""

import json
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[3] / "deploy/examples/python"


def test_every_cell_of_the_tour_runs(tmp_path, monkeypatch, capsys):
    notebook = json.loads((EXAMPLES / "tour.ipynb").read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    monkeypatch.chdir(EXAMPLES)
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.setenv("STEPS", "3000")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    names = {}
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    try:
        for number, cell in enumerate(cells):
            exec(compile(cell, f"cell {number}", "exec"), names)
    finally:
        names["plt"].close("all")  # other tests draw, too
    assert names["run"].task == "point_env" and names["run"].progress["env_steps"].max() == 3000
    assert "random actions violate a limit" in capsys.readouterr().out
# SPDX-License-Identifier: Apache-2.0

import gzip
import io
import shutil
import subprocess
import sys

import numpy as np
from datacom import scores

EXPERIMENT = 'name: "%s" task: "cartpole" algorithm: "sac" members { seed: 4 label: "a" } members { seed: 9 label: "b" }\n'
PROGRESS = ("member,seed,epoch,env_steps,eval_episodes,eval_discounted_return,eval_sum_cost\n"
            "0,4,0,0,2,1.5,7\n1,9,0,0,2,2.5,8\n0,4,1,500,0,,\n1,9,1,500,0,,\n1,9,2,1000,2,4.5,0\n")


def leave(folder):
    folder.mkdir(parents=True)
    (folder / "experiment.textproto").write_text(EXPERIMENT % folder.name)


def test_every_run_has_a_matrix_of_its_evaluations(tmp_path):
    leave(tmp_path / "pole" / "budgets")
    (tmp_path / "pole" / "budgets" / "progress.csv.gz").write_bytes(gzip.compress(PROGRESS.encode()))
    leave(tmp_path / "not_begun")
    arrays = scores.scores(tmp_path)
    assert sorted(arrays) == ["pole/budgets/" + name for name in ("env_steps", "eval_discounted_return", "eval_sum_cost", "labels", "seeds")]
    assert arrays["pole/budgets/seeds"].tolist() == [4, 9] and arrays["pole/budgets/labels"].tolist() == ["a", "b"]
    assert arrays["pole/budgets/env_steps"].tolist() == [0, 1000]
    np.testing.assert_array_equal(arrays["pole/budgets/eval_discounted_return"], [[1.5, np.nan], [2.5, 4.5]])


def test_the_command_writes_an_archive_of_a_real_run(run, tmp_path):
    shutil.copytree(run.path, tmp_path / "runs" / "first")
    file = tmp_path / "scores.npz"
    subprocess.run([sys.executable, "-m", "datacom.scores", str(tmp_path / "runs"), "--out", str(file)], check=True)
    rows = run.progress[run.progress["member"] == 1]
    with np.load(file) as archive:
        np.testing.assert_array_equal(archive["first/eval_sum_cost"][1], rows["eval_sum_cost"])
    (tmp_path / "link.npz").symlink_to("scores.npz")
    file.write_bytes(b"old")
    subprocess.run([sys.executable, "-m", "datacom.scores", str(tmp_path / "runs"), "--out", str(tmp_path / "link.npz")], check=True)
    assert (tmp_path / "link.npz").is_symlink() and np.load(file)["first/seeds"].tolist() == [3, 7]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.npz", "runs", "scores.npz"]
    printed = subprocess.run([sys.executable, "-m", "datacom.scores", str(tmp_path / "runs"), "--out", "-"], check=True, stdout=subprocess.PIPE).stdout
    assert np.load(io.BytesIO(printed))["first/seeds"].tolist() == [3, 7]
    empty = subprocess.run([sys.executable, "-m", "datacom.scores", str(tmp_path / "nothing"), "--out", str(file)], stderr=subprocess.PIPE, check=False)
    assert empty.returncode == 2 and b"no run with an evaluation" in empty.stderr
# SPDX-License-Identifier: Apache-2.0

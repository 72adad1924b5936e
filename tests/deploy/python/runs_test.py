import os
import shutil
import subprocess

import datacom
import numpy as np
import pandas
import pytest
from datacom import _files, _native
from datacom.runs import parse_textproto


def test_a_run_says_what_it_is(run):
    assert (run.name, run.task, run.algorithm, run.seeds) == ("cartpole/datacom", "cartpole", "datacom", [3, 7])
    assert run.experiment["hyper"]["cost_budget"] == 12
    assert run.experiment["network"]["actor_hidden"] == [128, 128]


@pytest.mark.parametrize("text, why", [("a {" * 100_000, "its messages lie too deep"), ('name: "a" task: "b" algorithm: "c" members: 3', "one of its members")])
def test_a_folder_whose_experiment_is_none_is_named(tmp_path, text, why):
    (tmp_path / "experiment.textproto").write_text(text)
    with pytest.raises(ValueError, match=f"experiment.textproto is no resolved experiment: {why}"):
        datacom.Run(tmp_path)


def test_tables_have_the_rows_of_the_files(run):
    assert list(run.progress["member"].unique()) == [0, 1]
    assert run.progress["env_steps"].max() == 3000
    assert run.episodes.groupby("member")["length"].sum().max() <= 3000
    assert (run.violations["cost"] > 0).all()
    both = datacom.frame([run, run.path], "episodes")
    assert len(both) == 2 * len(run.episodes) and list(both.columns[:4]) == ["run", "experiment", "task", "algorithm"]


def test_tables_leave_out_a_line_that_is_not_yet_written(run, tmp_path):
    (tmp_path / "experiment.textproto").write_bytes((run.path / "experiment.textproto").read_bytes())
    for text, lengths in (("member,length\n0,250\n1,25", [250]), ("member,length\n", []), ("member,length\n0,250\n", [250])):
        (tmp_path / "episodes.csv").write_text(text)
        assert datacom.Run(tmp_path).episodes["length"].tolist() == lengths
    (tmp_path / "episodes.csv").write_text("member,len")
    with pytest.raises(FileNotFoundError, match="episodes.csv has no line yet"):
        datacom.Run(tmp_path).episodes


def test_transitions_are_mapped_and_equal_the_exported_dataset(run, tmp_path):
    rows = run.transitions(1)
    assert len(rows) == 3000 and isinstance(rows.blocks.base, np.memmap)
    with pytest.raises(ValueError, match="read-only"):
        rows.blocks["reward"][0, 0] = 1
    np.testing.assert_array_equal(rows["sequence"], np.arange(3000))
    subprocess.run([str(_files.program("datacom")), "export-dataset", str(run.path), "--out", str(tmp_path / "set"), "--member", "1"], check=True)
    manifest = parse_textproto((tmp_path / "set/manifest.textproto").read_text())
    data, at = (tmp_path / "set" / manifest["members"]["file"]).read_bytes(), 0
    of = {}
    while at < len(data):
        count = min(manifest["chunk_rows"], 3000 - len(of.get("reward", [])))
        for column in manifest["columns"]:
            kind = np.dtype(column["type"])
            values = np.frombuffer(data, kind, count * column["width"], at).reshape(count, column["width"])
            at += values.nbytes
            of[column["name"]] = values if column["name"] not in of else np.concatenate([of[column["name"]], values])
    order = np.lexsort((rows["step"], rows["episode"], rows["environment"], rows["session"]))
    exported = np.lexsort((of["step"][:, 0], of["episode"][:, 0], of["environment"][:, 0]))
    for name, values in of.items():
        np.testing.assert_array_equal(rows[name][order].reshape(3000, -1), values[exported], err_msg=name)


def test_a_row_and_a_slice_are_structured(run):
    rows = run.transitions(0)
    assert rows[0]["step"] == 0 and rows[-1]["sequence"] == 2999
    np.testing.assert_array_equal(rows[10:20]["reward"], rows["reward"][10:20])
    with pytest.raises(KeyError, match="there are observation, action"):
        rows["colour"]


def test_the_interquartile_mean_drops_a_quarter_on_each_side():
    result = datacom.interquartile_mean([100, 1, 2, 3, 4, 5, 6, -50, np.nan])
    assert (result.mean, result.n) == (3.5, 8)
    assert result.low <= 3.5 <= result.high
    assert np.isnan(datacom.interquartile_mean([np.nan]).mean)
    assert datacom.interquartile_mean([2, 2, 2])[:3] == (2, 2, 2)


def test_students_t_is_no_number_where_it_has_no_value():
    student_t = _native.library().datacom_records_student_t
    assert student_t(10, 0.99) == pytest.approx(3.169, abs=5e-4)
    for freedom, level in ((0, 0.95), (-1, 0.95), (np.nan, 0.95), (10, 1), (10, 2), (10, np.nan)):
        assert np.isnan(student_t(freedom, level)), (freedom, level)


def test_the_bootstrap_interval_has_the_width_of_an_independent_one():
    values = np.random.default_rng(0).normal(10, 3, 20)
    generator = np.random.default_rng(1)
    means = [np.sort(generator.choice(values, 20))[5:15].mean() for _ in range(4000)]
    low, high = np.quantile(means, [0.025, 0.975])
    result = datacom.interquartile_mean(values)
    assert result.low == pytest.approx(low, abs=0.2) and result.high == pytest.approx(high, abs=0.2)


def test_a_picture_has_members_and_mean(run):
    axes = run.plot("eval_sum_cost")
    assert len(axes.lines) == 3 and axes.get_ylabel() == "eval_sum_cost"
    with pytest.raises(KeyError, match="there are member, seed"):
        run.plot("score")


def test_text_format_is_read_with_comments_lists_and_extensions():
    text = """# a comment
    name: 'it''s' run { steps: 3 } members { seed: 1 } members { seed: 2, hyper < lr: 1e-3 > }
    widths: [64, 32] flag: true mode: OPEN [datacom.v1.text_task] { model: "a\\"b\\n" }
    """.replace("'it''s'", '"its"')
    assert parse_textproto(text) == {
        "name": "its", "run": {"steps": 3}, "members": [{"seed": 1}, {"seed": 2, "hyper": {"lr": 1e-3}}], "widths": [64, 32], "flag": True,
        "mode": "OPEN", "[datacom.v1.text_task]": {"model": 'a"b\n'}}
    assert parse_textproto("a: 1 # one\n# two") == {"a": 1} and parse_textproto("  # only\n") == {}
    for broken in ("a {", "a: ", "a: ?"):
        with pytest.raises(ValueError):
            parse_textproto(broken)


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no run folder"):
        datacom.Run(tmp_path)


@pytest.mark.parametrize("text, why", [(b"", "it has no 'name'"), (b'name: "a" task: "b"', "it has no 'algorithm'"), (b"name: ?", "no text format at character 6"),
                                       (b"\xff", "can't decode")])
def test_an_experiment_that_cannot_be_read_is_refused_with_its_file(tmp_path, text, why):
    (tmp_path / "experiment.textproto").write_bytes(text)
    with pytest.raises(ValueError, match=f"{tmp_path}/experiment.textproto is no resolved experiment: .*{why}"):
        datacom.Run(tmp_path)


def test_a_truncated_ring_is_refused_with_its_file(run, tmp_path):
    copied = datacom.Run(shutil.copytree(run.path, tmp_path / "copied"))
    file, block = tmp_path / "copied/replay/member_1.rows", 16 + 64 * copied.transitions(1).dtype.itemsize
    for size, why in ((4096 + 10 * block, "is truncated: it has 640 of its rows"), (100, "is no ring of rows"), (0, "is no ring of rows")):
        os.truncate(file, size)
        with pytest.raises(ValueError, match=f"{file} {why}"):
            copied.transitions(1)


def test_frames_grow_with_their_files(run):
    assert isinstance(run.progress, pandas.DataFrame)
    assert run.progress is not run.progress
# SPDX-License-Identifier: Apache-2.0

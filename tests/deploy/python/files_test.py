import fcntl
import os

import pytest
from datacom import _files


def test_a_file_is_written_past_what_lies_under_its_temporary_name(tmp_path):
    victim, file, planted = tmp_path / "victim", tmp_path / "file", tmp_path / "file.tmp"
    victim.write_text("mine")
    for plant in (lambda: planted.symlink_to(victim), lambda: os.link(victim, planted), lambda: planted.write_text("of a crash")):
        plant()
        _files.write(str(file), b"new")
        assert (file.read_bytes(), file.is_symlink(), victim.read_text()) == (b"new", False, "mine")
        assert not planted.exists()
    planted.mkdir()
    with pytest.raises(OSError, match="file.tmp"):
        _files.write(str(file), b"newer")
    assert file.read_bytes() == b"new"


def test_two_writers_of_one_file_have_a_temporary_file_each(tmp_path):
    file, others = tmp_path / "file", tmp_path / "file.tmp"
    with open(others, "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)  # as long as a writer writes
        _files.write(str(file), b"mine")
        assert file.read_bytes() == b"mine" and sorted(tmp_path.iterdir()) == [file, others]
    _files.write(str(file), b"last")
    assert file.read_bytes() == b"last" and list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_files.os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        _files.write(str(tmp_path / "file"), b"new")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("file", "old")]


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    _files.write(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"


def test_a_file_keeps_its_mode_and_one_that_may_not_be_written_stays(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o600)
    _files.write(str(file), b"new")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o600)
    monkeypatch.setattr(_files.os, "access", lambda *_: False)  # root may write everything
    with pytest.raises(PermissionError, match="Permission denied: .*file"):
        _files.write(str(file), b"newer")
    assert [(left.name, left.read_bytes()) for left in tmp_path.iterdir()] == [("file", b"new")]
# SPDX-License-Identifier: Apache-2.0

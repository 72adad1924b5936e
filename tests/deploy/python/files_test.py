import fcntl
import os
import resource
import subprocess
import sys

import pytest
from datacom import _native


def test_a_file_is_written_past_what_lies_under_its_temporary_name(tmp_path):
    victim, file, planted = tmp_path / "victim", tmp_path / "file", tmp_path / "file.tmp"
    victim.write_text("mine")
    for plant in (lambda: planted.symlink_to(victim), lambda: os.link(victim, planted), lambda: planted.write_text("of a crash")):
        plant()
        _native.write(str(file), b"new")
        assert (file.read_bytes(), file.is_symlink(), victim.read_text()) == (b"new", False, "mine")
        assert not planted.exists()
    planted.mkdir()
    with pytest.raises(OSError, match="file.tmp"):
        _native.write(str(file), b"newer")
    assert file.read_bytes() == b"new"


def test_two_writers_of_one_file_have_a_temporary_file_each(tmp_path):
    file, others = tmp_path / "file", tmp_path / "file.tmp"
    with open(others, "wb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)  # as long as a writer writes
        _native.write(str(file), b"mine")
        assert file.read_bytes() == b"mine" and sorted(tmp_path.iterdir()) == [file, others]
    _native.write(str(file), b"last")
    assert file.read_bytes() == b"last" and list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_written_leaves_nothing_behind(tmp_path):
    (tmp_path / "file").write_text("old")
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(OSError, match="file.tmp: File too large"):
            _native.write(str(tmp_path / "file"), b"more than ten bytes")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("file", "old")]


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    _native.write(str(tmp_path / "link"), b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_bytes() == b"new"


def test_a_file_keeps_its_mode(tmp_path):
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o600)
    _native.write(file, b"new")
    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"new", 0o600)


@pytest.mark.parametrize("name, error", [("missing/file", FileNotFoundError), (".", IsADirectoryError)])
def test_a_place_that_takes_no_file_raises_as_pythons_own_open(tmp_path, name, error):
    with pytest.raises(error, match=str(tmp_path)):
        _native.write(tmp_path / name, b"new")


def test_what_was_printed_stands_before_a_file_that_is_standard_output():
    program = "from datacom import _native; print('first'); _native.write('-', b'second')"
    assert subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True).stdout == b"first\nsecond"
# SPDX-License-Identifier: Apache-2.0

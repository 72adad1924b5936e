import base64
import re
import struct

import datacom
import numpy as np
import pytest
import safetensors.numpy
from datacom import tensors

HEADER = b'{"a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}'
BFLOAT = struct.pack("<Q", len(HEADER)) + HEADER + bytes(2)  # a safetensors file


@pytest.fixture
def policy(run):
    return datacom.Policy.load(run.path, 1)


def test_a_policy_that_is_saved_and_loaded_has_the_same_bytes(policy, tmp_path):
    tensors.save(policy, tmp_path / "p.safetensors")
    loaded = tensors.load(tmp_path / "p.safetensors")
    assert (loaded.task, loaded.member, loaded.update, loaded.acting_rule) == (policy.task, policy.member, policy.update, policy.acting_rule)
    observations = np.random.default_rng(0).uniform(-1, 1, (100, policy.observation_dim))
    for shield in (True, False):
        policy.shield = loaded.shield = shield
        for one, other in zip(policy.decide(observations), loaded.decide(observations)):
            np.testing.assert_array_equal(one, other)
    assert loaded.content == policy.content
    for nowhere, error in ((tmp_path, IsADirectoryError), (tmp_path / "none/p.safetensors", FileNotFoundError)):
        with pytest.raises(error):
            tensors.save(policy, nowhere)


def test_the_arrays_are_the_nets(policy, tmp_path):
    arrays = tensors.arrays(policy)
    assert arrays["actor.mean.0.weight"].shape == (policy.seen_dim, 128)
    policy.shield = False
    tensors.save(policy, tmp_path / "p.safetensors")
    changed = dict(safetensors.numpy.load_file(tmp_path / "p.safetensors"))
    with safetensors.safe_open(tmp_path / "p.safetensors", "numpy") as opened:
        metadata = opened.metadata()
    for name in changed:
        if name.startswith("actor.mean."):
            changed[name] = np.zeros_like(changed[name])
    safetensors.numpy.save_file(changed, tmp_path / "zero.safetensors", metadata)
    zero = tensors.load(tmp_path / "zero.safetensors")
    zero.shield = False
    np.testing.assert_array_equal(zero.act(np.ones(policy.observation_dim)), np.zeros(policy.action_dim))  # tanh(0), in the middle of the box


def test_wrong_files_are_refused_by_the_name_of_the_array(policy, tmp_path):
    tensors.save(policy, tmp_path / "p.safetensors")
    with safetensors.safe_open(tmp_path / "p.safetensors", "numpy") as opened:
        metadata, arrays = opened.metadata(), {name: opened.get_tensor(name) for name in opened.keys()}
    name = "actor.mean.0.bias"
    for wrong, reason in (({**arrays, name: np.zeros(3, np.float32)}, r"array actor.mean.0.bias is \[3\], not \[128\]"),
                          ({**arrays, "more": np.zeros(3, np.float32)}, r"array more is \[3\], not there"),
                          ({**arrays, name: np.zeros(128, np.int8)}, "array actor.mean.0.bias has whole numbers, int8, not real ones"),
                          ({key: value for key, value in arrays.items() if key != name}, "array actor.mean.0.bias is missing")):
        safetensors.numpy.save_file(wrong, tmp_path / "w.safetensors", metadata)
        with pytest.raises(ValueError, match=reason):
            tensors.load(tmp_path / "w.safetensors")
    safetensors.numpy.save_file(arrays, tmp_path / "w.safetensors")
    with pytest.raises(ValueError, match="is no policy"):
        tensors.load(tmp_path / "w.safetensors")


@pytest.mark.parametrize("entry", ["", "no base64", "AAAA", base64.b64encode(bytes(40)).decode(), base64.b64encode(b"DCPOLIC\n" + b"\xff" * 60).decode()],
                         ids=["empty", "text", "short", "zeros", "ones"])
def test_metadata_that_are_no_policy_are_refused_with_the_file(tmp_path, entry):
    safetensors.numpy.save_file({"a": np.zeros(1, np.float32)}, tmp_path / "w.safetensors", {"datacom": entry})
    with pytest.raises(ValueError, match="w.safetensors is no policy: 'datacom' of its metadata is not what tensors.save writes"):
        tensors.load(tmp_path / "w.safetensors")


# Whether NumPy has bfloat16 depends on what else is installed.
@pytest.mark.parametrize("content, why", [(b"nothing", "cannot be read as arrays of safetensors: .*header"),
                                          (BFLOAT, "(cannot be read as arrays of safetensors: .*bfloat16|is no policy)")], ids=["no safetensors", "bfloat16"])
def test_a_file_whose_arrays_cannot_be_read_is_refused_with_the_reason(tmp_path, content, why):
    (tmp_path / "w.safetensors").write_bytes(content)
    with pytest.raises(ValueError, match=f"w.safetensors {why}"):
        tensors.load(tmp_path / "w.safetensors")


def test_an_array_that_no_policy_may_have_is_refused_with_the_file_of_the_user(policy, tmp_path):
    tensors.save(policy, tmp_path / "p.safetensors")
    with safetensors.safe_open(tmp_path / "p.safetensors", "numpy") as opened:
        metadata, arrays = opened.metadata(), {name: opened.get_tensor(name) for name in opened.keys()}
    arrays["actor.mean.0.bias"][3] = np.nan
    safetensors.numpy.save_file(arrays, tmp_path / "w.safetensors", metadata)
    with pytest.raises(ValueError, match="^[^/]*" + re.escape(str(tmp_path / "w.safetensors")) + ".*array actor.mean.0.bias holds nan"):
        tensors.load(tmp_path / "w.safetensors")
# SPDX-License-Identifier: Apache-2.0

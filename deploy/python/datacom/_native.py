"""The C functions of libdatacom_python: structures and signatures as in its headers (datacom_env.h, datacom_policy.h, ...).

The library is loaded so that nothing of it is visible to others and it prefers its own dependencies: a process may hold
another version of Protocol Buffers or MuJoCo beside it. Calls run without the interpreter's lock.
"""

from __future__ import annotations

import ctypes
import functools
import os
from ctypes import POINTER, Structure, c_char_p, c_double, c_float, c_int, c_size_t, c_uint32, c_uint64, c_uint8, c_void_p
from typing import Any

import numpy as np

from datacom import _files

MESSAGE_BYTES = 4096
STANDARD_OUTPUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")  # as a user names it


class EnvInfo(Structure):
    _fields_ = [
        ("task", c_char_p), ("observation_dim", c_int), ("action_dim", c_int), ("horizon", c_int),
        ("control_period", c_double), ("action_low", POINTER(c_double)), ("action_high", POINTER(c_double)),
        ("costs", c_int), ("cost_names", POINTER(c_char_p)), ("inits", c_int), ("init_names", POINTER(c_char_p)),
        ("q_dim", c_int), ("x_dim", c_int),
    ]


RESULT_ARRAYS = ("observation", "final_observation", "reward", "cost", "named_cost", "terminated", "truncated", "success", "invalid")


class EnvResult(Structure):
    _fields_ = [(name, c_void_p) for name in RESULT_ARRAYS]


class EnvStart(Structure):
    _fields_ = [("mask", c_void_p), ("seeds", c_void_p), ("has_seed", c_void_p), ("inits", c_int),
                ("init_names", POINTER(c_char_p)), ("init_values", POINTER(c_double))]


class PolicyInfo(Structure):
    _fields_ = [
        ("task", c_char_p), ("experiment", c_char_p), ("algorithm", c_char_p), ("acting_rule", c_char_p), ("build", c_char_p),
        ("member", c_uint32), ("epoch", c_uint32), ("update", c_uint64),
        ("observation_dim", c_int), ("action_dim", c_int), ("noise_dim", c_int),
        ("control_period", c_double), ("action_low", POINTER(c_double)), ("action_high", POINTER(c_double)),
        ("seen_dim", c_int), ("observation_names", POINTER(c_char_p)), ("action_names", POINTER(c_char_p)), ("filters", c_int),
    ]


class PolicyInput(Structure):
    _fields_ = [("observation", c_void_p), ("noise", c_void_p), ("previous_cost", c_double)]


class PolicyJudgement(Structure):
    _fields_ = [("cvar", c_double), ("constraint", c_double), ("intervention", c_double)]


class RecordRows(Structure):
    _fields_ = [("count", c_uint64), ("observation_dim", c_int), ("action_dim", c_int),
                *[(name, c_void_p) for name in ("observation", "next_observation", "action", "reward", "cost", "absorbing", "last")]]


_SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "datacom_env_make": (c_int, [c_char_p, c_char_p, c_int, c_int, c_int, POINTER(c_void_p), c_char_p, c_size_t]),
    "datacom_env_free": (None, [c_void_p]),
    "datacom_env_describe": (POINTER(EnvInfo), [c_void_p]),
    "datacom_env_reset": (c_int, [c_void_p, POINTER(EnvStart), POINTER(EnvResult), c_char_p, c_size_t]),
    "datacom_env_step": (c_int, [c_void_p, c_void_p, POINTER(EnvResult), c_char_p, c_size_t]),
    "datacom_env_draw": (c_int, [c_void_p, c_int, c_char_p, c_int, c_int, c_void_p, c_char_p, c_size_t]),
    "datacom_env_dynamics": (None, [c_void_p, c_int] + [c_void_p] * 6),
    "datacom_policy_load": (c_int, [c_char_p, POINTER(c_void_p), c_char_p, c_size_t]),
    "datacom_policy_free": (None, [c_void_p]),
    "datacom_policy_describe": (POINTER(PolicyInfo), [c_void_p]),
    "datacom_policy_begin": (None, [c_void_p]),
    "datacom_policy_why": (c_char_p, [c_void_p]),
    "datacom_policy_use_shield": (c_int, [c_void_p, c_int]),
    "datacom_policy_act": (c_int, [c_void_p, POINTER(PolicyInput), c_void_p, POINTER(PolicyJudgement)]),
    "datacom_policy_filter": (c_int, [c_void_p, POINTER(PolicyInput), c_void_p, c_void_p, POINTER(PolicyJudgement)]),
    "datacom_records_columns": (c_int, [c_char_p, c_char_p, c_size_t]),
    "datacom_records_write_dataset": (c_int, [c_char_p, c_char_p, c_char_p, POINTER(RecordRows), c_char_p, c_char_p, c_size_t]),
    "datacom_records_write_file": (c_int, [c_char_p, c_char_p, c_size_t, c_char_p, c_size_t]),
    "datacom_records_interquartile_mean": (c_int, [POINTER(c_double), c_int, POINTER(c_double)]),
    "datacom_records_student_t": (c_double, [c_double, c_double]),
}


@functools.lru_cache(maxsize=None)
def library() -> ctypes.CDLL:
    """The library. Raises FileNotFoundError where the package has none, and OSError where it cannot be loaded."""
    loaded = ctypes.CDLL(str(_files.library("libdatacom_python.so")), mode=os.RTLD_LOCAL | os.RTLD_DEEPBIND)
    for name, (result, arguments) in _SIGNATURES.items():
        function = getattr(loaded, name)
        function.restype, function.argtypes = result, arguments
    return loaded


def write(file: str | os.PathLike[str], content: bytes) -> None:
    """Writes a file that a user names, as the command does (common/base/output_file.h). Raises OSError."""
    if os.fspath(file) in STANDARD_OUTPUT:
        print(end="", flush=True)  # what Python has kept comes first
    text = ctypes.create_string_buffer(MESSAGE_BYTES)
    code = library().datacom_records_write_file(os.fsencode(file), content, len(content), text, len(text))
    if code != 0:
        kind = IsADirectoryError if os.path.isdir(file) else {5: FileNotFoundError, 7: PermissionError}.get(code, OSError)
        raise kind(text.value.decode(errors="replace"))


def address(array: np.ndarray | None) -> int | None:
    return None if array is None else array.ctypes.data


def numbers(pointer: Any, count: int) -> np.ndarray:
    """A copy of `count` doubles."""
    return np.array([pointer[i] for i in range(count)], dtype=np.float64)
# SPDX-License-Identifier: Apache-2.0

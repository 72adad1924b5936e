"""Policies as safetensors files: every array of their nets under its name, float32, and what else a policy needs as metadata.

    tensors.save(policy, "arm.safetensors")
    policy = tensors.load("arm.safetensors")

The arrays may be changed in between, for example by training on; their names and shapes may not. Needs the package safetensors (the extra
"safetensors").
"""

from __future__ import annotations

import base64
import os
import struct
import tempfile
from pathlib import Path
from typing import Any, Iterator

import numpy as np
from numpy.typing import NDArray

from datacom import _native
from datacom.policy import Policy

_FRAME = struct.Struct("<8sIIQ")  # docs/formats.md 1
_SNAPSHOT, _ARRAYS, _CRC = 6, 7, 12  # fields of PolicyFile and SnapshotManifest
_NAME = "datacom"  # of the metadata


def _table() -> list[int]:
    values = list(range(256))
    for _ in range(8):
        values = [value >> 1 ^ (0x82F63B78 if value & 1 else 0) for value in values]
    return values


_CRC_TABLE = _table()


def _crc32c(data: bytes, crc: int = 0) -> int:
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value, shift, at = value | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return value, at


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Number, content and all bytes of each field of a message of Protocol Buffers, in the order of the bytes."""
    at = 0
    while at < len(message):
        start, (key, at) = at, _varint(message, at)
        if key & 7 == 0:
            begin, (_, at) = at, _varint(message, at)
        elif key & 7 == 2:
            size, begin = _varint(message, at)
            at = begin + size
        else:
            begin, at = at, at + (8 if key & 7 == 1 else 4)
        yield key >> 3, message[begin:at], message[start:at]


class _Parts:
    """The parts of a policy file."""

    def __init__(self, content: bytes) -> None:
        self.magic, self.version, _, size = _FRAME.unpack_from(content)
        self.before, snapshot, self.after = b"", b"", b""  # fields of the PolicyFile around the snapshot
        for number, value, all_bytes in _fields(content[_FRAME.size:_FRAME.size + size]):
            if number == _SNAPSHOT:
                snapshot = value
            elif snapshot:
                self.after += all_bytes
            else:
                self.before += all_bytes
        manifest_size = struct.unpack_from("<Q", snapshot)[0]
        self.manifest, self.data = snapshot[8:8 + manifest_size], snapshot[8 + manifest_size:]
        self.shapes: dict[str, list[int]] = {}
        for number, value, _ in _fields(self.manifest):
            if number == _ARRAYS:
                array = list(_fields(value))
                packed = b"".join(one for field, one, _ in array if field == 2)
                shape, at = [], 0
                while at < len(packed):
                    width, at = _varint(packed, at)
                    shape.append(width)
                self.shapes[next(one for field, one, _ in array if field == 1).decode()] = shape

    def content(self) -> bytes:
        """The file, with the sums of the present data."""
        whole = b"".join(all_bytes for number, _, all_bytes in _fields(self.manifest) if number != _CRC)  # its maps are sorted in the file
        crc = _crc32c(self.data, _crc32c(whole))
        manifest = whole + bytes([_CRC << 3 | 5]) + struct.pack("<I", crc)
        snapshot = struct.pack("<Q", len(manifest)) + manifest + self.data
        size, length = len(snapshot), b""
        while size >= 0x80:
            length, size = length + bytes([size & 0x7F | 0x80]), size >> 7
        payload = self.before + bytes([_SNAPSHOT << 3 | 2]) + length + bytes([size]) + snapshot + self.after
        head = struct.pack("<IQ", self.version, len(payload))
        return _FRAME.pack(self.magic, self.version, _crc32c(payload, _crc32c(head)), len(payload)) + payload


def arrays(policy: Policy) -> dict[str, NDArray[np.float32]]:
    """The arrays of a policy's nets by name, for example "actor.mean.0.weight" [in, out]."""
    parts, found, at = _Parts(policy.content), {}, 0
    for name, shape in parts.shapes.items():
        count = int(np.prod(shape))
        found[name] = np.frombuffer(parts.data, np.float32, count, at).reshape(shape).copy()
        at += 4 * count
    return found


def save(policy: Policy, file: str | os.PathLike[str]) -> None:
    """Writes a safetensors file, and replaces one atomically. Raises OSError."""
    import safetensors.numpy

    parts = _Parts(policy.content)
    parts.data = b""
    metadata = {_NAME: base64.b64encode(parts.content()).decode()}
    _native.write(file, safetensors.numpy.save(arrays(policy), metadata))


def _read(file: str | os.PathLike[str]) -> tuple[_Parts, dict[str, NDArray[Any]]]:
    """The policy without its arrays, and the arrays."""
    import safetensors

    try:
        with safetensors.safe_open(os.fspath(file), "numpy") as opened:
            metadata: dict[str, str] = opened.metadata() or {}
            values = {name: opened.get_tensor(name) for name in opened.keys()}
    except (safetensors.SafetensorError, TypeError) as error:  # TypeError: NumPy has no bfloat16
        raise ValueError(f"{file} cannot be read as arrays of safetensors: {error}") from None
    if _NAME not in metadata:
        raise ValueError(f"{file} is no policy: its metadata have no {_NAME!r}")
    try:
        return _Parts(base64.b64decode(metadata[_NAME], validate=True)), values
    except (ValueError, LookupError, StopIteration, struct.error) as error:
        raise ValueError(f"{file} is no policy: {_NAME!r} of its metadata is not what tensors.save writes") from error


def load(file: str | os.PathLike[str]) -> Policy:
    """The policy of a file of `save`. Raises ValueError, naming the array, for a file that has other arrays or shapes, or none of `save`."""
    parts, values = _read(file)
    for name in {**parts.shapes, **values}:
        found = values.get(name)
        if name not in parts.shapes or found is None or list(found.shape) != parts.shapes[name]:
            raise ValueError(f"{file}: array {name} is {'missing' if found is None else list(found.shape)}, not {parts.shapes.get(name, 'there')}")
        if found.dtype.kind in "iub":  # of a quantised net, whose scale is not here
            raise ValueError(f"{file}: array {name} has whole numbers, {found.dtype}, not real ones")
    parts.data = b"".join(np.ascontiguousarray(values[name], np.float32).tobytes() for name in parts.shapes)
    with tempfile.TemporaryDirectory(prefix="datacom-") as folder:
        made = Path(folder) / "policy"
        made.write_bytes(parts.content())
        try:
            return Policy(made)
        except (ValueError, NotImplementedError) as error:
            raise type(error)(str(error).replace(str(made), str(file))) from None
# SPDX-License-Identifier: Apache-2.0

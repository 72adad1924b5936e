"""Where the programs and the libraries of this package are: in the installed package, or in the build of a checkout. Writes files that a user
names. Runs the modules that are commands.

Functions; thread-safe.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sys
from pathlib import Path
from typing import BinaryIO, Callable

_PACKAGE = Path(__file__).resolve().parent


def _find(kind: str, name: str) -> Path:
    build = os.environ.get("DATACOM_BUILD")  # a build folder of a checkout, for example build/release
    folders = [Path(build)] if build else [_PACKAGE, _PACKAGE.parents[2] / "build" / "release"]
    for folder in folders:
        if (folder / kind / name).is_file():
            return folder / kind / name
    tried = " and ".join(str(folder / kind) for folder in folders)
    raise FileNotFoundError(f"{name} is not in {tried}: install the wheel, or run ./datacom build in the checkout")


def is_standard_output(file: str) -> bool:
    """Whether a file that a user names is standard output."""
    return file in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def _is_held(stream: int | BinaryIO) -> bool:
    """Whether another writer has locked an open file; locks it if not."""
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        pass
    return False


def _remove_left(name: str) -> None:
    """Removes what a killed process or somebody else left under a name; not what a writer holds."""
    try:
        left = os.open(name, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        os.unlink(name)
        return
    try:
        if not _is_held(left) and os.path.samestat(os.fstat(left), os.lstat(name)):
            os.unlink(name)
    finally:
        os.close(left)


def _open_temporary(place: str) -> tuple[str, BinaryIO]:
    """A new file beside another one, PLACE.tmp or, where another writer has that, PLACE.1.tmp and so on, as the command opens it
    (common/base/files.cc). It is locked while it is open, so that no writer takes it for left over."""
    for number in range(100):
        name = f"{place}.{number}.tmp" if number else place + ".tmp"
        with contextlib.suppress(FileNotFoundError):
            _remove_left(name)
        try:
            stream = open(name, "xb")  # "x": a link that somebody puts there meanwhile is not followed
        except FileExistsError:
            continue
        if not _is_held(stream) and os.fstat(stream.fileno()).st_nlink > 0:
            return name, stream
        stream.close()  # another writer took it for left over before it was locked
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), place + ".tmp")


def write(file: str, content: bytes) -> None:
    """Writes a file that a user names, as the command does (common/base/output_file.h): a regular file is replaced atomically,
    unless this user may not write it, and keeps its mode; a link stays; a FIFO, a device or standard output gets the bytes. Raises OSError."""
    place = os.path.realpath(file)
    if is_standard_output(file):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    elif os.path.exists(file) and not os.path.isfile(place):
        Path(file).write_bytes(content)  # a folder or a socket raises
    else:
        there = os.path.exists(place)
        if there and not os.access(place, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), file)
        temporary, stream = _open_temporary(place)
        with stream:  # until the file has its name
            try:
                if there:
                    os.fchmod(stream.fileno(), os.stat(place).st_mode & 0o777)
                stream.write(content)
                stream.flush()
                os.replace(temporary, place)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise


def command(main: Callable[[], None]) -> None:
    """Runs the main function of `python -m datacom.NAME`. What it cannot do is a line on standard error, and exit code 2."""
    try:
        main()
    except (OSError, ValueError, ImportError, NotImplementedError) as error:
        print(f"datacom.{Path(sys.argv[0]).stem}: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)


def program(name: str) -> Path:
    """The path of a program, for example "datacom". Raises FileNotFoundError, which names the folders that were tried."""
    return _find("bin", name)


def library(name: str) -> Path:
    """The path of a shared library, for example "libdatacom_policy.so". Raises FileNotFoundError like `program`."""
    return _find("lib", name)
# SPDX-License-Identifier: Apache-2.0

"""Where the programs and the libraries of this package are: in the installed package, or in the build of a checkout. Writes files that a user
names. Runs the modules that are commands.

Functions; thread-safe for distinct files.
"""

import contextlib
import os
import sys
from pathlib import Path
from typing import Callable

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


def write(file: str, content: bytes) -> None:
    """Writes a file that a user names, as the command does (common/base/output_file.h): a regular file is replaced atomically, and a link stays;
    a FIFO, a device or standard output gets the bytes. Raises OSError."""
    place = os.path.realpath(file)
    if is_standard_output(file):
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    elif os.path.exists(file) and not os.path.isfile(place):
        Path(file).write_bytes(content)  # a folder or a socket raises
    else:
        temporary = place + ".tmp"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        try:
            with open(temporary, "xb") as stream:  # "x": a link that somebody puts there meanwhile is not followed
                stream.write(content)
            os.replace(temporary, place)
        except OSError:
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

"""Where the programs and the libraries of this package are: in the installed package, or in the build of a checkout.

Functions; thread-safe; they read only the environment and the file system.
"""

import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def _find(kind: str, name: str) -> Path:
    build = os.environ.get("DATACOM_BUILD")  # a build folder of a checkout, for example build/release
    folders = [Path(build)] if build else [_PACKAGE, _PACKAGE.parents[2] / "build" / "release"]
    for folder in folders:
        if (folder / kind / name).is_file():
            return folder / kind / name
    tried = " and ".join(str(folder / kind) for folder in folders)
    raise FileNotFoundError(f"{name} is not in {tried}: install the wheel, or run ./datacom build in the checkout")


def program(name: str) -> Path:
    """The path of a program, for example "datacom". Raises FileNotFoundError, which names the folders that were tried."""
    return _find("bin", name)


def library(name: str) -> Path:
    """The path of a shared library, for example "libdatacom_policy.so". Raises FileNotFoundError like `program`."""
    return _find("lib", name)
# SPDX-License-Identifier: Apache-2.0

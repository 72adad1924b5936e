"""Where the programs and the libraries of this package are: in the installed package, or in the build of a checkout. Runs the modules that are
commands.

Functions; thread-safe.
"""

from __future__ import annotations

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
    """The path of a shared library, for example "libdatacom_policy.so.1". Raises FileNotFoundError like `program`."""
    return _find("lib", name)
# SPDX-License-Identifier: Apache-2.0

#!/usr/bin/env python3
"""Runs the tests of the Python package with pytest, in a virtual environment of the build folder.

  run_pytest.py BUILD [FILE...]   files relative to tests/deploy

The environment, BUILD/python/package, has the package's optional dependencies from PyPI. Exit code 77: PyPI cannot be reached, or the build has a
sanitizer.
"""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parents[2]
sys.path.insert(0, str(ROOT / "tests/testing"))
from package_python import package_python  # noqa: E402  the path comes first
from skipped import SKIPPED  # noqa: E402



def main(build, arguments):
    python = package_python(build)
    if python is None:
        return SKIPPED
    environment = {**os.environ, "DATACOM_BUILD": str(build), "PYTHONPATH": str(ROOT / "deploy/python"), "MPLBACKEND": "Agg",
                   "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error::UserWarning:datacom", *arguments],
                          env=environment, cwd=TESTS.parent, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
# SPDX-License-Identifier: Apache-2.0

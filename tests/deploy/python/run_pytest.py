#!/usr/bin/env python3
"""Runs the tests of the Python package with pytest, in a virtual environment of the build folder.

  run_pytest.py BUILD [FILE...]      files relative to tests/deploy
  run_pytest.py BUILD --sb3 FILE...  with Stable-Baselines3, skrl, TorchRL, LeRobot and Debian's torch

The environment, BUILD/python/package or BUILD/python/sb3, has what the package can use from PyPI. Exit code 77: PyPI or Debian's mirror cannot be
reached, or the build has a sanitizer.
"""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parents[2]
sys.path.insert(0, str(ROOT / "tests/testing"))
from package_python import package_python, sb3_python  # noqa: E402  the path comes first
from skipped import SKIPPED  # noqa: E402


def main(build, arguments):
    python, path = package_python(build), [str(ROOT / "deploy/python")]
    if "--sb3" in arguments and python is not None:
        arguments = [*(word for word in arguments if word != "--sb3"), "--noconftest"]
        python, torch = sb3_python(build)
        path.append(torch)
    if python is None:
        return SKIPPED
    environment = {**os.environ, "DATACOM_BUILD": str(build), "PYTHONPATH": os.pathsep.join(path), "MPLBACKEND": "Agg", "PYTHONDONTWRITEBYTECODE": "1",
                   "OMP_NUM_THREADS": "1"}
    return subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error::UserWarning:datacom", *arguments],
                          env=environment, cwd=TESTS.parent, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
# SPDX-License-Identifier: Apache-2.0

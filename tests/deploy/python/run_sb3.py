#!/usr/bin/env python3
"""Runs sb3_tests.py with Stable-Baselines3 and Debian's torch, in a virtual environment of the build folder.

  run_sb3.py BUILD

Exit code 77: PyPI or Debian's mirror cannot be reached, or the build has a sanitizer.
"""

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parents[2]
sys.path.insert(0, str(ROOT / "tests/testing"))
from package_python import has_sanitizer, sb3_python  # noqa: E402  the path comes first
from skipped import SKIPPED  # noqa: E402


def main(build):
    found = None if has_sanitizer(build) else sb3_python(build)
    if found is None:
        return SKIPPED
    python, torch = found
    environment = {**os.environ, "DATACOM_BUILD": str(build), "PYTHONPATH": f"{ROOT / 'deploy/python'}:{torch}", "PYTHONDONTWRITEBYTECODE": "1",
                   "OMP_NUM_THREADS": "1"}
    return subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--noconftest", TESTS / "sb3_tests.py"], env=environment,
                          check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
# SPDX-License-Identifier: Apache-2.0

#!/usr/bin/env python3
"""Runs the tests of the Python package with pytest, in a virtual environment of the build folder.

  run_pytest.py BUILD [FILE...]   files relative to tests/deploy

The environment, BUILD/python/package, has the package's optional dependencies from PyPI. Exit code 77: PyPI cannot be reached, or the build has a
sanitizer.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parents[2]
sys.path.insert(0, str(ROOT / "tests/testing"))
from skipped import SKIPPED  # noqa: E402  the path comes first

PACKAGES = ["numpy==2.2.6", "gymnasium==1.2.0", "pandas==2.3.3", "matplotlib==3.10.7", "pytest==8.4.2", "minari==0.5.4", "h5py==3.16.0",
            "onnx==1.19.1", "onnxruntime==1.23.2"]


def main(build, arguments):
    if re.search("lib[at]san", subprocess.run(["ldd", build / "lib/libdatacom_python.so"], check=True, text=True, stdout=subprocess.PIPE).stdout):
        print("skipped: Python cannot load a library with a sanitizer")
        return SKIPPED
    folder = build / "python/package"
    python, stamp = folder / "bin/python", folder / "installed.txt"
    wanted = "\n".join(PACKAGES)
    if not stamp.is_file() or stamp.read_text() != wanted:
        for words in ([sys.executable, "-m", "venv", "--clear", "--without-pip", folder],
                      [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
                       "--only-binary", ":all:", *PACKAGES]):
            done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                print(f"skipped: {' '.join(map(str, words))}\n{done.stdout[-2000:]}")
                return SKIPPED
        stamp.write_text(wanted)
    environment = {**os.environ, "DATACOM_BUILD": str(build), "PYTHONPATH": str(ROOT / "deploy/python"), "MPLBACKEND": "Agg",
                   "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error::UserWarning:datacom", *arguments],
                          env=environment, cwd=TESTS.parent, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:]))
# SPDX-License-Identifier: Apache-2.0

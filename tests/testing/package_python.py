"""A Python with what the package `datacom` can use, from PyPI, in a virtual environment of the build folder."""
import fcntl
import re
import subprocess
import sys
from pathlib import Path

PACKAGES = ["numpy==2.2.6", "gymnasium==1.2.0", "pandas==2.3.3", "matplotlib==3.10.7", "pytest==8.4.2", "minari==0.5.4", "h5py==3.16.0",
            "onnx==1.19.1", "onnxruntime==1.23.2"]


def package_python(build):
    """The interpreter, BUILD/python/package/bin/python. None, and the reason is printed: PyPI cannot be reached, or the build has a sanitizer."""
    build = Path(build)
    if re.search("lib[at]san", subprocess.run(["ldd", build / "lib/libdatacom_python.so"], check=True, text=True, stdout=subprocess.PIPE).stdout):
        print("skipped: Python cannot load a library with a sanitizer")
        return None
    folder = build / "python/package"
    python, stamp = folder / "bin/python", folder / "installed.txt"
    wanted = "\n".join(PACKAGES)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / "package.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that need it may start together
        if stamp.is_file() and stamp.read_text() == wanted:
            return str(python)
        for words in ([sys.executable, "-m", "venv", "--clear", "--without-pip", folder],
                      [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check", "--retries", "1",
                       "--only-binary", ":all:", *PACKAGES]):
            done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
            if done.returncode != 0:
                print(f"skipped: {' '.join(map(str, words))}\n{done.stdout[-2000:]}")
                return None
        stamp.write_text(wanted)
    return str(python)
# SPDX-License-Identifier: Apache-2.0

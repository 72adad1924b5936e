"""A root that holds only glibc, libstdc++, libgcc, zlib, Python and its standard library: no shell and no package."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PYTHON = Path(sys.executable).resolve()
OF_THE_SYSTEM = ["libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libutil.so.1"]
UNSHARE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]


def is_allowed():
    return subprocess.run([*UNSHARE, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0


def copy_into(root, path):
    target = root / str(path).lstrip("/")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(path, target)


def loaded_by(path):
    return re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", path], check=True, text=True, stdout=subprocess.PIPE).stdout)


def make_root(root):
    """A root with Python, its standard library, and what those load; no shell."""
    shutil.rmtree(root, ignore_errors=True)
    standard = Path(sysconfig.get_path("stdlib"))
    shutil.copytree(standard, root / str(standard).lstrip("/"), symlinks=False,
                    ignore=shutil.ignore_patterns("__pycache__", "dist-packages", "site-packages", "test", "config-*"))
    copy_into(root, PYTHON)
    system = Path(next(path for path in loaded_by(PYTHON) if "/libc.so.6" in path)).parent
    needed = set(loaded_by(PYTHON)) | {str(system / name) for name in OF_THE_SYSTEM}
    for module in (standard / "lib-dynload").glob("*.so"):
        needed |= set(loaded_by(module))
    for library in needed:
        copy_into(root, library)
    for folder in ["proc", "dev", "tmp", "work"]:
        (root / folder).mkdir()


def run_inside(root, *words):
    """Runs a program in the root. The result has its exit code, and what it printed as stdout."""
    script = 'root=$1; shift; mount --rbind /proc "$root/proc" && mount --rbind /dev "$root/dev" && exec chroot "$root" "$@"'
    return subprocess.run([*UNSHARE, "sh", "-c", script, "sh", root, *words], text=True, check=False, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/tmp"})
# SPDX-License-Identifier: Apache-2.0

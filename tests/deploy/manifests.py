"""Helpers of the Kubernetes tests: the manifests' folders, rendering, and the golden files."""
import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(SOURCE, "tests", "testing"))
from patience import PATIENCE  # noqa: E402  the path comes first
from skipped import SKIPPED  # noqa: E402, F401  for the tests

KUBERNETES = os.path.join(SOURCE, "deploy", "kubernetes")
GOLDEN = os.path.join(SOURCE, "tests", "deploy", "kubernetes")
FOLDERS = {"dev": "overlays/dev", "cpu": "overlays/cpu", "gpu": "overlays/gpu", "secure": "overlays/secure",
           "sweep": "overlays/sweep", "plain": "overlays/plain", "rules": "rules"}
# Golden manifests that are kept as a difference from others.
BASES = {"dev": "cpu", "gpu": "cpu", "secure": "cpu", "plain": "sweep", "sweep-cartpole-datacom_device-cuda": "sweep-cartpole-datacom_device-cpu",
         "sweep-plain": "sweep-cartpole-datacom_device-cpu", "run-secure": "sweep-cartpole-datacom_device-cpu",
         "run-secure-plain": "sweep-plain", "run-archive-plain": "run-archive", "autoscale": "cpu"}


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def golden_names():
    return sorted({name.rsplit(".", 1)[0] for name in os.listdir(GOLDEN) if name.endswith((".yaml", ".diff"))})


def golden(name):
    """The golden manifests of this name, complete."""
    if name not in BASES:
        return read(GOLDEN, name + ".yaml")
    base, made, at = golden(BASES[name]).splitlines(keepends=True), [], 0
    for line in read(GOLDEN, name + ".diff").splitlines(keepends=True)[2:]:
        if line.startswith("@@"):
            begin = int(re.match(r"@@ -(\d+)", line).group(1)) - 1
            made += base[at:begin]
            at = begin
        elif line.startswith("+"):
            made.append(line[1:])
        else:
            if base[at] != line[1:]:
                raise AssertionError(f"{name}.diff does not apply to {BASES[name]}.yaml, line {at + 1}: {line[1:]}")
            made += [base[at]] if line.startswith(" ") else []
            at += 1
    return "".join(made + base[at:])


def write_golden(texts):
    """Writes complete manifests by name."""
    for name, text in texts.items():
        path = os.path.join(GOLDEN, name + ".yaml")
        if name in BASES:
            base, path = BASES[name], os.path.join(GOLDEN, name + ".diff")
            text = "".join(difflib.unified_diff(texts[base].splitlines(True), text.splitlines(True), base + ".yaml", name + ".yaml", n=1))
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def why_no_kustomize():
    """The reason why `kubectl kustomize` cannot be used: it needs kustomize 5 (kubectl 1.27) for components and namespaces."""
    if not shutil.which("kubectl"):
        return "kubectl is not installed"
    text = subprocess.run(["kubectl", "version", "--client"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"Kustomize Version: v(\d+)", text)
    return "" if version and int(version.group(1)) >= 5 else "kubectl does not include kustomize 5: " + " ".join(text.split())


def render(folder):
    result = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, timeout=PATIENCE, check=False)
    if result.returncode != 0:
        raise AssertionError(f"kubectl kustomize {folder}: {result.stderr}")
    return result.stdout


def render_overlay(kustomization):
    """The same of an overlay in a folder beside deploy/."""
    with tempfile.TemporaryDirectory(prefix="datacom-manifests-") as folder:
        os.mkdir(os.path.join(folder, "mine"))
        os.symlink(os.path.join(SOURCE, "deploy"), os.path.join(folder, "deploy"))
        for name, text in (("kustomization.yaml", kustomization), ("experiment.textproto", "name: 'mine'\n")):
            with open(os.path.join(folder, "mine", name), "w", encoding="utf-8") as file:
                file.write(text)
        return render(os.path.join(folder, "mine"))


def write_run(binary, folder, *more, name="hockey-1"):
    """Writes the manifests of a single run into FOLDER/NAME, which is returned."""
    run = os.path.join(folder, name)
    result = subprocess.run([binary, "train", "air_hockey/datacom", "--backend", "kubernetes", "--run-dir", run, *more],
                            capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=SOURCE)
    if result.returncode != 0:
        raise AssertionError(result.stdout + result.stderr)
    return run, result.stdout


def write_sweep(binary, folder, *more):
    """Writes the golden sweep's manifests into a folder, with more options."""
    result = subprocess.run([binary, "sweep", os.path.join(GOLDEN, "sweep.textproto"), "--backend", "kubernetes", "--actors", "4",
                             "--images", "registry.example.org:5000/team:1.0", "--run-dir", folder, *more],
                            capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=SOURCE)
    if result.returncode != 0:
        raise AssertionError(result.stdout + result.stderr)
    return result.stdout
# SPDX-License-Identifier: Apache-2.0

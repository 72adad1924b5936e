"""Helpers of the Kubernetes tests: the manifests' folders, rendering, and the golden files."""
import os
import re
import shutil
import subprocess

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
KUBERNETES = os.path.join(SOURCE, "deploy", "kubernetes")
GOLDEN = os.path.join(SOURCE, "tests", "deploy", "kubernetes")
FOLDERS = {"dev": "overlays/dev", "cpu": "overlays/cpu", "gpu": "overlays/gpu", "secure": "overlays/secure",
           "sweep": "overlays/sweep", "rules": "rules"}
SKIPPED = 77  # exit code that ctest shows as skipped


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def why_no_kustomize():
    """The reason why `kubectl kustomize` cannot be used: it needs kustomize 5 (kubectl 1.27) for components and namespaces."""
    if not shutil.which("kubectl"):
        return "kubectl is not installed"
    text = subprocess.run(["kubectl", "version", "--client"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"Kustomize Version: v(\d+)", text)
    return "" if version and int(version.group(1)) >= 5 else "kubectl does not include kustomize 5: " + " ".join(text.split())


def render(folder):
    result = subprocess.run(["kubectl", "kustomize", folder], capture_output=True, text=True, timeout=60, check=False)
    if result.returncode != 0:
        raise AssertionError(f"kubectl kustomize {folder}: {result.stderr}")
    return result.stdout


def write_sweep(binary, folder):
    """Writes the golden sweep's manifests into a folder."""
    result = subprocess.run([binary, "sweep", os.path.join(GOLDEN, "sweep.textproto"), "--backend", "kubernetes", "--actors", "4",
                             "--images", "registry.example.org:5000/team:1.0", "--run-dir", folder],
                            capture_output=True, text=True, timeout=60, check=False, cwd=SOURCE)
    if result.returncode != 0:
        raise AssertionError(result.stdout + result.stderr)
    return result.stdout

#!/usr/bin/env python3
"""The Compose files as Docker's own Compose reads them; skipped where it is not installed."""
import os
import shutil
import subprocess
import sys

from manifests import SKIPPED, SOURCE

if __name__ == "__main__":
    if not shutil.which("docker") or subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode != 0:
        print("skipped: docker compose is not installed")
        sys.exit(SKIPPED)
    for names in (["compose.yaml"], ["compose.yaml", "compose.secure.yaml"]):
        files = [word for name in names for word in ("-f", os.path.join(SOURCE, "deploy", "compose", name))]
        for profile in ("cpu", "gpu"):
            subprocess.run(["docker", "compose", *files, "--profile", profile, "config", "--quiet"], timeout=60, check=True)

#!/usr/bin/env python3
"""Checks that Docker's Compose accepts the Compose files; skipped when it is not installed."""
import subprocess
import sys
import tempfile

import docker_compose
from manifests import PATIENCE, SKIPPED

if __name__ == "__main__":
    WHY_NOT = docker_compose.why_not()
    if WHY_NOT:
        print("skipped:", WHY_NOT)
        sys.exit(SKIPPED)
    with tempfile.TemporaryDirectory(prefix="datacom-") as folder:
        for names in (["compose.yaml"], ["compose.yaml", "compose.secure.yaml"]):
            for profile in ("cpu", "gpu"):
                result = subprocess.run(docker_compose.words(names, folder, "--profile", profile, "config"), stdout=subprocess.PIPE, text=True,
                                        timeout=PATIENCE, check=True)
                for service in ("replay", "learner" if profile == "cpu" else "learner-cuda", "actor", "evaluator", "prometheus", "grafana"):
                    if f"\n  {service}:\n" not in result.stdout:
                        sys.exit(f"{names}, profile {profile}: no service {service}\n{result.stdout}")
# SPDX-License-Identifier: Apache-2.0

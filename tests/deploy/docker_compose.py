"""Runs Docker's Compose, version 2 (docker compose) or version 1 (docker-compose 1.29), on the project's files."""
import os
import re
import shutil
import subprocess

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPOSE = os.path.join(SOURCE, "deploy", "compose")


def why_not():
    """The reason why none can be used; empty when one is installed."""
    return "" if second() or shutil.which("docker-compose") else "neither docker compose nor docker-compose is installed"


def words(names, folder, *options):
    """The first words of a command that reads files of deploy/compose. Version 1 refuses `name:` and gets copies without it in `folder`."""
    if second():
        files = [os.path.join(COMPOSE, name) for name in names]
        command = ["docker", "compose"]
    else:
        files = [os.path.join(folder, name) for name in names]
        for name, path in zip(names, files):
            with open(os.path.join(COMPOSE, name), encoding="utf-8") as source, open(path, "w", encoding="utf-8") as copy:
                copy.write(re.sub(r"(?m)^name:.*\n", "", source.read()))
        command = ["docker-compose"]
    return [*command, "--project-directory", COMPOSE, *(word for file in files for word in ("-f", file)), *options]


def second():
    """True when the plugin is installed."""
    return shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
# SPDX-License-Identifier: Apache-2.0

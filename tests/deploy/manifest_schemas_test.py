#!/usr/bin/env python3
"""Checks the golden manifests against the schemas of Kubernetes, JobSet and the Prometheus operator, and against the project's rules.

usage: manifest_schemas_test.py BIN [unittest arguments], run in the build folder. Schemas come from PyPI; those of Kueue v1beta2 are
written in schemas.py.
"""
import copy
import os
import subprocess
import sys
import unittest

import schemas
from manifests import KUBERNETES, SKIPPED, golden, golden_names, read

BIN = os.path.abspath(sys.argv.pop(1))
WHY_NOT = schemas.install("kubernetes", schemas.KUBERNETES)
if WHY_NOT:
    print("skipped:", WHY_NOT)
    sys.exit(SKIPPED)

import jsonschema  # noqa: E402  installed above
import kubernetes_validate  # noqa: E402
import yaml  # noqa: E402
from cloudcoil.models.prometheus_operator import v1 as operator  # noqa: E402
from kubeflow_trainer_api.models.jobset_v1alpha2_job_set import JobsetV1alpha2JobSet  # noqa: E402

VERSIONS = ("1.31", "1.37")  # the first with a stable podFailurePolicy, and the newest
CUSTOM = {"JobSet": JobsetV1alpha2JobSet, "PodMonitor": operator.PodMonitor, "PrometheusRule": operator.PrometheusRule}
UNCHECKED = {"Kustomization"}  # kubernetes_test checks it with kubectl kustomize
PROGRAMS = {"datacom-replay": "datacom-replay", "datacom-learner": "datacom-learner", "datacom-learner-cuda": "datacom-learner",
            "datacom-actor": "datacom-actor"}


def objects():
    """(file, object) of every golden file and of the copying pod."""
    yield "copy.yaml.in", yaml.safe_load(read(KUBERNETES, "copy.yaml.in").replace("@IMAGE@", "busybox").replace("@CLAIM@", "run"))
    for name in golden_names():
        for document in yaml.safe_load_all(golden(name)):
            for item in document["items"] if document["kind"] == "List" else [document]:
                yield name + ".yaml", item


def pods(item):
    """(role, pod specification) of all pods that an object is or makes."""
    if item["kind"] == "JobSet":
        for job in item["spec"]["replicatedJobs"]:
            yield job["name"], job["template"]["spec"]["template"]["spec"]
    elif item["kind"] == "Pod":
        yield item["metadata"]["name"], item["spec"]
    elif item["kind"] in ("Job", "Deployment", "StatefulSet"):
        template = item["spec"]["template"]
        yield template["metadata"]["labels"]["app.kubernetes.io/component"], template["spec"]


def roles(item):
    return [(role, pod) for role, pod in pods(item) if role not in ("copy-run", "run")]


def check(item):
    """Raises the schema's objections to an object. A model drops unknown fields, so its output must equal its input."""
    if item["kind"] in schemas.KUEUE:
        if item["apiVersion"] != "kueue.x-k8s.io/v1beta2" or set(item) - {"apiVersion", "kind", "metadata", "spec"}:
            raise ValueError(f"{item['kind']}: {item}")
        jsonschema.validate(item.get("spec", {}), schemas.KUEUE[item["kind"]])
    elif item["kind"] in CUSTOM:
        outside = copy.deepcopy(item)
        for job in outside["spec"].get("replicatedJobs", []):  # the Jobs of a JobSet are checked as Jobs
            inside = job["template"].pop("spec")
            check({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job["name"]}, "spec": inside})
        kept = CUSTOM[item["kind"]].model_validate(outside).model_dump(mode="json", by_alias=True, exclude_unset=True)
        if kept != outside:
            raise ValueError(f"{item['kind']} {item['metadata']['name']}: its schema does not have all of its fields")
    elif item["kind"] not in UNCHECKED:
        for version in VERSIONS:
            kubernetes_validate.validate(item, version, strict=True)


class Schemas(unittest.TestCase):
    def test_every_object_follows_its_schema(self):
        kinds = set()
        for file, item in objects():
            with self.subTest(file + " " + item["kind"]):
                check(item)
                kinds.add(item["kind"])
        self.assertEqual(kinds, set(CUSTOM) | set(schemas.KUEUE) | UNCHECKED | {
            "Namespace", "Service", "ConfigMap", "StatefulSet", "Deployment", "Job", "PersistentVolumeClaim", "PodDisruptionBudget",
            "NetworkPolicy", "HorizontalPodAutoscaler", "Pod"})

    def test_the_schemas_refuse_an_unknown_field_and_a_wrong_type(self):
        tried = set()
        for _, item in objects():
            if item["kind"] in tried | UNCHECKED | {"ConfigMap", "Namespace"}:
                continue
            tried.add(item["kind"])
            unknown, wrong = copy.deepcopy(item), copy.deepcopy(item)
            unknown["spec"] = {**(item.get("spec") or {}), "replicaz": 1}
            wrong["spec"] = "large"
            for broken in (unknown, wrong):
                with self.subTest(item["kind"]), self.assertRaises(Exception):
                    check(broken)
        self.assertGreater(len(tried), 10)

    def test_nested_fields_of_a_queue_are_checked(self):
        queue = next(item for _, item in objects() if item["kind"] == "ClusterQueue")
        for word, value in (("moon", 1), ("nominalQuota", "much")):
            broken = copy.deepcopy(queue)
            broken["spec"]["resourceGroups"][0]["flavors"][0]["resources"][0][word] = value
            with self.assertRaises(jsonschema.ValidationError):
                check(broken)

    def test_kueue_requires_a_quota_of_each_covered_resource(self):
        for group in ({"coveredResources": [], "flavors": [{"name": "a", "resources": []}]}, {"coveredResources": ["cpu"]}):
            with self.assertRaises(jsonschema.ValidationError):
                jsonschema.validate({"resourceGroups": [group]}, schemas.KUEUE["ClusterQueue"])

    def test_kueues_queues_refer_to_each_other_and_cover_the_requested_resources(self):
        found = {item["kind"]: item for _, item in objects() if item["kind"] in schemas.KUEUE}
        self.assertEqual(set(found), set(schemas.KUEUE))
        self.assertEqual(found["LocalQueue"]["spec"]["clusterQueue"], found["ClusterQueue"]["metadata"]["name"])
        group, = found["ClusterQueue"]["spec"]["resourceGroups"]
        for flavor in group["flavors"]:
            self.assertEqual(flavor["name"], found["ResourceFlavor"]["metadata"]["name"])
            self.assertEqual([resource["name"] for resource in flavor["resources"]], group["coveredResources"])
        asked = set()
        for item in [item for _, item in objects() if item["kind"] == "JobSet"]:
            self.assertEqual(item["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], found["LocalQueue"]["metadata"]["name"])
            asked |= {name for _, pod in pods(item) for container in pod["containers"] for name in container["resources"]["requests"]}
            asked |= {name for _, pod in pods(item) for container in pod["containers"] for name in container["resources"]["limits"] if "/" in name}
        self.assertEqual(asked, set(group["coveredResources"]))
        selected = found["ClusterQueue"]["spec"]["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"]
        self.assertEqual(selected, found["LocalQueue"]["metadata"]["namespace"])
        sweep = next(item for file, item in objects() if file == "sweep-kustomization.yaml")
        self.assertEqual(sweep["namespace"], selected)

    def test_nested_fields_of_a_jobset_are_checked(self):
        item = next(item for _, item in objects() if item["kind"] == "JobSet" and len(item["spec"]["replicatedJobs"]) > 1)
        for path in (("template", "spec", "template", "spec", "containers", 0, "livenessProbe"), ("template", "spec", "podFailurePolicy")):
            broken = copy.deepcopy(item)
            inside = broken["spec"]["replicatedJobs"][1]
            for key in path:
                inside = inside[key]
            inside["moon"] = 1
            with self.assertRaises(Exception):
                check(broken)


class Promises(unittest.TestCase):
    def test_every_pod_follows_the_restricted_profile_with_a_read_only_root(self):
        count = 0
        for file, item in objects():
            for role, pod in pods(item):
                count += 1
                with self.subTest(f"{file} {role}"):
                    self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
                    self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
                    self.assertGreater(pod["securityContext"]["runAsUser"], 0)
                    self.assertIs(pod["automountServiceAccountToken"], False)
                    self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & set(pod))
                    for volume in pod.get("volumes", []):
                        self.assertTrue(set(volume) - {"name"} <= {"configMap", "secret", "persistentVolumeClaim", "emptyDir"})
                    for container in pod["containers"] + pod.get("initContainers", []):
                        rights = container["securityContext"]
                        self.assertEqual(rights["capabilities"], {"drop": ["ALL"]})
                        self.assertIs(rights["allowPrivilegeEscalation"], False)
                        self.assertIs(rights["readOnlyRootFilesystem"], True)
                        self.assertIn("memory", container["resources"]["limits"])
        self.assertEqual(count, 5 * 4 + 2 * 4 + 4 + 2 * 4 + 2 + 1)

    def test_every_argument_is_a_flag_of_its_binary(self):
        flags = {}
        for program in set(PROGRAMS.values()):
            flags[program] = subprocess.run([os.path.join(BIN, program), "--help"], capture_output=True, text=True, check=True).stdout
        for file, item in objects():
            for role, pod in roles(item):
                container = pod["containers"][0]
                program = PROGRAMS[container["image"].rsplit("/", 1)[-1].split(":")[0]]
                for argument in container["args"]:
                    word = argument.split("=")[0]
                    self.assertRegex(flags[program], rf"(?m)^\s+{word}\b", f"{file} {role}")
                    self.assertTrue((word.startswith("--") and word not in ("--stay", "--end-with-run")) == ("=" in argument), argument)

    def test_ports_probes_and_peers_match(self):
        for file, item in objects():
            for role, pod in roles(item):
                container = pod["containers"][0]
                given = dict(argument.split("=", 1) for argument in container["args"] if "=" in argument)
                listening = {given[flag].split(":")[1] for flag in ("--listen", "--metrics-listen", "--health-listen") if flag in given}
                self.assertEqual(listening, {str(port["containerPort"]) for port in container["ports"]}, f"{file} {role}")
                health = given["--health-listen" if "--health-listen" in given else "--listen"].split(":")[1]
                for probe in ("startupProbe", "readinessProbe"):
                    if probe in container:
                        self.assertEqual(container[probe], {**container[probe], "grpc": {"port": int(health)}})
                probes = [container[probe] for probe in ("startupProbe", "readinessProbe", "livenessProbe") if probe in container]
                self.assertEqual({probe["timeoutSeconds"] for probe in probes}, {5}, f"{file} {role}")  # the default second is too short on a busy node
                # An actor without a policy is not ready but must not be killed: its liveness probe checks only the port.
                self.assertEqual(container["livenessProbe"]["tcpSocket"], {"port": "grpc"})
                self.assertEqual("--tls" in given and role != "actor" and role != "evaluator", "--health-listen" in given)
                for flag, peer in (("--replay", "replay"), ("--learner", "learner")):
                    if flag in given and item["kind"] == "JobSet":
                        name = item["metadata"]["name"]
                        self.assertEqual(given[flag], f"{name}-{peer}-0-0.{name}:7000")
                        self.assertLessEqual(len(f"{name}-evaluator-0-0-xxxxx"), 63)
                    elif flag in given:
                        services = {service["metadata"]["name"]: service["spec"]["selector"] for name, service in objects()
                                    if name == file and service["kind"] == "Service"}
                        host = given[flag].removesuffix(":7000")
                        self.assertIn(host, (peer, given["--run-id"] + "-" + peer))
                        self.assertIn(services[host], ({"app.kubernetes.io/component": peer}, {"job-name": host}))

    def test_the_operator_scrapes_over_tls_where_the_roles_use_it(self):
        secure = set()
        for file in {file for file, _ in objects()}:
            items = [item for name, item in objects() if name == file]
            tls = {"--tls=/etc/datacom-tls" in pod["containers"][0]["args"] for item in items for _, pod in roles(item)}
            for endpoint in [one for item in items if item["kind"] == "PodMonitor" for one in item["spec"]["podMetricsEndpoints"]]:
                self.assertEqual({endpoint.get("scheme") == "https"}, tls or {False}, file)
                self.assertEqual("tlsConfig" in endpoint, "scheme" in endpoint)
                secure |= {file} if "scheme" in endpoint else set()
        self.assertEqual(secure, {"secure.yaml"})

    def test_interrupted_pods_are_restarted_and_misconfigured_ones_are_not(self):
        jobs = [item["spec"] for _, item in objects() if item["kind"] == "Job"]
        jobs += [job["template"]["spec"] for _, item in objects() if item["kind"] == "JobSet" for job in item["spec"]["replicatedJobs"]]
        self.assertEqual(len(jobs), 5 * 2 + 2 * 4 + 4 + 2 * 4 + 2)
        for job in jobs:
            self.assertEqual(job["template"]["spec"]["restartPolicy"], "Never")  # required by a pod failure policy
            rules = [(rule["action"], rule.get("onExitCodes", {}).get("values"), bool(rule.get("onPodConditions")))
                     for rule in job["podFailurePolicy"]["rules"]]
            self.assertEqual(rules, [("FailJob", [2], False), ("Ignore", [75], False), ("Ignore", None, True)])

    def test_a_pod_with_an_archive_keeps_nothing_and_has_time_to_copy_its_end(self):
        known = subprocess.run([os.path.join(BIN, "datacom"), "train", "--help"], capture_output=True, text=True, check=True).stdout
        found = [pod for _, item in objects() for role, pod in pods(item) if role == "run"]
        self.assertEqual(len(found), 2)
        for pod in found:
            self.assertEqual({kind for volume in pod["volumes"] for kind in set(volume) - {"name"}}, {"emptyDir", "configMap"})
            prepare, run = pod["initContainers"][0], pod["containers"][0]
            self.assertEqual(run["args"][0], "train")
            for argument in run["args"][1:]:
                self.assertRegex(known, rf"(?m)^\s+{argument.split('=')[0]}\b")
            self.assertIn("--archive=s3://bucket/hockey", run["args"])
            self.assertEqual(prepare["args"][-1], "--out=/run/datacom/run/experiment.textproto")
            self.assertIn("--run-dir=/run/datacom/run", run["args"])
            self.assertEqual((run["envFrom"], "envFrom" in prepare), ([{"secretRef": {"name": "store"}}], False))
            self.assertIn("ephemeral-storage", run["resources"]["requests"])
            self.assertNotIn("ephemeral-storage", run["resources"]["limits"])  # a pod above it would be evicted
            self.assertGreaterEqual(pod["terminationGracePeriodSeconds"], 60 + 25)  # kDrainGrace + kArchiveGrace of deploy/cli/train.cc

    def test_policies_allow_only_necessary_connections(self):
        roles = ("replay", "learner", "actor", "evaluator")
        wanted = {("actor", "replay", 7000), ("learner", "replay", 7000), ("actor", "learner", 7000), ("evaluator", "learner", 7000)}
        for name in ("dev", "cpu", "gpu", "secure", "sweep", "plain"):
            policies = [item["spec"] for item in yaml.safe_load_all(golden(name)) if item["kind"] == "NetworkPolicy"]
            reached = {(source, target, port) for source in roles for target in roles for port in (7000, 7001, 9100)
                       if allows(policies, "egress", source, target, port) and allows(policies, "ingress", target, source, port)}
            self.assertEqual(reached, wanted, name)
            out = [rule for policy in policies if "Egress" in policy["policyTypes"] and selects(policy["podSelector"], "run") for rule in policy.get("egress", [])]
            self.assertEqual([[port["port"] for port in rule["ports"]] for rule in out], [[53, 53], [443, 9000], [80, 988]], name)
            self.assertEqual(out[-1]["to"], [{"ipBlock": {"cidr": "169.254.0.0/16"}}], name)


def selects(selector, role):
    labels = {"app.kubernetes.io/component": role, "app.kubernetes.io/part-of": "datacom"}
    return (all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())
            and all(labels.get(rule["key"]) in rule["values"] for rule in selector.get("matchExpressions", [])))


def allows(policies, direction, own, peer, port):
    """True when a role's policies allow it to reach (egress) or be reached by (ingress) a peer of its namespace."""
    mine = [policy for policy in policies if direction.capitalize() in policy["policyTypes"] and selects(policy["podSelector"], own)]
    if not mine:
        return True  # no policy selects it: everything is allowed
    for policy in mine:
        for rule in policy.get(direction, []):
            peers = rule["to" if direction == "egress" else "from"]
            if any("podSelector" in one and selects(one["podSelector"], peer) for one in peers) and port in [one["port"] for one in rule["ports"]]:
                return True
    return False


if __name__ == "__main__":
    program = unittest.main(verbosity=1, exit=False)
    sys.exit(1 if not program.result.wasSuccessful() else SKIPPED if program.result.skipped else 0)
# SPDX-License-Identifier: Apache-2.0

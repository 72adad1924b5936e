"""Enforces NetworkPolicies of a cluster of deploy/dev/kubernetes_cluster, whose pod network ignores them, with iptables on every node.

A literal reading of the API: a pod that a policy selects for a direction accepts in that direction only what one of the policies allows. Peers are given by
podSelector, namespaceSelector or both (an ipBlock is no pod); ports by number. Traffic from the pod's node (probes) is always allowed, as the API says. apply() reads pods and
policies once; call it again when they changed.
"""
import json
import os
import subprocess


class Enforcer:
    def __init__(self, cluster):
        self.nodes = {}
        for name in sorted(os.listdir(cluster)):
            if os.path.exists(os.path.join(cluster, name, "start")):
                with open(os.path.join(cluster, name, "start"), encoding="utf-8") as file:
                    self.nodes[name] = file.read().split()

    @staticmethod
    def _get(kind):
        words = ["kubectl", "get", kind, "--all-namespaces", "--output=json"]
        return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout)["items"]

    def apply(self):
        pods = [pod for pod in self._get("pods") if pod["status"].get("podIP") and pod["status"]["phase"] == "Running"]
        spaces = {item["metadata"]["name"]: item["metadata"].get("labels", {}) for item in self._get("namespaces")}
        policies = self._get("networkpolicies")
        for node, inside in self.nodes.items():
            rules = ["*filter", ":FORWARD ACCEPT [0:0]", ":POLICIES - [0:0]", "-I FORWARD -j POLICIES",
                     "-A POLICIES -m conntrack --ctstate ESTABLISHED,RELATED -j RETURN"]
            for pod in pods:
                if pod["spec"].get("nodeName") == node:
                    rules += _rules_of(pod, policies, pods, spaces)
            subprocess.run([*inside, "iptables-restore", "--noflush"], input="\n".join([*rules, "COMMIT", ""]), text=True, check=True)


def _matches(selector, labels):
    """Whether a label selector matches; an empty one matches everything."""
    for key, value in selector.get("matchLabels", {}).items():
        if labels.get(key) != value:
            return False
    for one in selector.get("matchExpressions", []):
        has, value = one["key"] in labels, labels.get(one["key"])
        if not {"In": value in one.get("values", []), "NotIn": value not in one.get("values", []), "Exists": has, "DoesNotExist": not has}[one["operator"]]:
            return False
    return True


def _peers(rule, namespace, pods, spaces):
    """Addresses of the pods that a rule's peers select; None: everybody."""
    if not rule:
        return None
    found = set()
    for peer in (peer for peer in rule if "ipBlock" not in peer):
        for pod in pods:
            space = pod["metadata"]["namespace"]
            near = _matches(peer["namespaceSelector"], spaces[space]) if "namespaceSelector" in peer else space == namespace
            if near and _matches(peer.get("podSelector", {}), pod["metadata"].get("labels", {})):
                found.add(pod["status"]["podIP"])
    return found


def _rules_of(pod, policies, pods, spaces):
    own, namespace, rules = pod["status"]["podIP"], pod["metadata"]["namespace"], []
    for direction, here, there, key, peers in (("Ingress", "-d", "-s", "ingress", "from"), ("Egress", "-s", "-d", "egress", "to")):
        chosen = [policy["spec"] for policy in policies if policy["metadata"]["namespace"] == namespace and direction in policy["spec"]["policyTypes"]
                  and _matches(policy["spec"]["podSelector"], pod["metadata"].get("labels", {}))]
        if not chosen:
            continue
        chain = ("I" if direction == "Ingress" else "E") + own
        rules += [f":{chain} - [0:0]", f"-A POLICIES {here} {own} -j {chain}"]
        for rule in (rule for policy in chosen for rule in policy.get(key, [])):
            ports = [f"-p {port.get('protocol', 'TCP').lower()} --dport {port['port']}" for port in rule.get("ports", [])] or [""]
            addresses = _peers(rule.get(peers), namespace, pods, spaces)
            for port in ports:
                rules += [f"-A {chain} {there} {address} {port} -j RETURN" for address in sorted(addresses)] if addresses is not None else \
                    [f"-A {chain} {port} -j RETURN"]
        rules.append(f"-A {chain} -j REJECT")
    return rules
# SPDX-License-Identifier: Apache-2.0
